"""The recorded bytes and gaps of a session, in order or at a given position."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame, Framer
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Direction
from kiebitz.storage.database.schema import GREATEST_ID, SESSION_CONDITIONS, scalar
from kiebitz.storage.read.message_queries import StoredDiagnostic
from kiebitz.storage.read.timeline import Timeline, check_ascending, sessions


class ChunkRow(msgspec.Struct, frozen=True):
    """Recorded bytes, or a gap: then `data` is None, and `length`, too, if it is unknown."""

    id: int
    stream_id: int
    direction: Direction
    ts_ns: int
    offset: int
    length: int | None
    data: bytes | None


def chunks(connection: sqlite3.Connection, stream_id: int) -> Iterator[ChunkRow]:
    """Yield a stream's bytes and gaps in both directions, in order."""
    rows = connection.execute(
        "SELECT id, stream_id, direction, ts_ns, offset, length, data FROM chunks"
        " WHERE stream_id = ? ORDER BY id",
        (stream_id,),
    )
    return (ChunkRow(*row) for row in check_ascending(rows))


def datagrams(
    timeline: Timeline, streams: Collection[int] | None = None, after: int = 0
) -> Iterator[tuple[ChunkRow, int]]:
    """Yield the session's bytes and gaps in order, each with the number of bytes that the capture truncated.

    The gap of a truncated datagram is yielded with the datagram, not by itself. In a byte stream every gap is
    yielded by itself. With `streams`, only theirs are read; `after` is the id of the last row to skip.
    """
    udp = {
        number
        for (number,) in timeline.connection.execute(
            "SELECT id FROM streams WHERE session_id = ? AND transport = 'udp'", (timeline.session.id,)
        )
    }
    # The plus keeps SQLite from using the index by stream and sorting the whole session by id.
    chosen: tuple[str, int | str] = (SESSION_CONDITIONS["chunks"], timeline.session.id)
    if streams is not None:
        chosen = "stream_id IN (SELECT value FROM json_each(?))", to_json(sorted(streams))
    rows = timeline.connection.execute(
        "SELECT id, stream_id, direction, ts_ns, offset, length, data FROM chunks AS c"
        f" WHERE c.id > ? AND +c.{chosen[0]} ORDER BY id",
        (after, chosen[1]),
    )
    held: ChunkRow | None = None
    for row in (ChunkRow(*row) for row in check_ascending(rows)):
        if held is not None:
            if row.stream_id in udp and _is_truncation(held, row):
                yield held, row.length or 0
                held = None
                continue
            yield held, 0
        held = row
    if held is not None:
        yield held, 0


def _is_truncation(chunk: ChunkRow, gap: ChunkRow) -> bool:
    """Return True if a gap is the rest of the datagram that was recorded right before it."""
    return (
        gap.data is None
        and chunk.data is not None
        and gap.id == chunk.id + 1
        and (gap.stream_id, gap.direction, gap.ts_ns) == (chunk.stream_id, chunk.direction, chunk.ts_ns)
        and gap.offset == chunk.offset + len(chunk.data)
    )


def find_duplicate_session(connection: sqlite3.Connection, session_id: int) -> int | None:
    """Return the first earlier session with the same traffic; None if there is none. Raises sqlite3.Error."""
    rows = {row.id: row for row in sessions(connection)}
    this = rows[session_id]
    for row in rows.values():
        if row.id >= session_id:
            break
        # Only if this is equal are all chunks compared.
        if (row.started_ns, row.ended_ns) == (this.started_ns, this.ended_ns):
            pairs = zip_longest(_traffic(Timeline(connection, row)), _traffic(Timeline(connection, this)))
            if all(one == other for one, other in pairs):
                return row.id
    return None


def _traffic(timeline: Timeline) -> Iterator[tuple[Any, ...]]:
    """Return a session's bytes and gaps in order, each with its addresses."""
    # The plus keeps SQLite from using the index by stream and sorting the whole session by id.
    return timeline.connection.execute(
        "SELECT s.transport, s.client, s.server, c.direction, c.ts_ns, c.offset, c.length, c.data"
        " FROM chunks AS c JOIN streams AS s ON s.id = +c.stream_id WHERE s.session_id = ? ORDER BY c.id",
        (timeline.session.id,),
    )


class ByteRange(msgspec.Struct, frozen=True):
    """Contiguous bytes of one direction, or a gap among them.

    In a gap `data` is None, and `length`, too, if it is unknown.
    """

    offset: int
    length: int | None
    data: bytes | None


class RecordedBytes:
    """Finds the bytes of diagnostics.

    It caches offsets and times of a stream's chunks: 24 bytes for each.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[int, Direction], tuple[array[int], array[int], array[int]]] = {}

    def datagram(self, diagnostic: StoredDiagnostic) -> tuple[int, bytes] | None:
        """Return offset and bytes of the datagram with a diagnostic; None if it has no bytes."""
        ids, offsets, times = self._chunks(diagnostic.stream.id, diagnostic.direction)
        if diagnostic.message_offset is not None:
            place = bisect_right(offsets, diagnostic.message_offset) - 1
            return diagnostic.message_offset, self._data(ids[place]) if diagnostic.message_length else b""
        # An offset alone is ambiguous: the next datagram begins where one ends, and there may be empty ones.
        last = place = bisect_right(offsets, diagnostic.offset) - 1
        while place >= 0:
            if times[place] == diagnostic.ts_ns:
                return offsets[place], self._data(ids[place])
            if offsets[place] < diagnostic.offset:
                break
            place -= 1
        if last >= 0 and diagnostic.length > 0:
            return offsets[last], self._data(ids[last])
        return None

    def between(self, stream_id: int, direction: Direction, start: int, end: int) -> list[ByteRange]:
        """Return the bytes of a direction from offset `start` to `end`, with whole gaps."""
        ids, offsets, _ = self._chunks(stream_id, direction)
        # The last chunk before `start` may reach beyond it. Gaps are recorded between their neighbouring
        # chunks.
        before = bisect_left(offsets, start) - 2
        after = bisect_left(offsets, end)
        rows = self._connection.execute(
            "SELECT offset, length, data FROM chunks"
            " WHERE stream_id = ? AND id > ? AND id < ? AND direction = ? ORDER BY id",
            (
                stream_id,
                ids[before] if before >= 0 else 0,
                ids[after] if after < len(ids) else GREATEST_ID,
                direction,
            ),
        )
        return _stretches(rows, start, end)

    def _chunks(self, stream_id: int, direction: Direction) -> tuple[array[int], array[int], array[int]]:
        """Return ids, offsets and times of the chunks in one direction of a stream."""
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
        return bytes(scalar(self._connection, "SELECT data FROM chunks WHERE id = ?", chunk_id))


def bytes_between(
    connection: sqlite3.Connection, stream_id: int, direction: Direction, start: int, end: int
) -> list[ByteRange]:
    """Return the bytes of a direction from offset `start` to `end`, for a single look-up.

    It caches nothing, and in a stream of a million chunks it reads about twenty.
    """
    low, high = (
        scalar(connection, f"SELECT coalesce({end}(id), 0) FROM chunks WHERE stream_id = ?", stream_id)
        for end in ("min", "max")
    )
    # The last chunk before `start` may reach beyond it. Offsets increase with ids.
    while low < high:
        middle = (low + high + 1) // 2
        row = connection.execute(
            "SELECT id, offset FROM chunks WHERE stream_id = ? AND id BETWEEN ? AND ? AND direction = ?"
            " ORDER BY id LIMIT 1",
            (stream_id, middle, high, direction),
        ).fetchone()
        if row is None or row[1] >= start:
            high = middle - 1
        else:
            low = row[0]
    rows = connection.execute(
        "SELECT offset, length, data FROM chunks"
        " WHERE stream_id = ? AND id >= ? AND direction = ? ORDER BY id",
        (stream_id, low, direction),
    )
    return _stretches(_until(end, rows), start, end)


def _until(end: int, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the chunks that begin before an offset, up to the one that reaches it."""
    for row in rows:
        if row[0] >= end:
            return
        yield row
        if row[2] is not None and row[0] + len(row[2]) >= end:
            return


def _stretches(rows: Iterable[tuple[Any, ...]], start: int, end: int) -> list[ByteRange]:
    """Join chunks, given as offset, length and bytes, and cut them to two offsets; gaps stay whole."""
    found: list[ByteRange] = []
    pieces: list[bytes] = []
    begin = start
    for offset, length, data in rows:
        if data is None:
            if start <= offset < end or offset < start < offset + (length or 0):
                found += _joined(begin, pieces)
                pieces = []
                found.append(ByteRange(offset, length, None))
            continue
        piece = data[max(0, start - offset) : end - offset]
        if piece:
            if not pieces:
                begin = max(start, offset)
            pieces.append(piece)
    return found + _joined(begin, pieces)


def _joined(offset: int, pieces: list[bytes]) -> list[ByteRange]:
    data = b"".join(pieces)
    return [ByteRange(offset, len(data), data)] if data else []


_Between = Callable[[int, Direction, int, int], list[ByteRange]]
"""Returns the bytes of a stream's direction from one offset to another."""

_STEP = 1 << 20
"""Number of bytes of a stream that are read at once."""


class RecordedFrames:
    """Reads the frames of messages.

    A message that refers to earlier ones of its stream is read together with those. In the order of a stream,
    each byte is read once.
    """

    def __init__(self, between: _Between) -> None:
        self._between = between
        self._framers: dict[tuple[int, Direction], tuple[Framer, int]] = {}

    def frame(
        self, dissector: Dissector | None, stream_id: int, direction: Direction, offset: int, length: int
    ) -> Frame:
        """Return the frame of the message at an offset of a stream; of one with gaps, the bytes there are."""
        found = self._between(stream_id, direction, offset, offset + length)
        data = b"".join(piece.data for piece in found if piece.data is not None)
        encapsulation = dissector.encapsulation if dissector is not None else None
        if dissector is None or encapsulation is None:
            return Frame(offset, data, length)
        if encapsulation.needs_history(data):
            frame = self._read_on(dissector, stream_id, direction, offset, offset + length)
        else:
            frame = encapsulation.unwrap(data, direction)
        return frame or Frame(offset, data, length)

    def _read_on(
        self, dissector: Dissector, stream_id: int, direction: Direction, offset: int, end: int
    ) -> Frame | None:
        """Read on in a stream, or from its beginning; return the frame at an offset."""
        framer, at = self._framers.get((stream_id, direction)) or (dissector.framer(direction), 0)
        if at > offset:
            framer, at = dissector.framer(direction), 0
        found: Frame | None = None
        while at < end:
            upto = min(end, at + _STEP)
            for piece in self._between(stream_id, direction, at, upto):
                frames: Iterable[Frame]
                if piece.data is None:
                    frames = framer.gap(piece.offset, piece.length)
                else:
                    frames = framer.feed(piece.offset, piece.data)
                found = next((each for each in frames if each.offset == offset), found)
            at = upto
        self._framers[stream_id, direction] = framer, at
        return found
