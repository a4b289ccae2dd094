"""Buildings: placement, costs, and the longest road.

Clauses 7.2, 10.6 and 10.10, and the rules of the game to which clause 14 refers.
"""

from __future__ import annotations

from collections import Counter

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.protocols.catan import resources
from kiebitz.dissectors.protocols.catan.board import (
    PIECES,
    ROAD_INTERRUPTED,
    Building,
    Spot,
    at,
    longest_road,
    placement_problem,
    spot,
    spot_text,
)
from kiebitz.dissectors.protocols.catan.context import CatanContext
from kiebitz.dissectors.protocols.catan.game import COSTS, CatanGame, Player, place_text
from kiebitz.dissectors.protocols.catan.ledger import START, Claim
from kiebitz.dissectors.protocols.catan.words import DORF, FARBEN, STADT, STRASSE

_WHY = {STRASSE: "road", DORF: "village", STADT: "city"}
_MAX_BUILDINGS = 1000
"""Maximum number of stored buildings; no map has room for as many."""


def bauvorgang(context: CatanContext, observation: Observation) -> None:
    """Process a new building."""
    told = observation.fields["Gebäude"]
    build(context, observation, told["Eigentümer"], told["Typ"], spot(map(at, told["Ort"])), ("Gebäude",))


def build(
    context: CatanContext, observation: Observation, owner: int, typ: str, where: Spot, path: tuple[str, ...]
) -> None:
    """Add a building; `path` is its place in the message."""
    player = context.player(owner)
    data = {"type": typ, "place": [{"x": x, "y": y} for x, y in where]}
    game = context.game
    if game is None:
        context.emit_observed(observation, "built", player, data)
        return
    if game.buildings.get(where) == Building(owner, typ):
        # A card that names its roads may be followed by a message for each.
        return
    _check(context, observation, game, player, typ, where, path)
    if where in game.buildings or len(game.buildings) < _MAX_BUILDINGS:
        game.buildings[where] = Building(owner, typ)
        context.put_in({"owner": owner, "type": typ}, "buildings", place_text(where))
    context.emit_observed(observation, "built", player, data)
    if game.in_setup:
        _settled(context, observation, game, player, typ, where)
    elif typ == STRASSE and player.free_roads:
        player.free_roads -= 1
    else:
        resources.claim(context, Claim(observation, owner, -1, COSTS[typ], _WHY[typ]))


def _settled(
    context: CatanContext, observation: Observation, game: CatanGame, player: Player, typ: str, where: Spot
) -> None:
    board = game.board
    if typ != DORF or board is None or len(game.buildings.towns(player.id)) != 2:
        return
    counts = Counter(kind for kind in map(board.resource, where) if kind is not None)
    resources.claim(context, Claim(observation, player.id, 1, dict(counts), START, partly=True))


def _check(
    context: CatanContext,
    observation: Observation,
    game: CatanGame,
    player: Player,
    typ: str,
    where: Spot,
    path: tuple[str, ...],
) -> None:
    if not game.certain or game.board is None:
        return
    problem = placement_problem(game.buildings, game.board, player.id, typ, where, game.in_setup)
    if problem is not None:
        game.buildings_contradicted = True
        key, place = "road-through" if problem == ROAD_INTERRUPTED else "bad-place", spot_text(where)
        context.report_violation_of(
            observation, key, *path, "Ort", player=player.name, piece=typ, place=place, problem=problem
        )
    elif not game.in_setup and game.roller not in (None, player.id):
        key, whose = "out-of-turn/build", context.name(game.roller)
        context.report_violation_of(
            observation, key, *path, "Eigentümer", player=player.name, whose=whose, roller=game.roller
        )
    elif len(game.buildings.owned(player.id, typ)) >= PIECES[typ]:
        key, most = "too-many-pieces", PIECES[typ]
        context.report_violation_of(observation, key, *path, "Typ", player=player.name, piece=typ, most=most)


def longest(context: CatanContext, observation: Observation) -> None:
    """Process a new holder of the longest road."""
    number: int | None = observation.fields.get("Spieler")
    player = context.player(number) if number is not None else None
    game = context.game
    if game is not None:
        game.longest_road = number
        game.longest_observation = observation
        context.put_in(number, "longest_road")
    context.emit_observed(observation, "longest_road", player, {} if player is not None else {"player": None})


def _lengths(game: CatanGame) -> dict[int, int] | None:
    """Return the length of each player's longest road; None if that is unknown."""
    if game.board is None or not game.certain or len(game.players) > len(FARBEN):
        return None
    found = {}
    for number in game.players:
        length = longest_road(game.buildings, game.board, number)
        if length is None:
            return None
        found[number] = length
    return found


def check_longest(context: CatanContext, game: CatanGame) -> None:
    """Check the announced holder of the longest road at the end of the turn.

    Some servers announce it before they send the building.
    """
    observation, game.longest_observation = game.longest_observation, None
    lengths = _lengths(game) if observation is not None else None
    if observation is None or lengths is None or _may_hold_longest_road(game.longest_road, lengths):
        return
    longest = max(lengths.values(), default=0)
    whose = [context.name(number) or "" for number in lengths if lengths[number] == longest]
    holder = game.longest_road
    ours = f"{context.name(holder)}'s road has {lengths[holder]}" if holder in lengths else "no player has it"
    others, expected = " and ".join(whose), ", ".join(whose)
    context.report_violation_of(
        observation, "longest-road", "Spieler", holder=ours, others=others, longest=longest, expected=expected
    )


def _may_hold_longest_road(number: int | None, lengths: dict[int, int]) -> bool:
    """Return True if a player may hold the longest road: at least 5, and no other is longer."""
    longest = max(lengths.values(), default=0)
    if number is None:
        return longest < 5 or sum(length == longest for length in lengths.values()) > 1
    return lengths.get(number, 0) >= 5 and lengths[number] == longest
