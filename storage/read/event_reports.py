"""The messages that report events: the streams that received them, and the server's copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeVar

import msgspec

from kiebitz.dissectors.model import Event
from kiebitz.storage.read.timeline import Timeline

_MAX_KEPT = 20_000
"""Maximum number of events whose messages are kept."""

_Value = TypeVar("_Value")


class EventReports:
    """The messages that report the events of a session."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._reporting: dict[int, Set[int]] = {}
        self._copies: dict[int, Sequence[tuple[str, int, dict[str, Any]]]] = {}
        """Reporting streams, and the server's reports, by event of a session that has ended."""
        self._served = _Served()

    def update_timeline(self, timeline: Timeline) -> None:
        """Use `timeline`, the session in its present state, from now on."""
        self._timeline = timeline
        self._reporting.clear()
        self._copies.clear()

    def streams_served_around(self, event: Event) -> set[int]:
        """Return the streams that the server served in an event's game before and after the event."""
        self._served.update(self._timeline)
        return {
            stream
            for stream, (first_ns, last_ns) in self._served.streams(event).items()
            if first_ns < event.ts_ns < last_ns
        }

    def streams(self, event_id: int) -> Set[int]:
        """Return the streams with a message that reports an event."""
        return self._kept(
            self._reporting,
            event_id,
            lambda: {
                stream
                for (stream,) in self._timeline.connection.execute(
                    "SELECT DISTINCT stream_id FROM messages WHERE event_id = ?", (event_id,)
                )
            },
        )

    def of_server(self, event_id: int) -> Sequence[tuple[str, int, dict[str, Any]]]:
        """Return name, stream and fields of the server's messages that report an event."""
        return self._kept(
            self._copies,
            event_id,
            lambda: [
                (name, stream, msgspec.json.decode(fields))
                for name, stream, fields in self._timeline.connection.execute(
                    "SELECT name, stream_id, fields FROM messages"
                    " WHERE event_id = ? AND +direction = 's2c' ORDER BY id",
                    (event_id,),
                )
            ],
        )

    def _kept(self, kept: dict[int, _Value], event_id: int, read: Callable[[], _Value]) -> _Value:
        """Return a value by event, kept once the session has ended: before, further copies may arrive."""
        found = kept.get(event_id)
        if found is None:
            found = read()
            if self._timeline.session.ended_ns is not None:
                if len(kept) >= _MAX_KEPT:
                    kept.clear()
                kept[event_id] = found
        return found


class _Served:
    """The times of the server's first and last message on each stream, by table and game."""

    def __init__(self) -> None:
        self._upto = 0
        self._times: dict[tuple[int, int | None], dict[int, tuple[int, int]]] = {}
        """Times in ns by table and game (None: any), then by stream."""

    def update(self, timeline: Timeline) -> None:
        """Read the messages since the last call."""
        upto = timeline.last_id("messages")
        if upto == self._upto:
            return
        tables = {(table.server, table.protocol): table.id for table in timeline.tables()}
        rows = timeline.connection.execute(
            "SELECT s.server, s.protocol, m.stream_id, m.game_id, min(m.ts_ns), max(m.ts_ns)"
            " FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
            " WHERE m.id > ? AND m.id <= ? AND m.direction = 's2c' AND s.session_id = ?"
            " GROUP BY m.stream_id, m.game_id",
            (self._upto, upto, timeline.session.id),
        )
        for server, protocol, stream, game, first_ns, last_ns in rows:
            table = tables.get((server, protocol))
            for key in {(table, game), (table, None)} if table is not None else ():
                times = self._times.setdefault(key, {})
                first, last = times.get(stream, (first_ns, last_ns))
                times[stream] = min(first, first_ns), max(last, last_ns)
        self._upto = upto

    def streams(self, event: Event) -> Mapping[int, tuple[int, int]]:
        """Return the times of the streams of an event's game, without one of its table."""
        return self._times.get((event.table_id, event.game_id), {})
