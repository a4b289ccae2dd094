"""The check of the server's `!SIEGER`: who must have won a round, by the rules."""

from __future__ import annotations

from typing import Any, NamedTuple

from kiebitz.dissectors.protocols.schafkopf.cards import NOBODY, TO_WIN
from kiebitz.dissectors.protocols.schafkopf.play import TRICKS
from kiebitz.dissectors.protocols.schafkopf.round_state import Round


class Objection(NamedTuple):
    """The rule that a SIEGER breaks, and the values of its text."""

    key: str
    values: dict[str, Any]


def verdict(played: Round, codes: tuple[int, int]) -> Objection | None:
    """Compare a SIEGER's two numbers with the cards; return None if they may be right.

    A number is a seat that won, a seat plus 10 that lost, or 4 for nobody. A round with an unseen trick is
    not checked. After a declined Hochzeit, real servers can be wrong about who plays: that is not reported as
    an error.
    """
    first, second = (code % 10 if code != NOBODY else None for code in codes)
    if first is not None and first == second:
        return Objection("same-seat-twice", {"first": codes[0], "second": codes[1]})
    if played.player is not None and first is not None and first != played.player:
        values = {"named": played.who(first), "player": played.who(played.player), "seat": played.player}
        return Objection("wrong-player/refused" if _is_refused(played) else "wrong-player", values)
    play = played.play
    mode = play.mode
    if mode is None or not _is_known(played):
        return None
    partner = second
    if mode.called is not None:
        partner = next(card.seat for card in play.cards() if card.card == mode.called)
        if second is not None and second != partner:
            named, right = played.who(second), played.who(partner)
            values = {"named": named, "partner": right, "card": mode.called, "seat": partner}
            return Objection("wrong-partner", values)
    party = {played.player, partner}
    taken = [trick for trick in play.tricks if trick.winner in party]
    points = sum(trick.points for trick in taken)
    won = len(taken) == TRICKS if mode.du else points >= TO_WIN
    said = codes[0] < NOBODY
    if won == said:
        return None
    values = {
        "player": played.who(played.player),
        "said": "won" if said else "lost",
        "taken": f"{len(taken)} of {TRICKS} tricks" if mode.du else f"{points} of 120 points",
        "right": "won" if won else "lost",
        "needed": "every trick" if mode.du else f"{TO_WIN} points",
    }
    return Objection("wrong-winner", values)


def is_confirmed(played: Round, named: int) -> bool:
    """Return True if the cards confirm a SIEGER without an objection, which names so many seats."""
    has_partner = played.hochzeit or (played.play.mode is not None and played.play.mode.called is not None)
    return _is_known(played) and named == 1 + has_partner


def _is_known(played: Round) -> bool:
    """Return True if the cards of a round show who has won."""
    play = played.play
    is_known = play.mode is not None and play.over and play.certain
    return is_known and played.player is not None and not _is_refused(played)


def _is_refused(played: Round) -> bool:
    return played.hochzeit and played.mode != "HOCHZEIT"
