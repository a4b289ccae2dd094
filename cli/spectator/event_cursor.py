"""A table's events in their order, and which of them one is at.

A course has all events of a table, or those that a search finds: of one game, of one player, of a filter. It
grows while a session is recorded. Places count from 0; before the first event one is at place -1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Event
from kiebitz.storage.read.search import Search
from kiebitz.storage.read.timeline import Timeline


class Course:
    """The events of one table, and a place among them; `search` finds those that belong to it."""

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
        """The events' numbers at their table, ascending."""
        return self.search.found if self.search is not None else range(self._first + 1, self._last + 1)

    @property
    def seq(self) -> int:
        """The number of the event one is at; the one before the table's first at place -1."""
        return self.numbers[self.place] if self.place >= 0 else self._first

    @property
    def is_at_end(self) -> bool:
        """Whether nothing comes after this place."""
        return self.place == len(self) - 1

    def grow(self, timeline: Timeline) -> None:
        """Look how far the table has come."""
        self._timeline = timeline
        self._last = timeline.last_seq(self.table_id)

    def go_on(self, seconds: float) -> bool:
        """Search on for so long; whether something is left to be looked at."""
        return self.search is not None and self.search.go_on(self._last, seconds)

    def go_to(self, seq: int) -> None:
        """Be at the last event that is not after number `seq`; at the first if all are after it."""
        self.place = max(bisect_right(self.numbers, seq) - 1, min(0, len(self) - 1))

    def go_upto(self, seq: int) -> None:
        """Be at the last event that is not after number `seq`, which may be none."""
        self.place = bisect_right(self.numbers, seq) - 1

    def event(self, place: int) -> Event | None:
        """The event at a place; None before the first, or where the database has lost it."""
        return next(iter(self.events(place, place + 1)), None) if place >= 0 else None

    def events(self, begin: int, end: int) -> list[Event]:
        """The events at the places from `begin` on, `end` not among them."""
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
        """The table's last events up to this place, all of them, oldest first."""
        return self._timeline.recent(self.table_id, self.seq, count)

    def state(self) -> State:
        """The table's state here; it is good until the next question."""
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
"""Up to so many events the state is carried forward; beyond that a snapshot is nearer."""
