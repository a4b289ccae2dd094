"""Deduplication of broadcasts: a log of broadcast messages, and for each stream a cursor in it.

A server sends each client its own copy. The first copy becomes an entry; a further one matches the first
entry after its stream's cursor that has the same key and no copy on this stream yet. So four copies make one
event, and a lost copy does no harm. If nothing after the cursor matches, a few entries before it are tried,
for copies that were reordered. Over UDP, the same message twice in a row on one stream went to two players
behind one address, or was duplicated by the network.

A new entry moves its stream's cursor to the end, past entries without a copy on this stream. It may have been
a copy with a different key; so if the next copies match entries that were passed over, the cursor goes back
there. Where later messages may overtake a copy, such entries are no older than that takes.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

import msgspec

from kiebitz.dissectors.model import Event, Message

LATEST_COPY_NS = 2_000_000_000
"""Maximum age of an entry that a copy can match, as copies leave a server together."""

REORDERED_NS = 100_000_000
"""Longest time by which a later message of the same stream may overtake a copy over UDP."""

SWAPPED_NS = 10_000_000
"""Maximum distance of messages of several streams that may have been captured in another order."""

_MAX_OVERTAKEN = 4
"""Maximum number of copies that may overtake another one on its stream."""

_MAX_MISTAKEN = 4
"""Maximum number of consecutive new entries of a stream that may have been copies with other keys."""

LOG_SIZE = 256
"""Minimum number of entries that are kept; the maximum is twice as many."""


_MAX_KEPT_LENGTH = 1000


def text_key(text: str) -> Hashable:
    """Return a text as part of a key: a long text as its digest, to keep the log small."""
    return text if len(text) < _MAX_KEPT_LENGTH else sha256(text.encode()).digest()


def broadcast_key(name: str, fields_json: str) -> Hashable:
    """Return the key of a broadcast whose copies have the same fields."""
    # As in `text_key`, whose call would take as long as the rest.
    return name, fields_json if len(fields_json) < _MAX_KEPT_LENGTH else text_key(fields_json)


class Timed(Protocol):
    """A record with a time in nanoseconds."""

    ts_ns: int


Record = TypeVar("Record", bound=Timed)


class Entry(msgspec.Struct, Generic[Record], eq=False):
    """A broadcast: its key, its time, and the streams with a copy of it."""

    key: Hashable
    record: Record
    ts_ns: int
    streams: set[int]


class _Cursor(Generic[Record]):
    """The position of a stream in the log; `place`, `born` and `passed` count from the table's first entry.

    The last `news` entries in a row moved it on from `passed`. Not a struct: updating one for each copy would
    take three times as long.
    """

    __slots__ = ("born", "latest", "news", "passed", "place")

    def __init__(self, place: int, born: int) -> None:
        self.place = place
        self.born = born
        self.passed = 0
        self.news = 0
        self.latest: Entry[Record] | None = None


class BroadcastLog(Generic[Record]):
    """The latest broadcasts of a table's server.

    `doubled` is True if the network may duplicate messages. `overtaken_ns` is the longest time by which a
    later message of the same stream may overtake a copy; 0 if all streams have the same order.
    """

    def __init__(self, doubled: bool, overtaken_ns: int) -> None:
        self._doubled = doubled
        self._overtaken_ns = overtaken_ns
        self._entries: list[Entry[Record]] = []
        self._first = 0
        """Number of dropped entries before the kept ones."""
        self._cursors: dict[int, _Cursor[Record]] = {}

    def match_copy(
        self, stream_id: int, key: Hashable, ts_ns: int, may_be_late: bool = True
    ) -> Record | None:
        """Return the broadcast of this copy, None if it is new; `may_be_late` if others can overtake it."""
        cursor = self._cursors.get(stream_id) or self._add_cursor(stream_id)
        latest = cursor.latest
        if self._doubled and latest is not None and latest.key == key and ts_ns - latest.ts_ns < REORDERED_NS:
            return latest.record
        place = cursor.place - self._first
        if 0 <= place < len(self._entries):
            entry = self._entries[place]
            if entry.key == key and stream_id not in entry.streams and entry.ts_ns >= ts_ns - LATEST_COPY_NS:
                # The usual case: each stream receives all broadcasts, in the same order.
                entry.streams.add(stream_id)
                cursor.place += 1
                cursor.news = 0
                cursor.latest = entry
                return entry.record
        number = self._find(stream_id, cursor, key, ts_ns, may_be_late)
        if number is None and may_be_late and 0 < cursor.news <= _MAX_MISTAKEN:
            number = self._next(
                stream_id, key, ts_ns, cursor.passed, cursor.place, self._overtaken_ns or LATEST_COPY_NS
            )
            if number is not None:
                # The new entries since then were copies, or not sent to all clients.
                cursor.place = self._first + number
        if number is None:
            return None
        entry = self._entries[number]
        entry.streams.add(stream_id)
        after = self._first + number + 1
        if after > cursor.place:
            cursor.place = after
            cursor.news = 0
            cursor.latest = entry
        elif cursor.news and after > cursor.passed:
            # A late copy; copies of other skipped entries may follow.
            cursor.passed = after
            cursor.news = 1
        return entry.record

    def has(self, stream_id: int, key: Hashable, ts_ns: int, since_ns: int) -> bool:
        """Return True if this would be a copy of a broadcast to other clients since a time."""
        cursor = self._cursors.get(stream_id) or self._add_cursor(stream_id)
        number = self._find(stream_id, cursor, key, ts_ns, True)
        return number is not None and self._entries[number].ts_ns >= since_ns

    def _add_cursor(self, stream_id: int) -> _Cursor[Record]:
        """Return a cursor for a new stream, which may still receive copies of earlier broadcasts."""
        cursor = self._cursors[stream_id] = _Cursor(self._first, self._first)
        return cursor

    def _find(
        self, stream_id: int, cursor: _Cursor[Record], key: Hashable, ts_ns: int, may_be_late: bool
    ) -> int | None:
        """Return the entry of a copy: the first one with its key after the cursor, else an overtaken one."""
        number = self._next(stream_id, key, ts_ns, cursor.place, self._first + len(self._entries))
        if number is not None or not (self._overtaken_ns and may_be_late):
            return number
        entries = self._entries
        place = max(cursor.place - self._first, 0)
        overtaking = 0
        for number in range(place - 1, max(cursor.born - self._first, 0) - 1, -1):
            entry = entries[number]
            if entry.ts_ns < ts_ns - self._overtaken_ns or overtaking > _MAX_OVERTAKEN:
                break
            if stream_id in entry.streams:
                overtaking += 1
            elif entry.key == key:
                return number
        return None

    def _next(
        self,
        stream_id: int,
        key: Hashable,
        ts_ns: int,
        begin: int,
        end: int,
        latest_ns: int = LATEST_COPY_NS,
    ) -> int | None:
        """Return the first entry with this key from `begin` to `end` that is young enough for copies."""
        entries = self._entries
        for number in range(max(begin - self._first, 0), end - self._first):
            entry = entries[number]
            if entry.key == key and stream_id not in entry.streams and entry.ts_ns >= ts_ns - latest_ns:
                return number
        return None

    def add(self, stream_id: int, key: Hashable, record: Record, to_one: bool = False) -> None:
        """Log a new broadcast, whose first copy arrived on this stream.

        It may have been sent `to_one` client only; then it says nothing of copies of earlier broadcasts.
        """
        entry = self._append(key, record)
        entry.streams.add(stream_id)
        cursor = self._cursors.get(stream_id)
        if cursor is None:
            cursor = self._cursors[stream_id] = _Cursor(0, self._first)
        elif to_one:
            return
        place = self._first + len(self._entries)
        if cursor.news:
            cursor.news += 1
        elif cursor.latest is not None and cursor.place < place - 1:
            cursor.passed = cursor.place
            cursor.news = 1
        cursor.place = place
        cursor.latest = entry

    def expect(self, key: Hashable, record: Record) -> None:
        """Log an inferred broadcast before any copy of it, so that the copies match it."""
        self._append(key, record)

    def begin(self, stream_id: int, ts_ns: int) -> None:
        """Start a stream that receives broadcasts from a time on, and no copies of earlier ones.

        Broadcasts captured just before that time may have been sent after it.
        """
        place = self._first + len(self._entries)
        for entry in reversed(self._entries):
            if entry.ts_ns < ts_ns - SWAPPED_NS:
                break
            place -= 1
        self._cursors[stream_id] = _Cursor(place, place)

    def clear(self) -> None:
        """Drop all entries: no client is left that could receive copies, so equal messages are new."""
        self._first += len(self._entries)
        self._entries.clear()
        self._cursors.clear()

    def forget(self, stream_id: int) -> None:
        """Drop the cursor of an ended stream."""
        self._cursors.pop(stream_id, None)

    def _append(self, key: Hashable, record: Record) -> Entry[Record]:
        entry = Entry(key, record, record.ts_ns, set())
        self._entries.append(entry)
        if len(self._entries) >= 2 * LOG_SIZE:
            del self._entries[:LOG_SIZE]
            self._first += LOG_SIZE
        return entry


class EventLog(BroadcastLog[Event]):
    """A log of broadcasts that are one event each; events are kept without data and changes."""

    def _append(self, key: Hashable, record: Event) -> Entry[Event]:
        return super()._append(key, msgspec.structs.replace(record, data={}, changes=[]))

    def is_copy(self, message: Message, key: Hashable, hearer: int | None = None) -> bool:
        """Return True, and set the event and game of a message, if it is a copy of a known broadcast.

        `hearer` replaces the id of its stream, if one stream receives the same message twice for two reasons.
        """
        stream_id = message.stream.id if hearer is None else hearer
        event = self.match_copy(stream_id, key, message.ts_ns)
        if event is None:
            return False
        message.event_id = event.id
        message.game_id = event.game_id
        return True
