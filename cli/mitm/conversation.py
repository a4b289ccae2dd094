"""Dissection of one conversation, piece by piece, with the messages that end in each piece.

A piece is one datagram or one read of a byte stream. Its meaning may only be known later: its protocol is
not recognised yet, or its last message continues in the next piece.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, End, Gap, Ids, Item, Message, Stream
from kiebitz.dissectors.registry import dissector_of, installed
from kiebitz.storage.read.event_text import describe
from kiebitz.storage.read.recorded_bytes import ByteRange


class _Piece(msgspec.Struct, frozen=True):
    """Bytes of one direction from offset `start`."""

    direction: Direction
    start: int
    data: bytes


class Conversation:
    """A stream and its dissection; pieces of both directions share one numbering from 0.

    `is_whole` is True if it is read from its beginning.
    """

    def __init__(self, stream: Stream, is_whole: bool) -> None:
        self.stream = stream
        self.events: dict[int, str] = {}
        """Sentences of events, by the `event_id` of messages."""
        self._inspector = Inspector(installed().dissectors.values(), Ids())
        self._is_whole = is_whole
        self._latest_ns = 0
        self._pieces: list[_Piece] = []
        # Start offsets and numbers of the pieces of each direction.
        self._starts: dict[Direction, list[int]] = {"c2s": [], "s2c": []}
        self._numbers: dict[Direction, list[int]] = {"c2s": [], "s2c": []}
        self._sizes: dict[Direction, int] = {"c2s": 0, "s2c": 0}
        self._by_time: dict[int, int] = {}
        self._messages: defaultdict[int, list[Message]] = defaultdict(list)
        self._unended: dict[int, Message] = {}
        """Messages that end in a later piece, by piece number."""
        self._diagnostics: defaultdict[int, list[Diagnostic]] = defaultdict(list)

    @property
    def dissector(self) -> Dissector | None:
        """Dissector of the recognised protocol; None before that."""
        return dissector_of(self.stream.protocol)

    def take(self, direction: Direction, ts_ns: int, data: bytes) -> None:
        """Dissect the next piece."""
        # Times are made unique, to identify datagrams by them, even empty ones.
        self._latest_ns = ts_ns = max(ts_ns, self._latest_ns + 1)
        start = self._sizes[direction]
        items: list[Item] = []
        if not (self._is_whole or self._starts[direction]):
            items.append(Gap(self.stream, direction, ts_ns, 0, None))
        if data or self.stream.transport == "udp":
            items.append(Chunk(self.stream, direction, ts_ns, start, data))
        self._starts[direction].append(start)
        self._numbers[direction].append(len(self._pieces))
        self._by_time[ts_ns] = len(self._pieces)
        self._sizes[direction] += len(data)
        self._pieces.append(_Piece(direction, start, data))
        for item in items:
            self._inspector.feed(item)
        self._note()

    def end(self) -> None:
        """Finish the dissection: the stream was closed."""
        self._inspector.feed(End(self.stream, self._latest_ns, "closed"))
        self._inspector.finish()
        self._note()

    def messages(self, number: int) -> list[Message]:
        """Return the messages that end in a piece."""
        return self._messages.get(number, [])

    def diagnostics(self, message: Message) -> list[Diagnostic]:
        """Return the diagnostics of a message."""
        return self._diagnostics.get(message.id, [])

    def unended(self, number: int) -> tuple[int, Message | None]:
        """Return the number of bytes of an incomplete message in a piece, and the message if complete."""
        piece = self._pieces[number]
        ends = (message.offset + message.length for message in self.messages(number))
        read = max([piece.start, *ends])
        return piece.start + len(piece.data) - read, self._unended.get(number)

    def piece(self, number: int) -> tuple[int, bytes]:
        """Return start offset and bytes of a piece."""
        piece = self._pieces[number]
        return piece.start, piece.data

    def between(self, direction: Direction, start: int, end: int) -> ByteRange:
        """Return the bytes of a direction from offset `start` to `end`, as far as received."""
        numbers = self._numbers[direction]
        first = max(bisect_right(self._starts[direction], start) - 1, 0)
        parts = []
        for number in numbers[first : bisect_right(self._starts[direction], end)]:
            piece = self._pieces[number]
            parts.append(piece.data[max(start - piece.start, 0) : max(end - piece.start, 0)])
        data = b"".join(parts)
        return ByteRange(start, len(data), data)

    def _note(self) -> None:
        """Assign findings to pieces."""
        found = self._inspector.drain()
        protocol = self.stream.protocol
        for event in found.events:
            assert protocol is not None
            self.events[event.id] = describe(protocol, event)
        for message in found.messages:
            if self.stream.transport == "udp":
                self._messages[self._by_time[message.ts_ns]].append(message)
                continue
            numbers = self._numbers[message.direction]
            starts = self._starts[message.direction]
            last = bisect_right(starts, message.offset + message.length - 1) - 1
            for place in range(bisect_right(starts, message.offset) - 1, last):
                self._unended[numbers[place]] = message
            self._messages[numbers[last]].append(message)
        for diagnostic in found.diagnostics:
            # A missing beginning belongs to no message, and is known here.
            if diagnostic.message_id is not None:
                self._diagnostics[diagnostic.message_id].append(diagnostic)
