"""Pictures of states in tests/data/pictures.txt: on a terminal, and as SVG with its texts and its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from conversation_files import Block, blocks, check_below
from game_scenes import scene
from snapshots import DATA
from svg_properties import check as check_drawing
from svg_properties import texts
from terminal_scenes import drawn

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.svg_canvas import Drawing
from kiebitz.dissectors.game.view import Scene


def marks(made: Drawing) -> Iterator[str]:
    """Yield the marks of a drawing's pieces: colours of alarm and turn, hidden values, a tile just drawn."""
    for piece in made.pieces:
        markup = made.fragments[piece.name]
        found = {*re.findall(r"k-s-(?:turn|alarm)|k-turn|dasharray|#00a3ff", markup)}
        yield from (f"{mark}: {' '.join(re.findall('>([^<>]+)</text>', markup))}" for mark in sorted(found))


def picture(block: Block) -> list[str]:
    game, *options = block.steps[0].split(" ")
    state, events = scene(block.steps)
    how: dict[str, Any] = {name: value for name, _, value in (option.partition("=") for option in options)}
    if "shape" in how:
        made = draw(game, Scene(state, events, sorted(state.get("players", {}))), how["shape"])
        check_drawing(made)
        return [*made.words, f"texts: {' | '.join(texts(made))}", f"marks: {' | '.join(marks(made))}"]
    seen = drawn(
        state, events, protocol=game, width=int(how.get("width", 80)), encoding=how.get("encoding", "utf-8")
    )
    return [line.rstrip() for line in seen.removesuffix("\n").split("\n")]


@pytest.mark.parametrize("block", blocks(DATA / "pictures.txt").values(), ids=lambda block: block.title)
def test_a_state_looks_so(block: Block) -> None:
    check_below(block, picture(block))
