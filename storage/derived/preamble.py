"""Login and lobby messages to prepend to an exported part, so that a reader of it knows who plays.

The preamble is every earlier message outside of games on the part's streams: names, lobbies, seats. It needs
no knowledge of a protocol, as each stored message says whether it belongs to a game.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import UNREADABLE, to_json
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.timeline import Timeline, check_ascending


def preamble_messages(timeline: Timeline, streams: Collection[int], first: int) -> list[int]:
    """Return the ids of the preamble's messages before message `first` on these streams.

    Errors without an event are left out, as they do not concern the part.
    """
    rows = timeline.connection.execute(
        "SELECT id FROM messages AS m WHERE id < ? AND game_id IS NULL AND name != ?"
        " AND +stream_id IN (SELECT value FROM json_each(?)) AND (event_id IS NOT NULL OR NOT EXISTS"
        " (SELECT 1 FROM diagnostics WHERE message_id = m.id AND severity = 'error')) ORDER BY id",
        (first, UNREADABLE, to_json(sorted(streams))),
    )
    return [number for (number,) in check_ascending(rows)]


def orphaned_answers(timeline: Timeline, kept: Collection[int], last: int) -> set[int]:
    """Return those messages of `kept`, up to `last`, that answer a message that is not kept.

    They belong to no game or event, and refer to an identifier that the server introduced on the same stream
    in a message that is not kept: in Mäxchen, for example, a token of the previous round.
    """
    named: dict[tuple[int, str, Any], bool] = {}
    """True if the message in which the server introduced an identifier is kept, by stream, kind and value."""
    late: set[int] = set()
    for number, stream, direction, is_free, names in _messages_with_identifiers(timeline, last):
        keys = [(stream, title, value) for title, value in names]
        if direction == "s2c":
            for key in keys:
                named.setdefault(key, number in kept)
        elif is_free and number in kept and any(named.get(key) is False for key in keys):
            late.add(number)
    return late


def _messages_with_identifiers(
    timeline: Timeline, last: int
) -> Iterator[tuple[int, int, str, bool, list[tuple[str, Any]]]]:
    """Yield the messages up to `last` that contain per-stream identifiers, in order.

    Each as id, stream, direction, True if it has neither game nor event, and its identifiers.
    """
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.direction, m.name, m.fields, s.protocol,"
        " m.game_id IS NULL AND m.event_id IS NULL FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
        " WHERE m.id <= ? AND +s.session_id = ? AND s.protocol IS NOT NULL ORDER BY m.id",
        (last, timeline.session.id),
    )
    known: dict[str, tuple[Dissector, frozenset[str]] | None] = {}
    for number, stream, direction, name, fields, protocol, is_free in check_ascending(rows):
        if protocol not in known:
            known[protocol] = _identifying_messages(protocol)
        dissector, naming = known[protocol] or (None, frozenset())
        if dissector is None or name not in naming:
            continue
        said = msgspec.json.decode(fields)
        row = dissector.grammar.row_of(name, direction, said)
        if row is None:
            continue
        try:
            named = row.identifiers(said)
        except UNWRITABLE:
            # A field of the wrong type has no identifier.
            continue
        names = [(handle.title, value) for handle, value in named if handle.per_stream]
        yield number, stream, direction, bool(is_free), names


def _identifying_messages(protocol: str) -> tuple[Dissector, frozenset[str]] | None:
    """Return a protocol and its messages that contain per-stream identifiers; None if it has none."""
    dissector = dissector_of(protocol)
    if dissector is None:
        return None
    naming = frozenset(
        row.name
        for row in dissector.grammar.rows
        if any(handle.per_stream for field in row.fields for handle in field.type.identifiers())
    )
    return (dissector, naming) if naming else None
