"""Kiebitz for programs: sessions opened, captures imported, sessions compared. Nothing is printed.

`import kiebitz` has these functions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.sessions import load, session_of, split_number
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from kiebitz.dissectors.diff.result import Difference


def open(session: str) -> Session:
    """A capture file, a database (its latest session is meant), or one of its sessions, as in "game.db:2".

    A capture is read into memory. Raises StorageError and CaptureError.
    """
    path, number = split_number(session)
    connection, lacks = load(path)
    return _session(connection, path, number, lacks)


def import_capture(
    capture: str,
    database: str | None = None,
    decode_as: Sequence[str] = (),
    on_progress: Callable[[int, int | None], None] = lambda done, of: None,
) -> Session:
    """Record a capture file as a new session of a database, or in memory, and open it.

    `decode_as` says what ports speak, as -d does ("udp.port==4711,maexchen"). `on_progress` is told bytes
    read, and of how many if that is known. Raises StorageError, CaptureError, and KiebitzError for a
    rule that is none.
    """
    # Most programs open databases, and do not need what reads captures.
    from kiebitz.services.importing.packets import import_capture as record

    ports = parse_decode_as(decode_as)
    recording, lacks = record(capture, database or MEMORY, ports, on_progress)
    number = recording.recorder.session_id
    connection = recording.recorder.connection
    if database is not None:
        connection.close()
        connection = open_existing(database)
    return _session(connection, database or capture, number, lacks)


def diff(a: Session | str, b: Session | str, wanted: str | None = None) -> Difference:
    """How two sessions differ by meaning, in what a filter lets through. Raises as `open`; FilterError."""
    from kiebitz.storage.diff import compare

    opened = [one for one in (a, b) if isinstance(one, str)]
    sessions = {one: open(one) for one in opened}
    try:
        first, second = (sessions[one] if isinstance(one, str) else one for one in (a, b))
        return compare(first.timeline, second.timeline, compile_optional_filter(wanted))
    finally:
        for session in sessions.values():
            session.close()


def _session(connection: sqlite3.Connection, path: str, number: int | None, lacks: str | None) -> Session:
    try:
        timeline, _ = session_of(connection, path, number)
    except BaseException:
        connection.close()
        raise
    (_, _, file) = next(iter(connection.execute("PRAGMA database_list")))
    return Session(timeline, file or None, lacks)
