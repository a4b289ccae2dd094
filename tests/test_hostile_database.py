"""A database that somebody has spoilt: what is in its schema is not run, and what is wrong is said."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from command import ODD, TINY, kiebitz
from test_hostile_text import is_harmless

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

DEEP = "[" * 100_000 + "]" * 100_000
HUGE = '{"dice":' + "9" * 1_000_000 + "}"
SCHEMAS = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM messages; END",
    "a view for a table": "ALTER TABLE games RENAME TO g; CREATE VIEW games AS SELECT * FROM g",
    "a table that is computed": (
        "ALTER TABLE messages ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(1e9))) VIRTUAL"
    ),
    "a virtual table": "DROP TABLE games; CREATE VIRTUAL TABLE games USING fts5(id, label)",
    "a column less": "ALTER TABLE streams DROP COLUMN transport",
}
"""What Kiebitz has not put into a schema: nothing is read from it."""

ROWS = {
    "text for a number": "UPDATE messages SET ts_ns = 'x', offset = 'y' WHERE id = 3",
    "no number": "UPDATE events SET ts_ns = NULL WHERE id = 3",
    "text for a time": "UPDATE sessions SET started_ns = 'x'",
    "bytes for a text": "UPDATE streams SET client = x'ff00', protocol = x'00'",
    "no UTF-8": "UPDATE messages SET name = CAST(x'ff1b5b324a' AS TEXT)",
    "no JSON": "UPDATE messages SET fields = '{' WHERE id = 5; UPDATE events SET data = 'x', changes = 'x'",
    "another JSON": "UPDATE messages SET fields = '[]'; UPDATE events SET data = '3', changes = '{\"a\":1}'",
    "deep JSON": f"UPDATE messages SET fields = '{DEEP}'; UPDATE events SET data = '{DEEP}'",
    "a long number": f"UPDATE messages SET fields = '{HUGE}'; UPDATE events SET data = '{HUGE}'",
    "a state that is none": f"UPDATE snapshots SET state = '{DEEP}'; DELETE FROM events WHERE seq < 300",
    "a direction that is none": "UPDATE messages SET direction = 'x'; UPDATE chunks SET direction = 'x'",
    "no table": "DELETE FROM tables",
    "no streams": "DELETE FROM streams",
    "huge numbers": "UPDATE messages SET offset = 9223372036854775807, length = -1, ts_ns = -(1 << 62)",
    "a control character": "UPDATE sessions SET name = char(27) || '[2J', source = char(155) || '5m'",
    "SQL for a name": "UPDATE sessions SET name = '''); DROP TABLE messages; --'",
}
"""What Kiebitz never writes."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "game.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    return path


def spoilt(sound: Path, folder: Path, statements: str) -> str:
    path = shutil.copy(sound, folder / "spoilt.db")
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.commit()
    connection.close()
    return str(path)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_in_a_schema_is_not_run(kind: str, sound: Path, tmp_path: Path) -> None:
    path = spoilt(sound, tmp_path, SCHEMAS[kind])
    for command in [["events", path], ["import", ODD, "-w", path], ["redissect", path]]:
        done = kiebitz(*command)
        assert (done.status, done.out) == (1, "")
        assert "no database that Kiebitz has made" in done.err or "no session database" in done.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ROWS)
def test_what_is_wrong_in_a_database_is_said(
    kind: str, command: list[str], sound: Path, tmp_path: Path
) -> None:
    done = kiebitz(command[0], spoilt(sound, tmp_path, ROWS[kind]), *command[1:])
    assert done.status in (0, 1, 2, 3)
    assert "fault of Kiebitz" not in done.err
    assert is_harmless(done.out)
    assert is_harmless(done.err)
