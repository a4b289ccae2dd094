"""The keyboard while a replay fills the terminal: its keys go to nobody else, and the terminal is given back.

Echo and line editing are off all the time: click.getchar would go back and forth, and lose what is typed
while a table is drawn. What was typed and not read does not land on the shell's prompt. The terminal is as it
was before, whatever ends the replay, and while it is stopped by Ctrl-Z.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

_ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What would end the process at once, with the terminal as it is."""

_STOPPING = {signal.SIGTSTP}

_END_OF_INPUT = b"\x04"
_QUIT = (b"q", b"Q", _END_OF_INPUT, b"")


def has_keyboard() -> bool:
    """Whether stdin is a terminal that is ours to use: not that of a job in the background."""
    if not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        # It controls no session, so there are no jobs.
        return True


def is_quit(key: bytes | None) -> bool:
    """Whether a key ends a replay; so does the end of the input."""
    return key in _QUIT


class Keyboard(AbstractContextManager["Keyboard"]):
    """Reads keys one by one; to be entered in the main thread.

    `leave` gives the screen back before the process stops, `come_back` takes it again. Ctrl-Z stops it only
    while a key is waited for: what is being drawn then is whole. A signal that ends the process raises
    SystemExit.
    """

    def __init__(self, leave: Callable[[], None], come_back: Callable[[], None]) -> None:
        self._leave = leave
        self._come_back = come_back
        self._input = sys.stdin.fileno()
        self._handled: dict[signal.Signals, Any] = {}
        self.stopped_s = 0.0
        """How long the process was stopped by Ctrl-Z."""

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._input)
        for number in _ENDING:
            self._handle(number, self._end)
        self._handle(signal.SIGTSTP, self._stop)
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        tty.setcbreak(self._input, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        # With what was typed and not read.
        termios.tcsetattr(self._input, termios.TCSAFLUSH, self._before)
        for number, handler in self._handled.items():
            signal.signal(number, handler)
        self._handled.clear()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)

    def key(self, patience_s: float | None) -> bytes | None:
        """The next key, b"" at the end of the input; None if none comes in time. For None it waits."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        try:
            if patience_s is not None and not select.select([self._input], [], [], patience_s)[0]:
                return None
            return os.read(self._input, 1)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)

    def _handle(self, number: signal.Signals, handler: Callable[[int, Any], None]) -> None:
        """Handle a signal, unless whoever has started us wants it ignored."""
        if signal.getsignal(number) is signal.SIG_DFL:
            self._handled[number] = signal.signal(number, handler)

    def _end(self, number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    def _stop(self, number: int, _frame: object) -> None:
        self._leave()
        termios.tcsetattr(self._input, termios.TCSAFLUSH, self._before)
        signal.signal(number, signal.SIG_DFL)
        begun = time.monotonic()
        # Here the process stops, and here it goes on.
        signal.raise_signal(number)
        self.stopped_s += time.monotonic() - begun
        signal.signal(number, self._stop)
        tty.setcbreak(self._input, termios.TCSADRAIN)
        self._come_back()
