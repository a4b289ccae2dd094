from __future__ import annotations

import io
from typing import Any

import pytest
from catan_states import STATES, island, key
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from strength import times
from terminal_scenes import drawn

from kiebitz.cli.render.text import draw
from kiebitz.cli.render.text.catan_panel import FIELDS, PLAYERS, SEA
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.protocols.catan.board import Board, spot


def picture(state: dict[str, Any], **how: Any) -> str:
    return drawn(state, protocol="catan", **how)


def board_of(state: dict[str, Any]) -> Board:
    fields = state["games"]["7"]["board"]["fields"]
    return Board({tuple(field["at"]): field["type"] for field in fields}, {}, {})


def cells(text: str, *wanted: str) -> list[tuple[float, int]]:
    return [
        (column + (len(word) - 1) / 2, row)
        for row, line in enumerate(text.splitlines())
        for word in wanted
        for column in range(len(line))
        if line.startswith(word, column)
    ]


def middle(points: list[tuple[float, int]]) -> tuple[float, float]:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


# The board.


@pytest.mark.parametrize("slant", [1, -1])
@pytest.mark.parametrize("width", [62, 80, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_fields_lie_as_on_the_board(slant: int, width: int, encoding: str) -> None:
    state = island(slant)
    board = board_of(state)
    seen = picture(state, width=width, encoding=encoding)
    at = {place: cells(seen, field)[0] for place, field in board.fields.items()}
    x0, y0 = at[0, 0]
    half = at[1, 0][0] - x0
    pitch = y0 - at[0, 1][1]
    for place, (x, y) in at.items():
        across, up = board.centre(place)
        assert (x - x0, y0 - y) == (across * half / 2, up * pitch)
        number = board.fields[place].replace("F", "")
        assert any(abs(x - column) <= 1 for column, row in cells(seen, str(2 + int(number))) if row == y + 1)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("slant", [1, -1])
@pytest.mark.parametrize("width", [62, 80, 120])
def test_buildings_are_between_their_fields(slant: int, width: int) -> None:
    board = board_of(island(slant))
    for other in board.neighbours((0, 0)):
        for corner in board.ends(spot([(0, 0), other])):
            buildings = {
                key(*corner): {"owner": 1, "type": "Stadt"},
                key((0, 0), other): {"owner": 2, "type": "Straße"},
            }
            seen = picture(island(slant, buildings=buildings), width=width)
            fields = [cells(seen, board.fields[place])[0] for place in corner]
            x, y = middle(fields)
            ((column, row),) = cells(seen, "[A]")
            # Words are a little above the middle of their fields.
            assert abs(column - x) <= 1.5
            assert abs(row - y) <= 1
            road = [cell for cell in cells(seen, "b") if cell[0] < cells(seen, "Bert")[0][0] - 10]
            x, y = middle([cells(seen, board.fields[place])[0] for place in ((0, 0), other)])
            assert abs(middle(road)[0] - x) <= 1.5
            assert abs(middle(road)[1] - y) <= 1


def styled(state: dict[str, Any], colours: Any, width: int = 80) -> list[list[tuple[str, str, str]]]:
    console = Console(file=io.StringIO(), width=width, height=60, force_terminal=True, color_system=colours)
    rows: list[list[tuple[str, str, str]]] = []
    for line in console.render_lines(draw("catan", Scene(state)), pad=False):
        rows.append([])
        for text, style, _ in line:
            ink, ground = (style.color, style.bgcolor) if style is not None else (None, None)
            rows[-1] += [(c, ink.name if ink else "", ground.name if ground else "") for c in text]
    return rows


@pytest.mark.parametrize("colours", ["truecolor", "256", "standard"])
def test_board_in_colour(colours: str) -> None:
    road, house = key((0, 0), (1, 0)), key((0, 0), (1, 0), (0, 1))
    state = island(buildings={road: {"owner": 2, "type": "Straße"}, house: {"owner": 1, "type": "Dorf"}})
    fields = state["games"]["7"]["board"]["fields"]
    fields[0]["type"], fields[1]["type"] = "Wald", "Hügelland"
    rows = styled(state, colours)
    text = ["".join(character for character, *_ in row) for row in rows]
    ((wood, y),) = cells("\n".join(text), "Wald")
    ((clay, _),) = cells("\n".join(text), "Hügel")
    assert {rows[y][int(wood)][2], rows[y][int(clay)][2]} == {FIELDS["Wald"], FIELDS["Hügelland"]}
    assert rows[0][0][2] == SEA
    # Between the two is the road, and the village at its upper end.
    assert any(rows[y][x][2] == PLAYERS["Blau"] for x in range(int(wood), int(clay)))
    assert any(
        ("A", PLAYERS["Rot"]) == (rows[row][x][0], rows[row][x][2])
        for row in range(y - 3, y)
        for x in range(int(wood), int(clay))
    )


def test_wider_terminals_have_larger_fields() -> None:
    heights = [
        len([line for line in picture(island(), width=width).splitlines() if set(line) & set("╭│╯")])
        for width in (62, 80, 120)
    ]
    assert heights == sorted(heights)
    assert heights[0] < heights[-1]


def test_standard_board_fits_a_terminal_of_80_by_24() -> None:
    fields = [
        {"at": [x, y], "type": "Wald", "number": 6}
        for x in range(-2, 3)
        for y in range(-2, 3)
        if abs(x + y) <= 2
    ]
    names = ["Anna", "Bert", "Carl", "Dora"]
    about = {"resources": 7, "cards": 2, "points": 3, "knights": 1, "status": "Karten wegen Räuber abgeben"}
    state = island(players={str(number): {"name": name, **about} for number, name in enumerate(names)})
    state["games"]["7"]["board"]["fields"] = fields
    assert len(picture(state).splitlines()) <= 20


# With any state.


@settings(deadline=None, max_examples=times(150))
@given(STATES, st.integers(20, 200), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_any_state_is_drawn_within_its_width(state: dict[str, Any], width: int, encoding: str) -> None:
    seen = picture(state, width=width, encoding=encoding)
    assert all(cell_len(line) <= width for line in seen.split("\n"))
    assert all(character.isprintable() or character == "\n" for character in seen)


@settings(deadline=None, max_examples=times(50))
@given(STATES, st.integers(20, 200), st.sampled_from(["truecolor", "256", "standard"]))
def test_any_state_is_drawn_in_colour(state: dict[str, Any], width: int, colours: str) -> None:
    for row in styled(state, colours, width):
        text = "".join(character for character, *_ in row)
        assert cell_len(text) <= width
        assert text.isprintable()
