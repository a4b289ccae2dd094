"""The messages before the first card: knocks, bids, a Hochzeit, the declared mode, Kontra."""

from __future__ import annotations

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.schafkopf import snapshots
from kiebitz.dissectors.protocols.schafkopf.cards import NOBODY, SI, mode
from kiebitz.dissectors.protocols.schafkopf.context import SchafkopfContext
from kiebitz.dissectors.protocols.schafkopf.round_state import ClientConnection, Round


def knocks(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle a client's answer about knocking."""
    answer: str = message.fields["klopft"]
    if connection.seat is not None:
        played.knocks[connection.seat] = answer
    _answered(context, message, connection, played, "ERSTE3", answer)


def _answered(
    context: SchafkopfContext,
    message: Message,
    connection: ClientConnection,
    played: Round,
    question: str,
    answer: str,
) -> None:
    who = played.who(connection.seat)
    data = {"seat": connection.seat, "name": who, "question": question, "answer": answer}
    context.emit_of(message, "answered", who, data, played.game)


def geklopft(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round
) -> None:
    """Handle the players' answers about knocking, as the server reports them."""
    answers: list[str] = message.fields["geklopft"]
    played.advance("bidding")
    _all_answers(context, message, played, answers, played.knocks, "knocks", "knocked")


def _all_answers(
    context: SchafkopfContext,
    message: Message,
    played: Round,
    answers: list[str],
    said: dict[int, str],
    key: str,
    kind: str,
) -> None:
    """Handle the answers of all players to a question."""
    _compare(context, message, played, said, answers)
    seats = [seat for seat, answer in enumerate(answers) if answer == "JA"]
    names = [played.who(seat) for seat in seats]
    played.set_state(names, key)
    context.emit_repeated(message, played, kind, None, {"seats": seats, "names": names})


def _compare(
    context: SchafkopfContext, message: Message, played: Round, said: dict[int, str], told: list[str]
) -> None:
    """Check that the server repeats the answers as they were given."""
    for seat, answer in said.items():
        if told[seat] != answer:
            context.report_violation(
                message,
                "told-otherwise/answer",
                name=message.name,
                told=told[seat],
                player=played.who(seat),
                answer=answer,
            )


def bestesspiel(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round
) -> None:
    """Handle the best bid so far."""
    best: str = message.fields["modus"]
    played.hochzeit = played.hochzeit or best == "HOCHZEIT"
    told = played.best_bids.get(best)
    if told is not None:
        message.event_id = told
        return
    played.set_state(best, "best_bid")
    event = context.emit_of(message, "best_bid", None, {"mode": best}, played.game)
    played.best_bids[best] = event.id


def bids(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle a client's bid."""
    bid: str = message.fields["modus"]
    played.hochzeit = played.hochzeit or bid == "HOCHZEIT"
    seat = connection.seat
    who = played.who(seat)
    if seat is not None:
        played.bids[seat] = bid
        played.set_state(bid, "private", str(who), "bid")
        hand = played.dealt.get(seat)
        if bid == "SI" and hand is not None and set(hand) != SI:
            context.report_violation(message, "no-si", cards=", ".join(sorted(SI)))
    context.emit_of(message, "bid", who, {"seat": seat, "name": who, "mode": bid}, played.game)


def hochzeit(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round
) -> None:
    """Handle the server's question about a Hochzeit."""
    seat = connection.seat
    who = played.who(seat)
    played.hochzeit = True
    proposer = next((other for other, bid in played.bids.items() if bid == "HOCHZEIT"), None)
    data = {"seat": seat, "name": who, "proposer": played.who(proposer), "taken": None}
    context.emit_of(message, "hochzeit", who, data, played.game)


def takes_hochzeit(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round
) -> None:
    """Handle a client's answer about a Hochzeit."""
    _answered(context, message, connection, played, "HOCHZEIT", message.fields["nimmt"])
    if "karte" in message.fields:
        gives(context, message, connection, played)


def gives(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle the card that a player gives in a Hochzeit."""
    seat = connection.seat
    card: str | None = message.fields["karte"]
    if seat is None:
        return
    hand = played.dealt.get(seat)
    if hand is not None and card not in hand:
        given, held = card or "no card", ", ".join(hand)
        context.report_violation(message, "not-in-hand/given", card=given, hand=held)
        return
    if card is not None:
        played.given[seat] = card


def spielt(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle the declarer and partner, as the server reports them."""
    player: int = message.fields["spieler"]
    partner: int = message.fields["mitspieler"]
    who = played.who(player)
    if played.bids.get(player) == "NICHTS":
        context.report_violation(message, "wrong-player/bid", named=who)
    played.player = player
    played.set_state(who, "player")
    played.mark_known("player")
    if partner != NOBODY:
        snapshots.partner(played, partner)
    context.emit_repeated(message, played, "player", who, {"seat": player, "name": who})


def modus(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle the Modus of the game."""
    name: str = message.fields["modus"]
    played.play.mode = mode(name)
    played.set_state(name, "mode")
    played.advance("playing")
    if not name.startswith(("SAUSPIEL", "HOCHZEIT")):
        played.mark_known("partner")
    if name == "HOCHZEIT":
        snapshots.exchange(played)
    snapshots.find_called(played)
    data = {"mode": name, "player": played.who(played.player), "partner": played.who(played.partner)}
    context.emit_repeated(message, played, "declared", played.who(played.player), data)


def handle_kontra(
    context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round
) -> None:
    """Handle a client's answer about Kontra."""
    answer: str = message.fields["kontra"]
    if connection.seat is not None:
        played.kontras[connection.seat] = answer
    _answered(context, message, connection, played, "KONTRA", answer)


def kontra(context: SchafkopfContext, message: Message, connection: ClientConnection, played: Round) -> None:
    """Handle the players' answers about Kontra, as the server reports them."""
    _all_answers(context, message, played, message.fields["kontra"], played.kontras, "kontra", "kontra")
