"""Session databases in which texts are replaced by such as drive a terminal or make lines of their own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

FORGED = "FORGED"
"""Begins what would be a line of its own."""

HOSTILE = (
    f"\n{FORGED}\x1b[2J\x1b]0;x\x07\x9b5m\x85\r\u2028\u202e\u2066\u200b\x7f[red]{{0}}%s" + "e" + "\u0301" * 40
)
"""Stands behind each text."""

Kind = Literal["text", "names", "values"]
"""A column that holds a text; or JSON, of which the names, or the values that are texts, are spoilt."""

_JSON: tuple[Kind, ...] = ("names", "values")
_TEXT: tuple[Kind, ...] = ("text",)

COLUMNS: dict[str, dict[str, tuple[Kind, ...]]] = {
    "sessions": dict.fromkeys(("name", "kind", "source", "kiebitz_version", "note"), _TEXT),
    "streams": dict.fromkeys(("protocol", "transport", "client", "server", "close_reason", "player"), _TEXT),
    "chunks": {"direction": _TEXT},
    "alterations": {**dict.fromkeys(("direction", "action", "rule", "name"), _TEXT), "fields": _JSON},
    "messages": {"direction": _TEXT, "name": _TEXT, "fields": _JSON},
    "diagnostics": dict.fromkeys(
        ("direction", "severity", "grp", "code", "text", "expected", "clause", "blame"), _TEXT
    ),
    "tables": dict.fromkeys(("protocol", "server"), _TEXT),
    "games": {"protocol": _TEXT, "label": _TEXT, "result": _JSON},
    "events": {"kind": _TEXT, "actor": _TEXT, "sentence": _TEXT, "data": _JSON, "changes": _JSON},
    "snapshots": {"state": _JSON},
    "taps": dict.fromkeys(("name", "run"), _TEXT),
    "tapped": {},
}
"""Table -> column that holds a text -> what of it is spoilt."""


class Spot(NamedTuple):
    """What is spoilt."""

    table: str
    column: str
    kind: Kind


SPOTS = [
    Spot(table, column, kind)
    for table, columns in COLUMNS.items()
    for column, kinds in columns.items()
    for kind in kinds
]


def spoil(path: str, spots: Iterable[Spot], hostile: str = HOSTILE) -> None:
    """Spoil these columns of a database, in all their rows."""
    connection = sqlite3.connect(path)
    for spot in spots:
        connection.create_function("spoilt", 1, lambda text, kind=spot.kind: _spoilt(text, kind, hostile))
        connection.execute(f"UPDATE {spot.table} SET {spot.column} = spoilt({spot.column})")
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
