"""Readers of the statistics of Schafkopf: declared games and their outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import MODE, MODI
from kiebitz.dissectors.statistics import Sample

_WON, _LOST = "won", "lost"


def kind_of(mode: str) -> str:
    """Return a Modus without its suit, as in `Solo du`; an unknown one stays as it is."""
    found = MODE.fullmatch(mode) if mode in MODI else None
    return mode if found is None else found[1].capitalize() + (" du" if found[3] else "")


class Declared:
    """Declared games by player and kind."""

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.kind == "declared" and None not in (event.data["player"], event.data["mode"]):
            yield Sample(event.data["player"], kind_of(event.data["mode"]))


class _Outcomes(ABC):
    """Reads the outcome of the declared game for its player, who is a listed winner or loser."""

    def __init__(self) -> None:
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
                is_listed = player in event.data["names"]
                yield Sample(self.line(player, mode), _WON if is_listed == (event.kind == _WON) else _LOST)

    @abstractmethod
    def line(self, player: str, mode: str) -> str:
        """Return the line of a player and a Modus."""


class Declarers(_Outcomes):
    """Outcomes by player."""

    def line(self, player: str, mode: str) -> str:
        return player


class Kinds(_Outcomes):
    """Outcomes by kind of game."""

    def line(self, player: str, mode: str) -> str:
        return kind_of(mode)
