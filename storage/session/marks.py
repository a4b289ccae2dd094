"""Marks: messages and events that a user has marked, each with a note, which may be empty.

A mark has the number and the time of its row, since another dissection may number the rows differently. Parts
of sessions and anonymized copies have no marks, as notes may contain names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Literal, NamedTuple, cast, get_args

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.storage.database.opening import open_to_change
from kiebitz.storage.database.schema import (
    StorageError,
    create_optional_table,
    optional_tables,
    sentence,
)
from kiebitz.storage.read.timeline import Timeline

Kind = Literal["message", "event"]

MAX_MARKS = 1000
"""Maximum number of marks of a session."""

MAX_NOTE = 1000
"""Maximum length of a note in characters."""


class MarkError(KiebitzError):
    """A mark that cannot be set: there is no such row, or it is too long, or there are too many."""


class Mark(msgspec.Struct, frozen=True):
    """A mark on a message or an event by its number in the session; of an event with its place at a table."""

    kind: Kind
    number: int
    note: str
    table: int | None = None
    seq: int | None = None


class _Stored(NamedTuple):
    kind: Kind
    number: int
    ts_ns: int
    note: str


def marks(timeline: Timeline) -> list[Mark]:
    """Return the marks of a session by time. Raises sqlite3.Error."""
    found = ((stored, _present(timeline, stored)) for stored in _stored_marks(timeline))
    return [Mark(stored.kind, *row[:1], stored.note, *row[1:]) for stored, row in found if row is not None]


def set_mark(path: str, timeline: Timeline, kind: Kind, number: int, note: str | None) -> None:
    """Mark a message or an event of a session in the database at `path`; a note of None removes its mark.

    Raises MarkError, StorageError.
    """
    row_id = timeline.numbers.row_id(_table_of(kind), number)
    time = timeline.connection.execute(
        f"SELECT ts_ns FROM {_table_of(kind)} WHERE id = ?", (row_id,)
    ).fetchone()
    if time is None:
        raise MarkError(f"there is no {kind} {number} in this session")
    if note is not None and len(note) > MAX_NOTE:
        raise MarkError(f"a note has at most {MAX_NOTE:,} characters")
    stored = [*_stored_marks(timeline)]
    # If the rows have been numbered differently since, the mark has another number.
    old = [(one.kind, one.number) for one in stored if _is_of(timeline, one, kind, number)]
    if note is not None and len(stored) - len(old) >= MAX_MARKS:
        raise MarkError(f"a session has at most {MAX_MARKS:,} marks")
    session_id = timeline.session.id
    try:
        with closing(open_to_change(path)) as connection, connection:
            create_optional_table(connection, "marks")
            for key in old:
                connection.execute(
                    "DELETE FROM marks WHERE session_id = ? AND kind = ? AND number = ?", (session_id, *key)
                )
            if note is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO marks VALUES (?,?,?,?,?)", (session_id, kind, number, *time, note)
                )
    except sqlite3.Error as error:
        raise StorageError(sentence(path, error)) from error


def _is_of(timeline: Timeline, stored: _Stored, kind: Kind, number: int) -> bool:
    row = _present(timeline, stored)
    return stored.kind == kind and row is not None and row[0] == number


def _stored_marks(timeline: Timeline) -> Iterator[_Stored]:
    if "marks" not in optional_tables(timeline.connection):
        return
    rows = timeline.connection.execute(
        "SELECT kind, number, ts_ns, substr(note, 1, ?) FROM marks WHERE session_id = ?"
        " AND typeof(number) = 'integer' AND typeof(ts_ns) = 'integer' AND typeof(note) = 'text'"
        " ORDER BY ts_ns, kind, number LIMIT ?",
        (MAX_NOTE, timeline.session.id, MAX_MARKS),
    )
    yield from (_Stored._make(row) for row in rows if row[0] in get_args(Kind))


def _present(timeline: Timeline, stored: _Stored) -> tuple[int, int | None, int | None] | None:
    """Return number and place of the row with a mark's number and time, or else of the first at that time."""
    table = _table_of(stored.kind)
    numbers = timeline.numbers
    place = "table_id, seq" if stored.kind == "event" else "NULL, NULL"
    row = timeline.connection.execute(
        f"SELECT id, {place} FROM {table} WHERE ts_ns = ? AND id > ? ORDER BY id <> ?, id LIMIT 1",
        (stored.ts_ns, numbers.row_id(table, 0), numbers.row_id(table, stored.number)),
    ).fetchone()
    return None if row is None else (numbers.number(table, row[0]), *row[1:])


def _table_of(kind: Kind) -> Literal["messages", "events"]:
    return cast("Literal['messages', 'events']", f"{kind}s")
