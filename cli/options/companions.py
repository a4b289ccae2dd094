"""The companions of a recording: `kiebitz watch` and `kiebitz serve` in processes of their own.

Separate processes keep rendering from delaying traffic, and a crash from ending the recording.
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
from pathlib import Path
from threading import Thread
from typing import Any, Self

import click
import msgspec

import kiebitz
from kiebitz.cli.options.records import Command, add_options, as_records
from kiebitz.cli.options.serving import Serving, check_serving, serving_options
from kiebitz.cli.param_type import Parsed
from kiebitz.cli.status import INTERRUPTED, OK
from kiebitz.cli.tui.run import RECORDER_OUTPUT, check_terminal
from kiebitz.proxy.relay.modes import parse_endpoint
from kiebitz.proxy.system.deferred_signals import PARENT
from kiebitz.services.standard_streams import flush, print_error_line, warn

HOST, PORT = "127.0.0.1", 8765
"""Default address of the web page."""

_TERMINATE_S = 3.0
"""Time (seconds) for the web server to exit."""

_OUTPUTS = (1, 2)

_RESET_TERMINAL = (
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[<u"
    b"\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[m"
)
"""Undoes Textual's terminal modes: mouse, paste, focus, keys; line wrap, alternate screen, hidden cursor."""


def _parse_place(text: str) -> tuple[str, int]:
    try:
        host, port = parse_endpoint(text)
    except ValueError as error:
        raise ValueError(f"{error}, as in {HOST}:{PORT}") from error
    return host or HOST, port


class Showing(msgspec.Struct, frozen=True):
    """The display of a live recording: filter, and its companions, the page at `place`."""

    wanted: str | None
    quiet: bool
    is_watched: bool
    place: tuple[str, int] | None
    serving: Serving

    @property
    def prints(self) -> bool:
        """True if events are printed."""
        return not (self.quiet or self.is_watched)

    def companions(self) -> Companions:
        """Return the companions. Raises UsageError as they do."""
        return Companions(self.is_watched, self.place, self.serving)


def showing_options(command: Command) -> Command:
    """Add the options of `Showing` to a recording command, which receives them as `showing`."""
    return add_options(
        as_records(showing=Showing)(command),
        click.option(
            "-Y",
            "wanted",
            metavar="FILTER",
            help="Print only what matches this display filter; everything is recorded.",
        ),
        click.option("-q", "quiet", is_flag=True, help="Print no events."),
        click.option(
            "--watch",
            "is_watched",
            is_flag=True,
            help="Show the table as in kiebitz watch; quitting it ends the recording.",
        ),
        click.option(
            "--serve",
            "place",
            type=Parsed("place", _parse_place),
            is_flag=False,
            flag_value=f"{HOST}:{PORT}",
            metavar="[HOST:PORT]",
            help=f"Serve the table as a web page, as in kiebitz serve. Default: {HOST}:{PORT}.",
        ),
        serving_options,
    )


class Companions(ExitStack):
    """The companions of a recording, as a context.

    Raises UsageError without the terminal that one of them needs, and for options without their companion.
    """

    def __init__(self, is_watched: bool, place: tuple[str, int] | None, serving: Serving) -> None:
        super().__init__()
        self._companions: list[_Companion] = []
        check_serving(serving, place is not None)
        if place is not None:
            self._companions.append(_Page(place, serving))
        if is_watched:
            self._companions.append(_Watch())

    def __enter__(self) -> Self:
        for companion in self._companions:
            self.enter_context(companion)
        return self

    def start(self, session: str, on_quit: Callable[[], None]) -> None:
        """Show session `DB:N`; call `on_quit` in a thread when the user quits a companion."""
        for companion in self._companions:
            companion.start(session, on_quit)

    def stop(self) -> None:
        """Terminate the companions; otherwise they stay until the user quits."""
        for companion in self._companions:
            companion.stop()


class _Companion(ABC):
    """A command in a separate process."""

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
        """Handle an exit that was not requested; called in a thread."""


class _Watch(_Companion):
    """`kiebitz watch` on the same terminal.

    As a context, it redirects stdout and stderr into a file, which `watch` shows in a pane. The lines are
    printed when the user has quit and everything is recorded.
    """

    def __init__(self) -> None:
        super().__init__()
        check_terminal("omit --watch and run kiebitz watch in another terminal", True)

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
            # It reports the end of the recording and runs until the user quits, or a signal arrives.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: self.stop())
            process.wait()
        flush()
        self._redirect(self._terminal)
        self._file.seek(0)
        for line in self._file.read().decode(errors="replace").splitlines():
            print_error_line(line)
        self._file.close()

    def _start(self, session: str) -> subprocess.Popen[bytes]:
        stdout, stderr = self._terminal
        # stdin may be a capture.
        stdin = None if sys.stdin.isatty() else os.open("/dev/tty", os.O_RDWR)
        words = "watch", session
        return _start(words, RECORDER_OUTPUT, self._file.fileno(), stdin=stdin, stdout=stdout, stderr=stderr)

    def _ended(self, status: int, on_quit: Callable[[], None]) -> None:
        if status in (OK, INTERRUPTED):
            on_quit()
            return
        if status < 0:
            # It could not restore the terminal itself.
            termios.tcsetattr(self._terminal[0], termios.TCSANOW, self._modes)
            os.write(self._terminal[0], _RESET_TERMINAL)
        self._redirect(self._terminal)
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        warn(f"kiebitz watch {how}; still recording: Ctrl-C ends it")

    def _redirect(self, descriptors: list[int]) -> None:
        flush()
        for number, descriptor in zip(_OUTPUTS, descriptors, strict=True):
            os.dup2(descriptor, number)


class _Page(_Companion):
    """`kiebitz serve`, until the recording ends."""

    def __init__(self, place: tuple[str, int], serving: Serving) -> None:
        super().__init__()
        self._host, self._port = place
        self._serving = serving
        self._life = -1
        """Write end of a pipe; the server reads end of file when this process exits."""

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
        address = "--host", self._host, "--port", str(self._port)
        words = "serve", session, *address, *self._serving.words()
        try:
            # Its address goes to stderr, as stdout has the events. In its own session it does not get Ctrl-C:
            # the recording stops it.
            return _start(words, PARENT, read, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
        finally:
            os.close(read)

    def _ended(self, status: int, on_quit: Callable[[], None]) -> None:
        warn(f"kiebitz serve exited with status {status}; still recording")


def _start(words: tuple[str, ...], variable: str, descriptor: int, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command that inherits a descriptor, with its number in an environment variable.

    Nothing is imported from the current folder. `options` are those of Popen. Raises OSError.
    """
    root = str(Path(kiebitz.__file__).parent.parent)
    paths = filter(None, (root, os.environ.get("PYTHONPATH")))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "kiebitz", *words],
        pass_fds=(descriptor,),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), variable: str(descriptor)},
        **options,
    )
