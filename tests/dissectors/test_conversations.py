"""Conversations in tests/data/conversations: events, diagnostics, games and state after each step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from conversation import Conversation
from conversation_files import Block, check, conversations, file_dissector, played
from message_cases import DISSECTORS
from snapshots import DATA
from strength import every

from kiebitz.dissectors.dissector import Dissector

PORTS = {"maexchen": (9000,), "okey": (8090,), "schafkopf": (35555,), "cgml": (7002, 7001)}
BLOCKS = [block for path in sorted(DATA.glob("conversations/*.txt")) for block in conversations(path)]
SLIPS = [block for block in BLOCKS if block.title.startswith(("c2s ", "s2c "))]
"""Conversations with a slip in one message, of which `make test` has one in three."""


def dissector_for(block: Block) -> Dissector:
    first = block.steps[0]
    if first.startswith("by "):
        return file_dissector(block.path, first.removeprefix("by "))
    return next(dissector for dissector in DISSECTORS if dissector.protocol == block.path.stem)


def label(block: Block) -> str:
    return f"{block.path.stem}: {block.title}"


@pytest.mark.parametrize(
    "block",
    [
        *every(1, (block for block in BLOCKS if block not in SLIPS), label),
        *every(3, SLIPS, label),
    ],
)
def test_a_conversation_has_these_findings(block: Block) -> None:
    check(block, played(block, conversation_of(block.path, dissector_for(block))))


@cache
def conversation_of(path: Path, dissector: Dissector) -> Callable[[], Conversation]:
    """Return a function that begins a conversation of a file."""
    return partial(Conversation, dissector, *PORTS.get(path.stem, (4711,)))
