"""The pytest plug-in: the fixture `kiebitz` relays and records the traffic of a test.

    def test_a_game(kiebitz):
        with kiebitz.relay(4711, protocol="okey") as session:
            play(port=session.port)
        assert not session.diagnostics('diag.severity == "error"')

pytest loads this module in every run in which Kiebitz is installed, so it imports nothing slow.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kiebitz.dissectors.dissector import Dissector
    from kiebitz.storage.session.session import Diagnostic, Event, Message, Session, Table

_HOST = "127.0.0.1"

_START_TIMEOUT_S = 20.0

_STOP_TIMEOUT_S = 20.0

_QUIET_S = 0.5
"""Seconds without a change after which a running recording is complete: twice the time between commits."""

_MAX_QUIET_WAIT_S = 5.0

_RECORDINGS = pytest.StashKey[list[Path]]()


class RelayError(Exception):
    """The relay could not be started; the text has its output."""


class RelayedSession:
    """The recorded traffic of one relay.

    While the relay runs, queries wait until nothing more is recorded for half a second.

    Attributes:
        port: Port to which clients connect, on this machine's loopback.
        database: The recording, for `kiebitz watch` and other commands.
    """

    def __init__(self, port: int, database: Path) -> None:
        self.port = port
        self.database = database
        self._is_complete = False

    def diagnostics(self, wanted: str | None = None) -> list[Diagnostic]:
        """Return the diagnostics that meet a display filter. Raises KiebitzError."""
        with self._opened() as session:
            return [*session.diagnostics(wanted)]

    def events(self, wanted: str | None = None, as_player: str | None = None) -> list[Event]:
        """Return the events that meet a filter, or those that a player could know of. Raises KiebitzError."""
        with self._opened() as session:
            return [*session.events(wanted, as_player)]

    def messages(self, wanted: str | None = None) -> list[Message]:
        """Return the messages that meet a display filter. Raises KiebitzError."""
        with self._opened() as session:
            return [*session.messages(wanted)]

    def state(self, at: str = "end", as_player: str | None = None) -> list[Table]:
        """Return each table's state at a position, as in "12.5s" or "#7". Raises KiebitzError."""
        with self._opened() as session:
            return [*session.state(at, as_player)]

    @contextmanager
    def _opened(self) -> Iterator[Session]:
        import kiebitz

        if not self._is_complete:
            self._wait_until_quiet()
        with kiebitz.open(str(self.database)) as session:
            yield session

    def _wait_until_quiet(self) -> None:
        end = time.monotonic() + _MAX_QUIET_WAIT_S
        latest, changed = self._stamp(), time.monotonic()
        while time.monotonic() < min(changed + _QUIET_S, end):
            time.sleep(0.05)
            if (stamp := self._stamp()) != latest:
                latest, changed = stamp, time.monotonic()

    def _stamp(self) -> list[tuple[int, int]]:
        """Return what changes with every commit: sizes and times of the database's files."""
        files = (self.database, Path(f"{self.database}-wal"))
        found = [file.stat() for file in files if file.exists()]
        return [(each.st_size, each.st_mtime_ns) for each in found]

    def _complete(self) -> None:
        self._is_complete = True


class Kiebitz:
    """The value of the fixture `kiebitz`: starts relays that end with the test."""

    def __init__(self, folder: Path, recordings: list[Path]) -> None:
        self._folder = folder
        self._recordings = recordings

    @contextmanager
    def relay(
        self, server_port: int, protocol: str | Path | None = None, host: str = _HOST
    ) -> Iterator[RelayedSession]:
        """Relay clients to a server, and record the traffic in a database in `tmp_path`.

        Args:
            server_port: Port of the server under test. It need not listen yet.
            protocol: Name of a protocol, or the path of a protocol file. None to recognise the protocol from
                the traffic, over TCP.
            host: Address of the server.

        Yields:
            The session; clients connect to its `port`. Its queries are complete after the `with` statement.

        Raises:
            KiebitzError: There is no such protocol, or its file is invalid.
            RelayError: The relay cannot be started.
        """
        transport = "tcp"
        options: list[str] = []
        if protocol is not None:
            dissector, options = _decoding(protocol)
            transport = dissector.transport
            options += ["-d", f"{transport}.port=={server_port},{dissector.protocol}"]
        database = self._folder / f"kiebitz-{len(self._recordings) + 1}.db"
        session = RelayedSession(_free_port(transport), database)
        self._recordings.append(session.database)
        mode = f"reverse:{transport}://{host}:{server_port}@{_HOST}:{session.port}"
        command = [sys.executable, "-m", "kiebitz", "relay", "-q", "-m", mode, "-w", str(session.database)]
        with _running([*command, *options]):
            yield session
        session._complete()


def _decoding(protocol: str | Path) -> tuple[Dissector, list[str]]:
    """Return a protocol, and the options that make a command know it."""
    from kiebitz.dissectors.errors import KiebitzError
    from kiebitz.dissectors.registry import dissector_of
    from kiebitz.services.decode_as import unknown_protocol
    from kiebitz.services.protocol_files import add_protocol_files

    is_file = isinstance(protocol, Path) or protocol.endswith(".toml")
    name = add_protocol_files([protocol], replaces=True).pop() if is_file else str(protocol)
    dissector = dissector_of(name)
    if dissector is None:
        raise KiebitzError(unknown_protocol(name))
    return dissector, ["-P", str(protocol)] if is_file else []


def _free_port(transport: str) -> int:
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind((_HOST, 0))
        port: int = sock.getsockname()[1]
    return port


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    """Run a relay until the end of the `with` statement; it has recorded everything then."""
    relay = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines: list[str] = []
    is_ready = threading.Event()
    reader = threading.Thread(target=_read, args=(relay, lines, is_ready), daemon=True)
    reader.start()
    try:
        if not is_ready.wait(_START_TIMEOUT_S) or relay.poll() is not None:
            raise RelayError(f"the relay does not start: {' '.join(lines) or ' '.join(command)}")
        yield
    finally:
        relay.send_signal(signal.SIGINT)
        try:
            relay.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            relay.kill()
            relay.wait()
        reader.join()


def _read(relay: subprocess.Popen[str], lines: list[str], is_ready: threading.Event) -> None:
    assert relay.stderr is not None
    with relay.stderr:
        for line in relay.stderr:
            lines.append(line.strip())
            if "listening on" in line:
                is_ready.set()
    # Its end is no reason to wait, either.
    is_ready.set()


@pytest.fixture(name="kiebitz")
def _kiebitz(request: pytest.FixtureRequest, tmp_path: Path) -> Kiebitz:
    """Relays between the clients and the server of a test, with everything recorded."""
    return Kiebitz(tmp_path, request.node.stash.setdefault(_RECORDINGS, []))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the recordings of a failed test in its report."""
    report = yield
    if report.when == "call" and report.failed:
        for database in item.stash.get(_RECORDINGS, []):
            commands = (f"kiebitz {command} {database}" for command in ("check", "messages", "watch"))
            report.sections.append(("kiebitz: recorded traffic", "\n".join(commands)))
    return report
