"""The wire side of a stored session: its streams, messages, diagnostics, and the bytes themselves."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dissectors.records import Blame, Direction, Group, Severity, Transport
from storage.timeline import Timeline

Parameters = Sequence[str | int | float]

_OF_SESSION = "stream_id IN (SELECT id FROM streams WHERE session_id = ?)"


class StreamRow(msgspec.Struct, frozen=True):
    """A stream, with how many messages and bytes it carried."""

    id: int
    protocol: str | None
    transport: Transport
    client: str
    server: str
    opened_ns: int
    closed_ns: int | None
    close_reason: str | None
    messages: int
    bytes: int


class MessageRow(msgspec.Struct, frozen=True):
    """A message as it is stored."""

    id: int
    stream_id: int
    direction: Direction
    ts_ns: int
    name: str
    fields: dict[str, Any]
    offset: int
    length: int
    game_id: int | None
    event_id: int | None


class DiagnosticRow(msgspec.Struct, frozen=True):
    """A diagnostic as it is stored, with the name and place of the message it is about, if there is one."""

    id: int
    stream_id: int
    direction: Direction
    message_id: int | None
    ts_ns: int
    severity: Severity
    group: Group
    code: str
    text: str
    offset: int
    length: int
    expected: str | None
    clause: str | None
    blame: Blame
    message: str | None
    message_offset: int | None
    message_length: int | None


class ChunkRow(msgspec.Struct, frozen=True):
    """Bytes as they came, or a gap: then `data` is None, and so is `length` where nobody knows it."""

    id: int
    stream_id: int
    direction: Direction
    ts_ns: int
    offset: int
    length: int | None
    data: bytes | None


def streams(timeline: Timeline) -> list[StreamRow]:
    """The session's streams, oldest first."""
    rows = timeline.connection.execute(
        "SELECT s.id, s.protocol, s.transport, s.client, s.server, s.opened_ns, s.closed_ns, s.close_reason,"
        " coalesce(told.messages, 0),"
        " (SELECT coalesce(sum(length), 0) FROM chunks WHERE stream_id = s.id AND data IS NOT NULL)"
        " FROM streams AS s LEFT JOIN"
        " (SELECT stream_id, count(*) AS messages FROM messages GROUP BY stream_id) AS told"
        " ON told.stream_id = s.id WHERE s.session_id = ? ORDER BY s.id",
        (timeline.session.id,),
    )
    return [StreamRow(*row) for row in rows]


def messages(
    timeline: Timeline, condition: str = "1", parameters: Parameters = (), after: int = 0
) -> Iterator[MessageRow]:
    """The session's messages numbered above `after` that meet an SQL condition on `messages` (alias m)."""
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.direction, m.ts_ns, m.name, m.fields, m.offset, m.length, m.game_id,"
        f" m.event_id FROM messages AS m WHERE m.id > ? AND m.{_OF_SESSION} AND ({condition}) ORDER BY m.id",
        [after, timeline.session.id, *parameters],
    )
    for number, stream, direction, ts_ns, name, fields, offset, length, game, event in rows:
        yield MessageRow(
            number, stream, direction, ts_ns, name, msgspec.json.decode(fields), offset, length, game, event
        )


def diagnostics(
    timeline: Timeline, condition: str = "1", parameters: Parameters = ()
) -> Iterator[DiagnosticRow]:
    """The session's diagnostics that meet an SQL condition on `diagnostics` (alias d), in order of time."""
    rows = timeline.connection.execute(
        "SELECT d.id, d.stream_id, d.direction, d.message_id, d.ts_ns, d.severity, d.grp, d.code, d.text,"
        " d.offset, d.length, d.expected, d.clause, d.blame, about.name, about.offset, about.length"
        " FROM diagnostics AS d LEFT JOIN messages AS about ON about.id = d.message_id"
        f" WHERE d.{_OF_SESSION} AND ({condition}) ORDER BY d.ts_ns, d.id",
        [timeline.session.id, *parameters],
    )
    return (DiagnosticRow(*row) for row in rows)


def chunks(connection: sqlite3.Connection, stream_id: int) -> Iterator[ChunkRow]:
    """A stream's bytes and gaps in both directions, as they came."""
    rows = connection.execute(
        "SELECT id, stream_id, direction, ts_ns, offset, length, data FROM chunks"
        " WHERE stream_id = ? ORDER BY id",
        (stream_id,),
    )
    return (ChunkRow(*row) for row in rows)


def datagrams(timeline: Timeline) -> Iterator[tuple[ChunkRow, int]]:
    """The session's bytes and gaps as they came, each with the bytes that the capture cut off it.

    Where bytes were cut off a datagram, the row of the gap is told with the datagram, not by itself.
    """
    # The plus keeps SQLite from taking the index by stream and sorting the whole session by id.
    rows = timeline.connection.execute(
        "SELECT id, stream_id, direction, ts_ns, offset, length, data FROM chunks AS c"
        f" WHERE +c.{_OF_SESSION} ORDER BY id",
        (timeline.session.id,),
    )
    held: ChunkRow | None = None
    for row in (ChunkRow(*row) for row in rows):
        if held is not None:
            if _cut_off(held, row):
                yield held, row.length or 0
                held = None
                continue
            yield held, 0
        held = row
    if held is not None:
        yield held, 0


def _cut_off(chunk: ChunkRow, gap: ChunkRow) -> bool:
    """Whether a gap is the rest of the datagram that was recorded right before it."""
    return (
        gap.data is None
        and chunk.data is not None
        and gap.id == chunk.id + 1
        and (gap.stream_id, gap.direction, gap.ts_ns) == (chunk.stream_id, chunk.direction, chunk.ts_ns)
        and gap.offset == chunk.offset + len(chunk.data)
    )


class Bytes:
    """Finds the bytes that a diagnostic points at.

    What it learns of a stream's chunks (where they begin, when they came) it keeps: 24 bytes for each.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[int, Direction], tuple[array[int], array[int], array[int]]] = {}

    def around(self, flaw: DiagnosticRow) -> tuple[int, bytes] | None:
        """The message, or else the datagram, that a diagnostic points into: its offset and its bytes.

        None where no bytes belong to it.
        """
        ids, offsets, times = self._chunks(flaw.stream_id, flaw.direction)
        if flaw.message_offset is not None and flaw.message_length is not None:
            end = flaw.message_offset + flaw.message_length
            pieces = []
            place = bisect_right(offsets, flaw.message_offset) - 1
            while 0 <= place < len(ids) and offsets[place] < end:
                start, data = offsets[place], self._data(ids[place])
                pieces.append(data[max(0, flaw.message_offset - start) : end - start])
                place += 1
            return flaw.message_offset, b"".join(pieces)
        # An offset alone does not tell: where a datagram ends the next one begins, and perhaps empty ones.
        last = place = bisect_right(offsets, flaw.offset) - 1
        while place >= 0:
            if times[place] == flaw.ts_ns:
                return offsets[place], self._data(ids[place])
            if offsets[place] < flaw.offset:
                break
            place -= 1
        if last >= 0 and flaw.length > 0:
            return offsets[last], self._data(ids[last])
        return None

    def _chunks(self, stream_id: int, direction: Direction) -> tuple[array[int], array[int], array[int]]:
        """Numbers, offsets and times of what came in one direction of a stream."""
        known = self._known.get((stream_id, direction))
        if known is None:
            known = self._known[stream_id, direction] = (array("q"), array("q"), array("q"))
            rows = self._connection.execute(
                "SELECT id, offset, ts_ns FROM chunks"
                " WHERE stream_id = ? AND direction = ? AND data IS NOT NULL ORDER BY id",
                (stream_id, direction),
            )
            for row in rows:
                for column, value in zip(known, row, strict=True):
                    column.append(value)
        return known

    def _data(self, chunk_id: int) -> bytes:
        row = self._connection.execute("SELECT data FROM chunks WHERE id = ?", (chunk_id,)).fetchone()
        data: bytes = row[0]
        return data
