"""References to sessions: a capture file, a database, or `DB:N` for session N of it.

If several sessions are allowed, `DB:*` means all sessions of a database.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from difflib import get_close_matches

from kiebitz.dissectors.registry import protocol_files
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.progress import counting
from kiebitz.storage.database.integrity import find_damage
from kiebitz.storage.database.opening import is_open, open_existing
from kiebitz.storage.database.schema import TABLES, SessionRow, StorageError, scalar, sentence
from kiebitz.storage.read.timeline import Timeline, sessions

_NO_SESSION = "there is no session in it yet"
_NOT_NUMBERED = "this is not a database; only databases have numbered sessions"

_SQLITE_MAGIC = b"SQLite format 3\0"
_NUMBERED = re.compile(r"(.+):(\d{1,18})")
ALL_SESSIONS = ":*"
"""Suffix of a database for all its sessions."""

_MAX_LISTED = 20
"""Maximum number of session numbers in a message."""

_DEFAULT_NAME = re.compile(r"[a-z]+ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)


def default_name(command: str) -> str:
    """Return the name of a session that a recording command begins now."""
    return f"{command} {time.strftime('%Y-%m-%d %H:%M:%S')}"


def given_name(row: SessionRow) -> str | None:
    """Return the name that a user gave a session, as with `relay --name`; None for a default name."""
    is_default = _DEFAULT_NAME.fullmatch(row.name) or row.name == os.path.basename(row.source)
    return None if is_default else row.name


def is_several(given: Sequence[str]) -> bool:
    """Return True if more than one session may be given."""
    return len(given) > 1 or _is_all(given[0])


def all_sessions(given: Sequence[str]) -> Iterator[str]:
    """Yield the names of all given sessions.

    Raises StorageError; for a missing file before the first is yielded.
    """
    meant = [(one.removesuffix(ALL_SESSIONS), True) if _is_all(one) else (one, False) for one in given]
    for name, is_every in meant:
        path, _ = split_number(name)
        if is_every and not is_database(path):
            raise StorageError(f"{path}: {_NOT_NUMBERED}")
    for name, is_every in meant:
        if not is_every:
            yield name
            continue
        with closing(_open_database(name)) as connection:
            numbers = [row.id for row in sessions(connection)]
        if not numbers:
            raise StorageError(f"{name}: {_NO_SESSION}")
        yield from (f"{name}:{number}" for number in numbers)


def _is_all(given: str) -> bool:
    return given.endswith(ALL_SESSIONS) and not os.path.exists(given)


def session_of(connection: sqlite3.Connection, path: str, number: int | None) -> tuple[Timeline, int]:
    """Return a session by number, or the latest, and the number of sessions. Raises StorageError."""
    found = sessions(connection, number)
    if not found:
        raise _no_session(connection, path, number)
    return Timeline(connection, found[-1]), scalar(connection, "SELECT count(*) FROM sessions")


def session_at(path: str, number: int) -> Timeline:
    """Return a session of a database on a connection of its own. Raises StorageError."""
    return session_of(open_existing(path), path, number)[0]


def is_in_memory(timeline: Timeline) -> bool:
    """Return True for a session without a database file, such as a capture's."""
    (_, _, file) = next(iter(timeline.connection.execute("PRAGMA database_list")))
    return not file


def is_changed_by_files(timeline: Timeline) -> bool:
    """Return whether the protocol files that the user has named may change a stored session."""
    if not protocol_files() or is_in_memory(timeline):
        return False
    # Few sessions use a protocol file.
    from kiebitz.storage.derived.derived_session import differs_from_files

    return differs_from_files(timeline)


def apply_protocol_files(timeline: Timeline) -> Timeline:
    """Return a stored session as the protocol files that the user has named dissect it.

    That is the session itself, or one in memory if they may change what is stored. Raises StorageError.
    """
    if not is_changed_by_files(timeline):
        return timeline
    from kiebitz.storage.derived.derived_session import dissect_again

    with counting(timeline.session.name, "chunks") as on_progress:
        return dissect_again(timeline, on_progress)


def load(path: str) -> tuple[sqlite3.Connection, str | None]:
    """Open a database, or a capture in memory; also return the capture's losses. Raises StorageError."""
    if path != "-" and not os.path.exists(path):
        raise StorageError(_no_such_file(path))
    if is_database(path):
        return _open_database(path), None
    # Most commands are used with databases and need no capture reader.
    from kiebitz.services.importing.packets import open_capture_in_memory

    return open_capture_in_memory(path)


_undamaged: dict[str, tuple[int, int, int, int]] = {}
"""The version of each file that was checked, as a listing of all sessions opens its database for each."""


def _open_database(path: str) -> sqlite3.Connection:
    connection, file = open_existing(path), os.stat(path)
    version = file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns
    if _undamaged.get(path) != version:
        # The large tables are only looked at when a command has failed over them.
        found = find_damage(connection, {table: TABLES[table] for table in ("sessions", "streams", "tables")})
        if found is not None:
            connection.close()
            raise StorageError(f"{path}: this database is damaged: {found}")
        _undamaged[path] = version
    return connection


def split_number(given: str) -> tuple[str, int | None]:
    """Return the file of a session reference and its session number, if any. Raises StorageError.

    It does not check that the session exists.
    """
    if given == "-" or os.path.exists(given):
        return given, None
    if _is_all(given):
        path = given.removesuffix(ALL_SESSIONS)
        raise StorageError(f"{given}: this command takes one session at a time, as in {path}:1")
    form = _NUMBERED.fullmatch(given)
    if form is None:
        raise StorageError(_no_such_file(given))
    path, number = form[1], int(form[2])
    if not os.path.exists(path):
        raise StorageError(_no_such_file(path))
    if not is_database(path):
        raise StorageError(f"{path}: {_NOT_NUMBERED}")
    return path, number


def is_database(path: str) -> bool:
    """Return True if a file is an SQLite database. Raises StorageError if it cannot be read."""
    # Reading from a pipe would consume its data.
    if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
        return False
    try:
        if is_open(path):
            return True
        with open(path, "rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except OSError as error:
        raise StorageError(sentence(path, error)) from error


def nearest_number(wanted: int, known: Sequence[int]) -> str:
    """Return a clause with the known numbers nearest to an unknown one."""
    if not known:
        return "there are none"
    if list(known) == list(range(known[0], known[-1] + 1)):
        return f"there is {known[0]}" if len(known) == 1 else f"there are {known[0]} to {known[-1]}"
    near = sorted(sorted(known, key=lambda number: abs(number - wanted))[:_MAX_LISTED])
    return f"{'the nearest are' if len(near) < len(known) else 'there are'} {', '.join(map(str, near))}"


def _no_session(connection: sqlite3.Connection, path: str, number: int | None) -> StorageError:
    known = [row.id for row in sessions(connection)]
    if number is None or not known:
        return StorageError(f"{path}: {_NO_SESSION}")
    return StorageError(f"{path}: there is no session {number}; {nearest_number(number, known)}")


def _no_such_file(path: str) -> str:
    folder, name = os.path.split(path)
    names = []
    with suppress(OSError), os.scandir(folder or ".") as entries:
        names = [entry.name for entry in entries if entry.is_file()]
    near = get_close_matches(name, names, n=3)
    hint = f"; {did_you_mean(*(os.path.join(folder, name) for name in near))}" if near else ""
    return f"{path}: there is no such file{hint}"
