"""The view of a Catan table: players with their hands, board, pieces, trades and bank.

A state comes from a server, which may have errors: missing parts are left out, and pieces that cannot be on a
board are not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.game.view import (
    Dice,
    Element,
    Fact,
    Figure,
    Line,
    Name,
    Scene,
    Seat,
    Span,
    View,
    counted,
    not_known,
)
from kiebitz.dissectors.protocols.catan.board import Board, Hex, Spot, spot
from kiebitz.dissectors.protocols.catan.words import DORF, KARTEN, ROHSTOFFE, STADT, STRASSE

_LARGEST = 20
"""Maximum number of rows and columns to draw; the board for six players has seven."""

MOST_PLAYERS = 6
NOT_KNOWN = "?"
_READINESS = {"Spiel starten": "not ready yet", "Wartet auf Spielbeginn": "ready"}

Count = int | list[int]
"""A number, or minimum and maximum."""


class CatanSeat(Seat, frozen=True, eq=False):
    """A player, identified by a letter and a colour; the first figure is the points.

    `counts` are the resources in the hand by kind, and `total` their sum; empty before the game.
    """

    number: int
    letter: str
    colour: str = ""
    counts: tuple[str, ...] = ()
    total: str = ""


class Piece(msgspec.Struct, frozen=True, eq=False):
    """A building and its owner, None if unknown."""

    where: Spot
    kind: str
    owner: CatanSeat | None


class IslandView(msgspec.Struct, frozen=True, eq=False):
    """A board with its robber and its pieces, roads first; `rolled` is the number that yields."""

    board: Board
    robber: Hex | None
    pieces: list[Piece]
    rolled: int | None

    @property
    def land(self) -> list[Hex]:
        """The fields that are not sea."""
        return [place for place in self.board.fields if self.board.is_land(place)]

    @property
    def harbours(self) -> list[tuple[Spot, Hex, str]]:
        """The harbours at a coast: edge, sea field and type."""
        board = self.board
        found = []
        for edge, kind in board.harbours.items():
            sea = [place for place in edge if not board.is_land(place)]
            if board.is_edge(edge) and sea:
                found.append((edge, sea[0], kind))
        return found


class CatanView(View, frozen=True, eq=False):
    """A table; `is_lobby` before the game, and `no_island` is the reason for a missing `island`.

    `bank` has the number of cards of each resource, empty if unknown.
    """

    seats: tuple[CatanSeat, ...] = ()
    is_lobby: bool = False
    island: IslandView | None = None
    no_island: str = ""
    server: str = ""
    bank: tuple[str, ...] = ()

    @property
    def more(self) -> str:
        """The number of players that do not fit, in words; empty if all fit."""
        left = len(self.seats) - MOST_PLAYERS
        return f"and {counted(left, 'more player')}" if left > 0 else ""

    @property
    def bank_words(self) -> str:
        """The bank's contents, including resources of which nothing is left."""
        counts = zip(self.bank, ROHSTOFFE, strict=False)
        return "bank: " + ", ".join(f"{count} {name}" for count, name in counts) if self.bank else ""


def view_of(scene: Scene) -> CatanView:
    """Return the view of the current game, or of the players before it."""
    _, part = scene.game()
    known = part.get("players", {}) if part else _lobby(scene.state)
    seats = _seats(known, part)
    island, why = _island_or_why(part, seats)
    return CatanView(
        names=scene.names,
        seats=seats,
        story=_story(part, seats),
        dice=Dice(tuple(part["dice"]), "open") if "dice" in part else None,
        facts=tuple(_offers(part, seats)),
        unknown=not_known(part.get("unknown", ())),
        is_lobby=not part,
        island=island,
        no_island=why,
        server=scene.state.get("server", {}).get("version", ""),
        bank=hand(part["bank"]) if "bank" in part else (),
    )


def _lobby(state: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        str(about.get("id", -1 - place)): {"name": name, **about}
        for place, (name, about) in enumerate(state.get("players", {}).items())
    }


def _seats(known: Mapping[str, Mapping[str, Any]], part: Mapping[str, Any]) -> tuple[CatanSeat, ...]:
    numbers = sorted(map(int, known))
    names = [known[str(number)].get("name") or f"player {number}" for number in numbers]
    found = []
    for number, name, letter in zip(numbers, names, _letters(names), strict=True):
        about = known[str(number)]
        colour = about.get("colour", "")
        if not part:
            status = about.get("status", NOT_KNOWN)
            marks = (Span(colour or "no colour yet"), Span(_READINESS.get(status, status)))
            found.append(CatanSeat(name=name, number=number, letter=letter, colour=colour, marks=marks))
            continue
        own = part.get("private", {}).get(name, {})
        found.append(
            CatanSeat(
                name=name,
                number=number,
                letter=letter,
                colour=colour,
                state=_state(number, part),
                marks=tuple(map(Span, _marks(number, about, own.get("cards"), part))),
                figures=(Figure(counted(about.get("points", NOT_KNOWN), "point")),),
                counts=hand(own.get("resources")),
                total=str(about.get("resources", NOT_KNOWN)),
            )
        )
    return tuple(found)


def _state(number: int, part: Mapping[str, Any]) -> Any:
    if "winner" in part:
        return "won" if part["winner"] == number else ""
    return "turn" if part.get("turn") == number else ""


def _marks(
    number: int, about: Mapping[str, Any], cards: Mapping[str, Count] | None, part: Mapping[str, Any]
) -> list[str]:
    found = []
    status = about.get("status", "Warten")
    if status != "Warten" and (number != part.get("turn") or status != part.get("phase")):
        found.append(status)
    if part.get("longest_road") == number:
        found.append("longest road")
    knights = counted(about.get("knights", 0), "knight")
    if part.get("largest_army") == number:
        found.append(f"largest army: {knights}")
    elif about.get("knights"):
        found.append(knights)
    if cards is None:
        total = about.get("cards")
        return [*found, counted(total, "hidden card")] if total else found
    kinds = [f"{count_words(cards[card])} {card}" for card in KARTEN if cards.get(card, 0) not in (0, [0, 0])]
    return [*found, f"holds {' and '.join(kinds)}"] if kinds else found


def count_words(count: Count | None) -> str:
    """Return a number, a range such as `0-2`, or a question mark."""
    if count is None:
        return NOT_KNOWN
    return str(count) if isinstance(count, int) else "-".join(map(str, count))


def hand(known: Mapping[str, Count] | None) -> tuple[str, ...]:
    """Return the number of cards of each resource as text; missing ones are hidden."""
    return tuple(count_words(known.get(name) if known is not None else None) for name in ROHSTOFFE)


def _letters(names: list[str]) -> list[str]:
    """Return a letter for each player: the first letters of the names, if they differ."""
    initials = [name[0].upper() for name in names]
    if len(set(initials)) == len(initials) and all("A" <= initial <= "Z" for initial in initials):
        return initials
    return [chr(ord("A") + place % 26) for place in range(len(names))]


def _story(part: Mapping[str, Any], seats: Iterable[CatanSeat]) -> tuple[Line, ...]:
    if "winner" in part:
        winner = _seat(part["winner"], seats)
        if winner is None:
            return (("the game is over, nobody has won",),)
        return (Name(winner.name),), ("has won",)
    active = _seat(part.get("turn"), seats)
    phase = (part.get("phase", ""),)
    return ((Name(active.name),), phase) if active is not None else (phase,)


def _seat(number: int | None, seats: Iterable[CatanSeat]) -> CatanSeat | None:
    return next((seat for seat in seats if seat.number == number), None)


def _offers(part: Mapping[str, Any], seats: Iterable[CatanSeat]) -> Iterable[Fact]:
    trades = part.get("trades", {})
    for trade in (trades[number] for number in sorted(trades, key=int)):
        by = _seat(trade.get("player"), seats)
        words = f" offers {goods(trade.get('offer', {}))} for {goods(trade.get('demand', {}))}"
        title: list[Element] = [Name(by.name) if by is not None else NOT_KNOWN, words]
        accepted = [
            seat for number in trade.get("accepted", ()) if (seat := _seat(number, seats)) is not None
        ]
        for place, seat in enumerate(accepted):
            title += [", " if place else "; accepted by ", Name(seat.name)]
        yield Fact(tuple(title))


def goods(resources: Mapping[str, Count]) -> str:
    """Return `1 Holz, 2 Erz`; a question mark if empty, as a player may ask for any offer."""
    kinds = [(resources[name], name) for name in ROHSTOFFE if resources.get(name, 0) != 0]
    return ", ".join(f"{count_words(count)} {name}" for count, name in kinds) or NOT_KNOWN


def _island_or_why(part: Mapping[str, Any], seats: Iterable[CatanSeat]) -> tuple[IslandView | None, str]:
    board = part.get("board")
    if board is None:
        return None, "the board is not known"
    island = _island(board, part, seats)
    if not island.land:
        return None, "the board has no land"
    if all(max(axis) - min(axis) < _LARGEST for axis in zip(*island.land, strict=True)):
        return island, ""
    return None, "the board is too large to be drawn"


def _island(state: Mapping[str, Any], part: Mapping[str, Any], seats: Iterable[CatanSeat]) -> IslandView:
    fields, numbers = {}, {}
    for field in state.get("fields", ()):
        place = _place(field["at"])
        fields[place] = field.get("type", "")
        if "number" in field:
            numbers[place] = field["number"]
    harbours = {spot(map(_place, found["at"])): found.get("type", "") for found in state.get("harbours", ())}
    board = Board(fields, numbers, harbours)
    owners = {seat.number: seat for seat in seats}
    pieces = []
    for where, building in part.get("buildings", {}).items():
        at = spot(_place([*map(int, place.split(","))]) for place in where.split())
        piece = Piece(at, building.get("type", ""), owners.get(building.get("owner", -1)))
        if _fits(piece, board):
            pieces.append(piece)
    pieces.sort(key=lambda piece: piece.kind != STRASSE)
    robber = _place(part["robber"]) if "robber" in part else None
    return IslandView(board, robber, pieces, sum(part["dice"]) if "dice" in part else None)


def _fits(piece: Piece, board: Board) -> bool:
    if piece.kind == STRASSE:
        return board.is_edge(piece.where)
    return piece.kind in (DORF, STADT) and board.is_corner(piece.where)


def _place(at: list[int]) -> Hex:
    x, y = at
    return x, y
