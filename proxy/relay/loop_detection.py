"""Detection of forwarding loops: forwarded traffic that returns to its listener.

The bytes must not change, so traffic cannot be marked; only cause and effect can be observed. In a loop,
newcomers with equal content arrive one after another, each because the previous one was forwarded, and none
is ever answered. When a series looks like that, the next newcomer is held for ten times the interval between
them. If others arrive meanwhile, it is a crowd of clients, and all are forwarded. If none arrives, but one
follows promptly after the held one was forwarded, and this repeats, it is a loop. Another relay in the loop
may do the same: so a random number of newcomers is forwarded between two holds. Otherwise each relay would
mistake the other's holding for a slowly arriving crowd.
"""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import ref

import msgspec

ROUNDS = 4
"""Required surplus of prompt arrivals after a hold over late ones before a loop is reported."""
_MAX_UNHELD = 8
"""Upper bound (exclusive) of the random number of newcomers forwarded between two holds."""

_PAUSE_S = 1.0
"""After this pause in seconds, newcomers are unrelated to earlier ones."""
_MAX_GAP_S = 0.1
"""Longest average interval in seconds that is suspicious; slower loops are harmless."""
_HOLD_S = 0.05
_HOLD_FACTOR = 10
_SCHEDULING_DELAY_S = 0.02
"""Scheduling delay in seconds that is tolerated for a prompt arrival."""
_CROWD_S = 10.0
"""Seconds without further holds after a series turned out to be a crowd."""
_ALERT_S = 60.0
_ALERT_COUNT = 2
"""Number of equal newcomers that is suspicious while alerted, after a loop was found."""
_MAX_SERIES = 256
"""Maximum number of series tracked."""

Newcomer = TypeVar("Newcomer")


class LoopFound(Exception):
    """The newcomer is the relay's own traffic; `newcomers` are its predecessors in the loop."""

    def __init__(self, newcomers: list[object]) -> None:
        super().__init__("a loop")
        self.newcomers = newcomers


class _NewcomerSeries(msgspec.Struct, Generic[Newcomer], eq=False):
    """A series of newcomers with equal content; `gap_s` is the average interval in seconds."""

    began: float
    last: float
    newcomers: deque[ref[Newcomer]]
    """Weak references, so that newcomers their relay has closed are freed immediately."""
    count: int = 1
    gap_s: float = 0.0
    is_suspicious: bool = False
    held: bool = False
    released: float | None = None
    unheld: int = 0
    rounds: int = 0
    clear_until: float = 0.0


class LoopDetector(Generic[Newcomer]):
    """A loop detector for the newcomers at one listener. Times are in seconds of any one clock.

    Args:
        threshold: Number of newcomers in a row that is suspicious.
        is_over: Returns True if a newcomer was answered or closed, and so is not part of a loop.
    """

    def __init__(self, threshold: int, is_over: Callable[[Newcomer], bool]) -> None:
        self._threshold = threshold
        self._is_over = is_over
        self._series: OrderedDict[Hashable, _NewcomerSeries[Newcomer]] = OrderedDict()
        self._alert_until = 0.0

    def check(self, content: Hashable, now: float) -> float:
        """Return how many seconds a newcomer with this content must be held; usually 0.

        Raises:
            LoopFound: the newcomer is the relay's own traffic.
        """
        series = self._series.get(content)
        if (
            series is None
            or now - series.last > _PAUSE_S
            or (series.newcomers and self._is_settled(series.newcomers[-1]))
            # In a loop, all newcomers are still open, the first one included.
            or (series.newcomers and self._is_settled(series.newcomers[0]))
        ):
            self._series[content] = _NewcomerSeries(now, now, deque(maxlen=2 * self._threshold))
            self._series.move_to_end(content)
            if len(self._series) > _MAX_SERIES:
                self._series.popitem(last=False)
            return 0.0
        series.count += 1
        series.last = now
        if now < series.clear_until:
            return 0.0
        if series.held:
            series.held = False
            series.clear_until = now + _CROWD_S
            series.newcomers.clear()
            return 0.0
        if series.released is not None:
            is_prompt = now - series.released <= series.gap_s * _HOLD_FACTOR / 2 + _SCHEDULING_DELAY_S
            series.rounds = max(0, series.rounds + (1 if is_prompt else -1))
            series.released = None
            series.unheld = random.randrange(_MAX_UNHELD)
            if series.rounds == ROUNDS:
                del self._series[content]
                self._alert_until = now + _ALERT_S
                newcomers = (held() for held in series.newcomers)
                raise LoopFound([newcomer for newcomer in newcomers if newcomer is not None])
        if not series.is_suspicious:
            series.gap_s = (now - series.began) / (series.count - 1)
            threshold = _ALERT_COUNT if now < self._alert_until else self._threshold
            series.is_suspicious = series.count >= threshold and series.gap_s <= _MAX_GAP_S
        if not series.is_suspicious:
            return 0.0
        if series.unheld:
            series.unheld -= 1
            return 0.0
        series.held = True
        return max(_HOLD_S, series.gap_s * _HOLD_FACTOR)

    def forwarded(self, content: Hashable, newcomer: Newcomer, now: float, was_held: bool = False) -> None:
        """Register that the newcomer was forwarded, possibly after a hold."""
        series = self._series.get(content)
        if series is None or now < series.clear_until:
            return
        series.newcomers.append(ref(newcomer))
        if was_held and series.held:
            series.held = False
            series.released = series.last = now

    def _is_settled(self, held: ref[Newcomer]) -> bool:
        newcomer = held()
        return newcomer is None or self._is_over(newcomer)
