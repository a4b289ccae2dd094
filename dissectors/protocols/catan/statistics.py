"""Statistics of Catan: dice, resources, trades, buildings, cards, the robber, turn times."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.catan.words import WARTEN, WÜRFELN
from kiebitz.dissectors.statistics import (
    Counts,
    Durations,
    Histogram,
    Sample,
    actions,
    evict_oldest,
    faces_rolled,
    of_each,
)

_SUMS = {str(total): Fraction(6 - abs(7 - total), 36) for total in range(2, 13)}

_DIE = range(1, 7)

_RESOURCES = ("Holz", "Lehm", "Wolle", "Getreide", "Erz")
_FROM_THE_DICE = "roll"


def _dice(event: Event) -> tuple[int, ...]:
    dice = tuple(event.data["dice"])
    return dice if len(dice) == 2 and all(face in _DIE for face in dice) else ()


def _sums(event: Event) -> Iterable[Sample]:
    if dice := _dice(event):
        yield Sample(str(sum(dice)))


def _faces(event: Event) -> Iterable[Sample]:
    return (Sample(str(face)) for face in _dice(event))


def _resources(event: Event) -> Iterable[Sample]:
    resources = event.data["resources"]
    if event.data["why"] == _FROM_THE_DICE and isinstance(resources, dict):
        for resource, count in resources.items():
            if count:
                yield Sample(event.data["name"], resource, count)


def _trades(event: Event) -> Iterable[Sample]:
    match event.kind:
        case "trade_offered":
            yield Sample(event.data["name"], "offered")
        case "sea_trade":
            yield Sample(event.data["name"], "overseas")
        case "trade_done":
            for name in (event.data["name"], event.data["partner_name"]):
                if name is not None:
                    yield Sample(name, "with a player")


def _robber(event: Event) -> Iterable[Sample]:
    yield Sample(event.data["name"], "moved it")
    if event.data.get("from_name") is not None:
        yield Sample(event.data["from_name"], "was robbed")


def _built(event: Event) -> Iterable[Sample]:
    yield Sample(event.data["name"], event.data["type"])


class _Turns:
    """Turn durations: from the status in which a player must roll to the next waiting status."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind == "ended":
            self._since.clear()
        if event.kind != "status" or event.actor is None:
            return
        if event.data["status"] == WÜRFELN:
            self._since.setdefault(event.actor, event.ts_ns)
            evict_oldest(self._since)
        elif event.data["status"] == WARTEN and (since := self._since.pop(event.actor, None)) is not None:
            yield Sample(event.actor, amount=event.ts_ns - since)


STATISTICS = (
    Histogram(
        key="sums",
        of="rolls",
        title="Sums of the dice, against chance",
        reads=of_each("rolled", give=_sums),
        values=tuple(_SUMS),
        chance=_SUMS,
    ),
    faces_rolled(_faces),
    Counts(
        key="resources",
        title="Resources from the dice",
        reads=of_each("gained", give=_resources),
        columns=_RESOURCES,
    ),
    Counts(
        key="trades",
        title="Trades",
        reads=of_each("trade_offered", "trade_done", "sea_trade", give=_trades),
        columns=("offered", "with a player", "overseas"),
    ),
    Counts(key="built", title="Built", reads=of_each("built", give=_built)),
    Counts(
        key="cards",
        title="Development cards",
        reads=actions(bought_card="bought", played_card="played"),
        columns=("bought", "played"),
    ),
    Counts(
        key="robber",
        title="The robber",
        reads=of_each("robber", give=_robber),
        columns=("moved it", "was robbed"),
    ),
    Durations(key="turn-times", title="Time for a turn", reads=_Turns),
)
