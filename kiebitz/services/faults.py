"""Processes that handle a whole session: reports of internal errors, tuning of the garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


_NEW_OBJECTS = 100_000
_ROUNDS = 20


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """Collect cycles after 100,000 new objects instead of 700.

    Objects made of traffic have no cycles, but there are many of them, and each collection visits them all.
    Measured: an import takes a fifth less time.
    """
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, _ROUNDS, _ROUNDS)
    try:
        yield
    except KeyboardInterrupt:
        # The process ends, and one collection of all these objects would take half a second.
        gc.freeze()
        raise
    finally:
        gc.set_threshold(*before)
