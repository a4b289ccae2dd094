"""Draws and puts: requests, their checks and permission, and their results.

Other players see a move in the `STAT` that follows it (`status.py`), which may arrive before the response to
the acting player: then the move is already settled, and the response only repeats it. No violation is
reported as long as messages to the client may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Event, Message
from kiebitz.dissectors.protocols.okey.context import ClientConnection, OkeyContext, OkeyGame, Place, Request
from kiebitz.dissectors.protocols.okey.grammar import CODEC
from kiebitz.dissectors.protocols.okey.tiles import (
    DECK,
    OF_EACH,
    SEATS,
    counted,
    is_joker,
    is_won,
    kind,
    tiles,
)

_NEEDS_LOBBY = frozenset(("DRAW", "PUTT", "WINC", "REDY", "RNAM", "RSTA"))
_NEEDS_GAME = frozenset(("DRAW", "PUTT", "WINC"))
_MAX_QUOTED = 3
"""Maximum number of extra or missing tiles in a text."""


class Objection(msgspec.Struct, frozen=True):
    """The rule that a request breaks, and the values of its text.

    `argument` is the faulty argument, and `part` its token if it is a list.
    """

    key: str
    values: Mapping[str, Any] = MappingProxyType({})
    argument: str | None = None
    part: int | None = None


def objection(connection: ClientConnection, request: Message) -> Objection | None:
    """Return the objection to a request now, regardless of its tiles, or None."""
    name = request.name
    if connection.certain and connection.lobby is None and request.fields.get("messagetype") == "l":
        return Objection("outside-lobby/chat")
    if name not in _NEEDS_LOBBY:
        return None
    game = connection.game
    if connection.certain:
        if connection.lobby is None:
            return Objection("outside-lobby", {"name": name})
        if name not in _NEEDS_GAME:
            return None
        if game is None:
            return Objection("no-game", {"name": name})
        if game.ending is not None:
            return Objection("after-end", {"name": name})
    if game is None or game.ended or not connection.certain_in_game:
        return None
    return _against_move(connection, game, name)


def _against_move(connection: ClientConnection, game: OkeyGame, name: str) -> Objection | None:
    """Return the objection to a draw or a put now: servers check the turn first, then the tiles."""
    if name not in ("DRAW", "PUTT") or connection.seat is None:
        return None
    place = game.places[connection.seat]
    count, turn = _after_requests(connection, place)
    if turn is None:
        if name == "PUTT" and count == DECK and place.certain:
            return Objection("must-draw/turn", {"count": count})
        return None
    if turn != connection.seat:
        return Objection("not-your-turn", {"name": name})
    if name == "DRAW" and count == DECK + 1:
        return Objection("must-put", {"count": count})
    if name == "PUTT" and count == DECK:
        return Objection("must-draw", {"count": count})
    return None


def _after_requests(connection: ClientConnection, place: Place) -> tuple[int | None, int | None]:
    """Return the number of tiles and the turn once the open requests are answered; None if unknown.

    A client need not wait for a response: it sees the tile that it draws from the exchange stack.
    """
    count, turn = place.count, connection.turn
    for request in connection.requests.waiting:
        if not request.valid or request.doubtful:
            continue
        if request.name == "PUTT":
            is_put = request.event_id is not None or count == DECK + 1
            count, turn = DECK, _next_seat(turn) if is_put else None
        elif request.name == "DRAW" and request.event_id is None:
            count = None
    return count, turn


def _next_seat(seat: int | None) -> int | None:
    """Return the seat that has the turn after this one."""
    return None if seat is None else (seat + 1) % SEATS


def against_put(place: Place, tile: str | None, deck: Sequence[str | None]) -> Objection | None:
    """Return the objection to putting a tile, which must be held, with this remaining deck."""
    if place.deck is None or not place.certain or place.count == DECK:
        # Without a drawn tile the order is wrong, whatever is put.
        return None
    held = counted(place.deck)
    named = ", ".join(sorted({*tiles(place.deck)}, key=_order))
    if tile is None:
        return Objection("not-held/none", {"held": named}, "tile")
    if not held[kind(tile)]:
        return Objection("not-held", {"tile": tile, "held": named}, "tile")
    held[kind(tile)] -= 1
    sent = counted(deck)
    surplus, lacking = sent - held, held - sent
    if surplus:
        values = {"tiles": _named(surplus), "when": _after(tile, surplus), "left": _left(held)}
        return Objection("wrong-deck/surplus", values, "deck", _surplus_part(deck, held))
    if lacking:
        return Objection("wrong-deck/lacking", {"tiles": _named(lacking), "left": _left(held)}, "deck")
    if is_joker(tile) and tile not in place.deck:
        jokers = ", ".join(each for each in tiles(place.deck) if is_joker(each))
        return Objection("joker-colour", {"tile": tile, "jokers": jokers}, "tile")
    return None


def _surplus_part(deck: Sequence[str | None], held: dict[str, int]) -> int:
    """Return the place of the first extra tile in a deck."""
    left = dict(held)
    for part, tile in enumerate(deck):
        if tile is None:
            continue
        if not left.get(kind(tile)):
            return part
        left[kind(tile)] -= 1
    raise AssertionError("no tile is too many")


def _after(tile: str, surplus: dict[str, int]) -> str:
    return " once it is put" if kind(tile) in surplus else ""


def _left(held: dict[str, int]) -> str:
    """Return the tiles that must be left, in words."""
    return " ".join(
        tile for tile, count in sorted(held.items(), key=lambda item: _order(item[0])) for _ in range(count)
    )


def _named(counts: dict[str, int]) -> str:
    names = sorted(counts, key=_order)
    more = f" and {len(names) - _MAX_QUOTED} more" if len(names) > _MAX_QUOTED else ""
    return ", ".join("a joker" if name == "0" else name for name in names[:_MAX_QUOTED]) + more


def _order(tile: str) -> tuple[str, int]:
    number, _, colour = tile.partition(":")
    return colour, int(number)


def wrong_start(game: OkeyGame, place: Place) -> Objection | None:
    """Return the objection to a dealt deck, or None."""
    count = place.count or 0
    if count not in (DECK, DECK + 1):
        return Objection("wrong-deal/count", {"count": count})
    own = counted(place.deck or ())
    tile = next((tile for tile in own if own[tile] > OF_EACH), None)
    if tile is not None:
        return Objection("wrong-deal/tile", {"tile": tile, "count": own[tile]})
    others = (other.count or 0 for other in game.places if other is not place)
    if count > DECK and game.alone and not any(game.exchange or ()) and max(others) > DECK:
        return Objection("wrong-deal/second", {"count": count})
    tile = game.too_many()
    return None if tile is None else Objection("wrong-deal/pack", {"tile": tile})


def check_request(
    context: OkeyContext, message: Message, row: MessageType, connection: ClientConnection, frame: bytes
) -> bool:
    """Return True if a client may send this request now; report the violation if not."""
    if context.is_unfinished(message.stream, "s2c"):
        # The server may be sending what allows it.
        return True
    found = objection(connection, message)
    if (
        found is None
        and message.name == "PUTT"
        and connection.game is not None
        and connection.seat is not None
    ):
        fields = message.fields
        place = connection.game.places[connection.seat]
        found = against_put(place, fields["tile"], fields["deck"])
    if found is not None:
        _object(context, message, row, found, frame)
    return found is None


def _object(context: OkeyContext, message: Message, row: MessageType, found: Objection, frame: bytes) -> None:
    at = None
    if found.argument is not None:
        path = (found.argument,) if found.part is None else (found.argument, found.part)
        at = CODEC.place_at(frame, row, *path)
    context.report_violation(message, found.key, at=at, clause=row.clause, **found.values)


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
        connection.turn = _next_seat(seat)
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
    place = game.places[seat]
    seated = context.connections.get(place.stream_id) if place.stream_id is not None else None
    if seated is not None and seated.game is game:
        # The games of two lobbies cannot be told apart yet.
        return None
    connection.seat = seat
    place.stream_id = connection.stream.id
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
