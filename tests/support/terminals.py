"""Runs a command on a pseudo-terminal of a given size."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from command import ROOT

_STYLE = re.compile(r"\x1b\[[0-9;]*m")

PATIENCE_S = 60.0


def unstyled(text: str) -> str:
    """Return a text without its colours."""
    return _STYLE.sub("", text)


class OnTerminal:
    """A command whose stdin, stdout and stderr are a terminal of this many columns and rows.

    `written` is its output. The terminal stays open when the command has ended.
    """

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24, **environment: str) -> None:
        self.controller, terminal = pty.openpty()
        self.terminal = terminal
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        known = {
            key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kiebitz", *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=ROOT,
            env={**known, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment},
            start_new_session=True,
        )
        self.written = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.controller)
        os.close(self.terminal)

    def read_until(self, is_enough: Callable[[bytes], bool]) -> None:
        """Read what it writes until that is enough."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_enough(self.written):
            self._read(deadline)

    def ended(self) -> int:
        """Read until it has ended; gives its exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            self._read(deadline)
        while select.select([self.controller], [], [], 0)[0]:
            self.written += os.read(self.controller, 65536)
        return self.process.wait()

    def type(self, keys: bytes) -> None:
        """Type something."""
        os.write(self.controller, keys)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    @property
    def lines(self) -> list[str]:
        """The terminal's lines, without colours."""
        return unstyled(self.written.decode()).replace("\r\n", "\n").splitlines()

    def _read(self, deadline: float) -> None:
        assert time.monotonic() < deadline, self.written
        if select.select([self.controller], [], [], 0.05)[0]:
            self.written += os.read(self.controller, 65536)
