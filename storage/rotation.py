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
    of_session = (session.id,)
    for row in timeline.connection.execute(
        "SELECT * FROM streams WHERE session_id = ? AND closed_ns IS NULL", of_session
    ):
        new.execute(INSERTS["streams"], (row[0], number, *row[2:]))
    over = {game.id for game in timeline.games() if game.ended_ns is not None and str(game.id) not in shown}
    for row in timeline.connection.execute("SELECT * FROM games WHERE session_id = ?", of_session):
        if row[0] not in over:
            new.execute(INSERTS["games"], (row[0], row[1], number, *row[3:]))
