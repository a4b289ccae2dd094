"""The recorder: items in, rows of one session out.

Rows are gathered and written in batches, one transaction each. The caller commits at least every
`COMMIT_EVERY_S`, and when the recorder is `full`; all that is committed survives the death of the process. A
batch that cannot be written is kept for the next `write`.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Literal

from kiebitz.dissectors.escaping import encodable
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Altered, Chunk, Direction, End, Findings, Gap, Ids, Item
from kiebitz.dissectors.registry import protocol_files
from kiebitz.dissectors.session_numbering import NUMBERED, Numbers
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.database.opening import LimitedConnection, merge_wal, never, open_for_writing
from kiebitz.storage.database.protocol_files import store_files, store_losses
from kiebitz.storage.database.recorder_lock import lock_with
from kiebitz.storage.database.schema import MEMORY, SessionRow, StorageError, create_indexes, scalar, sentence
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.recording.inspection import Inspection, InspectionFactory, LocalInspection
from kiebitz.storage.recording.rows import (
    INSERT_SESSION,
    SEVERITY_INDEX,
    Row,
    empty_rows,
    insert,
)

if TYPE_CHECKING:
    from kiebitz.dissectors.anonymizing.anonymizer import Anonymizer

COMMIT_EVERY_S = 0.2
"""Maximum seconds of recording lost in a crash."""

BATCH = 5000
"""Number of items after which rows are written, so that memory stays flat."""

_BATCH_BYTES = 4 << 20
"""The same in bytes of the items."""

_INDEX_FACTOR = 1.25
"""Ratio of a database's size with indexes to its size without."""

SessionKind = Literal["relay", "sniff", "import", "replay", "collect"]


class Recorder:
    """A recording of one session into the database at `path`, or `MEMORY`. Raises StorageError if it fails.

    Its methods are called in this order: `record` with items, then `gather` and `write`, or both as `commit`,
    again and again; at the end `finish` and `write`, then `release`, or all three as `close`. After an error
    of `write`, it may be called again; `release` is always possible.

    `name` is the name of the session, the source's file name if None. `started_ns` is its time zero; None
    takes the time of the first item. `inspect` creates the inspection of the items. With an `anonymizer` only
    its output is recorded, without source and name, which may reveal a file's name.
    """

    _inspection: Inspection
    _unwritten: SessionRow | None
    numbers: Numbers
    """The numbers of the session."""

    def __init__(
        self,
        path: str,
        kind: SessionKind,
        source: str,
        *,
        name: str | None = None,
        started_ns: int | None = None,
        decode_as: DecodeAs | None = None,
        inspect: InspectionFactory = LocalInspection,
        anonymizer: Anonymizer | None = None,
    ) -> None:
        connection = open_for_writing(path)
        with lock_with(path, connection) as held:
            last = last_ids(connection)
            self._begin(path, connection, held, last["sessions"] + 1, started_ns, last)
            self._anonymizer: Anonymizer | None = anonymizer
            self._inspection = inspect(self.session_id, self._ids, decode_as or {})
            self._inspection.on_full = self.commit
            # An import into a new file creates its indexes at the end, which halves their cost.
            self.indexed = kind != "import" or any(last.values())
            if self.indexed:
                self._create_indexes()
            session = SessionRow(
                id=self.session_id,
                name=encodable(name or os.path.basename(source)),
                kind=kind,
                source=encodable(source),
                started_ns=started_ns,
                kiebitz_version=kiebitz_version(),
                before={table: last[table] for table in NUMBERED},
            )
            if anonymizer is not None:
                session = session.anonymized()
            self.numbers = Timeline(connection, session).numbers
            self._unwritten = session
            if kind != "import":
                # Other programs may look for a live session before it has any rows.
                self.write()

    def _begin(
        self,
        path: str,
        connection: LimitedConnection,
        held: int | None,
        session_id: int,
        started_ns: int | None,
        before: dict[str, int],
    ) -> None:
        """Initialize an empty session; `before` are the last used ids by table."""
        self.path = path
        self.connection = connection
        self._lock = held
        self.stream_ids: Iterator[int] = count(before["streams"] + 1)
        self.session_id = session_id
        self.started_ns = started_ns
        self._chunk_id = before["chunks"]
        self._ids = Ids(before["tables"], before["games"], before["messages"], before["events"])
        self._unwritten = None
        """The session's row until it is written: an import that fails at once leaves none."""
        self._rows = empty_rows()
        self._chunks: list[Chunk] = []
        """Chunks without a row yet."""
        self._is_stopped = False
        self._end_of_indexing = 0.0
        self.counts: Counter[str] = Counter()
        """The session's numbers of streams, games, messages, events and diagnostics so far.

        Diagnostics are also counted by severity (`error`, `warning` and `note`), and alterations of messages.
        """
        self.missing: Counter[tuple[int, Direction]] = Counter()
        """Number of bytes known to be missing, by stream and direction."""
        self._before = before
        self.indexed = True
        """True if the database has its indexes, unless they could not be created."""
        self._pending = 0
        self._pending_bytes = 0
        self._latest_ns = 0
        self._ended_ns: int | None = None
        self.lacks: str | None = None
        """The losses of the session's capture, in clauses; set it before the end."""
        self._finished = False
        self._anonymizer = None

    @property
    def full(self) -> bool:
        """True if enough is gathered for a commit, so that memory stays flat."""
        return self._pending >= BATCH or self._pending_bytes >= _BATCH_BYTES

    @property
    def size(self) -> int:
        """The size of the database in bytes, including uncommitted rows and later indexes."""
        pages = scalar(self.connection, "PRAGMA page_count")
        written = pages * scalar(self.connection, "PRAGMA page_size") + self._pending_bytes
        return int(written if self.indexed else written * _INDEX_FACTOR)

    def record(self, items: Iterable[Item]) -> None:
        """Record the next items, in order."""
        if self._anonymizer is not None:
            items = [other for item in items for other in self._anonymizer.feed(item)]
        self._record(items)

    def _record(self, items: Iterable[Item]) -> None:
        feed = self._inspection.feed
        latest_ns = self._latest_ns
        chunks = self._chunks
        for item in items:
            if self._is_stopped and not isinstance(item, End):
                continue
            if isinstance(item, Chunk):
                chunks.append(item)
                if item.missing:
                    self._append_chunks(chunks)
                    end = item.offset + len(item.data)
                    self._gap(Gap(item.stream, item.direction, item.ts_ns, end, item.missing))
            elif isinstance(item, Gap):
                self._append_chunks(chunks)
                self._gap(item)
            elif isinstance(item, Altered):
                self._append_chunks(chunks)
                self._altered(item)
            feed(item)
            if item.ts_ns > latest_ns:
                latest_ns = item.ts_ns
            if self.started_ns is None:
                self.started_ns = min(item.ts_ns, item.stream.opened_ns)
            self._pending += 1
        self._append_chunks(chunks)
        self._latest_ns = latest_ns

    def _append_chunks(self, chunks: list[Chunk]) -> None:
        """Assign ids to chunks, append their rows, and clear the list."""
        lengths = [len(chunk.data) for chunk in chunks]
        first = self._chunk_id + 1
        self._chunk_id += len(chunks)
        self._rows["chunks"].extend(
            (
                range(first, first + len(chunks)),
                [chunk.stream.id for chunk in chunks],
                [chunk.direction for chunk in chunks],
                [chunk.ts_ns for chunk in chunks],
                [chunk.offset for chunk in chunks],
                lengths,
                [chunk.data for chunk in chunks],
            )
        )
        self._pending_bytes += sum(lengths)
        chunks.clear()

    def set_on_full(self, call: Callable[[], object]) -> None:
        """Set what to do when findings take much memory, also while items are recorded.

        By default the recorder commits. The function must gather and write.
        """
        self._inspection.on_full = call

    def stop_soon(self, indexing_s: float = 0.3) -> None:
        """Ignore further items except ends, after the next message.

        Signal handlers may use this. The creation of indexes may take no longer than `indexing_s` seconds.
        """
        self._end_of_indexing = monotonic() + indexing_s
        self._is_stopped = True
        self._inspection.stop_soon()

    def note(self, table: Literal["taps", "tapped"], row: Row) -> None:
        """Add a row of the source's own progress to the next commit, together with its items."""
        self._rows[table].append(row)

    def gather(self) -> Findings:
        """Return the findings since the last call; the next `write` writes their rows."""
        self._append_chunks(self._chunks)
        return self._inspection.gather(self._rows)

    def finish(self) -> Findings:
        """Finish the inspection, and return the last findings. The next `write` ends the session."""
        if self._anonymizer is not None:
            self._record(self._anonymizer.finish())
        self._inspection.finish()
        if self._inspection.is_busy:
            if not self.indexed:
                # Without space for them there may be enough for the rows, and they are tried again.
                with suppress(sqlite3.Error):
                    self._create_indexes()
            while self._inspection.is_busy:
                self.gather()
                self.write()
        self._finished = True
        self._ended_ns = max(self._latest_ns, self.started_ns or 0)
        return self.gather()

    def write(self) -> None:
        """Commit all gathered rows. Raises StorageError on failure, and keeps the rows for another try."""
        try:
            with self.connection:
                if self._unwritten is not None:
                    self.connection.execute(INSERT_SESSION, self._unwritten.columns())
                    if self._unwritten.kind != "import":
                        # Other programs may open the database before a protocol is recognised.
                        store_files(self.connection, (file.protocol for file in protocol_files()))
                for table, rows in self._rows.items():
                    if rows:
                        insert(self.connection, table, rows)
                self.connection.execute(
                    "UPDATE sessions SET started_ns = ?, ended_ns = ? WHERE id = ?",
                    (self.started_ns, self._ended_ns, self.session_id),
                )
                if self._finished and self.lacks is not None:
                    store_losses(self.connection, self.session_id, self.lacks)
        except sqlite3.DataError as error:
            raise StorageError(f"{self.path}: a row cannot be written: {error}") from error
        except sqlite3.Error as error:
            raise StorageError(sentence(self.path, error)) from error
        self._unwritten = None
        for table, rows in self._rows.items():
            if table in ("streams", "games"):
                newest = max(rows.columns[0], default=0) - self._before[table]
                self.counts[table] = max(self.counts[table], newest)
            else:
                self.counts[table] += len(rows)
            if table == "diagnostics":
                self.counts.update(rows.columns[SEVERITY_INDEX])
            rows.clear()
        self._pending = 0
        self._pending_bytes = 0
        if self._finished and not self.indexed:
            try:
                self._create_indexes()
            except sqlite3.Error as error:
                raise StorageError(sentence(self.path, error)) from error

    def commit(self) -> Findings:
        """Gather and write."""
        found = self.gather()
        self.write()
        return found

    def close(self) -> Findings:
        """End the session, write it and close the file. Raises StorageError."""
        found = self.finish()
        self.write()
        self.release()
        return found

    def rename(self, name: str) -> None:
        """Rename the session. Raises StorageError."""
        try:
            with self.connection:
                self.connection.execute("UPDATE sessions SET name = ? WHERE id = ?", (name, self.session_id))
        except sqlite3.Error as error:
            raise StorageError(sentence(self.path, error)) from error

    def release(self) -> None:
        """Close the file. A database in memory stays open for other users of its connection."""
        self._inspection.close()
        self._close_file()

    def _close_file(self) -> None:
        if self.path != MEMORY:
            merge_wal(self.connection)
            self.connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _create_indexes(self) -> None:
        self.connection.is_cancelled = self._is_impatient
        try:
            create_indexes(self.connection)
            self.connection.commit()
            self.indexed = True
        except sqlite3.OperationalError:
            if not self._is_impatient():
                raise
        finally:
            self.connection.is_cancelled = never

    def _is_impatient(self) -> bool:
        return self._is_stopped and monotonic() > self._end_of_indexing

    def _gap(self, gap: Gap) -> None:
        if gap.length:
            self.missing[gap.stream.id, gap.direction] += gap.length
        self._chunk_id += 1
        self._rows["chunks"].append(
            (self._chunk_id, gap.stream.id, gap.direction, gap.ts_ns, gap.offset, gap.length, None)
        )

    def _altered(self, item: Altered) -> None:
        self._rows["alterations"].append(
            (
                item.stream.id,
                item.direction,
                item.ts_ns,
                self._chunk_id,
                item.offset,
                item.length,
                item.action,
                item.rule,
                item.sent_ns,
                item.name,
                item.fields_json,
                item.original,
            )
        )
        self._pending_bytes += len(item.original or b"") + len(item.fields_json or "")


def last_ids(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the last used id of each table whose ids are assigned before rows are written."""
    tables = ("sessions", "streams", "chunks", "tables", "games", "messages", "events")
    return {table: scalar(connection, f"SELECT coalesce(max(id), 0) FROM {table}") for table in tables}
