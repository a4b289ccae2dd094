"""SQL dialects of the two engines: SQLite for a session database, DuckDB for a corpus.

A corpus table has rows of many captures, and an id is unique within its capture only: so each join also
compares `capture`. Each capture is one session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from kiebitz.dissectors.filters.rows import Owner, Target
from kiebitz.storage.database.schema import ALTERATION_OF_MESSAGE


class Dialect(msgspec.Struct, frozen=True):
    """The SQL fragments of an engine's conditions, with `{}` as placeholder.

    Attributes:
        ways: Target -> owner -> join from a row to its related records; the placeholder is the condition on
            these.
        started: Target -> start time of the row's session.
        contains: Test whether the text in the placeholder contains another one.
        called: The name of a stream's client (alias s).
    """

    joins: Mapping[Target, Mapping[Owner, str]]
    started: Mapping[Target, str]
    contains: str
    client_name: str


class _Join(NamedTuple):
    """A join from a record (alias `origin`) to those whose `key` is its `reference`."""

    table: str
    alias: str
    key: str
    origin: str
    reference: str


_To = Callable[[_Join], str]

_SESSION_OF_STREAM = _Join("sessions", "x", "id", "s", "session_id")
_MESSAGES_OF_EVENT = _Join("messages", "m", "event_id", "e", "id")
_MESSAGE_OF_DIAGNOSTIC = _Join("messages", "m", "id", "d", "message_id")


def _joins(to: _To, alteration: str) -> dict[Target, dict[Owner, str]]:
    """Return the joins from each kind of row; `alteration` is that from a message to its alteration."""
    stream = to(_Join("streams", "s", "id", "m", "stream_id"))
    session = stream.format(to(_SESSION_OF_STREAM))
    event = to(_Join("events", "e", "id", "m", "event_id"))
    diagnostics = to(_Join("diagnostics", "d", "message_id", "m", "id"))
    messages, message = to(_MESSAGES_OF_EVENT), to(_MESSAGE_OF_DIAGNOSTIC)
    own_stream = to(_Join("streams", "s", "id", "d", "stream_id"))
    return {
        "messages": {
            "message": "{}",
            "event": event,
            "diagnostic": diagnostics,
            "alteration": alteration,
            "stream": stream,
            "session": session,
        },
        "events": {
            "event": "{}",
            "message": messages,
            "diagnostic": messages.format(diagnostics),
            "alteration": messages.format(alteration),
            "stream": messages.format(stream),
            "table": to(_Join("tables", "t", "id", "e", "table_id")),
            "session": to(_Join("sessions", "x", "id", "e", "session_id")),
        },
        "diagnostics": {
            "diagnostic": "{}",
            "message": message,
            "event": message.format(event),
            "alteration": message.format(alteration),
            "stream": own_stream,
            "session": own_stream.format(to(_SESSION_OF_STREAM)),
        },
    }


def _in_database(step: _Join) -> str:
    table, alias, key, origin, reference = step
    if table == "streams":
        # There are few streams: SQLite finds them once, not for each row.
        return f"{origin}.{reference} IN (SELECT {alias}.{key} FROM {table} AS {alias} WHERE {{}})"
    return f"EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.{key} = {origin}.{reference} AND {{}})"


def _in_capture(step: _Join) -> str:
    table, alias, key, origin, reference = step
    return (
        f"EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.{key} = {origin}.{reference}"
        f" AND {alias}.capture = {origin}.capture AND {{}})"
    )


_STARTED_OF_STREAM = (
    "(SELECT x.started_ns FROM sessions AS x JOIN streams AS s ON s.session_id = x.id"
    " WHERE s.id = {}.stream_id)"
)
_STARTED_OF_CAPTURE = "(SELECT x.started_ns FROM sessions AS x WHERE x.capture = {}.capture)"

SQLITE = Dialect(
    _joins(_in_database, f"EXISTS (SELECT 1 FROM alterations AS a WHERE {ALTERATION_OF_MESSAGE} AND {{}})"),
    {
        "messages": _STARTED_OF_STREAM.format("m"),
        "events": "(SELECT x.started_ns FROM sessions AS x WHERE x.id = e.session_id)",
        "diagnostics": _STARTED_OF_STREAM.format("d"),
    },
    "instr({}, ?) > 0",
    "kiebitz_name(s.id)",
)

DUCKDB = Dialect(
    # A corpus has no alterations.
    _joins(_in_capture, "EXISTS (SELECT 1 FROM (SELECT '' AS action WHERE FALSE) AS a WHERE {})"),
    {
        "messages": _STARTED_OF_CAPTURE.format("m"),
        "events": _STARTED_OF_CAPTURE.format("e"),
        "diagnostics": _STARTED_OF_CAPTURE.format("d"),
    },
    "contains({}, ?)",
    "s.player",
)
