"""Redissection: all derived rows of a session made again from its recorded bytes by the current dissectors.

It keeps sessions, chunks, alterations, and the facts of a stream that only its source knew: its addresses,
start, end and close reason.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial

from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Chunk, Ids
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.database.opening import merge_wal
from kiebitz.storage.database.recorder_lock import exclusive_connection
from kiebitz.storage.database.schema import (
    SESSION_CONDITIONS,
    StorageError,
    create_indexes,
    optional_tables,
)
from kiebitz.storage.read.recorded_items import (
    RecordedItems,
    ServerProtocol,
    complete_items,
    server_protocols,
)
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.recorder import BATCH
from kiebitz.storage.recording.rows import empty_rows, insert

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
        last = _last_ids(connection)
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
        lost += sorted(session.server_protocols - server_protocols(session.timeline))
    if "protocol_files" in optional_tables(connection):
        connection.execute("DELETE FROM protocol_files WHERE name NOT IN (SELECT protocol FROM tables)")
    return lost


def _last_ids(connection: sqlite3.Connection) -> Ids:
    """Return the last remaining id of each kind of record."""
    return Ids(
        *(
            connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
            for table in ("tables", "games", "messages", "events")
        )
    )


def _write(connection: sqlite3.Connection, inspection: LocalInspection) -> None:
    rows = empty_rows()
    inspection.gather(rows)
    for table, batch in rows.items():
        insert(connection, table, batch)
