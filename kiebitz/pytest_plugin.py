"""The pytest plug-in: the fixture `kiebitz` relays and records the traffic of a test.

    def test_a_game(kiebitz):
        with kiebitz.relay(4711, protocol="okey") as session:
            play(port=session.port)
        assert not session.diagnostics('diag.severity == "error"')

pytest loads this module in every run in which Kiebitz is installed, so it imports nothing slow.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kiebitz.dissectors.dissector import Dissector
    from kiebitz.dissectors.model import Transport
    from kiebitz.storage.session.session import Diagnostic, Event, Message, Session, Table

_HOST = "127.0.0.1"

_QUIET_S = 0.5
"""Seconds without a change after which a running recording is complete: twice the time between commits."""

_MAX_QUIET_WAIT_S = 5.0

_RECORDINGS = pytest.StashKey[list[Path]]()


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
            RelayProcessError: The relay cannot be started.
        """
        from kiebitz.services.recording.relay_process import decoding_options, running_relay

        transport: Transport = "tcp"
        options: list[str] = []
        if protocol is not None:
            dissector, file = _protocol(protocol)
            transport = dissector.transport
            options = decoding_options(transport, server_port, dissector.protocol, file)
        database = self._folder / f"kiebitz-{len(self._recordings) + 1}.db"
        self._recordings.append(database)
        with running_relay(transport, host, server_port, str(database), options) as port:
            session = RelayedSession(port, database)
            yield session
        session._complete()


def _protocol(name: str | Path) -> tuple[Dissector, str | None]:
    """Return a protocol, and the path of its file if it is from one. Raises KiebitzError."""
    from kiebitz.dissectors.errors import KiebitzError
    from kiebitz.dissectors.registry import dissector_of
    from kiebitz.services.decode_as import unknown_protocol
    from kiebitz.services.protocol_files import add_protocol_files

    is_file = isinstance(name, Path) or name.endswith(".toml")
    found = add_protocol_files([name], replaces=True).pop() if is_file else str(name)
    dissector = dissector_of(found)
    if dissector is None:
        raise KiebitzError(unknown_protocol(found))
    return dissector, str(name) if is_file else None


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
