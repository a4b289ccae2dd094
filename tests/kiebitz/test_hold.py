from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest
from held_messages import Follower
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, until
from screens import Filled
from served_pages import Serving, post, serving
from strength import every

from kiebitz.services.alteration.control_server import ControlError

QUICK_S = 20.0


class Talk:
    """A client, a server, and a relay between them that holds what meets a filter."""

    def __init__(self, database: Path, *options: str, transport: str = "udp") -> None:
        self.database = database
        self.is_stream = transport == "tcp"
        kind = socket.SOCK_STREAM if self.is_stream else socket.SOCK_DGRAM
        self._listener = socket.socket(socket.AF_INET, kind)
        self._listener.bind(("127.0.0.1", 0))
        port = free_port("tcp" if self.is_stream else "udp")
        self.mode = f"reverse:{transport}://127.0.0.1:{self._listener.getsockname()[1]}@{port}"
        self.relay = subprocess.Popen(
            [*KIEBITZ, "relay", "-q", "-m", self.mode, "-w", str(database), *options],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.relay.stderr is not None
        assert "listening on" in self.relay.stderr.readline()
        self.client = socket.socket(socket.AF_INET, kind)
        self.server = self._listener
        if self.is_stream:
            self._listener.listen()
        self.client.connect(("127.0.0.1", port))
        if self.is_stream:
            self.server, _ = self._listener.accept()
        self._peer: tuple[str, int] | None = None
        for each in (self.client, self.server):
            each.settimeout(QUICK_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        assert self.relay.stderr is not None
        self.relay.stderr.close()
        for each in (self.client, self.server, self._listener):
            each.close()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the relay."""
        self.relay.send_signal(how)
        self.relay.wait(PATIENCE_S)

    def says(self, data: bytes) -> None:
        self.client.send(data)

    def hears(self) -> bytes:
        data, peer = self.server.recvfrom(65_536)
        self._peer = peer or self._peer
        return data

    def answers(self, data: bytes) -> None:
        if self.is_stream:
            self.server.sendall(data)
        else:
            assert self._peer is not None
            self.server.sendto(data, self._peer)

    def hears_nothing(self) -> None:
        self.server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            self.server.recvfrom(65_536)
        self.server.settimeout(QUICK_S)


@contextmanager
def following(talk: Talk) -> Iterator[Follower]:
    with Follower(lambda: (str(talk.database), 1)) as client:
        until(lambda: client.held is not None, "the relay can hold", QUICK_S)
        yield client


def waits(client: Follower, *names: str) -> list[int]:
    """Wait until these wait; their numbers."""

    def waiting() -> list[str]:
        return [message.name for message in client.held.messages] if client.held is not None else []

    until(lambda: waiting() == [*names], f"{names} wait", QUICK_S)
    assert client.held is not None
    return [message.number for message in client.held.messages]


def test_a_message_is_held_until_a_decision(tmp_path: Path) -> None:
    with Talk(tmp_path / "game.db", "--hold", 'msg == "REGISTER"') as talk, following(talk) as client:
        talk.says(b"REGISTER;alice")
        (number,) = waits(client, "REGISTER")
        assert client.held is not None
        (message,) = client.held.messages
        assert (message.stream, message.direction, message.fields) == (1, "c2s", {"name": "alice"})
        assert "REGISTER" in message.rule
        talk.hears_nothing()
        client.act("let-go", number)
        assert talk.hears() == b"REGISTER;alice"
        waits(client)
        # What does not meet the filter does not wait.
        talk.answers(b"REGISTERED")
        assert talk.client.recv(1000) == b"REGISTERED"
        # Another one, with other values; before that it is refused once.
        talk.says(b"REGISTER;alice")
        (number,) = waits(client, "REGISTER")
        with pytest.raises(ControlError, match="did you mean name"):
            client.act("change", number, "nam=bob")
        client.act("change", number, "name=bob")
        assert talk.hears() == b"REGISTER;bob"
        # The sender is answered in the server's name, and then it goes nowhere.
        talk.says(b"REGISTER;carl")
        (number,) = waits(client, "REGISTER")
        client.act("answer", number, "REJECTED")
        assert talk.client.recv(1000) == b"REJECTED"
        assert waits(client, "REGISTER") == [number]
        client.act("drop", number)
        waits(client)
        talk.hears_nothing()
        with pytest.raises(ControlError, match="is no longer held"):
            client.act("drop", number)


@pytest.mark.full
def test_a_held_message_holds_its_successors(tmp_path: Path) -> None:
    with (
        Talk(tmp_path / "game.db", "--hold", 'msg == "REGISTER" [first 2]') as talk,
        following(talk) as client,
    ):
        for name in (b"alice", b"bob", b"carl"):
            talk.says(b"REGISTER;" + name)
        waits(client, "REGISTER", "REGISTER")
        talk.hears_nothing()
        client.act("let-all-go")
        assert [talk.hears() for _ in range(3)] == [b"REGISTER;alice", b"REGISTER;bob", b"REGISTER;carl"]


@pytest.mark.full
def test_over_a_byte_stream(tmp_path: Path) -> None:
    options = ("--hold", 'msg == "LOGI"')
    with Talk(tmp_path / "game.db", *options, transport="tcp") as talk, following(talk) as client:
        # Before a whole message has come it is not known what is spoken, and bytes pass.
        talk.says(b"NAME x\n")
        assert talk.hears() == b"NAME x\n"
        talk.says(b"LOGI alice\nPING\n")
        (number,) = waits(client, "LOGI")
        talk.hears_nothing()
        client.act("change", number, "nickname=bob")
        data = b""
        while data.count(b"\n") < 2:
            data += talk.hears()
        assert data == b"LOGI bob\nPING\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("at_end", "is_passed_on"), every(3, [("forward", True), ("let-go", True), ("drop", False)])
)
def test_held_messages_when_the_relay_ends(at_end: str, is_passed_on: bool, tmp_path: Path) -> None:
    options = ("--hold", 'msg == "REGISTER"', "--held-at-exit", at_end)
    with Talk(tmp_path / "game.db", *options) as talk:
        with following(talk) as client:
            talk.says(b"REGISTER;alice")
            waits(client, "REGISTER")
            talk.end()
            until(lambda: client.held is None, "nothing is held any more", QUICK_S)
        if is_passed_on:
            assert talk.hears() == b"REGISTER;alice"
        else:
            talk.hears_nothing()
    # Nothing else is next to the database.
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]


@pytest.mark.full
def test_a_relay_without_it_has_no_socket(tmp_path: Path) -> None:
    with Talk(tmp_path / "game.db", "--drop", 'msg == "REGISTER"') as talk:
        assert not [*tmp_path.glob(".game.db-spool-*/hands")]
        talk.says(b"REGISTER;alice")
        talk.hears_nothing()


@pytest.mark.full
def test_a_relay_that_is_killed(tmp_path: Path) -> None:
    with Talk(tmp_path / "game.db", "--hold", 'msg == "REGISTER"') as talk, following(talk) as client:
        talk.says(b"REGISTER;alice")
        (number,) = waits(client, "REGISTER")
        os.killpg(talk.relay.pid, signal.SIGKILL)
        talk.relay.wait(PATIENCE_S)
        until(lambda: client.held is None, "nothing is held any more", QUICK_S)
        with pytest.raises(ControlError, match="the relay has ended"):
            client.act("let-go", number)


def alice_is_recorded(talk: Talk) -> None:
    talk.says(b"REGISTER;alice")
    assert talk.hears() == b"REGISTER;alice"
    talk.answers(b"REGISTERED")
    until(lambda: bool(rows(talk.database, "SELECT 1 FROM events")), "it is recorded", QUICK_S)


@pytest.mark.full
def test_the_page_decides(tmp_path: Path) -> None:
    with Talk(tmp_path / "game.db", "--hold", 'msg == "REGISTER" [2nd]') as talk:
        alice_is_recorded(talk)
        with serving(str(talk.database)) as page:
            talk.says(b"REGISTER;bob")
            message = _told(page)
            assert (message["name"], message["sender"]) == ("REGISTER", "bob")
            deed = {"do": "change", "number": message["number"], "values": {"name": "carl"}}
            assert post(page, deed).status == 200
            assert talk.hears() == b"REGISTER;carl"


def _told(page: Serving) -> dict[str, object]:
    until(lambda: bool(page.well("api/held")["messages"]), "something waits", QUICK_S)
    message: dict[str, object] = page.well("api/held")["messages"][0]
    return message


@pytest.mark.full
def test_the_terminal_decides(tmp_path: Path) -> None:
    with Talk(tmp_path / "game.db", "--hold", 'msg == "REGISTER" [2nd]') as talk:
        alice_is_recorded(talk)
        with Filled("watch", str(talk.database)) as watch:
            watch.until("alice is registered")
            talk.says(b"REGISTER;bob")
            watch.until("held: REGISTER from bob to the server")
            watch.type(b"h")
            watch.until("held 1/1")
            watch.type(b"e")
            watch.until("Enter forwards it")
            watch.type(b"by\r")
            assert talk.hears() == b"REGISTER;bobby"
            watch.until("the edited message was forwarded")
            watch.type(b"q")
            assert watch.ended() == 0
            assert watch.is_as_it_was()


@pytest.mark.full
def test_next_to_the_relay_itself(tmp_path: Path) -> None:
    """`relay --watch --hold`: who watches is the relay's own child."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    server.settimeout(QUICK_S)
    port = free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{port}"
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    options = ("-w", str(tmp_path / "game.db"), "--watch", "--hold", 'msg == "REGISTER"')
    with server, client, Filled("relay", "-m", mode, *options) as watch:
        watch.until("no game yet")
        client.sendto(b"REGISTER;alice", ("127.0.0.1", port))
        watch.until("held: REGISTER from")
        watch.type(b"h\r")
        watch.until("REGISTER was forwarded")
        assert server.recv(1000) == b"REGISTER;alice"
        watch.type(b"q")
        assert watch.ended() == 0
        assert watch.is_as_it_was()
