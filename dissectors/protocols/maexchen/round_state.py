"""The known part of one round, and the checks of its verdict.

Without enough facts there is no verdict. All rules are from the specification's Reason-Codes.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank

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

    def set_known(self, name: str, value: Any) -> None:
        """Set a part of a round's state, which may have been unknown before."""
        self.set_state(value, name)
        self.mark_known(name)

    def mark_inferred(self, name: str, inferred: bool) -> None:
        """Note in a round's state whether one of its parts is inferred."""
        if inferred != (name in self.inferred):
            self.inferred ^= {name}
            self.set_state(sorted(self.inferred) or None, "inferred")

    def doubt(self, *parts: str) -> None:
        """Mark `parts` of a round as unknown, and the round as incomplete."""
        self.certain = False
        self.mark_unknown(*parts)
        for name in parts:
            self.set_state(None, name)


def objection(losers: list[str], reason: str, played: Round) -> str | None:
    """Return an objection to the server's verdict, a sentence, or None."""
    stranger = next(
        (name for name in losers if played.players is not None and name not in played.players), None
    )
    if stranger is not None:
        return f"{stranger} does not play in this round"
    match reason:
        case "ANNOUNCED_LOSING_DICE":
            return _losing_dice(losers, played)
        case "SEE_FAILED" | "CAUGHT_BLUFFING":
            return _seen(losers, reason, played)
        case "MIA" | "LIED_ABOUT_MIA":
            return _mia(losers, reason, played)
        case "SEE_BEFORE_FIRST_ROLL":
            if played.last is not None:
                return f"{played.last.name} had announced {played.last.dice} before"
            return _wrong_loser(losers, played.seer)
        case "DID_NOT_ANNOUNCE":
            return _wrong_loser(losers, played.rolling)
        case "DID_NOT_TAKE_TURN":
            return _wrong_loser(losers, played.due)
        case _:
            return None


def missing_evidence(reason: str, played: Round) -> str | None:
    """Return what no message has shown of the facts that explain a loss; None if all are known."""
    if reason == "ANNOUNCED_LOSING_DICE":
        return "the announcement" if played.last is None or played.rolling is not None else None
    if reason not in ("SEE_FAILED", "CAUGHT_BLUFFING", "MIA", "LIED_ABOUT_MIA"):
        return None
    if played.last is None:
        return "the announcement"
    return "the dice" if played.actual is None else None


def _wrong_loser(losers: list[str], name: str | None) -> str | None:
    if name is None or losers == [name]:
        return None
    return f"{name} should have lost"


def _losing_dice(losers: list[str], played: Round) -> str | None:
    if played.last is None or played.rolling is not None:
        # The announcement that lost is missing or still on its way.
        return None
    if played.before is None:
        return "it was the first announcement of the round, which any dice may be"
    if beats(played.last.dice, played.before.dice):
        return f"{played.last.dice} beats {played.before.dice}"
    return _wrong_loser(losers, played.last.name)


def _seen(losers: list[str], reason: str, played: Round) -> str | None:
    if played.last is None:
        return None
    claimed, real = rank(played.last.dice), rank(played.actual) if played.actual is not None else None
    if claimed is None or real is None:
        return None
    if reason == "SEE_FAILED" and real < claimed:
        return f"{played.last.name} had {played.actual} and announced {played.last.dice}: it was a bluff"
    if reason == "CAUGHT_BLUFFING" and real >= claimed:
        return f"{played.last.name} had {played.actual} and announced {played.last.dice}: it was no bluff"
    return _wrong_loser(losers, played.seer if reason == "SEE_FAILED" else played.last.name)


def _mia(losers: list[str], reason: str, played: Round) -> str | None:
    if played.last is None or played.rolling is not None:
        return None
    if played.last.dice != MIA:
        return f"{played.last.name} announced {played.last.dice}, not Mäxchen"
    if played.actual is None:
        return None
    if reason == "LIED_ABOUT_MIA":
        if played.actual == MIA:
            return f"{played.last.name} really had Mäxchen"
        return _wrong_loser(losers, played.last.name)
    if played.actual != MIA:
        return f"{played.last.name} had {played.actual}, not Mäxchen"
    if played.players is None:
        return None
    others = [name for name in played.players if name != played.last.name]
    return None if sorted(losers) == sorted(others) else f"{', '.join(others)} should have lost"
