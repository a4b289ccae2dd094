"""Verification that the stored rows of a session follow from its bytes.

It costs as much as an import, so it runs only after a command failed because of a database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from kiebitz.dissectors.model import Ids
from kiebitz.storage.database.schema import SESSION_CONDITIONS, TABLES
from kiebitz.storage.derived.derived_session import recorded_protocols
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.recorder import BATCH
from kiebitz.storage.recording.rows import Row, empty_rows

_IN_ORDER = ("tables", "messages", "events", "snapshots")
"""The tables whose rows are written once, each in the order of its ids."""

_COLUMNS = {table: [column for column in TABLES[table] if column != "sentence"] for table in _IN_ORDER}
"""The compared columns. An event's sentence is not compared: older databases lack it, and its wording depends
on the version.
"""


def find_unfounded_row(connection: sqlite3.Connection) -> str | None:
    """Return a clause about the first row that does not follow from its session's bytes, or None.

    Skips sessions that began in another database, and those that have not ended: their bytes may yield more
    than is stored yet. Raises StorageError and sqlite3.Error.
    """
    whole = (one for one in sessions(connection) if not one.continues and one.ended_ns is not None)
    found = (_Verification(Timeline(connection, session)).find_unfounded_row() for session in whole)
    return next((clause for clause in found if clause is not None), None)


class _Verification:
    """A comparison of one session's stored rows with those made again from its bytes."""

    def __init__(self, timeline: Timeline) -> None:
        self._recorded = RecordedItems(timeline)
        of_session = (timeline.session.id,)
        before: list[int] = [
            timeline.connection.execute(
                f"SELECT coalesce(min(id), 1) - 1 FROM {table} WHERE {SESSION_CONDITIONS[table]}", of_session
            ).fetchone()[0]
            for table in ("tables", "games", "messages", "events")
        ]
        self._inspection = LocalInspection(
            timeline.session.id, Ids(*before), recorded_protocols(self._recorded)
        )
        self._stored: dict[str, Iterator[Row]] = {
            table: timeline.connection.execute(
                f"SELECT {', '.join(_COLUMNS[table])} FROM {table}"
                f" WHERE {SESSION_CONDITIONS[table]} ORDER BY rowid",
                of_session,
            )
            for table in _IN_ORDER
        }
        self._games: dict[int, Row] = {}
        self._found: str | None = None
        self._inspection.on_full = self._compare_batch
        self._timeline = timeline

    def find_unfounded_row(self) -> str | None:
        """Return a clause about the first row that does not follow; None if there is none."""
        for number, item in enumerate(self._recorded.items(), 1):
            self._inspection.feed(item)
            if number % BATCH == 0:
                self._compare_batch()
            if self._found is not None:
                return self._found
        self._inspection.finish()
        self._compare_batch()
        found = self._found
        for table, rows in self._stored.items():
            if found is None and next(rows, None) is not None:
                found = f"{table} has more rows than follow from the bytes"
        return found or self._compare_games()

    def _compare_batch(self) -> None:
        """Compare the rows found since the last call with as many stored rows."""
        self._found = self._found or self._difference()

    def _difference(self) -> str | None:
        found = empty_rows()
        self._inspection.gather(found)
        self._games |= {row[0]: row for row in found["games"]}
        for table, rows in self._stored.items():
            for row in found[table]:
                other = next(rows, None)
                if other is None:
                    return f"{table} has fewer rows than follow from the bytes"
                if row[: len(other)] != other:
                    return f"row {other[0]} of {table} does not follow from the bytes"
        return None

    def _compare_games(self) -> str | None:
        query = f"SELECT * FROM games WHERE {SESSION_CONDITIONS['games']} ORDER BY id"
        rows = self._timeline.connection.execute(query, (self._timeline.session.id,))
        stored = {row[0]: row for row in rows}
        differing = sorted(
            number for number in stored.keys() | self._games if stored.get(number) != self._games.get(number)
        )
        return f"row {differing[0]} of games does not follow from the bytes" if differing else None
