"""Players and their status: names, colours, chat, refusals, disconnection."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.model import LOST, Message
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import Player
from kiebitz.dissectors.protocols.catan.hand import Counts, Hand, plain, total
from kiebitz.dissectors.protocols.catan.ledger import DISCARD, MONOPOLY, ROBBER
from kiebitz.dissectors.protocols.catan.phrases import counts_text
from kiebitz.dissectors.protocols.catan.words import (
    BAUEN,
    DORF_BAUEN,
    GRÖSSTE_RITTERMACHT,
    HANDELN_ODER_BAUEN,
    KARTEN,
    KARTEN_ABGEBEN,
    LÄNGSTE_HANDELSSTRASSE,
    RÄUBER_VERSETZEN,
    SPIEL_STARTEN,
    STRASSE_BAUEN,
    VERBINDUNG_VERLOREN,
    WARTET_AUF_BEGINN,
    WÜRFELN,
)

_HAS_THE_TURN = (DORF_BAUEN, STRASSE_BAUEN, WÜRFELN, RÄUBER_VERSETZEN, HANDELN_ODER_BAUEN, BAUEN)
_HONOURS = {LÄNGSTE_HANDELSSTRASSE: "longest_road", GRÖSSTE_RITTERMACHT: "largest_army"}


class Lobby:
    """Handlers for messages about players."""

    def __init__(self, play: CatanContext) -> None:
        self._play = play

    def hallo(self, observation: Observation) -> None:
        """Store the server's version."""
        if observation.message.direction == "s2c":
            self._play.set_state({"version": observation.fields["Version"][:200]}, "server")

    def willkommen(self, observation: Observation) -> None:
        """Process the number that a client is given."""
        number = observation.fields["id"]
        self._join(observation, number)
        if observation.event is None:
            # Other clients were informed of the player first.
            observation.event = self._play.players[number].joined

    def _join(self, observation: Observation, number: int, plays: bool = False) -> Player:
        """Return a connected player; one that `plays` is added to the current game."""
        play = self._play
        before = play.players.get(number)
        known = play.known(number)
        if before is None or before.gone:
            known.gone = False
            play.put_lobby(known)
            known.joined = play.emit_observed(observation, "joined", known, {})
        # A late player waits for the next game.
        in_game = play.game is not None and number in play.game.players
        return play.player(number) if plays or in_game else known

    def statusupdate(self, observation: Observation) -> None:
        """Process a player's status."""
        play = self._play
        told = observation.fields["Spieler"]
        status = told.get("Status")
        known = play.players.get(told["id"])
        if status == VERBINDUNG_VERLOREN and (known is None or known.gone):
            return
        player = self._join(observation, told["id"], self._plays(status))
        self._configured(observation, player, told)
        if play.game is not None:
            play.game.ledger.forget(MONOPOLY)
        pending = len(play.pending_changes)
        before = player.status
        if play.game is not None and player.id in play.game.players:
            self._in_game(observation, player, told)
        if status is not None and status != before:
            player.status = status
            known = play.players[player.id]
            known.status = status
            play.put_lobby(known)
            play.put_player(player, "status", status)
            self._turn(observation, player, status)
        elif len(play.pending_changes) == pending:
            return
        if status == VERBINDUNG_VERLOREN and status != before:
            self._gone(observation, player, LOST)
        elif status == WARTET_AUF_BEGINN and status != before:
            play.emit_observed(observation, "ready", player, {})
        else:
            play.emit_observed(
                observation, "status", player, {"status": player.status, "points": player.points}
            )

    def _plays(self, status: str | None) -> bool:
        """Return True if a status shows that a player is in the game.

        In a game whose beginning was not recorded, waiting shows it, too.
        """
        game = self._play.game
        if game is not None and not game.certain:
            return status not in (SPIEL_STARTEN, WARTET_AUF_BEGINN)
        return status in _HAS_THE_TURN or status == KARTEN_ABGEBEN

    def _configured(self, observation: Observation, player: Player, told: dict[str, Any]) -> None:
        name, colour = told.get("Name"), told.get("Farbe")
        known = self._play.players[player.id]
        before = known.name, known.colour
        if name or colour:
            self._play.rename(known, name or None, colour)
        if (known.name, known.colour) == before:
            return
        if player is not known:
            self._play.put_in(None, "private", player.name)
            player.name, player.colour = known.name, known.colour
            self._play.put_player(player, "name", player.name)
            self._play.put_player(player, "colour", player.colour)
            self._play.put_hand(player)
            self._play.put_cards(player)
        named = {"before": before[0]} if known.name != before[0] else {}
        self._play.emit_observed(observation, "configured", known, {"colour": known.colour, **named})

    def _turn(self, observation: Observation, player: Player, status: str) -> None:
        game = self._play.game
        if game is not None and status == HANDELN_ODER_BAUEN:
            game.yielding = False
        if game is not None and status in _HAS_THE_TURN:
            game.has_turn(player, observation.ts_ns)
            self._play.put_in(player.id, "turn")
            self._play.put_in(status, "phase")

    def _in_game(self, observation: Observation, player: Player, told: dict[str, Any]) -> None:
        play = self._play
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
                play.put_player(player, what, value)
                play.count_points()
        if play.game is not None and not play.game.certain:
            # Its award was not recorded; otherwise a message announces it.
            for what, place in _HONOURS.items():
                if told.get(what):
                    play.put_in(player.id, place)
        if "Rohstoffe" in told:
            self._resources(observation, player, told["Rohstoffe"])
        if "Entwicklungskarten" in told:
            self._cards(observation, player)

    def _resources(self, observation: Observation, player: Player, counts: Counts) -> None:
        play = self._play
        hand = player.hand
        ours = hand.total
        if ours is not None and ours != total(counts):
            told = total(counts)
            if self._unannounced_discard(observation, player, told) or self._unannounced_theft(
                observation, player, told
            ):
                ours = hand.total
        was_known = hand.is_known
        agrees = hand.apply_counts(counts)
        if not agrees and play.is_certain():
            known = counts_text(ours) if ours is not None and ours != total(counts) else "other cards"
            play.report_violation_of(
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
            play.put_hand(player)

    def _unannounced_theft(self, observation: Observation, player: Player, told: int) -> bool:
        """Emit a theft that explains the difference, as some servers send it only to the two players."""
        game, hand = self._play.game, player.hand
        assert hand.total is not None
        sign = told - hand.total
        if game is None or not game.ledger.take_theft(player.id, sign):
            return False
        if sign > 0:
            hand.gain(1)
        else:
            hand.pay(1)
        self._play.put_hand(player)
        kind = "gained" if sign > 0 else "paid"
        self._play.emit_observed(observation, kind, player, {"resources": 1, "why": ROBBER, "inferred": True})
        return True

    def _unannounced_discard(self, observation: Observation, player: Player, told: int) -> bool:
        """Emit a discard that explains the difference, as some servers do not send it."""
        play = self._play
        hand = player.hand
        assert hand.total is not None
        counts: Counts | None = None
        if player.discard is not None and hand.total - total(player.discard) == told:
            counts = player.discard
        elif player.status == KARTEN_ABGEBEN and hand.total - told == hand.total // 2:
            counts = hand.total // 2
        if counts is None:
            return False
        player.discard = None
        if play.game is not None:
            play.game.ledger.forget(DISCARD, player.id)
        hand.pay(counts)
        play.put_hand(player)
        hidden = {"known_to": [player.name], "others_see": {"resources": total(counts)}}
        play.emit_observed(observation, "discarded", player, {"resources": counts, **hidden})
        play.report_violation_of(observation, "untold-discard", "Spieler", "Rohstoffe")
        return True

    def _cards(self, observation: Observation, player: Player) -> None:
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
        if self._contradicts(player, own):
            self._play.report_violation_of(
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
            self._play.put_cards(player)
        player.cards_told = own

    def _contradicts(self, player: Player, told: Counts) -> bool:
        """Return True if a status has other kinds of development cards than the earlier messages."""
        game, cards = self._play.game, player.cards
        if game is None or not game.certain or not self._play.is_heard(player.id) or isinstance(told, int):
            return False
        return cards.is_known and cards.total == total(told) and plain(cards.least) != plain(told)

    def chat(self, observation: Observation) -> None:
        """Emit a chat message of a player, or of the server."""
        number = observation.fields.get("Absender")
        known = self._play.players.get(number) if number is not None else None
        name = known.name if known is not None else "the server"
        data = {"from": number, "name": name, "text": observation.fields["Nachricht"][:1000]}
        actor = known.name if known is not None else None
        game = self._play.game.game if self._play.game is not None else None
        observation.event = self._play.emit("chat", observation.ts_ns, actor, data, game)

    def refused(self, observation: Observation, number: int | None, request: Message | None) -> None:
        """Emit the refusal of a request."""
        play = self._play
        player = play.players.get(number) if number is not None else None
        what = request.name if request is not None else None
        play.emit_observed(
            observation, "refused", player, {"what": what, "why": observation.fields["Meldung"][:1000]}
        )

    def _gone(self, observation: Observation, player: Player, reason: str) -> None:
        self._play.emit_observed(observation, "left", player, {"reason": reason})
        self.remove(player.id)
        self._play.abort(observation.ts_ns, reason)

    def remove(self, number: int) -> None:
        """Remove a player that has disconnected; a player of the current game remains known there."""
        play = self._play
        known = play.players.get(number)
        if known is None:
            return
        play.set_state(None, "players", known.name)
        known.gone = True
        if play.game is None or number not in play.game.players:
            del play.players[number]
