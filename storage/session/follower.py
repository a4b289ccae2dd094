"""A session that may grow: what is known of its players, its end, and the database that continues it."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kiebitz.dissectors.model import TableInfo
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.recorder_lock import RecorderWatch
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.read.visibility import Inheritance, Visibility

if TYPE_CHECKING:
    # They load the filter language and Python's decimals, which most commands do without.
    from kiebitz.dissectors.filters import Filter
    from kiebitz.storage.read.view_rows import ViewRows

RESTART_S = 5.0
"""Timeout in seconds for a recorder to be restarted after it died."""

_GLANCE_S = 1.0
"""Interval (seconds) of checks that the file exists and is being recorded into."""

_BUSY_MS = 20
"""Time (milliseconds) to wait for a database locked by another program before a retry."""

_NEXT = re.compile(r"(?P<stem>.*?)(?:_(?P<number>\d{5})_\d{14})?")


class SessionReader:
    """A session with what is known of its players, which is read when it is needed, and again after growth.

    Its methods raise sqlite3.Error.
    """

    timeline: Timeline

    def open(self, timeline: Timeline, before: Inheritance | None = None) -> None:
        """Read this session from now on; `before` is that of the database that it continues."""
        self.timeline = timeline
        self._before = before
        self._visibility: Visibility | None = None
        # A cursor without the usual limits on statements, which would stat the file each time.
        self._cursor = timeline.connection.cursor()
        self._version = -1

    def close(self) -> None:
        """Close the database; nothing can be read afterwards."""
        self.timeline.connection.close()

    def reread(self) -> bool:
        """Reread the session if the database has changed since the last call; return True if it has."""
        (version,) = self._cursor.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return False
        self.timeline.reread()
        self._version = version
        return True

    @property
    def visibility(self) -> Visibility:
        """The visibility of the session's events."""
        if self._visibility is None:
            self._visibility = Visibility(self.timeline, self._before)
        return self._visibility

    def tables(self, player: str | None = None) -> list[TableInfo]:
        """Return the tables visible to a player, oldest first."""
        tables = self.timeline.tables()
        if player is None:
            return tables
        known = self.visibility.tables_of(player)
        return [table for table in tables if table.id in known]

    def rows(
        self,
        player: str | None,
        wanted: Filter | None = None,
        game: int | None = None,
        between: tuple[int, int] | None = None,
    ) -> ViewRows:
        """Return the rows of a view that pass a filter; see `ViewRows`."""
        from kiebitz.storage.read.view_rows import ViewRows

        return ViewRows(self.visibility, player, wanted, game, between)


class Follower(SessionReader):
    """A session whose recording is followed.

    `path` is the file of its database; None for a capture, which does not grow.
    """

    def __init__(self, timeline: Timeline, path: str | None, busy_ms: int = _BUSY_MS) -> None:
        self._busy_ms = busy_ms
        self.is_gone = False
        """True if the database file was deleted or moved."""
        self.ending: str | None = None
        """A sentence about the end of a live session; None before that."""
        self._failure: Exception | None = None
        self._glanced_s = 0.0
        self._recorded_s = time.monotonic()
        self.replace(timeline, path)

    def replace(self, timeline: Timeline, path: str | None) -> None:
        """Continue with the session in another database."""
        self.open(timeline)
        self.path = path
        self.is_live = path is not None and timeline.session.ended_ns is None
        timeline.connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
        self._watch = RecorderWatch(path) if path is not None and self.is_live else None

    @property
    def place(self) -> tuple[str, int] | None:
        """Database and session number being recorded; None if the session is not live."""
        return (self.path, self.timeline.session.id) if self.is_live and self.path is not None else None

    @property
    def trouble(self) -> str | None:
        """A sentence about why the session cannot be read or grow; None if it can."""
        if self._failure is not None:
            return f"{self.path or 'this'} cannot be read, retrying: {self._failure}"
        if self.is_gone:
            return f"{self.path} was deleted or moved; no more events will appear"
        return None

    def fails(self, error: Exception) -> None:
        """Note a failed query, for example because another program has locked the database."""
        self._failure = error

    def look(self) -> bool:
        """Poll the database; return True if there is anything new, or if an error is over.

        See also `trouble`, `ending` and `go_on`.
        """
        was_trouble = self._failure is not None
        try:
            if was_trouble:
                self.timeline.connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()
                self._failure = None
            return (self.is_live and self._look()) or was_trouble
        except (sqlite3.Error, StorageError) as error:
            self.fails(error)
            return False

    def _look(self) -> bool:
        now = time.monotonic()
        if now - self._glanced_s >= _GLANCE_S:
            assert self.path is not None
            self._glanced_s = now
            self.is_gone = not os.path.exists(self.path)
            if self._watch is not None and self._watch.is_recording():
                self._recorded_s = now
            elif now - self._recorded_s > RESTART_S and self.timeline.session.ended_ns is None:
                self._end("the recording stopped without ending the session")
        has_grown = self.reread()
        if has_grown and self.timeline.session.ended_ns is not None:
            self._end("the recording has ended")
        return has_grown

    def _end(self, sentence: str) -> None:
        self.ending = sentence
        self.is_live = False

    def go_on(self) -> bool:
        """Switch to the database in which a recording that has ended continues; return True if there is one.

        Call it when the rows of this one were read, as no other database has them.
        """
        number = self.timeline.session.id
        for path in next_paths(self.path) if self.path is not None and self.ending is not None else ():
            with suppress(StorageError, sqlite3.Error):
                connection = open_existing(path)
                row = next(iter(sessions(connection, number + 1)), None)
                if row is None or not row.continues:
                    connection.close()
                    continue
                self.replace(Timeline(connection, row), path)
                self.ending = None if self.is_live else self.ending
                return True
        return False


def next_paths(path: str) -> list[str]:
    """Return candidates for the database that continues `path`; see `kiebitz.services.recording.rotation`.

    Files and links of other users are ignored, as the folder may be shared.
    """
    folder, (name, suffix) = os.path.dirname(path), os.path.splitext(os.path.basename(path))
    form = _NEXT.fullmatch(name)
    assert form is not None
    begin = f"{form['stem']}_{int(form['number'] or 0) + 1:05}_"
    owners = {os.geteuid(), 0}
    with suppress(OSError):
        owners.add(os.stat(path).st_uid)
    with suppress(OSError):
        return sorted(
            str(found)
            for found in Path(folder or ".").iterdir()
            if found.name.startswith(begin) and found.suffix == suffix and found.lstat().st_uid in owners
        )
    return []
