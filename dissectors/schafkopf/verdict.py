"""Who must have won a round, by the rules, and what speaks against the server's `!SIEGER`."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.records import Severity
from kiebitz.dissectors.schafkopf.cards import NOBODY, TO_WIN
from kiebitz.dissectors.schafkopf.play import TRICKS
from kiebitz.dissectors.schafkopf.round import Round


class Objection(msgspec.Struct, frozen=True):
    """What is wrong with a SIEGER."""

    severity: Severity
    code: str
    text: str
    expected: str | None


def verdict(played: Round, codes: tuple[int, int]) -> Objection | None:
    """Compare a SIEGER's two numbers with the cards; None if nothing speaks against them.

    A number is a seat that won, a seat plus 10 that lost, or 4 for nobody. Nothing can be said of a round of
    which some trick was not seen. After a Hochzeit that nobody took, real servers can be wrong about who
    plays: that is not held against this one.
    """
    refused = played.hochzeit and played.mode != "HOCHZEIT"
    first, second = (code % 10 if code != NOBODY else None for code in codes)
    if first is not None and first == second:
        text = f"SIEGER {codes[0]} {codes[1]} names the same seat twice (a known fault of real servers)"
        return Objection("note", "same-seat-twice", text, "two seats, or 4 for nobody")
    if played.player is not None and first is not None and first != played.player:
        text = f"SIEGER names {played.who(first)}, but {played.who(played.player)} plays"
        severity: Severity = "note" if refused else "error"
        return Objection(severity, "wrong-player", text, f"seat {played.player}, or it plus 10")
    play = played.play
    mode = play.mode
    if mode is None or not (play.over and play.whole) or played.player is None or refused:
        return None
    partner = second
    if mode.called is not None:
        partner = next(card.seat for card in play.cards() if card.card == mode.called)
        if second is not None and second != partner:
            text = (
                f"SIEGER names {played.who(second)} as partner, but {played.who(partner)} had {mode.called}"
            )
            return Objection("error", "wrong-partner", text, f"seat {partner}, or it plus 10")
    party = {played.player, partner}
    taken = [trick for trick in play.tricks if trick.winner in party]
    points = sum(trick.points for trick in taken)
    won = len(taken) == TRICKS if mode.du else points >= TO_WIN
    said = codes[0] < NOBODY
    if won == said:
        return None
    what = f"{len(taken)} of {TRICKS} tricks" if mode.du else f"{points} of 120 points"
    needed = "every trick" if mode.du else f"{TO_WIN} points"
    text = f"SIEGER says that {played.who(played.player)} {'won' if said else 'lost'} with {what}"
    expected = f"{'won' if won else 'lost'}: {needed} are needed"
    return Objection("error", "wrong-winner", text, expected)
