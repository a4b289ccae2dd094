"""Pictures of the boards of protocol files: any state can be drawn on a terminal and as SVG."""

from __future__ import annotations

from functools import partial
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

from file_conversations import dissector_of
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.svg.table import draw_view
from kiebitz.cli.render.text.picture import Picture
from kiebitz.cli.render.text.table import draw_view as draw_text
from kiebitz.dissectors.game.view import Scene

HEAD = """
protocol = "test"
[messages]
SET = "s: a=text"
[events.set]
on = "SET"
turn = true
[events.set.put]
map = "a"
draw = "a"
dice = "a"
round = "a"
"lines.{a}" = "a"
"hands.{a}" = "a"
"robots.{a}" = "a"
"energy.{a}" = "a"
"players.{a}.points" = "a"
"""
PARTS = {
    "hand": 'hand = "hands.{player}"',
    "dice": 'dice = "dice"',
    "piles": 'piles = { deck = "draw" }',
    "scores": 'scores = "players.{player}.points"\nfigures = { energy = "energy.{player}" }',
    "text": 'title = "round {round}"\ntext = ["round {round}", "{turn} plays"]',
    "grid": '[board.grid]\ntokens = "robots"\nsymbols = { empty = "" }',
}
GRIDS = (
    'cells = "map"',
    'cells = "hands.{player}"',
    'cells = "map"\nshape = "hex"\nwidth = "round"',
    'cells = "map"\nedges = { above = "lines", left = "lines" }',
)
NAMES = ("alice", "bob", "Jörg\x1b[31m", "<b>", "x" * 90)
PIECES = st.sampled_from(["A", "red 7", "", "<&>", "\x00", 5, -1, None, True, "wide 牌"])
STATES = st.fixed_dictionaries(
    {},
    optional={
        "players": st.dictionaries(
            st.sampled_from(NAMES), st.fixed_dictionaries({}, optional={"points": PIECES, "colour": PIECES})
        ),
        "hands": st.dictionaries(st.sampled_from(NAMES), st.lists(PIECES, max_size=20) | st.integers(0, 40)),
        "energy": st.dictionaries(st.sampled_from(NAMES), PIECES),
        "robots": st.dictionaries(
            st.sampled_from(NAMES), st.fixed_dictionaries({"x": st.integers(-1, 4), "y": st.integers(-1, 4)})
        ),
        "map": st.lists(st.lists(PIECES, max_size=5), max_size=4) | st.lists(PIECES, max_size=9),
        "dice": st.lists(PIECES, max_size=6) | PIECES,
        "draw": st.lists(PIECES, max_size=6) | st.integers(0, 99),
        "turn": st.sampled_from(NAMES),
        "round": PIECES,
        "lines": st.dictionaries(st.sampled_from(["0,0", "1,0", "0,1", "2,2", "4,4", "x"]), PIECES),
    },
)


@given(
    STATES,
    st.lists(st.sampled_from([*PARTS]), unique=True),
    st.sampled_from(GRIDS),
    st.sampled_from([40, 80, 130]),
)
def test_any_state_can_be_drawn(state: dict[str, Any], parts: list[str], grid: str, width: int) -> None:
    board = "[board]\n" + "\n".join(PARTS[part] for part in PARTS if part in parts) if parts else ""
    if "grid" in parts:
        board += f"\n{grid}"
    view = dissector_of(f"{HEAD}{board}\n").presentation.view(Scene(state, (), NAMES))
    assert view is not None
    console = Console(file=StringIO(), width=width)
    console.print(Picture(view.names, partial(draw_text, view)))
    for shape in ("wide", "tall"):
        sheet = Sheet(shape)
        draw_view(view, sheet)
        sheet.drawing()


def drawn(grid: str, encoding: str = "utf-8") -> str:
    state = {
        "players": {"ann": {}, "bob": {}},
        "round": 3,
        "map": {"0,0": "ann", "1,1": "bob"},
        "lines": {"0,0": "ann", "2,1": True, "9,9": True},
    }
    text = f'{HEAD}[board.grid]\ncells = "map"\nsymbols = {{ ann = "X", bob = "O" }}\n{grid}\n'
    view = dissector_of(text).presentation.view(Scene(state, (), ["ann", "bob"]))
    assert view is not None
    file = TextIOWrapper(BytesIO(), encoding)
    Console(file=file, width=60).print(Picture(view.names, partial(draw_text, view)))
    file.seek(0)
    return "\n".join(line.partition("  ann")[0].partition("  bob")[0].rstrip() for line in file)


SQUARES = """\
┌━━━┬───┬───┐
┃ X │   │   │
├───┼───┼━━━┤
│   │ O ┃   │
├───┼───┼───┤
│   │   │   │
└───┴───┴───┘"""
HEXES = """\
┌───┬───┬───┐
│ X │   │   │
└─┬─┴─┬─┴─┬─┴─┐
  │   │ O │   │
┌─┴─┬─┴─┬─┴─┬─┘
│   │   │   │
└───┴───┴───┘"""
ASCII = SQUARES.translate(str.maketrans("┌┬┐├┼┤└┴┘─│━┃", "+++++++++-|=#"))


def test_lines_between_cells_are_heavy() -> None:
    grid = 'width = "round"\nheight = 3\nedges = { above = "lines", left = "lines" }'
    assert drawn(grid).strip() == SQUARES
    assert drawn(grid, "ascii").strip() == ASCII


def test_the_second_row_of_hexagons_is_shifted() -> None:
    assert drawn('width = 3\nheight = "round"\nshape = "hex"').strip() == HEXES
