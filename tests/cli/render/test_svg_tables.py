from __future__ import annotations

from typing import Any

import pytest
from game_scenes import (
    CGML_TRICK,
    DECK,
    NAMES,
    ON_TABLE,
    SCHAFKOPF_TRICK,
    SEATS,
    cgml,
    maexchen,
    okey,
    played,
    schafkopf,
)
from svg_properties import SHAPES, check, texts
from terminal_scenes import event

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


def line(made: Drawing, beginning: str) -> str:
    return next(words for words in made.words if words.startswith(beginning))


@EACH
def test_schafkopf(shape: Shape) -> None:
    hand = {"Anna": {"hand": ["HERZ SAU", "GRAS OBER"]}}
    part = {"trick": 1, "tricks": [SCHAFKOPF_TRICK], "points": {"[BOT]-1": 17}, "knocks": ["[BOT]-0"]}
    made = drawing("schafkopf", schafkopf(table=ON_TABLE, private=hand, **part), shape)
    wanted = {"Sauspiel Gras", "round 3 · stock 40", "Sau", "Herz", "Eichel", "Unter", *SEATS}
    assert wanted | {"trick 1: 17 points"} <= {*texts(made)}
    assert line(made, "Anna").endswith("holds Gras Ober, Herz Sau, 3 hidden cards")
    assert "17 points, on the table Eichel Unter, takes the trick" in line(made, "[BOT]-1")
    assert "plays, account -74335" in line(made, "Bert")
    assert "partner not known yet" in made.words


@EACH
def test_cgml(shape: Shape) -> None:
    hands = {"2": {"hand": ["G0A", "R0Q", "B10"], "talon": ["A07", "B07"]}}
    part = {"tricks": [CGML_TRICK], "hands": {"1": 9, "2": 3, "3": 9}, "flek": "2", "turn": 3}
    made = drawing("cgml", cgml(private=hands, **part), shape)
    wanted = {"7, trumps zelené", "group 4 · hand 3", "eso", "červené", "9", "Adam", "Bára", "Cyril"}
    assert wanted <= {*texts(made)}
    assert {"game: 7, trumps zelené, flek ×2", "talon: žaludy 7, kule 7"} <= {*made.words}
    assert line(made, "Bára") == (
        "Bára: declarer, id 2, 0 tricks, money -24, on the table červené 10,"
        " holds zelené eso, červené svršek, kule 10"
    )
    assert line(made, "Cyril").startswith("Cyril: to move, id 3, 1 trick")
    assert "on the table červené eso, takes the trick" in line(made, "Cyril")
    assert "9 hidden cards" in line(made, "Adam")
    assert "bidding: Bára 7, Cyril PASS, Adam PASS" in made.words


@EACH
def test_okey(shape: Shape) -> None:
    made = drawing("okey", okey(private={"Anna": {"deck": DECK, "drawn": "13:BLUE"}}), shape)
    assert {*NAMES, "14 tiles", "lobby 5", "13", "is to draw a tile"} <= {*texts(made)}
    assert "holds red 1, blue 13, joker, yellow 4" in line(made, "Anna:")
    assert line(made, "Anna:").endswith("just drawn: blue 13")
    assert line(made, "Bert:") == "Bert: to move, 14 tiles"
    assert {"stack for Anna: red 1", "stack for Carl: empty", "main stack: some are left"} <= {*made.words}
    # The tile just drawn is marked, and each colour has a form, which the legend explains.
    assert sum("#00a3ff" in made.fragments[piece.name] for piece in made.pieces) == 1
    assert {colour.lower() for colour in COLOURS} | {"joker"} <= {*texts(made)}


@EACH
def test_maexchen(shape: Shape) -> None:
    state = maexchen("anna", "bob", turn="bob", announced={"name": "anna", "dice": "6,2"})
    state["scores"] = {"anna": 1, "bob": 12, "carl": 3}
    state["players"]["dora"] = {"spectator": True}
    events = [event(1, "announced", name="bob", dice="6,1"), event(2, "announced", name="anna", dice="6,2")]
    made = drawing("maexchen", state, shape, events)
    wanted = {"round 3", "anna announced 6,2", "bob: roll, or see?", "1 point", "12 points", "says 6,2"}
    assert wanted | {"to move", "6,1", "6,2", "not in this round: carl (3)", "watching: dora"} <= {
        *texts(made)
    }
    assert {"anna: says 6,2, 1 point", "bob: to move, 12 points"} <= {*made.words}
    assert "the dice are under the cup" in made.words
    assert marked(made, "turn", "bob")


def marked(made: Drawing, colour: str, name: str) -> bool:
    return any(f"k-s-{colour}" in part and f">{name}</text>" in part for part in made.fragments.values())


@EACH
def test_a_round_s_result_remains_visible(shape: Shape) -> None:
    events = [
        event(1, "announced", name="anna", dice="6,5"),
        event(2, "actual_dice", dice="4,1"),
        event(3, "lost", names=["anna"], reason="CAUGHT_BLUFFING"),
    ]
    over = {"players": {"anna": {}, "bob": {}}, "scores": {"anna": 0, "bob": 1}}
    made = drawing("maexchen", over, shape, events)
    assert {"anna lost", "announced 6,5 and had 4,1", "6,5"} <= {*texts(made)}
    assert (marked(made, "alarm", "anna"), marked(made, "alarm", "bob")) == (True, False)
    assert "dice: 4,1" in made.words


@EACH
@pytest.mark.parametrize(
    ("game", "state", "seen"),
    [
        (
            "schafkopf",
            {"players": {"Anna": {"here": True}, "Bert": {}}},
            {"no round yet", "left", "Bert"},
        ),
        (
            "okey",
            {"lobbies": {"1": {"players": ["A", None], "ready": ["A"]}}},
            {"lobby 1, 1 of 4", "ready"},
        ),
        ("okey", {"lobbies": {str(n): {"players": ["x"] * 40} for n in range(50)}}, {"no game yet"}),
        ("cgml", cgml() | {"games": {}}, {"group 4", "Adam", "money -24", "no hand is played"}),
        ("cgml", {"loads": {"10.0.0.2:4": 77}}, {"load of servers of bots: 10.0.0.2:4 77"}),
        ("cgml", {}, {"nobody is here yet"}),
    ],
)
def test_no_players(game: str, state: dict[str, Any], seen: set[str], shape: Shape) -> None:
    assert seen <= {*texts(drawing(game, state, shape))}


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
def test_points_and_doings_have_room_next_to_each_other(shape: Shape) -> None:
    names = [f"p{number}" for number in range(8)]
    bluff = {"announced": {"name": "p0", "dice": "2,1"}, "private": {"p0": {"dice": "3,1", "bluff": True}}}
    state = maexchen(*names, turn="p1", seer="p1", **bluff) | {"scores": dict.fromkeys(names, 1000)}
    seen = texts(drawing("maexchen", state, shape))
    assert {"bluffs Mäxchen", "wants to see", "1000 points"} <= {*seen}
    assert not any("…" in words for words in seen)


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
