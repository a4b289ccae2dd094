"""Compares who talked to a server in two sessions: whose conversations only one of them has.

A conversation is that of all players in whose name its client acts, as far as events tell. How many of them a
player has does not matter; of those that are nobody's the number does.
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
"""The streams of each player."""


def compare_conversations(
    a: ComparedSession,
    table_a: ComparedTable,
    b: ComparedSession,
    table_b: ComparedTable,
    match: Match,
    number: int,
) -> list[Conversations]:
    """The conversations that one side has more of; `number` is the place of the pair of tables."""
    mine, nobodys = _by_player(a, table_a)
    others, nobodys_b = _by_player(b, table_b)
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
    # In an order that is the same whichever session is named first.
    return sorted(found, key=lambda one: (one.player is None, one.player, one.a, one.b))


def _by_player(side: ComparedSession, table: ComparedTable) -> tuple[_Streams, list[int]]:
    """The streams to a table's server by the players who act on them, and those on which nobody does."""
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
