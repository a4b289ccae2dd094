"""Conversations as bytes with times, the messages that are cut from them, and their format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport
from kiebitz.dissectors.protocol_file.specification import Format

Kind = tuple[Direction, str]
"""Direction and name of a message."""

MAX_BYTES = 32 << 20
"""Maximum number of bytes that a draft is made from; later ones are ignored."""

MAX_MESSAGES = 200_000
"""Maximum number of messages that a draft is made from."""

_PAUSE_NS = 100_000_000
"""Silence of a sender after which a message is probably complete."""


class Piece(msgspec.Struct, frozen=True, gc=False, order=True):
    """Bytes as they arrived: a datagram, or a piece of a byte stream at `offset` of its direction."""

    direction: Direction
    ts_ns: int
    offset: int
    data: bytes


class Conversation(msgspec.Struct, frozen=True):
    """The pieces between one client and the server, in order; client and server are written `ip:port`.

    `capture` is the number of the capture: at another time, the same server plays other games.
    """

    client: str
    server: str
    transport: Transport
    pieces: list[Piece]
    capture: int = 0

    @property
    def table(self) -> str:
        """The server in this capture."""
        return f"{self.capture} {self.server}"


class Segment(msgspec.Struct):
    """Bytes of one direction of a conversation without a gap in them.

    Attributes:
        conversation: Index of the conversation.
        direction: The direction.
        data: The bytes.
        ends: Offset of the end of each piece.
        times: Time of each piece, in nanoseconds.
        turns: Offsets at which the sender paused or the other side spoke.
    """

    conversation: int
    direction: Direction
    data: bytes
    ends: list[int]
    times: list[int]
    turns: list[int]


class Message(msgspec.Struct, gc=False):
    """A message: `values` has the fields by name, or by position in formats without names.

    `order` is its position among all messages, by time. Its copies for others have equal bytes, or equal
    bytes `same` if something around its fields counts messages. It `begins` what its sender sent at once, or
    follows another message in that. `number` and `reference` are numbers before its name.
    """

    conversation: int
    direction: Direction
    ts_ns: int
    data: bytes
    name: str = ""
    values: dict[str, Any] = {}
    order: int = 0
    same: bytes = b""
    begins: bool = True
    number: int | None = None
    reference: int | None = None

    @property
    def kind(self) -> Kind:
        """Its direction and name."""
        return self.direction, self.name


def segments_of(conversations: Iterable[Conversation]) -> list[Segment]:
    """Return the gapless segments of byte streams; datagrams are one segment each."""
    found: list[Segment] = []
    for index, conversation in enumerate(conversations):
        if conversation.transport == "udp":
            for piece in conversation.pieces:
                size = len(piece.data)
                found.append(Segment(index, piece.direction, piece.data, [size], [piece.ts_ns], [size]))
            continue
        for direction in DIRECTIONS:
            found += _streams(index, direction, conversation.pieces)
    return found


def _streams(index: int, direction: Direction, pieces: list[Piece]) -> Iterable[Segment]:
    """Yield the gapless segments of one direction."""
    parts: list[bytes] = []
    segment: Segment | None = None
    size = 0
    expected = 0
    is_turn = True
    for piece in pieces:
        if piece.direction != direction:
            is_turn = True
            continue
        if not piece.data:
            continue
        if segment is None or piece.offset != expected:
            if segment is not None:
                segment.turns.append(size)
                segment.data = b"".join(parts)
                yield segment
            segment, parts, size = Segment(index, direction, b"", [], [], []), [], 0
        elif is_turn or piece.ts_ns - segment.times[-1] > _PAUSE_NS:
            segment.turns.append(size)
        is_turn = False
        size += len(piece.data)
        parts.append(piece.data)
        expected = piece.offset + len(piece.data)
        segment.ends.append(size)
        segment.times.append(piece.ts_ns)
    if segment is not None:
        segment.turns.append(size)
        segment.data = b"".join(parts)
        yield segment


# Formats.

MAX_NAMES = 400
"""Maximum number of message names in a file."""

MAX_NAME = 60
"""Maximum length of a message name, in characters."""

Parsed = tuple[str, dict[str, Any]]
"""Name and fields of a message; fields without a name have their position, from `1`."""

Parser = Callable[[bytes], Parsed | None]
"""Function from a frame's content to its name and fields; None if it does not fit the format."""


class FormatChoice(msgspec.Struct):
    """The chosen format.

    Attributes:
        format: The format.
        parse: The parser of a frame's content.
        is_positional: True if fields have a position instead of a name.
        has_codes: True if numbers stand for message names.
    """

    format: Format
    parse: Parser
    is_positional: bool = False
    has_codes: bool = False
