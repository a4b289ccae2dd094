"""Deferral of SIGINT and SIGTERM, and the end of a process with its parent.

Deferred signals stay pending and can be polled. After the deferral, a pending signal takes its usual effect.

The life of the process that has started this one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import ParamSpec, TypeVar

PARENT = "KIEBITZ_PARENT_LIVES"
"""Environment variable with a pipe's descriptor, at end of file when the parent process has exited."""


def end_with_parent() -> None:
    """Terminate this process, as by SIGTERM, when the process that started it has exited."""
    descriptor = os.environ.pop(PARENT, None)
    if descriptor is None:
        return

    def wait() -> None:
        # Nothing is ever written there; reading ends with the process.
        os.read(int(descriptor), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, name="parent", daemon=True).start()


@contextmanager
def signals_handled(
    *numbers: signal.Signals,
    handler: Callable[[int, FrameType | None], object] | signal.Handlers = signal.default_int_handler,
) -> Iterator[None]:
    """Handle signals within the context like Ctrl-C, or by another handler. An ignored SIGHUP stays so."""
    before = {
        number: signal.signal(number, handler)
        for number in numbers
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a command."""

POLL_INTERVAL_S = 0.02
"""Polling interval for pending signals."""

P = ParamSpec("P")
Found = TypeVar("Found")


class Interrupted(Exception):
    """A deferred signal has arrived: the operation in progress should be abandoned."""


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM within the context; child processes and threads inherit this."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATION_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignored_signals() -> AbstractContextManager[None]:
    """Ignore SIGINT and SIGTERM in the context, which ends what was started and must not be left halfway."""
    if current_thread() is not main_thread():
        return nullcontext()
    return signals_handled(*TERMINATION_SIGNALS, handler=signal.SIG_IGN)


def check_signals() -> None:
    """Raise Interrupted if a deferred signal is pending."""
    if not signal.sigpending().isdisjoint(TERMINATION_SIGNALS):
        raise Interrupted


def interruptible(call: Callable[P, Found], *args: P.args, **kwargs: P.kwargs) -> Found:
    """Return or raise the outcome of `call`, or raise Interrupted if a deferred signal arrives first.

    For system calls that may block indefinitely: `call` runs in a daemon thread, which is abandoned on
    interruption and ends with the process.
    """
    found: list[Found] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call(*args, **kwargs))
        except BaseException as error:  # Any exception is raised again in the waiting thread.
            failed.append(error)

    thread = Thread(target=run, name=getattr(call, "__name__", None), daemon=True)
    thread.start()
    while thread.is_alive():
        check_signals()
        thread.join(POLL_INTERVAL_S)
    if failed:
        raise failed[0]
    return found[0]
