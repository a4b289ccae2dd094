"""A database whose rows somebody has spoilt: what is wrong in it is said. Schemas: test_hostile_schema.py."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from command import ODD, TINY, kiebitz
from strength import a_few
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


def _json(table: str, column: str, value: object) -> str:
    return f"UPDATE {table} SET {column} = '{json.dumps(value)}'"


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
    "no address": "UPDATE streams SET client = 'alice'",
    "no port": "UPDATE streams SET server = '127.0.0.1:x'; UPDATE tables SET server = '127.0.0.1'",
    "a port beyond all": "UPDATE streams SET server = '127.0.0.1:123456'",
    "lines for an address": "UPDATE streams SET client = '127.0.0.1:1' || char(10) || 'FORGED'",
    "no protocol": "UPDATE streams SET protocol = 'x y'; UPDATE tables SET protocol = ''",
    "no code": "UPDATE diagnostics SET code = char(27) || '[2J', grp = char(10)",
    "no kind": "UPDATE events SET kind = 'a b'",
    "lists for texts": _json("messages", "fields", {"name": [[1]], "dice": {"a": []}}),
    "other shapes": _json("events", "data", {"dice": 5, "names": 7, "name": {}, "players": "x"}),
    "no data": _json("events", "data", {}),
    "changes of nothing": _json("events", "changes", [1, [2], [[], 3], [[4], 5]]),
    "changes of numbers": _json("events", "changes", [[["games"], 7]]),
    "a list for players": _json("events", "changes", [[["players"], [1]], [["round"], {}]]),
    "another state": _json("snapshots", "state", {"games": [1, 2], "players": 3})
    + "; DELETE FROM events WHERE seq < 9",
    "other results": _json("games", "result", {"losers": {"a": [[]]}, "points": [None]}),
    "events of another table": "UPDATE events SET table_id = 99",
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


@pytest.mark.parametrize(
    ("command", "kind"),
    a_few(
        [(command, kind) for command in COMMANDS for kind in ROWS],
        lambda row: (COMMANDS.index(row[0]) + [*ROWS].index(row[1])) % 12 == 0,
        lambda row: f"{row[1]}-{' '.join(row[0])}",
    ),
)
def test_what_is_wrong_in_a_database_is_said(
    kind: str, command: list[str], sound: Path, tmp_path: Path
) -> None:
    done = kiebitz(command[0], spoilt(sound, tmp_path, ROWS[kind]), *command[1:])
    assert done.status in (0, 1, 3)
    if done.status == 1:
        assert any(words in done.err for words in ("damaged", "there is no", "knows no")), done.err
    assert "fault of Kiebitz" not in done.err
    assert is_harmless(done.out)
    assert is_harmless(done.err)
