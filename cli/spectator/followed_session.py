"""The session that is watched: what of it one may see, how it grows, and where it goes on."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kiebitz.cli.spectator.event_cursor import Course
from kiebitz.cli.spectator.view import Onlooker
from kiebitz.dissectors.model import Event, TableInfo
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.recorder_lock import RecorderWatch
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.message_queries import visible_groups
from kiebitz.storage.read.search import Search, Streams, search_diagnostics, search_events, search_messages
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.session.session import RESTART_S, Session

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_GLANCE_S = 1.0
"""How often it is looked whether the file is there, and whether somebody records into it."""

_BUSY_MS = 20
"""So long a question waits for another program that keeps the database to itself; then it is asked again."""

_NEXT = re.compile(r"(?P<stem>.*?)(?:_(?P<number>\d{5})_\d{14})?")


class Watched:
    """A session, and over whose shoulder one looks; `player` is None for everybody's.

    `path` is its database's file; None for a capture, which does not grow.
    """

    def __init__(
        self,
        timeline: Timeline,
        path: str | None,
        player: str | None = None,
        wanted: Filter | None = None,
        game_id: int | None = None,
        between: tuple[int, int] | None = None,
    ) -> None:
        self.session = Session(timeline, path)
        self.player = player
        self.wanted = wanted
        self.game_id = game_id
        self._between = between
        self.is_live = path is not None and self.session.ended is None
        self.is_gone = False
        """Whether its file has been deleted or moved."""
        self._failure: Exception | None = None
        self.ending: str | None = None
        """How it ended, in a sentence, if it was live and is over."""
        self._version = -1
        self._people: tuple[int, int] = (0, 0)
        self._watch: RecorderWatch | None = None
        self._glanced_s = 0.0
        self._recorded_s = time.monotonic()
        self._settle()

    @property
    def timeline(self) -> Timeline:
        """The session as it stands now."""
        return self.session.timeline

    @property
    def place(self) -> tuple[str, int] | None:
        """The database and the session that are being recorded; None if they are not."""
        path = self.session.path
        return (path, self.timeline.session.id) if self.is_live and path is not None else None

    @property
    def trouble(self) -> str | None:
        """What keeps it from being read, in a sentence; None if nothing does."""
        if self._failure is not None:
            return f"{self.session.path or 'this'} cannot be read now, and is tried again: {self._failure}"
        if self.is_gone:
            return f"{self.session.path} is gone: nothing more comes, and what is there can be seen"
        return None

    def fails(self, error: Exception) -> None:
        """A question was not answered: another program has the database to itself, say."""
        self._failure = error

    def tables(self) -> list[TableInfo]:
        """The tables that are shown, oldest first."""
        known = self.onlooker.tables()
        return [table for table in self.timeline.tables() if table.id in known]

    def players(self) -> list[str]:
        """Those that one can look over the shoulder of, by name."""
        return sorted(self.timeline.actors() | {*self.onlooker.players()})

    def look_over(self, player: str | None) -> None:
        """Look over another shoulder."""
        self.player = player
        self.onlooker = Onlooker(self.timeline, player)

    # What is looked for.

    def course(self, table: TableInfo) -> Course:
        """A table's events, as far as they may be seen and are wanted."""
        search = None
        if (self.player, self.wanted, self.game_id, self._between) != (None, None, None, None):
            # Asked anew each time: the onlooker is another one when the session has grown.
            may_see: Callable[[Event], bool] | None = (
                (lambda event: self.onlooker.may_see(event)) if self.player is not None else None
            )
            search = search_events(self.timeline, table.id, self.wanted, self.game_id, self._between, may_see)
        return Course(self.timeline, table.id, search)

    def messages(self, table: TableInfo | None) -> Search:
        """The messages that may be seen and are wanted: a table's, or all."""
        return search_messages(self.timeline, self._streams(table), self.wanted)

    def diagnostics(self, table: TableInfo | None) -> Search:
        """The diagnostics likewise."""
        return search_diagnostics(
            self.timeline, self._streams(table), self.wanted, visible_groups(self.player)
        )

    def marks(self, table: TableInfo | None) -> Search:
        """The diagnostics that may be seen, whatever the filter."""
        return search_diagnostics(self.timeline, self._streams(table), None, visible_groups(self.player))

    def streams(self) -> Set[int] | None:
        """The streams that may be seen, None for all."""
        return self.onlooker.streams() if self.player is not None else None

    def _streams(self, table: TableInfo | None) -> Streams:
        return table if self.player is None else self.streams()

    # How it grows.

    def look(self) -> bool:
        """Whether anything is new since the last look; `trouble` and `ending` tell what else there is.

        After a trouble that is over, everything is to be shown anew.
        """
        was_trouble = self._failure is not None
        if was_trouble:
            try:
                self.timeline.connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()
            except sqlite3.Error as error:
                self.fails(error)
                return False
            self._failure = None
        return (self.is_live and self._look()) or was_trouble

    def _look(self) -> bool:
        now = time.monotonic()
        if now - self._glanced_s >= _GLANCE_S:
            self._glanced_s = now
            self._glance(now)
        try:
            # A cursor of its own: what bounds the statements of others looks at the file each time.
            (version,) = self._cursor.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return False
            self.session.reread()
            self._meet()
        except (sqlite3.Error, StopIteration) as error:
            self.fails(error)
            return False
        self._version = version
        self._failure = None
        if self.session.ended is not None and not self._go_on_in_next():
            self._end("the recording has ended")
        return True

    def _glance(self, now: float) -> None:
        path = self.session.path
        assert path is not None
        self.is_gone = not os.path.exists(path)
        if self._watch is not None and self._watch.is_recording():
            self._recorded_s = now
        elif now - self._recorded_s > RESTART_S and self.session.ended is None:
            self._end("nobody records this session any more; it was never ended")

    def _end(self, sentence: str) -> None:
        self.ending = sentence
        self.is_live = False

    def _meet(self) -> None:
        """Get to know players and tables that are new."""
        people = self.timeline.connection.execute(
            "SELECT (SELECT coalesce(max(id), 0) FROM streams), (SELECT coalesce(max(id), 0) FROM games)"
        ).fetchone()
        if people != self._people:
            self._people = people
            self.onlooker.update_timeline(self.timeline)

    def _settle(self) -> None:
        """Get ready to look at the database as it is now."""
        self._cursor = self.timeline.connection.cursor()
        self.timeline.connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        self.look_over(self.player)
        if self.is_live:
            assert self.session.path is not None
            self._watch = RecorderWatch(self.session.path)

    def _go_on_in_next(self) -> bool:
        """Where the recording was carried on in another database, watch that one from here on."""
        path, number = self.session.path, self.timeline.session.id
        assert path is not None
        for next_path in _next_paths(path):
            with suppress(StorageError, sqlite3.Error):
                connection = open_existing(next_path)
                row = next((row for row in sessions(connection) if row.id == number + 1), None)
                timeline = Timeline(connection, row) if row is not None else None
                if timeline is None or not timeline.session.continues:
                    connection.close()
                    continue
                self.session = Session(timeline, next_path)
                self._version = -1
                self._settle()
                self.is_live = self.session.ended is None or self._go_on_in_next()
                return True
        return False


def _next_paths(path: str) -> list[str]:
    """Return the databases that may carry on the one at `path`: see `kiebitz.services.recording.rotation`.

    In a folder of several users, another user's file or link is none of them.
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
