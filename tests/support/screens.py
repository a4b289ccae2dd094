"""The screen of a real terminal: pyte interprets the output of a command."""

from __future__ import annotations

import fcntl
import re
import struct
import termios
import time
from collections.abc import Callable
from typing import Any

import pyte
from terminals import OnTerminal

ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
"""A terminal without Unicode."""


_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*u|\x1b\[\?[0-9]+\$p|\x1b\]22;[a-z]*\x07")
"""Codes that pyte does not know, and would show: of the keyboard, of the mouse, questions."""

_BEGUN = re.compile(rb"\x1b(?:\[[<>=?]?[0-9;]*\$?|\][^\x07\x1b]*)?\Z")


class Filled(OnTerminal):
    """A command that fills its terminal; `screen` is what is seen of it now."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24, **more: Any) -> None:
        super().__init__(*arguments, columns=columns, rows=rows, **more)
        self.before = termios.tcgetattr(self.terminal)
        self._size = columns, rows
        self._pyte = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._pyte)
        self._fed = 0

    @property
    def screen(self) -> str:
        """The visible text."""
        # A code that is not whole yet waits for the rest.
        upto = len(self.written) if (begun := _BEGUN.search(self.written)) is None else begun.start()
        self._stream.feed(_UNKNOWN.sub(b"", self.written[self._fed : upto]))
        self._fed = max(self._fed, upto)
        return "\n".join(line.rstrip() for line in self._pyte.display)

    def until(self, is_seen: str | Callable[[str], bool]) -> str:
        """Read until this is seen; gives the screen."""
        found = (lambda screen: is_seen in screen) if isinstance(is_seen, str) else is_seen
        try:
            self.read_until(lambda _: found(self.screen))
        except AssertionError:
            raise AssertionError(f"{is_seen} was not seen:\n{self.screen}") from None
        return self.screen

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal; the kernel signals the foreground process."""
        self._pyte.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_as_it_was(self) -> bool:
        """Return whether the terminal was given back: its modes, its screen, its cursor, its mouse."""
        modes = {b"1049": b"l", b"25": b"h", b"1000": b"l", b"1003": b"l", b"1006": b"l", b"2004": b"l"}
        for mode, last in modes.items():
            on, off = (self.written.rfind(b"\x1b[?" + mode + end) for end in (b"h", b"l"))
            if max(on, off) >= 0 and (on > off) != (last == b"h"):
                return False
        return termios.tcgetattr(self.terminal) == self.before

    def typed(self) -> int:
        """Return the number of typed bytes that are not read yet."""
        found = struct.unpack("i", fcntl.ioctl(self.terminal, termios.FIONREAD, bytes(4)))[0]
        assert isinstance(found, int)
        return found

    def for_a_while(self, seconds: float = 0.3) -> str:
        """Read for this long; return the screen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(end + 1)
        return self.screen
