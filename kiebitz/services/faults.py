"""Reports of internal errors of Kiebitz."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from kiebitz.dissectors.errors import fault
from kiebitz.services.standard_streams import open_standard_streams, warn

P = ParamSpec("P")


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
