"""The view of an Okey table: four players with their racks, and exchange stacks between neighbours.

Players keep their places: the first one with a known rack is at the bottom, the others follow clockwise in
the order of play. Without a game, the view has the lobbies and their players.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypedDict, cast

import msgspec

from kiebitz.dissectors.game.valid_state import Key, Number, Types, valid_game, valid_items
from kiebitz.dissectors.game.view import (
    Fact,
    Figure,
    Group,
    Hand,
    Line,
    Name,
    Pile,
    Scene,
    Seat,
    Span,
    Tile,
    View,
    counted,
    not_known,
)
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, DECK, HIGHEST, SEATS, SLOTS

_Tile = Annotated[str, msgspec.Meta(pattern=f"^([0-9]|1[0-{HIGHEST % 10}]):({'|'.join(COLOURS)})$")]
_Slots = list[_Tile | None]
_Seat = Annotated[int, msgspec.Meta(ge=0, lt=SEATS)]
_Part = dict[str, Any]
"""A game's part of the state."""


class _Own(TypedDict, total=False):
    deck: _Slots
    drawn: _Tile | None


class _About(TypedDict, total=False):
    name: str
    tiles: Annotated[int, msgspec.Meta(ge=0, le=10**6)]


class _Lobby(TypedDict, total=False):
    players: list[str | None]
    ready: list[str]


class _Player(TypedDict, total=False):
    lobby: Number


_TYPES = Types(
    {
        "lobby": Number,
        "exchange": Annotated[_Slots, msgspec.Meta(min_length=SEATS, max_length=SEATS)],
        "seats": dict[Literal["0", "1", "2", "3"], _About],
        "private": dict[str, _Own],
        "turn": _Seat,
        "winner": str,
        "drawn_game": Any,
    }
)
_DATA = {"put": Types({"seat": _Seat, "tile": _Tile | None, "valid": bool})}
_LobbyKey = Annotated[str, msgspec.Meta(pattern="^-?[0-9]{1,15}$")]


def view_of(scene: Scene) -> View:
    """Return the view of the current game, or of the lobbies."""
    number, part, events = valid_game(scene, _TYPES, _DATA)
    players = valid_items(scene.state.get("players"), _Player)
    if not number:
        return _lobbies(scene, players)
    names = [_about(part, seat).get("name") or f"seat {seat}" for seat in range(SEATS)]
    own = part.get("private", {})
    bottom = next((seat for seat in range(SEATS) if "deck" in own.get(names[seat], {})), 0)
    around = [(bottom + step) % SEATS for step in range(SEATS)]
    to_move = _seat_to_move(part, events)
    elsewhere = tuple(
        (name, f"lobby {players[name]['lobby']}" if "lobby" in players[name] else "")
        for name in sorted({*players} - {*names})
    )
    games = valid_items(scene.state.get("games"), dict[str, Any], Key)
    others = ", ".join(
        f"lobby {games[other].get('lobby', '?')}" for other in sorted({*games} - {number}, key=int)[:20]
    )
    return View(
        names=scene.names,
        title=(f"lobby {part.get('lobby', '?')}",),
        seats=tuple(_seat(part, names, seat, seat == to_move, events) for seat in around),
        story=_story(part, events, names),
        piles=(Pile((Span("main stack", "faint"),), hidden=0 if "drawn_game" in part else None),),
        facts=(Fact(("other games",), ((others,),)),) if others else (),
        unknown=not_known(_unknown(part)),
        groups=(Group("not in this game", elsewhere),) if elsewhere else (),
    )


def _seat(part: _Part, names: Sequence[str], seat: int, to_move: bool, events: Sequence[Event]) -> Seat:
    name = names[seat]
    own = part.get("private", {}).get(name, {})
    count = _about(part, seat).get("tiles")
    won = part.get("winner") == name
    return Seat(
        name=name,
        state="turn" if to_move else "won" if won else "",
        marks=(Span("has won", "strong"),) if won else (),
        figures=(Figure(counted("?" if count is None else count, "tile")),),
        hand=_hand(own["deck"], own.get("drawn")) if "deck" in own else Hand((), count, is_rack=True),
        pile=_pile(part, names, seat, _just_put(events)),
    )


def _hand(deck: _Slots, drawn: str | None) -> Hand:
    places = [None if name is None else tile(name) for name in deck]
    # Of two equal tiles it is unknown which was drawn; the first is marked.
    marked = deck.index(drawn) if drawn is not None and drawn in deck[:SLOTS] else None
    return Hand(tuple(places + [None] * (SLOTS - len(places))), 0, is_rack=True, drawn=marked)


def _pile(part: _Part, names: Sequence[str], seat: int, put: Event | None) -> Pile:
    """Return the exchange stack from which a player draws; only its topmost tile is known."""
    label: Line = ("for ", Name(names[seat]))
    stacks = part.get("exchange")
    if stacks is None:
        return Pile(label, is_known=False)
    top = stacks[seat]
    # Until the next status, another tile lies there.
    fresh = put is not None and (put.data["seat"] + 1) % SEATS == seat and top == put.data["tile"] is not None
    return Pile(label, (tile(top),) if top is not None else (), fresh=fresh)


def tile(name: str) -> Tile:
    """Return a tile by its name in the protocol; all jokers are alike."""
    number, _, colour = name.partition(":")
    return Tile(int(number), cast(Any, colour) if int(number) else "RED")


def _just_put(events: Sequence[Event]) -> Event | None:
    """Return the last put of a game, until the next turn is announced."""
    latest = events[-1] if events else None
    return latest if latest is not None and latest.kind == "put" and latest.data["valid"] else None


def _seat_to_move(part: _Part, events: Sequence[Event]) -> int | None:
    """Return whose turn it is; before the first status, that of the seat with an extra tile."""
    if "winner" in part or "drawn_game" in part or _just_put(events) is not None:
        return None
    turn: int | None = part.get("turn")
    if turn is None:
        turn = next((seat for seat in range(SEATS) if _about(part, seat).get("tiles") == DECK + 1), None)
    return turn


def _story(part: _Part, events: Sequence[Event], names: Sequence[str]) -> tuple[Line, ...]:
    if "winner" in part:
        return (Name(part["winner"]),), (Span("has won", "strong"),)
    if "drawn_game" in part:
        return (Span("nobody has won", "strong"),), ("the main stack is empty",)
    put = _just_put(events)
    if put is not None:
        what = tile(put.data["tile"]) if put.data["tile"] is not None else "?"
        return (Name(names[put.data["seat"]]),), ("has put ", what)
    seat = _seat_to_move(part, events)
    if seat is None:
        return (("whose turn?",),)
    task = {DECK: "is to draw a tile", DECK + 1: "is to put a tile"}
    return (Name(names[seat]),), (task.get(_about(part, seat).get("tiles", 0), "is to move"),)


def _unknown(part: _Part) -> Iterator[str]:
    """Yield the parts that should be known and are not."""
    if any("name" not in _about(part, seat) for seat in range(SEATS)):
        yield "names"
    if "exchange" not in part:
        yield "exchange stacks"


def _about(part: _Part, seat: int) -> dict[str, Any]:
    about: dict[str, Any] = part.get("seats", {}).get(str(seat), {})
    return about


def _lobbies(scene: Scene, players: dict[str, Any]) -> View:
    """Return the lobbies with their players, and the players in none."""
    lobbies = valid_items(scene.state.get("lobbies"), _Lobby, _LobbyKey)
    groups = []
    for number in sorted(lobbies, key=int):
        ready = lobbies[number].get("ready", [])
        names = [name for name in lobbies[number].get("players", []) if name is not None]
        members = tuple((name, "ready" if name in ready else "") for name in names)
        groups.append(Group(f"lobby {number}, {len(names)} of {SEATS}", members))
    outside = tuple((name, "") for name in sorted(players) if "lobby" not in players[name])
    if outside:
        groups.append(Group("in no lobby", outside))
    return View(names=scene.names, idle="no game yet" if groups else "nobody is here", groups=tuple(groups))
