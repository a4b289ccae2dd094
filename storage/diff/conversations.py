"""Comparison of the conversations with a server in two sessions: which players only one session has.

A conversation belongs to all players in whose name its client acts, as far as events show. How many a player
has does not matter; for conversations without a player their number counts.
"""

from __future__ import annotations

from kiebitz.dissectors.diff.compared_table import ComparedTable
from kiebitz.dissectors.diff.matching import shared_numbers
from kiebitz.dissectors.diff.players import Match
from kiebitz.dissectors.diff.result import Conversations
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.diff.loader import ComparedSession

_Streams = dict[int, list[int]]
"""Player -> its streams."""


def compare_conversations(
    a: ComparedSession,
    table_a: ComparedTable,
    b: ComparedSession,
    table_b: ComparedTable,
    match: Match,
    number: int,
) -> list[Conversations]:
    """Return the conversations that one side has more of; `number` is the index of the pair of tables."""
    mine, nobodys = streams_by_player(a, table_a)
    others, nobodys_b = streams_by_player(b, table_b)
    shared = shared_numbers(match, len(table_b.normalizer.roster.players))
    theirs = {shared[who] for who in others}
    found = [
        Conversations(number, table_a.normalizer.roster.players[who].name, tuple(streams), ())
        for who, streams in mine.items()
        if who not in theirs
    ]
    found += [
        Conversations(number, table_b.normalizer.roster.players[who].name, (), tuple(streams))
        for who, streams in others.items()
        if shared[who] not in mine
    ]
    both = min(len(nobodys), len(nobodys_b))
    if len(nobodys) != len(nobodys_b):
        found.append(Conversations(number, None, tuple(nobodys[both:]), tuple(nobodys_b[both:])))
    # This order does not depend on which session is named first.
    return sorted(found, key=lambda one: (one.player is None, one.player, one.a, one.b))


def streams_by_player(side: ComparedSession, table: ComparedTable) -> tuple[_Streams, list[int]]:
    """Return the streams to a table's server by acting player, and those without one."""
    streams = side.timeline.connection.execute(
        "SELECT id FROM streams WHERE session_id = ? AND protocol = ? AND server = ? ORDER BY id",
        (side.timeline.session.id, table.row.protocol, table.row.server),
    ).fetchall()
    acting = side.timeline.connection.execute(
        "SELECT DISTINCT m.stream_id, e.actor FROM messages AS m JOIN events AS e ON e.id = m.event_id"
        " WHERE e.session_id = ? AND e.table_id = ? AND m.direction = 'c2s' AND e.actor IS NOT NULL"
        " ORDER BY m.stream_id, e.id",
        (side.timeline.session.id, table.row.id),
    )
    dissector = dissector_of(table.row.protocol)
    kind = dissector.grammar.data_identifiers.get("actor") if dissector is not None else None
    found: _Streams = {}
    spoken: set[int] = set()
    for stream, actor in acting:
        who = table.normalizer.roster.find(kind, actor) if isinstance(kind, IdentifierKind) else None
        if who is not None:
            found.setdefault(who, []).append(stream)
            spoken.add(stream)
    return found, [stream for (stream,) in streams if stream not in spoken]
