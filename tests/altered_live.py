"""What the tests share in which real sockets speak through a relay that alters: who says what, who gets what.

A conversation is a part of a recorded game, between one client and its server, in lock-step. Each case has a
server of its own, so that one relay carries many cases and each begins at the beginning of a game.
"""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from command import CAPTURES, kiebitz
from live import KIEBITZ, PATIENCE_S, accept, free_port, rows, until
from passed_on import bytes_of

from kiebitz.cli.sessions import open_session
from kiebitz.dissectors.records import DIRECTIONS, OPPOSITE, Direction, Transport
from kiebitz.storage.traffic import messages

CONVERSATIONS = {
    "maexchen": ("maexchen-head-tiny.pcap", 3, 11),
    "schafkopf": ("schafkopf-1.3-1human-tiny.pcap", 1, 16),
    "catan": ("catan-yaks-lobby.pcap.gz", 1, 12),
    "okey": ("okey-head-tiny.pcap.gz", 1, 13),
    "cgml": ("cgml-tiny.pcap.gz", 4, 13),
}
"""Capture, stream, and how many messages."""


class Step(NamedTuple):
    """A message, when it was said, and its place among those of its name that go this way, from 1 on."""

    direction: Direction
    data: bytes
    name: str
    ts_ns: int
    place: int


@cache
def conversation(protocol: str) -> list[Step]:
    """What the recorded peers said to each other, message by message."""
    capture, stream, count = CONVERSATIONS[protocol]
    timeline = open_session(str(CAPTURES / capture))
    found = [row for row in messages(timeline) if row.stream_id == stream][:count]
    steps: list[Step] = []
    for row in found:
        place = 1 + sum((row.direction, row.name) == (step.direction, step.name) for step in steps)
        steps.append(Step(row.direction, bytes_of(timeline, row), row.name, row.ts_ns, place))
    timeline.connection.close()
    return steps


def transport_of(protocol: str) -> Transport:
    return "udp" if protocol == "maexchen" else "tcp"


class Line:
    """A client and its server, who have a relay between them; `got` is what has come in each direction."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.transport = transport_of(protocol)
        kind = socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
        self._listener = socket.socket(socket.AF_INET, kind)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_S)
        if self.transport == "tcp":
            self._listener.listen()
        self.port = free_port(self.transport)
        self.server = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.got: dict[Direction, list[bytes]] = {"c2s": [], "s2c": []}
        self._ends: dict[Direction, socket.socket] = {}
        """By what comes from them."""
        self._client: Any = None

    @property
    def options(self) -> list[str]:
        """For the relay: pass on to this server, which speaks the protocol."""
        mode = f"reverse:{self.transport}://{self.server}@{self.port}"
        return ["-m", mode, "-d", f"{self.transport}.port=={self.server.rsplit(':')[-1]},{self.protocol}"]

    def connect(self) -> None:
        """Let the client in."""
        if self.transport == "udp":
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            client.settimeout(PATIENCE_S)
            client.connect(("127.0.0.1", self.port))
            self._ends = {"c2s": client, "s2c": self._listener}
        else:
            client = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            self._ends = {"c2s": client, "s2c": accept(self._listener)}
            for end in self._ends.values():
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def end_of(self, direction: Direction) -> socket.socket:
        """The socket from which a direction comes."""
        return self._ends[direction]

    def say(self, direction: Direction, data: bytes) -> None:
        """Send bytes; the server does so to whoever spoke to it last."""
        if self.transport == "tcp":
            self._ends[direction].sendall(data)
        elif direction == "c2s":
            self._ends[direction].send(data)
        else:
            self._ends[direction].sendto(data, self._client)

    def hear(self, direction: Direction, wanted: Sequence[bytes]) -> None:
        """Get what comes in a direction: so many datagrams, or so many bytes."""
        sock = self._ends[OPPOSITE[direction]]
        if self.transport == "udp":
            for _ in wanted:
                data, sender = sock.recvfrom(65_535)
                self._client = sender if direction == "c2s" else self._client
                self.got[direction].append(data)
            return
        length = len(b"".join(wanted))
        data = b""
        while len(data) < length:
            piece = sock.recv(length - len(data))
            if not piece:
                break
            data += piece
        self.got[direction].append(data)

    def play(self, altered: Mapping[int, Sequence[bytes]], back: Mapping[int, Sequence[bytes]]) -> None:
        """Play the whole conversation: one speaks on when the other has heard.

        `altered` is what is to be heard in the place of a message, by its number, `back` what its sender is
        to hear behind it. Over TCP messages that were recorded at once are sent at once.
        """
        steps = list(enumerate(conversation(self.protocol)))
        turns = groupby(steps, lambda pair: (pair[1].ts_ns, pair[1].direction))
        for (_, direction), turn in turns:
            said = [*turn]
            for group in [[one] for one in said] if self.transport == "udp" else [said]:
                self.say(direction, b"".join(step.data for _, step in group))
                for at, step in group:
                    self.hear(direction, altered.get(at, [step.data]))
                for at, _ in group:
                    self.hear(OPPOSITE[direction], back.get(at, ()))

    def hang_up(self) -> None:
        """Say no more, in both directions; over TCP get what may come yet."""
        if self.transport == "tcp":
            for direction in DIRECTIONS:
                self._ends[direction].shutdown(socket.SHUT_WR)
            for direction in DIRECTIONS:
                while data := self._ends[OPPOSITE[direction]].recv(65_536):
                    self.got[direction].append(data)
        self.close()

    def close(self) -> None:
        """Give back the sockets."""
        for end in (*self._ends.values(), self._listener):
            end.close()

    @property
    def where(self) -> str:
        """Rows of the database that are about this server's streams."""
        return f"transport = '{self.transport}' AND server = '{self.server}'"


class Relay:
    """A relay that runs: its process, and what it has said on stderr by now."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self.process = process
        self._stderr = stderr

    @property
    def said(self) -> str:
        return self._stderr.read_text()

    def end(self) -> None:
        """Have it end, which it must do well, without a traceback."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) == 0, self.said
        assert "Traceback" not in self.said, self.said


@contextmanager
def relaying(lines: Sequence[Line], database: Path, *options: str) -> Iterator[Relay]:
    """A relay between all of them, with these options; what it records is whole after the block."""
    modes = [option for line in lines for option in line.options]
    command = [*KIEBITZ, "relay", *modes, "-w", str(database), "--max-connections", "8", "-q", *options]
    with ExitStack() as ending:
        stderr = database.with_suffix(".err")
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=ending.enter_context(stderr.open("wb")),
            start_new_session=True,
        )
        ending.callback(process.wait)
        ending.callback(process.kill)
        relay = Relay(process, stderr)
        for line in lines:
            ending.callback(line.close)
        until(
            lambda: process.poll() is not None or relay.said.count("listening on") == len(lines),
            "the relay listens",
        )
        assert process.poll() is None, relay.said
        yield relay
        if process.poll() is None:
            relay.end()


class Alteration(NamedTuple):
    """A row of the table, but for numbers and times, and the bytes that were passed on."""

    direction: Direction
    action: str
    rule: str
    name: str | None
    original: bytes | None
    passed_on: bytes


def alterations(database: Path, line: Line) -> list[Alteration]:
    """What was done to the messages of a line, in the order in which it was done."""
    found = recorded(database, line)
    query = (
        "SELECT a.direction, a.action, a.rule, a.name, a.original, a.offset, a.length"
        f" FROM alterations a JOIN streams s ON s.id = a.stream_id WHERE {line.where} ORDER BY a.id"
    )
    return [
        Alteration(
            direction, action, rule, name, original, b"".join(found[direction])[offset : offset + length]
        )
        for direction, action, rule, name, original, offset, length in rows(database, query)
    ]


def recorded(database: Path, line: Line) -> dict[Direction, list[bytes]]:
    """The pieces of bytes that are recorded of each direction of a line."""
    found: dict[Direction, list[bytes]] = {"c2s": [], "s2c": []}
    query = (
        "SELECT c.direction, c.data FROM chunks c JOIN streams s ON s.id = c.stream_id"
        f" WHERE {line.where} ORDER BY c.id"
    )
    for direction, data in rows(database, query):
        found[direction].append(data)
    return found


def blamed(database: Path) -> list[str]:
    """What `kiebitz check` says against peers."""
    flaws = kiebitz("check", str(database), "--json").json
    return [f"{flaw['server']}: {flaw['text']}" for flaw in flaws if flaw["severity"] != "note"]
