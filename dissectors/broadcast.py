"""Copies of a broadcast are one event: a log of events, and for each stream a cursor in it.

A server tells each client the same thing in a datagram or line of his own. The first copy makes an event;
each further one finds it: it is the first event after its stream's cursor that says the same and has no
witness on this stream yet. So four copies give one event, and a lost copy does no harm. Where nothing after
the cursor fits, a few events before it are tried too, for copies that overtook each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from itertools import islice

import msgspec

from dissectors.records import Event

LATEST_COPY_NS = 2_000_000_000
"""Copies of one broadcast leave a server together: what comes later than this is another event."""

REORDERED_NS = 100_000_000
"""How far back a copy may have been overtaken by a later message on its own stream."""

LOG_SIZE = 256


class Entry(msgspec.Struct, eq=False):
    """An event in the log: what it says, when it was first told, and how many copies each stream had."""

    key: Hashable
    event: Event
    ts_ns: int
    witnesses: dict[int, int]


class BroadcastLog:
    """The latest events of a table that were told to several streams."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=LOG_SIZE)
        self._added = 0
        self._cursors: dict[int, int] = {}
        self._born: dict[int, int] = {}

    def witness(self, stream_id: int, key: Hashable, ts_ns: int, copies: int = 1) -> Event | None:
        """The event that this copy tells of, or None if it is news.

        `copies` is how many copies of one broadcast the stream gets (one for each player behind it).
        """
        cursor = self._cursors.get(stream_id)
        if cursor is None:
            # A stream that has just appeared may get copies of what others have heard already.
            self._cursors[stream_id] = self._born[stream_id] = cursor = self._added - len(self._entries)
        first = self._added - len(self._entries)
        for number, entry in enumerate(
            islice(self._entries, max(0, cursor - first), None), max(cursor, first)
        ):
            if self._fits(entry, stream_id, key, ts_ns - LATEST_COPY_NS, copies):
                self._cursors[stream_id] = number + 1
                return entry.event
        for number in range(cursor - 1, max(first, self._born[stream_id]) - 1, -1):
            entry = self._entries[number - first]
            if entry.ts_ns < ts_ns - REORDERED_NS:
                break
            if self._fits(entry, stream_id, key, ts_ns - REORDERED_NS, copies):
                return entry.event
        return None

    def add(self, stream_id: int, key: Hashable, event: Event) -> None:
        """Log a new event that was first told on this stream."""
        if stream_id not in self._born:
            self._born[stream_id] = self._added - len(self._entries)
        self._entries.append(Entry(key, event, event.ts_ns, {stream_id: 1}))
        self._added += 1
        self._cursors[stream_id] = self._added

    def expect(self, key: Hashable, event: Event) -> None:
        """Log an event that was worked out before any copy of it came, so that the copies find it."""
        self._entries.append(Entry(key, event, event.ts_ns, {}))
        self._added += 1

    def forget(self, stream_id: int) -> None:
        """Drop the cursor of a stream that is over."""
        self._cursors.pop(stream_id, None)
        self._born.pop(stream_id, None)

    @staticmethod
    def _fits(entry: Entry, stream_id: int, key: Hashable, oldest_ns: int, copies: int) -> bool:
        if entry.key != key or entry.ts_ns < oldest_ns:
            return False
        had = entry.witnesses.get(stream_id, 0)
        if had >= copies:
            return False
        entry.witnesses[stream_id] = had + 1
        return True
