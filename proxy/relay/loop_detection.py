"""Notices that what a gate passes on comes back to it, through whatever other programs.

The bytes must stay as they are, so nothing can be marked. Cause and effect are left to look at. In a loop one
newcomer after the other comes, all alike, each because the one before was passed on, and none of them is ever
answered. Where it looks like that, the next one is held for a moment, ten times as long as they took to come.
If others come meanwhile, it is a crowd, and all may pass. If nobody does, but somebody right after that one
was passed on, and so again and again, it is a loop. A relay that is part of the loop may be doing the same;
so some, at random, pass in between, else each would take the other's holding for a crowd that comes slowly.
"""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import ref

ROUNDS = 4
"""So much more often somebody must have come right after one was held than some time later."""
_PASSING = 8
"""Fewer than this pass before one is held again."""

_PAUSE_S = 1.0
"""After such a pause those who come have nothing to do with those before."""
_SLOWEST_S = 0.1
"""What comes round more slowly than this, on average, is not looked at: so slow a loop costs nothing."""
_HOLD_S = 0.05
_TIMES = 10
_LATE_S = 0.02
"""So late the system may be with whoever comes right after."""
_CROWD_S = 10.0
"""So long nobody is held after it was seen that it is a crowd."""
_ALERT_S = 60.0
_ALERT = 2
"""How many alike are suspicious in the time after a loop was found."""
_MOST = 256
"""So many sorts of newcomers are told apart."""

Newcomer = TypeVar("Newcomer")


class LoopFound(Exception):
    """What came is our own; `newcomers` are those who came before it in the loop."""

    def __init__(self, newcomers: list[object]) -> None:
        super().__init__("a loop")
        self.newcomers = newcomers


class _Series(Generic[Newcomer]):
    """Newcomers alike: since when, how many, who. `gap_s` is the time from one to the next."""

    __slots__ = (
        "began",
        "clear_until",
        "count",
        "gap_s",
        "held",
        "is_suspicious",
        "last",
        "newcomers",
        "passing",
        "released",
        "rounds",
    )

    def __init__(self, now: float, most: int) -> None:
        self.began = self.last = now
        self.count = 1
        self.newcomers: deque[ref[Newcomer]] = deque(maxlen=most)
        """Not held here: what is over for its relay is given back at once."""
        self.gap_s = 0.0
        self.is_suspicious = False
        self.held = False
        self.released: float | None = None
        self.passing = 0
        self.rounds = 0
        self.clear_until = 0.0


class LoopWatch(Generic[Newcomer]):
    """Watches the newcomers at one gate.

    `least` of them in a row are suspicious. `is_over` tells whether a newcomer was answered or is gone: then
    it is none of a loop's. Times are in seconds, by whatever clock.
    """

    def __init__(self, least: int, is_over: Callable[[Newcomer], bool]) -> None:
        self._least = least
        self._is_over = is_over
        self._series: OrderedDict[Hashable, _Series[Newcomer]] = OrderedDict()
        self._alert_until = 0.0

    def came(self, said: Hashable, now: float) -> float:
        """For how long somebody who has come and says this is to be held; as a rule, not at all.

        Raises LoopFound.
        """
        series = self._series.get(said)
        if (
            series is None
            or now - series.last > _PAUSE_S
            or (series.newcomers and self._is_none_of_a_loop(series.newcomers[-1]))
            # In a loop all are still there, from the first on.
            or (series.newcomers and self._is_none_of_a_loop(series.newcomers[0]))
        ):
            self._begin(said, now)
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
            is_prompt = now - series.released <= series.gap_s * _TIMES / 2 + _LATE_S
            series.rounds = max(0, series.rounds + (1 if is_prompt else -1))
            series.released = None
            series.passing = random.randrange(_PASSING)
            if series.rounds == ROUNDS:
                del self._series[said]
                self._alert_until = now + _ALERT_S
                newcomers = (held() for held in series.newcomers)
                raise LoopFound([newcomer for newcomer in newcomers if newcomer is not None])
        if not series.is_suspicious:
            series.gap_s = (now - series.began) / (series.count - 1)
            least = _ALERT if now < self._alert_until else self._least
            series.is_suspicious = series.count >= least and series.gap_s <= _SLOWEST_S
        if not series.is_suspicious:
            return 0.0
        if series.passing:
            series.passing -= 1
            return 0.0
        series.held = True
        return max(_HOLD_S, series.gap_s * _TIMES)

    def passed_on(self, said: Hashable, newcomer: Newcomer, now: float, was_held: bool = False) -> None:
        """The newcomer who said this was let on, maybe after having been held."""
        series = self._series.get(said)
        if series is None or now < series.clear_until:
            return
        series.newcomers.append(ref(newcomer))
        if was_held and series.held:
            series.held = False
            series.released = series.last = now

    def _is_none_of_a_loop(self, held: ref[Newcomer]) -> bool:
        newcomer = held()
        return newcomer is None or self._is_over(newcomer)

    def _begin(self, said: Hashable, now: float) -> None:
        self._series[said] = _Series(now, 2 * self._least)
        self._series.move_to_end(said)
        if len(self._series) > _MOST:
            self._series.popitem(last=False)
