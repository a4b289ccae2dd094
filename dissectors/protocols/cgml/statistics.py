"""Readers of the statistics of licitovaný mariáš: hands with their outcomes, and fleks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import player_name, player_names
from kiebitz.dissectors.statistics import Sample, remember

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


class _Hands(ABC):
    """Yields a sample for each hand, made from its declarer, game and outcome."""

    def __init__(self) -> None:
        self._played: dict[int | None, dict[str, Any]] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind in ("contract", "trump"):
            # The second event may raise the game of the first.
            remember(self._played, event.game_id, event.data)
        elif event.kind == "result":
            played = self._played.pop(event.game_id, None)
            if played is not None and played["player"] is not None:
                end = "won" if played["player"] in event.data["winners"] else "lost"
                game = event.data["game"] or played["game"]
                name = player_name(played["player"], player_names(state))
                yield self.sample(name, GAME_NAMES.get(game, str(game)), end)

    @abstractmethod
    def sample(self, player: str, game: str, end: str) -> Sample:
        """Return the sample of a hand."""


class Games(_Hands):
    """Hands by player and game."""

    columns = tuple(GAME_NAMES.values())

    def sample(self, player: str, game: str, end: str) -> Sample:
        return Sample(player, game)


class Declarers(_Hands):
    """Outcomes by player."""

    def sample(self, player: str, game: str, end: str) -> Sample:
        return Sample(player, end)


class Kinds(_Hands):
    """Outcomes by game."""

    def sample(self, player: str, game: str, end: str) -> Sample:
        return Sample(game, end)


class Fleks:
    """Fleks that raise the level, and those that repeat it."""

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
            name = player_name(event.data["player"], player_names(state))
            yield Sample(name, "raised" if raised else "left it")
