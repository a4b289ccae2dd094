"""Copies of a broadcast are one event: a log of events, and for each stream a cursor in it.

A server tells each client the same thing in a datagram or line of his own. The first copy makes an event;
each further one finds it: it is the first event after its stream's cursor that says the same and has no
witness on this stream yet. So four copies give one event, and a lost copy does no harm. Over UDP, where
nothing after the cursor fits, a few events before it are tried too, for copies that overtook each other; and
the same thing twice in a row on one stream is told to two players behind one address, or was doubled by the
network.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from dissectors.records import Event, Message

LATEST_COPY_NS = 2_000_000_000
"""Copies of one broadcast leave a server together: what comes later than this is another event."""

REORDERED_NS = 100_000_000
"""How far back a copy may have been overtaken by a later message on its own stream."""

LOG_SIZE = 256
"""At least so many events are kept, and fewer than twice as many."""


class Entry(msgspec.Struct, eq=False):
    """An event in the log: what it says, when it was first told, and to which streams."""

    key: Hashable
    event: Event
    ts_ns: int
    witnesses: set[int]


class _Cursor(msgspec.Struct, eq=False):
    """How far a stream has heard: `place` and `born` count all entries there ever were."""

    place: int
    born: int
    latest: Entry | None = None


class BroadcastLog:
    """The latest events of a table that were told to several streams.

    `ordered` streams are TCP connections: nothing on them comes twice or too early.
    """

    def __init__(self, ordered: bool = False) -> None:
        self._ordered = ordered
        self._entries: list[Entry] = []
        self._first = 0
        """How many entries came before those that are kept."""
        self._cursors: dict[int, _Cursor] = {}

    def witness(self, stream_id: int, key: Hashable, ts_ns: int) -> Event | None:
        """The event that this copy tells of, or None if it is news."""
        entries = self._entries
        first = self._first
        cursor = self._cursors.get(stream_id)
        if cursor is None:
            # A stream that has just appeared may get copies of what others have heard already.
            cursor = self._cursors[stream_id] = _Cursor(first, first)
        latest = cursor.latest
        if (
            not self._ordered
            and latest is not None
            and latest.key == key
            and ts_ns - latest.ts_ns < REORDERED_NS
        ):
            return latest.event
        place = max(cursor.place - first, 0)
        for number in range(place, len(entries)):
            entry = entries[number]
            if entry.key == key and _fits(entry, stream_id, ts_ns - LATEST_COPY_NS):
                cursor.place = first + number + 1
                cursor.latest = entry
                return entry.event
        if self._ordered:
            return None
        for number in range(place - 1, max(cursor.born - first, 0) - 1, -1):
            entry = entries[number]
            if entry.ts_ns < ts_ns - REORDERED_NS:
                break
            if entry.key == key and _fits(entry, stream_id, ts_ns - REORDERED_NS):
                return entry.event
        return None

    def is_copy(self, message: Message, key: Hashable) -> bool:
        """Whether a message tells again what another has told; then its event and its game are set."""
        event = self.witness(message.stream.id, key, message.ts_ns)
        if event is None:
            return False
        message.event_id = event.id
        message.game_id = event.game_id
        return True

    def add(self, stream_id: int, key: Hashable, event: Event) -> None:
        """Log a new event that was first told on this stream."""
        entry = self._append(key, event)
        entry.witnesses.add(stream_id)
        cursor = self._cursors.get(stream_id)
        if cursor is None:
            cursor = self._cursors[stream_id] = _Cursor(0, self._first)
        cursor.place = self._first + len(self._entries)
        cursor.latest = entry

    def expect(self, key: Hashable, event: Event) -> None:
        """Log an event that was worked out before any copy of it came, so that the copies find it."""
        self._append(key, event)

    def forget(self, stream_id: int) -> None:
        """Drop the cursor of a stream that is over."""
        self._cursors.pop(stream_id, None)

    def _append(self, key: Hashable, event: Event) -> Entry:
        entry = Entry(key, event, event.ts_ns, set())
        self._entries.append(entry)
        if len(self._entries) >= 2 * LOG_SIZE:
            del self._entries[:LOG_SIZE]
            self._first += LOG_SIZE
        return entry


def _fits(entry: Entry, stream_id: int, oldest_ns: int) -> bool:
    if entry.ts_ns < oldest_ns or stream_id in entry.witnesses:
        return False
    entry.witnesses.add(stream_id)
    return True
