"""What of a Catan table's state is drawn, in the terminal and as SVG: the players, the board, the pieces.

A state is what a server said, and more than one server has faults: what is missing is left out, and what
cannot stand on a board is not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kiebitz.cli.render.text.catan_colours import NO_COLOUR, PLAYERS
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.protocols.catan.board import Board, Place, Spot, spot
from kiebitz.dissectors.protocols.catan.words import DORF, STADT, STRASSE

_LARGEST = 20
"""The most rows and columns of fields that are drawn; the board for six has seven."""

MOST_PLAYERS = 6

Count = int | list[int]
"""How many, or between how few and how many."""


class Player(msgspec.Struct, frozen=True, eq=False):
    """A player: `about` is public, `resources` and `cards` are what is known of each kind in his hand."""

    number: int
    letter: str
    name: str
    about: Mapping[str, Any]
    resources: Mapping[str, Count] | None = None
    cards: Mapping[str, Count] | None = None

    @property
    def colour(self) -> str:
        """The colour of his pieces."""
        return PLAYERS.get(self.about.get("colour", ""), NO_COLOUR)


class Piece(msgspec.Struct, frozen=True, eq=False):
    """A building and its owner, None if nobody knows him."""

    where: Spot
    kind: str
    owner: Player | None


def owner_marks(piece: Piece) -> tuple[str, str]:
    """The letter and the colour of a piece."""
    return (piece.owner.letter, piece.owner.colour) if piece.owner is not None else ("?", NO_COLOUR)


class Island(msgspec.Struct, frozen=True, eq=False):
    """A board with its robber and its pieces, roads first; `rolled` is the number that yields."""

    board: Board
    robber: Place | None
    pieces: list[Piece]
    rolled: int | None

    @property
    def land(self) -> list[Place]:
        """The fields that are not the sea."""
        return [place for place in self.board.fields if self.board.is_land(place)]

    @property
    def harbours(self) -> list[tuple[Spot, Place, str]]:
        """The harbours that lie at a coast: their edge, its field in the sea, and their type."""
        board = self.board
        found = []
        for edge, kind in board.harbours.items():
            sea = [place for place in edge if not board.is_land(place)]
            if board.is_edge(edge) and sea:
                found.append((edge, sea[0], kind))
        return found


class Look(msgspec.Struct, frozen=True, eq=False):
    """A table: `part` is the game's state, empty in the lobby; without an `island`, `no_island` says why."""

    part: Mapping[str, Any]
    players: list[Player]
    island: Island | None
    no_island: str
    server: str

    def player(self, number: int | None) -> Player | None:
        """The player of a number."""
        return next((player for player in self.players if player.number == number), None)


def look_at(scene: Scene) -> Look:
    """What is drawn of a scene."""
    _, part = scene.game()
    players = _players(part.get("players", {}) if part else _lobby(scene.state), part)
    server = scene.state.get("server", {}).get("version", "")
    board = part.get("board")
    if board is None:
        return Look(part, players, None, "the board is not known", server)
    island = _island(board, part, players)
    if not island.land:
        return Look(part, players, None, "the board has no land", server)
    if not _drawable(island.land):
        return Look(part, players, None, "the board is too large to be drawn", server)
    return Look(part, players, island, "", server)


def _lobby(state: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Who is connected, by number, as in a game."""
    return {
        str(about.get("id", -1 - place)): {"name": name, **about}
        for place, (name, about) in enumerate(state.get("players", {}).items())
    }


def _players(known: Mapping[str, Mapping[str, Any]], part: Mapping[str, Any]) -> list[Player]:
    numbers = sorted(map(int, known))
    names = [known[str(number)].get("name") or f"player {number}" for number in numbers]
    letters = _letters(names)
    private = part.get("private", {})
    players = []
    for number, name, letter in zip(numbers, names, letters, strict=True):
        own = private.get(name, {})
        players.append(
            Player(number, letter, name, known[str(number)], own.get("resources"), own.get("cards"))
        )
    return players


def _letters(names: list[str]) -> list[str]:
    """A letter for each player: the first of his name, if these can be told apart everywhere."""
    initials = [name[0].upper() for name in names]
    if len(set(initials)) == len(initials) and all("A" <= initial <= "Z" for initial in initials):
        return initials
    return [chr(ord("A") + place % 26) for place in range(len(names))]


def _island(state: Mapping[str, Any], part: Mapping[str, Any], players: list[Player]) -> Island:
    fields, numbers = {}, {}
    for field in state.get("fields", ()):
        place = _place(field["at"])
        fields[place] = field.get("type", "")
        if "number" in field:
            numbers[place] = field["number"]
    harbours = {spot(map(_place, found["at"])): found.get("type", "") for found in state.get("harbours", ())}
    board = Board(fields, numbers, harbours)
    owners = {player.number: player for player in players}
    pieces = []
    for where, building in part.get("buildings", {}).items():
        piece = Piece(_spot(where), building.get("type", ""), owners.get(building.get("owner", -1)))
        if _fits(piece, board):
            pieces.append(piece)
    pieces.sort(key=lambda piece: piece.kind != STRASSE)
    robber = _place(part["robber"]) if "robber" in part else None
    return Island(board, robber, pieces, sum(part["dice"]) if "dice" in part else None)


def _fits(piece: Piece, board: Board) -> bool:
    if piece.kind == STRASSE:
        return board.is_edge(piece.where)
    return piece.kind in (DORF, STADT) and board.is_corner(piece.where)


def _spot(key: str) -> Spot:
    return spot(_place(list(map(int, place.split(",")))) for place in key.split())


def _place(at: list[int]) -> Place:
    x, y = at
    return x, y


def _drawable(land: list[Place]) -> bool:
    return all(max(axis) - min(axis) < _LARGEST for axis in zip(*land, strict=True))
