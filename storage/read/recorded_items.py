"""What the source of a stored session gave: its bytes, gaps, alterations, faults and ends, as items in order.

Whatever else is stored of a session follows from these. Bytes and gaps are numbered as they came, and an
alteration knows the number that it came after. An end came after the last of its stream, and else when its
time says: the clock may have been set back in between.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from kiebitz.dissectors.inspection.inspector import DERIVED_CODES, DIVERGENCE
from kiebitz.dissectors.model import Chunk, End, Fault, Gap, Item, Stream
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.alterations import StoredAlteration, alterations
from kiebitz.storage.read.recorded_bytes import datagrams
from kiebitz.storage.read.timeline import Timeline

# What a Fault comes to: all other findings about the network follow from the bytes.
_FOLLOWS = ", ".join(map(repr, DERIVED_CODES))
_IS_FAULT = f"(d.code = '{DIVERGENCE}' OR d.grp = 'network' AND d.code NOT IN ({_FOLLOWS}))"

Spoken = tuple[str, str, str]
"""Transport and address of a server, and the protocol it was taken to speak."""


_BEYOND_ALL_ROWS = 1 << 63


class _End(NamedTuple):
    """The end of a stream: not before `due_ns`; the source's own comes after all others of that moment."""

    due_ns: int
    is_source: bool
    stream: int
    ts_ns: int
    reason: str


class _Alterations:
    """A session's alterations, read one by one as the rows of bytes behind them come."""

    def __init__(self, timeline: Timeline) -> None:
        self._rows = alterations(timeline)
        self._next = next(self._rows, None)

    def upto(self, row_id: int) -> Iterator[StoredAlteration]:
        """Those before a row of bytes that have not been given."""
        while self._next is not None and self._next.chunk_id < row_id:
            yield self._next
            self._next = next(self._rows, None)


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
        self._ends: deque[tuple[int, _End]] = deque()
        """Ends, each with the last row of bytes before it, 0 if there is none, in order of these."""
        for number, transport, client, server, opened, closed, reason, last, altered_ns in self._rows(
            "SELECT id, transport, client, server, opened_ns, closed_ns, close_reason,"
            " (SELECT coalesce(max(c.id), 0) FROM chunks AS c WHERE c.stream_id = s.id),"
            " (SELECT max(a.ts_ns) FROM alterations AS a WHERE a.stream_id = s.id)"
            " FROM streams AS s WHERE session_id = ? ORDER BY id"
        ):
            self._streams[number] = Stream(number, transport, client, server, opened)
            if closed is not None:
                due = closed if altered_ns is None else max(closed, altered_ns)
                self._ends.append((last, _End(due, reason == "end", number, closed, reason)))
        self._ends = deque(sorted(self._ends))
        self._due: list[_End] = []
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
        alterations = _Alterations(self.timeline)
        for row, missing in datagrams(self.timeline):
            yield from self._between(alterations.upto(row.id), row.id)
            yield from self._before(row.ts_ns)
            stream = self._streams[row.stream_id]
            if row.data is None:
                yield Gap(stream, row.direction, row.ts_ns, row.offset, row.length)
            else:
                yield Chunk(stream, row.direction, row.ts_ns, row.offset, row.data, missing)
        yield from self._between(alterations.upto(_BEYOND_ALL_ROWS), _BEYOND_ALL_ROWS)
        yield from self._before(None)

    def renumber(self, ids: Iterator[int]) -> None:
        """Give the streams other numbers, before there are any items."""
        for stream, number in zip(self._streams.values(), ids, strict=False):
            stream.id = number

    def open_streams(self) -> list[Stream]:
        """The streams that have not ended, as the items have them."""
        return [stream for stream in self._streams.values() if stream.closed_ns is None]

    def _between(self, alterations: Iterable[StoredAlteration], row_id: int) -> Iterator[Item]:
        """What was altered before a row of bytes, each with what comes before it."""
        for row in alterations:
            self._ended_by(row.chunk_id)
            yield from self._before(row.ts_ns)
            yield row.item(self._streams[row.stream.id])
        self._ended_by(row_id - 1)

    def _ended_by(self, row_id: int) -> None:
        """All up to a row of bytes has come: from here on, the ends behind it are told in their time."""
        while self._ends and self._ends[0][0] <= row_id:
            heappush(self._due, self._ends.popleft()[1])

    def _before(self, ts_ns: int | None) -> Iterator[Item]:
        """The faults and the due ends from before a moment that have not been given; all, if that is None."""
        while self._faults and (ts_ns is None or self._faults[0].ts_ns < ts_ns):
            yield self._faults.popleft()
        while self._due and (ts_ns is None or self._due[0][0] < ts_ns):
            end = heappop(self._due)
            yield End(self._streams[end.stream], end.ts_ns, end.reason)

    def _rows(self, query: str) -> sqlite3.Cursor:
        return self.timeline.connection.execute(query, (self.timeline.session.id,))


def items_from_the_beginning(timeline: Timeline) -> RecordedItems:
    """What is kept of a session, of which all else follows. Raises StorageError if it began elsewhere."""
    if timeline.session.continues:
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
