"""`kiebitz watch --as`: nothing is shown in any pane that only others were told.

In a recorded session all that the player was not told is overwritten with a word that is then looked for.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, kiebitz
from strength import a_few
from watch_driver import Sight, watch

from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.message_queries import FROM_ITS_BYTES
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
    """A value with every text in it overwritten."""
    if isinstance(value, dict):
        return {key: spoilt(item) for key, item in value.items()}
    if isinstance(value, list):
        return [spoilt(item) for item in value]
    return SECRET if isinstance(value, str) else value


def without_others(state: Any, player: str) -> Any:
    """A state in which what is private to others is overwritten."""
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


def with_secrets(database: Path, player: str) -> None:
    """Overwrite what the player was not told, in a database that was just imported."""
    with closing(open_existing(str(database))) as connection:
        timeline = Timeline(connection, sessions(connection)[-1])
        hearers = Visibility(timeline)
        streams = ", ".join(map(str, hearers.streams_of(player)))
        events = list(timeline.events())
        hidden = [event.id for event in events if hearers.seen(event, player) is None]
        states = {
            (table.id, seq): without_others(timeline.state_at(table.id, seq), player)
            for table in timeline.tables()
            for (seq,) in connection.execute("SELECT seq FROM snapshots WHERE table_id = ?", (table.id,))
        }
        told_whole = {
            part
            for table in timeline.tables()
            if (dissector := dissector_of(table.protocol)) is not None
            for kind in dissector.grammar.events.values()
            for part in kind.tells
        }
    assert streams
    with closing(sqlite3.connect(database)) as connection, connection:
        for (table, seq), state in states.items():
            connection.execute(
                "UPDATE snapshots SET state = ? WHERE table_id = ? AND seq = ?",
                (json.dumps(state), table, seq),
            )
        for event in events:
            # Of events that were not seen nothing is known, but what a later one tells whole.
            changes = [
                [path, spoilt(value)]
                if (event.id in hidden and path[0] not in told_whole)
                or ("private" in path and path[path.index("private") + 1 :][:1] not in ([], [player]))
                else [path, without_others(value, player)]
                for path, value in event.changes
            ]
            data = {"text": SECRET} if event.id in hidden else event.data
            actor = SECRET if event.id in hidden else event.actor
            connection.execute(
                "UPDATE events SET changes = ?, data = ?, actor = ? WHERE id = ?",
                (json.dumps(changes), json.dumps(data), actor, event.id),
            )
        connection.execute(
            f"UPDATE messages SET name = ?, fields = ? WHERE stream_id NOT IN ({streams})",
            (SECRET, json.dumps({"a": SECRET})),
        )
        groups = ", ".join(f"'{group}'" for group in FROM_ITS_BYTES)
        connection.execute(
            f"UPDATE diagnostics SET text = ? WHERE stream_id NOT IN ({streams}) OR grp NOT IN ({groups})",
            (SECRET,),
        )


@pytest.mark.parametrize("protocol", a_few(PLAYERS, ("schafkopf",)))
def test_nothing_is_shown_that_only_others_were_told(protocol: str, tmp_path: Path) -> None:
    capture, player = PLAYERS[protocol]
    database = tmp_path / "game.db"
    assert kiebitz("import", str(CAPTURES / capture), "-w", str(database)).status == 0
    with_secrets(database, player)

    async def script(sight: Sight) -> None:
        assert any(SECRET in row for row in sight.rows("messages"))
        players = sight.viewer.watched.players()
        await sight.press("a", "home", *["down"] * (players.index(player) + 1), "enter")
        assert f"as {player}" in sight.status
        count = len(sight.rows("events"))
        assert count
        for pane in sight.app.panes:
            if pane != "message":
                assert not any(SECRET in row for row in sight.rows(pane)), pane
        for place in sorted({*range(1, count, max(count // 3, 1)), count}):
            await sight.at(place)
            for _ in sight.app.panes:
                assert SECRET not in sight.text, sight.text
                if sight.app.pane == "message":
                    assert not any(SECRET in row for row in sight.rows("message"))
                await sight.press("tab")
        await sight.press("home")
        for _ in range(5):
            await sight.press("n")
            assert SECRET not in sight.text

    watch(str(database), script, (150, 60))


def test_a_notice_of_before_is_not_shown_to_a_player(tmp_path: Path) -> None:
    async def script(sight: Sight) -> None:
        await sight.press("end", "N")
        assert "error[" in sight.status
        await sight.press("a", "home", "down", "down", "enter")
        assert "error[" not in sight.status

    watch("schafkopf-1.3-badcard.pcap", script)
