"""The `Dissector`: everything that Kiebitz needs to know about one protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.framing import Framer
from kiebitz.dissectors.grammar.grammar import NAMELESS, Decoded, Grammar
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.model import (
    DIRECTIONS,
    Direction,
    Findings,
    Ids,
    Stream,
    TableInfo,
    Transport,
    port_of,
)
from kiebitz.dissectors.presentation import Presentation

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.expectations import Conformance
    from kiebitz.dissectors.websocket.encapsulation import WebSocketEncapsulation


class ServerAddress(NamedTuple):
    """The address of a server, and its port, or the ports that are used together."""

    transport: str
    host: str
    ports: frozenset[int]

    @property
    def endpoints(self) -> list[str]:
        """The endpoints that are this server, written `ip:port`."""
        return [f"{self.host}:{port}" for port in sorted(self.ports)]


def address_of(transport: str, server: str, dissectors: Iterable[Dissector]) -> ServerAddress:
    """Return the address of a stream's server, whose protocol may be one of these."""
    host, _, text = server.rpartition(":")
    port = int(text)
    for dissector in dissectors:
        if dissector.together and port in dissector.default_ports and dissector.transport == transport:
            return ServerAddress(transport, host, dissector.default_ports)
    return ServerAddress(transport, host, frozenset((port,)))


Likeness = Literal["certain", "similar"]
"""Confidence that a frame belongs to a protocol: it is a valid message, or a malformed one."""


class Dissector:
    """One protocol.

    Args:
        grammar: Its messages and events.
        transport: `tcp` or `udp`.
        codec: Decodes and encodes its frames.
        framer: Factory for the framer of one direction of a stream.
        table: Factory for the table that turns a server's messages into events.
        default_ports: Default ports of its servers; a server is recognised at any port.
        together: True if the default ports of an address are those of one server.
        presentation: Sentences, names, scores and statistics.
        identity: Players and visibility of events.
        encapsulation: What carries its messages, if their frames are not in the stream as they are.
        conformance: Factory for expected reactions, bots and timeouts for `kiebitz probe`.
        package: Package whose TOML file has the conformance part instead.
    """

    def __init__(
        self,
        *,
        grammar: Grammar,
        transport: Transport,
        codec: Codec,
        framer: Callable[[Direction], Framer],
        table: Callable[[TableInfo, Ids, Findings], GameTable],
        default_ports: Collection[int] = (),
        together: bool = False,
        presentation: Presentation | None = None,
        identity: Identity | None = None,
        encapsulation: WebSocketEncapsulation | None = None,
        conformance: Callable[[], Conformance] | None = None,
        package: str = "",
    ) -> None:
        self.grammar = grammar
        self.protocol = grammar.protocol
        self.transport: Transport = transport
        self.codec = codec
        self.framer = framer
        self.table = table
        self.default_ports = frozenset(default_ports)
        self.together = together
        self.presentation = presentation or Presentation(grammar)
        self.identity = identity or Identity(grammar)
        self.encapsulation = encapsulation
        self._make_conformance = conformance
        self.package = package

    @cached_property
    def conformance(self) -> Conformance:
        """Expected reactions, bots and timeouts."""
        # Most commands do without.
        if self.package and self._make_conformance is None:
            from kiebitz.dissectors.protocol_file.conformance import packaged_conformance

            messages = dict.fromkeys(row.name for row in self.grammar.rows)
            return packaged_conformance(self.package, messages)
        from kiebitz.dissectors.conformance.expectations import Conformance

        return (self._make_conformance or Conformance)()

    def to_wire(self, frame: bytes, direction: Direction) -> bytes:
        """Return the bytes to send for a frame."""
        return frame if self.encapsulation is None else self.encapsulation.wrap(frame, direction)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        """Return how likely the first bytes of a direction belong to this protocol.

        In a byte stream they may begin, and end, within a message. Override it if messages of other protocols
        look alike.
        """
        frames = [frame.data for frame in self.framer(direction).feed(0, data) if frame.cut is None]
        if self.encapsulation is not None:
            # The others say nothing about the protocol that is carried.
            frames = [*filter(self.encapsulation.has_message, frames)]
        decoded = [self.codec.decode(frame, direction) for frame in frames]
        if any(each.valid and each.row is not None and each.row.name != NAMELESS for each in decoded):
            return "certain"
        if decoded and all(row.name == NAMELESS for row in self.grammar.rows):
            # Its messages resemble those of others.
            return "similar" if any(each.valid for each in decoded) else None
        return "similar" if any(self.codec.resembles(frame, direction) for frame in frames) else None


def likeness(decoded: Sequence[Decoded]) -> Likeness | None:
    """Return the likeness of frames of which these are decoded."""
    if any(message.valid for message in decoded):
        return "certain"
    return "similar" if any(message.row is not None for message in decoded) else None


OnError = Callable[[Dissector, Exception], None]
"""Handles the exception of a dissector that looks at bytes."""


def recognise(
    dissectors: Iterable[Dissector],
    transport: Transport,
    data: bytes,
    on_error: OnError = lambda dissector, error: None,
) -> Iterator[tuple[Dissector, Direction, Likeness]]:
    """Yield the protocols that these bytes can be, with the side that would have sent them.

    A dissector that raises does not recognise them, and `on_error` is called.
    """
    for dissector in dissectors:
        if dissector.transport == transport:
            for direction in DIRECTIONS:
                try:
                    likeness = dissector.recognise(data, direction)
                except Exception as error:
                    on_error(dissector, error)
                    break
                if likeness is not None:
                    yield dissector, direction, likeness


def identify(
    dissectors: Iterable[Dissector],
    stream: Stream,
    direction: Direction,
    data: bytes,
    on_error: OnError = lambda dissector, error: None,
) -> Iterator[Dissector]:
    """Yield the protocols of which these bytes of a stream's direction are certainly a message, in order.

    Those of the server's port come first.
    """
    certain = [
        dissector
        for dissector, *seen in recognise(dissectors, stream.transport, data, on_error)
        if seen == [direction, "certain"]
    ]
    port = port_of(stream.server)
    yield from sorted(certain, key=lambda dissector: port not in dissector.default_ports)
