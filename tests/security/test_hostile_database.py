from __future__ import annotations

from pathlib import Path

import pytest
from command import ODD, kiebitz
from damaged_databases import ROWS, damaged_copy
from hostile_text import is_harmless
from strength import a_few
from tables import tried_commands

COMMANDS = tried_commands("test_hostile_database")


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("command", "kind"),
    a_few(
        [(command, kind) for command in COMMANDS for kind in ROWS],
        lambda row: (COMMANDS.index(row[0]) + [*ROWS].index(row[1])) % 36 == 0,
        lambda row: f"{row[1]}-{' '.join(row[0])}",
    ),
)
def test_defects_of_a_database_are_reported(kind: str, command: list[str], tmp_path: Path) -> None:
    name, *words = (ODD if word == "ODD" else word for word in command)
    done = kiebitz(name, damaged_copy(tmp_path, ROWS[kind]), *words)
    assert done.status in (0, 1, 3)
    if done.status == 1:
        sentences = "damaged", "there is no", "there are none", "rebuild the session"
        assert any(words in done.err for words in sentences), done.err
    assert "fault of Kiebitz" not in done.err
    assert is_harmless(done.out)
    assert is_harmless(done.err)
