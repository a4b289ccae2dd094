"""Reading of a session, or a part of it, as a sequence diagram.

Steps are read on demand, so a session of any length can be drawn in constant memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec

from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.model import PUBLIC, Event, Message, Severity, Stream
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.sequence.model import Arrow, Lifeline, Note, Problem, Step, fold
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.derived.selection import PartRequest, Selection, select
from kiebitz.storage.read.alterations import ACTION_WORDS, AlteredMessages, StoredAlteration, alteration_text
from kiebitz.storage.read.message_queries import (
    MessageDiagnostic,
    diagnostics,
    diagnostics_of_messages,
    messages,
    placeholders,
    streams,
    visible_groups,
)
from kiebitz.storage.read.seen_rows import ALL_PLAYERS, PublicMessages
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

MAX_CLIENTS = 40
"""Maximum number of clients with a lifeline of their own; the others of a server share one."""

_BATCH = 500

_MIN_DELAY_NS = 1_000_000
"""Shortest delay of an altered message to report."""


class Sequence(NamedTuple):
    """A sequence diagram: its lifelines, and its steps in order, which are read on demand."""

    lifelines: list[Lifeline]
    steps: Iterator[Step]


class Window(NamedTuple):
    """A range of messages and one of events, by their ids, both inclusive."""

    messages: tuple[int, int]
    events: tuple[int, int]


def read_sequence(timeline: Timeline, part: PartRequest, player: str | None = None) -> Sequence:
    """Return the diagram of a part of a session; with `player`, of what that player could observe.

    Raises SelectionError if the part is empty, PositionError, and StorageError if the player has no
    known connection.
    """
    selection = select(timeline, part) if part != PartRequest() else None
    window = Window(selection.messages.span, selection.events.span) if selection is not None else None
    return _Reader(timeline, player, Visibility(timeline), window, selection, part.wanted).read()


def read_window(timeline: Timeline, window: Window, player: str | None, visibility: Visibility) -> Sequence:
    """Return the diagram of a window of a session. Raises StorageError as `read_sequence`."""
    return _Reader(timeline, player, visibility, window).read()


class _Reader:
    """The reader of a diagram: of a window, and in it of what is selected; None for the whole session."""

    def __init__(
        self,
        timeline: Timeline,
        player: str | None,
        visibility: Visibility,
        window: Window | None,
        selection: Selection | None = None,
        wanted: Filter | None = None,
    ) -> None:
        self._timeline = timeline
        self._player = player
        self._visibility = visibility
        self._window = window
        self._selection = selection
        self._wanted = wanted
        self._public = PublicMessages(self._visibility) if player == PUBLIC else None
        self._altered = AlteredMessages(timeline)
        self._shown = self._streams()
        self._lines = _Lines(
            self._shown,
            self._labels() if self._public is None else {},
        )

    def read(self) -> Sequence:
        if self._player not in (None, PUBLIC) and not self._visibility.streams_of(self._player):
            raise StorageError(f"no connection of {self._player} is known, so there is nothing to draw")
        apart = merge(self._kept_back(), self._connection_problems(), key=lambda step: step.ts_ns)
        return Sequence(self._lines.lifelines, fold(self._steps(apart), self._lines.connected))

    def _streams(self) -> Mapping[int, Stream]:
        """Return the streams with a message in the diagram, by id, oldest first."""
        own = None if self._player in (None, PUBLIC) else self._visibility.streams_of(self._player)
        used: Iterable[int]
        if self._selection is not None:
            used = self._selection.streams
        elif self._window is not None:
            query = "SELECT DISTINCT stream_id FROM messages WHERE id BETWEEN ? AND ?"
            used = {number for (number,) in self._timeline.connection.execute(query, self._window.messages)}
        else:
            used = [stream.id for stream in streams(self._timeline) if stream.messages]
        found = (self._timeline.stream(stream) for stream in sorted(used) if own is None or stream in own)
        if self._public is not None:
            found = (msgspec.structs.replace(stream, client=ALL_PLAYERS, player=None) for stream in found)
        return {stream.id: stream for stream in found}

    def _is_shown(self, message: int, stream: int) -> bool:
        """Return True if a message, by its id and that of its stream, belongs to the diagram."""
        if stream not in self._shown or (
            self._selection is not None and message not in self._selection.messages
        ):
            return False
        return self._window is None or self._window.messages[0] <= message <= self._window.messages[1]

    def _labels(self) -> dict[int, str]:
        """Return the labels of players by stream."""
        return {
            claim.stream: player.label for player in self._visibility.players() for claim in player.claims
        }

    # The rows.

    def _messages(self) -> Iterator[Message]:
        within = ("m.id BETWEEN ? AND ?", self._window.messages) if self._window is not None else ("1", ())
        for row in messages(self._timeline, *within):
            shown = row if self._public is None else self._public.first_copy(row)
            if shown is not None and self._is_shown(row.id, row.stream.id):
                yield shown

    def _events(self) -> Iterator[Event]:
        within = ("e.id BETWEEN ? AND ?", self._window.events) if self._window is not None else ("1", ())
        for event in self._timeline.events(*within):
            if self._selection is None or event.id in self._selection.events:
                yield event

    def _times(self) -> tuple[int, int] | None:
        """Return the times (ns) of the first and the last message of a part; None for the whole session."""
        if self._window is None:
            return None
        times = self._timeline.connection.execute(
            "SELECT min(ts_ns), max(ts_ns) FROM messages WHERE id IN (?, ?)", self._window.messages
        ).fetchone()
        return (0, -1) if times[0] is None else times

    def _kept_back(self) -> Iterator[Step]:
        """Yield the messages that were not forwarded; players cannot know of them."""
        if self._player is not None:
            return
        times = self._times()
        for row in Session(self._timeline).alterations(self._wanted):
            stream = self._timeline.numbers.row_id("streams", row.stream)
            if not row.is_kept_back or stream not in self._shown or not _is_within(times, row.ts_ns):
                continue
            server, client = self._lines.of_stream(stream)
            yield Arrow(
                row.ts_ns,
                row.time,
                None,
                row.direction,
                server,
                [client],
                row.name or "?",
                row.fields or {},
                altered=row.action,
                alteration=f"{ACTION_WORDS[row.action]} by {row.rule}",
                is_kept_back=True,
            )

    def _connection_problems(self) -> Iterator[Step]:
        """Yield the problems that concern no message; a filter selects messages only."""
        if self._wanted is not None:
            return
        times, groups = self._times(), visible_groups(self._player)
        condition = f"d.message_id IS NULL AND d.severity != 'note' AND d.grp IN ({placeholders(groups)})"
        for row in diagnostics(self._timeline, condition, groups):
            if row.stream.id in self._shown and _is_within(times, row.ts_ns):
                ends = sorted(self._lines.of_stream(row.stream.id))
                words = Problem(row.severity, row.code, row.text).words
                yield self._note(row.ts_ns, None, words, (ends[0], ends[1]), row.severity)

    # The steps.

    def _steps(self, apart: Iterator[Step]) -> Iterator[Step]:
        """Yield arrows in the order of messages, each event after the first message that reports it."""
        rows, queue, others = self._messages(), _Queue(self._events()), _Queue(apart)
        waiting: dict[int, Event] = {}
        while batch := list(islice(rows, _BATCH)):
            problems = diagnostics_of_messages(
                self._timeline, [row.id for row in batch], visible_groups(self._player)
            )
            for row in batch:
                while others.first is not None and others.first.ts_ns < row.ts_ns:
                    yield others.take()
                while (event := queue.first) is not None and _is_due(event, row):
                    queue.take()
                    if self._is_reported(event, row):
                        waiting[event.id] = event
                    else:
                        yield from self._event_notes(event)
                yield self._arrow(row, problems.get(row.id, ()))
                reported = waiting.pop(row.event_id, None) if row.event_id is not None else None
                if reported is not None:
                    yield from self._event_notes(reported)
        while others.first is not None:
            yield others.take()
        while queue.first is not None:
            yield from self._event_notes(queue.take())

    def _is_reported(self, event: Event, row: Message) -> bool:
        """Return True if a message of the diagram reports an event, this row or a later one."""
        if event.id == row.event_id:
            return True
        if self._public is not None:
            rows = messages(self._timeline, "m.event_id = ? AND m.id > ?", (event.id, row.id))
            return any(self._public.first_copy(later) is not None for later in rows)
        query = "SELECT id, stream_id FROM messages WHERE event_id = ? AND id > ?"
        return any(
            self._is_shown(*found) for found in self._timeline.connection.execute(query, (event.id, row.id))
        )

    def _event_notes(self, event: Event) -> Iterator[Step]:
        seen = self._visibility.seen(event, self._player)
        if seen is not None and self._lines.lifelines:
            ends = self._lines.of_server(self._timeline.table(seen.table_id).server)
            number = self._timeline.numbers.number("events", seen.id)
            yield self._note(seen.ts_ns, number, self._visibility.sentence(seen), ends)

    def _note(
        self,
        ts_ns: int,
        number: int | None,
        text: str,
        ends: tuple[int, int],
        severity: Severity | None = None,
    ) -> Note:
        return Note(ts_ns, self._timeline.seconds(ts_ns), number, text, *ends, severity)

    def _arrow(self, row: Message, found: Iterable[MessageDiagnostic]) -> Arrow:
        server, client = self._lines.of_stream(row.stream.id)
        # Players cannot know alterations.
        altered = self._altered.of(row.id) if self._player is None else None
        return Arrow(
            row.ts_ns,
            self._timeline.seconds(row.ts_ns),
            self._timeline.numbers.number("messages", row.id),
            row.direction,
            server,
            [client],
            row.name,
            row.fields,
            row.event_id,
            _summary(row),
            tuple(Problem(one.severity, one.code, one.text) for one in found if one.severity != "note"),
            altered.action if altered is not None else None,
            _alteration(altered) if altered is not None else None,
        )


class _Lines:
    """The lifelines of streams: of each server's clients in order of connection, then of the server."""

    def __init__(self, shown: Mapping[int, Stream], labels: Mapping[int, str]) -> None:
        self._labels = labels
        self.lifelines: list[Lifeline] = []
        self._clients: dict[int, int] = {}
        self._servers: dict[str, tuple[int, int]] = {}
        self._streams: dict[int, list[Stream]] = {}
        by_server: dict[str, list[Stream]] = {}
        for stream in shown.values():
            by_server.setdefault(stream.server, []).append(stream)
        self._of_server: dict[int, str] = {stream.id: stream.server for stream in shown.values()}
        hosts = {server.rpartition(":")[0] for server in by_server}
        room = MAX_CLIENTS
        for server, own in by_server.items():
            first = len(self.lifelines)
            room -= self._add_clients(own, max(room, 1))
            self._servers[server] = first, len(self.lifelines)
            self._streams[len(self.lifelines)] = own
            # Servers on one host differ in their ports only.
            name = server if len(hosts) > 1 else f"server :{server.rpartition(':')[2]}"
            self.lifelines.append(Lifeline("server" if len(by_server) == 1 else name, server, True))

    def _add_clients(self, own: list[Stream], room: int) -> int:
        """Add the lifelines of a server's clients; return their number."""
        names = self._clients_by_name(own)
        if len(names) > room:
            kept = [*names][: room - 1]
            others = [stream for name in [*names][room - 1 :] for stream in names[name]]
            names = {
                **{name: names[name] for name in kept},
                f"{len(names) - len(kept)} other clients": others,
            }
        for name, several in names.items():
            for stream in several:
                self._clients[stream.id] = len(self.lifelines)
            address = several[0].client if len({stream.client for stream in several}) == 1 else None
            self.lifelines.append(Lifeline(name, address, False))
        return len(names)

    def _clients_by_name(self, own: list[Stream]) -> dict[str, list[Stream]]:
        """Return the streams of each player by name, where the name is that of one player, else by label."""
        players: dict[str, list[Stream]] = {}
        for stream in own:
            label = self._labels.get(stream.id) or stream.player or stream.client
            players.setdefault(label, []).append(stream)
        names = {label: streams[-1].player or label for label, streams in players.items()}
        count = Counter(names.values())
        # Servers may call players by number, as in CGML.
        return {
            names[label] if count[names[label]] == 1 and names[label] not in players else label: streams
            for label, streams in players.items()
        }

    def of_stream(self, stream: int) -> tuple[int, int]:
        """Return the lifelines of a stream's server and client."""
        return self._servers[self._of_server[stream]][1], self._clients[stream]

    def of_server(self, server: str) -> tuple[int, int]:
        """Return the first and the last lifeline of a server's table; of the diagram if it has none."""
        return self._servers.get(server, (0, len(self.lifelines) - 1))

    def connected(self, server: int, ts_ns: int) -> int:
        """Return the number of clients connected to a server's lifeline at a time."""
        there = (
            self._clients[stream.id]
            for stream in self._streams[server]
            if stream.opened_ns <= ts_ns and (stream.closed_ns is None or ts_ns <= stream.closed_ns)
        )
        return len({*there})


_Item = TypeVar("_Item")


class _Queue(Generic[_Item]):
    """The items of an iterator, of which the next one can be looked at."""

    def __init__(self, items: Iterator[_Item]) -> None:
        self._items = items
        self.first = next(items, None)

    def take(self) -> _Item:
        first, self.first = self.first, next(self._items, None)
        assert first is not None
        return first


def _is_due(event: Event, row: Message) -> bool:
    """Return True if an event belongs before or just after a message."""
    return event.ts_ns < row.ts_ns or (row.event_id is not None and event.id <= row.event_id)


def _summary(row: Message) -> str | None:
    """Return the description of a message if it contains its main fields, or if it has no fields."""
    dissector = dissector_of(row.stream.protocol)
    if dissector is None:
        return None
    if row.fields:
        kind = dissector.grammar.row_of(row.name, row.direction, row.fields)
        if kind is None or kind.summary is None:
            return None
    return dissector.presentation.gloss(row.name, row.direction, row.fields)


def _alteration(altered: StoredAlteration) -> str:
    said = "" if altered.fields is None else field_words(altered.fields)
    text = alteration_text(altered, said) if altered.action == "change" else ""
    text = text or f"{ACTION_WORDS[altered.action]} by {altered.rule}"
    if altered.sent_ns is not None and altered.ts_ns - altered.sent_ns >= _MIN_DELAY_NS:
        text += f", {(altered.ts_ns - altered.sent_ns) / 1e9:.3f} s after it was sent"
    return text


def _is_within(times: tuple[int, int] | None, ts_ns: int) -> bool:
    return times is None or times[0] <= ts_ns <= times[1]
