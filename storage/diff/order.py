"""Whether two events that stand in another order were heard in another order.

A table has its events in the order in which the first message of each came, on whatever conversation. What is
told on several at the same time comes in one order today and in another tomorrow, though each conversation
heard it as before.
"""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.storage.read.timeline import Timeline

Events = tuple[int, int]
"""The same event in both sessions, by its numbers."""


class Order:
    """The order in which the conversations of two sessions heard things."""

    def __init__(self, a: Timeline, b: Timeline) -> None:
        self._timelines = (a, b)
        self._heard: tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]] = ({}, {})

    def is_kept(self, event: Events, crossed: Iterable[Events]) -> bool:
        """Whether an event was heard on the same side of these as before, though it stands on the other."""
        return all(
            self._orders(0, event, other) == self._orders(1, event, other) != (0, 0) for other in crossed
        )

    def _orders(self, side: int, event: Events, other: Events) -> tuple[int, int]:
        """How many conversations heard the one first, and how many the other, of those that heard both."""
        one, two = self._messages(side, event[side]), self._messages(side, other[side])
        both = one.keys() & two.keys()
        before = sum(one[stream] < two[stream] for stream in both)
        return before, len(both) - before

    def _messages(self, side: int, event_id: int) -> dict[int, int]:
        """By which message each stream was first told of an event."""
        found = self._heard[side].get(event_id)
        if found is None:
            found = self._heard[side][event_id] = dict(
                self._timelines[side]
                .connection.execute(
                    "SELECT stream_id, min(id) FROM messages WHERE event_id = ? GROUP BY stream_id",
                    (event_id,),
                )
                .fetchall()
            )
        return found
