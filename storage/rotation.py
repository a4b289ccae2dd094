"""What a new database begins with where a recording goes on in it: all that is not over in the one before.

These are the rows of streams that are open, of the tables, and of games that are on or still shown, and a
snapshot of each table. With them each database can be asked for the state at any of its moments by itself.
Rows keep their numbers, and those that come are numbered on.
"""

from __future__ import annotations

import sqlite3

from dissectors.grammar import to_json
from storage.rows import INSERTS
from storage.timeline import Timeline


def carry_over(timeline: Timeline, new: sqlite3.Connection, since_ns: int) -> None:
    """Write into a `new` database what of a session, of which all is written, goes on there from `since_ns`.

    The session has the next number there. Raises sqlite3.Error.
    """
    session = timeline.session
    number = session.id + 1
    new.execute(
        "INSERT INTO sessions VALUES (?,?,?,?,?,NULL,?)",
        (number, session.name, session.kind, session.source, since_ns, session.kiebitz_version),
    )
    shown: set[str] = set()
    last = timeline.last_event()
    for table in timeline.tables():
        seq = timeline.seq_upto(table.id, last)
        state = timeline.state_at(table.id, seq)
        shown |= state.get("games", {}).keys()
        new.execute(INSERTS["tables"], (table.id, number, table.protocol, table.server))
        new.execute(INSERTS["snapshots"], (table.id, seq, since_ns, to_json(state)))
    for (
        stream_id,
        protocol,
        transport,
        client,
        server,
        opened_ns,
    ) in timeline.connection.execute(
        "SELECT id, protocol, transport, client, server, opened_ns FROM streams"
        " WHERE session_id = ? AND closed_ns IS NULL",
        (session.id,),
    ):
        row = (stream_id, number, protocol, transport, client, server, opened_ns, None, None)
        new.execute(INSERTS["streams"], row)
    for game in timeline.games():
        if game.ended_ns is None or str(game.id) in shown:
            result = to_json(game.result) if game.result is not None else None
            new.execute(
                INSERTS["games"],
                (
                    game.id,
                    game.table_id,
                    number,
                    game.protocol,
                    game.label,
                    game.started_ns,
                    game.ended_ns,
                    result,
                ),
            )
