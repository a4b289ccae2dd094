"""One round as far as it is known: the memory that the table's judgement rests on."""

from __future__ import annotations

from typing import Literal

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.protocols.maexchen.verdict import Announcement, Evidence

Phase = Literal["starting", "started", "lost", "canceled"]


class Round(msgspec.Struct, eq=False):
    """A round. `whole` is false once something of it is known to be missing: then nobody is accused."""

    game: Game
    place: tuple[str, str]
    """Where in the table's state its part stands."""
    state: State
    """That part, as long as it has not `left`."""
    number: int | None = None
    phase: Phase = "starting"
    players: list[str] | None = None
    turn: str | None = None
    rolling: str | None = None
    rolled: dict[str, str] = msgspec.field(default_factory=dict)
    seer: str | None = None
    last: Announcement | None = None
    before: Announcement | None = None
    actual: str | None = None
    whole: bool = True
    started_ns: int = 0
    over_ns: int | None = None
    inferred: set[str] = msgspec.field(default_factory=set)
    scored: bool = False
    left: bool = False
    """Whether it is no longer part of the table's state."""

    @property
    def due(self) -> str | None:
        """Who has to roll or see next, by the order of play; None where that is not known."""
        if not self.players or not self.whole:
            return None
        if self.last is None:
            return self.players[0]
        if self.last.name not in self.players:
            return None
        return self.players[(self.players.index(self.last.name) + 1) % len(self.players)]

    def evidence(self) -> Evidence:
        """What is known, for a verdict on a loss."""
        players = tuple(self.players) if self.players is not None else None
        return Evidence(players, self.due, self.rolling, self.seer, self.last, self.before, self.actual)
