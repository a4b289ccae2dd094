from __future__ import annotations

import io
import re
from typing import Any

import pytest
from catan_states import NO_BOARDS, STATES, island, key
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


def test_village_is_a_letter_and_a_city_has_walls() -> None:
    corner = key((0, 0), (1, 0), (0, 1))
    village = picture(island(buildings={corner: {"owner": 1, "type": "Dorf"}}))
    city = picture(island(buildings={corner: {"owner": 1, "type": "Stadt"}}))
    (place,) = cells(city, "[A]")
    assert place in cells(village, "A")
    assert "[A]" not in village


def test_robber_is_above_the_name_of_its_field() -> None:
    seen = picture(island(robber=[0, 1]))
    ((x, y),) = cells(seen, "▟█▙")
    assert (x, y + 1) in [(column + 0.5, row) for column, row in cells(seen, "F6")]
    assert cells(picture(island(robber=[9, 9])), "▟█▙") == []


def test_harbours_lie_in_the_sea_next_to_their_fields() -> None:
    state = island()
    state["games"]["7"]["board"]["harbours"] = [
        {"at": [[1, 0], [2, 0]], "type": "Hafen"},
        {"at": [[-1, 0], [-2, 0]], "type": "Holz Hafen"},
        {"at": [[0, 1], [0, 2]], "type": "Getreide Hafen"},
        # No coast, and no edge at all.
        {"at": [[0, 0], [1, 0]], "type": "Erz Hafen"},
        {"at": [[5, 5], [9, 9]], "type": "Wolle Hafen"},
    ]
    seen = picture(state)
    (right, row), (left, _), (_, top) = (min(cells(seen, word)) for word in ("3:1", "Holz", "Getr"))
    assert right > cells(seen, "F1")[0][0]
    assert abs(row - cells(seen, "F1")[0][1]) <= 1
    assert left < cells(seen, "F4")[0][0]
    assert top < cells(seen, "F6")[0][1]
    assert len(cells(seen, "•")) == 6
    # The others are only in the head of the players' hands.
    assert len(cells(seen, "Erz")) == len(cells(seen, "Wol")) == 1


def test_numbers_that_come_often_and_the_number_rolled_are_out() -> None:
    seen = picture(island(dice=[1, 3]))
    assert "*6*" in seen
    assert "*8*" in seen
    assert ">4<" in seen
    assert ">4<" not in picture(island(dice=[1, 3], robber=[1, -1]))


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


def test_ascii_terminal() -> None:
    state = island(robber=[0, 0], phase="Würfeln", turn=1)
    state["games"]["7"]["board"]["fields"][0]["type"] = "Hügelland"
    seen = picture(state, encoding="ascii")
    assert seen.isascii()
    assert "/#\\" in seen
    assert "Huegel" in seen
    assert "Anna: Wuerfeln" in seen
    assert ">  A  Anna" in seen


def test_wider_terminals_have_larger_fields() -> None:
    heights = [
        len([line for line in picture(island(), width=width).splitlines() if set(line) & set("╭│╯")])
        for width in (62, 80, 120)
    ]
    assert heights == sorted(heights)
    assert heights[0] < heights[-1]


def test_narrow_pictures_have_the_players_below_or_alone() -> None:
    state = island()
    below = picture(state, width=40)
    assert cells(below, "Anna")[0][1] > cells(below, "F0")[0][1]
    alone = picture(state, width=20)
    assert "Anna" in alone
    assert "F0" not in alone


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


@pytest.mark.parametrize(("board", "told"), NO_BOARDS)
def test_no_board(board: dict[str, Any] | None, told: str) -> None:
    state = island()
    state["games"]["7"]["board"] = board
    if board is None:
        del state["games"]["7"]["board"]
    assert told in picture(state)


# The players.


def test_hidden_counts_are_marked() -> None:
    resources = {"Holz": 2, "Lehm": [0, 1], "Wolle": 0, "Getreide": -3}
    state = island(private={"Anna": {"resources": resources, "cards": {"Ritter": 1, "Siegpunkt": [0, 2]}}})
    players = state["games"]["7"]["players"]
    players["1"] |= {"resources": 3}
    players["2"] |= {"resources": 7, "cards": 2}
    seen = picture(state)
    assert re.search(r" 2 +0-1 +0 +-3 +\? +3\n", seen)
    assert re.search(r" \? +\? +\? +\? +\? +7\n", seen)
    assert "holds 1 Ritter and 0-2" in seen
    assert "2 hidden cards" in seen


def test_statements_about_players() -> None:
    state = island(turn=1, phase="Bauen", longest_road=1, largest_army=2, winner=2)
    players = state["games"]["7"]["players"]
    players["1"] |= {"status": "Bauen", "knights": 1, "points": 1}
    players["2"] |= {"status": "Verbindung verloren", "knights": 3, "points": 10}
    seen = picture(state, width=120)
    assert "Bert has won" in seen
    assert "★  B  Bert" in seen
    assert "▶" not in seen
    assert "longest road, 1 knight\n" in seen
    assert "Verbindung verloren, largest army: 3 knights\n" in seen
    assert "1 point\n" in seen
    del state["games"]["7"]["winner"]
    assert "▶  A  Anna" in picture(state, width=120)
    assert "10 points\n" in seen


def test_letters_distinguish_players() -> None:
    players = {str(number): {"name": name} for number, name in enumerate(["Anna", "Adam", "émile"])}
    seen = picture(island(players=players))
    assert all(line in seen for line in ("A  Anna", "B  Adam", "C  émile"))


def test_trades_and_bank() -> None:
    trade = {"player": 1, "offer": {"Holz": 1, "Lehm": 0}, "demand": {"Erz": 2}, "accepted": [2]}
    state = island(trades={"3": trade}, bank={"Lehm": [15, 16], "Holz": 17, "Wolle": 0})
    assert "Anna offers 1 Holz for 2 Erz; accepted by Bert\n" in picture(state)
    assert "bank: 17 Holz, 15-16 Lehm, 0 Wolle, ? Getreide, ? Erz\n" in picture(state)


def test_lobby() -> None:
    state = {
        "server": {"version": "Klo\x1b[2J"},
        "players": {
            "Anna": {"id": 4, "colour": "Rot", "status": "Wartet auf Spielbeginn"},
            "player 11": {"id": 11, "status": "Spiel starten"},
        },
    }
    seen = picture(state)
    assert r"Klo\x1b[2J" in seen
    assert "Rot, ready\n" in seen
    assert "player 11" in seen
    assert "no colour yet, not ready yet\n" in seen
    assert picture({}) == "no players yet\n"
    assert "and 3 more players" in picture(
        {"players": {f"player {number}": {"id": number} for number in range(9)}}
    )


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
