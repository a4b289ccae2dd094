"""What the tests share in which real sockets speak through a relay that alters: who says what, who gets what.

A conversation is a part of a recorded game, between one client and its server, in lock-step. Each case has a
server of its own, so that one relay carries many cases and each begins at the beginning of a game.
"""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import networks
from altered_message import bytes_of
from command import CAPTURES, kiebitz
from processes_and_rows import KIEBITZ, PATIENCE_S, accept, free_port, rows, until

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Direction, Transport
from kiebitz.proxy.relay.endpoints import endpoint_text
from kiebitz.storage.read.message_queries import messages

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
    found = [row for row in messages(timeline) if row.stream.id == stream][:count]
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
        self._listener = self.listen()
        self.port = free_port(self.transport)
        self.address = self._listener.getsockname()
        self.server = endpoint_text(self.address)
        self.got: dict[Direction, list[bytes]] = {"c2s": [], "s2c": []}
        self._ends: dict[Direction, socket.socket] = {}
        """By what comes from them."""
        self._client: Any = None

    def listen(self) -> socket.socket:
        """Return the socket of the server."""
        kind = socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
        listener = socket.socket(socket.AF_INET, kind)
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(PATIENCE_S)
        if self.transport == "tcp":
            listener.listen()
        return listener

    @property
    def mode(self) -> str | None:
        """Return the relay's mode that passes on to this server alone, if there is one."""
        return f"reverse:{self.transport}://{self.server}@{self.port}"

    @property
    def options(self) -> list[str]:
        """For the relay: pass on to this server, which speaks the protocol."""
        modes = ["-m", self.mode] if self.mode is not None else []
        return [*modes, "-d", f"{self.transport}.port=={self.address[1]},{self.protocol}"]

    def enter(self) -> socket.socket:
        """Return a socket of the client that leads to the server."""
        if self.transport == "udp":
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            client.settimeout(PATIENCE_S)
            client.connect(("127.0.0.1", self.port))
            return client
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def connect(self) -> None:
        """Let the client in."""
        if self.transport == "udp":
            self._ends = {"c2s": self.enter(), "s2c": self._listener}
        else:
            with ThreadPoolExecutor(1) as beside:
                # With TLS both ends must be awake at once.
                accepted = beside.submit(accept, self._listener)
                self._ends = {"c2s": self.enter(), "s2c": accepted.result(PATIENCE_S)}
            for end in self._ends.values():
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def end_of(self, direction: Direction) -> socket.socket:
        """Return the socket from which a direction comes."""
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
        """Return rows of the database that are about this server's streams."""
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
def relaying(
    lines: Sequence[Line], database: Path, *options: str, machine: str | None = None
) -> Iterator[Relay]:
    """A relay between all of them, with these options, on this machine or one of the tests' own.

    What it records is whole after the block.
    """
    modes = [option for line in lines for option in line.options]
    listening = [*modes, *options].count("-m")
    command = [*KIEBITZ, "relay", *modes, "-w", str(database), "--max-connections", "8", "-q", *options]
    with ExitStack() as ending:
        stderr = database.with_suffix(".err")
        process = subprocess.Popen(
            networks.at(machine, *command) if machine is not None else command,
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
            lambda: process.poll() is not None or relay.said.count("listening on") >= listening,
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
    """Return the pieces of bytes that are recorded of each direction of a line."""
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


class Case(NamedTuple):
    """Message number `at` of a protocol's conversation is altered by an option, whose filter is put in.

    Its receiver gets `here` in its place, None if that is what was sent, and its sender gets `back`.
    """

    protocol: str
    at: int
    option: str
    here: tuple[bytes, ...] | None = None
    back: tuple[bytes, ...] = ()

    @property
    def step(self) -> Step:
        return conversation(self.protocol)[self.at]

    def rule(self, line: Line) -> str:
        """How the rule is written, about this message of this line."""
        place = {1: "1st", 2: "2nd", 3: "3rd"}[self.step.place]
        about = (
            f'msg == "{self.step.name}" and dir == "{self.step.direction}"'
            f' and {line.transport} and server == "{line.server}" [{place}]'
        )
        option, *values = shlex.split(self.option)
        return shlex.join((option, about, *values))

    def alteration(self, line: Line) -> Alteration:
        """What is to be recorded of it."""
        direction, sent = self.step.direction, self.step.data
        action = self.option.split()[0].removeprefix("--")
        if self.back:
            return Alteration(OPPOSITE[direction], action, self.rule(line), None, None, self.back[0])
        here = self.here if self.here is not None else (sent,)
        if len(here) > 1:
            return Alteration(direction, action, self.rule(line), None, None, here[1])
        return Alteration(direction, action, self.rule(line), self.step.name, sent, b"".join(here))


def rules_of(cases: Sequence[Case], lines: Sequence[Line]) -> list[str]:
    """Return the options that alter what the cases say, each on its line."""
    return [word for line, case in zip(lines, cases, strict=True) for word in shlex.split(case.rule(line))]


def play_cases(cases: Sequence[Case], lines: Sequence[Line]) -> None:
    """Play each case on its line."""
    for line, case in zip(lines, cases, strict=True):
        line.connect()
        line.play({} if case.here is None else {case.at: case.here}, {case.at: case.back})
        line.hang_up()


def play_all(
    cases: Sequence[Case],
    database: Path,
    *options: str,
    lines: Sequence[Line] | None = None,
) -> Sequence[Line]:
    """Play each case on a line of its own, all through one relay."""
    lines = lines or [Line(case.protocol) for case in cases]
    with relaying(lines, database, *rules_of(cases, lines), *options):
        play_cases(cases, lines)
    return lines


def assert_as_told(cases: Sequence[Case], lines: Sequence[Line], database: Path) -> None:
    """Each side got what the case says; that is recorded, and beside it what had been sent."""
    for case, line in zip(cases, lines, strict=True):
        told: dict[str, list[bytes]] = {"c2s": [], "s2c": []}
        for at, step in enumerate(conversation(case.protocol)):
            is_it = at == case.at
            told[step.direction] += case.here if is_it and case.here is not None else [step.data]
            told[OPPOSITE[step.direction]] += case.back if is_it else ()
        found = recorded(database, line)
        for direction in DIRECTIONS:
            if line.transport == "udp":
                assert line.got[direction] == told[direction] == found[direction], case
            else:
                whole = b"".join(told[direction])
                assert b"".join(line.got[direction]) == whole == b"".join(found[direction]), case
        assert alterations(database, line) == [case.alteration(line)], case
