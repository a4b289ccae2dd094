"""Games of Catan by script: events, diagnostics, states and games after each step."""

from __future__ import annotations

import re

import pytest
from catan_scripts import played
from conversation_files import Block, blocks, check
from snapshots import DATA

BLOCKS = blocks(DATA / "catan_games.txt")
ON_MAPS = [
    block
    for block in BLOCKS.values()
    if not any(step.startswith(("events", "state")) or '"Ort"' in step for step in block.steps)
]
"""Those whose places are all on the map, so that they can be played upside down."""


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_game_has_these_findings(block: Block) -> None:
    check(block, played(block))


def without_places(text: str) -> list[str]:
    return [re.sub(r"-?\d+,-?\d+", "…", line) for line in text.splitlines() if re.match(" {4}[a-z]", line)]


@pytest.mark.full
@pytest.mark.parametrize("block", ON_MAPS, ids=lambda block: block.title)
def test_a_game_on_the_map_upside_down_has_the_same_findings(block: Block) -> None:
    assert without_places(played(block, mirrored=True)) == without_places(block.text)


def test_words_without_umlauts_mean_the_same() -> None:
    block = BLOCKS["everything happens once"]
    plain = block._replace(text=block.text.replace("costs=after", "costs=after ascii=yes"))
    same = [line for line in played(plain).splitlines() if "x: " in line]
    assert same == [line for line in block.text.splitlines() if "x: " in line]
