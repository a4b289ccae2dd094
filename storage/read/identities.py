"""Recorded evidence of player identities: events and messages that tie names to connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.identities import Claim, Evidence, Identities
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.timeline import Timeline

_BEFORE = "before"
"""The field of a renaming event that holds the former name."""


class RecordedIdentities(Identities):
    """The players of a recorded session, which may still grow: see `refresh`.

    `inherited` are the claims from the database that this one continues.
    """

    def __init__(self, timeline: Timeline, inherited: Iterable[Claim] = ()) -> None:
        self.timeline = timeline
        self._last_message = self._last_event = 0
        going_on = {stream for (stream,) in timeline.connection.execute("SELECT id FROM streams")}
        super().__init__(
            lambda table: dissector_of(self.timeline.table(table).protocol),
            self._stream,
            [
                Claim(claim.stream, claim.table, [(0, claim.name)])
                for claim in inherited
                if claim.stream in going_on
            ],
        )

    def refresh(self) -> None:
        """Read the evidence that was recorded since the last call."""
        self.add(chain(self._read_renamings(), self._read_messages()))

    def _read_messages(self) -> Iterator[Evidence]:
        """Yield evidence from new messages that inform one client alone of its own events."""
        kinds = {
            (kind.kind, name): kind
            for dissector in self._dissectors()
            for kind in dissector.grammar.events.values()
            for name in kind.reported_by
        }
        if not kinds:
            return
        connection = self.timeline.connection
        after = self._last_message
        (self._last_message,) = connection.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()
        # The pluses keep SQLite from reading all messages of a name again.
        rows = connection.execute(
            "SELECT e.kind, +m.name, min(e.id), e.ts_ns, e.table_id, m.stream_id, e.actor"
            " FROM messages AS m JOIN events AS e ON e.id = m.event_id"
            " WHERE m.id > ? AND m.id <= ? AND e.session_id = ? AND e.actor IS NOT NULL"
            f" AND (e.kind, +m.name) IN (VALUES {', '.join(['(?, ?)'] * len(kinds))})"
            " GROUP BY e.kind, +m.name, e.table_id, m.stream_id, e.actor",
            [after, self._last_message, self.timeline.session.id, *chain.from_iterable(kinds)],
        )
        for kind, name, event, ts_ns, table, stream, actor in rows.fetchall():
            found = kinds[kind, name]
            yield Evidence(event, ts_ns, table, actor, stream, None, found.identifies, found.restores)

    def _read_renamings(self) -> Iterator[Evidence]:
        kinds = {
            kind.kind
            for dissector in self._dissectors()
            for kind in dissector.grammar.events.values()
            if _BEFORE in kind.fields
        }
        after, self._last_event = self._last_event, max(self._last_event, self.timeline.last_event())
        if not kinds or after == self._last_event:
            return
        condition = f"e.id > ? AND e.id <= ? AND +e.kind IN ({', '.join('?' * len(kinds))})"
        for event in self.timeline.events(condition, [after, self._last_event, *sorted(kinds)]):
            before = event.data.get(_BEFORE)
            if before is not None and event.actor is not None:
                yield Evidence(event.id, event.ts_ns, event.table_id, event.actor, before=before)

    def _dissectors(self) -> list[Dissector]:
        found = map(dissector_of, sorted({table.protocol for table in self.timeline.tables()}))
        return [dissector for dissector in found if dissector is not None]

    def _stream(self, stream: int) -> tuple[str, int | None]:
        """Return the client's address, and the time when the stream was closed."""
        row: tuple[str, int | None] = self.timeline.connection.execute(
            "SELECT client, closed_ns FROM streams WHERE id = ?", (stream,)
        ).fetchone()
        return row
