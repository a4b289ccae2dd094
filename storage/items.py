"""What the source of a stored session gave: its bytes, gaps, faults and ends, as items in order.

Whatever else is stored of a session follows from these. Bytes and gaps are numbered as they came. An end came
after the last of its stream, and else when its time says: the clock may have been set back in between.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from kiebitz.dissectors.inspector import DERIVED_CODES, DIVERGENCE
from kiebitz.dissectors.records import Chunk, End, Fault, Gap, Item, Stream
from kiebitz.storage.schema import StorageError
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import datagrams

# What a Fault comes to: all other findings about the network follow from the bytes.
_FOLLOWS = ", ".join(map(repr, DERIVED_CODES))
_IS_FAULT = f"(d.code = '{DIVERGENCE}' OR d.grp = 'network' AND d.code NOT IN ({_FOLLOWS}))"

Spoken = tuple[str, str, str]
"""Transport and address of a server, and the protocol it was taken to speak."""


class RecordedItems:
    """What is kept of a session; to be made while its diagnostics are still there.

    `spoken` are its servers whose protocol is known, `chunks` is how many rows of bytes and gaps it has.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.spoken = spoken(timeline)
        self.chunks: int = self._rows(
            "SELECT count(*) FROM chunks AS c JOIN streams AS s ON s.id = c.stream_id WHERE s.session_id = ?"
        ).fetchone()[0]
        self._streams: dict[int, Stream] = {}
        self._ends: dict[int, list[tuple[int, bool, int, str]]] = {}
        """Ends by the last row of bytes before them, 0 if there is none: time, whether it is the source's,
        which comes after all others, stream and reason."""
        for number, transport, client, server, opened, closed, reason, last in self._rows(
            "SELECT id, transport, client, server, opened_ns, closed_ns, close_reason,"
            " (SELECT coalesce(max(c.id), 0) FROM chunks AS c WHERE c.stream_id = s.id)"
            " FROM streams AS s WHERE session_id = ? ORDER BY id"
        ):
            self._streams[number] = Stream(number, transport, client, server, opened)
            if closed is not None:
                self._ends.setdefault(last, []).append((closed, reason == "end", number, reason))
        self._due = self._ends.pop(0, [])
        heapify(self._due)
        self._faults = deque(
            Fault(self._streams[number], *rest)
            for number, *rest in self._rows(
                "SELECT d.stream_id, d.direction, d.ts_ns, d.offset, d.code, d.text, d.length,"
                " d.grp, d.blame, d.expected, d.severity"
                " FROM diagnostics AS d"
                f" JOIN streams AS s ON s.id = d.stream_id WHERE s.session_id = ? AND {_IS_FAULT}"
                " ORDER BY d.id"
            )
        )

    def items(self) -> Iterator[Item]:
        """The items, once: an inspector that is fed with them changes their streams."""
        for row, missing in datagrams(self.timeline):
            yield from self._before(row.ts_ns)
            stream = self._streams[row.stream_id]
            if row.data is None:
                yield Gap(stream, row.direction, row.ts_ns, row.offset, row.length)
            else:
                yield Chunk(stream, row.direction, row.ts_ns, row.offset, row.data, missing)
            # What was cut off a datagram is the row after it.
            for end in self._ends.pop(row.id + (missing > 0), ()):
                heappush(self._due, end)
        yield from self._before(None)

    def renumber(self, ids: Iterator[int]) -> None:
        """Give the streams other numbers, before there are any items."""
        for stream, number in zip(self._streams.values(), ids, strict=False):
            stream.id = number

    def open_streams(self) -> list[Stream]:
        """The streams that have not ended, as the items have them."""
        return [stream for stream in self._streams.values() if stream.closed_ns is None]

    def _before(self, ts_ns: int | None) -> Iterator[Item]:
        """The faults and the due ends from before a moment that have not been given; all, if that is None."""
        while self._faults and (ts_ns is None or self._faults[0].ts_ns < ts_ns):
            yield self._faults.popleft()
        while self._due and (ts_ns is None or self._due[0][0] < ts_ns):
            closed_ns, _, number, reason = heappop(self._due)
            yield End(self._streams[number], closed_ns, reason)

    def _rows(self, query: str) -> sqlite3.Cursor:
        return self.timeline.connection.execute(query, (self.timeline.session.id,))


def items_from_the_beginning(timeline: Timeline) -> RecordedItems:
    """What is kept of a session, of which all else follows. Raises StorageError if it began elsewhere."""
    if timeline.continues:
        raise StorageError(
            f"session {timeline.session.id} began in the database before this one (kiebitz relay -b):"
            " what was known of its games by then cannot be made again from the bytes that are here"
        )
    return RecordedItems(timeline)


def spoken(timeline: Timeline) -> set[Spoken]:
    """The servers of a session whose protocol is known."""
    rows = timeline.connection.execute(
        "SELECT DISTINCT transport, server, protocol FROM streams"
        " WHERE session_id = ? AND protocol IS NOT NULL",
        (timeline.session.id,),
    )
    return {(transport, server, protocol) for transport, server, protocol in rows}
