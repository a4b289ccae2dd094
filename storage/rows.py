"""What was found, as rows of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kiebitz.dissectors.grammar import to_json
from kiebitz.dissectors.records import Event, Findings, Message, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.numbers import NUMBERED
from kiebitz.storage.sentences import sentence
from kiebitz.storage.timeline import SessionRow

Row = tuple[Any, ...]

Rows = dict[str, list[Row]]
"""Table -> rows that are to be written, in this order."""

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
"""Table -> the statement that writes one of its rows."""


INSERT_SESSION = "INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"

SEVERITY = 4
"""Where a row of `diagnostics` has it."""


def no_rows() -> Rows:
    """An empty list for each table."""
    return {table: [] for table in INSERTS}


def session_row(session: SessionRow) -> Row:
    """A session that begins in a database of today's format; `before` is known."""
    assert session.before is not None
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
    """Append the rows of all findings. A stream or game that comes twice has two rows; the last counts.

    `protocols` is what is spoken at the tables that came before; those that come now are added to it.
    """
    protocols.update({table.id: table.protocol for table in found.tables})
    rows["streams"] += [_stream(stream, session_id) for stream in found.streams]
    # Behind those: the latest name that a client has called itself stays.
    rows["streams"] += [_stream(stream, session_id, name) for stream, name in _introduced(found.messages)]
    rows["tables"] += [(t.id, session_id, t.protocol, t.server) for t in found.tables]
    rows["games"] += [
        (
            g.id,
            g.table_id,
            session_id,
            g.protocol,
            g.label,
            g.started_ns,
            g.ended_ns,
            to_json(g.result) if g.result is not None else None,
        )
        for g in found.games
    ]
    rows["messages"] += [
        (
            m.id,
            m.stream.id,
            m.direction,
            m.ts_ns,
            m.name,
            m.fields_json,
            m.offset,
            m.length,
            m.game_id,
            m.event_id,
        )
        for m in found.messages
    ]
    rows["diagnostics"] += [
        (
            d.stream.id,
            d.direction,
            d.message_id,
            d.ts_ns,
            d.severity,
            d.group,
            d.code,
            d.text,
            d.offset,
            d.length,
            d.expected,
            d.clause,
            d.blame,
        )
        for d in found.diagnostics
    ]
    rows["events"] += [_event(event, session_id, protocols[event.table_id]) for event in found.events]
    rows["snapshots"] += [(s.table_id, s.seq, s.ts_ns, s.state_json) for s in found.snapshots]


def _stream(stream: Stream, session_id: int, player: str | None = None) -> Row:
    """A stream; without a player, the one that is known already stays."""
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


def _introduced(messages: Iterable[Message]) -> Iterator[tuple[Stream, str]]:
    """The streams whose clients say in these messages what they call themselves, with the name."""
    for message in messages:
        protocol = message.stream.protocol
        dissector = dissector_of(protocol) if protocol is not None else None
        if dissector is not None and message.name in dissector.introductions:
            name = dissector.introduced(message.name, message.direction, message.fields)
            if name is not None:
                yield message.stream, name


def _event(event: Event, session_id: int, protocol: str) -> Row:
    data = to_json(event.data)
    return (
        event.id,
        event.table_id,
        event.game_id,
        session_id,
        event.seq,
        event.ts_ns,
        event.kind,
        event.actor,
        data,
        to_json(event.changes),
        # Of what is stored, so that it is the sentence that listings make of it.
        sentence(protocol, event.kind, msgspec.json.decode(data)),
    )
