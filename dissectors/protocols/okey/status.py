"""`STAT`: the exchange stacks and the turn, sent to all after each draw and put.

Consecutive ones also show who has drawn from which stack and which tile was put, so a game can be followed
from one connection. The specification's server sends it to all clients of all lobbies, without naming the
lobby: it is this lobby's if it follows from the state of this game. A status that follows from no game
belongs to a lobby without captured clients, and is only remembered.
"""

from __future__ import annotations

from typing import Literal

from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey import moves
from kiebitz.dissectors.protocols.okey.context import ClientConnection, OkeyContext, OkeyGame
from kiebitz.dissectors.protocols.okey.tiles import DECK, SEATS, Slots

Move = Literal["nothing", "drew m", "drew e", "put"]
"""The move from one status to the next. A draw from the main stack changes nothing in it."""

_MAX_ELSEWHERE = 16


def pushed(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `STAT`."""
    stacks: Slots = message.fields["exchangestacks"]
    turn: int = message.fields["currentplayeridx"]
    own = _own(context, message, connection)
    connection.exchange = None
    unplaced = context.lobbies.get(None)
    others = [
        room.game for room in context.lobbies.values() if room.game is not None and room.game is not own
    ]
    games = ([own] if own is not None else []) + others
    if own is not None and own.has_not_begun and _continues_elsewhere(context, stacks, turn):
        # It may be the first of this game, but it follows from one of another.
        games.remove(own)
    for game in games:
        if _is_of(context, message, game, stacks, turn):
            if game is own:
                connection.exchange = stacks
                # With statuses of several lobbies, another player's turn is not certain.
                connection.turn = turn if turn == connection.seat or not context.elsewhere else None
            elif unplaced is not None and unplaced.game in (own, game):
                # It may be the same game.
                connection.turn = None
            return
    if own is None or own not in games or _may_be_elsewhere(context, connection, own, stacks, turn):
        connection.turn = None
        if not _continues_elsewhere(context, stacks, turn):
            context.elsewhere = [*context.elsewhere, (stacks, turn)][-_MAX_ELSEWHERE:]
        return
    connection.turn, connection.exchange = turn, stacks
    _emit(context, message, own, stacks, turn)


def requested(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+RSTA`: sent on request, so it is about this client's game."""
    own = _own(context, message, connection)
    if own is None:
        return
    message.game_id = own.game.id
    if own.status is not None and (own.exchange, own.turn) == (
        message.fields["exchangestacks"],
        message.fields["currentplayeridx"],
    ):
        message.event_id = own.status.id


def _own(context: OkeyContext, message: Message, connection: ClientConnection) -> OkeyGame | None:
    """Return a client's game; one first seen in its middle is created."""
    if (
        connection.game is None
        and not connection.certain
        and connection.lobby is None
        and connection.name is None
    ):
        room = context.lobby(None)
        connection.game = room.game or context.begin(room, message.ts_ns, False)
        context.doubt_unknown_lobbies()
    coming = connection.requests.first("JLOB")
    if connection.game is None and coming is not None and coming.valid:
        entered = context.lobbies.get(coming.fields["n"])
        return entered.game if entered is not None else None
    return connection.game


def _is_of(context: OkeyContext, message: Message, game: OkeyGame, stacks: Slots, turn: int) -> bool:
    """Return True if a status belongs to this game, as a copy or a new one."""
    key = ("status", game.game.id, tuple(stacks), turn)
    if context.log.is_copy(message, key):
        return True
    if game.has_not_begun and [seat for seat in range(SEATS) if stacks[seat] is not None] == [turn]:
        # The first put is by the player before: that player had the turn.
        game.turn, game.drawn = (turn - 1) % SEATS, True
    if game.turn is None or game.exchange is None:
        return False
    move = _move(game.exchange, game.turn, game.drawn, stacks, turn)
    if move is None or not _settle(context, message, game, move, stacks):
        return False
    _emit(context, message, game, stacks, turn)
    return True


def _settle(context: OkeyContext, message: Message, game: OkeyGame, move: Move, stacks: Slots) -> bool:
    """Emit the move that a status shows, unless that was done; return False if it is impossible."""
    seat = game.turn
    assert seat is not None
    place = game.places[seat]
    connection = context.player_at(game, seat)
    if move == "put":
        tile = stacks[(seat + 1) % SEATS]
        if game.put == tile or (connection is not None and _settle_put(context, message, connection, tile)):
            return True
        if connection is not None and connection.certain_in_game:
            return False
        moves.puts(context, message, game, seat, tile, None, True)
    elif move != "nothing" and not game.drawn:
        top = game.exchange[seat] if game.exchange is not None and move == "drew e" else None
        request = connection.requests.first("DRAW") if connection is not None else None
        if request is not None and move == "drew m":
            # The response will contain the tile.
            return True
        if request is not None and move == "drew e" and request.fields.get("drawstack") == "m":
            # Statuses contradict each other: the response will show what was drawn.
            return False
        if connection is not None and connection.certain_in_game and request is None:
            return move == "drew m"
        event = moves.draws(context, message, game, seat, move[-1], top)
        if request is not None:
            request.event_id = event.id
        elif connection is not None:
            # The client has not asked for it: the request may be missing, or the status another lobby's.
            place.certain = False
    return True


def _settle_put(
    context: OkeyContext, message: Message, connection: ClientConnection, tile: str | None
) -> bool:
    """Emit the put of this tile if its player has requested it; return False if not."""
    request = connection.requests.first("PUTT")
    if request is None or request.event_id is not None or request.fields.get("tile") != tile:
        return False
    moves.settle_put(context, message, connection, request)
    return True


def _may_be_elsewhere(
    context: OkeyContext, connection: ClientConnection, own: OkeyGame, stacks: Slots, turn: int
) -> bool:
    """Return True if a status that does not follow may be another lobby's."""
    if context.announces_seats or own.turn is None:
        return False
    if own.put is not None and turn == (own.turn + 1) % SEATS and stacks[turn] == own.put:
        # Something was missed before, but the tile put is here.
        return False
    # With a complete connection, no move of the own game can be missing.
    return connection.certain_in_game or bool(context.others) or len(context.lobbies) > 1


def _continues_elsewhere(context: OkeyContext, stacks: Slots, turn: int) -> bool:
    """Return True if a status follows from one of another lobby."""
    for number, (before, turn_before) in enumerate(context.elsewhere):
        if _move(before, turn_before, False, stacks, turn) is not None:
            context.elsewhere[number] = (stacks, turn)
            return True
    return False


def _emit(context: OkeyContext, message: Message, game: OkeyGame, stacks: Slots, turn: int) -> None:
    if turn != game.turn:
        if game.turn is not None and game.places[game.turn].count is None:
            game.places[game.turn].count = DECK
        game.drawn, game.draw, game.put = False, None, None
    game.exchange, game.turn = stacks, turn
    game.set_state([*stacks], "exchange")
    game.set_state(turn, "turn")
    game.set_state(None, "inferred")
    if any(place.deck is None for place in game.places if place.stream_id is not None):
        game.set_state(["decks"], "unknown")
    else:
        game.set_state(None, "unknown")
    name = game.places[turn].name
    data = {"exchange": stacks, "turn": turn, "name": name}
    key = ("status", game.game.id, tuple(stacks), turn)
    game.status = context.emit_broadcast(message, "status", name, data, game, key)


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
