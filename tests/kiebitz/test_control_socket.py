"""The control socket of a relay that holds messages: who watches sees what waits, and acts on it."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest
from held_messages import Follower, MadeUp, Relay, held_message, holding
from processes_and_rows import until

from kiebitz.services.alteration import control_server as hands
from kiebitz.services.alteration.control_server import (
    MAX_CLIENTS,
    MAX_LINE_BYTES,
    Act,
    ControlError,
    HeldMessage,
)
from kiebitz.services.supervision.journal_folder import CONTROL_SOCKET, JournalFolder, remove_leftovers

QUICK_S = 10.0


class Wire:
    def __init__(self, relay: Relay, buffer: int | None = None) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        if buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._socket.settimeout(QUICK_S)
        until(lambda: self._connect(relay), "it listens", QUICK_S)
        self._file = self._socket.makefile("rb")

    def _connect(self, relay: Relay) -> bool:
        with suppress(ConnectionRefusedError):
            self._socket.connect(f"{relay.spool.folder}/{CONTROL_SOCKET}")
            return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def hears(self, kind: str) -> dict[str, Any]:
        """Return the next line of a kind; those of others are passed over."""
        while line := self._file.readline():
            said: dict[str, Any] = json.loads(line)
            if said["type"] == kind:
                return said
        raise AssertionError(f"no {kind} came")

    def greets(self) -> bool:
        """True if the relay says anything before it closes the connection."""
        with suppress(OSError):
            return bool(self._file.readline())
        return False

    def sends(self, line: bytes) -> None:
        self._socket.sendall(line)

    def asks(self, **request: Any) -> str | None:
        self.sends(json.dumps(request).encode() + b"\n")
        refusal: str | None = self.hears("reply")["refusal"]
        return refusal

    def is_hung_up(self) -> bool:
        """True if the relay has closed the connection, whatever was not read."""
        poll = select.poll()
        poll.register(self._socket, 0)
        return bool(poll.poll(0))

    def is_dropped(self) -> bool:
        try:
            while self._socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "game.db"
    path.touch()
    return path


@pytest.fixture
def relay(database: Path) -> Iterator[Relay]:
    with holding(database) as made:
        yield made


@contextmanager
def following(database: Path | str, session: int = 1) -> Iterator[Follower]:
    with Follower(lambda: (str(database), session)) as client:
        yield client


def numbers(client: Follower) -> list[int] | None:
    return None if client.held is None else [message.number for message in client.held.messages]


def shows(client: Follower, expected: list[int] | None) -> None:
    until(lambda: numbers(client) == expected, f"{expected} wait", QUICK_S)


# The protocol.


def test_a_follower_receives_held_messages(relay: Relay, database: Path) -> None:
    with Wire(relay) as wire:
        assert wire.hears("hello") == {
            "type": "hello",
            "version": hands.VERSION,
            "database": str(database),
            "session": 1,
        }
        assert wire.hears("waiting")["held"] == []
        message = held_message(7)
        relay.hold(message)
        told = wire.hears("waiting")
        assert told["more"] == 0
        assert told["now_ns"] >= message.since_ns
        (held,) = told["held"]
        assert base64.b64decode(held.pop("data")) == message.data
        assert held == {
            "number": 7,
            "stream": 1,
            "direction": "c2s",
            "client": "127.0.0.1:40000",
            "server": "127.0.0.1:9000",
            "who": "alice",
            "protocol": "maexchen",
            "name": "ANNOUNCE",
            "fields": {"dice": "4,2", "token": "token"},
            "since_ns": message.since_ns,
            "rule": "--hold 'msg == \"ANNOUNCE\"'",
            "bears_ns": 250_000_000,
            "is_whole": True,
        }


REFUSED: list[tuple[bytes, str]] = [
    (b'{"id":1,"do":"let-go","number":9}', "message 9 is no longer held"),
    (b'{"id":1,"do":"drop"}', "drop needs the number of a message"),
    (b'{"id":1,"do":"change","number":1,"text":"dice=9,9"}', "dice=9,9 does not fit"),
    (b'{"id":1,"do":"change","number":1,"text":"dise=2,1"}', "did you mean dice?"),
    (b'{"id":1,"do":"answer","number":1,"text":"REJETED"}', "did you mean REJECTED?"),
    (b'{"id":1,"do":"format-disk"}', "invalid request: "),
    (b'{"id":1,"do":"drop","number":"1"}', "invalid request: "),
    (b'{"id":1,"do":"drop","number":1,"more":1}', "invalid request: "),
    (b"[" * 100_000, "invalid request: "),
    (b"\0\xff", "invalid request: "),
    (b"", "invalid request: "),
]


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_impossible_requests_raise_an_error(line: bytes, words: str, relay: Relay) -> None:
    relay.hold(held_message(1))
    with Wire(relay) as wire:
        wire.sends(line + b"\n")
        assert words in wire.hears("reply")["refusal"]
        # And the connection is as good as before.
        assert wire.asks(id=2, do="let-go", number=1) is None
    assert relay.engine.done == [("let go", 1)]


def test_a_fault_of_the_engine_is_a_sentence(database: Path) -> None:
    class Faulty(MadeUp):
        def act(self, do: Act, number: int, text: str) -> None:
            if do == "let-go":
                raise ZeroDivisionError("oh")
            super().act(do, number, text)

    with holding(database, engine=Faulty()) as relay, Wire(relay) as wire:
        relay.hold(held_message(1))
        assert "internal error of Kiebitz" in (wire.asks(id=1, do="let-go", number=1) or "")
        assert wire.asks(id=2, do="drop", number=1) is None


def test_a_line_without_an_end_ends_it(relay: Relay) -> None:
    with Wire(relay) as wire, Wire(relay) as other:
        with suppress(OSError):
            wire.sends(b"x" * (3 * MAX_LINE_BYTES))
        assert wire.is_dropped()
        assert other.asks(id=1, do="let-all-go") is None


def test_a_client_that_does_not_read_is_dropped(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "CLIENT_TIMEOUT_S", 0.2)
    relay.hold(*(held_message(number, b"REGISTER;" + b"a" * 10_000) for number in range(1, 9)))
    with Wire(relay, 4096) as lazy, Wire(relay) as wire:
        lazy.hears("hello")
        numbers = iter(range(9, 200))

        def is_dropped() -> bool:
            relay.hold(held_message(next(numbers)))
            wire.hears("waiting")
            assert wire.asks(id=1, do="drop", number=999) is not None
            return lazy.is_hung_up()

        until(is_dropped, "who does not read is dropped", QUICK_S)


def test_there_are_only_so_many_at_once(relay: Relay) -> None:
    def is_let_in() -> bool:
        with Wire(relay) as late:
            return late.greets()

    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(relay)) for _ in range(MAX_CLIENTS)]
        for wire in wires:
            wire.hears("hello")
        assert not is_let_in()
        wires[0].__exit__()
        until(is_let_in, "one has gone", QUICK_S)


def test_many_and_large_messages_fit_into_a_line(relay: Relay) -> None:
    large = held_message(1, b"REGISTER;" + b"a" * 60_000)
    huge = held_message(2, b"REGISTER;" + b"a" * 900_000)
    relay.hold(large, huge, *(held_message(number) for number in range(3, 2000)))
    with Wire(relay) as wire:
        told = wire.hears("waiting")
        while len(told["held"]) + told["more"] < 1999:
            told = wire.hears("waiting")
        assert len(json.dumps(told)) < 2 * MAX_LINE_BYTES
        first, second, third = told["held"][:3]
        # The bytes of the one, bytes and fields of the other.
        assert (first["data"], first["is_whole"]) == ("", False)
        assert len(first["fields"]["name"]) == 60_000
        assert (second["data"], second["fields"], second["is_whole"]) == ("", {}, False)
        assert third["is_whole"]
        assert wire.asks(id=1, do="let-go", number=1999) is None


# Who follows it.


def test_several_see_the_same_and_only_one_acts(relay: Relay, database: Path) -> None:
    with following(database) as one, following(database) as other:
        shows(one, [])
        shows(other, [])
        relay.hold(held_message(1), held_message(2))
        shows(one, [1, 2])
        shows(other, [1, 2])
        assert one.held is not None
        assert not isinstance(one.held.messages[0].fields, HeldMessage)
        one.act("let-go", 1)
        # Who asked sees it done at once.
        assert numbers(one) == [2]
        with pytest.raises(ControlError, match="message 1 is no longer held"):
            other.act("drop", 1)
        shows(one, [2])
        shows(other, [2])
        with pytest.raises(ControlError, match="dice=9,9 does not fit"):
            one.act("change", 2, "dice=9,9")
        one.act("change", 2, "dice=2,1")
        assert relay.engine.done == [("let go", 1), ("change", 2, b"ANNOUNCE;2,1;token")]


def test_two_at_the_same_moment(relay: Relay, database: Path) -> None:
    """For each message one client wins, the other receives an error."""
    relay.hold(*(held_message(number) for number in range(1, 51)))
    with following(database) as one, following(database) as other:
        shows(one, [*range(1, 51)])
        shows(other, [*range(1, 51)])
        lost: list[int] = []

        def act(client: Follower) -> None:
            for number in range(1, 51):
                try:
                    client.act("let-go", number)
                except ControlError:
                    lost.append(number)

        threads = [threading.Thread(target=act, args=(client,)) for client in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(QUICK_S)
        assert sorted(lost) == [*range(1, 51)]
        assert len(relay.engine.done) == 50


def test_how_long_it_has_waited(relay: Relay, database: Path) -> None:
    relay.hold(held_message(1, waited_s=3.0), held_message(2, waited_s=3.0, bears_ns=None), held_message(3))
    with following(database) as client:
        shows(client, [1, 2, 3])
        held = client.held
        assert held is not None
        first, second, third = held.messages
        assert 3e9 <= held.waited_ns(first) < 60e9
        assert held.is_overdue(first)
        assert not held.is_overdue(second)
        until(lambda: held.is_overdue(third), "it has waited too long", QUICK_S)


def test_a_relay_that_ends_and_another_that_begins(database: Path) -> None:
    with following(database) as client:
        with holding(database) as relay:
            relay.hold(held_message(1))
            shows(client, [1])
            relay.end()
            shows(client, None)
            with pytest.raises(ControlError, match="the relay has ended"):
                client.act("drop", 1)
        with holding(database) as relay:
            shows(client, [])
            relay.hold(held_message(5))
            shows(client, [5])


def test_it_is_that_session_s_alone(relay: Relay, database: Path, tmp_path: Path) -> None:
    relay.hold(held_message(1))
    other = tmp_path / "other.db"
    other.touch()
    with following(database) as client, following(database, 2) as earlier, following(other) as elsewhere:
        shows(client, [1])
        assert numbers(earlier) is None
        assert numbers(elsewhere) is None


def test_a_database_that_carries_on_another(tmp_path: Path) -> None:
    first, second = (tmp_path / f"game_0000{number}_20261122074829.db" for number in (1, 2))
    first.touch()
    second.touch()
    recorded = [f"{first}:1"]
    spool = JournalFolder(tmp_path / "game.db")
    relay = Relay(MadeUp(), spool, lambda: recorded[-1])
    relay.begin()
    place = [(str(first), 1)]
    try:
        with Follower(lambda: place[-1]) as client:
            shows(client, [])
            recorded.append(f"{second}:2")
            place.append((str(second), 2))
            relay.hold(held_message(1))
            shows(client, [1])
    finally:
        relay.end()
        spool.discard()


# Where it is.


def test_a_path_of_any_length(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    database = folder / "game.db"
    database.touch()
    with holding(database) as relay, following(database) as client:
        relay.hold(held_message(1))
        shows(client, [1])
        client.act("let-go", 1)
        folder_of_relay = relay.spool.folder
    assert not folder_of_relay.exists()


def test_nothing_is_left_behind(database: Path) -> None:
    with holding(database) as relay:
        assert (relay.spool.folder / CONTROL_SOCKET).is_socket()
        assert (relay.spool.folder / CONTROL_SOCKET).stat().st_mode & 0o777 == 0o600
    assert [*database.parent.iterdir()] == [database]


def test_files_of_a_killed_relay_are_tidied(database: Path) -> None:
    folder = JournalFolder(database).folder
    # As after a kill: no process holds it, and the socket file remains.
    left = database.parent / f"{folder.name}x"
    folder.rename(left)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(left / CONTROL_SOCKET))
    with following(database) as client:
        assert numbers(client) is None
    os.chmod(left, 0o700)
    _let_go(left)
    remove_leftovers(database)
    assert not left.exists()


def _let_go(folder: Path) -> None:
    """Close the descriptors by which this process holds a folder."""
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}") == str(folder):
                os.close(int(descriptor))


def link_to(path: Path) -> None:
    """Put a link in the place of a file or folder, which goes elsewhere."""
    there = path.parent / "elsewhere"
    path.rename(there)
    path.symlink_to(there)


def replace_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
SPOILT: dict[str, Callable[[Path], object]] = {
    "open to all": lambda folder: folder.chmod(0o755),
    "another user's": lambda folder: os.chown(folder, 12345, 12345),
    "with another user's socket": lambda folder: os.chown(folder / CONTROL_SOCKET, 12345, 12345),
    "a link": link_to,
    "with a link to a socket": lambda folder: link_to(folder / CONTROL_SOCKET),
    "with a pipe": lambda folder: replace_by_a_pipe(folder / CONTROL_SOCKET),
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=AS_ROOT if "another" in kind else ()) for kind in SPOILT]
)
def test_shared_folders_are_not_entered(kind: str, database: Path) -> None:
    spool = JournalFolder(database)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(spool.folder / CONTROL_SOCKET))
        listener.listen()
        listener.settimeout(QUICK_S)
        with following(database):
            listener.accept()[0].close()
        SPOILT[kind](spool.folder)
        listener.settimeout(1.0)
        with following(database) as client:
            with pytest.raises(TimeoutError):
                listener.accept()
            assert numbers(client) is None
    spool.discard()
