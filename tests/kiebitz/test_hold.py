"""Messages held by a real relay: decisions by the control socket, on the page and on the terminal."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from altering_relay import Line, Relay, relaying
from held_messages import Follower
from processes_and_rows import PATIENCE_S, free_port, rows, until
from screens import Filled
from served_pages import Serving, post, serving
from strength import every

from kiebitz.services.alteration.control_server import ControlError

QUICK_S = 20.0
REGISTER = ("--hold", 'msg == "REGISTER"')
SECOND = ("--hold", 'msg == "REGISTER" [2nd]')


class Held(NamedTuple):
    """A client, a server and a relay between them, and a follower of what it holds."""

    line: Line
    relay: Relay
    follower: Follower
    database: Path

    def waits(self, *names: str) -> list[int]:
        """Wait until these wait; their numbers."""

        def waiting() -> list[str]:
            return [message.name for message in self.follower.held.messages] if self.follower.held else []

        until(lambda: waiting() == [*names], f"{names} wait", QUICK_S)
        assert self.follower.held is not None
        return [message.number for message in self.follower.held.messages]

    def says(self, data: bytes, *names: str) -> int:
        """Let the client say something; the number of the message that waits first then."""
        self.line.say("c2s", data)
        return self.waits(*names)[0] if names else 0

    def hears(self, *data: bytes) -> None:
        """Check the data that the server receives."""
        self.line.hear("c2s", data)
        assert b"".join(self.line.got["c2s"]) == b"".join(data)
        self.line.got["c2s"].clear()


@contextmanager
def holding(folder: Path, *options: str, protocol: str = "maexchen") -> Iterator[Held]:
    line, database = Line(protocol), folder / "game.db"
    with relaying([line], database, *options) as relay, Follower(lambda: (str(database), 1)) as follower:
        line.connect()
        until(lambda: follower.held is not None, "the relay can hold", QUICK_S)
        yield Held(line, relay, follower, database)


def test_a_message_is_held_until_a_decision(tmp_path: Path) -> None:
    with holding(tmp_path, *REGISTER) as held:
        number = held.says(b"REGISTER;alice", "REGISTER")
        assert held.follower.held is not None
        (message,) = held.follower.held.messages
        assert (message.stream, message.direction, message.fields) == (1, "c2s", {"name": "alice"})
        assert "REGISTER" in message.rule
        held.line.hears_nothing("c2s")
        held.follower.act("let-go", number)
        held.hears(b"REGISTER;alice")
        held.waits()
        # What does not meet the filter does not wait.
        held.line.say("s2c", b"REGISTERED")
        held.line.hear("s2c", [b"REGISTERED"])
        # Another one, with other values; before that it is refused once.
        number = held.says(b"REGISTER;alice", "REGISTER")
        with pytest.raises(ControlError, match="did you mean name"):
            held.follower.act("change", number, "nam=bob")
        held.follower.act("change", number, "name=bob")
        held.hears(b"REGISTER;bob")
        # The sender is answered in the server's name, and then it goes nowhere.
        number = held.says(b"REGISTER;carl", "REGISTER")
        held.follower.act("answer", number, "REJECTED")
        held.line.hear("s2c", [b"REJECTED"])
        assert held.line.got["s2c"] == [b"REGISTERED", b"REJECTED"]
        assert held.waits("REGISTER") == [number]
        held.follower.act("drop", number)
        held.waits()
        with pytest.raises(ControlError, match="is no longer held"):
            held.follower.act("drop", number)
        # All at once.
        held.says(b"REGISTER;dora")
        held.says(b"REGISTER;eve", "REGISTER", "REGISTER")
        held.follower.act("drop-all")
        held.waits()
        held.line.hears_nothing("c2s")


@pytest.mark.full
def test_a_held_message_holds_its_successors(tmp_path: Path) -> None:
    said = [b"REGISTER;alice", b"REGISTER;bob", b"REGISTER;carl"]
    with holding(tmp_path, "--hold", 'msg == "REGISTER" [first 2]') as held:
        for data in said:
            held.says(data)
        held.waits("REGISTER", "REGISTER")
        held.line.hears_nothing("c2s")
        held.follower.act("let-all-go")
        held.hears(*said)


@pytest.mark.full
def test_over_a_byte_stream(tmp_path: Path) -> None:
    with holding(tmp_path, "--hold", 'msg == "LOGI"', protocol="okey") as held:
        number = held.says(b"LOGI alice\nPING\n", "LOGI")
        held.line.hears_nothing("c2s")
        held.follower.act("change", number, "nickname=bob")
        held.hears(b"LOGI bob\nPING\n")


@pytest.mark.full
@pytest.mark.parametrize(
    ("at_end", "is_passed_on"), every(3, [("forward", True), ("let-go", True), ("drop", False)])
)
def test_held_messages_when_the_relay_ends(at_end: str, is_passed_on: bool, tmp_path: Path) -> None:
    with holding(tmp_path, *REGISTER, "--held-at-exit", at_end) as held:
        held.says(b"REGISTER;alice", "REGISTER")
        held.relay.end()
        until(lambda: held.follower.held is None, "nothing is held any more", QUICK_S)
        if is_passed_on:
            held.hears(b"REGISTER;alice")
        else:
            held.line.hears_nothing("c2s")
    # But for what the relay said, nothing else is next to the database.
    assert {path.name for path in tmp_path.iterdir()} == {"game.db", "game.err"}


@pytest.mark.full
def test_a_relay_without_it_has_no_socket(tmp_path: Path) -> None:
    with relaying([Line("maexchen")], tmp_path / "game.db", "--drop", 'msg == "REGISTER"'):
        assert not [*tmp_path.glob(".game.db-spool-*/hands")]


@pytest.mark.full
def test_a_relay_that_is_killed(tmp_path: Path) -> None:
    with holding(tmp_path, *REGISTER) as held:
        number = held.says(b"REGISTER;alice", "REGISTER")
        os.killpg(held.relay.process.pid, signal.SIGKILL)
        held.relay.process.wait(PATIENCE_S)
        until(lambda: held.follower.held is None, "nothing is held any more", QUICK_S)
        with pytest.raises(ControlError, match="the relay has ended"):
            held.follower.act("let-go", number)


def alice_is_recorded(held: Held) -> None:
    held.says(b"REGISTER;alice")
    held.hears(b"REGISTER;alice")
    held.line.say("s2c", b"REGISTERED")
    until(lambda: bool(rows(held.database, "SELECT 1 FROM events")), "it is recorded", QUICK_S)


@pytest.mark.full
def test_the_page_decides(tmp_path: Path) -> None:
    with holding(tmp_path, *SECOND) as held:
        alice_is_recorded(held)
        with serving(str(held.database)) as page:
            held.says(b"REGISTER;bob")
            message = _told(page)
            assert (message["name"], message["sender"]) == ("REGISTER", "bob")
            deed = {"do": "change", "number": message["number"], "values": {"name": "carl"}}
            assert post(page, deed).status == 200
            held.hears(b"REGISTER;carl")


def _told(page: Serving) -> dict[str, object]:
    until(lambda: bool(page.well("api/held")["messages"]), "something waits", QUICK_S)
    message: dict[str, object] = page.well("api/held")["messages"][0]
    return message


@pytest.mark.full
def test_the_terminal_decides(tmp_path: Path) -> None:
    with holding(tmp_path, *SECOND) as held:
        alice_is_recorded(held)
        with Filled("watch", str(held.database)) as watch:
            watch.until("alice is registered")
            held.says(b"REGISTER;bob")
            watch.until("held: REGISTER from bob to the server")
            watch.type(b"h")
            watch.until("held 1/1")
            watch.type(b"e")
            watch.until("Enter forwards it")
            watch.type(b"by\r")
            held.hears(b"REGISTER;bobby")
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
