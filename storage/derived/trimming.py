"""Trimming: the bytes of a part of a session, as if only these had been captured.

Pure functions: messages to an outline, and with that, items to items. Omitted messages look like those that a
capture lacks. A stream with omissions counts as joined in progress, so that no violation is reported that
cannot be known. Later omitted bytes are a gap. If the part is a whole game, these gaps are not reported, as a
new table begins with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from kiebitz.dissectors.model import DIRECTIONS, Altered, Chunk, Direction, End, Fault, Gap, Item

StreamDirection = tuple[int, Direction]
"""One direction of a stream: the stream's id and the direction."""

Treatment = Literal["kept", "missing", "gone"]
"""The treatment of a range of bytes: kept, reported as a gap, or removed silently."""


class MessagePosition(NamedTuple):
    """The position of a message in its stream."""

    id: int
    stream_id: int
    direction: Direction
    ts_ns: int
    offset: int
    length: int


class TreatedRange(NamedTuple):
    """A range of offsets in one direction, and its treatment."""

    start: int
    end: int
    treatment: Treatment


class Outline(msgspec.Struct, frozen=True):
    """The ranges of each direction in order; the last one is unbounded.

    In the streams `joined`, something is omitted before the last kept message. The streams `ended` are kept
    to their end. `empty` has the offsets and times of kept datagrams without bytes.
    """

    directions: Mapping[StreamDirection, list[TreatedRange]]
    joined: frozenset[int]
    ended: frozenset[int]
    empty: frozenset[tuple[StreamDirection, int, int]]

    def ranges(self, key: StreamDirection, offset: int) -> Iterator[TreatedRange]:
        """Yield the ranges of a direction from an offset on; the first one begins there or before."""
        found = self.directions.get(key, _UNREAD)
        place = bisect_right(found, offset, key=lambda stretch: stretch.start) - 1
        yield from found[max(place, 0) :]


_NO_END = 1 << 62
_UNREAD = [TreatedRange(0, _NO_END, "kept")]
"""The ranges of a direction without messages."""


def outline(
    messages: Iterable[MessagePosition], kept: Container[int], last: Mapping[int, int], hole: Treatment
) -> Outline:
    """Return the treatment of all bytes of some streams.

    Bytes outside of messages are treated like the messages around them, if these are treated alike.

    Args:
        messages: All messages of the streams, in order.
        kept: The ids of the messages to keep.
        last: Stream -> its last kept message.
        hole: The treatment of omissions between kept messages.
    """
    directions: defaultdict[StreamDirection, list[TreatedRange]] = defaultdict(list)
    joined: set[int] = set()
    cut: set[int] = set()
    empty: set[tuple[StreamDirection, int, int]] = set()
    for message in messages:
        key = message.stream_id, message.direction
        found = directions[key]
        is_kept = message.id in kept
        is_behind = message.id > last[message.stream_id]
        if not is_kept:
            (cut if is_behind else joined).add(message.stream_id)
        elif not message.length:
            empty.add((key, message.offset, message.ts_ns))
        treatment: Treatment = "kept" if is_kept else hole if found and not is_behind else "gone"
        end = message.offset + message.length
        if found and found[-1].treatment == treatment:
            found[-1] = found[-1]._replace(end=end)
        else:
            start = 0 if not found else message.offset if is_kept else found[-1].end
            if found:
                found[-1] = found[-1]._replace(end=start)
            found.append(TreatedRange(start, end, treatment))
    for found in directions.values():
        if found[-1].treatment == "missing":
            found.append(TreatedRange(found[-1].end, _NO_END, "gone"))
        found[-1] = found[-1]._replace(end=_NO_END)
    return Outline(directions, frozenset(joined), frozenset(last.keys() - cut), frozenset(empty))


def trim_items(items: Iterable[Item], kept: Outline, streams: Container[int]) -> Iterator[Item]:
    """Yield the kept items of these streams, with their new offsets."""
    assigner = _OffsetAssigner(kept)
    for item in items:
        if item.stream.id not in streams:
            continue
        for placed in assigner.trim(item):
            yield from assigner.opening(placed)
            yield placed


class _OffsetAssigner:
    """The offsets of kept items, each directly after the items before it."""

    def __init__(self, kept: Outline) -> None:
        self._kept = kept
        self._next_offset: defaultdict[StreamDirection, int] = defaultdict(int)
        """The offset of the next byte of each direction."""
        self._holes: dict[StreamDirection, int] = {}
        """The recorded offset of each direction's last gap."""
        self._opened: set[int] = set()

    def opening(self, item: Item) -> Iterator[Item]:
        """Yield the gap before the first item of a stream whose beginning is missing."""
        stream = item.stream
        if stream.id in self._opened:
            return
        self._opened.add(stream.id)
        if stream.id in self._kept.joined:
            stream.opened_ns = item.ts_ns
            if stream.transport == "tcp":
                for direction in DIRECTIONS:
                    yield Gap(stream, direction, item.ts_ns, 0, None)

    def trim(self, item: Item) -> Iterator[Item]:
        """Yield the kept parts of an item."""
        if isinstance(item, End):
            if item.stream.id in self._kept.ended:
                yield item
        elif isinstance(item, Chunk):
            yield from self._datagram(item) if item.stream.transport == "udp" else self._bytes(item)
        elif isinstance(item, Gap) and item.length is None and item.stream.id in self._kept.joined:
            # `opening` reports the missing beginning.
            return
        elif self._is_kept(item):
            yield self._with_offset(item, item.length or 0 if isinstance(item, Gap) else 0)

    def _datagram(self, chunk: Chunk) -> Iterator[Item]:
        size = len(chunk.data) + chunk.missing
        place = ((chunk.stream.id, chunk.direction), chunk.offset, chunk.ts_ns)
        if self._is_kept(chunk) if size else place in self._kept.empty:
            yield self._with_offset(chunk, size)

    def _bytes(self, chunk: Chunk) -> Iterator[Item]:
        key = chunk.stream.id, chunk.direction
        for stretch in self._kept.ranges(key, chunk.offset):
            if stretch.start >= chunk.offset + len(chunk.data):
                break
            if stretch.treatment == "kept":
                data = chunk.data[max(stretch.start - chunk.offset, 0) : stretch.end - chunk.offset]
                yield self._with_offset(msgspec.structs.replace(chunk, data=data), len(data))
            elif stretch.treatment == "missing" and self._holes.get(key) != stretch.start:
                self._holes[key] = stretch.start
                length = stretch.end - stretch.start
                gap = Gap(chunk.stream, chunk.direction, chunk.ts_ns, 0, length)
                yield self._with_offset(gap, length)

    def _is_kept(self, item: Chunk | Gap | Fault | Altered) -> bool:
        return next(self._kept.ranges((item.stream.id, item.direction), item.offset)).treatment == "kept"

    def _with_offset(self, item: Chunk | Gap | Fault | Altered, size: int) -> Item:
        key = item.stream.id, item.direction
        placed = msgspec.structs.replace(item, offset=self._next_offset[key])
        self._next_offset[key] += size
        return placed
