"""Session databases in which texts are replaced by such as drive a terminal or make lines of their own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from command import ODD, TINY
from imported_databases import database_of
from networks import may_capture
from processes_and_rows import free_port
from strength import GAMES

from kiebitz.storage.database.schema import TABLES

FORGED = "FORGED"
"""Begins what would be a line of its own."""

HOSTILE = (
    f"\n{FORGED}\x1b[2J\x1b]0;x\x07\x9b5m\x85\r\u2028\u202e\u2066\u200b\x7f[red]{{0}}%s" + "e" + "\u0301" * 40
)
"""Suffix of each text."""

Kind = Literal["text", "names", "values"]
"""A column of text; or of JSON, whose names, or whose text values, are spoilt."""


class Spot(NamedTuple):
    """A place in a database to spoil."""

    table: str
    column: str
    kind: Kind


_JSON: tuple[Kind, ...] = ("names", "values")

SPOTS = [
    Spot(table, name, kind)
    for table, columns in TABLES.items()
    for name, column in columns.items()
    if column.type is str
    for kind in (_JSON if column.content in ("object", "array") else ("text",))
]
"""Each column that holds a text."""


def damage(path: str, spots: Iterable[Spot], hostile: str = HOSTILE) -> None:
    """Spoil these columns of a database, in all their rows."""
    connection = sqlite3.connect(path)
    for spot in spots:
        connection.create_function("spoil", 1, lambda text, kind=spot.kind: _spoilt(text, kind, hostile))
        connection.execute(f"UPDATE {spot.table} SET {spot.column} = spoil({spot.column})")
    connection.commit()
    connection.close()


def _spoilt(text: str | None, kind: Kind, hostile: str) -> str | None:
    if kind == "text":
        return (text or "") + hostile
    return text and json.dumps(_within(json.loads(text), kind, hostile), ensure_ascii=False)


def _within(value: Any, kind: Kind, hostile: str) -> Any:
    if isinstance(value, dict):
        return {
            name + (hostile if kind == "names" else ""): _within(part, kind, hostile)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_within(part, kind, hostile) for part in value]
    return value + hostile if kind == "values" and isinstance(value, str) else value


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
"""Damage that Kiebitz never causes."""


def small_database() -> Path:
    """Return a database of a small game of Mäxchen, to be read only."""
    return Path(database_of(GAMES["maexchen"]))


def damaged_copy(folder: Path, statements: str) -> str:
    """Return a copy of the small database after some statements."""
    path = shutil.copy(small_database(), folder / "spoilt.db")
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.commit()
    connection.close()
    return str(path)


READING = [
    *(["sessions"], ["streams"], ["games"], ["messages"], ["events"], ["check"], ["state"], ["follow", "1"]),
    *(["replay", "--speed", "100000"], ["diff", ODD], ["whatif", "--drop", "#3"]),
    *(["export", "-T", form] for form in ("jsonl", "csv")),
]
"""Commands that read a database, without its path."""


def writing(path: str) -> list[list[str]]:
    """Return commands that write into a database."""
    return [
        ["import", TINY, "-w", path],
        ["relay", "-m", f"reverse:udp://127.0.0.1:{free_port('udp')}@0", "-w", path],
        # Without the right to capture this is the only message.
        *([["sniff", "-i", "lo", "-w", path, "-a", "duration:0.1"]] if may_capture() else []),
        ["replay", TINY, "--serve", f"127.0.0.1:{free_port('udp')}", "-w", path],
    ]
