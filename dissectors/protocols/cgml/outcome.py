"""Checks of a hand's result against the tricks: who can have won, and what no message has shown."""

from __future__ import annotations

from collections.abc import Collection

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.cgml.cards import HAND, SEATS, WITHOUT_TRUMPS
from kiebitz.dissectors.protocols.cgml.context import CgmlContext
from kiebitz.dissectors.protocols.cgml.hand import Hand


def check_outcome(
    context: CgmlContext,
    observation: Observation,
    hand: Hand,
    winners: Collection[int],
    losers: Collection[int],
) -> None:
    """Report a result whose winners contradict the declarer's game; one violation is enough."""
    declarer, game = hand.declarer, hand.contract
    if (
        declarer is None
        or game is None
        or len(hand.seats) < SEATS
        or context.has_violation(observation.message)
    ):
        return
    if not {declarer} < {*winners, *losers} <= {*hand.seats}:
        return
    side = winners if declarer in winners else losers
    other = next((player for player in side if player != declarer), None)
    if other is not None:
        context.report_violation_of(observation, "wrong-party", declarer=declarer, player=other)
        return
    has_won = declarer in winners
    taken = sum(trick.winner == declarer for trick in hand.tricks)
    if _can_end_like_this(game, has_won, taken, len(hand.tricks)):
        return
    said, right = ("won", "lost") if has_won else ("lost", "won")
    context.report_violation_of(
        observation,
        "wrong-result",
        declarer=declarer,
        said=said,
        game=game,
        taken=taken,
        shown=len(hand.tricks),
        right=right,
    )


def _can_end_like_this(game: str, has_won: bool, taken: int, shown: int) -> bool:
    """Return True if the tricks allow an outcome; with trumps, points that are not announced count, too."""
    if game not in WITHOUT_TRUMPS:
        return True
    is_lost = taken > 0 if game == "SMALL" else taken < shown
    return not is_lost if has_won else is_lost or shown < HAND


def note_missing_tricks(context: CgmlContext, observation: Observation, hand: Hand) -> None:
    """Note a result that the tricks do not explain; games without trumps may end before the last trick."""
    fields = observation.fields
    shown = max(len(hand.tricks), len(fields.get("round", ())))
    is_whole = shown >= HAND or bool(hand.laid) or fields["licite"] in WITHOUT_TRUMPS
    if not is_whole and not context.has_violation(observation.message):
        context.report_violation_of(observation, "tricks-missing", shown=shown, tricks=HAND)
