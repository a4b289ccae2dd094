"""Real sockets that communicate through a relay with alterations.

A conversation is a part of a recorded game, between one client and its server, in lock-step. Each case has a
server of its own, so that one relay carries many cases and each starts with a new game.
"""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import networks
import pytest
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
    """A message with its time, and its number among those of its name and direction, from 1."""

    direction: Direction
    data: bytes
    name: str
    ts_ns: int
    place: int


@cache
def conversation(protocol: str) -> list[Step]:
    """Return the recorded messages."""
    capture, stream, count = CONVERSATIONS[protocol]
    timeline = open_session(str(CAPTURES / capture))
    found = [row for row in messages(timeline) if row.stream.id == stream][:count]
    steps: list[Step] = []
    for row in found:
        place = 1 + sum((row.direction, row.name) == (step.direction, step.name) for step in steps)
        steps.append(Step(row.direction, bytes_of(timeline, row), row.name, row.ts_ns, place))
    timeline.connection.close()
    return steps


def turns(protocol: str) -> list[tuple[Direction, list[tuple[int, Step]]]]:
    """Return what is sent at once, with the numbers of the messages from 0."""
    steps = enumerate(conversation(protocol))
    grouped = groupby(steps, lambda pair: (pair[1].ts_ns, pair[1].direction))
    return [(direction, [*turn]) for (_, direction), turn in grouped]


def transport_of(protocol: str) -> Transport:
    return "udp" if protocol == "maexchen" else "tcp"


class Line:
    """A client and its server with a relay between them; `got` are the bytes received, by direction."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.transport = transport_of(protocol)
        self._listener = self.listen()
        self.port = free_port(self.transport)
        self.address = self._listener.getsockname()
        self.server = endpoint_text(self.address)
        self.got: dict[Direction, list[bytes]] = {"c2s": [], "s2c": []}
        self._ends: dict[Direction, socket.socket] = {}
        """By the direction of the bytes that they send."""
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
        """The relay's mode that forwards to this server alone, if there is one."""
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
        """Send bytes; the server sends them to its latest client."""
        if self.transport == "tcp":
            self._ends[direction].sendall(data)
        elif direction == "c2s":
            self._ends[direction].send(data)
        else:
            self._ends[direction].sendto(data, self._client)

    def hear(self, direction: Direction, wanted: Sequence[bytes]) -> None:
        """Receive this many datagrams, or bytes, of a direction."""
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

    def hears_nothing(self, direction: Direction) -> None:
        """Check that nothing of a direction comes for a moment."""
        sock = self._ends[OPPOSITE[direction]]
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(65_535)
        sock.settimeout(PATIENCE_S)

    def play(self, altered: Mapping[int, Sequence[bytes]], back: Mapping[int, Sequence[bytes]]) -> None:
        """Play the whole conversation in lock-step.

        `altered` is the expected replacement of a message, by its number, `back` the answer that its sender
        should receive. Over TCP messages that were recorded at once are sent at once.
        """
        for direction, said in turns(self.protocol):
            for group in [[one] for one in said] if self.transport == "udp" else [said]:
                self.say(direction, b"".join(step.data for _, step in group))
                for at, step in group:
                    if (wanted := altered.get(at, [step.data])) or self.transport == "tcp":
                        self.hear(direction, wanted)
                    else:
                        # Else what follows from the other side might arrive before it.
                        self.hears_nothing(direction)
                for at, _ in group:
                    self.hear(OPPOSITE[direction], back.get(at, ()))

    def hang_up(self) -> None:
        """Stop sending in both directions; over TCP receive the rest."""
        if self.transport == "tcp":
            for direction in DIRECTIONS:
                self._ends[direction].shutdown(socket.SHUT_WR)
            for direction in DIRECTIONS:
                while data := self._ends[OPPOSITE[direction]].recv(65_536):
                    self.got[direction].append(data)
        self.close()

    def end(self, direction: Direction) -> None:
        """End a direction."""
        self._ends[direction].shutdown(socket.SHUT_WR)

    def has_ended(self, direction: Direction) -> bool:
        """True if the next that its receiver reads is the end."""
        return self._ends[OPPOSITE[direction]].recv(1) == b""

    def reset(self) -> None:
        """Reset the connection at the client, and wait until the server sees it."""
        client = self._ends["c2s"]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        with pytest.raises(ConnectionResetError):
            self._ends["s2c"].recv(1)

    def close(self) -> None:
        for end in (*self._ends.values(), self._listener):
            end.close()

    @property
    def where(self) -> str:
        """Return rows of the database that are about this server's streams."""
        return f"transport = '{self.transport}' AND server = '{self.server}'"


class Relay:
    """A running relay: its process, and its stderr so far."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self.process = process
        self._stderr = stderr

    @property
    def said(self) -> str:
        return self._stderr.read_text()

    def end(self) -> None:
        """Stop the relay and check that it exits successfully without a traceback."""
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
    command = [*KIEBITZ, "relay", *modes, "-w", str(database), "--max-connections", "32", "-q", *options]
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
    """Return the alterations of a line's messages, in order."""
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
    """Return the errors that `kiebitz check` reports about peers."""
    diagnostics = kiebitz("check", str(database), "--json").json
    return [
        f"{diagnostic['server']}: {diagnostic['text']}"
        for diagnostic in diagnostics
        if diagnostic["severity"] != "note"
    ]
