"""The order in which the streams of two sessions received the messages of events.

A table orders its events by their first messages on any stream. Messages sent on several streams at once
arrive in varying order, though the order on each stream is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

Events = tuple[int, int]
"""The ids of the same event in both sessions."""

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
        """Return the numbers of streams with both events that have `event` first, and `other` first."""
        one, two = self._first_messages[side](event[side]), self._first_messages[side](other[side])
        both = one.keys() & two.keys()
        before = sum(one[stream] < two[stream] for stream in both)
        return before, len(both) - before
