"""A copy of a live session that receives everything some seconds after it was recorded, for spectators.

Whatever reads the copy cannot see anything newer, so no query of the page needs to know about the delay.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice
from threading import Event, Thread
from typing import Any

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.registry import using_copies
from kiebitz.services.sessions import session_at
from kiebitz.services.standard_streams import warn
from kiebitz.storage.database.opening import open_for_writing
from kiebitz.storage.database.recorder_lock import lock
from kiebitz.storage.database.schema import TABLES, create_indexes
from kiebitz.storage.session.follower import Follower

_LOOK_EVERY_S = 0.25
"""Time in seconds between two looks at the recorded session; the copy is late by at most that much more."""

_BATCH_ROWS = 1000

_GROWING = {
    "tables": "NOT EXISTS (SELECT 1 FROM events AS e WHERE e.table_id = tables.id AND e.ts_ns < ?)",
    **dict.fromkeys(
        ("chunks", "alterations", "messages", "diagnostics", "events", "snapshots"), "ts_ns >= ?"
    ),
}
"""Tables whose rows never change -> the condition that a row is newer than a time."""

_EARLIER = {
    "tables": "session_id < :session",
    "chunks": "stream_id <= :streams",
    "alterations": "stream_id <= :streams",
    "messages": "stream_id <= :streams",
    "diagnostics": "stream_id <= :streams",
    "events": "session_id < :session",
    "snapshots": "table_id IN (SELECT id FROM tables WHERE session_id < :session)",
}
"""The condition that a row belongs to an earlier session of the database."""

_CHANGING = {"sessions": "id", "streams": "session_id", "games": "session_id"}
"""Tables whose rows change when something ends or gets a name -> the column with the session's id."""

_BEGUN = {"streams": "opened_ns", "games": "started_ns"}
"""Changing table -> the column with the time since which a row is there."""

_ENDED = {
    "sessions": ("ended_ns",),
    "streams": ("closed_ns", "close_reason"),
    "games": ("ended_ns", "result"),
}
"""Changing table -> the column with the time of an end, and others that are known only after it."""

Row = tuple[Any, ...]


class _Step(msgspec.Struct, frozen=True):
    """A recording up to a time: the last row of each growing table, and new versions of changing rows.

    The copy may have it at the time `due_s`.
    """

    due_s: float
    upto: Mapping[str, int]
    changed: list[tuple[str, Row]]


class CopiedSession:
    """A recorded session in one database, and its copy in another. Raises StorageError, sqlite3.Error."""

    def __init__(self, path: str, session_id: int, target: str) -> None:
        self.path = path
        self._session_id = session_id
        self._timeline = session_at(path, session_id)
        self._source = self._timeline.connection
        bounds = {"session": session_id, "streams": self._timeline.session.before["streams"]}
        # A session that continues is the only one in its database, and has streams of the one before.
        is_first = self._timeline.session.continues
        self._done = {
            table: 0 if is_first else self._last_row(table, _EARLIER[table], bounds) for table in _GROWING
        }
        self._known: dict[tuple[str, int], Row] = {}
        self._upto: Mapping[str, int] = {}
        self._target = open_for_writing(target)
        create_indexes(self._target)
        # The descriptor is never closed: that would release SQLite's locks on the file.
        self._lock = lock(target)

    def new_step(self, due_s: float) -> _Step | None:
        """Return what is new since the last call, None if nothing is."""
        with self._timeline.as_of_now():
            upto = {table: self._last_row(table) for table in _GROWING}
            rows = self._changing_rows()
        changed = []
        for table, row in rows:
            if self._known.get((table, row[0])) != row:
                self._known[table, row[0]] = row
                changed.append((table, row))
        if not changed and upto == self._upto:
            return None
        self._upto = upto
        return _Step(due_s, upto, changed)

    def write_until(self, time_ns: int) -> None:
        """Write what was recorded before a time, and the row of the session."""
        upto = {}
        with self._timeline.as_of_now():
            for table, is_newer in _GROWING.items():
                query = f"SELECT min(rowid) - 1 FROM {table} WHERE rowid > ? AND {is_newer}"
                (found,) = self._source.execute(query, (self._done[table], time_ns)).fetchone()
                upto[table] = self._last_row(table) if found is None else found
            rows = self._changing_rows()
        known = [(table, _as_known(table, row, time_ns)) for table, row in rows]
        self.write(_Step(0, upto, [(table, row) for table, row in known if row is not None]))

    def write(self, step: _Step) -> None:
        """Write what a step has into the copy."""
        with self._target:
            for table, row in step.changed:
                places = ", ".join("?" * len(row))
                self._target.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", row)
            for table, upto in step.upto.items():
                names = _columns(table)
                rows = self._source.execute(
                    f"SELECT {', '.join(names)} FROM {table} WHERE rowid > ? AND rowid <= ? ORDER BY rowid",
                    (self._done[table], upto),
                )
                places = ", ".join("?" * len(names))
                insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"
                while batch := list(islice(rows, _BATCH_ROWS)):
                    self._target.executemany(insert, batch)
                self._done[table] = max(self._done[table], upto)

    def end(self) -> None:
        """End the recording of the copy, which can still be read."""
        self._source.close()
        self._target.close()
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _last_row(self, table: str, condition: str = "1", parameters: Mapping[str, int] | None = None) -> int:
        query = f"SELECT coalesce(max(rowid), 0) FROM {table} WHERE {condition}"
        (found,) = self._source.execute(query, parameters or {}).fetchone()
        return int(found)

    def _changing_rows(self) -> list[tuple[str, Row]]:
        found = []
        for table, key in _CHANGING.items():
            query = f"SELECT {', '.join(_columns(table))} FROM {table} WHERE {key} = ?"
            found += [(table, row) for row in self._source.execute(query, (self._session_id,))]
        return found


def _columns(table: str) -> list[str]:
    """Return the columns of a table that a copy needs, its row id first."""
    columns = [f'"{column}"' for column in TABLES[table]]
    return columns if "id" in TABLES[table] else ["rowid", *columns]


def _as_known(table: str, row: Row, time_ns: int) -> Row | None:
    """Return a changing row as it was known at a time; None if it was not there yet."""
    values = dict(zip(TABLES[table], row, strict=True))
    begun = values.get(_BEGUN.get(table, ""))
    if begun is not None and begun >= time_ns:
        return None
    end, *others = _ENDED[table]
    if values[end] is not None and values[end] >= time_ns:
        values |= dict.fromkeys((end, *others))
    return tuple(values.values())


class DelayedCopy:
    """A thread that copies a live session with a delay; `path` is the copy.

    If the recording continues in another database, so does the copy. Raises StorageError, sqlite3.Error.

    Args:
        path: The database that is being recorded.
        session_id: The session in it.
        folder: An empty folder for the copy.
        delay_s: The delay in seconds.
    """

    def __init__(self, path: str, session_id: int, folder: str, delay_s: float) -> None:
        self._place = path, session_id
        self._folder = folder
        self._delay_s = delay_s
        self._steps: deque[tuple[CopiedSession, _Step]] = deque()
        self.path = self._target(path)
        self._error: Exception | None = None
        self._is_ready = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="delay", daemon=True)
        self._thread.start()
        self._is_ready.wait()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop copying."""
        self._stopped.set()
        self._thread.join()

    def _target(self, path: str) -> str:
        # The names of the databases that continue a recording tell their order.
        return os.path.join(self._folder, os.path.basename(path))

    # In the thread.

    def _run(self) -> None:
        try:
            # Rows are copied without their meaning.
            with using_copies({}):
                self._copy()
        except (sqlite3.Error, KiebitzError, OSError) as error:
            if self._is_ready.is_set():
                warn(f"spectators see no more of {self._place[0]}: {error}")
            self._error = error
        finally:
            self._is_ready.set()

    def _copy(self) -> None:
        path, session_id = self._place
        part = CopiedSession(path, session_id, self.path)
        followed = Follower(session_at(path, session_id), path)
        part.write_until(time.time_ns() - int(self._delay_s * 1e9))
        self._look(part)
        self._is_ready.set()
        try:
            while (followed.is_live or self._steps) and not self._stopped.wait(_LOOK_EVERY_S):
                if followed.is_live and followed.look():
                    self._look(part)
                    while not followed.is_live and followed.go_on():
                        part = self._continue(followed)
                now_s = time.monotonic()
                while self._steps and self._steps[0][1].due_s <= now_s:
                    copied, step = self._steps.popleft()
                    copied.write(step)
                    if copied is not part and not any(other is copied for other, _ in self._steps):
                        copied.end()
        finally:
            part.end()
            followed.close()

    def _look(self, part: CopiedSession) -> None:
        step = part.new_step(time.monotonic() + self._delay_s)
        if step is not None:
            self._steps.append((part, step))

    def _continue(self, followed: Follower) -> CopiedSession:
        """Return the part for the database in which the recording continues."""
        path = followed.path
        assert path is not None
        part = CopiedSession(path, followed.timeline.session.id, self._target(path))
        # The copy of the session must be there before its predecessor ends.
        part.write_until(0)
        self._look(part)
        return part
