"""Findings as rows of the database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Diagnostic, Event, Findings, Game, Message, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.protocol_files import store_files
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.read.event_text import sentence

Row = tuple[Any, ...]

_ON_CONFLICT = {
    "streams": " ON CONFLICT (id) DO UPDATE SET protocol = excluded.protocol, closed_ns = excluded.closed_ns,"
    " close_reason = excluded.close_reason, player = coalesce(excluded.player, player)",
    "games": " ON CONFLICT (id) DO UPDATE SET label = excluded.label, ended_ns = excluded.ended_ns,"
    " result = excluded.result",
    "taps": " ON CONFLICT (id) DO UPDATE SET items = excluded.items, origin_ns = excluded.origin_ns,"
    " sequence = excluded.sequence",
}

_WITHOUT_ID = ("alterations", "diagnostics")
"""Tables whose rows SQLite numbers."""

COLUMNS = {
    table: [name for name in columns if table not in _WITHOUT_ID or name != "id"]
    for table, columns in TABLES.items()
}
"""Table -> names of the values of a row to be written."""


def _insert_statement(table: str) -> str:
    columns = COLUMNS[table]
    names = ", ".join(f'"{name}"' for name in columns)
    return (
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))}){_ON_CONFLICT.get(table, '')}"
    )


INSERT_SESSION = _insert_statement("sessions")

INSERTS = {table: _insert_statement(table) for table in TABLES if table != "sessions"}
"""Table -> the statement that inserts or updates one of its rows."""


class Columns:
    """Rows of one table to be written in this order, stored by column.

    Thus many rows are one list per column instead of one tuple per row: the findings of a long capture are
    passed between processes and into the database in this form.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Sequence[list[Any]]) -> None:
        self.columns = columns

    def append(self, row: Row) -> None:
        """Append one row."""
        for column, value in zip(self.columns, row, strict=True):
            column.append(value)

    def extend(self, columns: Iterable[Iterable[Any]]) -> None:
        """Append many rows, given as the values of each column."""
        for column, values in zip(self.columns, columns, strict=True):
            column.extend(values)

    def clear(self) -> None:
        """Remove all rows."""
        for column in self.columns:
            column.clear()

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Row]:
        return zip(*self.columns, strict=True)


Rows = dict[str, Columns]
"""Table -> rows to be written."""

_BATCH_ROWS = 20
"""Rows per statement: beyond this SQLite gains little."""

_BATCH_INSERTS = {
    table: re.sub(r"VALUES (\([^)]*\))", lambda one: "VALUES " + ",".join([one[1]] * _BATCH_ROWS), statement)
    for table, statement in INSERTS.items()
}

_MAX_SENTENCES = 1024
"""Maximum number of cached sentences."""

_MAX_DATA_CHARS = 512
"""Maximum characters of an event's data whose sentence is cached."""

SEVERITY_INDEX = COLUMNS["diagnostics"].index("severity")
DATA_INDEX = COLUMNS["chunks"].index("data")

_MAX_TEXT = 16 << 20
"""Maximum length of a text of a derived row in characters, so that a row is always readable."""

_FREE_TEXTS = {
    table: [COLUMNS[table].index(name) for name, column in columns.items() if column.is_free]
    for table, columns in TABLES.items()
    if table in INSERTS
}
"""Table -> indexes in its rows of the texts that depend on the traffic."""


def empty_rows() -> Rows:
    """Return empty columns for every table."""
    return {table: Columns([[] for _ in COLUMNS[table]]) for table in INSERTS}


def insert(connection: sqlite3.Connection, table: str, rows: Columns) -> None:
    """Write rows of one table in the current transaction. Raises sqlite3.Error."""
    width = len(COLUMNS[table])
    columns = [*rows.columns]
    if table == "chunks":
        # sqlite3 searches an adapter for each bytes object, which takes half as long as the row; it accepts a
        # bytearray directly.
        columns[DATA_INDEX] = [bytearray(data) if data else data for data in columns[DATA_INDEX]]
    values: list[Any] = [None] * (width * len(rows))
    for place, column in enumerate(columns):
        values[place::width] = column
    size = width * _BATCH_ROWS
    end = len(values) - len(values) % size
    connection.executemany(_BATCH_INSERTS[table], (values[at : at + size] for at in range(0, end, size)))
    connection.executemany(INSERTS[table], (values[at : at + width] for at in range(end, len(values), width)))
    if table == "tables":
        _, _, protocols, _ = rows.columns
        store_files(connection, protocols)


def gather(found: Findings, session_id: int, protocols: dict[int, str], rows: Rows) -> None:
    """Append the rows of all findings. Repeated streams and games have a row each; the last one counts.

    `protocols` maps known tables to their protocols; new tables are added to it. Raises an exception of any
    kind if a finding has no row, or one that cannot be stored.
    """
    protocols.update({table.id: table.protocol for table in found.tables})
    for stream in (*found.streams, *_named_streams(found.messages)):
        rows["streams"].append(_stream(stream, session_id))
    for table in found.tables:
        rows["tables"].append((table.id, session_id, table.protocol, table.server))
    for game in found.games:
        rows["games"].append(_game(game, session_id))
    for diagnostic in found.diagnostics:
        rows["diagnostics"].append(_diagnostic(diagnostic))
    for snapshot in found.snapshots:
        rows["snapshots"].append((snapshot.table_id, snapshot.seq, snapshot.ts_ns, snapshot.state_json))
    rows["messages"].extend(_messages(found.messages))
    rows["events"].extend(_events(found.events, session_id, protocols))
    for name, indexes in _FREE_TEXTS.items():
        for index in indexes:
            texts = [*filter(None, rows[name].columns[index])]
            if texts and max(map(len, texts)) > _MAX_TEXT:
                raise ValueError(f"a row of {name} has more than {_MAX_TEXT:,} characters")
            # Lone surrogates cannot be stored.
            "".join(texts).encode()


def _messages(messages: Sequence[Message]) -> tuple[Iterable[Any], ...]:
    return (
        [message.id for message in messages],
        [message.stream.id for message in messages],
        [message.direction for message in messages],
        [message.ts_ns for message in messages],
        [message.name for message in messages],
        [message.fields_json for message in messages],
        [message.offset for message in messages],
        [message.length for message in messages],
        [message.game_id for message in messages],
        [message.event_id for message in messages],
    )


def _events(
    events: Sequence[Event], session_id: int, protocols: Mapping[int, str]
) -> tuple[Iterable[Any], ...]:
    data = [to_json(event.data) for event in events]
    sentences = [
        (_cached_sentence if len(text) <= _MAX_DATA_CHARS else _sentence)(
            protocols[event.table_id], event.kind, text
        )
        for event, text in zip(events, data, strict=True)
    ]
    return (
        [event.id for event in events],
        [event.table_id for event in events],
        [event.game_id for event in events],
        repeat(session_id, len(events)),
        [event.seq for event in events],
        [event.ts_ns for event in events],
        [event.kind for event in events],
        [event.actor for event in events],
        data,
        [to_json(event.changes) for event in events],
        sentences,
    )


def _game(game: Game, session_id: int) -> Row:
    return (
        game.id,
        game.table_id,
        session_id,
        game.protocol,
        game.label,
        game.started_ns,
        game.ended_ns,
        to_json(game.result) if game.result is not None else None,
    )


def _diagnostic(diagnostic: Diagnostic) -> Row:
    return (
        diagnostic.stream.id,
        diagnostic.direction,
        diagnostic.message_id,
        diagnostic.ts_ns,
        diagnostic.severity,
        diagnostic.group,
        diagnostic.code,
        diagnostic.text,
        diagnostic.offset,
        diagnostic.length,
        diagnostic.expected,
        diagnostic.clause,
        diagnostic.blame,
    )


def _stream(stream: Stream, session_id: int) -> Row:
    """Return the row of a stream; without a player, a stored one remains."""
    return (
        stream.id,
        session_id,
        stream.protocol,
        stream.transport,
        stream.client,
        stream.server,
        stream.opened_ns,
        stream.closed_ns,
        stream.close_reason,
        stream.player,
    )


def _named_streams(messages: Iterable[Message]) -> Iterator[Stream]:
    """Yield the streams whose clients send their name in these messages, after it was set."""
    for message in messages:
        if message.direction != "c2s":
            continue
        dissector = dissector_of(message.stream.protocol)
        if dissector is not None and message.name in dissector.identity.login_messages:
            name = dissector.identity.introduced(message.name, message.direction, message.fields)
            if name is not None:
                message.stream.player = name
                yield message.stream


def _sentence(protocol: str, kind: str, data: str) -> str:
    """Describe an event from its stored data, so that the sentence equals that of listings."""
    return sentence(protocol, kind, msgspec.json.decode(data))


# Many events of a game repeat.
_cached_sentence = lru_cache(_MAX_SENTENCES)(_sentence)
