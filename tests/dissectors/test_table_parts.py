"""A game table's parts work with its context, and do not know the table."""

from __future__ import annotations

import re

import pytest
from command import ROOT

from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.registry import BUILT_IN

PROTOCOLS = ROOT / "dissectors" / "protocols"


@pytest.mark.parametrize("protocol", [dissector.protocol for dissector in BUILT_IN])
def test_no_part_imports_the_table(protocol: str) -> None:
    pages = {
        page.name: page.read_text()
        for page in (PROTOCOLS / protocol).iterdir()
        if page.is_file() and page.suffix in (".py", ".toml")
    }
    knowing = {name for name, text in pages.items() if re.search(rf"\b{protocol}\.table\b", text)}
    assert knowing == {f"{protocol}.toml"}


def test_each_table_derives_from_game_table_and_is_no_context() -> None:
    for dissector in BUILT_IN:
        table = dissector.table
        assert isinstance(table, type)
        assert table.__bases__ == (GameTable,)
        assert not issubclass(table, GameContext)
