"""The items of a stored session's source, in order, and its script for replays.

All other rows of a session follow from these. Ids of bytes and gaps give their order, and an alteration
stores the id of the row before it. An end comes after the last row of its stream, and otherwise by its time,
as the clock may have been set back.

The replay script of a session: openings, messages with their bytes, and closings.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush, merge
from operator import itemgetter
from typing import NamedTuple

from kiebitz.dissectors.inspection.inspector import DERIVED_CODES, DIVERGENCE
from kiebitz.dissectors.model import Chunk, End, Fault, Gap, Item, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.replay.script import (
    RecordedLine,
    Script,
    ScriptStep,
    StreamClosing,
    StreamOpening,
    StreamRole,
)
from kiebitz.storage.database.schema import GREATEST_ID, StorageError
from kiebitz.storage.read.alterations import StoredAlteration, alterations
from kiebitz.storage.read.recorded_bytes import ChunkRow, RecordedBytes, RecordedFrames, datagrams
from kiebitz.storage.read.timeline import Timeline

# The codes of a Fault: all other diagnostics about the network follow from the bytes.
_FOLLOWS = ", ".join(map(repr, DERIVED_CODES))
_IS_FAULT = f"(d.code = '{DIVERGENCE}' OR d.grp = 'network' AND d.code NOT IN ({_FOLLOWS}))"

ServerProtocol = tuple[str, str, str]
"""Transport and address of a server, and its protocol."""


class _End(NamedTuple):
    """The end of a stream, not before `due_ns`; at the same time, the source's own end comes last."""

    due_ns: int
    is_source: bool
    stream: int
    ts_ns: int
    reason: str


class RecordedItems:
    """The source's items of a session; create it before the session's diagnostics are deleted.

    `server_protocols` has its servers with a known protocol, `chunks` the number of rows of bytes and gaps.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.server_protocols = server_protocols(timeline)
        self.chunks: int = timeline.scalar(
            "SELECT count(*) FROM chunks AS c JOIN streams AS s ON s.id = c.stream_id WHERE s.session_id = ?",
            timeline.session.id,
        )
        self._streams: dict[int, Stream] = {}
        self._ends: deque[tuple[int, _End]] = deque()
        """Ends, each with the last row of bytes before it (0 if there is none), sorted by that."""
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
            Fault(self._streams[number], *(*rest, bool(quotes)))
            for number, *rest, quotes in self._rows(
                "SELECT d.stream_id, d.direction, d.ts_ns, d.offset, d.code, d.text, d.length,"
                " d.grp, d.blame, d.expected, d.severity, d.grp <> 'network'"
                " FROM diagnostics AS d"
                f" JOIN streams AS s ON s.id = d.stream_id WHERE s.session_id = ? AND {_IS_FAULT}"
                " ORDER BY d.id"
            )
        )

    def items(self) -> Iterator[Item]:
        """Yield the items, once: an inspector that is fed with them changes their streams."""
        sources: list[Iterator[tuple[int, bool, ChunkRow | StoredAlteration, int]]] = [
            ((row.id, False, row, missing) for row, missing in datagrams(self.timeline)),
            ((row.chunk_id, True, row, 0) for row in alterations(self.timeline)),
        ]
        for row_id, is_after, row, missing in merge(*sources, key=itemgetter(0, 1)):
            self._ended_by(row_id if is_after else row_id - 1)
            yield from self._due_before(row.ts_ns)
            if isinstance(row, StoredAlteration):
                yield row.item(self._streams[row.stream.id])
                continue
            stream = self._streams[row.stream_id]
            if row.data is None:
                yield Gap(stream, row.direction, row.ts_ns, row.offset, row.length)
            else:
                yield Chunk(stream, row.direction, row.ts_ns, row.offset, row.data, missing)
        self._ended_by(GREATEST_ID)
        yield from self._due_before(None)

    def renumber(self, ids: Iterator[int]) -> None:
        """Give the streams other ids, before any items are read."""
        for stream, number in zip(self._streams.values(), ids, strict=False):
            stream.id = number

    def open_streams(self) -> list[Stream]:
        """Return the streams without an end, the same objects as in the items."""
        return [stream for stream in self._streams.values() if stream.closed_ns is None]

    def _ended_by(self, row_id: int) -> None:
        """Release the ends up to a row of bytes: from now on they are ordered by time."""
        while self._ends and self._ends[0][0] <= row_id:
            heappush(self._due, self._ends.popleft()[1])

    def _due_before(self, ts_ns: int | None) -> Iterator[Item]:
        """Yield the faults and due ends before a time; all, if that is None."""
        while self._faults and (ts_ns is None or self._faults[0].ts_ns < ts_ns):
            yield self._faults.popleft()
        while self._due and (ts_ns is None or self._due[0][0] < ts_ns):
            end = heappop(self._due)
            yield End(self._streams[end.stream], end.ts_ns, end.reason)

    def _rows(self, query: str) -> sqlite3.Cursor:
        return self.timeline.connection.execute(query, (self.timeline.session.id,))


def complete_items(timeline: Timeline) -> RecordedItems:
    """Return the source's items of a session. Raises StorageError if it began in another database."""
    if timeline.session.continues:
        raise StorageError(
            f"session {timeline.session.id} began in an earlier database (kiebitz relay -b):"
            " the earlier state of its games cannot be derived from the bytes in this one"
        )
    return RecordedItems(timeline)


def server_protocols(timeline: Timeline) -> set[ServerProtocol]:
    """Return the servers of a session whose protocol is known."""
    rows = timeline.connection.execute(
        "SELECT DISTINCT transport, server, protocol FROM streams"
        " WHERE session_id = ? AND protocol IS NOT NULL",
        (timeline.session.id,),
    )
    return {(transport, server, protocol) for transport, server, protocol in rows}


def script_of(timeline: Timeline) -> Script:
    """Return the whole session, held in memory, without streams of unknown protocol."""
    rows = timeline.connection.execute(
        "SELECT id, protocol, transport, client, server, opened_ns, closed_ns FROM streams"
        " WHERE session_id = ? AND protocol IS NOT NULL ORDER BY id",
        (timeline.session.id,),
    ).fetchall()
    roles = {row[0]: StreamRole(*row[:5]) for row in rows}
    marks: list[StreamOpening | StreamClosing] = [StreamOpening(roles[row[0]], row[5]) for row in rows]
    marks += [StreamClosing(roles[row[0]], row[6]) for row in rows if row[6] is not None]
    marks.sort(key=lambda mark: (mark.ts_ns, isinstance(mark, StreamClosing), mark.role.number))
    lines = list(_lines(timeline, roles))
    last = {line.role.number: line.number for line in lines}
    waiting = deque(marks)
    steps: list[ScriptStep] = []
    for line in lines:
        while waiting and _is_before(waiting[0], line, last):
            steps.append(waiting.popleft())
        steps.append(line)
    return Script(tuple(roles.values()), (*steps, *waiting))


def _is_before(mark: StreamOpening | StreamClosing, line: RecordedLine, last: dict[int, int]) -> bool:
    """Return True if a stream began or ended before a message; the order of bytes overrides times.

    `last` has each role's last message.
    """
    if isinstance(mark, StreamOpening):
        return mark.ts_ns <= line.ts_ns or mark.role is line.role
    return mark.ts_ns < line.ts_ns and last.get(mark.role.number, 0) < line.number


def _lines(timeline: Timeline, roles: dict[int, StreamRole]) -> Iterator[RecordedLine]:
    """Yield the messages of streams of known protocol, in the order in which they were complete.

    Streams whose protocol was guessed wrongly at first have messages, but no protocol.
    """
    recorded = RecordedFrames(RecordedBytes(timeline.connection).between)
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.direction, m.ts_ns, m.name, m.offset, m.length, m.event_id"
        " FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
        " WHERE s.session_id = ? AND s.protocol IS NOT NULL ORDER BY m.id",
        (timeline.session.id,),
    )
    for number, stream, direction, ts_ns, name, offset, length, event in rows:
        role = roles[stream]
        frame = recorded.frame(dissector_of(role.protocol), stream, direction, offset, length)
        is_whole = bool(frame.spans) or len(frame.data) == length
        yield RecordedLine(role, ts_ns, direction, number, name, frame.data, is_whole, event)
