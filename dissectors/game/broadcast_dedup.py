"""Copies of a broadcast are one event: a log of what was told, and for each stream a cursor in it.

A server tells each client the same thing in a datagram or line of his own. The first copy is news; each
further one finds it: it is the first entry after its stream's cursor that says the same and has no witness on
this stream yet. So four copies give one event, and a lost copy does no harm. Where nothing after the cursor
fits, a few entries before it may be tried too, for copies that overtook each other. Over UDP the same thing
twice in a row on one stream is told to two players behind one address, or was doubled by the network.

News on a stream moves its cursor to the end, past what it has not heard of. That may have been no news, but a
copy with a key of its own; so where the next ones are found among what was passed over, the cursor goes back
there.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

import msgspec

from kiebitz.dissectors.model import Event, Message

LATEST_COPY_NS = 2_000_000_000
"""Copies of one broadcast leave a server together: what comes later than this is another event."""

REORDERED_NS = 100_000_000
"""How far back a copy may have been overtaken by a later message on its own stream."""

SWAPPED_NS = 10_000_000
"""Messages of several streams that were captured this close together may have been sent in another order."""

_MAX_OVERTAKEN = 4
"""So many copies overtake another on its stream at the most, however quickly they follow each other."""

_MAX_MISTAKEN = 4
"""So much news in a row on one stream may have been copies that did not say the same as the others."""

LOG_SIZE = 256
"""At least so many events are kept, and fewer than twice as many."""


_MAX_KEPT_LENGTH = 1000


def text_key(text: str) -> Hashable:
    """A text as a part of a key; of a long one a digest is kept, so that the log stays small."""
    return text if len(text) < _MAX_KEPT_LENGTH else sha256(text.encode()).digest()


class Timed(Protocol):
    """Something that was told at a time (nanoseconds)."""

    ts_ns: int


Told = TypeVar("Told", bound=Timed)


class Entry(msgspec.Struct, Generic[Told], eq=False):
    """What was told: what it says, when it was first told, and to which streams."""

    key: Hashable
    told: Told
    ts_ns: int
    witnesses: set[int]


class _Cursor(Generic[Told]):
    """How far a stream has heard: `place`, `born` and `passed` count all entries there ever were.

    With the `news` that came last, one after another, it was moved on from `passed`. It is written to at each
    copy, which takes three times as long in a struct.
    """

    __slots__ = ("born", "latest", "news", "passed", "place")

    def __init__(self, place: int, born: int) -> None:
        self.place = place
        self.born = born
        self.passed = 0
        self.news = 0
        self.latest: Entry[Told] | None = None


class BroadcastLog(Generic[Told]):
    """The latest things that a table's server told to several streams.

    `doubled`: the network may bring the same twice in a row. `overtaken_ns` is how far back a copy may have
    been overtaken by a later one on its own stream; 0 where each stream hears all in the same order.
    """

    def __init__(self, doubled: bool, overtaken_ns: int) -> None:
        self._doubled = doubled
        self._overtaken_ns = overtaken_ns
        self._entries: list[Entry[Told]] = []
        self._first = 0
        """How many entries came before those that are kept."""
        self._cursors: dict[int, _Cursor[Told]] = {}

    def witness(self, stream_id: int, key: Hashable, ts_ns: int, may_be_late: bool = True) -> Told | None:
        """What this copy tells again, or None if it is news; it `may_be_late` if others can overtake it."""
        cursor = self._cursors.get(stream_id) or self._appeared(stream_id)
        latest = cursor.latest
        if self._doubled and latest is not None and latest.key == key and ts_ns - latest.ts_ns < REORDERED_NS:
            return latest.told
        place = cursor.place - self._first
        if 0 <= place < len(self._entries):
            entry = self._entries[place]
            if (
                entry.key == key
                and stream_id not in entry.witnesses
                and entry.ts_ns >= ts_ns - LATEST_COPY_NS
            ):
                # So it is nearly always: each stream hears all, in the same order.
                entry.witnesses.add(stream_id)
                cursor.place += 1
                cursor.news = 0
                cursor.latest = entry
                return entry.told
        number = self._find(stream_id, cursor, key, ts_ns, may_be_late)
        if number is None and may_be_late and 0 < cursor.news <= _MAX_MISTAKEN:
            number = self._next(stream_id, key, ts_ns, cursor.passed, cursor.place)
            if number is not None:
                # So the news since then was none, or not to all.
                cursor.place = self._first + number
        if number is None:
            return None
        entry = self._entries[number]
        entry.witnesses.add(stream_id)
        after = self._first + number + 1
        if after > cursor.place:
            cursor.place = after
            cursor.news = 0
            cursor.latest = entry
        elif cursor.news and after > cursor.passed:
            # A late one, which others of those that were passed over may follow.
            cursor.passed = after
            cursor.news = 1
        return entry.told

    def has(self, stream_id: int, key: Hashable, ts_ns: int, since_ns: int) -> bool:
        """Whether this would be a copy of something that others were told since a time."""
        cursor = self._cursors.get(stream_id) or self._appeared(stream_id)
        number = self._find(stream_id, cursor, key, ts_ns, True)
        return number is not None and self._entries[number].ts_ns >= since_ns

    def _appeared(self, stream_id: int) -> _Cursor[Told]:
        """The cursor of a stream that has just appeared: it may get copies of what others have heard."""
        cursor = self._cursors[stream_id] = _Cursor(self._first, self._first)
        return cursor

    def _find(
        self, stream_id: int, cursor: _Cursor[Told], key: Hashable, ts_ns: int, may_be_late: bool
    ) -> int | None:
        """Which entry a copy is of: the first after the cursor that says the same, else a late one."""
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
            if stream_id in entry.witnesses:
                overtaking += 1
            elif entry.key == key:
                return number
        return None

    def _next(self, stream_id: int, key: Hashable, ts_ns: int, begin: int, end: int) -> int | None:
        """The first entry from place `begin` to `end` that says the same, if copies of it may yet come."""
        entries = self._entries
        for number in range(max(begin - self._first, 0), end - self._first):
            entry = entries[number]
            if (
                entry.key == key
                and stream_id not in entry.witnesses
                and entry.ts_ns >= ts_ns - LATEST_COPY_NS
            ):
                return number
        return None

    def add(self, stream_id: int, key: Hashable, told: Told) -> None:
        """Log news that was first told on this stream."""
        entry = self._append(key, told)
        entry.witnesses.add(stream_id)
        cursor = self._cursors.get(stream_id)
        if cursor is None:
            cursor = self._cursors[stream_id] = _Cursor(0, self._first)
        place = self._first + len(self._entries)
        if cursor.news:
            cursor.news += 1
        elif cursor.latest is not None and cursor.place < place - 1:
            cursor.passed = cursor.place
            cursor.news = 1
        cursor.place = place
        cursor.latest = entry

    def expect(self, key: Hashable, told: Told) -> None:
        """Log what was worked out before any copy of it came, so that the copies find it."""
        self._append(key, told)

    def begin(self, stream_id: int, ts_ns: int) -> None:
        """A stream hears from a time on what is told to all: nothing of before was told to it.

        What others were told just before may have been told after that, and only be captured first.
        """
        place = self._first + len(self._entries)
        for entry in reversed(self._entries):
            if entry.ts_ns < ts_ns - SWAPPED_NS:
                break
            place -= 1
        self._cursors[stream_id] = _Cursor(place, place)

    def clear(self) -> None:
        """Nobody is there any more who could hear copies: whoever comes hears news, though it be the same."""
        self._first += len(self._entries)
        self._entries.clear()
        self._cursors.clear()

    def forget(self, stream_id: int) -> None:
        """Drop the cursor of a stream that is over."""
        self._cursors.pop(stream_id, None)

    def _append(self, key: Hashable, told: Told) -> Entry[Told]:
        entry = Entry(key, told, told.ts_ns, set())
        self._entries.append(entry)
        if len(self._entries) >= 2 * LOG_SIZE:
            del self._entries[:LOG_SIZE]
            self._first += LOG_SIZE
        return entry


class EventLog(BroadcastLog[Event]):
    """The log of a table where each thing told is an event at once; of those it keeps no data and changes."""

    def _append(self, key: Hashable, told: Event) -> Entry[Event]:
        return super()._append(key, msgspec.structs.replace(told, data={}, changes=[]))

    def is_copy(self, message: Message, key: Hashable, hearer: int | None = None) -> bool:
        """Whether a message tells again what another has told; then its event and its game are set.

        Its stream hears it, or another `hearer` where one stream hears the same twice, for two reasons.
        """
        stream_id = message.stream.id if hearer is None else hearer
        event = self.witness(stream_id, key, message.ts_ns)
        if event is None:
            return False
        message.event_id = event.id
        message.game_id = event.game_id
        return True
