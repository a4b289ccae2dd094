"""Draws and puts: their results.

Other players see a move in the `STAT` that follows it (`status.py`), which may arrive before the response to
the acting player: then the move is already settled, and the response only repeats it.
"""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.model import Event, Message
from kiebitz.dissectors.protocols.okey.context import ClientConnection, OkeyContext, OkeyGame, Request
from kiebitz.dissectors.protocols.okey.tiles import DECK, SEATS, is_won, tiles


def drew(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+DRAW`, without a tile if it is refused or the stack is empty."""
    tile: str | None = message.fields["tile"]
    game, request = connection.game, connection.answered
    if game is None or tile is None:
        if game is not None:
            message.game_id = game.game.id
        return
    if request is not None and request.event_id is not None:
        message.event_id, message.game_id = request.event_id, game.game.id
        shown = game.draw if game.draw is not None and game.draw.id == request.event_id else None
        if shown is not None and shown.data["tile"] not in (None, tile):
            # Statuses that contradict each other have shown another tile.
            game.places[shown.data["seat"]].certain = False
        return
    seat = _seat(context, connection, game)
    if seat is None:
        message.game_id = game.game.id
        return
    place = game.places[seat]
    if game.draw is not None and game.turn == seat:
        # A STAT has reported it already.
        message.event_id, message.game_id = game.draw.id, game.game.id
        if game.draw.data["tile"] is None:
            place.take(tile, counted=True)
            game.put_deck(seat)
        return
    stack = request.fields.get("drawstack") if request is not None else None
    _check_top(context, message, connection, game, seat, stack, tile)
    event = draws(context, message, game, seat, stack, tile)
    message.event_id, message.game_id = event.id, event.game_id
    connection.turn = seat


def _check_top(
    context: OkeyContext,
    message: Message,
    connection: ClientConnection,
    game: OkeyGame,
    seat: int,
    stack: str | None,
    tile: str,
) -> None:
    """Check that a tile drawn from an exchange stack was on its top, by the status to this client."""
    if stack != "e" or connection.exchange is None or connection.turn != seat:
        return
    if not context.announces_seats and game.places[seat - 1].stream_id is None:
        # The put was not captured: the known top may be that of another lobby's stack.
        return
    top = connection.exchange[seat]
    if top is not None and top != tile:
        context.report_violation(message, "other-tile", tile=tile, top=top)


def draws(
    context: OkeyContext, message: Message, game: OkeyGame, seat: int, stack: str | None, tile: str | None
) -> Event:
    """Emit a draw; `tile` is None if unknown."""
    place = game.places[seat]
    if stack != "e" and game.main_draws is not None:
        game.main_draws += 1
    if tile is not None:
        place.take(tile)
    else:
        place.certain = False
        place.count = None if place.count is None else place.count + 1
    game.turn, game.drawn = seat, True
    game.set_state(seat, "turn")
    game.put_deck(seat)
    game.put_count(seat, DECK + 1)
    if tile is not None:
        game.set_state(tile, "private", game.who(seat), "drawn")
    data: dict[str, Any] = {"seat": seat, "name": place.name, "stack": stack, "tile": tile}
    if stack != "e" and tile is not None:
        data |= {"known_to": [place.name], "others_see": {"tile": None}}
    game.draw = context.emit("drew", message.ts_ns, place.name, data, game.game)
    return game.draw


def put(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+PUTT`: the tile is put, or refused; the player may have won."""
    game, fields, request = connection.game, message.fields, connection.answered
    if game is None:
        return
    message.game_id = game.game.id
    seat = _seat(context, connection, game)
    if seat is None:
        return
    shown = _shown_put(game, seat, request)
    if request is not None and request.event_id is not None:
        message.event_id = request.event_id
    elif shown is not None:
        message.event_id = shown.id
    else:
        event = _puts(context, message, connection, game, seat, request, fields["valid"])
        message.event_id = event.id
    is_put = fields["valid"] and (request is None or not request.doubtful)
    if is_put and connection.turn == seat:
        # The status that says so follows.
        connection.turn = (seat + 1) % SEATS
    if fields["won"]:
        _check_win(context, message, game, seat)
        if game.ending is None:
            wins(context, message, game, game.places[seat].name)


def _seat(context: OkeyContext, connection: ClientConnection, game: OkeyGame) -> int | None:
    """Return the seat of a client that moves; of one known only from the middle of a game, it is inferred.

    It is the seat that has the turn by the statuses to this client: those to others may be earlier or later.
    """
    seat = connection.turn
    if connection.seat is not None or seat is None:
        return connection.seat
    if context.player_at(game, seat) is not None:
        # The games of two lobbies cannot be told apart yet.
        return None
    connection.seat = seat
    game.places[seat].stream_id = connection.stream.id
    game.put_place(seat, connection.name)
    return seat


def _shown_put(game: OkeyGame, seat: int, request: Request | None) -> Event | None:
    """Return the put of a response if a STAT has reported it already, without the request."""
    latest = game.latest_put
    if latest is None or latest.data["deck"] is not None or latest.data["seat"] == game.turn:
        return None
    if request is not None and request.fields.get("tile") != latest.data["tile"]:
        return None
    return latest if seat == latest.data["seat"] else None


def settle_put(
    context: OkeyContext, message: Message, connection: ClientConnection, request: Request
) -> None:
    """Emit the put that a client has requested, as another client's message shows that it is done."""
    if request.event_id is None and connection.game is not None and connection.seat is not None:
        request.event_id = _puts(
            context, message, connection, connection.game, connection.seat, request, True
        ).id


def _puts(
    context: OkeyContext,
    message: Message,
    connection: ClientConnection,
    game: OkeyGame,
    seat: int,
    request: Request | None,
    valid: bool,
) -> Event:
    tile = request.fields.get("tile") if request is not None else None
    deck = request.fields.get("deck") if request is not None else None
    event = puts(context, message, game, seat, tile, deck, valid)
    if valid and request is not None and request.doubtful:
        game.places[seat].count, game.places[seat].certain = None, False
    return event


def puts(
    context: OkeyContext,
    message: Message,
    game: OkeyGame,
    seat: int,
    tile: str | None,
    deck: list[str | None] | None,
    valid: bool,
) -> Event:
    """Emit a put, or a refused one; `deck` is None if unknown."""
    place = game.places[seat]
    if valid:
        if game.draw is not None and game.draw.data["seat"] == seat:
            # Later draws are others, also if no status reaches this game.
            game.draw = None
        place.count = DECK
        place.certain = deck is not None and len(tiles(deck)) == DECK
        place.deck = deck
        game.put = tile
        game.set_state(None, "private", game.who(seat), "drawn")
        game.put_deck(seat)
        game.put_count(seat, DECK)
    data: dict[str, Any] = {"seat": seat, "name": place.name, "tile": tile, "deck": deck, "valid": valid}
    if deck is not None:
        data |= {"known_to": [place.name], "others_see": {"deck": None}}
    event = context.emit("put", message.ts_ns, place.name, data, game.game)
    if valid:
        game.latest_put = event
    return event


def _check_win(context: OkeyContext, message: Message, game: OkeyGame, seat: int) -> None:
    place = game.places[seat]
    if place.deck is not None and not is_won(place.deck):
        context.report_violation(message, "no-win")


def wins(context: OkeyContext, message: Message, game: OkeyGame, name: str | None) -> None:
    """End a game with a winner."""
    game.set_state(name, "winner")
    game.end(message.ts_ns, {"winner": name})
    game.ending = context.emit("won", message.ts_ns, name, {"name": name}, game.game)
    if message.event_id is None:
        message.event_id, message.game_id = game.ending.id, game.game.id


def cheated(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `+WINC`: the deck is replaced."""
    game = connection.game
    if game is None or connection.seat is None:
        return
    place = game.places[connection.seat]
    game.cheated = True
    place.deck, place.count, place.certain = (
        message.fields["deck"],
        len(tiles(message.fields["deck"])),
        True,
    )
    game.put_deck(connection.seat)
    game.put_count(connection.seat, place.count)
    data = {
        "seat": connection.seat,
        "name": connection.name,
        "deck": tiles(place.deck or ()),
        "known_to": [connection.name],
        "others_see": {"deck": None},
    }
    context.emit_of(message, "cheated", connection.name, data, game.game)
