"""Recordings with one value that only one player may see."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.message_queries import VISIBLE_GROUPS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.read.visibility import Visibility

SECRET = "Geheimnis"
PLAYERS = {
    "maexchen": ("maexchen-head-tiny.pcap", "bob"),
    "schafkopf": ("schafkopf-1.3-badcard.pcap", "Falsch"),
    "catan": ("catan-infrarot-game2-3p.pcap.gz", "Inge (Bot)"),
    "okey": ("okey-seed-game-win.pcap.gz", "pascal"),
    "cgml": ("cgml-hands.pcap.gz", "6533"),
}
"""Protocol -> a capture, and whose shoulder is looked over."""


def spoilt(value: Any) -> Any:
    """Return a value with every text in it overwritten."""
    if isinstance(value, dict):
        return {key: spoilt(item) for key, item in value.items()}
    if isinstance(value, list):
        return [spoilt(item) for item in value]
    return SECRET if isinstance(value, str) else value


def without_others(state: Any, player: str) -> Any:
    """Return a state in which what is private to others is overwritten."""
    if isinstance(state, list):
        return [without_others(item, player) for item in state]
    if not isinstance(state, dict):
        return state
    return {
        key: {name: part if name == player else spoilt(part) for name, part in value.items()}
        if key == "private"
        else without_others(value, player)
        for key, value in state.items()
    }


def _overlaps(path: Sequence[str], whole: Sequence[str]) -> bool:
    """Return True if a path lies in a part of the state, or contains it; `{name}` stands for any key."""
    return all(key == part or part.startswith("{") for key, part in zip(path, whole, strict=False))


def _json(value: Any) -> str:
    """Return JSON as databases contain it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def with_secrets(database: Path, player: str) -> None:
    """Overwrite the values hidden from a player in a database that was just imported."""
    with closing(open_existing(str(database))) as connection:
        timeline = Timeline(connection, sessions(connection)[-1])
        visibility = Visibility(timeline)
        streams = ", ".join(map(str, visibility.streams_of(player)))
        events = list(timeline.events())
        hidden = [event.id for event in events if visibility.seen(event, player) is None]
        states = {
            (table.id, seq): without_others(timeline.state_at(table.id, seq), player)
            for table in timeline.tables()
            for (seq,) in connection.execute("SELECT seq FROM snapshots WHERE table_id = ?", (table.id,))
        }
        revealed = {
            tuple(path.split("."))
            for table in timeline.tables()
            if (dissector := dissector_of(table.protocol)) is not None
            for kind in dissector.grammar.events.values()
            for path in kind.reveals
        }
    assert streams
    with closing(sqlite3.connect(database)) as connection, connection:
        for (table, seq), state in states.items():
            connection.execute(
                "UPDATE snapshots SET state = ? WHERE table_id = ? AND seq = ?",
                (_json(state), table, seq),
            )
        for event in events:
            # Unseen events are unknown, except for what a later one contains completely.
            changes = [
                [path, spoilt(value)]
                if (event.id in hidden and not any(_overlaps(path, whole) for whole in revealed))
                or ("private" in path and path[path.index("private") + 1 :][:1] not in ([], [player]))
                else [path, without_others(value, player)]
                for path, value in event.changes
            ]
            data = {"text": SECRET} if event.id in hidden else event.data
            actor = SECRET if event.id in hidden else event.actor
            connection.execute(
                "UPDATE events SET changes = ?, data = ?, actor = ? WHERE id = ?",
                (_json(changes), _json(data), actor, event.id),
            )
        connection.execute(
            f"UPDATE messages SET name = ?, fields = ? WHERE stream_id NOT IN ({streams})",
            (SECRET, json.dumps({"a": SECRET})),
        )
        groups = ", ".join(f"'{group}'" for group in VISIBLE_GROUPS)
        connection.execute(
            f"UPDATE diagnostics SET text = ? WHERE stream_id NOT IN ({streams}) OR grp NOT IN ({groups})",
            (SECRET,),
        )
