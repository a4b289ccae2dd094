"""The library's functions: open sessions, import captures, compare sessions. Nothing is printed.

They are available as attributes of `kiebitz`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kiebitz.services.decode_as import parse_decode_as
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.services.sessions import apply_protocol_files, load, session_of, split_number
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from kiebitz.dissectors.diff.result import Difference


def open(session: str, protocols: Sequence[str | Path] = ()) -> Session:
    """Open a capture file, a database's latest session, or one of its sessions as in "game.db:2".

    A capture is read into memory. Protocol files apply to all sessions of this process from then on; a later
    file replaces an earlier one for the same protocol. A database contains the files with which it was
    recorded; if others are given, its session is dissected again, in memory.

    Args:
        session: The capture, database or session.
        protocols: Protocol files, as with -P: their paths, or their texts.

    Raises:
        ProtocolFileError: A protocol file is invalid.
        StorageError: The database cannot be used.
        CaptureError: The capture cannot be read.
    """
    add_protocol_files(protocols, replaces=True)
    path, number = split_number(session)
    connection, lacks = load(path)
    return _session(connection, path, number, lacks)


def import_capture(
    capture: str,
    database: str | None = None,
    decode_as: Sequence[str] = (),
    on_progress: Callable[[int, int | None], None] = lambda done, of: None,
    protocols: Sequence[str | Path] = (),
) -> Session:
    """Record a capture file as a new session of a database, or in memory, and open it.

    Args:
        capture: The capture file.
        database: The database, created if it does not exist; None to record in memory.
        decode_as: Protocols of ports, as with -d ("udp.port==4711,maexchen").
        on_progress: Called with the bytes read and, if known, the total.
        protocols: Protocol files, as for `open`.

    Raises:
        ProtocolFileError: A protocol file is invalid.
        StorageError: The database cannot be used.
        CaptureError: The capture cannot be read.
        KiebitzError: A value of `decode_as` is invalid.
    """
    # Most programs only open databases and need no capture reader.
    from kiebitz.services.importing.packets import import_capture as record

    add_protocol_files(protocols, replaces=True)
    ports = parse_decode_as(decode_as)
    recording, lacks = record(capture, database or MEMORY, ports, on_progress)
    number = recording.recorder.session_id
    if database is None:
        return _session(recording.recorder.connection, capture, number, lacks)
    recording.recorder.connection.close()
    return _session(open_existing(database), database, number, lacks)


def diff(a: Session | str, b: Session | str, wanted: str | None = None) -> Difference:
    """Compare two sessions by meaning, limited to what the filter `wanted` matches.

    Raises:
        StorageError: A database cannot be used.
        CaptureError: A capture cannot be read.
        FilterError: The filter is invalid.
    """
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
        applied = apply_protocol_files(timeline)
    except BaseException:
        connection.close()
        raise
    if applied is not timeline:
        connection.close()
    (_, _, file) = next(iter(applied.connection.execute("PRAGMA database_list")))
    return Session(applied, file or None, lacks)
