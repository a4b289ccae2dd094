from __future__ import annotations

from pathlib import Path

import pytest
from command import ODD, TINY, kiebitz
from damaged_databases import ROWS, damaged_copy
from hostile_text import is_harmless
from strength import a_few

COMMANDS = [
    *(["sessions"], ["streams"], ["games"], ["messages"], ["messages", "--json"], ["events"], ["check"]),
    *(
        ["state"],
        ["state", "--json"],
        ["state", "--at", "1s"],
        ["replay", "--speed", "100000"],
        ["follow", "1"],
    ),
    *(["events", "--as", "alice"], ["messages", "-Y", 'maexchen.name == "alice"'], ["diff", ODD]),
    *(["whatif", "--drop", "#3"], ["export", "-T", "jsonl"], ["export", "-T", "csv"], ["redissect"]),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "game.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    return path


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("command", "kind"),
    a_few(
        [(command, kind) for command in COMMANDS for kind in ROWS],
        lambda row: (COMMANDS.index(row[0]) + [*ROWS].index(row[1])) % 36 == 0,
        lambda row: f"{row[1]}-{' '.join(row[0])}",
    ),
)
def test_defects_of_a_database_are_reported(
    kind: str, command: list[str], sound: Path, tmp_path: Path
) -> None:
    done = kiebitz(command[0], damaged_copy(sound, tmp_path, ROWS[kind]), *command[1:])
    assert done.status in (0, 1, 3)
    if done.status == 1:
        sentences = "damaged", "there is no", "there are none", "rebuild the session"
        assert any(words in done.err for words in sentences), done.err
    assert "fault of Kiebitz" not in done.err
    assert is_harmless(done.out)
    assert is_harmless(done.err)
