"""Edits of recorded items: removal, replacement and insertion of messages.

Other bytes and their times are unchanged; only their offsets move. In a byte stream a message may extend over
any number of chunks, over UDP it is a datagram.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from kiebitz.dissectors.model import OPPOSITE, Altered, Chunk, Direction, End, Fault, Gap, Item, Stream


class Splice(msgspec.Struct, frozen=True):
    """An edit of the message of `length` bytes at `offset`, which was received at `ts_ns`.

    `instead` are its new bytes, empty to remove it; None leaves it as it is. They get the time of its last
    byte. The messages in `added`, each with its direction, follow it. The caller must not insert a message of
    the opposite direction between two parts of a message there.
    """

    stream_id: int
    direction: Direction
    offset: int
    length: int
    ts_ns: int
    instead: bytes | None = None
    added: tuple[tuple[Direction, bytes], ...] = ()


def apply_splices(items: Iterable[Item], splices: Iterable[Splice]) -> Iterator[Item]:
    """Yield the items with these edits, of which there is at most one per message."""
    states: dict[tuple[int, Direction], _DirectionState] = {}
    for splice in sorted(splices, key=lambda splice: splice.offset):
        for direction in (splice.direction, OPPOSITE[splice.direction]):
            states.setdefault((splice.stream_id, direction), _DirectionState())
        states[splice.stream_id, splice.direction].waiting.append(splice)
    for item in items:
        if isinstance(item, End):
            yield item
            continue
        own = states.get((item.stream.id, item.direction))
        if own is None:
            yield item
        elif isinstance(item, Altered):
            yield msgspec.structs.replace(item, offset=own.displaced(item.offset), length=own.length_of(item))
        elif isinstance(item, Gap | Fault):
            yield msgspec.structs.replace(item, offset=own.displaced(item.offset))
            if isinstance(item, Gap):
                own.offset_reached = item.offset + (item.length or 0)
        else:
            change = _edit_datagram if item.stream.transport == "udp" else _edit_piece
            yield from change(item, own, states[item.stream.id, OPPOSITE[item.direction]])


class _DirectionState:
    """A direction of a stream: the pending splices, the current offset, and the displacements."""

    def __init__(self) -> None:
        self.waiting: deque[Splice] = deque()
        self.offset_reached = 0
        """The recorded offset behind the last byte."""
        self._displacements: list[tuple[int, int]] = []
        """Recorded offsets, each with the number of bytes by which everything from there on has moved."""

    def displaced(self, offset: int) -> int:
        """Return the present position of a recorded offset."""
        return offset + next((by for start, by in reversed(self._displacements) if start <= offset), 0)

    def length_of(self, item: Altered) -> int:
        """Return the length of an alteration, whose message may be a replaced one."""
        splice = self.waiting[0] if self.waiting else None
        if splice is None or splice.instead is None or not item.length:
            return item.length
        return len(splice.instead) if splice.offset == item.offset else item.length

    def displace(self, by: int) -> None:
        """Displace everything from the current offset on."""
        before = self._displacements[-1][1] if self._displacements else 0
        self._displacements.append((self.offset_reached, before + by))

    def insert(self, stream: Stream, direction: Direction, ts_ns: int, data: bytes) -> Chunk:
        """Return an inserted chunk at the current offset."""
        chunk = Chunk(stream, direction, ts_ns, self.displaced(self.offset_reached), data)
        self.displace(len(data))
        return chunk


def _edit_datagram(chunk: Chunk, own: _DirectionState, other: _DirectionState) -> Iterator[Chunk]:
    """Yield a datagram after edits."""
    offset = own.displaced(chunk.offset)
    own.offset_reached = chunk.offset + len(chunk.data) + chunk.missing
    if not own.waiting or not _is_of(own.waiting[0], chunk):
        yield msgspec.structs.replace(chunk, offset=offset)
        return
    splice = own.waiting.popleft()
    if splice.instead is None:
        yield msgspec.structs.replace(chunk, offset=offset)
    else:
        if splice.instead:
            yield msgspec.structs.replace(chunk, offset=offset, data=splice.instead)
        own.displace(len(splice.instead) - len(chunk.data))
    for direction, data in splice.added:
        there = own if direction == chunk.direction else other
        yield there.insert(chunk.stream, direction, chunk.ts_ns, data)


def _is_of(splice: Splice, chunk: Chunk) -> bool:
    """Return True if a splice is of this datagram; an empty datagram has the offset of the next one."""
    place = (chunk.offset, len(chunk.data), chunk.ts_ns)
    return not chunk.missing and place == (splice.offset, splice.length, splice.ts_ns)


def _edit_piece(chunk: Chunk, own: _DirectionState, other: _DirectionState) -> Iterator[Chunk]:
    """Yield a piece of a byte stream after edits."""
    start, end = chunk.offset, chunk.offset + len(chunk.data)
    own.offset_reached = start
    begin, data = own.displaced(start), bytearray()
    while own.waiting and own.waiting[0].offset < end:
        splice = own.waiting[0]
        behind = splice.offset + splice.length
        upto = min(behind, end)
        kept = upto if splice.instead is None else max(splice.offset, own.offset_reached)
        data += chunk.data[own.offset_reached - start : kept - start]
        own.offset_reached = upto
        own.displace(kept - upto)
        if behind > end:
            # The replacement follows the last byte, which is in a later chunk.
            break
        own.waiting.popleft()
        data += splice.instead or b""
        own.displace(len(splice.instead or b""))
        for direction, added in splice.added:
            if direction == chunk.direction:
                data += added
                own.displace(len(added))
                continue
            if data:
                yield msgspec.structs.replace(chunk, offset=begin, data=bytes(data))
            yield other.insert(chunk.stream, direction, chunk.ts_ns, added)
            begin, data = own.displaced(own.offset_reached), bytearray()
    data += chunk.data[own.offset_reached - start :]
    own.offset_reached = end
    if data:
        yield msgspec.structs.replace(chunk, offset=begin, data=bytes(data))
