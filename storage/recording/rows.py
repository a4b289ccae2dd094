"""Findings as rows of the database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, repeat
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Diagnostic, Event, Findings, Game, Message, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.session_numbering import NUMBERED
from kiebitz.storage.database.protocol_files import store_files
from kiebitz.storage.read.event_text import sentence
from kiebitz.storage.read.timeline import SessionRow

Row = tuple[Any, ...]

INSERTS = {
    "streams": "INSERT INTO streams VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET "
    "protocol = excluded.protocol, closed_ns = excluded.closed_ns, close_reason = excluded.close_reason, "
    "player = coalesce(excluded.player, player)",
    "chunks": "INSERT INTO chunks VALUES (?,?,?,?,?,?,?)",
    "alterations": "INSERT INTO alterations VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?)",
    "tables": "INSERT INTO tables VALUES (?,?,?,?)",
    "games": "INSERT INTO games VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET "
    "label = excluded.label, ended_ns = excluded.ended_ns, result = excluded.result",
    "messages": "INSERT INTO messages VALUES (?,?,?,?,?,?,?,?,?,?)",
    "diagnostics": "INSERT INTO diagnostics VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    "events": "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?)",
    "snapshots": "INSERT INTO snapshots VALUES (?,?,?,?)",
    "taps": "INSERT INTO taps VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET "
    "items = excluded.items, origin_ns = excluded.origin_ns, sequence = excluded.sequence",
    "tapped": "INSERT INTO tapped VALUES (?,?,?)",
}
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

INSERT_SESSION = "INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"

SEVERITY_INDEX = 4
"""Index of the severity in a row of `diagnostics`."""

DATA_INDEX = 6
"""Index of the bytes in a row of `chunks`."""

_MAX_TEXT = 16 << 20
"""Maximum length of a text of a derived row in characters, so that a row is always readable."""

_FREE_TEXTS = {
    "streams": (9,),
    "games": (4, 7),
    "messages": (5,),
    "diagnostics": (7, 10, 11),
    "events": (6, 7, 8, 9, 10),
    "snapshots": (3,),
}
"""Table -> indexes in its rows of the texts that depend on the traffic."""

_WIDTHS = {table: statement.count("?") for table, statement in INSERTS.items()}
"""Table -> number of values in a row."""


def empty_rows() -> Rows:
    """Return empty columns for every table."""
    return {table: Columns([[] for _ in range(width)]) for table, width in _WIDTHS.items()}


def insert(connection: sqlite3.Connection, table: str, rows: Columns) -> None:
    """Write rows of one table in the current transaction. Raises sqlite3.Error."""
    width = _WIDTHS[table]
    columns = [*rows.columns]
    if table == "chunks":
        # sqlite3 searches an adapter for each bytes object, which takes half as long as the row; it accepts a
        # bytearray directly.
        columns[DATA_INDEX] = [bytearray(data) if data else data for data in columns[DATA_INDEX]]
    values = chain.from_iterable(zip(*columns, strict=True))
    together = [islice(values, len(rows) // _BATCH_ROWS * _BATCH_ROWS * width)] * (_BATCH_ROWS * width)
    connection.executemany(_BATCH_INSERTS[table], zip(*together, strict=True))
    connection.executemany(INSERTS[table], zip(*[values] * width, strict=True))
    if table == "tables":
        _, _, protocols, _ = rows.columns
        store_files(connection, protocols)


def session_row(session: SessionRow) -> Row:
    """Return the row of a new session."""
    return (
        session.id,
        session.name,
        session.kind,
        session.source,
        session.started_ns,
        session.ended_ns,
        session.kiebitz_version,
        session.continues,
        session.note,
        *(session.before[table] for table in NUMBERED),
    )


def gather(found: Findings, session_id: int, protocols: dict[int, str], rows: Rows) -> None:
    """Append the rows of all findings. Repeated streams and games have a row each; the last one counts.

    `protocols` maps known tables to their protocols; new tables are added to it. Raises an exception of any
    kind if a finding has no row, or one that cannot be stored.
    """
    protocols.update({table.id: table.protocol for table in found.tables})
    for stream in found.streams:
        rows["streams"].append(_stream(stream, session_id))
    # These follow, so that the latest name of a client remains.
    for stream, name in _client_names(found.messages):
        rows["streams"].append(_stream(stream, session_id, name))
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


def _stream(stream: Stream, session_id: int, player: str | None = None) -> Row:
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
        player,
    )


def _client_names(messages: Iterable[Message]) -> Iterator[tuple[Stream, str]]:
    """Yield the streams whose clients send their name in these messages, with the name."""
    for message in messages:
        if message.direction != "c2s":
            continue
        protocol = message.stream.protocol
        dissector = dissector_of(protocol)
        if dissector is not None and message.name in dissector.identity.login_messages:
            name = dissector.identity.introduced(message.name, message.direction, message.fields)
            if name is not None:
                yield message.stream, name


def _sentence(protocol: str, kind: str, data: str) -> str:
    """Describe an event from its stored data, so that the sentence equals that of listings."""
    return sentence(protocol, kind, msgspec.json.decode(data))


# Many events of a game repeat.
_cached_sentence = lru_cache(_MAX_SENTENCES)(_sentence)
