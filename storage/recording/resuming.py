"""Continuation of a session whose recorder has died.

A recorder commits bytes together with all findings from them, except that some of the findings from the last
piece may be missing. So an inspector that is fed with the recorded bytes reaches the state of the dead one.
Its findings that are already stored are discarded, and the missing ones are written with the next commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Stream, TableInfo
from kiebitz.storage.database.opening import open_existing, open_to_change, recover
from kiebitz.storage.database.recorder_lock import lock_with
from kiebitz.storage.database.schema import SESSION_CONDITIONS, StorageError, scalar
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.recorder import BATCH, last_ids
from kiebitz.storage.recording.rotation import RotatingRecorder
from kiebitz.storage.recording.rows import Rows, empty_rows


class ResumedRecorder(RotatingRecorder):
    """Continues session `number` of the last of the databases at `paths`, with its original options.

    The other databases are earlier parts of the same recording. Raises StorageError if one of them is
    missing, the session does not exist or is not the last one, or its rows do not follow from its bytes, as
    after an update of Kiebitz.
    """

    def __init__(self, paths: Sequence[str], number: int, decode_as: DecodeAs | None = None) -> None:
        path = paths[-1]
        # Nothing is written here, so that a full disk or another writer does not matter yet.
        connection = open_to_change(path)
        self.items = 0
        """Number of recorded items of its source."""
        self.tables: list[TableInfo] = []
        self.open_streams: list[Stream] = []
        with lock_with(path, connection) as held:
            connection.execute("PRAGMA synchronous = NORMAL")
            found = sessions(connection)
            if not found or found[-1].id != number:
                raise StorageError(f"{path}: its session {number} cannot be continued: it is not the last")
            session = found[-1]
            self.is_over = session.ended_ns is not None
            before = _last_ids_before(connection, number)
            self._begin(path, connection, held, number, session.started_ns, before)
            self.numbers = Timeline(connection, session).numbers
            self._inspection = LocalInspection(number, self._ids, decode_as or {})
            if not self.is_over:
                self._catch_up(paths[:-1], Timeline(connection, session))
            self._inspection.on_full = self.commit

    def _catch_up(self, before: Sequence[str], timeline: Timeline) -> None:
        streams: dict[int, Stream] = {}
        last = last_ids(self.connection)
        found = _FoundRows()
        for path in before:
            recover(path)
            with closing(open_existing(path)) as connection:
                self._feed(RecordedItems(Timeline(connection, sessions(connection)[-1])), streams, found)
                # The last database may not have any rows yet.
                last = {table: max(number, last_ids(connection)[table]) for table, number in last.items()}
        recorded = RecordedItems(timeline)
        self._feed(recorded, streams, found)
        self.open_streams = [streams.get(stream.id, stream) for stream in recorded.open_streams()]
        # Messages whose event is undecided have ids, but no rows.
        if not found.allow(last) or self._ids.message < last["messages"]:
            raise StorageError(f"{self.path}: its rows do not follow from its bytes")
        self._chunk_id = last["chunks"]
        for table in ("streams", "chunks", "alterations", "games", "messages", "events", "diagnostics"):
            self.counts[table] = self._count(table)
        self.counts.update(
            dict(
                self.connection.execute(
                    f"SELECT severity, count(*) FROM diagnostics WHERE {SESSION_CONDITIONS['diagnostics']}"
                    " GROUP BY severity",
                    (self.session_id,),
                ).fetchall()
            )
        )
        for stream, direction, length in self.connection.execute(
            "SELECT c.stream_id, c.direction, sum(c.length) FROM chunks AS c JOIN streams AS s"
            " ON s.id = c.stream_id WHERE s.session_id = ? AND c.data IS NULL AND c.length > 0 GROUP BY 1, 2",
            (self.session_id,),
        ):
            self.missing[stream, direction] = length
        for table in ("streams", "chunks", "games"):
            self._before[table] = last[table] - self.counts[table]
        stored = {table: self._count(table) for table in ("diagnostics", "snapshots")}
        found.put_missing(self._rows, last, stored)

    def _count(self, table: str) -> int:
        """Return the number of the session's rows in a table."""
        query = f"SELECT count(*) FROM {table} WHERE {SESSION_CONDITIONS[table]}"
        return int(scalar(self.connection, query, self.session_id))

    def _feed(self, recorded: RecordedItems, streams: dict[int, Stream], found: _FoundRows) -> None:
        """Feed the items of one database; `streams` keeps one object for a stream across databases."""
        found.begin()

        def gather() -> None:
            self.tables += found.gather(self._inspection)

        self._inspection.on_full = gather
        items = recorded.items()
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            if following is None or self.items % BATCH == 0:
                gather()
            if following is None:
                # All rows of the last item are compared with the stored ones.
                self._inspection.on_full = lambda: None
            item.stream = streams.setdefault(item.stream.id, item.stream)
            self._inspection.feed(item)
            self._latest_ns = max(self._latest_ns, item.ts_ns)
            self.items += 1
            item = following
        gather()


class _FoundRows:
    """The rows that follow from recorded items: those of the last item, and how many there were before."""

    def __init__(self) -> None:
        self._greatest = dict.fromkeys(("tables", "games", "events"), 0)
        """Greatest id of each table."""
        self.begin()

    def begin(self) -> None:
        """Begin with the items of the next database."""
        self._counts = dict.fromkeys(("diagnostics", "snapshots"), 0)
        self._rows = empty_rows()
        self._greatest_before = dict(self._greatest)

    def gather(self, inspection: LocalInspection) -> list[TableInfo]:
        """Take the rows since the last call in place of those taken then; return the new tables."""
        for table in self._counts:
            self._counts[table] += len(self._rows[table])
        self._greatest_before = dict(self._greatest)
        self._rows = empty_rows()
        tables = inspection.gather(self._rows).tables
        for table, id in self._greatest.items():
            self._greatest[table] = max(id, *self._rows[table].columns[0], 0)
        return tables

    def allow(self, last: Mapping[str, int]) -> bool:
        """Return True if a database with these greatest ids has all rows but some of the last item."""
        return all(self._greatest_before[table] <= last[table] <= id for table, id in self._greatest.items())

    def put_missing(self, rows: Rows, last: Mapping[str, int], stored: Mapping[str, int]) -> None:
        """Append the rows that are not stored; `stored` are numbers of rows of the tables without ids."""
        for table, found in self._rows.items():
            for number, row in enumerate(found, 1):
                if table in stored:
                    is_stored = self._counts[table] + number <= stored[table]
                else:
                    # Rows of streams and games may have changed.
                    is_stored = table in last and table not in ("streams", "games") and row[0] <= last[table]
                if not is_stored:
                    rows[table].append(row)


def _last_ids_before(connection: sqlite3.Connection, number: int) -> dict[str, int]:
    """Return the last used ids before the last session, `number`, by table."""
    return {
        table: scalar(
            connection,
            f"SELECT coalesce(max(id), 0) FROM {table} WHERE NOT {SESSION_CONDITIONS[table]}",
            number,
        )
        for table in ("streams", "chunks", "tables", "games", "messages", "events")
    }
