"""Checks of the server's verdict: whether the reason for a loss agrees with the dice.

Pure functions of the known facts of a round; without enough facts there is no verdict. All rules are from the
specification's Reason-Codes.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank


class Announcement(msgspec.Struct, frozen=True):
    """A player's announcement of dice."""

    name: str
    dice: str


class Evidence(msgspec.Struct, frozen=True):
    """The facts known at a loss, None where unknown.

    `due` is the player who must roll or see next, `rolling` the one who has rolled and not yet announced,
    `seer` the one who wanted to see; `last` and `before` are the two latest announcements.
    """

    players: tuple[str, ...] | None
    due: str | None
    rolling: str | None
    seer: str | None
    last: Announcement | None
    before: Announcement | None
    actual: str | None


def objection(losers: list[str], reason: str, seen: Evidence) -> str | None:
    """Return an objection to the server's verdict, a sentence, or None."""
    stranger = next((name for name in losers if seen.players is not None and name not in seen.players), None)
    if stranger is not None:
        return f"{stranger} does not play in this round"
    match reason:
        case "ANNOUNCED_LOSING_DICE":
            return _losing_dice(losers, seen)
        case "SEE_FAILED" | "CAUGHT_BLUFFING":
            return _seen(losers, reason, seen)
        case "MIA" | "LIED_ABOUT_MIA":
            return _mia(losers, reason, seen)
        case "SEE_BEFORE_FIRST_ROLL":
            if seen.last is not None:
                return f"{seen.last.name} had announced {seen.last.dice} before"
            return _wrong_loser(losers, seen.seer)
        case "DID_NOT_ANNOUNCE":
            return _wrong_loser(losers, seen.rolling)
        case "DID_NOT_TAKE_TURN":
            return _wrong_loser(losers, seen.due)
        case _:
            return None


def missing_evidence(reason: str, seen: Evidence) -> str | None:
    """Return what no message has shown of the facts that explain a loss; None if all are known."""
    if reason == "ANNOUNCED_LOSING_DICE":
        return "the announcement" if seen.last is None or seen.rolling is not None else None
    if reason not in ("SEE_FAILED", "CAUGHT_BLUFFING", "MIA", "LIED_ABOUT_MIA"):
        return None
    if seen.last is None:
        return "the announcement"
    return "the dice" if seen.actual is None else None


def _wrong_loser(losers: list[str], name: str | None) -> str | None:
    if name is None or losers == [name]:
        return None
    return f"{name} should have lost"


def _losing_dice(losers: list[str], seen: Evidence) -> str | None:
    if seen.last is None or seen.rolling is not None:
        # The announcement that lost is missing or still on its way.
        return None
    if seen.before is None:
        return "it was the first announcement of the round, which any dice may be"
    if beats(seen.last.dice, seen.before.dice):
        return f"{seen.last.dice} beats {seen.before.dice}"
    return _wrong_loser(losers, seen.last.name)


def _seen(losers: list[str], reason: str, seen: Evidence) -> str | None:
    if seen.last is None:
        return None
    claimed, real = rank(seen.last.dice), rank(seen.actual) if seen.actual is not None else None
    if claimed is None or real is None:
        return None
    if reason == "SEE_FAILED" and real < claimed:
        return f"{seen.last.name} had {seen.actual} and announced {seen.last.dice}: it was a bluff"
    if reason == "CAUGHT_BLUFFING" and real >= claimed:
        return f"{seen.last.name} had {seen.actual} and announced {seen.last.dice}: it was no bluff"
    return _wrong_loser(losers, seen.seer if reason == "SEE_FAILED" else seen.last.name)


def _mia(losers: list[str], reason: str, seen: Evidence) -> str | None:
    if seen.last is None or seen.rolling is not None:
        return None
    if seen.last.dice != MIA:
        return f"{seen.last.name} announced {seen.last.dice}, not Mäxchen"
    if seen.actual is None:
        return None
    if reason == "LIED_ABOUT_MIA":
        if seen.actual == MIA:
            return f"{seen.last.name} really had Mäxchen"
        return _wrong_loser(losers, seen.last.name)
    if seen.actual != MIA:
        return f"{seen.last.name} had {seen.actual}, not Mäxchen"
    if seen.players is None:
        return None
    others = [name for name in seen.players if name != seen.last.name]
    return None if sorted(losers) == sorted(others) else f"{', '.join(others)} should have lost"
