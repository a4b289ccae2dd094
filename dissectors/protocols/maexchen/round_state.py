"""The known part of one round, on which the table's checks are based."""

from __future__ import annotations

from typing import Literal

import msgspec

from kiebitz.dissectors.game.running_game import RunningGame

Phase = Literal["starting", "started", "lost", "canceled"]


class Announcement(msgspec.Struct, frozen=True):
    """A player's announcement of dice."""

    name: str
    dice: str


class Round(RunningGame, eq=False):
    """A round; no violations are reported unless it is `certain`.

    `rolling` has rolled and not yet announced, `seer` wanted to see; `last` and `before` are the two latest
    announcements. Unknown values are None.
    """

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
    certain: bool = True
    started_ns: int = 0
    over_ns: int | None = None
    inferred: set[str] = msgspec.field(default_factory=set)
    scored: bool = False

    @property
    def due(self) -> str | None:
        """The player who must roll or see next, by the order of play; None if unknown."""
        if not self.players or not self.certain:
            return None
        if self.last is None:
            return self.players[0]
        if self.last.name not in self.players:
            return None
        return self.players[(self.players.index(self.last.name) + 1) % len(self.players)]
