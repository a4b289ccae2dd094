"""Options that show a recording while it goes on, and the companions that do so.

A companion is another command of Kiebitz in a process of its own. So no byte waits for a picture, and the
recording goes on if the picture fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import termios
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from threading import Thread
from typing import Any, Self

import click

import kiebitz
from kiebitz.cli.options.parsed import Parsed
from kiebitz.cli.status import INTERRUPTED, OK
from kiebitz.cli.tui.run import RECORDER_OUTPUT, check_terminal
from kiebitz.proxy.relay.modes import parse_endpoint
from kiebitz.services.standard_streams import flush, tell, warn

HOST, PORT = "127.0.0.1", 8765
"""Default address of the page."""

RECORDER = "KIEBITZ_RECORDER_LIVES"
"""Environment variable with a descriptor that is at its end when the recording process is gone."""

_TERMINATE_S = 3.0
"""Maximum time (seconds) for the page's server to end."""

_OUTPUTS = (1, 2)

_GIVE_BACK = (
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[<u"
    b"\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[m"
)
"""Ends all that Textual asks of a terminal: mouse, paste, focus, keys; lines, the other screen, no cursor."""

Command = Callable[..., Any]


def _parse_place(text: str) -> tuple[str, int]:
    try:
        host, port = parse_endpoint(text)
    except ValueError as error:
        raise ValueError(f"{error}, as in {HOST}:{PORT}") from error
    return host or HOST, port


def showing_options(command: Command) -> Command:
    """Give a command that records `wanted`, a filter's text, `quiet`, `is_watched` and `place`."""
    options = (
        click.option(
            "-Y", "wanted", metavar="FILTER", help="Show only what meets this filter; all is recorded."
        ),
        click.option("-q", "quiet", is_flag=True, help="Show nothing of what happens."),
        click.option(
            "--watch",
            "is_watched",
            is_flag=True,
            help="Show the table as kiebitz watch does; quitting that ends the recording.",
        ),
        click.option(
            "--serve",
            "place",
            type=Parsed("place", _parse_place),
            is_flag=False,
            flag_value=f"{HOST}:{PORT}",
            metavar="[HOST:PORT]",
            help=f"Show the table in the browser meanwhile, as kiebitz serve does, on {HOST}:{PORT} or here.",
        ),
    )
    return reduce(lambda made, option: option(made), reversed(options), command)


class Companions(ExitStack):
    """The companions of a recording; as a context, until the recording is over.

    Raises UsageError if one of them needs a terminal and there is none.
    """

    def __init__(self, is_watched: bool, place: tuple[str, int] | None) -> None:
        super().__init__()
        self._companions: list[_Companion] = []
        if place is not None:
            self._companions.append(_Page(place))
        if is_watched:
            self._companions.append(_Watch())

    def __enter__(self) -> Self:
        for companion in self._companions:
            self.enter_context(companion)
        return self

    def start(self, session: str, on_quit: Callable[[], None]) -> None:
        """Show this session, `DB:N`; `on_quit` is called in a thread when the user quits the picture."""
        for companion in self._companions:
            companion.start(session, on_quit)

    def stop(self) -> None:
        """End the pictures with the recording; otherwise they stay until the user quits."""
        for companion in self._companions:
            companion.stop()


class _Companion(ABC):
    """A command in a process of its own."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    def start(self, session: str, on_quit: Callable[[], None]) -> None:
        process = self._process = self._start(session)

        def wait() -> None:
            status = process.wait()
            if not self._is_stopped:
                self._ended(status, on_quit)

        Thread(target=wait, name="companion", daemon=True).start()

    def stop(self) -> None:
        self._is_stopped = True
        if self._process is not None:
            self._process.terminate()

    @abstractmethod
    def _start(self, session: str) -> subprocess.Popen[bytes]: ...

    @abstractmethod
    def _ended(self, status: int, on_quit: Callable[[], None]) -> None:
        """Act on an end that was not asked for, in a thread."""


class _Watch(_Companion):
    """`kiebitz watch` on the same terminal.

    As a context, it redirects stdout and stderr into a file, until the user has quit and all is recorded. The
    picture shows the file in a pane; its lines are repeated when the terminal is free again.
    """

    def __init__(self) -> None:
        super().__init__()
        check_terminal("leave --watch away; kiebitz watch can follow it on another terminal", True)

    def __enter__(self) -> Self:
        flush()
        self._file = tempfile.TemporaryFile()
        self._terminal = [os.dup(number) for number in _OUTPUTS]
        self._modes = termios.tcgetattr(self._terminal[0])
        self._redirect([self._file.fileno()] * 2)
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None:
            # It says that the recording is over, and stays until the user quits. A signal ends it, too.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: self.stop())
            process.wait()
        flush()
        self._redirect(self._terminal)
        self._file.seek(0)
        for line in self._file.read().decode(errors="replace").splitlines():
            tell(line)
        self._file.close()

    def _start(self, session: str) -> subprocess.Popen[bytes]:
        stdout, stderr = self._terminal
        # A capture may come through stdin.
        stdin = None if sys.stdin.isatty() else os.open("/dev/tty", os.O_RDWR)
        words = "watch", session
        return _start(words, RECORDER_OUTPUT, self._file.fileno(), stdin=stdin, stdout=stdout, stderr=stderr)

    def _ended(self, status: int, on_quit: Callable[[], None]) -> None:
        if status in (OK, INTERRUPTED):
            on_quit()
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


class _Page(_Companion):
    """`kiebitz serve`, until the recording is over. Leaving a page ends nothing."""

    def __init__(self, place: tuple[str, int]) -> None:
        super().__init__()
        self._host, self._port = place
        self._life = -1
        """Closed when this process ends, however it does: the server has the end that is read."""

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._process is not None:
            try:
                self._process.wait(_TERMINATE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            os.close(self._life)

    def _start(self, session: str) -> subprocess.Popen[bytes]:
        read, self._life = os.pipe()
        words = "serve", session, "--host", self._host, "--port", str(self._port)
        try:
            # Its address is no line of what happens, so it goes to stderr. Ctrl-C is for the recording, which
            # ends the server in its time.
            return _start(words, RECORDER, read, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
        finally:
            os.close(read)

    def _ended(self, status: int, on_quit: Callable[[], None]) -> None:
        warn(f"the page is not served any more (status {status}); the recording goes on")


def _start(words: tuple[str, ...], variable: str, descriptor: int, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command that inherits a descriptor, whose number is in a variable of its environment.

    Nothing of the current folder is imported. The options are those of Popen; raises OSError.
    """
    root = str(Path(kiebitz.__file__).parent.parent)
    paths = filter(None, (root, os.environ.get("PYTHONPATH")))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "kiebitz", *words],
        pass_fds=(descriptor,),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), variable: str(descriptor)},
        **options,
    )
