"""Dissection of a player's own connections alone: the events and values that follow from its own messages.

The table of a protocol file computes with the values of all players. If a view only selected events, it would
have others' values wherever an observed event copies them or computes with them. So the player's bytes are
dissected again, without those of other connections. A value that only others' connections carried cannot be
in the result, whichever way the file lets it take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import islice, takewhile, zip_longest
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import (
    Change,
    Chunk,
    Direction,
    End,
    Event,
    Findings,
    Gap,
    Ids,
    Item,
    Stream,
    port_of,
)
from kiebitz.storage.read.recorded_bytes import datagrams
from kiebitz.storage.read.timeline import Timeline

_MAX_KEPT_BYTES = 32 << 20
"""Maximum size of the kept events as JSON, in bytes; later ones are hidden unless they equal stored ones."""

_MAX_PER_MESSAGE = 64
"""Maximum number of stored events of one message."""

_BATCH = 500
"""Number of stored messages read at a time."""

_Direction = tuple[int, Direction]
"""A direction of a stream."""

_Place = tuple[_Direction, int]
"""A direction, and the offset of a message in it."""


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """The parts of an event that depend on the state of its table."""

    kind: str
    actor: str | None
    data: dict[str, Any]
    changes: list[Change]


class _Cause(msgspec.Struct, gc=False):
    """A message, or the end of a stream if `place` is None, with the events that it has caused."""

    place: _Place | None
    ts_ns: int
    events: list[Event]


class OwnDissection:
    """The events at one server as the messages on a player's own connections report them.

    It grows with the session, see `refresh`. If its queries are interrupted, the next call continues.
    """

    def __init__(self, dissector: Dissector, streams: Set[int]) -> None:
        self.streams = streams
        self.labels: dict[int, str] = {}
        """The labels of games by row id."""
        self._dissector = dissector
        self._inspector: Inspector | None = None
        self._open: dict[int, Stream] = {}
        self._ended: set[int] = set()
        self._last_chunk = self._last_message = 0
        self._causes: deque[_Cause] = deque()
        """Dissected messages whose stored rows have not been read yet."""
        self._stored: dict[_Place, int | None] = {}
        """The events of stored messages that have been read, but not dissected yet."""
        self._reached: dict[_Direction, int] = {}
        """The offset of the last stored message read of each direction."""
        self._events: dict[int, bytes | None] = {}
        """The visible events by row id: a `_Kept` as JSON, None if it equals the stored event."""
        self._kept_bytes = 0
        self._changes: list[Change] = []
        """Changes of events without a stored row, for the next event."""
        self._games: dict[int, int] = {}
        """Row ids of games by their ids in this dissection."""
        self._labels: dict[int, str] = {}
        """Labels of games by their ids in this dissection."""

    def event(self, event: Event) -> Event | None:
        """Return a stored event with the values that the player can know; None if it is hidden."""
        if event.id not in self._events:
            return None
        kept = self._events[event.id]
        if kept is None:
            return event
        own = msgspec.json.decode(kept, type=_Kept)
        return msgspec.structs.replace(
            event, kind=own.kind, actor=own.actor, data=own.data, changes=own.changes
        )

    def refresh(self, timeline: Timeline) -> None:
        """Dissect the bytes recorded since the last call. Raises StorageError, sqlite3.Error."""
        for item in self._items(timeline):
            inspector = self._inspector
            if inspector is None:
                port = item.stream.transport, port_of(item.stream.server)
                inspector = self._inspector = Inspector([self._dissector], Ids(), {port: self._dissector})
            inspector.feed(item)
            found = inspector.drain()
            self._labels |= {game.id: game.label for game in found.games}
            self._causes += _causes(found, item)
            if len(self._causes) >= _BATCH:
                self._match_all(timeline)
        self._match_all(timeline)

    # Bytes.

    def _items(self, timeline: Timeline) -> Iterator[Item]:
        """Yield the new bytes, gaps and ends of the streams, in order."""
        closed: list[tuple[int, int, int, str]] = []
        due: list[tuple[int, int, str]] = []
        rows = timeline.connection.execute(
            "SELECT id, transport, client, server, opened_ns, closed_ns, close_reason,"
            " (SELECT coalesce(max(c.id), 0) FROM chunks AS c WHERE c.stream_id = s.id)"
            " FROM streams AS s WHERE id IN (SELECT value FROM json_each(?))",
            (to_json(sorted(self.streams)),),
        )
        for number, transport, client, server, opened, closed_ns, reason, last in rows:
            self._open.setdefault(number, Stream(number, transport, client, server, opened))
            if closed_ns is not None and number not in self._ended:
                closed.append((last, closed_ns, number, reason))
        heapify(closed)
        for row, missing in datagrams(timeline, self.streams, self._last_chunk):
            yield from self._ends(closed, due, row.id, row.ts_ns)
            self._last_chunk = row.id + bool(missing)
            stream = self._open[row.stream_id]
            if row.data is None:
                yield Gap(stream, row.direction, row.ts_ns, row.offset, row.length)
            else:
                yield Chunk(stream, row.direction, row.ts_ns, row.offset, row.data, missing)
        yield from self._ends(closed, due)

    def _ends(
        self,
        closed: list[tuple[int, int, int, str]],
        due: list[tuple[int, int, str]],
        row_id: int | None = None,
        ts_ns: int = 0,
    ) -> Iterator[End]:
        """Yield the ends of streams before a row of bytes; all of them if there is none.

        Both lists are heaps. `closed` contains streams by their last row of bytes, `due` those whose last row
        has passed, by their end.
        """
        while closed and (row_id is None or closed[0][0] < row_id):
            heappush(due, heappop(closed)[1:])
        while due and (row_id is None or due[0][0] < ts_ns):
            closed_ns, number, reason = heappop(due)
            self._ended.add(number)
            yield End(self._open[number], closed_ns, reason)

    # Stored rows.

    def _match_all(self, timeline: Timeline) -> None:
        while self._causes and self._match(timeline, self._causes[0]):
            self._causes.popleft()

    def _match(self, timeline: Timeline, cause: _Cause) -> bool:
        """Find the stored events of a message; return False if the message is not stored yet."""
        if cause.place is None:
            actors = {event.actor for event in cause.events}
            rows = [row for row in _unreported_at(timeline, cause.ts_ns) if row.actor in actors]
            self._assign(cause.events, rows)
            return True
        if not self._read_upto(timeline, cause.place):
            return False
        event_id = self._stored.pop(cause.place, None)
        if cause.events:
            self._assign(cause.events, _events_of_message(timeline, event_id))
        return True

    def _read_upto(self, timeline: Timeline, place: _Place) -> bool:
        """Read stored messages up to a place; return False if there are not enough yet."""
        direction, offset = place
        while self._reached.get(direction, -1) < offset:
            rows = timeline.connection.execute(
                "SELECT id, stream_id, direction, offset, event_id FROM messages"
                " WHERE id > ? AND +stream_id IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?",
                (self._last_message, to_json(sorted(self.streams)), _BATCH),
            ).fetchall()
            if not rows:
                return False
            for row_id, stream, way, start, event_id in rows:
                self._last_message = row_id
                self._stored[(stream, way), start] = event_id
                self._reached[stream, way] = start
        return True

    def _assign(self, events: Sequence[Event], stored: Sequence[Event]) -> None:
        """Assign events to stored ones in this order; those that are too many are not visible.

        A comparison would reveal values: which kind a stored event has may depend on those of others.
        """
        for event, row in zip_longest(events, stored[: len(events)]):
            if row is not None and row.game_id is not None and event.game_id is not None:
                self._games.setdefault(event.game_id, row.game_id)
                self.labels.setdefault(row.game_id, self._labels[event.game_id])
            self._changes += event.changes
            if row is not None and row.id not in self._events:
                changes = [*self._renumbered(self._changes)]
                self._changes = []
                self._keep(row, _Kept(event.kind, event.actor, event.data, changes))

    def _keep(self, row: Event, own: _Kept) -> None:
        text = to_json(own)
        if text == to_json(_Kept(row.kind, row.actor, row.data, row.changes)):
            self._events[row.id] = None
            return
        self._kept_bytes += len(text)
        if self._kept_bytes <= _MAX_KEPT_BYTES:
            self._events[row.id] = text.encode()

    def _renumbered(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield changes with the row ids of games; those of a game without a row are left out."""
        for path, value in changes:
            if path[0] != "games" or len(path) == 1:
                yield path, value
            elif (game := self._games.get(int(path[1]))) is not None:
                yield ["games", str(game), *path[2:]], value


def _causes(found: Findings, item: Item) -> Iterator[_Cause]:
    """Yield the messages of an item with the events that each has caused; then, events of the end."""
    events = deque(found.events)
    first = events[0].id if events else 0
    # The first event of a message is the one that it reports; copies report earlier ones.
    owners = [message.event_id for message in found.messages if (message.event_id or 0) >= first > 0]
    bounds = dict(zip_longest(owners, owners[1:]))
    for message in found.messages:
        caused: list[Event] = []
        if message.event_id in bounds:
            bound = bounds.pop(message.event_id)
            caused.append(events.popleft())
            while events and (events[0].id < bound if bound is not None else not isinstance(item, End)):
                caused.append(events.popleft())
        place = (message.stream.id, message.direction), message.offset
        yield _Cause(place, message.ts_ns, caused)
    if events:
        yield _Cause(None, item.ts_ns, [*events])


def _events_of_message(timeline: Timeline, event_id: int | None) -> list[Event]:
    """Return the event that a message reports, and those after it that no message reports."""
    first = timeline.event(event_id) if event_id is not None else None
    if first is None:
        return []

    def is_beside(event: Event) -> bool:
        return event.ts_ns == first.ts_ns and not timeline.is_reported(event.id)

    others = takewhile(is_beside, timeline.near(first, "after"))
    return [first, *islice(others, _MAX_PER_MESSAGE)]


def _unreported_at(timeline: Timeline, ts_ns: int) -> list[Event]:
    """Return the events at a time that no message reports."""
    found = timeline.connection.execute(
        "SELECT id FROM events WHERE session_id = ? AND ts_ns = ?", (timeline.session.id, ts_ns)
    )
    unreported = [event_id for (event_id,) in found if not timeline.is_reported(event_id)]
    return [*timeline.events("e.id IN (SELECT value FROM json_each(?))", [to_json(unreported)])]
