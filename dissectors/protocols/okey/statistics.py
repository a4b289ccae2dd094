"""Statistics of Okey: stacks drawn from, puts, and wins."""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.statistics import Counts, Sample, Shares, TimeSeries, of_each, remember

_STACKS = {"m": "main stack", "e": "put by another"}


def _drawn(event: Event) -> Iterable[Sample]:
    if event.actor is not None and event.data["stack"] in _STACKS:
        yield Sample(event.actor, _STACKS[event.data["stack"]])


def _put(event: Event) -> Iterable[Sample]:
    if event.actor is not None and event.data["valid"] is not None:
        yield Sample(event.actor, "valid" if event.data["valid"] else "not")


class _Wins:
    """Yields the number of games that a player has won so far, of those captured."""

    def __init__(self) -> None:
        self._won: dict[str, int] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind == "won" and event.data["name"] is not None:
            name = event.data["name"]
            remember(self._won, name, self._won.get(name, 0) + 1)
            yield Sample(name, amount=self._won[name])


STATISTICS = (
    Counts(
        key="draws",
        title="Tiles drawn from",
        reads=of_each("drew", give=_drawn),
        columns=(*_STACKS.values(),),
    ),
    Shares(
        key="puts", title="Tiles put, and valid", reads=of_each("put", give=_put), part="valid", rest="not"
    ),
    TimeSeries(key="wins", title="Games won over time", reads=_Wins, unit="games"),
)
