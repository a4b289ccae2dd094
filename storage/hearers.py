"""Who was told what: which connections are a player's, and which events he could know of.

A player knows an event if a message on one of his own connections tells it, if it is his own doing, or if it
follows from what he was told. Of a player of whom no connection is known, as in a capture that begins in the
middle, nothing of this can be told: of him only what is secret by its kind is kept back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from itertools import chain, islice, takewhile

import msgspec

from kiebitz.dissectors.dissector import Dissector, said_to
from kiebitz.dissectors.grammar import EventKind, Follows
from kiebitz.dissectors.records import Event
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.storage.schema import StorageError
from kiebitz.storage.sentences import describe
from kiebitz.storage.timeline import StoredEvent, Timeline

_NEAR = 64
"""So many events of a table are looked through for the one that an event follows from."""

_BEFORE = "before"
"""The field of an event by which somebody takes another name; it says what the name was before."""


_SIDES: tuple[Follows, ...] = ("before", "after")


class Hearers:
    """The players of a session, and what each was told."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._streams: dict[str, frozenset[int]] = {}
        self._names: dict[int, list[str]] | None = None

    def seen(self, event: Event, player: str) -> Event | None:
        """An event as `player` could know it; None if he could not.

        Raises StorageError where its protocol is not installed.
        """
        protocol = self._timeline.table(event.table_id).protocol
        dissector = dissector_of(protocol)
        if dissector is None:
            raise StorageError(f"what {player} could know cannot be told: {not_installed(protocol)}")
        seen = dissector.seen_by(event, player)
        streams = self.streams_of(player)
        if seen is None or not streams or event.actor == player:
            return seen
        return seen if self._knows(dissector, event, player, streams) else None

    def sentence(self, event: Event) -> str:
        """What happened, and to whom it was said where that was one client of several."""
        protocol = self._timeline.table(event.table_id).protocol
        sentence = describe(protocol, event)
        hearer = self._only_hearer(protocol, event)
        return sentence if hearer is None else said_to(hearer, sentence)

    def streams_of(self, player: str) -> frozenset[int]:
        """The streams that are a player's; none if that was not seen."""
        streams = self._streams.get(player)
        if streams is None:
            introduced = {stream for stream, names in self._introduced().items() if player in names}
            streams = frozenset(introduced | self._own(player))
            self._streams[player] = streams
        return streams

    def former_names(self) -> set[str]:
        """The names that players have given up for another one."""
        lists = self._introduced().values()
        return {name for names in lists for name in names[:-1]} - {names[-1] for names in lists}

    # Whose stream it is.

    def _introduced(self) -> dict[int, list[str]]:
        """Stream to the names of who introduced themselves on it, and how they were called later."""
        if self._names is None:
            self._names = {}
            current: dict[tuple[int, str], int] = {}
            kinds = [
                kind for kind in self._kinds() if (kind.introduces and kind.own) or _BEFORE in kind.fields
            ]
            own = {kind.kind: kind.own for kind in kinds if kind.introduces}
            for event in self._stored([kind.kind for kind in kinds]):
                if event.actor is None:
                    continue
                if event.kind in own:
                    stream = self._told_by(event.id, own[event.kind])
                else:
                    before = msgspec.json.decode(event.data).get(_BEFORE)
                    stream = current.pop((event.table_id, before), None)
                if stream is not None:
                    current[event.table_id, event.actor] = stream
                    self._names.setdefault(stream, []).append(event.actor)
        return self._names

    def _own(self, player: str) -> set[int]:
        """The streams on which a player is told or does what only a client itself is told or does."""
        pairs = [(kind.kind, name) for kind in self._kinds() for name in kind.own]
        if not pairs:
            return set()
        rows = self._timeline.connection.execute(
            "SELECT DISTINCT m.stream_id FROM events AS e JOIN messages AS m ON m.event_id = e.id"
            " WHERE +e.session_id = ? AND e.actor = ?"
            f" AND (e.kind, m.name) IN (VALUES {', '.join(['(?, ?)'] * len(pairs))})",
            [self._timeline.session.id, player, *chain.from_iterable(pairs)],
        )
        return {stream for (stream,) in rows}

    def _kinds(self) -> list[EventKind]:
        dissectors = map(dissector_of, sorted({table.protocol for table in self._timeline.tables()}))
        return [
            kind
            for dissector in dissectors
            if dissector is not None
            for kind in dissector.grammar.events.values()
        ]

    def _stored(self, kinds: Collection[str]) -> Iterator[StoredEvent]:
        """The session's events of some kinds."""
        return self._timeline.stored_events(f"e.kind IN ({', '.join('?' * len(kinds))})", [*kinds])

    def _told_by(self, event_id: int, names: tuple[str, ...]) -> int | None:
        """The stream of the first message of these names that tells of an event."""
        marks = ", ".join("?" * len(names))
        row = self._timeline.connection.execute(
            f"SELECT stream_id FROM messages WHERE event_id = ? AND +name IN ({marks}) ORDER BY id LIMIT 1",
            (event_id, *names),
        ).fetchone()
        return row[0] if row is not None else None

    # What was told.

    def _told(self, event_id: int) -> set[int]:
        """The streams on which an event was told."""
        rows = self._timeline.connection.execute(
            "SELECT DISTINCT stream_id FROM messages WHERE event_id = ?", (event_id,)
        )
        return {stream for (stream,) in rows}

    def _knows(self, dissector: Dissector, event: Event, player: str, streams: Set[int]) -> bool:
        """Whether a player, whose streams these are, was told of an event, or of what it follows from."""
        told = self._told(event.id)
        if told & streams:
            return True
        follows = dissector.follows(event)
        if told and follows is None:
            return False
        if follows is None:
            return self._is_beside_told(event, streams)
        for near in islice(self._timeline.near(event, follows), _NEAR):
            if near.game_id != event.game_id:
                continue
            told = self._told(near.id)
            if near.actor == player or told & streams:
                return True
            if told and dissector.follows(near) != follows:
                return False
        return False

    def _is_beside_told(self, event: Event, streams: Set[int]) -> bool:
        """Whether an event that no message tells came out of the same message as one that was told."""
        for side in _SIDES:
            for near in takewhile(lambda near: near.ts_ns == event.ts_ns, self._timeline.near(event, side)):
                if self._told(near.id) & streams:
                    return True
        return False

    def _only_hearer(self, protocol: str, event: Event) -> str | None:
        """Whom the server said something to, where that was one client of several."""
        dissector = dissector_of(protocol)
        if dissector is None or event.actor is not None or not dissector.grammar.events[event.kind].spoken:
            return None
        told = self._told(event.id)
        if len(told) != 1:
            return None
        (stream,) = told
        several = self._timeline.connection.execute(
            "SELECT 1 FROM streams AS one JOIN streams AS other"
            " ON other.session_id = one.session_id AND other.server = one.server AND other.id != one.id"
            " WHERE one.id = ? AND other.opened_ns <= ? AND coalesce(other.closed_ns, ?) >= ? LIMIT 1",
            (stream, event.ts_ns, event.ts_ns, event.ts_ns),
        ).fetchone()
        if several is None:
            return None
        return self._introduced().get(stream, [f"stream {stream}"])[-1]
