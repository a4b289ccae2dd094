"""Pictures of the boards of protocol files: any state can be drawn on a terminal and as SVG."""

from __future__ import annotations

from io import StringIO
from typing import Any

from file_conversations import dissector_of
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.svg.table import draw_view
from kiebitz.cli.render.text.picture import ViewPicture
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
"hands.{a}" = "a"
"robots.{a}" = "a"
"energy.{a}" = "a"
"""
PARTS = {
    "hand": 'hand = "hands.{player}"',
    "dice": 'dice = "dice"',
    "piles": 'piles = { deck = "draw" }',
    "scores": 'scores = "players.{player}.points"\nfigures = { energy = "energy.{player}" }',
    "text": 'title = "round {round}"\ntext = ["round {round}", "{turn} plays"]',
    "grid": '[board.grid]\ncells = "map"\ntokens = "robots"\nsymbols = { empty = "" }',
}
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
    },
)


@given(STATES, st.lists(st.sampled_from([*PARTS]), unique=True), st.sampled_from([40, 80, 130]))
def test_any_state_can_be_drawn(state: dict[str, Any], parts: list[str], width: int) -> None:
    board = "[board]\n" + "\n".join(PARTS[part] for part in PARTS if part in parts) if parts else ""
    view = dissector_of(f"{HEAD}{board}\n").presentation.view(Scene(state, (), NAMES))
    assert view is not None
    console = Console(file=StringIO(), width=width)
    console.print(ViewPicture(view))
    for shape in ("wide", "tall"):
        sheet = Sheet(shape)
        draw_view(view, sheet)
        sheet.drawing()
