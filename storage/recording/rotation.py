"""Rotation: continuing a recording in another database, which begins with all unfinished objects.

These are the rows of open streams, of the tables, and of games that are running or still shown, and a
snapshot of each table. With them each database yields the state at any of its positions by itself. Rows keep
their ids, and new ones continue the numbering.
"""

from __future__ import annotations

import sqlite3

import msgspec

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Item
from kiebitz.dissectors.registry import protocol_files
from kiebitz.storage.database.opening import open_for_writing
from kiebitz.storage.database.protocol_files import store_files
from kiebitz.storage.database.recorder_lock import lock_with
from kiebitz.storage.database.schema import create_indexes, scalar
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.inspection import LocalInspection
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.rows import INSERT_SESSION, INSERTS


class RotatingRecorder(Recorder):
    """A recorder that can continue in another database; it inspects in this process to know when."""

    _inspection: LocalInspection

    @property
    def is_empty(self) -> bool:
        """True if no bytes have arrived since this database was created."""
        return self._chunk_id == self._before["chunks"]

    def record_until_settled(self, items: list[Item]) -> list[Item]:
        """Record items until everything is settled, and return the remaining ones."""
        for place, item in enumerate(items):
            if self.is_settled:
                return items[place:]
            self.record((item,))
        return []

    @property
    def is_settled(self) -> bool:
        """True if the findings include all items so far, so that nothing is pending."""
        return self._inspection.is_settled

    def continue_in(self, path: str) -> None:
        """End the session, which must be fully written, and continue it in the new database at `path`.

        Raises StorageError, and then continues in the old database.
        """
        new = open_for_writing(path)
        with lock_with(path, new) as held:
            create_indexes(new)
            with new:
                session = sessions(self.connection)[-1]
                _carry_over(Timeline(self.connection, session), new, self._latest_ns)
            with self.connection:
                self.connection.execute(
                    "UPDATE sessions SET ended_ns = ? WHERE id = ?", (self._latest_ns, self.session_id)
                )
        for table in ("streams", "games"):
            carried = scalar(new, f"SELECT count(*) FROM {table}")
            self._before[table] += self.counts[table] - carried
            self.counts[table] = carried
        for kind in ("alterations", "messages", "events", "diagnostics", "error", "warning", "note"):
            self.counts[kind] = 0
        self.missing.clear()
        self._before["chunks"] = self._chunk_id
        self._close_file()
        self.path, self.connection, self._lock = path, new, held
        self.session_id += 1
        self._inspection.continue_as(self.session_id)
        self.started_ns = self._latest_ns


def _carry_over(timeline: Timeline, new: sqlite3.Connection, since_ns: int) -> None:
    """Write all unfinished rows of a fully written session into a `new` database, which begins at `since_ns`.

    The session has the next id there. Raises sqlite3.Error.
    """
    session = timeline.session
    number = session.id + 1
    going_on = msgspec.structs.replace(
        session,
        id=number,
        started_ns=since_ns,
        ended_ns=None,
        continues=True,
        before=timeline.numbers.before,
    )
    new.execute(INSERT_SESSION, going_on.columns())
    store_files(new, (file.protocol for file in protocol_files()))
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
