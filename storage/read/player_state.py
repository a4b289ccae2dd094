"""A table's state as one player sees it.

Recorded evidence of player identities: events and messages that tie names to connections.

The messages that report events: the streams that received them, and the server's copies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.identities import Claim, Evidence, Identities
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.storage.read.visibility import Visibility


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
        self._last_message = self.timeline.last_id("messages")
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


_CHECKPOINT_EVENTS = 200
"""Events between two stored states of a player's view."""

_MAX_CHECKPOINTS = 256
"""Maximum number of stored states of a view; beyond it every second one is dropped."""


class PlayerState:
    """A table's state as one player sees it, accumulated from the events that it saw."""

    def __init__(self, shape: object, seq: int, state: State) -> None:
        self.shape = shape
        self._seq = seq
        self._state = state
        self._every = _CHECKPOINT_EVENTS
        self._checkpoints = [(seq, msgspec.json.encode(state))]
        self._back: tuple[int, State] = (-1, {})
        """The last requested earlier state, as its successors are usually requested next."""

    def at(self, visibility: Visibility, player: str, table_id: int, seq: int, final_ns: int | None) -> State:
        """Return the state after event `seq`; an unseen event later than `final_ns` may still be reported."""
        if seq >= self._seq:
            return self._advance(visibility, player, table_id, seq, final_ns)
        at, state = self._back
        place = bisect_right(self._checkpoints, seq, key=lambda checkpoint: checkpoint[0]) - 1
        first, stored = self._checkpoints[max(place, 0)]
        if not first <= at <= seq:
            at, state = first, msgspec.json.decode(stored)
        for event in visibility.timeline.events_between(table_id, at, seq):
            if visibility.seen(event, player) is not None:
                _apply_event(visibility, player, event, state)
        self._back = seq, state
        return state

    def _advance(
        self, visibility: Visibility, player: str, table_id: int, seq: int, final_ns: int | None
    ) -> State:
        state, is_kept = self._state, True
        for event in visibility.timeline.events_between(table_id, self._seq, seq):
            is_seen = visibility.seen(event, player) is not None
            is_kept = is_kept and (is_seen or final_ns is None or event.ts_ns < final_ns)
            if not is_kept and state is self._state:
                state = msgspec.json.decode(msgspec.json.encode(state))
            if is_seen:
                _apply_event(visibility, player, event, state)
            if is_kept:
                self._seq = event.seq
                if event.seq >= self._checkpoints[-1][0] + self._every:
                    self._checkpoints.append((self._seq, msgspec.json.encode(self._state)))
                    if len(self._checkpoints) > _MAX_CHECKPOINTS:
                        del self._checkpoints[1::2]
                        self._every *= 2
        return state


def _apply_event(visibility: Visibility, player: str, event: Event, state: State) -> None:
    """Apply the changes of an event that a player sees to the player's state."""
    apply(state, visibility.changes(event, player))
    apply(state, visibility.revealed(event, player))


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
        self.served = _Served(timeline)

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


_BLOCK = 64
"""Number of streams of a block."""

_Block = tuple[int, int, list[tuple[int, int, int]]]
"""The first and last time of some streams in ns, and the first time, last time and id of each."""


class _Served:
    """The times of the server's first and last message on each stream, by table and game."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._upto = 0
        self._times: dict[tuple[int, int | None], dict[int, tuple[int, int]]] = {}
        """Times in ns by table and game (None: any), then by stream."""
        self._blocks: dict[tuple[int, int | None], list[_Block]] = {}
        """The same, in the order of the first times."""

    def _update(self) -> None:
        """Read the messages since the last call."""
        timeline = self._timeline
        upto = timeline.last_id("messages")
        if upto == self._upto:
            return
        self._blocks.clear()
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

    def streams_around(self, event: Event) -> set[int]:
        """Return the streams of an event's game, or its table, with messages before and after the event."""
        self._update()
        key, at_ns = (event.table_id, event.game_id), event.ts_ns
        if key not in self._blocks:
            rows = sorted((*times, stream) for stream, times in self._times.get(key, {}).items())
            parts = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
            self._blocks[key] = [(part[0][0], max(last for _, last, _ in part), part) for part in parts]
        found: set[int] = set()
        for first_ns, last_ns, rows in self._blocks[key]:
            if first_ns >= at_ns:
                break
            if last_ns > at_ns:
                found.update(stream for first, last, stream in rows if first < at_ns < last)
        return found
