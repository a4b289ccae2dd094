"""Drawings of an Okey table: racks and stacks, lobbies, real games, and whatever else may be told."""

from __future__ import annotations

from typing import Any

import pytest
from spoilt_states import HOSTILE_NAMES, spoilt
from strength import a_few, times
from svg_properties import SHAPES, check, drawings, texts
from terminal_scenes import event
from test_text_okey import NAMES, TILES, playing

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.okey_tiles import place
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.render.text import Scene
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, is_joker

GAME = "okey-head-game-win.pcap.gz"
DECK = ["1:RED", None, "13:BLUE", "0:RED"] + ["4:YELLOW", "4:BLACK"] * 5 + [None] * 10


def drawing(state: dict[str, Any], shape: Shape = "wide", events: list[Event] | None = None) -> Drawing:
    made = draw("okey", Scene(state, events or []), shape)
    check(made)
    return made


def line(made: Drawing, beginning: str) -> str:
    return next(words for words in made.words if words.startswith(beginning))


def halos(made: Drawing) -> int:
    return sum("#00a3ff" in made.fragments[piece.name] for piece in made.pieces)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_game_under_way(shape: Shape) -> None:
    made = drawing(playing(private={"Anna": {"deck": DECK, "drawn": "13:BLUE"}}), shape)
    seen = texts(made)
    assert {*NAMES, "14 tiles", "lobby 5", "13", "is to draw a tile"} <= {*seen}
    assert "holds red 1, blue 13, joker, yellow 4" in line(made, "Anna:")
    assert line(made, "Anna:").endswith("just drawn: blue 13")
    assert line(made, "Bert:") == "Bert: to move, 14 tiles"
    assert [words for words in made.words if words.startswith("stack")] == [
        "stack for Anna: red 1",
        "stack for Bert: blue 12",
        "stack for Carl: empty",
        "stack for Dora: joker",
    ]
    assert halos(made) == 1


def test_a_rack_has_its_gaps() -> None:
    made = drawing(playing(private={"Anna": {"deck": DECK}}))
    rack = next(piece for piece in made.pieces if "#8b5e34" in made.fragments[piece.name])
    found = {
        (round(piece.x - rack.x, 1), round(piece.y - rack.y, 1))
        for piece in made.pieces
        if 'fill="#fff9e3"' in made.fragments[piece.name] and "<g><rect" in made.fragments[piece.name]
    }
    held = {place(number) for number, tile in enumerate(DECK) if tile is not None}
    assert held <= found
    assert not {place(number) for number, tile in enumerate(DECK) if tile is None} & found


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_put_is_marked_once_it_lies_there(shape: Shape) -> None:
    put = {"seat": 0, "name": "Anna", "valid": True, "deck": None}
    lies = drawing(playing(), shape, [event(1, "put", **put, tile="12:BLUE")])
    assert halos(lies) == 1
    assert "has put blue 12" in texts(lies)
    assert halos(drawing(playing(), shape, [event(1, "put", **put, tile="1:BLACK")])) == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"winner": "Carl"}, {"Carl", "has won"}),
        ({"drawn_game": True}, {"nobody has won", "the stack is empty"}),
        ({"turn": None}, {"whose turn?"}),
    ],
)
def test_ends(part: dict[str, Any], told: set[str], shape: Shape) -> None:
    assert told <= {*texts(drawing(playing(**part), shape))}


def test_every_tile_has_its_own_sign() -> None:
    found = {}
    for tile in TILES:
        made = drawing(playing(exchange=[tile, None, None, None]))
        found[tile] = tuple(made.fragments)
    assert len({found[tile] for tile in TILES if not is_joker(tile)}) == 13 * len(COLOURS)
    assert len({found[tile] for tile in TILES if is_joker(tile)}) == 1
    # Each colour has a form, which the legend explains.
    assert {colour.lower() for colour in COLOURS} | {"joker"} <= {*texts(made)}


@pytest.mark.parametrize("shape", SHAPES)
def test_lobbies(shape: Shape) -> None:
    assert "Okey: nobody is here" in texts(drawing({}, shape))
    state = {
        "players": {"Anna": {"lobby": 1}, "Bert": {"lobby": 1}, "Emil": {}},
        "lobbies": {"1": {"players": ["Anna", "Bert", None], "ready": ["Bert"]}},
    }
    made = drawing(state, shape)
    assert {"lobby 1, 2 of 4", "Anna", "ready", "in no lobby", "Emil"} <= {*texts(made)}
    assert "lobby 1, 2 of 4: Anna, Bert (ready)" in made.words
    many = {"lobbies": {str(number): {"players": ["x"] * 40} for number in range(50)}}
    assert any(text.endswith("more") for text in texts(drawing(many, shape)))


@pytest.mark.parametrize("shape", SHAPES)
def test_real_game(shape: Shape) -> None:
    found: dict[str, str] = {}
    for made in drawings(GAME, shape, every=times(1, 5)):
        check(made)
        found |= made.fragments
    assert 20 < len(found) < 250


def test_a_players_drawing_has_no_other_rack() -> None:
    seen = 0
    for made in drawings(GAME, "wide", "robin", every=times(1, 7)):
        check(made)
        holders = {words.split(":")[0] for words in made.words if " holds " in words}
        assert holders <= {"robin"}
        seen += bool(holders)
    assert seen


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("hostile", a_few(HOSTILE_NAMES, HOSTILE_NAMES[:5]))
def test_hostile_names(hostile: str, shape: Shape) -> None:
    state = playing([hostile, "a", "b" * 20, "c"], winner=hostile)
    drawing(state, shape)
    del state["games"]["7"]["winner"]
    drawing(state, shape)
    drawing(state | {"games": {}}, shape)


@pytest.mark.parametrize("seed", range(times(400, 20)))
def test_spoilt_states(seed: int) -> None:
    own = {"Anna": {"deck": DECK, "drawn": "13:BLUE"}, "Bert": {"deck": DECK}}
    put = event(1, "put", **spoilt({"seat": 0, "tile": "12:BLUE", "valid": True}, seed, 1))
    for shape in SHAPES:
        drawing(spoilt(playing(private=own), seed), shape, [put] * (seed % 2))
