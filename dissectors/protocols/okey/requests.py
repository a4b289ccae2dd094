"""The checks of clients' requests and of dealt decks: what may be drawn and put now.

No violation is reported as long as messages to the client may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.okey.context import ClientConnection, OkeyContext, OkeyGame, Place
from kiebitz.dissectors.protocols.okey.grammar import CODEC
from kiebitz.dissectors.protocols.okey.tiles import DECK, OF_EACH, SEATS, counted, is_joker, kind, tiles

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
            count, turn = DECK, (turn + 1) % SEATS if is_put and turn is not None else None
        elif request.name == "DRAW" and request.event_id is None:
            count = None
    return count, turn


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
