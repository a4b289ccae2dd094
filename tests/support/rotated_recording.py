"""A recording that goes on from database to database: what all of them hold, beside an undivided one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from made_sessions import START_NS

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Item, Stream
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.seek import END, Position, tables_at
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.rotation import RotatingRecorder

ONCE = {
    "chunks": "id, stream_id, direction, ts_ns, offset, length, data",
    "messages": "id, stream_id, direction, ts_ns, name, fields, offset, length, game_id, event_id",
    "events": "id, table_id, game_id, seq, ts_ns, kind, actor, data, changes",
    "diagnostics": "stream_id, direction, message_id, ts_ns, severity, grp, code, text, offset, length",
}
"""What is in exactly one of the databases."""

AT_LAST = {
    "streams": "id, protocol, transport, client, server, opened_ns, closed_ns, close_reason",
    "tables": "id, protocol, server",
    "games": "id, table_id, protocol, label, started_ns, ended_ns, result",
}
"""What may be in several; the last one has it as it was in the end."""


def timeline_of(connection: sqlite3.Connection) -> Timeline:
    (session,) = sessions(connection)
    return Timeline(connection, session)


def told(*connections: sqlite3.Connection) -> dict[str, Any]:
    """All that is told in some databases, in order."""
    found: dict[str, Any] = {}
    for table, columns in ONCE.items():
        query = f"SELECT {columns} FROM {table} ORDER BY id"
        found[table] = [row for connection in connections for row in connection.execute(query)]
    for table, columns in AT_LAST.items():
        found[table] = {}
        for connection in connections:
            found[table] |= {row[0]: row for row in connection.execute(f"SELECT {columns} FROM {table}")}
    return found


def undivided(timelines: Sequence[Timeline]) -> sqlite3.Connection:
    """What the bytes of all databases give when they are recorded into one."""
    first = timelines[0].session
    recorder = Recorder(MEMORY, "relay", first.source, name=first.name, started_ns=first.started_ns)
    streams: dict[int, Stream] = {}
    for timeline in timelines:
        for item in RecordedItems(timeline).items():
            item.stream = streams.setdefault(item.stream.id, item.stream)
            recorder.record((item,))
    recorder.close()
    return recorder.connection


def states(timeline: Timeline, moment: Position) -> dict[int, State]:
    """The state of each table at a moment."""
    return {found.table.id: found.state for found in tables_at(timeline, moment)}


def assert_well_divided(paths: Sequence[Path]) -> None:
    """Together the databases tell what one would; each by itself has the states of all its moments."""
    connections = [open_existing(str(path)) for path in paths]
    timelines = [timeline_of(connection) for connection in connections]
    with closing(undivided(timelines)) as whole:
        assert told(*connections) == told(whole)
        whole_timeline = timeline_of(whole)
        for number, timeline in enumerate(timelines, 1):
            session = timeline.session
            assert session.id == number
            assert session.ended_ns is not None
            for table in ("streams", "tables", "games", "events"):
                others = f"SELECT count(*) FROM {table} WHERE session_id != {number}"
                assert timeline.connection.execute(others).fetchone() == (0,)
            if number > 1:
                before = timelines[number - 2]
                assert session.started_ns == before.session.ended_ns
                for table_id, state in states(before, END).items():
                    assert timeline.state_at(table_id, timeline.first_seq(table_id)) == state
            for event in list(timeline.events())[::7]:
                assert timeline.state_at(event.table_id, event.seq) == whole_timeline.state_at(
                    event.table_id, event.seq
                )
    for connection in connections:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


PIECES = 5


def items_of(timeline: Timeline) -> list[Item]:
    return list(RecordedItems(timeline).items())


def recorder_into(path: Path) -> RotatingRecorder:
    return RotatingRecorder(str(path), "relay", "made up", started_ns=START_NS)


def divided(folder: Path, items: list[Item], settled: bool = True) -> list[Path]:
    """Record items into several databases, about as many each; divided where all is settled, or anywhere."""
    numbers = count(1)
    paths = [folder / f"game_{next(numbers)}.db"]
    recorder = recorder_into(paths[0])
    size = -(-len(items) // PIECES)
    for start in range(0, len(items), size):
        piece = items[start : start + size]
        if start:
            if settled:
                piece = recorder.record_until_settled(piece)
                assert recorder.is_settled
            recorder.commit()
            paths.append(folder / f"game_{next(numbers)}.db")
            recorder.continue_in(str(paths[-1]))
        recorder.record(piece)
    recorder.close()
    assert len(paths) == PIECES
    return paths
