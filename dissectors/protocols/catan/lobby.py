"""Who is there, and what the server says of each player: names, colours, status, chat, refusals, the end."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.game.observation_merge import Fact
from kiebitz.dissectors.model import LOST, Message
from kiebitz.dissectors.protocols.catan.context import Play
from kiebitz.dissectors.protocols.catan.game import Player
from kiebitz.dissectors.protocols.catan.hand import Counts, total
from kiebitz.dissectors.protocols.catan.ledger import DISCARD, MONOPOLY, ROBBER
from kiebitz.dissectors.protocols.catan.phrases import words
from kiebitz.dissectors.protocols.catan.words import (
    BAUEN,
    DORF_BAUEN,
    GRÖSSTE_RITTERMACHT,
    HANDELN_ODER_BAUEN,
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
    """Takes what is said of players."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def hallo(self, fact: Fact) -> None:
        """The server greets: who it is."""
        if fact.message.direction == "s2c":
            self._play.put({"version": fact.fields["Version"][:200]}, "server")

    def willkommen(self, fact: Fact) -> None:
        """A client gets his number."""
        number = fact.fields["id"]
        self._join(fact, number)
        if fact.event is None:
            # The others have heard of him first.
            fact.event = self._play.players[number].joined

    def _join(self, fact: Fact, number: int, plays: bool = False) -> Player:
        """A player who is connected; who `plays` is in the game that is on, if there is one."""
        play = self._play
        before = play.players.get(number)
        known = play.known(number)
        if before is None or before.gone:
            known.gone = False
            play.put_lobby(known)
            known.joined = play.tell(fact, "joined", known, {})
        # A latecomer waits for the next game.
        in_game = play.game is not None and number in play.game.players
        return play.player(number) if plays or in_game else known

    def statusupdate(self, fact: Fact) -> None:
        """A player as the server sees him now."""
        play = self._play
        told = fact.fields["Spieler"]
        status = told.get("Status")
        known = play.players.get(told["id"])
        if status == VERBINDUNG_VERLOREN and (known is None or known.gone):
            return
        player = self._join(fact, told["id"], self._plays(status))
        self._configured(fact, player, told)
        if play.game is not None:
            play.game.ledger.forget(MONOPOLY)
        pending = len(play.pending_changes)
        before = player.status
        if play.game is not None and player.id in play.game.players:
            self._in_game(fact, player, told)
        if status is not None and status != before:
            player.status = status
            known = play.players[player.id]
            known.status = status
            play.put_lobby(known)
            play.put_player(player, "status", status)
            self._turn(fact, player, status)
        elif len(play.pending_changes) == pending:
            return
        if status == VERBINDUNG_VERLOREN and status != before:
            self._gone(fact, player, LOST)
        elif status == WARTET_AUF_BEGINN and status != before:
            play.tell(fact, "ready", player, {})
        else:
            play.tell(fact, "status", player, {"status": player.status, "points": player.points})

    def _plays(self, status: str | None) -> bool:
        """Whether a status shows that somebody plays; in a game that was met in its middle, waiting does."""
        game = self._play.game
        if game is not None and not game.whole:
            return status not in (SPIEL_STARTEN, WARTET_AUF_BEGINN)
        return status in _HAS_THE_TURN or status == KARTEN_ABGEBEN

    def _configured(self, fact: Fact, player: Player, told: dict[str, Any]) -> None:
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
        self._play.tell(fact, "configured", known, {"colour": known.colour, **named})

    def _turn(self, fact: Fact, player: Player, status: str) -> None:
        game = self._play.game
        if game is not None and status == HANDELN_ODER_BAUEN:
            game.yielding = False
        if game is not None and status in _HAS_THE_TURN:
            game.has_turn(player, fact.ts_ns)
            self._play.put_in(player.id, "turn")
            self._play.put_in(status, "phase")

    def _in_game(self, fact: Fact, player: Player, told: dict[str, Any]) -> None:
        """Compare with what is known, and take over what is new."""
        play = self._play
        # His own copy has the points that others are not shown, so the most is what he has.
        points = max(
            (
                copy.fields["Spieler"]["Siegpunkte"]
                for copy in fact.messages
                if "Siegpunkte" in copy.fields["Spieler"]
            ),
            default=None,
        )
        for what, value in (("points", points), ("knights", told.get("Rittermacht"))):
            if value is not None and value != getattr(player, what):
                setattr(player, what, value)
                play.put_player(player, what, value)
                play.count_points()
        if play.game is not None and not play.game.whole:
            # How it came about was not seen; from its beginning on, it is told when it changes.
            for what, place in _HONOURS.items():
                if told.get(what):
                    play.put_in(player.id, place)
        if "Rohstoffe" in told:
            self._resources(fact, player, told["Rohstoffe"])
        if "Entwicklungskarten" in told:
            self._cards(fact, player)

    def _resources(self, fact: Fact, player: Player, counts: Counts) -> None:
        play = self._play
        hand = player.hand
        ours = hand.total
        if ours is not None and ours != total(counts):
            told = total(counts)
            if self._untold_discard(fact, player, told) or self._untold_theft(fact, player, told):
                ours = hand.total
        was_known = hand.is_known
        agrees = hand.tell(counts)
        if not agrees and play.is_whole():
            known = words(ours) if ours is not None and ours != total(counts) else "other cards"
            play.flaw_of(
                fact,
                "total-mismatch",
                "Spieler",
                "Rohstoffe",
                player=player.name,
                told=words(counts),
                known=known,
                count=ours,
            )
        if not agrees or not was_known or ours is None:
            play.put_hand(player)

    def _untold_theft(self, fact: Fact, player: Player, told: int) -> bool:
        """Whether the difference is one card that was stolen, as some servers tell only the two of them."""
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
        self._play.tell(fact, kind, player, {"resources": 1, "why": ROBBER, "inferred": True})
        return True

    def _untold_discard(self, fact: Fact, player: Player, told: int) -> bool:
        """Whether what is missing was given up because of the robber, as some servers tell nobody."""
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
        play.tell(fact, "discarded", player, {"resources": counts, **hidden})
        play.flaw_of(fact, "untold-discard", "Spieler", "Rohstoffe")
        return True

    def _cards(self, fact: Fact, player: Player) -> None:
        """Take over what is told of development cards, if it is more than was known.

        What contradicts is left until the turn is over: some servers tell a card that is bought first here,
        and some show a player fewer of his own cards than they show others.
        """
        told = [
            copy.fields["Spieler"]["Entwicklungskarten"]
            for copy in fact.messages
            if "Entwicklungskarten" in copy.fields["Spieler"]
        ]
        most = max(map(total, told))
        own = next((counts for counts in told if not isinstance(counts, int) and total(counts) == most), most)
        cards = player.cards
        if cards.total is None or (cards.total == most and not cards.is_known):
            cards.tell(own)
            self._play.put_cards(player)
        player.cards_told = own

    # Talk.

    def chat(self, fact: Fact) -> None:
        """Somebody says something; the server, if nobody is named."""
        number = fact.fields.get("Absender")
        known = self._play.players.get(number) if number is not None else None
        name = known.name if known is not None else "the server"
        data = {"from": number, "name": name, "text": fact.fields["Nachricht"][:1000]}
        actor = known.name if known is not None else None
        game = self._play.game.game if self._play.game is not None else None
        fact.event = self._play.emit("chat", fact.ts_ns, actor, data, game)

    def refused(self, fact: Fact, number: int | None, request: Message | None) -> None:
        """The server does not do what was asked."""
        play = self._play
        player = play.players.get(number) if number is not None else None
        what = request.name if request is not None else None
        play.tell(fact, "refused", player, {"what": what, "why": fact.fields["Meldung"][:1000]})

    # Leaving.

    def _gone(self, fact: Fact, player: Player, reason: str) -> None:
        self._play.tell(fact, "left", player, {"reason": reason})
        self.remove(player.id)
        self._play.abort(fact.ts_ns, reason)

    def remove(self, number: int) -> None:
        """A player is no longer connected; one who is in the game is still known there."""
        play = self._play
        known = play.players.get(number)
        if known is None:
            return
        play.put(None, "players", known.name)
        known.gone = True
        if play.game is None or number not in play.game.players:
            del play.players[number]
