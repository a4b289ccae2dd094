"""Drafts of samples of courses' protocols, as texts; those of recorded games are transcripts of `draft`."""

from __future__ import annotations

import pytest
from conversation_files import Block, blocks, check
from courses import course
from snapshots import DATA

from kiebitz.dissectors.drafting.draft import draft
from kiebitz.dissectors.model import port_of

BLOCKS = blocks(DATA / "drafts.txt")


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_draft_of_a_sample(block: Block) -> None:
    conversations = course(block.title)
    drafted = draft(conversations, [port_of(conversations[0].server)], block.title, block.title)
    _, _, text = drafted.text.partition("\nframing = ")
    check(block, f"not written: {drafted.seen}" if drafted.seen else f"framing = {text}".rstrip())
