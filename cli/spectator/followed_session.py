"""A session as a viewer follows it: filters, perspective, growth, and continuation in another database.

The events of a table with a current position.

A cursor is over all events of a table, or those that a search finds. It grows while a session is recorded.
Positions count from 0; -1 is before the first event.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import PUBLIC, Event, Message, TableInfo
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.recorder_lock import RecorderWatch
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.message_queries import visible_groups
from kiebitz.storage.read.players import StreamNames
from kiebitz.storage.read.search import Search, Streams, search_diagnostics, search_events, search_messages
from kiebitz.storage.read.seen_rows import PublicMessages, SeenRows
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.session.session import RESTART_S, Session

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


_GLANCE_S = 1.0
"""Interval (seconds) of checks that the file exists and is being recorded into."""

_BUSY_MS = 20
"""Time (milliseconds) to wait for a database locked by another program before a retry."""

_NEXT = re.compile(r"(?P<stem>.*?)(?:_(?P<number>\d{5})_\d{14})?")


class FollowedSession:
    """A session as seen by `player`, or by an observer of all players if None.

    `path` is the file of its database; None for a capture, which does not grow.
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
        """True if the database file was deleted or moved."""
        self._failure: Exception | None = None
        self.ending: str | None = None
        """A sentence about the end of a live session; None before that."""
        self._version = -1
        self._people: tuple[int, int] = (0, 0)
        self._watch: RecorderWatch | None = None
        self._glanced_s = 0.0
        self._recorded_s = time.monotonic()
        self._settle()

    @property
    def timeline(self) -> Timeline:
        """Current timeline of the session."""
        return self.session.timeline

    @property
    def place(self) -> tuple[str, int] | None:
        """Database and session number being recorded; None if the session is not live."""
        path = self.session.path
        return (path, self.timeline.session.id) if self.is_live and path is not None else None

    @property
    def trouble(self) -> str | None:
        """A sentence about why the session cannot be read or grow; None if it can."""
        if self._failure is not None:
            return f"{self.session.path or 'this'} cannot be read, retrying: {self._failure}"
        if self.is_gone:
            return f"{self.session.path} was deleted or moved; no more events will appear"
        return None

    def fails(self, error: Exception) -> None:
        """Note a failed query, for example because another program has locked the database."""
        self._failure = error

    def tables(self) -> list[TableInfo]:
        """Return the visible tables, oldest first."""
        known = self.spectator_view.tables()
        return [table for table in self.timeline.tables() if table.id in known]

    def players(self) -> list[str]:
        """Return the views other than the full one: the public one, and those of the players."""
        return [PUBLIC, *sorted((self.timeline.actors() | {*self.spectator_view.players()}) - {PUBLIC})]

    def look_over(self, player: str | None) -> None:
        """Change the perspective to a player, or to all if None."""
        self.player = player
        self.spectator_view = SpectatorView(self.timeline, player)

    def course(self, table: TableInfo) -> EventCursor:
        """Return a cursor over the visible events of a table that match the filter."""
        search = None
        if (self.player, self.wanted, self.game_id, self._between) != (None, None, None, None):
            rows = self._seen_rows()
            search = search_events(self.timeline, table.id, self.wanted, self.game_id, self._between, rows)
        return EventCursor(self.timeline, table.id, search)

    def messages(self, table: TableInfo | None) -> Search:
        """Search the visible messages that match the filter, of a table or of all."""
        streams = table if self.player == PUBLIC else self._streams(table)
        return search_messages(self.timeline, streams, self.wanted, self._seen_rows())

    def may_see_message(self, row: Message) -> bool:
        """Return True if a message is visible; in the public view, one of its copies is."""
        if self.player == PUBLIC:
            return PublicMessages(self.spectator_view.visibility).first_copy(row) is not None
        streams = self.streams()
        return streams is None or row.stream.id in streams

    def diagnostics(self, table: TableInfo | None) -> Search:
        """Search the visible diagnostics that match the filter."""
        groups = visible_groups(self.player)
        return search_diagnostics(self.timeline, self._streams(table), self.wanted, groups, self._seen_rows())

    def marks(self, table: TableInfo | None) -> Search:
        """Search all visible diagnostics, ignoring the filter."""
        return search_diagnostics(self.timeline, self._streams(table), None, visible_groups(self.player))

    def _seen_rows(self) -> SeenRows | None:
        """Return the rows of the player's view that pass the filter; None for the full view."""
        if self.player is None:
            return None
        return SeenRows(self.spectator_view.visibility, self.player, self.wanted, self._names_of_streams)

    def _names_of_streams(self) -> Mapping[int, str]:
        self._names.learn(self.timeline)
        return self._names.names

    def streams(self) -> Set[int] | None:
        """Return the visible streams; None for all."""
        return self.spectator_view.streams() if self.player is not None else None

    def _streams(self, table: TableInfo | None) -> Streams:
        return table if self.player is None else self.streams()

    def look(self) -> bool:
        """Poll the database; return True if there is anything new, or if an error is over.

        See also `trouble` and `ending`.
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
            # On a cursor without the usual limits on statements, which would stat the file each time.
            (version,) = self._cursor.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return False
            self.session.reread()
            people = self.timeline.connection.execute(
                "SELECT (SELECT coalesce(max(id), 0) FROM streams), (SELECT coalesce(max(id), 0) FROM games)"
            ).fetchone()
            if people != self._people:
                self._people = people
                self.spectator_view.update_timeline(self.timeline)
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
            self._end("the recording stopped without ending the session")

    def _end(self, sentence: str) -> None:
        self.ending = sentence
        self.is_live = False

    def _settle(self) -> None:
        """Prepare to read the current database."""
        self._cursor = self.timeline.connection.cursor()
        self._names = StreamNames()
        self.timeline.connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        self.look_over(self.player)
        if self.is_live:
            assert self.session.path is not None
            self._watch = RecorderWatch(self.session.path)

    def replace(self, timeline: Timeline, path: str) -> None:
        """Continue with another dissection of the session, in the database at `path`."""
        self.session.close()
        self.session = Session(timeline, path)
        self._version = -1
        self._settle()

    def _go_on_in_next(self) -> bool:
        """Switch to the next database if the recording continues there; return whether it does."""
        path, number = self.session.path, self.timeline.session.id
        assert path is not None
        for next_path in next_paths(path):
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


class EventCursor:
    """A position among the events of one table, restricted to those that `search` finds."""

    def __init__(self, timeline: Timeline, table_id: int, search: Search | None) -> None:
        self.table_id = table_id
        self.search = search
        self.place = -1
        self._timeline = timeline
        self._first = timeline.first_seq(table_id)
        self._last = timeline.last_seq(table_id)
        self._state: tuple[int, State] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> Sequence[int]:
        """Sequence numbers of the events at their table, ascending."""
        return self.search.found if self.search is not None else range(self._first + 1, self._last + 1)

    @property
    def seq(self) -> int:
        """Sequence number at the current position; at -1 the number before the first event."""
        return self.numbers[self.place] if self.place >= 0 else self._first

    @property
    def is_at_end(self) -> bool:
        """True if the position is the last one."""
        return self.place == len(self) - 1

    def grow(self, timeline: Timeline) -> None:
        """Extend the cursor to the events recorded since."""
        self._timeline = timeline
        self._last = timeline.last_seq(self.table_id)

    def go_on(self, seconds: float) -> bool:
        """Continue the search for some seconds; return True if it is not complete."""
        return self.search is not None and self.search.go_on(self._last, seconds)

    def go_to(self, seq: int) -> None:
        """Move to the last event up to `seq`, or to the first if all are later."""
        self.place = max(bisect_right(self.numbers, seq) - 1, min(0, len(self) - 1))

    def go_upto(self, seq: int) -> None:
        """Move to the last event up to `seq`, or to -1 if all are later."""
        self.place = bisect_right(self.numbers, seq) - 1

    def event(self, place: int) -> Event | None:
        """Return the event at a position; None before the first, or if the database has lost it."""
        return next(iter(self.events(place, place + 1)), None) if place >= 0 else None

    def events(self, begin: int, end: int) -> list[Event]:
        """Return the events at positions from `begin` up to, not including, `end`."""
        numbers = self.numbers[max(begin, 0) : end]
        if not numbers:
            return []
        if isinstance(numbers, range):
            return list(self._timeline.events_between(self.table_id, numbers[0] - 1, numbers[-1]))
        found: list[Event] = []
        for number in numbers:
            found += self._timeline.events_between(self.table_id, number - 1, number)
        return found

    def recent(self, count: int) -> list[Event]:
        """Return the table's last `count` events up to this position, unfiltered, oldest first."""
        return self._timeline.recent(self.table_id, self.seq, count)

    def state(self) -> State:
        """Return the table's state at this position; the next call changes it."""
        seq = self.seq
        known = self._state
        if known is not None and known[0] <= seq <= known[0] + _STEPS:
            state = known[1]
            for event in self._timeline.events_between(self.table_id, known[0], seq):
                apply(state, event.changes)
        else:
            state = self._timeline.state_at(self.table_id, seq)
        self._state = seq, state
        return state


_STEPS = 100
"""Maximum number of events to apply to the last state; a snapshot is nearer beyond that."""
