"""Reports of internal errors of Kiebitz."""

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
    """Return a sentence about an unforeseen error and its place in the source."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(os.path.dirname(place.filename))}/{os.path.basename(place.filename)}"
    return f"internal error of Kiebitz: {error!r} in {where}, line {place.lineno}"


def reporting_faults(target: Callable[P, None]) -> Callable[P, None]:
    """Decorate a child process's main function: an error is reported on stderr, with exit status 1."""

    @wraps(target)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        open_standard_streams()
        try:
            target(*args, **kwargs)
        except Exception as error:
            warn(fault(error))
            sys.exit(1)

    return run
