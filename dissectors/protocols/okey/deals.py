"""Beginning and end of a game: decks are dealt, or returned to a player who rejoins; a win or a draw."""

from __future__ import annotations

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey import moves
from kiebitz.dissectors.protocols.okey.context import (
    RACE_NS,
    ClientConnection,
    LobbyRoom,
    OkeyContext,
    OkeyGame,
    Place,
)
from kiebitz.dissectors.protocols.okey.grammar import CODEC
from kiebitz.dissectors.protocols.okey.requests import wrong_start
from kiebitz.dissectors.protocols.okey.tiles import DECK, STOCK, is_won, tiles


def dealt(
    context: OkeyContext, message: Message, row: MessageType, connection: ClientConnection, frame: bytes
) -> None:
    """Handle `STRT`: a new game, or the old deck for a player who joins a lobby during its game."""
    seat: int = message.fields["playeridx"]
    deck: list[str | None] = message.fields["startdeck"]
    coming = connection.requests.first("JLOB")
    # An unread request may have been JLOB.
    certain = coming is not None or connection.requests.unread.certain
    room = context.lobby(coming.fields["n"] if coming is not None and coming.valid else connection.lobby)
    returns = coming is not None
    context.enter(connection, room, message.ts_ns)
    if connection.name is not None:
        room.places = [None if name == connection.name else name for name in room.places]
        room.places[seat] = connection.name
    game = (
        (room.game or context.begin(room, message.ts_ns, False))
        if returns
        else _deal(context, room, seat, message)
    )
    place = game.places[seat]
    place.deck, place.count, place.certain = deck, len(tiles(deck)), True
    place.stream_id = message.stream.id
    connection.game, connection.seat = game, seat
    game.put_place(seat, connection.name)
    game.put_deck(seat)
    game.put_count(seat, min(max(len(tiles(deck)), DECK), DECK + 1))
    connection.turn = None
    connection.certain_since_deal = not returns and certain
    context.doubt_unknown_lobbies()
    if not certain:
        place.certain, place.count = False, None
    elif not returns and _is_right(context, message, row, game, place, frame):
        if game.alone:
            _first_turn(game, connection, seat)
        else:
            # Only the server knows which of the deals is valid for whom.
            place.certain, place.count = False, None
    hidden = {"known_to": [connection.name], "others_see": {"deck": None}}
    data = {"seat": seat, "name": connection.name, "deck": tiles(deck), **hidden}
    context.emit_of(message, "returned" if returns else "dealt", connection.name, data, game.game)


def _deal(context: OkeyContext, room: LobbyRoom, seat: int, message: Message) -> OkeyGame:
    """Return the deal that this deck is a part of: the first recent one without a deck for this seat."""
    for game in room.games:
        if game.places[seat].deck is None and message.ts_ns - game.game.started_ns < RACE_NS:
            return game
    return context.begin(room, message.ts_ns, True)


def _first_turn(game: OkeyGame, connection: ClientConnection, seat: int) -> None:
    """Infer the first turn, which is not announced: the player with an extra tile puts first."""
    place = game.places[seat]
    if place.count == DECK + 1:
        game.turn = connection.turn = seat
        game.drawn = True
        game.set_state(seat, "turn")
        game.set_state(["turn"], "inferred")
    else:
        # Another player's, in any case.
        connection.turn = game.turn if game.turn is not None else (seat - 1) % len(game.places)


def _is_right(
    context: OkeyContext, message: Message, row: MessageType, game: OkeyGame, place: Place, frame: bytes
) -> bool:
    """Return True if a deck can be dealt; report one that cannot, and rely on nothing in that game."""
    wrong = wrong_start(game, place)
    if wrong is None:
        return True
    at = CODEC.place_at(frame, row, "startdeck")
    context.report_violation(message, wrong.key, at=at, clause=row.clause, **wrong.values)
    game.alone = place.certain = False
    place.count = None
    return False


def won(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `PWIN`; the specification's server sends it to all clients of all lobbies."""
    name = label(message.fields["nickname"])
    winner = context.named(name)
    game = (
        winner.game
        if winner is not None and winner.game is not None
        else _played_by(context, name, connection)
    )
    if game is not connection.game and None in (connection.lobby, winner and winner.lobby):
        # It may be the same game.
        connection.doubt()
    if game is None:
        return
    request = winner.requests.first("PUTT") if winner is not None and winner.game is game else None
    if winner is not None and request is not None:
        moves.settle_put(context, message, winner, request)
    if game.ending is not None and game.ending.data.get("name") == name:
        message.event_id, message.game_id = game.ending.id, game.game.id
        return
    if _contradicts_win(context, message, connection, game, name):
        return
    if game.ending is None:
        _check_tiles(context, message, game, winner, name)
    moves.wins(context, message, game, name)


def _contradicts_win(
    context: OkeyContext, message: Message, connection: ClientConnection, game: OkeyGame, name: str
) -> bool:
    """Report a second winner; return True if there is one.

    Servers that continue after a win may announce another winner, after further moves.
    """
    ending, seated = game.ending, {place.name for place in game.places}
    if ending is None or not game.alone or not connection.certain_in_game:
        return False
    before = ending.data.get("name")
    if not {before, name} <= seated or any(
        move is not None and move.id > ending.id for move in (game.draw, game.latest_put)
    ):
        return False
    context.report_violation(message, "other-winner", player=name, winner=before)
    message.event_id, message.game_id = ending.id, game.game.id
    return True


def _check_tiles(
    context: OkeyContext, message: Message, game: OkeyGame, winner: ClientConnection | None, name: str
) -> None:
    """Report a winner whose tiles are no winning deck; note one whose tiles are unknown."""
    place = next((place for place in game.places if place.name == name), None)
    if place is None or not game.alone:
        return
    if winner is None or winner.game is not game or place.deck is None or not place.certain:
        context.report_violation(message, "tiles-missing", player=name)
    elif not is_won(place.deck) and _knows_put(context, winner):
        context.report_violation(message, "no-win/announced", player=name)


def _knows_put(context: OkeyContext, winner: ClientConnection) -> bool:
    """Return True if the latest put of a player cannot have been missed."""
    is_unread = winner.requests.unread.is_open or context.is_unfinished(winner.stream, "c2s")
    return winner.certain_in_game and not is_unread


def _played_by(context: OkeyContext, name: str, connection: ClientConnection) -> OkeyGame | None:
    rooms = context.lobbies.values()
    games = [room.game for room in rooms if room.game is not None]
    named = next((game for game in games if any(place.name == name for place in game.places)), None)
    if named is not None or connection.game is None or context.announces_seats:
        return named or connection.game
    # A player with an unknown name may be in another lobby.
    return connection.game if any(place.name is None for place in connection.game.places) else None


def drawn_game(context: OkeyContext, message: Message, connection: ClientConnection) -> None:
    """Handle `EMPT`, sent to the client that wanted to draw, or to its whole lobby."""
    game = connection.game
    if game is None:
        return
    if game.ended and game.ending is not None:
        message.event_id, message.game_id = game.ending.id, game.game.id
        return
    if game.main_draws is not None and game.main_draws < STOCK:
        context.report_violation(message, "draws-missing", drawn=game.main_draws, stock=STOCK)
    game.set_state(True, "drawn_game")
    game.end(message.ts_ns, {"draw": True})
    game.ending = context.emit_of(message, "drawn_game", None, {}, game.game)
