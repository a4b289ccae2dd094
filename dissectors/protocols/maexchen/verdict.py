"""Checks of the server's verdict: whether the reason for a loss agrees with the dice.

Pure functions of the known facts of a round; without enough facts there is no verdict. All rules are from the
specification's Reason-Codes.
"""

from __future__ import annotations

from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank
from kiebitz.dissectors.protocols.maexchen.round_state import Round


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
