"""`--watch`: the table on the terminal at which something is recorded, shown by a process of its own.

So no byte waits for a picture, and what is passed on goes on if the picture fails. All that the recording
process says meanwhile goes into a file, which the other one shows in a pane, and which is said once more when
that has given the terminal back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Self

import click

from kiebitz.cli.spawn import start_command
from kiebitz.cli.status import INTERRUPTED, OK
from kiebitz.cli.tui.run import RECORDER_SAYS, check_terminal
from kiebitz.services.standard_streams import flush, tell, warn

watch_option = click.option(
    "--watch",
    "is_watched",
    is_flag=True,
    help="Show the table as kiebitz watch does; quitting that ends the recording.",
)

_OUTPUTS = (1, 2)

_GIVE_BACK = (
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[<u"
    b"\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[m"
)
"""Ends all that Textual asks of a terminal: mouse, paste, focus, keys; lines, the other screen, no cursor."""


class Beside:
    """As a context: stdout and stderr go into the file, until somebody has quit and all is recorded.

    Raises UsageError where there is no terminal.
    """

    def __init__(self) -> None:
        check_terminal("leave --watch away; kiebitz watch can follow it on another terminal", True)
        self._process: subprocess.Popen[bytes] | None = None
        self._on_left: Callable[[], None] = lambda: None
        self._is_stopped = False

    def __enter__(self) -> Self:
        flush()
        self._file = tempfile.TemporaryFile()
        self._terminal = [os.dup(number) for number in _OUTPUTS]
        self._modes = termios.tcgetattr(self._terminal[0])
        self._redirect([self._file.fileno()] * 2)
        return self

    def start(self, session: str, on_left: Callable[[], None]) -> None:
        """Show this session, `DB:N`; `on_left` is called in a thread when somebody has quit."""
        self._on_left = on_left
        stdout, stderr = self._terminal
        self._process = start_command(
            "watch",
            session,
            variable=RECORDER_SAYS,
            descriptor=self._file.fileno(),
            # Through stdin a capture may come.
            stdin=None if sys.stdin.isatty() else os.open("/dev/tty", os.O_RDWR),
            stdout=stdout,
            stderr=stderr,
        )
        Thread(target=self._wait, name="watch", daemon=True).start()

    def stop(self) -> None:
        """End the picture with the recording, as somebody has ended that from outside."""
        self._is_stopped = True
        if self._process is not None:
            self._process.terminate()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        process = self._process
        if process is not None:
            # It says that the recording is over, and stays until somebody quits. Who ends this ends that.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: self.stop())
            process.wait()
        flush()
        self._redirect(self._terminal)
        self._file.seek(0)
        for line in self._file.read().decode(errors="replace").splitlines():
            tell(line)
        self._file.close()

    def _wait(self) -> None:
        """Wait until the other process is gone."""
        assert self._process is not None
        status = self._process.wait()
        if self._is_stopped:
            return
        if status in (OK, INTERRUPTED):
            self._on_left()
            return
        if status < 0:
            # It could not do so itself.
            termios.tcsetattr(self._terminal[0], termios.TCSANOW, self._modes)
            os.write(self._terminal[0], _GIVE_BACK)
        self._redirect(self._terminal)
        how = f"was killed by signal {-status}" if status < 0 else f"has ended with status {status}"
        warn(f"the picture {how}; the recording goes on: Ctrl-C ends it")

    def _redirect(self, descriptors: list[int]) -> None:
        flush()
        for number, descriptor in zip(_OUTPUTS, descriptors, strict=True):
            os.dup2(descriptor, number)
