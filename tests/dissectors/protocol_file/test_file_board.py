"""The picture of a table by `[board]`: tokens, grids, hands, dice, piles, scores and text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conversation_files import Block, blocks, check_below
from file_conversations import dissector_of
from hypothesis import given
from hypothesis import strategies as st
from snapshots import DATA

from kiebitz.dissectors.game.view import Element, Grid, Hand, Line, Name, Scene, Seat, Span, Token, View
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocol_file.dissector import FileDissector

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
discard = "a"
dice = "a"
round = "a"
"hands.{a}" = "a"
"energy.{a}" = "a"
"players.{a}.points" = "a"
"""
BOARD = """
[board]
title = "round {round}"
text = ["{turn} plays, {round} of 3"]
scores = "players.{player}.points"
unit = "points"
figures = { energy = "energy.{player}" }
hand = "hands.{player}"
dice = "dice"
piles = { "draw pile" = "draw", "discard" = "discard" }
"""


def element(part: Element) -> str:
    match part:
        case Span():
            return f"{part.text}/{part.tone}" if part.tone else part.text
        case Name():
            return f"@{part.name}"
        case Token():
            return f"{part.words}@{part.owner}" if part.owner else part.words
        case tuple():
            return f"[{', '.join(map(element, part))}]"
    return str(part)


def written(line: Line) -> str:
    return "".join(map(element, line))


def held(hand: Hand) -> str:
    hidden = [] if hand.hidden == 0 else [f"{hand.hidden} hidden"]
    return ", ".join([*(element(piece) for piece in hand.pieces if piece), *hidden])


def seated(seat: Seat) -> str:
    figures = [f"{figure.words} ({figure.brief})" for figure in seat.figures]
    hand = [f"hand: {held(seat.hand)}"] if seat.hand is not None else []
    return "; ".join([f"seat {seat.name} {seat.state}".rstrip(), *figures, *map(element, seat.marks), *hand])


def gridded(grid: Grid) -> Iterator[str]:
    if grid.owner:
        yield f"board of {grid.owner}:"
    for row in grid.rows:
        yield " ".join(element(token) if token is not None else "." for token in row)
    yield from (f"line {edge.side} {edge.x},{edge.y} {edge.owner}".rstrip() for edge in grid.edges)
    if grid.fresh is not None:
        yield f"last move at {grid.fresh[0]},{grid.fresh[1]}"
    if grid.is_hex:
        yield "hexagons"


def shown(view: View) -> Iterator[str]:
    """Yield what a view contains, a line for each part."""
    for name, texts in {"title": view.title, "idle": [view.idle], "unknown": [view.unknown]}.items():
        yield from (f"{name}: {text}" for text in texts if text)
    yield from (f"story: {written(line)}" for line in view.story)
    yield from map(seated, view.seats)
    if view.dice is not None:
        yield f"dice {view.dice.roll}: {', '.join(map(str, view.dice.faces))}".rstrip()
    yield from (f"pile {written(pile.label)}: {pile.words}" for pile in view.piles)
    for grid in view.grid.all_boards if view.grid is not None else ():
        yield from gridded(grid)


@pytest.mark.parametrize(
    "block", blocks(DATA / "protocol_files" / "boards.txt").values(), ids=lambda block: block.title
)
def test_a_table_looks_so(block: Block) -> None:
    text, state = HEAD, {}
    events: list[Event] = []
    for step in block.steps:
        word, _, rest = step.partition(" ")
        if word == "state":
            state = json.loads(rest)
        elif word == "event":
            game, _, change = rest.partition(" ")
            path, _, value = change.partition(" = ")
            changes: list[Any] = [(path.split("."), json.loads(value))] if path else []
            number, game_id = len(events) + 1, None if game == "-" else int(game)
            events.append(Event(number, 1, game_id, number, 0, "set", None, {"a": ""}, changes))
        else:
            text += BOARD if step == "usual" else f"{step}\n"
    presentation = dissector_of(text).presentation
    view = presentation.view(Scene(state, events, ("alice", "bob")))
    assert view is not None
    scores = presentation.scores(state)
    lines = [*shown(view), *(f"score of {name}: {score}" for name, score in scores.items())]
    check_below(block, lines)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**6)
    | st.text(max_size=3)
    | st.sampled_from(["alice", "1,1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["alice", "x", "y", "0,0", "7", "kind"]), inner, max_size=3)
    ),
    max_leaves=10,
)
KEYS = ["players", "private", "games", "turn", "map", "hands", "energy", "dice", "draw", "round"]
GRIDS = (
    'cells = "map"\ncell = "kind"\ntokens = "energy"\n',
    'cells = "map"\ncolumns = true\nwidth = 3\n',
    'cells = "map"\nwidth = "round"\nheight = "dice"\nshape = "hex"\n',
    'width = "round"\nheight = 9\nedges = { above = "map", left = "dice" }\n',
)
FILES: list[FileDissector] = [
    dissector_of(HEAD),
    *(dissector_of(f"{HEAD}{BOARD}[board.grid]\n{grid}") for grid in GRIDS),
]


@given(st.sampled_from(FILES), st.dictionaries(st.sampled_from(KEYS), JSON))
def test_no_state_raises(dissector: FileDissector, state: dict[str, Any]) -> None:
    assert dissector.presentation.view(Scene(state)) is not None
    dissector.presentation.scores(state)
