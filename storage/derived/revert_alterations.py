"""Reversal of alterations: the items as they would be had everything been forwarded unchanged.

Inserted messages are removed, dropped or changed ones restored, each at the time when Kiebitz received it.
How the peers would have reacted is unknown: their messages stay the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kiebitz.dissectors.model import Altered, Chunk, Direction, Fault, Gap, Item


def revert_alterations(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items without alterations; all of them are held in memory, as delayed ones move far ahead."""
    ways: dict[tuple[int, Direction], _DirectionState] = {}
    held: list[tuple[int, Item]] = []
    for item in items:
        if isinstance(item, Chunk | Gap | Fault | Altered):
            way = ways.setdefault((item.stream.id, item.direction), _DirectionState())
            held += way.revert(item)
        else:
            held.append((item.ts_ns, item))
    held.sort(key=lambda timed: timed[0])
    come: dict[tuple[int, Direction], int] = {}
    for ts_ns, item in held:
        if not isinstance(item, Chunk | Gap | Fault):
            yield item
            continue
        place = (item.stream.id, item.direction)
        offset = come.get(place, 0)
        yield msgspec.structs.replace(item, ts_ns=ts_ns, offset=offset)
        come[place] = offset + _size(item)


def _size(item: Chunk | Gap | Fault) -> int:
    if isinstance(item, Chunk):
        return len(item.data) + item.missing
    return (item.length or 0) if isinstance(item, Gap) else 0


class _DirectionState:
    """One direction of a stream, with the amount of upcoming data that was not sent."""

    def __init__(self) -> None:
        self._bytes_to_skip = 0
        """Bytes of a byte stream to leave out."""
        self._skip_next = False
        """True if the next datagram is to be left out."""

    def revert(self, item: Chunk | Gap | Fault | Altered) -> Iterator[tuple[int, Item]]:
        """Yield the sent items, each with its time."""
        if isinstance(item, Altered):
            self._bytes_to_skip, self._skip_next = item.length, item.length > 0
            if item.original is not None:
                sent_ns = item.ts_ns if item.sent_ns is None else item.sent_ns
                chunk = Chunk(item.stream, item.direction, sent_ns, item.offset, item.original)
                yield sent_ns, chunk
        elif not isinstance(item, Chunk):
            yield item.ts_ns, item
        elif item.stream.transport == "udp":
            if not self._skip_next:
                yield item.ts_ns, item
            self._skip_next = False
        else:
            data = item.data[self._bytes_to_skip :]
            self._bytes_to_skip -= len(item.data) - len(data)
            if data:
                yield item.ts_ns, msgspec.structs.replace(item, data=data)
