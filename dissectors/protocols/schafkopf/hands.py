"""Hands: the cards that the server deals and shows, compared with the known cards of each player.

A hand only loses the cards that its player plays; a Hochzeit exchanges one. A contradictory hand is reported,
and accepted if the server repeats it.
"""

from __future__ import annotations

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.schafkopf.cards import HAND
from kiebitz.dissectors.protocols.schafkopf.context import SchafkopfContext, cards_of
from kiebitz.dissectors.protocols.schafkopf.round_state import ClientConnection, Round


def dealt(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle a hand of three or of six cards, before the first card is played."""
    played.advance("dealing" if message.fields["flag"] == "ERSTE3" else "bidding")
    hand = cards_of(message, "spielerhand")
    context.seat_by_turn(connection)
    seat = connection.seat
    if context.is_impossible(message, played) or seat is None:
        return
    known = played.dealt.get(seat)
    if known is not None and connection.certain_round and not set(known) <= set(hand):
        lost = next(card for card in known if card not in hand)
        context.report_card_violation(message, played, "hand-changed/dealt", "spielerhand", 0, card=lost)
        if not connection.doubted:
            connection.doubted = True
            return
    connection.doubted = False
    if _held_elsewhere(context, message, played, seat, hand) or known == hand:
        return
    played.dealt[seat] = hand
    played.put_hand(seat)
    _find_called(played, seat)
    who = played.who(seat)
    context.emit_of(message, "dealt", who, {"seat": seat, "name": who, "cards": hand}, played.game)


def compare(
    context: SchafkopfContext,
    message: Message,
    connection: ClientConnection,
    played: Round,
    news: list[tuple[int, str]],
) -> None:
    """Compare a hand that the server shows with the known cards."""
    seat = connection.seat
    if seat is None:
        return
    now = cards_of(message, "spielerhand")
    own = [card for where, card in news if where == seat]
    known = played.hand(seat)
    shown = [*now, *own]
    if known is not None and set(known) == set(shown):
        connection.hand_doubted = False
        return
    if known is None or not connection.certain_cards or connection.hand_doubted or set(known) < set(shown):
        # The hand was not completely known; or the server repeats it.
        played.contested = played.contested or connection.hand_doubted
        gone = [card.card for card in played.play.cards() if card.seat == seat]
        _learn(played, seat, list(dict.fromkeys(shown + gone)))
        connection.hand_doubted = False
        return
    if _is_refused(message, connection, played):
        return
    connection.hand_doubted = True
    wrong = next((card for card in now if card not in known), None)
    missing = next((card for card in known if card not in shown), None)
    if wrong is not None:
        back = any(card.card == wrong and card.seat == seat for card in played.play.cards())
        key, card = "hand-changed/back" if back else "hand-changed/new", wrong
        place = message.fields["spielerhand"].index(wrong)
    elif missing is not None:
        key, card = "hand-changed/gone", missing
        place = min(len(now), HAND - 1)
    else:
        # It is a card on the table that was not in the hand, reported as such.
        return
    context.report_card_violation(message, played, key, "spielerhand", place, card=card)


def _learn(played: Round, seat: int, hand: list[str]) -> None:
    """Set a hand; assumptions about other hands with one of its cards were wrong."""
    for other in [other for other, cards in played.dealt.items() if other != seat]:
        if not set(hand).isdisjoint(played.dealt[other]):
            del played.dealt[other]
    played.dealt[seat] = hand
    played.put_hand(seat)
    _find_called(played, seat)


def _is_refused(message: Message, connection: ClientConnection, played: Round) -> bool:
    """Return True if the server has rejected the card that this client just played."""
    last = played.play.last()
    return (
        last is not None
        and last.seat == connection.seat
        and last.card in message.fields["spielerhand"]
        and last.card not in message.fields["tisch"]
    )


def _held_elsewhere(
    context: SchafkopfContext, message: Message, played: Round, seat: int, hand: list[str]
) -> bool:
    """Report a card that another player has or has played; return True if there is one."""
    for other, cards in played.dealt.items():
        for place, card in enumerate(hand):
            if other != seat and card in cards:
                key, who = "card-twice/hands", played.who(other)
                context.report_card_violation(
                    message, played, key, "spielerhand", place, card=card, player=who
                )
                return True
    return False


def partner(played: Round, seat: int) -> None:
    """Set the player's partner, publicly."""
    if played.partner != seat and played.player is not None:
        played.partner = seat
        played.set_state(played.who(seat), "partner")
        played.mark_known("partner")


def _find_called(played: Round, seat: int) -> None:
    """Note that the holder of the called Sau knows to be the partner."""
    mode = played.play.mode
    who = played.who(seat)
    if mode is not None and mode.called in played.dealt.get(seat, ()) and who is not None:
        played.set_state(True, "private", who, "partner")


def exchange(played: Round) -> None:
    """Exchange the cards of a Hochzeit between the player and the partner."""
    pair = (played.player, played.partner)
    for giver, other in (pair, pair[::-1]):
        if giver is None or giver not in played.dealt:
            continue
        given = played.given.get(giver)
        got = played.given.get(other) if other is not None else None
        kept = [card for card in played.dealt[giver] if card != given]
        if given is not None and got is not None:
            played.dealt[giver] = [*kept, got]
        else:
            # Unknown until the server shows it.
            del played.dealt[giver]
        played.put_hand(giver)


def find_called(played: Round) -> None:
    """Search all known hands for the called Sau, as the mode is known now."""
    for seat in played.dealt:
        _find_called(played, seat)
