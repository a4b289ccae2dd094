"""Commands and their whole output, in tests/data/commands."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from conversation_files import Block, blocks, check
from snapshots import DATA
from strength import a_few
from transcripts import played

BLOCKS = [block for path in sorted(DATA.glob("commands/*.txt")) for block in blocks(path).values()]


def is_first(block: Block) -> bool:
    """True for all blocks but those for the full run."""
    return not re.search(r", (?:[2-9]|\d\d+|full)$", block.title)


@pytest.mark.usefixtures("protocol_files_forgotten")
@pytest.mark.parametrize("block", a_few(BLOCKS, is_first, lambda block: f"{block.path.stem}: {block.title}"))
def test_commands_have_this_output(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "mitmproxy" in block.title:
        # By its libraries.
        warnings.simplefilter("ignore", DeprecationWarning)
    check(block, played(block, tmp_path))
