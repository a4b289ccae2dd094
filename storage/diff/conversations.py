"""Compares who talked to a server in two sessions: whose conversations only one of them has.

A conversation is a player's in whose name its client acts, as far as events tell. How many of them a player
has does not matter; of those that are nobody's the number does.
"""

from __future__ import annotations

from dissectors.grammar import Handle
from dissectors.registry import dissector_of
from storage.diff.events import shared_numbers
from storage.diff.players import Match
from storage.diff.result import Conversations
from storage.diff.side import Side, TableSide


def compare_conversations(
    a: Side, table_a: TableSide, b: Side, table_b: TableSide, match: Match, number: int
) -> list[Conversations]:
    """The conversations that one side has more of; `number` is the place of the pair of tables."""
    mine, others = _by_player(a, table_a), _by_player(b, table_b)
    shared = shared_numbers(match, len(table_b.reader.cast.players))
    theirs = {shared[who] if who is not None else None: streams for who, streams in others.items()}
    found: list[Conversations] = []
    for who, streams in mine.items():
        if who is not None and who not in theirs:
            found.append(Conversations(number, table_a.reader.cast.players[who].name, tuple(streams), ()))
    for who, streams in others.items():
        if who is not None and shared[who] not in mine:
            found.append(Conversations(number, table_b.reader.cast.players[who].name, (), tuple(streams)))
    nobodys, nobodys_b = mine.get(None, []), theirs.get(None, [])
    both = min(len(nobodys), len(nobodys_b))
    if len(nobodys) != len(nobodys_b):
        found.append(Conversations(number, None, tuple(nobodys[both:]), tuple(nobodys_b[both:])))
    return found


def _by_player(side: Side, table: TableSide) -> dict[int | None, list[int]]:
    """The streams to a table's server, by the player who acts most on each; None where nobody does."""
    streams = side.timeline.connection.execute(
        "SELECT id FROM streams WHERE session_id = ? AND protocol = ? AND server = ? ORDER BY id",
        (side.timeline.session.id, table.row.protocol, table.row.server),
    ).fetchall()
    acting = side.timeline.connection.execute(
        "SELECT m.stream_id, e.actor, count(*) FROM messages AS m JOIN events AS e ON e.id = m.event_id"
        " WHERE e.session_id = ? AND e.table_id = ? AND m.direction = 'c2s' AND e.actor IS NOT NULL"
        " GROUP BY m.stream_id, e.actor ORDER BY count(*), e.actor DESC",
        (side.timeline.session.id, table.row.id),
    )
    # Who acts most comes last.
    actors = {stream: actor for stream, actor, _ in acting}
    dissector = dissector_of(table.row.protocol)
    handle = dissector.grammar.data_handles.get("actor") if dissector is not None else None
    found: dict[int | None, list[int]] = {}
    for (stream,) in streams:
        who = None
        if isinstance(handle, Handle) and stream in actors:
            who = table.reader.cast.find(handle, actors[stream])
        found.setdefault(who, []).append(stream)
    return found
