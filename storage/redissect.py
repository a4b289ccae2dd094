"""All derived rows of a session made again from its recorded bytes, by the dissectors of today.

Kept are the sessions, the chunks, and what only the source could know of a stream: who it was with, when it
began and ended, and what the network said about it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from importlib.metadata import version

from dissectors.inspector import DERIVED_CODES, DIVERGENCE, DecodeAs, Inspector
from dissectors.records import Chunk, End, Fault, Gap, Item, Stream
from dissectors.registry import dissector_of, installed, not_installed
from dissectors.table import Ids
from storage.recorder import BATCH, lock
from storage.rows import INSERTS, gather, no_rows
from storage.schema import StorageError, open_existing, sentence
from storage.timeline import SessionRow, Timeline, sessions
from storage.traffic import datagrams

# From what refers to what is referred to.
_DERIVED = {
    "snapshots": "table_id IN (SELECT id FROM tables WHERE session_id = ?)",
    "diagnostics": "stream_id IN (SELECT id FROM streams WHERE session_id = ?)",
    "messages": "stream_id IN (SELECT id FROM streams WHERE session_id = ?)",
    "events": "session_id = ?",
    "games": "session_id = ?",
    "tables": "session_id = ?",
}

# What a Fault comes to: all other findings about the network follow from the bytes.
_FOLLOWS = ", ".join(map(repr, DERIVED_CODES))
_IS_FAULT = f"(d.code = '{DIVERGENCE}' OR d.grp = 'network' AND d.code NOT IN ({_FOLLOWS}))"

Spoken = tuple[str, str, str]
"""Transport and address of a server, and the protocol it was taken to speak."""


def redissect(
    path: str, number: int | None, decode_as: DecodeAs, on_progress: Callable[[int, int], None]
) -> list[Spoken]:
    """Dissect the session `number`, or all of them, again in one transaction.

    `on_progress` is told how many chunks of how many are done. Gives the servers that were taken to speak a
    protocol before and are not recognised now. A single session that is not the last gets new numbers for its
    rows, as those after its old ones are taken. Raises StorageError; the database is then as it was.
    """
    connection = open_existing(path)
    try:
        held = lock(path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                chosen = [row for row in sessions(connection) if number is None or row.id == number]
                return _all(connection, chosen, decode_as, on_progress)
        finally:
            # Closed first, as closing the other descriptor ends the locks that SQLite has on the file.
            connection.close()
            if held is not None:
                os.close(held)
    except sqlite3.Error as error:
        raise StorageError(sentence(path, error)) from error


def _all(
    connection: sqlite3.Connection,
    chosen: list[SessionRow],
    decode_as: DecodeAs,
    on_progress: Callable[[int, int], None],
) -> list[Spoken]:
    recorded = [_Recorded(Timeline(connection, row)) for row in chosen]
    spoken = {protocol for session in recorded for _, _, protocol in session.spoken}
    unknown = sorted(protocol for protocol in spoken if dissector_of(protocol) is None)
    if unknown:
        raise StorageError(f"what is stored would be lost: {not_installed(unknown[0])}")
    for row in chosen:
        for table, condition in _DERIVED.items():
            connection.execute(f"DELETE FROM {table} WHERE {condition}", (row.id,))
    total = sum(session.chunks for session in recorded)
    done = 0
    lost: list[Spoken] = []
    for session in recorded:
        inspector = Inspector(installed().dissectors.values(), _last_ids(connection), decode_as)
        for item in session.items():
            inspector.feed(item)
            done += isinstance(item, Chunk)
            if done % BATCH == 0:
                _write(session.timeline, inspector)
                on_progress(done, total)
        inspector.finish()
        _write(session.timeline, inspector)
        connection.execute(
            "UPDATE sessions SET kiebitz_version = ? WHERE id = ?",
            (version("kiebitz"), session.timeline.session.id),
        )
        lost += sorted(session.spoken - _spoken(session.timeline))
    return lost


class _Recorded:
    """What is kept of a session; to be made while its diagnostics are still there."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.spoken = _spoken(timeline)
        self.chunks: int = self._rows(
            "SELECT count(*) FROM chunks AS c JOIN streams AS s ON s.id = c.stream_id WHERE s.session_id = ?"
        ).fetchone()[0]
        self._streams: dict[int, Stream] = {}
        ends: list[tuple[int, int, str]] = []
        for number, transport, client, server, opened, closed, reason in self._rows(
            "SELECT id, transport, client, server, opened_ns, closed_ns, close_reason FROM streams"
            " WHERE session_id = ? ORDER BY id"
        ):
            self._streams[number] = Stream(number, transport, client, server, opened)
            if closed is not None:
                ends.append((closed, number, reason))
        self._ends = deque(
            End(self._streams[number], closed, reason) for closed, number, reason in sorted(ends)
        )
        self._faults = deque(
            Fault(self._streams[number], *rest)
            for number, *rest in self._rows(
                "SELECT d.stream_id, d.direction, d.ts_ns, d.offset, d.code, d.text, d.length,"
                " d.grp, d.blame, d.expected"
                " FROM diagnostics AS d"
                f" JOIN streams AS s ON s.id = d.stream_id WHERE s.session_id = ? AND {_IS_FAULT}"
                " ORDER BY d.id"
            )
        )

    def items(self) -> Iterator[Item]:
        """What the session's source gave."""
        for row, missing in datagrams(self.timeline):
            yield from self._before(row.ts_ns)
            stream = self._streams[row.stream_id]
            if row.data is None:
                yield Gap(stream, row.direction, row.ts_ns, row.offset, row.length)
            else:
                yield Chunk(stream, row.direction, row.ts_ns, row.offset, row.data, missing)
        yield from self._before(None)

    def _before(self, ts_ns: int | None) -> Iterator[Item]:
        """The faults and ends from before a moment that have not been given yet; all, if that is None."""
        while self._faults and (ts_ns is None or self._faults[0].ts_ns < ts_ns):
            yield self._faults.popleft()
        while self._ends and (ts_ns is None or self._ends[0].ts_ns < ts_ns):
            yield self._ends.popleft()

    def _rows(self, query: str) -> sqlite3.Cursor:
        return self.timeline.connection.execute(query, (self.timeline.session.id,))


def _spoken(timeline: Timeline) -> set[Spoken]:
    rows = timeline.connection.execute(
        "SELECT DISTINCT transport, server, protocol FROM streams"
        " WHERE session_id = ? AND protocol IS NOT NULL",
        (timeline.session.id,),
    )
    return {(transport, server, protocol) for transport, server, protocol in rows}


def _last_ids(connection: sqlite3.Connection) -> Ids:
    """The last number of each kind of record that is left."""
    return Ids(
        *(
            connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
            for table in ("tables", "games", "messages", "events")
        )
    )


def _write(timeline: Timeline, inspector: Inspector) -> None:
    rows = no_rows()
    gather(inspector.drain(), timeline.session.id, rows)
    for table, batch in rows.items():
        timeline.connection.executemany(INSERTS[table], batch)
