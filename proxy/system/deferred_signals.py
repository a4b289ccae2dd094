"""SIGINT and SIGTERM while something is made that must not be left half done: they wait, and are looked for.

Once they are held no more, a signal that has come does what it would have done at once.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import ParamSpec, TypeVar

ENDING = (signal.SIGINT, signal.SIGTERM)
"""They end a command."""

LOOK_EVERY_S = 0.02
"""So often whoever waits looks for them."""

P = ParamSpec("P")
Found = TypeVar("Found")


class Interrupted(Exception):
    """A signal that is held has come: what was begun is not to be gone on with."""


@contextmanager
def held_signals() -> Iterator[None]:
    """Keep SIGINT and SIGTERM waiting for as long as the context; processes and threads inherit that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def look() -> None:
    """Raise Interrupted if a signal that is held has come. Where none is held, nothing happens."""
    if not signal.sigpending().isdisjoint(ENDING):
        raise Interrupted


def interruptible(call: Callable[P, Found], *args: P.args, **kwargs: P.kwargs) -> Found:
    """What `call` gives, or raises; but Interrupted if a signal that is held comes before that.

    It is for system calls that may take as long as they like: it runs in a thread of its own, which is left
    behind, and ends with the process.
    """
    found: list[Found] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call(*args, **kwargs))
        except BaseException as error:  # Whatever it is, it is raised again by whoever waits.
            failed.append(error)

    thread = Thread(target=run, name=getattr(call, "__name__", None), daemon=True)
    thread.start()
    while thread.is_alive():
        look()
        thread.join(LOOK_EVERY_S)
    if failed:
        raise failed[0]
    return found[0]
