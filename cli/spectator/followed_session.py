"""A session as a viewer watches it in a terminal: perspective, filter, and the rows that they show.

The events of a table with a current position.

A cursor is over all events of a table, or those that a search finds. It grows while a session is recorded.
Positions count from 0; -1 is before the first event.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import PUBLIC, Event, Message, TableInfo
from kiebitz.storage.read.search import Search
from kiebitz.storage.read.seen_rows import PublicMessages
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.view_rows import ViewRows
from kiebitz.storage.session.follower import Follower
from kiebitz.storage.session.message_detail import MessageDetails

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


class FollowedSession(Follower):
    """A session as seen by `player`, or by an observer of all players if None; `wanted` is the filter."""

    def __init__(
        self,
        timeline: Timeline,
        path: str | None,
        player: str | None = None,
        wanted: Filter | None = None,
        game_id: int | None = None,
        between: tuple[int, int] | None = None,
    ) -> None:
        self.player = player
        self.wanted = wanted
        self.game_id = game_id
        self._between = between
        self._people: tuple[int, int] = (0, 0)
        super().__init__(timeline, path)

    def replace(self, timeline: Timeline, path: str | None) -> None:
        super().replace(timeline, path)
        self.in_full = MessageDetails(timeline, self.visibility)
        self.look_over(self.player)

    def look(self) -> bool:
        is_new = super().look()
        if is_new:
            people = self.timeline.connection.execute(
                "SELECT (SELECT coalesce(max(id), 0) FROM streams), (SELECT coalesce(max(id), 0) FROM games)"
            ).fetchone()
            if people != self._people:
                self._people = people
                self.spectator_view.renew()
        return is_new

    def players(self) -> list[str]:
        """Return the views other than the full one: the public one, and those of the players."""
        return [PUBLIC, *sorted((self.timeline.actors() | {*self.visibility.labels()}) - {PUBLIC})]

    def look_over(self, player: str | None) -> None:
        """Change the perspective to a player, or to all if None."""
        self.player = player
        self.spectator_view = SpectatorView(self.timeline, player, self.visibility)

    def course(self, table: TableInfo) -> EventCursor:
        """Return a cursor over the visible events of a table that match the filter."""
        is_all = (self.player, self.wanted, self.game_id, self._between) == (None, None, None, None)
        return EventCursor(self.timeline, table.id, None if is_all else self.shown.search_events(table.id))

    @property
    def shown(self) -> ViewRows:
        """The visible rows that match the filter."""
        return self.rows(self.player, self.wanted, self.game_id, self._between)

    def may_see_message(self, row: Message) -> bool:
        """Return True if a message is visible; in the public view, one of its copies is."""
        if self.player == PUBLIC:
            return PublicMessages(self.visibility).first_copy(row) is not None
        streams = self.streams()
        return streams is None or row.stream.id in streams

    def streams(self) -> Set[int] | None:
        """Return the visible streams; None for all."""
        return self.visibility.streams_of(self.player) if self.player is not None else None


class EventCursor:
    """A position among the events of one table, restricted to those that `search` finds."""

    def __init__(self, timeline: Timeline, table_id: int, search: Search | None) -> None:
        self.table_id = table_id
        self.search = search
        self.place = -1
        self._timeline = timeline
        self._first = timeline.first_seq(table_id)
        self._last = timeline.last_seq(table_id)

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

    def grow(self) -> None:
        """Extend the cursor to the events recorded since."""
        self._last = self._timeline.last_seq(self.table_id)

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
        """Return the table's state at this position, valid until the next call."""
        return self._timeline.passing_state(self.table_id, self.seq)
