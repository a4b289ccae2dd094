"""The cards in MODELs: hands and cards played, checked for contradictions.

A client plays by sending the cards as they are afterwards. The rest of the table must be as the server showed
it, the card must come from the client's hand, and suit must be followed. The server's own snapshots must
agree with each other. A contradictory snapshot is ignored, unless the next one repeats it.

A hand only loses the cards that its player plays; a Hochzeit exchanges one. A contradictory hand is reported,
and accepted if the server repeats it.
"""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.model import Blame, Message
from kiebitz.dissectors.protocols.schafkopf.cards import HAND, PACK, Contradiction, Trick
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


def shown(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle a snapshot from the server."""
    played.advance("playing")
    if message.fields["flag"] == "SPIEL":
        context.seat_by_turn(connection)
    if context.is_impossible(message, played):
        return
    try:
        news = _news(context, message, played)
    except Contradiction as error:
        if connection.certain_cards and not connection.doubted:
            connection.doubted = True
            place = error.field, error.place
            context.report_card_violation(message, played, "contradiction", *place, problem=str(error))
            return
        # The server repeats it, or something was missed.
        played.play.restart(message.fields["tisch"], message.fields["letzter_stich"])
        played.mark_unknown("tricks")
        played.contested = True
        try:
            news = _news(context, message, played)
        except Contradiction:
            news = []
    compare(context, message, connection, played, news)
    connection.doubted = not _take(context, message, connection, played, news)
    _note_position(message, connection, played)
    connection.certain_cards = True


def move(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle a client's MODEL, which plays a card."""
    seat = connection.seat
    table: list[str | None] = message.fields["tisch"]
    if context.is_impossible(message, played) or seat is None:
        return
    if not connection.certain_cards:
        # The client's previous snapshot is missing, so this one is new.
        shown(context, message, connection, played)
        return
    card = table[seat]
    hand = played.hand(seat)
    now = cards_of(message, "spielerhand")
    before = played.play.current.by_seat[seat]
    if card is None or card == before:
        context.report_card_violation(message, played, "no-card", "tisch", seat, seat=seat)
        return
    if hand is not None and card not in hand:
        context.report_card_violation(
            message, played, "not-in-hand", "tisch", seat, card=card, hand=", ".join(hand)
        )
        return
    if hand is not None and sorted(now) != sorted(other for other in hand if other != card):
        wrong = next((other for other in now if other not in hand or other == card), None)
        place = message.fields["spielerhand"].index(wrong) if wrong is not None else len(now)
        left = ", ".join(other for other in hand if other != card) or "no card"
        place = min(place, HAND - 1)
        context.report_card_violation(
            message, played, "hand-changed", "spielerhand", place, card=card, left=left
        )
        return
    try:
        news = _news(context, message, played)
    except Contradiction as error:
        where = error.field, error.place
        context.report_card_violation(message, played, "table-changed", *where, problem=str(error))
        return
    others = [step for step in news if step[0] != seat]
    if others:
        other, laid = others[0]
        context.report_card_violation(
            message, played, "table-changed/seat", "tisch", other, card=laid, seat=other
        )
        return
    if news and _breaks_suit(context, message, played, seat, card, played.play.current):
        played.refused.add((seat, card))
        return
    _take(context, message, connection, played, news)
    _note_position(message, connection, played)


def infer_last(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round
) -> None:
    """Infer the last card of a round, when all others are known."""
    play = played.play
    left = PACK - {known.card for known in play.cards()}
    seat = play.current.next_seat()
    if play.certain and len(left) == 1 and seat is not None:
        _take(context, message, connection, played, [(seat, min(left))], inferred=True)


def _news(context: SchafkopfContext, message: Message, played: Round) -> list[tuple[int, str]]:
    """Return the cards played since. Raises Contradiction."""
    table, last = message.fields["tisch"], message.fields["letzter_stich"]
    try:
        return played.play.news(table, last)
    except Contradiction as error:
        trick = played.play.current
        if error.leader is None or trick.cards or not played.play.tricks:
            raise
        leads(context, message, played, error.leader)
        return played.play.news(table, last)


def leads(context: SchafkopfContext, message: Message, played: Round, seat: int) -> None:
    """Handle a server that lets another player lead than the winner of the last trick."""
    trick = played.play.tricks[-1]
    played.play.current.leader = seat
    if trick.winner is None:
        trick.winner = seat
        played.put_tricks()
    elif trick.winner != seat and not trick.disputed:
        trick.disputed = True
        context.report_violation(
            message,
            "trick-winner",
            player=played.who(seat),
            trick=trick.number,
            winner=played.who(trick.winner),
            seat=trick.winner,
        )


def _take(
    context: SchafkopfContext,
    message: Message,
    connection: ClientConnection,
    played: Round,
    news: list[tuple[int, str]],
    inferred: bool = False,
) -> bool:
    """Emit events of the cards played, up to an impossible one; return False if there was one."""
    for seat, card in news:
        if not inferred and _is_impossible_card(context, message, connection, played, seat, card):
            return False
        trick = played.play.current
        if not inferred and (seat, card) not in played.refused:
            _breaks_suit(context, message, played, seat, card, trick)
        done = played.play.add(seat, card)
        who = played.who(seat)
        played.put_hand(seat)
        played.put_table()
        if played.play.mode is not None and card == played.play.mode.called:
            partner(played, seat)
        data: dict[str, Any] = {"seat": seat, "name": who, "card": card}
        if inferred:
            data["inferred"] = True
        event = context.emit_of(message, "played", who, data, played.game)
        (done or played.play.current).cards[-1].event_id = event.id
        if done is not None:
            _emit_trick(context, message, played, done)
    return True


def _emit_trick(context: SchafkopfContext, message: Message, played: Round, trick: Trick) -> None:
    played.put_tricks()
    data = played.trick(trick)
    trick.event_id = context.emit_of(message, "trick", data["winner"], data, played.game).id


def _is_impossible_card(
    context: SchafkopfContext,
    message: Message,
    connection: ClientConnection,
    played: Round,
    seat: int,
    card: str,
) -> bool:
    """Report a card that cannot be played now; if the server repeats it, drop contradicting knowledge."""
    insists = connection.doubted
    played.contested = played.contested or insists
    earlier = next((other for other in played.play.cards() if other.card == card), None)
    if earlier is not None:
        if insists:
            played.play.certain = False
            return False
        key, who = "card-twice/played", played.who(earlier.seat)
        context.report_card_violation(message, played, key, "tisch", seat, card=card, player=who)
        return True
    holder = next((other for other in played.dealt if card in (played.hand(other) or ())), None)
    if holder is not None and holder != seat:
        if insists:
            del played.dealt[holder]
            return False
        key, who = "card-twice/held", played.who(holder)
        context.report_card_violation(message, played, key, "tisch", seat, card=card, player=who)
        return True
    if holder is None and seat in played.dealt:
        if insists:
            del played.dealt[seat]
            return False
        key = "not-in-hand/laid" if message.direction == "c2s" else "not-in-hand/shown"
        context.report_card_violation(message, played, key, "tisch", seat, card=card, player=played.who(seat))
        return True
    return False


def _breaks_suit(
    context: SchafkopfContext, message: Message, played: Round, seat: int, card: str, trick: Trick
) -> bool:
    """Report a player who does not follow suit; for an unknown hand this shows only later."""
    mode = played.play.mode
    if mode is None or not played.play.certain:
        return False
    suit = mode.suit(card)
    earlier = played.renounced.pop((seat, suit), None)
    if earlier is not None:
        _revoke(
            context, message, played, seat, "suit-not-followed/earlier", card=card, suit=suit, trick=earlier
        )
    led = mode.suit(trick.cards[0].card) if trick.cards else suit
    if led == suit:
        return False
    hand = played.hand(seat)
    if hand is None:
        played.renounced.setdefault((seat, led), trick.number)
        return False
    right = mode.must_follow(trick.cards[0].card, hand)
    if right:
        first, allowed = trick.cards[0].card, ", ".join(right)
        _revoke(
            context,
            message,
            played,
            seat,
            "suit-not-followed",
            card=card,
            led=first,
            suit=led,
            allowed=allowed,
        )
    return bool(right)


def _revoke(
    context: SchafkopfContext, message: Message, played: Round, seat: int, key: str, **values: Any
) -> None:
    # A card shown to another client may be a client's or that of a bot of the server.
    blame: Blame = "client" if message.direction == "c2s" else "unknown"
    who = played.who(seat)
    context.report_card_violation(message, played, key, "tisch", seat, blame=blame, player=who, **values)


def _note_position(message: Message, connection: ClientConnection, played: Round) -> None:
    table, last = message.fields["tisch"], message.fields["letzter_stich"]
    event_id, tricks = played.play.showing(table, last)
    if message.event_id is None:
        message.event_id = event_id
    # Once the table is cleared, the winner's turn was already announced.
    connection.lead_due = connection.lead_due or (tricks > connection.tricks and all(table))
    connection.tricks = tricks
