"""A fault of Kiebitz itself, as a sentence: what went wrong, and where in the program."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from kiebitz.services.standard_streams import open_standard_streams, warn

P = ParamSpec("P")


def fault(error: Exception) -> str:
    """The sentence about an error that nothing has foreseen."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(os.path.dirname(place.filename))}/{os.path.basename(place.filename)}"
    return f"this is a fault of Kiebitz itself: {error!r} in {where}, line {place.lineno}"


def telling_faults(target: Callable[P, None]) -> Callable[P, None]:
    """What a process of ours runs: an error ends it with a sentence on stderr, and status 1."""

    @wraps(target)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        open_standard_streams()
        try:
            target(*args, **kwargs)
        except Exception as error:
            warn(fault(error))
            sys.exit(1)

    return run
