"""Statistics of Schafkopf: games declared and won, tricks and their points."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import MODI
from kiebitz.dissectors.statistics import Counts, Read, Sample, Shares, of_each

_WON, _LOST = "won", "lost"
_MODE = re.compile(r"([A-Z]{2,}?)(?:eichel|gras|herz|schellen)?(du|DU)?")


def kind_of(mode: str) -> str:
    """Return a Modus without its suit, as in `Solo du`; an unknown one stays as it is."""
    found = _MODE.fullmatch(mode) if mode in MODI else None
    return mode if found is None else found[1].capitalize() + (" du" if found[2] else "")


def _declared(event: Event) -> Iterable[Sample]:
    if event.data["player"] is not None and event.data["mode"] is not None:
        yield Sample(event.data["player"], kind_of(event.data["mode"]))


def _tricks(event: Event) -> Iterable[Sample]:
    if event.data["winner"] is not None:
        yield Sample(event.data["winner"])


def _trick_points(event: Event) -> Iterable[Sample]:
    if event.data["winner"] is not None and event.data["points"] is not None:
        yield Sample(event.data["winner"], amount=event.data["points"])


def _knocks(event: Event) -> Iterable[Sample]:
    column = {"knocked": "knocked", "kontra": "said Kontra"}[event.kind]
    return (Sample(name, column) for name in event.data["names"])


class _Ends:
    """Reads the outcome of the declared game for its player, who is a listed winner or loser."""

    def __init__(self, give: Callable[[str, str, str], Sample]) -> None:
        self._give = give
        self._declared: dict[str, Any] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind == "round_started":
            self._declared = {}
        elif event.kind == "declared":
            self._declared = event.data
        elif event.kind in (_WON, _LOST) and self._declared:
            player, mode = self._declared["player"], self._declared["mode"]
            self._declared = {}
            if player is not None and mode is not None:
                # Only one side is listed; if the player is not on it, the other side has that outcome.
                told_of = player in event.data["names"]
                yield self._give(player, mode, _WON if told_of == (event.kind == _WON) else _LOST)


def _ends(give: Callable[[str, str, str], Sample]) -> Callable[[], Read]:
    """Return a factory for readers of declared games: `give` makes a sample of player, Modus and outcome."""
    return lambda: _Ends(give)


STATISTICS = (
    Counts(key="games", title="Games declared", reads=of_each("declared", give=_declared)),
    Shares(
        key="declarers",
        title="Declared, and won",
        reads=_ends(lambda player, mode, end: Sample(player, end)),
        part=_WON,
        rest=_LOST,
    ),
    Shares(
        key="kinds",
        title="Won, by the kind of game",
        reads=_ends(lambda player, mode, end: Sample(kind_of(mode), end)),
        part=_WON,
        rest=_LOST,
        of="game",
    ),
    Counts(key="tricks", title="Tricks taken", reads=of_each("trick", give=_tricks)),
    Counts(key="trick-points", title="Points in tricks", reads=of_each("trick", give=_trick_points)),
    Counts(key="knocks", title="Knocked, said Kontra", reads=of_each("knocked", "kontra", give=_knocks)),
)
