from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from catan_states import NAMES, STATES, island, key
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import a_few, times
from svg_properties import SHAPES, check, texts
from terminal_scenes import event

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.catan_board import LIT, PLAYERS
from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.catan.board import Board, spot

EACH = pytest.mark.parametrize("shape", SHAPES)


def drawing(state: dict[str, Any], shape: Shape = "wide", events: list[Event] | None = None) -> Drawing:
    drawn = draw("catan", Scene(state, events or []), shape)
    check(drawn)
    return drawn


def places(drawn: Drawing, text: str) -> list[tuple[float, float]]:
    return [
        (piece.x + float(element.get("x", 0)), piece.y + float(element.get("y", 0)))
        for piece in drawn.pieces
        for element in ElementTree.fromstring(drawn.fragments[piece.name]).iter("text")
        if element.text == text
    ]


def filled(drawn: Drawing, colour: str) -> list[tuple[str, float, float]]:
    return [
        (element.tag, piece.x, piece.y)
        for piece in drawn.pieces
        for element in ElementTree.fromstring(drawn.fragments[piece.name]).iter()
        if element.get("fill") == colour
    ]


def said(drawn: Drawing) -> str:
    return "\n".join(drawn.words)


# The board.


@EACH
@pytest.mark.parametrize("slant", [1, -1])
def test_fields_lie_as_on_the_board(slant: int, shape: Shape) -> None:
    state = island(slant)
    fields = state["games"]["7"]["board"]["fields"]
    board = Board({tuple(field["at"]): field["type"] for field in fields}, {}, {})
    seen = drawing(state, shape)
    at = {place: places(seen, field)[0] for place, field in board.fields.items()}
    x0, y0 = at[0, 0]
    half, pitch = (at[1, 0][0] - x0) / 2, y0 - at[0, 1][1]
    assert half > 0
    assert pitch > 0
    for place, (x, y) in at.items():
        across, up = board.centre(place)
        assert [x - x0, y0 - y] == pytest.approx([across * half, up * pitch], abs=1)


@EACH
@pytest.mark.parametrize("kind", ["Dorf", "Stadt", "Straße"])
def test_a_building_is_between_its_fields_in_its_players_colour_and_letter(kind: str, shape: Shape) -> None:
    around = {"F0": (0, 0), "F1": (1, 0)} | ({} if kind == "Straße" else {"F6": (0, 1)})
    without = drawing(island(), shape)
    seen = drawing(island(buildings={key(*around.values()): {"owner": 1, "type": kind}}), shape)
    (new,) = seen.fragments.keys() - without.fragments.keys()
    (built,) = [piece for piece in seen.pieces if piece.name == new]
    assert PLAYERS["Rot"] in seen.fragments[new]
    assert ">A</text>" in seen.fragments[new]
    fields = [places(seen, field)[0] for field in around]
    assert built.x == pytest.approx(sum(x for x, _ in fields) / len(fields), abs=1)
    # A field's name is above its middle.
    assert 0 < built.y - sum(y for _, y in fields) / len(fields) < 60


def test_kinds_of_buildings_have_different_shapes() -> None:
    corner = key((0, 0), (1, 0), (0, 1))
    village, city = (
        {*drawing(island(buildings={corner: {"owner": 1, "type": kind}})).fragments.values()}
        for kind in ("Dorf", "Stadt")
    )
    assert len(village - city) >= 1


def test_invalid_board_positions_are_not_drawn() -> None:
    buildings = {
        key((9, 9), (10, 9)): {"owner": 1, "type": "Straße"},
        key((0, 0), (1, 0)): {"owner": 1, "type": "Dorf"},
        key((0, 0)): {"owner": 1, "type": "Stadt"},
    }
    assert drawing(island(buildings=buildings)) == drawing(island())
    assert len(drawing(island(robber=[9, 9])).pieces) == len(drawing(island()).pieces)


def test_chips_of_the_number_rolled_are_lit_but_not_the_robbers() -> None:
    assert len(filled(drawing(island(dice=[1, 3])), LIT)) == 1
    assert len(filled(drawing(island(dice=[1, 3], robber=[1, -1])), LIT)) == 0
    assert len(filled(drawing(island(dice=[6, 6])), LIT)) == 0


def test_buildings_since_the_last_roll_are_marked() -> None:
    road = ((0, 0), (1, 0))
    state = island(buildings={key(*road): {"owner": 1, "type": "Straße"}}, robber=[0, 1])
    built = event(1, "built", place=[{"x": x, "y": y} for x, y in road], player=1, type="Straße")
    moved = event(2, "robber", to={"x": 0, "y": 1}, player=1)
    ((_, *at),) = filled(drawing(state, events=[built]), LIT)
    assert at in [[x, y] for _, x, y in filled(drawing(state, events=[built]), PLAYERS["Rot"])]
    ((_, *field),) = filled(drawing(state, events=[built, moved]), LIT)
    assert field != at
    for events in (
        [built, event(2, "rolled", dice=[1, 1])],
        [event(1, "built", place="nowhere")],
        [event(1, "built", place=[{"x": 5, "y": 5}, {"x": 6, "y": 5}])],
        [event(1, "robber", to=None)],
    ):
        assert filled(drawing(state, events=events), LIT) == []


def test_harbours_have_their_rate() -> None:
    state = island()
    state["games"]["7"]["board"]["harbours"] = [
        {"at": [[1, 0], [2, 0]], "type": "Hafen"},
        {"at": [[-1, 0], [-2, 0]], "type": "Holz Hafen"},
        # No coast, and no edge at all.
        {"at": [[0, 0], [1, 0]], "type": "Erz Hafen"},
        {"at": [[5, 5], [9, 9]], "type": "Wolle Hafen"},
    ]
    seen = drawing(state)
    ((right, _),), ((left, _),) = places(seen, "3:1"), places(seen, "2:1")
    assert left < places(seen, "F4")[0][0] < places(seen, "F1")[0][0] < right


def test_the_ground_stays_one_fragment() -> None:
    before = drawing(island())
    after = drawing(island(robber=[0, 0], dice=[1, 3], turn=1, phase="Bauen"))
    ground = before.pieces[0].name
    assert after.pieces[0].name == ground
    assert len(before.fragments[ground]) > 1000


@EACH
@pytest.mark.parametrize("size", a_few([1, 3, 4, 9], [1, 4]))
def test_islands_of_any_size_and_any_number_of_buildings(size: int, shape: Shape) -> None:
    land = [(x, y) for x in range(-size, size + 1) for y in range(-size, size + 1) if abs(x + y) <= size]
    state = island()
    part = state["games"]["7"]
    part["board"]["fields"] = [{"at": list(place), "type": "Wald", "number": 6} for place in land]
    board = Board(dict.fromkeys(land, "Wald"), {}, {})
    edges = {spot((place, other)) for place in land for other in board.neighbours(place)}
    corners = {end for edge in edges for end in board.ends(edge)}
    part["buildings"] = {key(*edge): {"owner": 1, "type": "Straße"} for edge in edges}
    part["buildings"] |= {key(*corner): {"owner": 2, "type": "Dorf"} for corner in corners}
    seen = drawing(state, shape)
    assert f"{len(edges)} road" in said(seen)
    assert f"{len(corners)} villages" in said(seen)


# The players.


@EACH
@pytest.mark.parametrize("names", [["x" * 20] * 6, ["W" * 500, "", "<b>", "\u202eb", "🎲", "e\u0301" * 300]])
def test_names(names: list[str], shape: Shape) -> None:
    players = {str(number): {"name": name, "resources": 3} for number, name in enumerate(names)}
    seen = drawing(island(players=players, turn=0, phase="Würfeln"), shape)
    if names[0] == "x" * 20:
        assert texts(seen).count("x" * 20) == 7
    drawing({"players": {name: {} for name in names}}, shape)


# With any state.


@settings(deadline=None, max_examples=times(100))
@given(STATES, st.sampled_from(SHAPES))
def test_any_state_is_drawn_inside_of_its_sheet(state: dict[str, Any], shape: Shape) -> None:
    drawing(state, shape)


@settings(deadline=None, max_examples=times(50))
@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(SHAPES))
def test_no_name_harms(name: str, field: str, shape: Shape) -> None:
    state = island(players={"1": {"name": name, "colour": field, "status": name}}, turn=1, phase=field)
    state["games"]["7"]["board"]["fields"][0]["type"] = field
    assert not re.search(r"[\x00-\x1f]", "".join(texts(drawing(state, shape))))
