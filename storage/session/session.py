"""A session as other programs read it: typed records of messages, events and diagnostics.

Times are seconds since the start of the session; `ts_ns` is the same time in nanoseconds since 1970 UTC. A
`number` counts within the session, and records refer to others by it; an `id` is that of the row in the
database. Short collections are lists; those that may be long are iterators that read on demand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Action, Blame, Direction, Group, Severity, Transport
from kiebitz.dissectors.model import Event as StoredEvent
from kiebitz.dissectors.model import Message as StoredMessage
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.opening import LOCK_TIMEOUT_S
from kiebitz.storage.read.alterations import (
    AlteredMessages,
    alterations,
    altered_message_ids,
    original_filter,
)
from kiebitz.storage.read.conditions import compile_optional_filter, sql_condition
from kiebitz.storage.read.event_text import seconds_between, utc
from kiebitz.storage.read.message_queries import StoredDiagnostic
from kiebitz.storage.read.message_queries import diagnostics as stored_diagnostics
from kiebitz.storage.read.message_queries import messages as stored_messages
from kiebitz.storage.read.message_queries import streams as stored_streams
from kiebitz.storage.read.players import named_result
from kiebitz.storage.read.seek import Position, find_game, game_at, parse_position, state_of_game, tables_at
from kiebitz.storage.read.seen_rows import SeenRows
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.follower import Follower

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.dissectors.statistics.results import TableStatistics

_POLL_S = 0.05
"""Seconds between two polls of a session that is being recorded."""


class Stream(msgspec.Struct, frozen=True):
    """A TCP connection, or a pair of UDP addresses; `protocol` is None if none was recognized."""

    number: int
    id: int
    protocol: str | None
    transport: Transport
    client: str
    server: str
    player: str | None
    opened: float
    closed: float | None
    close_reason: str | None
    messages: int
    bytes: int
    missing_c2s: int
    missing_s2c: int
    """Number of missing bytes in this direction, as far as known."""


class Game(msgspec.Struct, frozen=True):
    """A game; `ended` and `result` are None while it is running, or if its end was not recorded.

    `seconds` is its duration, None also if the clock of a capture was set back meanwhile. `result` identifies
    players as the server does, by number or by name; `named_result` by name.
    """

    number: int
    id: int
    protocol: str
    server: str
    label: str
    started: float
    ended: float | None
    seconds: float | None
    result: dict[str, Any] | None
    named_result: dict[str, Any] | None


class Message(msgspec.Struct, frozen=True):
    """A message with the client that sent or received it, and the position of its bytes in the stream.

    `event` is the number of the event that it reports, None if it reports none.
    """

    number: int
    id: int
    time: float
    ts_ns: int
    stream: int
    direction: Direction
    client: str
    player: str | None
    server: str
    name: str
    gloss: str | None
    fields: dict[str, Any]
    offset: int
    length: int
    game: int | None
    event: int | None
    altered: Action | None
    """The action by which Kiebitz altered it."""


class Alteration(msgspec.Struct, frozen=True):
    """An alteration of a message by Kiebitz; `rule` is the text of the rule that caused it.

    `name`, `fields` and `original` are those of the original message, sent at `sent`; all None if there was
    none. It was replaced by `length` bytes at `offset`, 0 if it was dropped; `message` is the number of the
    message there.
    """

    id: int
    time: float
    ts_ns: int
    stream: int
    direction: Direction
    client: str
    player: str | None
    server: str
    action: Action
    rule: str
    sent: float | None
    name: str | None
    fields: dict[str, Any] | None
    original: bytes | None
    offset: int
    length: int
    message: int | None

    @property
    def is_kept_back(self) -> bool:
        """True if a message was sent and nothing of it was forwarded."""
        return self.original is not None and not self.length


class Event(msgspec.Struct, frozen=True):
    """Something that happened at a table, however many messages report it; `actor` may be None."""

    number: int
    id: int
    time: float
    ts_ns: int
    table: int
    server: str
    game: int | None
    kind: str
    actor: str | None
    sentence: str
    data: dict[str, Any]
    seq: int
    altered: Action | None
    """The action by which Kiebitz altered a message that reports it."""


class Diagnostic(msgspec.Struct, frozen=True):
    """A violation or a note: its location, the expectation, and the blamed side.

    `offset` and `length` are bytes in the direction of the stream; `message` is the number of the message.
    """

    id: int
    time: float
    ts_ns: int
    severity: Severity
    group: Group
    code: str
    text: str
    blame: Blame
    stream: int
    direction: Direction
    offset: int
    length: int
    expected: str | None
    clause: str | None
    message: int | None
    name: str | None
    event: int | None


class Table(msgspec.Struct, frozen=True):
    """A game table at a position: `event` is the number of its last event, None before the first."""

    id: int
    protocol: str
    server: str
    event: int | None
    time: float | None
    state: State


class Session:
    """One recorded session; as a context manager it is closed at the end.

    Filters are expressions of the filter language, and raise FilterError. `as_player` restricts the result to
    what this player could know; raises StorageError if a protocol is not installed.
    """

    def __init__(self, timeline: Timeline, path: str | None = None, lacks: str | None = None) -> None:
        self.timeline = timeline
        self.path = path
        """Path of its database; None if it is in memory."""
        self.lacks = lacks if lacks is not None else timeline.session.lacks
        """Losses of its capture, in clauses; None if there are none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its database; nothing can be read afterwards."""
        self.timeline.connection.close()

    @property
    def name(self) -> str:
        """The name: by default the file or the address that it was recorded from."""
        return self.timeline.session.name

    @property
    def started(self) -> datetime | None:
        """The start time; None if nothing was recorded."""
        started_ns = self.timeline.session.started_ns
        return None if started_ns is None else utc(started_ns)

    @property
    def ended(self) -> datetime | None:
        """The end time; None while it is being recorded, or if its recorder died."""
        ended_ns = self.timeline.session.ended_ns
        return None if ended_ns is None else utc(ended_ns)

    def streams(self) -> list[Stream]:
        """Return the streams, oldest first."""
        return [
            project(
                Stream,
                row,
                number=self.timeline.numbers.number("streams", row.id),
                opened=self.timeline.seconds(row.opened_ns),
                closed=None if row.closed_ns is None else self.timeline.seconds(row.closed_ns),
            )
            for row in stored_streams(self.timeline)
        ]

    def games(self) -> list[Game]:
        """Return the games, oldest first."""
        return [
            project(
                Game,
                row,
                number=self.timeline.numbers.number("games", row.id),
                server=self.timeline.table(row.table_id).server,
                started=self.timeline.seconds(row.started_ns),
                ended=None if row.ended_ns is None else self.timeline.seconds(row.ended_ns),
                seconds=seconds_between(row.started_ns, row.ended_ns),
                named_result=named_result(self.timeline, row),
            )
            for row in self.timeline.games()
        ]

    def messages(self, wanted: str | Filter | None = None, after: int = 0) -> Iterator[Message]:
        """Yield the messages numbered above `after` that pass a filter, in order."""
        condition = sql_condition(self.timeline, _compiled(wanted), "messages")
        altered = AlteredMessages(self.timeline)
        above = self.timeline.numbers.row_id("messages", after)
        for row in stored_messages(self.timeline, *condition, above):
            yield message_record(self.timeline, row, altered)

    def alterations(self, wanted: str | Filter | None = None, after: int = 0) -> Iterator[Alteration]:
        """Yield the alterations with ids above `after`, in order.

        A filter applies to the original messages.
        """
        passes = original_filter(self.timeline, _compiled(wanted))
        numbers = self.timeline.numbers
        came = altered_message_ids(self.timeline, after)
        for row in alterations(self.timeline, after=after):
            if not passes(row):
                continue
            yield project(
                Alteration,
                row,
                time=self.timeline.seconds(row.ts_ns),
                stream=numbers.number("streams", row.stream.id),
                client=row.stream.client,
                player=row.stream.player,
                server=row.stream.server,
                sent=None if row.sent_ns is None else self.timeline.seconds(row.sent_ns),
                message=numbers.number_if_any("messages", came.get(row.id)),
            )

    def events(
        self, wanted: str | Filter | None = None, as_player: str | None = None, after: int = 0
    ) -> Iterator[Event]:
        """Yield the events numbered above `after` that pass a filter, in order.

        With `as_player`, the filter applies to what this player sees.
        """
        if as_player is not None:
            yield from self._seen_events(_compiled(wanted), as_player, after)
            return
        condition, parameters = sql_condition(self.timeline, _compiled(wanted), "events")
        visibility = Visibility(self.timeline)
        altered = AlteredMessages(self.timeline)
        above = self.timeline.numbers.row_id("events", after)
        for event in self.timeline.events(f"e.id > ? AND ({condition})", [above, *parameters]):
            yield event_record(visibility, event, altered)

    def _seen_events(self, wanted: Filter | None, player: str, after: int) -> Iterator[Event]:
        """Yield the events that a player sees, without alterations, which players cannot know."""
        visibility = Visibility(self.timeline)
        rows = SeenRows(visibility, player, wanted)
        above = self.timeline.numbers.row_id("events", after)
        for seen in filter(None, map(rows.event, self.timeline.events("e.id > ?", [above]))):
            yield event_record(visibility, seen, None)

    def diagnostics(self, wanted: str | Filter | None = None) -> Iterator[Diagnostic]:
        """Yield the diagnostics that pass a filter, in order of time."""
        condition = sql_condition(self.timeline, _compiled(wanted), "diagnostics")
        for row in stored_diagnostics(self.timeline, *condition):
            yield project(Diagnostic, row, **diagnostic_numbers(self.timeline, row))

    def state(
        self, at: str | Position = "end", as_player: str | None = None, game: int | None = None
    ) -> list[Table]:
        """Return every table at a position ("12.5s", "#7" just after event 7, "end"), or that of one game.

        Raises PositionError for a position or a game that the session does not have.
        """
        moment = parse_position(at) if isinstance(at, str) else at
        numbers = self.timeline.numbers
        found = tables_at(self.timeline, moment) if game is None else [game_at(self.timeline, game, moment)]
        if as_player is not None:
            visibility = Visibility(self.timeline)
            game_row = numbers.row_id_if_any("games", game)
            known = visibility.tables_of(as_player)
            found = [table for table in found if table.table.id in known]
            for table in found:
                place = table.table.id, table.seq
                table.state = visibility.state(as_player, *place)
                if game_row is not None:
                    table.state = state_of_game(
                        visibility, as_player, place[0], game_row, place[1], table.state
                    )
        return [
            Table(
                table.table.id,
                table.table.protocol,
                table.table.server,
                numbers.number("events", table.event.id) if table.event is not None else None,
                self.timeline.seconds(table.event.ts_ns) if table.event is not None else None,
                numbers.state(table.state),
            )
            for table in found
        ]

    def statistics(
        self,
        wanted: str | Filter | None = None,
        game: int | None = None,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> list[TableStatistics]:
        """Return the statistics of each table, limited to a filter and to one game if given.

        `on_progress` is called now and then with the number of events read. Raises PositionError for a game
        that the session does not have.
        """
        from kiebitz.storage.statistics.session_statistics import session_statistics

        with self.timeline.as_of_now():
            row = find_game(self.timeline, game) if game is not None else None
            return session_statistics(self.timeline, _compiled(wanted), row, on_progress)

    def follow(self, wanted: str | Filter | None = None) -> Iterator[Event]:
        """Yield the existing events, then new ones, until the session ends or its recorder disappears.

        The iterator waits for events and yields them within 50 ms after they were stored.
        """
        compiled = _compiled(wanted)
        latest = 0
        for _ in self.looks():
            newest = max(latest, self.timeline.numbers.number("events", self.timeline.last_event()))
            for event in self.events(compiled, after=latest):
                newest = max(newest, event.number)
                yield event
            latest = newest

    def looks(self) -> Iterator[None]:
        """Yield now, then about every 50 ms while the session is recorded, and once more after its end.

        If the recording continues in another database, so does the session.
        """
        follower = Follower(self.timeline, self.path, round(LOCK_TIMEOUT_S * 1000))
        while True:
            # It reads the end first, so that nothing written before it is missed.
            follower.look()
            yield
            if not follower.is_live:
                if not follower.go_on():
                    return
                self.close()
                self.timeline, self.path = follower.timeline, follower.path
            time.sleep(_POLL_S)

    def reread(self) -> None:
        """Reread the session's row, for example to see whether it has ended."""
        self.timeline.reread()


_Record = TypeVar("_Record", bound=msgspec.Struct)


def project(kind: type[_Record], record: msgspec.Struct, **other: Any) -> _Record:
    """Return a `kind` with the values of `other`, and the same fields of `record` otherwise."""
    return kind(*(other[name] if name in other else getattr(record, name) for name in kind.__struct_fields__))


def message_record(timeline: Timeline, row: StoredMessage, altered: AlteredMessages | None) -> Message:
    """Return the record of a stored message; without `altered`, it does not show an alteration."""
    numbers, stream = timeline.numbers, row.stream
    dissector = dissector_of(stream.protocol)
    return Message(
        numbers.number("messages", row.id),
        row.id,
        timeline.seconds(row.ts_ns),
        row.ts_ns,
        numbers.number("streams", stream.id),
        row.direction,
        stream.client,
        stream.player,
        stream.server,
        row.name,
        dissector.presentation.gloss(row.name, row.direction, row.fields) if dissector is not None else None,
        row.fields,
        row.offset,
        row.length,
        numbers.number_if_any("games", row.game_id),
        numbers.number_if_any("events", row.event_id),
        altered.action(row.id) if altered is not None else None,
    )


def event_record(visibility: Visibility, seen: StoredEvent, altered: AlteredMessages | None) -> Event:
    """Return the record of an event as a viewer sees it; without `altered`, it does not show alterations."""
    timeline = visibility.timeline
    numbers = timeline.numbers
    return project(
        Event,
        seen,
        number=numbers.number("events", seen.id),
        time=timeline.seconds(seen.ts_ns),
        table=seen.table_id,
        server=timeline.table(seen.table_id).server,
        game=numbers.number_if_any("games", seen.game_id),
        sentence=visibility.sentence(seen),
        altered=altered.action_of_event(seen.id) if altered is not None else None,
    )


def diagnostic_numbers(timeline: Timeline, row: StoredDiagnostic) -> dict[str, Any]:
    """Return those fields of a `Diagnostic` for which a stored one has row ids or nanoseconds."""
    numbers = timeline.numbers
    return {
        "time": timeline.seconds(row.ts_ns),
        "stream": numbers.number("streams", row.stream.id),
        "message": numbers.number_if_any("messages", row.message_id),
        "name": row.message,
        "event": numbers.number_if_any("events", row.event_id),
    }


def _compiled(wanted: str | Filter | None) -> Filter | None:
    return compile_optional_filter(wanted) if isinstance(wanted, str) else wanted
