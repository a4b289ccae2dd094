"""`STAT`: the exchange stacks and the turn, sent to all after each draw and put.

Consecutive ones also show who has drawn from which stack and which tile was put, so a game can be followed
from one conversation. The specification's server sends it to all clients of all lobbies, without naming the
lobby: it is this lobby's if it follows from the state of this game. A status that follows from no game
belongs to a lobby without captured clients, and is only remembered.
"""

from __future__ import annotations

from typing import Literal

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey.context import Hall
from kiebitz.dissectors.protocols.okey.conversation import Conversation, Request
from kiebitz.dissectors.protocols.okey.game import OkeyGame
from kiebitz.dissectors.protocols.okey.moves import Moves
from kiebitz.dissectors.protocols.okey.tiles import DECK, SEATS, Slots

Move = Literal["nothing", "drew m", "drew e", "put"]
"""The move from one status to the next. A draw from the main stack changes nothing in it."""

_MAX_ELSEWHERE = 16


class Status:
    """Handlers of `STAT` and `+RSTA`."""

    def __init__(self, hall: Hall, moves: Moves) -> None:
        self._hall = hall
        self._moves = moves
        self._elsewhere: list[tuple[Slots, int]] = []
        """The latest statuses of lobbies without captured clients."""

    def told(self, message: Message, talk: Conversation) -> None:
        """Handle `STAT`."""
        stacks: Slots = message.fields["exchangestacks"]
        turn: int = message.fields["currentplayeridx"]
        own = self._own(message, talk)
        others = [
            room.game
            for room in self._hall.lobbies.values()
            if room.game is not None and room.game is not own
        ]
        games = ([own] if own is not None else []) + others
        if own is not None and own.has_not_begun and self._goes_on_elsewhere(stacks, turn):
            # It may be the first of this game, but it follows from one of another.
            games.remove(own)
        for game in games:
            if self._is_of(message, game, stacks, turn):
                if game is own:
                    # With statuses of several lobbies, another player's turn is not certain.
                    talk.turn = turn if turn == talk.seat or not self._elsewhere else None
                return
        if own is None or own not in games or self._may_be_of_others(talk, own, stacks, turn):
            talk.turn = None
            if not self._goes_on_elsewhere(stacks, turn):
                self._elsewhere = [*self._elsewhere, (stacks, turn)][-_MAX_ELSEWHERE:]
            return
        talk.turn = turn
        self._tell(message, own, stacks, turn)

    def asked_for(self, message: Message, talk: Conversation, request: Request | None) -> None:
        """Handle `+RSTA`: sent on request, so it is about this client's game."""
        own = self._own(message, talk)
        if own is None:
            return
        message.game_id = own.game.id
        if own.status is not None and (own.exchange, own.turn) == (
            message.fields["exchangestacks"],
            message.fields["currentplayeridx"],
        ):
            message.event_id = own.status.id

    def _own(self, message: Message, talk: Conversation) -> OkeyGame | None:
        """Return a client's game; one first seen in its middle is created."""
        if talk.game is None and not talk.whole and talk.lobby is None and talk.name is None:
            room = self._hall.lobby(None)
            talk.game = room.game or self._hall.begin(room, message.ts_ns, False)
        coming = talk.waiting("JLOB")
        if talk.game is None and coming is not None and coming.valid:
            entered = self._hall.lobbies.get(coming.fields["n"])
            return entered.game if entered is not None else None
        return talk.game

    def _is_of(self, message: Message, game: OkeyGame, stacks: Slots, turn: int) -> bool:
        """Return True if a status belongs to this game, as a copy or a new one."""
        hall = self._hall
        key = ("status", game.game.id, tuple(stacks), turn)
        if hall.log.is_copy(message, key):
            return True
        if game.has_not_begun and [seat for seat in range(SEATS) if stacks[seat] is not None] == [turn]:
            # The first put is by the player before: that player had the turn.
            game.turn, game.drawn = (turn - 1) % SEATS, True
        if game.turn is None or game.exchange is None:
            return False
        move = _move(game.exchange, game.turn, game.drawn, stacks, turn)
        if move is None or not self._settle(message, game, move, stacks):
            return False
        self._tell(message, game, stacks, turn)
        return True

    def _settle(self, message: Message, game: OkeyGame, move: Move, stacks: Slots) -> bool:
        """Emit the move that a status shows, unless that was done; return False if it is impossible."""
        seat = game.turn
        assert seat is not None
        place = game.places[seat]
        talk = self._hall.conversations.get(place.stream_id) if place.stream_id is not None else None
        if talk is not None and talk.game is not game:
            talk = None
        if move == "put":
            tile = stacks[(seat + 1) % SEATS]
            if game.put == tile or (talk is not None and self._settle_put(message, talk, tile)):
                return True
            if talk is not None and talk.whole:
                return False
            self._moves.puts(message, game, seat, tile, None, True)
        elif move != "nothing" and not game.drawn:
            top = game.exchange[seat] if game.exchange is not None and move == "drew e" else None
            request = talk.waiting("DRAW") if talk is not None else None
            if request is not None and move == "drew m":
                # The response will contain the tile.
                return True
            if talk is not None and talk.whole and request is None:
                return move == "drew m"
            event = self._moves.draws(message, game, seat, move[-1], top)
            if request is not None:
                request.event_id = event.id
        return True

    def _settle_put(self, message: Message, talk: Conversation, tile: str | None) -> bool:
        """Emit the put of this tile if its player has requested it; return False if not."""
        request = talk.waiting("PUTT")
        if request is None or request.event_id is not None or request.fields.get("tile") != tile:
            return False
        self._moves.settle_put(message, talk, request)
        return True

    def _may_be_of_others(self, talk: Conversation, own: OkeyGame, stacks: Slots, turn: int) -> bool:
        """Return True if a status that does not follow may be another lobby's."""
        if self._hall.knows_places or own.turn is None:
            return False
        if own.put is not None and turn == (own.turn + 1) % SEATS and stacks[turn] == own.put:
            # Something was missed before, but the tile put is here.
            return False
        # With a complete conversation, no move of the own game can be missing.
        return talk.heard_all or bool(self._hall.others) or len(self._hall.lobbies) > 1

    def _goes_on_elsewhere(self, stacks: Slots, turn: int) -> bool:
        """Return True if a status follows from one of another lobby."""
        for number, (before, turn_before) in enumerate(self._elsewhere):
            if _move(before, turn_before, False, stacks, turn) is not None:
                self._elsewhere[number] = (stacks, turn)
                return True
        return False

    def _tell(self, message: Message, game: OkeyGame, stacks: Slots, turn: int) -> None:
        hall = self._hall
        if turn != game.turn:
            if game.turn is not None and game.places[game.turn].count is None:
                game.places[game.turn].count = DECK
            game.drawn, game.draw, game.put = False, None, None
        game.exchange, game.turn = stacks, turn
        hall.put_in(game, [*stacks], "exchange")
        hall.put_in(game, turn, "turn")
        hall.put_in(game, None, "inferred")
        if any(place.deck is None for place in game.places if place.stream_id is not None):
            hall.put_in(game, ["decks"], "unknown")
        else:
            hall.put_in(game, None, "unknown")
        name = game.places[turn].name
        data = {"exchange": stacks, "turn": turn, "name": name}
        event = hall.emit_of(message, "status", name, data, game.game)
        game.status, game.status_stream = event, message.stream.id
        hall.log.add(message.stream.id, ("status", game.game.id, tuple(stacks), turn), event)


def _move(before: Slots, turn_before: int, drawn: bool, stacks: Slots, turn: int) -> Move | None:
    """Return the move from one status to the next; None if no single move leads there."""
    changed = [seat for seat in range(SEATS) if before[seat] != stacks[seat]]
    if turn == turn_before:
        if not changed:
            return "nothing" if drawn else "drew m"
        return "drew e" if changed == [turn] else None
    following = (turn_before + 1) % SEATS
    # The same tile twice on one stack shows no change.
    if turn == following and changed in ([], [following]) and stacks[following] is not None:
        return "put"
    return None
