"""Statistics of licitovaný mariáš: games, their players and winners, tricks, bids and fleks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.player_names import player_name, player_names
from kiebitz.dissectors.statistics import Counts, Read, Sample, Shares, remember

_WON, _LOST = "won", "lost"
_PASS = "PASS"

GAME_NAMES = {
    "G": "hra",
    "BG": "lepší hra",
    "7": "sedma",
    "B7": "lepší sedma",
    "100": "stovka",
    "107": "stovka + sedma",
    "B100": "lepší stovka",
    "B107": "lepší stovka + sedma",
    "SMALL": "betl",
    "BIG": "durch",
    "27": "dvě sedmy",
    "127": "stovka + dvě sedmy",
    "B27": "lepší dvě sedmy",
    "B127": "stovka + lepší dvě sedmy",
}
"""The names of the games of table 3-1."""


def _name(player: int | None, state: State) -> str:
    return player_name(player, player_names(state))


class _Hands:
    """A reader that yields a sample for each hand, made from its declarer, game and outcome."""

    def __init__(self, give: Callable[[str, str, str], Sample]) -> None:
        self._give = give
        self._played: dict[int | None, dict[str, Any]] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind in ("contract", "trump"):
            # The second event may raise the game of the first.
            remember(self._played, event.game_id, event.data)
        elif event.kind == "result":
            played = self._played.pop(event.game_id, None)
            if played is not None and played["player"] is not None:
                end = _WON if played["player"] in event.data["winners"] else _LOST
                game = event.data["game"] or played["game"]
                yield self._give(_name(played["player"], state), GAME_NAMES.get(game, str(game)), end)


def _hands(give: Callable[[str, str, str], Sample]) -> Callable[[], Read]:
    return lambda: _Hands(give)


def _tricks(event: Event, state: State) -> Iterable[Sample]:
    if event.kind == "trick" and event.data["winner"] is not None:
        yield Sample(_name(event.data["winner"], state))


def _bids(event: Event, state: State) -> Iterable[Sample]:
    if event.kind == "bid":
        column = "passed" if event.data["call"] in (_PASS, "NO") else "bid"
        yield Sample(_name(event.data["player"], state), column)


class _Fleks:
    """A reader that distinguishes raising from repeating the level."""

    def __init__(self) -> None:
        self._level: dict[int | None, tuple[str, str]] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind == "trump":
            self._level.pop(event.game_id, None)
        elif event.kind == "flek":
            # The level of the game and, after a colon, that of the seven; a missing one is 1.
            game, _, seven = event.data["level"].partition(":")
            level = (game, seven or "1")
            raised = level != self._level.get(event.game_id, ("1", "1"))
            remember(self._level, event.game_id, level)
            yield Sample(_name(event.data["player"], state), "raised" if raised else "left it")


STATISTICS = (
    Counts(
        key="games",
        title="Games played",
        reads=_hands(lambda player, game, end: Sample(player, game)),
        columns=(*GAME_NAMES.values(),),
    ),
    Shares(
        key="declarers",
        title="Played, and won",
        reads=_hands(lambda player, game, end: Sample(player, end)),
        part=_WON,
        rest=_LOST,
    ),
    Shares(
        key="kinds",
        title="Won, by the kind of game",
        reads=_hands(lambda player, game, end: Sample(game, end)),
        part=_WON,
        rest=_LOST,
        of="game",
    ),
    Counts(key="tricks", title="Tricks taken", reads=lambda: _tricks),
    Counts(key="bids", title="Bids", reads=lambda: _bids, columns=("bid", "passed")),
    Counts(key="fleks", title="Fleks", reads=_Fleks, columns=("raised", "left it")),
)
