"""The events of a table with a current position.

A cursor is over all events of a table, or those that a search finds. It grows while a session is recorded.
Positions count from 0; -1 is before the first event.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Event
from kiebitz.storage.read.search import Search
from kiebitz.storage.read.timeline import Timeline


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
