"""Players and their status: names, colours, chat, refusals, disconnection."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import LOST, Message
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import HAS_THE_TURN, Player
from kiebitz.dissectors.protocols.catan.ledger import (
    DISCARD,
    MONOPOLY,
    ROBBER,
    Counts,
    Hand,
    counts_text,
    plain,
    total,
)
from kiebitz.dissectors.protocols.catan.words import KARTEN

_HONOURS = {"Längste Handelsstraße": "longest_road", "Größte Rittermacht": "largest_army"}


def hallo(context: CatanContext, observation: Observation) -> None:
    """Store the server's version."""
    if observation.message.direction == "s2c":
        context.set_state({"version": observation.fields["Version"][:200]}, "server")


def willkommen(context: CatanContext, observation: Observation) -> None:
    """Process the number that a client is given."""
    number = observation.fields["id"]
    _join(context, observation, number)
    if observation.event is None:
        # Other clients were informed of the player first.
        observation.event = context.players[number].joined


def _join(context: CatanContext, observation: Observation, number: int, plays: bool = False) -> Player:
    """Return a connected player; one that `plays` is added to the current game."""
    before = context.players.get(number)
    known = context.known(number)
    if before is None or before.gone:
        known.gone = False
        context.put_lobby(known)
        known.joined = context.emit_observed(observation, "joined", known, {})
    # A late player waits for the next game.
    in_game = context.game is not None and number in context.game.players
    return context.player(number) if plays or in_game else known


def statusupdate(context: CatanContext, observation: Observation) -> None:
    """Process a player's status."""
    told = observation.fields["Spieler"]
    status = told.get("Status")
    known = context.players.get(told["id"])
    if status == "Verbindung verloren" and (known is None or known.gone):
        return
    player = _join(context, observation, told["id"], _plays(context, status))
    _configured(context, observation, player, told)
    if context.game is not None:
        context.game.ledger.forget(MONOPOLY)
    pending = len(context.pending_changes)
    before = player.status
    if context.game is not None and player.id in context.game.players:
        _in_game(context, observation, player, told)
    if status is not None and status != before:
        player.status = status
        known = context.players[player.id]
        known.status = status
        context.put_lobby(known)
        context.put_player(player, "status", status)
        _turn(context, observation, player, status)
    elif len(context.pending_changes) == pending:
        return
    if status == "Verbindung verloren" and status != before:
        _gone(context, observation, player, LOST)
    elif status == "Wartet auf Spielbeginn" and status != before:
        context.emit_observed(observation, "ready", player, {})
    else:
        context.emit_observed(
            observation, "status", player, {"status": player.status, "points": player.points}
        )


def _plays(context: CatanContext, status: str | None) -> bool:
    """Return True if a status shows that a player is in the game.

    In a game whose beginning was not recorded, waiting shows it, too.
    """
    game = context.game
    if game is not None and not game.certain:
        return status not in ("Spiel starten", "Wartet auf Spielbeginn")
    return status in HAS_THE_TURN or status == "Karten wegen Räuber abgeben"


def _configured(
    context: CatanContext, observation: Observation, player: Player, told: dict[str, Any]
) -> None:
    name, colour = told.get("Name"), told.get("Farbe")
    known = context.players[player.id]
    before = known.name, known.colour
    if name or colour:
        context.rename(known, name or None, colour)
    if (known.name, known.colour) == before:
        return
    if player is not known:
        context.put_in(None, "private", player.name)
        player.name, player.colour = known.name, known.colour
        context.put_player(player, "name", player.name)
        context.put_player(player, "colour", player.colour)
        context.put_hand(player)
        context.put_cards(player)
    named = {"before": before[0]} if known.name != before[0] else {}
    context.emit_observed(observation, "configured", known, {"colour": known.colour, **named})


def _turn(context: CatanContext, observation: Observation, player: Player, status: str) -> None:
    game = context.game
    if game is not None and status == "Handeln oder Bauen":
        game.yielding = False
    if game is not None and status in HAS_THE_TURN:
        game.has_turn(player, observation.ts_ns)
        context.put_in(player.id, "turn")
        context.put_in(status, "phase")


def _in_game(context: CatanContext, observation: Observation, player: Player, told: dict[str, Any]) -> None:
    # The player's own copy includes points that others do not see, so the maximum is right.
    points = max(
        (
            copy.fields["Spieler"]["Siegpunkte"]
            for copy in observation.messages
            if "Siegpunkte" in copy.fields["Spieler"]
        ),
        default=None,
    )
    for what, value in (("points", points), ("knights", told.get("Rittermacht"))):
        if value is not None and value != getattr(player, what):
            setattr(player, what, value)
            context.put_player(player, what, value)
            context.count_points()
    if context.game is not None and not context.game.certain:
        # Its award was not recorded; otherwise a message announces it.
        for what, place in _HONOURS.items():
            if told.get(what):
                context.put_in(player.id, place)
    if "Rohstoffe" in told:
        _resources(context, observation, player, told["Rohstoffe"])
    if "Entwicklungskarten" in told:
        _cards(context, observation, player)


def _resources(context: CatanContext, observation: Observation, player: Player, counts: Counts) -> None:
    hand = player.hand
    ours = hand.total
    if ours is not None and ours != total(counts):
        told = total(counts)
        if _unannounced_discard(context, observation, player, told) or _unannounced_theft(
            context, observation, player, told
        ):
            ours = hand.total
    was_known = hand.is_known
    if _is_outside(context, observation):
        agrees = ours is None or ours == total(counts)
    else:
        agrees = hand.apply_counts(counts)
    if not agrees and context.is_certain():
        known = counts_text(ours) if ours is not None and ours != total(counts) else "other cards"
        context.report_violation_of(
            observation,
            "total-mismatch",
            "Spieler",
            "Rohstoffe",
            player=player.name,
            told=counts_text(counts),
            known=known,
            count=ours,
        )
    if not agrees or not was_known or ours is None:
        context.put_hand(player)


def _is_outside(context: CatanContext, observation: Observation) -> bool:
    """Return True if only clients that do not take part in the game received this.

    Real servers introduce the players of a running game to them without any cards.
    """
    if context.game is None:
        return False
    inside = {None, *context.game.players}
    return all(context.connections.of(copy.stream).player not in inside for copy in observation.messages)


def _unannounced_theft(context: CatanContext, observation: Observation, player: Player, told: int) -> bool:
    """Emit a theft that explains the difference, as some servers send it only to the two players."""
    game, hand = context.game, player.hand
    assert hand.total is not None
    sign = told - hand.total
    if game is None or not game.ledger.take_theft(player.id, sign):
        return False
    if sign > 0:
        hand.gain(1)
    else:
        hand.pay(1)
    context.put_hand(player)
    kind = "gained" if sign > 0 else "paid"
    context.emit_observed(observation, kind, player, {"resources": 1, "why": ROBBER, "inferred": True})
    return True


def _unannounced_discard(context: CatanContext, observation: Observation, player: Player, told: int) -> bool:
    """Emit a discard that explains the difference, as some servers do not send it."""
    hand = player.hand
    assert hand.total is not None
    counts: Counts | None = None
    if player.discard is not None and hand.total - total(player.discard) == told:
        counts = player.discard
    elif player.status == "Karten wegen Räuber abgeben" and hand.total - told == hand.total // 2:
        counts = hand.total // 2
    if counts is None:
        return False
    player.discard = None
    if context.game is not None:
        context.game.ledger.forget(DISCARD, player.id)
    hand.pay(counts)
    context.put_hand(player)
    hidden = {"known_to": [player.name], "others_see": {"resources": total(counts)}}
    context.emit_observed(observation, "discarded", player, {"resources": counts, **hidden})
    context.report_violation_of(observation, "untold-discard", "Spieler", "Rohstoffe")
    return True


def _cards(context: CatanContext, observation: Observation, player: Player) -> None:
    """Apply the development cards of a status if they are more precise.

    Contradictions are resolved at the end of the turn: some servers show a bought card here first, and
    some show a player fewer of its own cards than they show others.
    """
    told = [
        copy.fields["Spieler"]["Entwicklungskarten"]
        for copy in observation.messages
        if "Entwicklungskarten" in copy.fields["Spieler"]
    ]
    most = max(map(total, told))
    own = next((counts for counts in told if not isinstance(counts, int) and total(counts) == most), most)
    cards = player.cards
    if _contradicts(context, player, own):
        context.report_violation_of(
            observation,
            "cards-mismatch",
            "Spieler",
            "Entwicklungskarten",
            player=player.name,
            told=counts_text(own),
            known=counts_text(plain(cards.least)),
        )
        player.cards_contradicted = True
        cards = player.cards = Hand(KARTEN, False)
    if player.cards_contradicted:
        own = most
    if cards.total is None or (cards.total == most and not cards.is_known):
        cards.apply_counts(own)
        context.put_cards(player)
    player.cards_told = own


def _contradicts(context: CatanContext, player: Player, told: Counts) -> bool:
    """Return True if a status has other kinds of development cards than the earlier messages."""
    game, cards = context.game, player.cards
    if game is None or not game.certain or not context.is_heard(player.id) or isinstance(told, int):
        return False
    return cards.is_known and cards.total == total(told) and plain(cards.least) != plain(told)


def chat(context: CatanContext, observation: Observation) -> None:
    """Emit a chat message of a player, or of the server."""
    number = observation.fields.get("Absender")
    known = context.players.get(number) if number is not None else None
    name = known.name if known is not None else "the server"
    data = {"from": number, "name": name, "text": observation.fields["Nachricht"][:1000]}
    actor = known.name if known is not None else None
    game = context.game.game if context.game is not None else None
    observation.event = context.emit("chat", observation.ts_ns, actor, data, game)


def refused(
    context: CatanContext, observation: Observation, number: int | None, request: Message | None
) -> None:
    """Emit the refusal of a request."""
    player = context.players.get(number) if number is not None else None
    what = request.name if request is not None else None
    context.emit_observed(
        observation, "refused", player, {"what": what, "why": observation.fields["Meldung"][:1000]}
    )


def _gone(context: CatanContext, observation: Observation, player: Player, reason: str) -> None:
    context.emit_observed(observation, "left", player, {"reason": reason})
    remove(context, player.id)
    context.abort(observation.ts_ns, reason)


def remove(context: CatanContext, number: int) -> None:
    """Remove a player that has disconnected; a player of the current game remains known there."""
    known = context.players.get(number)
    if known is None:
        return
    context.set_state(None, "players", known.name)
    known.gone = True
    if context.game is None or number not in context.game.players:
        del context.players[number]
