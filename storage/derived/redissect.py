"""Redissection: all derived rows of a session made again from its bytes, or compared with them.

It keeps sessions, chunks, alterations, and the facts of a stream that only its source knew: its addresses,
start, end and close reason.

Verification that the stored rows of a session follow from its bytes.

It costs as much as an import, so it runs only after a command failed because of a database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Chunk, Ids
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.database.opening import merge_wal
from kiebitz.storage.database.recorder_lock import exclusive_connection
from kiebitz.storage.database.schema import (
    SESSION_CONDITIONS,
    TABLES,
    StorageError,
    create_indexes,
    optional_tables,
)
from kiebitz.storage.derived.derived_session import recorded_protocols
from kiebitz.storage.read.recorded_items import (
    RecordedItems,
    ServerProtocol,
    complete_items,
    server_protocols,
)
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.recorder import BATCH, last_ids
from kiebitz.storage.recording.rows import Row, empty_rows, insert

_KEPT = ("chunks", "alterations", "tapped", "taps", "streams")


def redissect(
    path: str, number: int | None, decode_as: DecodeAs, on_progress: Callable[[int, int], None]
) -> list[ServerProtocol]:
    """Dissect the session `number`, or all of them, again in one transaction.

    If a single session is not the last one, its rows get new numbers, as those after its old ones are taken.

    Args:
        path: The database.
        number: The session; None for all of them.
        decode_as: Protocols of servers that are not to be recognized.
        on_progress: Called with the numbers of processed and of all chunks.

    Returns:
        The servers whose protocol was recognized before and is not now.

    Raises:
        StorageError: Also for a session that began in another database; this one is then unchanged.
    """
    with exclusive_connection(path) as connection:
        recorded = _load_items(connection, number)
        # In this mode a killed process leaves nothing to roll back.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            lost = _redissect_all(connection, recorded, decode_as, on_progress)
        # An interrupted import leaves none.
        create_indexes(connection)
        merge_wal(connection)
        return lost


def _load_items(connection: sqlite3.Connection, number: int | None) -> list[RecordedItems]:
    """Return the recorded items of the chosen sessions. Raises StorageError if they are not enough."""
    chosen = [row for row in sessions(connection) if number is None or row.id == number]
    recorded = [complete_items(Timeline(connection, row)) for row in chosen]
    protocols = {protocol for session in recorded for _, _, protocol in session.server_protocols}
    unknown = sorted(protocol for protocol in protocols if dissector_of(protocol) is None)
    if unknown:
        raise StorageError(f"stored rows would be lost: {not_installed(unknown[0])}")
    return recorded


def _redissect_all(
    connection: sqlite3.Connection,
    recorded: list[RecordedItems],
    decode_as: DecodeAs,
    on_progress: Callable[[int, int], None],
) -> list[ServerProtocol]:
    for session in recorded:
        of_session = (session.timeline.session.id,)
        for table, condition in SESSION_CONDITIONS.items():
            if table not in _KEPT:
                connection.execute(f"DELETE FROM {table} WHERE {condition}", of_session)
        connection.execute("UPDATE streams SET player = NULL WHERE session_id = ?", of_session)
    total = sum(session.chunks for session in recorded)
    done = 0
    lost: list[ServerProtocol] = []
    for session in recorded:
        number = session.timeline.session.id
        before = last_ids(connection)
        last = Ids(before["tables"], before["games"], before["messages"], before["events"])
        connection.execute(
            "UPDATE sessions SET kiebitz_version = ?, games_before = ?, messages_before = ?,"
            " events_before = ? WHERE id = ?",
            (kiebitz_version(), last.game, last.message, last.event, number),
        )
        inspection = LocalInspection(number, last, decode_as)
        inspection.on_full = partial(_write, connection, inspection)
        for item in session.items():
            inspection.feed(item)
            done += isinstance(item, Chunk)
            if done % BATCH == 0:
                _write(connection, inspection)
                on_progress(done, total)
        inspection.finish()
        _write(connection, inspection)
        recognized = {row[:2] for row in server_protocols(session.timeline)}
        lost += sorted(row for row in session.server_protocols if row[:2] not in recognized)
    if "protocol_files" in optional_tables(connection):
        connection.execute("DELETE FROM protocol_files WHERE name NOT IN (SELECT protocol FROM tables)")
    return lost


def _write(connection: sqlite3.Connection, inspection: LocalInspection) -> None:
    rows = empty_rows()
    inspection.gather(rows)
    for table, batch in rows.items():
        insert(connection, table, batch)


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
            timeline.scalar(
                f"SELECT coalesce(min(id), 1) - 1 FROM {table} WHERE {SESSION_CONDITIONS[table]}", *of_session
            )
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
