"""Scripted conversations of clients with a server, and their findings; without sockets, files or clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import DecodeAs, Inspector
from kiebitz.dissectors.model import (
    Chunk,
    Diagnostic,
    Direction,
    End,
    Event,
    Findings,
    Game,
    Gap,
    Ids,
    Item,
    Stream,
)

MS = 1_000_000
SEGMENT = 65_535
"""Length of the longest segment of TCP in bytes."""


class Step(Protocol):
    """A message of a script between a server and the client of a name."""

    @property
    def client(self) -> str: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def data(self) -> bytes: ...


class Conversation:
    """Clients of a server, by name. Each message is sent a millisecond after the one before.

    Args:
        dissector: The server's protocol.
        ports: The ports of its servers. Messages go to the first one if no other is named.
        among: Dissectors that recognize the protocol. Without them, the protocol of the ports is given.
        end: The end of a line.
    """

    def __init__(
        self, dissector: Dissector, *ports: int, among: Sequence[Dissector] = (), end: str = "\r\n"
    ) -> None:
        self.dissector = dissector
        self.ports = ports
        self.end_of_line = end
        given: DecodeAs = {} if among else {(dissector.transport, port): dissector for port in ports}
        self.inspector = Inspector(among or [dissector], Ids(), given)
        self.now_ns = 0
        self.streams: dict[tuple[str, int], Stream] = {}
        self.offsets: Counter[tuple[str, int, Direction]] = Counter()
        self._found = Findings()

    def stream(self, client: str, port: int = 0) -> Stream:
        """Return the stream of a client with a server. The first time, it is opened."""
        key = client, port or self.ports[0]
        if key not in self.streams:
            number = len(self.streams) + 1
            address, server = f"127.0.0.1:{40_000 + number}", f"127.0.0.1:{key[1]}"
            self.streams[key] = Stream(number, self.dissector.transport, address, server, self.now_ns)
        return self.streams[key]

    def feed(self, item: Item) -> None:
        self.inspector.feed(item)

    def send(self, *lines: str) -> Self:
        """Add messages: `a> TEXT` from the client a, `a< TEXT` to it, `*< TEXT` to each.

        `a! N` loses N bytes of the server to a, and `a.` closes the connection.
        """
        for line in lines:
            head, _, text = line.partition(" ")
            name, sign = head[:-1], head[-1]
            if sign == ".":
                self.end(name)
            elif sign == "!":
                self.lose(name, "s2c", int(text))
            else:
                for client in [each for each, _ in self.streams] if name == "*" else [name]:
                    self.say(client, "c2s" if sign == ">" else "s2c", f"{text}{self.end_of_line}".encode())
        return self

    def play(self, steps: Iterable[Step]) -> None:
        """Send all messages of a script."""
        for step in steps:
            self.say(step.client, step.direction, step.data)

    def say(self, client: str, direction: Direction, data: bytes, after_ms: float = 1, port: int = 0) -> None:
        """Send bytes; what is longer than a segment, in several."""
        self.wait(after_ms / 1000)
        stream = self.stream(client, port)
        for start in range(0, len(data), SEGMENT):
            piece = data[start : start + SEGMENT]
            at = self._advance(client, direction, port, len(piece))
            self.feed(Chunk(stream, direction, self.now_ns, at, piece))

    def lose(self, client: str, direction: Direction, length: int, port: int = 0) -> None:
        """Lose bytes, which the capture does not have."""
        self.wait(0.001)
        stream, at = self.stream(client, port), self._advance(client, direction, port, length)
        self.feed(Gap(stream, direction, self.now_ns, at, length))

    def miss_beginning(self, client: str, direction: Direction) -> None:
        """Begin the capture in the middle of the stream."""
        self.feed(Gap(self.stream(client), direction, self.now_ns, 0, None))

    def wait(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def end(self, client: str, reason: str = "closed", port: int = 0) -> None:
        """Close a client's connection."""
        self.wait(0.001)
        self.feed(End(self.stream(client, port), self.now_ns, reason))

    def close(self, reason: str = "closed") -> Findings:
        """Close the connections that are open, and return all findings."""
        for stream in self.streams.values():
            if stream.closed_ns is None:
                self.feed(End(stream, self.now_ns, reason))
        return self.found()

    def offset(self, client: str, direction: Direction) -> int:
        """Return the number of bytes that were sent in a direction."""
        return self.offsets[client, self.ports[0], direction]

    def _advance(self, client: str, direction: Direction, port: int, length: int) -> int:
        key = client, port or self.ports[0], direction
        self.offsets[key] += length
        return self.offsets[key] - length

    def found_so_far(self) -> Findings:
        """Return the findings, without those that wait for more messages."""
        new = self.inspector.drain()
        for name in Findings.__struct_fields__:
            getattr(self._found, name).extend(getattr(new, name))
        return self._found

    def found(self) -> Findings:
        """Return all findings, as if the conversation ended here."""
        self.inspector.finish()
        return self.found_so_far()


def state_of(found: Findings, end: int | None = None) -> State:
    """Return the sum of the changes of all events, or of the first ones."""
    state: State = {}
    for event in found.events[:end]:
        apply(state, event.changes)
    return state


def events_of(found: Findings, *kinds: str) -> list[Event]:
    return [event for event in found.events if event.kind in kinds]


def games_of(found: Findings) -> list[Game]:
    """Return the last reported state of each game."""
    return list({game.id: game for game in found.games}.values())


def sentences(dissector: Dissector, found: Findings) -> list[str]:
    """Return the sentences of all events."""
    return [dissector.presentation.describe(event) for event in found.events]


def violations(found: Findings) -> list[Diagnostic]:
    """Return all diagnostics but notes."""
    return [diagnostic for diagnostic in found.diagnostics if diagnostic.severity != "note"]
