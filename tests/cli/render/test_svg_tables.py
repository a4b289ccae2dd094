from __future__ import annotations

from typing import Any

import pytest
from game_scenes import (
    DECK,
    SEATS,
    cgml,
    maexchen,
    okey,
    played,
    schafkopf,
)
from svg_properties import SHAPES, check, texts

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.dice_and_plates import dice_and_cup
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.render.svg.tiles import place
from kiebitz.dissectors.game.view import Dice, Scene
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import PACK as CGML_PACK
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST
from kiebitz.dissectors.protocols.schafkopf.cards import PACK

EACH = pytest.mark.parametrize("shape", SHAPES)


def drawing(
    game: str, state: dict[str, Any], shape: Shape = "wide", events: list[Event] | None = None
) -> Drawing:
    made = draw(game, Scene(state, events or [], sorted(state.get("players", {}))), shape)
    check(made)
    return made


@pytest.mark.parametrize(
    ("game", "states"),
    [
        ("schafkopf", [schafkopf(table={"0": card}, trick=1) for card in PACK]),
        ("cgml", [cgml(table=[played(2, card)]) for card in CGML_PACK]),
        (
            "okey",
            [
                okey(exchange=[f"{number}:{colour}", None, None, None])
                for number in range(1, HIGHEST + 1)
                for colour in COLOURS
            ],
        ),
    ],
)
def test_every_piece_has_a_fragment_of_its_own(game: str, states: list[dict[str, Any]]) -> None:
    assert len({tuple(drawing(game, state).fragments) for state in states}) == len(states)


def test_dice_of_each_roll_are_distinct() -> None:
    rolls = [(high, low) for high in range(1, 7) for low in range(1, high + 1)]
    dice = [Dice(faces, "open") for faces in rolls] + [Dice(faces, "secret") for faces in rolls]
    assert len({dice_and_cup(each, 1.0).name for each in dice}) == 42
    for each in dice:
        assert dice_and_cup(each, 1.0).markup.count("<circle") == sum(map(int, each.faces))
    assert ">?</text>" in dice_and_cup(Dice(roll="hidden"), 1.0).markup


def test_a_rack_has_its_gaps() -> None:
    made = drawing("okey", okey(private={"Anna": {"deck": DECK}}))
    rack = next(piece for piece in made.pieces if "#8b5e34" in made.fragments[piece.name])
    found = {
        (round(piece.x - rack.x, 1), round(piece.y - rack.y, 1))
        for piece in made.pieces
        if 'fill="#fff9e3"' in made.fragments[piece.name] and "<g><rect" in made.fragments[piece.name]
    }
    assert {place(number) for number, tile in enumerate(DECK) if tile is not None} <= found
    assert not {place(number) for number, tile in enumerate(DECK) if tile is None} & found


@pytest.mark.parametrize("game", ["schafkopf", "maexchen"])
def test_the_next_player_has_an_arrow_and_not_colour_alone(game: str) -> None:
    state = schafkopf(turn="Bert") if game == "schafkopf" else maexchen("Anna", "Bert", turn="Bert")
    made = drawing(game, state)
    plates = [part for part in made.fragments.values() if ">Bert</text>" in part]
    arrows = [part for part in plates if 'class="k-turn"' in part]
    assert len(arrows) == 1


def test_too_many_cards_are_reported() -> None:
    for shape in SHAPES:
        private = {name: {"hand": ["HERZ SAU"] * 30} for name in SEATS}
        made = drawing("schafkopf", schafkopf(private=private), shape)
        assert sum("more cards" in words for words in texts(made)) == len(SEATS)


@EACH
@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9, 14, 15, 40, 41, 52, 500])
def test_any_number_of_players(count: int, shape: Shape) -> None:
    names = [f"p{number:0>19}" for number in range(count)]
    state = maexchen(*names, turn=names[0] if names else "") | {"scores": dict.fromkeys(names, 12)}
    made = drawing("maexchen", state, shape)
    shown = count if count <= 40 else 39
    # A name of twenty letters is never cut.
    assert {*names[:shown]} <= {*texts(made)}
    assert texts(made).count("12") + texts(made).count("12 points") == shown
    if count > 40:
        assert f"and {count - 39} more players" in texts(made)
    joined = {"phase": "starting", "private": {name: {"joined": True} for name in names}}
    drawing("maexchen", maexchen(*names, **joined), shape)
    drawing("maexchen", maexchen(*names, phase="lost", lost={"names": names[1:], "reason": "MIA"}), shape)
