"""Session databases in which texts are replaced by such as drive a terminal or make lines of their own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from command import ODD, TINY
from conversation_files import blocks
from hostile_text import WORDS
from imported_databases import copy_of_database, database_of
from networks import may_capture
from processes_and_rows import free_port
from snapshots import DATA, as_bytes
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


def spots_of(kind: Kind) -> list[Spot]:
    """Return the columns of text and of JSON that can be spoilt in a database that is still read."""
    return [spot for spot in SPOTS if spot.kind in ("text", kind) and spot.column not in WORDS]


def spoilt(folder: Path, capture: str, spots: Iterable[Spot], hostile: str = HOSTILE) -> str:
    """Return a new database of a recorded capture in which these columns are spoilt."""
    path = copy_of_database(capture, folder / "game.db")
    damage(path, spots, hostile)
    return path


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


_DAMAGE = blocks(DATA / "damaged_rows.txt")
ROWS = {
    name: as_bytes(statements).decode()
    for name, _, statements in (line.partition(": ") for line in _DAMAGE["rows"].steps)
}
"""Damage that Kiebitz never causes."""

VALUES = _DAMAGE["values"].steps
"""Statements that leave values which no program writes."""


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
