"""The order in which the streams of two sessions received the messages of events.

A table has its events in the order of their first messages, on whatever stream. Messages that are sent on
several streams at once arrive in another order each time, though each stream has the same order as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

Events = tuple[int, int]
"""The same event in both sessions, by its numbers."""

FirstMessages = Callable[[int], Mapping[int, int]]
"""The first message of an event on each stream, by stream."""


class Order:
    """The order of events on the streams of two sessions."""

    def __init__(self, a: FirstMessages, b: FirstMessages) -> None:
        self._first_messages = (cache(a), cache(b))

    def is_kept(self, event: Events, crossed: Iterable[Events]) -> bool:
        """Return True if each stream has an event on the same side of the `crossed` ones in both sessions."""
        return all(
            self._orders(0, event, other) == self._orders(1, event, other) != (0, 0) for other in crossed
        )

    def _orders(self, side: int, event: Events, other: Events) -> tuple[int, int]:
        """Return how many streams have the one first, and how many the other, of those that have both."""
        one, two = self._first_messages[side](event[side]), self._first_messages[side](other[side])
        both = one.keys() & two.keys()
        before = sum(one[stream] < two[stream] for stream in both)
        return before, len(both) - before
