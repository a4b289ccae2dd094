"""One message in full: its bytes and what took them, what is wrong with it, and what it tells of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.dissection_tree import Piece, whole
from kiebitz.dissectors.grammar.grammar import MessageType, unreadable
from kiebitz.dissectors.model import Blame, Direction, Group, Severity
from kiebitz.dissectors.model import Event as StoredEvent
from kiebitz.dissectors.model import Message as StoredMessage
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.alterations import AlteredMessages, StoredAlteration
from kiebitz.storage.read.message_queries import diagnostics, groups_seen, marks, messages
from kiebitz.storage.read.players import name_of_stream
from kiebitz.storage.read.recorded_bytes import sent_between
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.session import Event, Message, event_record, message_record, project

MOST_BYTES = 1 << 16
"""So much of a message is read (bytes)."""

MOST_COPIES = 50
"""So many of a message's copies are told one by one."""


class RowInFull(msgspec.Struct, frozen=True):
    """What the grammar says of a message: what it means, how it is written, and where that is specified.

    `deviation` says how it differs from the specification, if it does.
    """

    meaning: str
    notation: str | None
    clause: str
    deviation: str | None


class FlawInFull(msgspec.Struct, frozen=True):
    """Something that is wrong with the message, or worth a note; `offset` counts from its first byte."""

    id: int
    severity: Severity
    group: Group
    code: str
    text: str
    offset: int
    length: int
    expected: str | None
    clause: str | None
    blame: Blame
    suggestion: str | None


class ChangeInFull(msgspec.Struct, frozen=True):
    """A step of the state: the value at a path, None where it was taken away, and what it was before.

    JSON has no `before` where nothing was known.
    """

    path: tuple[str, ...]
    value: Any
    before: Any = msgspec.UNSET


class Copy(msgspec.Struct, frozen=True):
    """The same told to another client, so many seconds later (earlier, below zero)."""

    number: int
    id: int
    stream: int
    client: str
    player: str | None
    seconds: float


class AsSent(msgspec.Struct, frozen=True):
    """What had been sent in place of a message that Kiebitz has altered, and by which rule.

    All but the rule is None if nothing was. Of its bytes `left_out` are not in `data`. `time` is in seconds
    since the session began.
    """

    rule: str
    time: float | None
    name: str | None
    fields: dict[str, Any] | None
    data: bytes | None
    left_out: int


class MessageInFull(msgspec.Struct, frozen=True):
    """One message, and all that a session knows of it.

    `protocol` is None where none was recognised, and `about` where it cannot be told which row of the grammar
    this is. Of the message's bytes `left_out` are not in `data`: there are too many, or they were not
    recorded. `changes` are those of its `event`. Of its copies, `copies_in_all`, the first are listed.
    """

    message: Message
    protocol: str | None
    about: RowInFull | None
    data: bytes
    left_out: int
    pieces: tuple[Piece, ...]
    flaws: tuple[FlawInFull, ...]
    event: Event | None
    changes: tuple[ChangeInFull, ...]
    copies: tuple[Copy, ...]
    copies_in_all: int
    as_sent: AsSent | None


class InFull:
    """Tells the messages of one session in full. What it learns of the players it keeps."""

    def __init__(self, timeline: Timeline, hearers: Visibility | None = None) -> None:
        self.timeline = timeline
        self._hearers = hearers or Visibility(timeline)
        self._player = name_of_stream(timeline)

    def message(self, message_id: int, as_player: str | None = None) -> MessageInFull | None:
        """A message by its id; None if the session has none of that.

        With `as_player` only what that player could know: None for a message on another's connection, and of
        what is wrong only what the bytes show, as all else is judged from everybody's. Raises StorageError
        where that cannot be told.
        """
        row = next(messages(self.timeline, "m.id = ?", [message_id]), None)
        if row is None:
            return None
        protocol = row.stream.protocol
        dissector = dissector_of(protocol)
        if as_player is not None and protocol is not None and dissector is None:
            raise StorageError(f"what {as_player} could know cannot be told: {not_installed(protocol)}")
        if as_player is not None and row.stream.id not in self._hearers.streams_of(as_player):
            return None
        record = self._event(row.event_id)
        seen = record if record is None or as_player is None else self._hearers.seen(record, as_player)
        if seen is None:
            row = msgspec.structs.replace(row, event_id=None)
        data = self._data(row)
        # A player knows what came, not what was done on the way.
        altered = AlteredMessages(self.timeline).of(row.id) if as_player is None else None
        done = None if altered is None else altered.action
        copies, in_all = self._copies(row, as_player)
        return MessageInFull(
            message_record(self.timeline, row, self._player(row.stream.id), done),
            protocol,
            _about(dissector, row, data),
            data,
            max(row.length - len(data), 0),
            _pieces(dissector, row.direction, data),
            tuple(self._flaws(row, as_player)),
            None if seen is None else self._told(seen, as_player),
            () if record is None or seen is None else tuple(self._changes(record, as_player)),
            copies,
            in_all,
            None if altered is None else self._as_sent(altered),
        )

    def neighbours(self, message: Message, count: int) -> tuple[list[StoredMessage], list[StoredMessage]]:
        """Up to so many messages before and after one on its stream, oldest first.

        A player who may see it may see these."""
        same = "m.stream_id = ?"
        stream = self.timeline.numbers.row_id("streams", message.stream)
        before = messages(self.timeline, same, [stream], None, message.id)
        after = messages(self.timeline, same, [stream], message.id)
        return [*islice(before, count)][::-1], [*islice(after, count)]

    def _as_sent(self, row: StoredAlteration) -> AsSent:
        original = row.original
        return AsSent(
            row.rule,
            None if row.sent_ns is None else self.timeline.seconds(row.sent_ns),
            row.name,
            row.fields,
            None if original is None else original[:MOST_BYTES],
            max(len(original or b"") - MOST_BYTES, 0),
        )

    def _data(self, row: StoredMessage) -> bytes:
        """The message's first bytes, up to a gap."""
        end = row.offset + min(row.length, MOST_BYTES)
        connection = self.timeline.connection
        for stretch in sent_between(connection, row.stream.id, row.direction, row.offset, end):
            if stretch.offset == row.offset and stretch.data is not None:
                return stretch.data
        return b""

    def _flaws(self, row: StoredMessage, as_player: str | None) -> Iterator[FlawInFull]:
        for flaw in diagnostics(self.timeline, "d.message_id = ?", [row.id]):
            if flaw.group in groups_seen(as_player):
                yield project(FlawInFull, flaw, offset=flaw.offset - row.offset)

    # What it tells of.

    def _event(self, event_id: int | None) -> StoredEvent | None:
        return next(self.timeline.events("e.id = ?", [event_id]), None) if event_id is not None else None

    def _told(self, event: StoredEvent, as_player: str | None) -> Event:
        done = AlteredMessages(self.timeline).action_of_event(event.id) if as_player is None else None
        return event_record(self.timeline, event, self._hearers.sentence(event), done)

    def _changes(self, event: StoredEvent, as_player: str | None) -> Iterator[ChangeInFull]:
        """What an event changed, as far as a player could know."""
        if not event.changes:
            return
        if as_player is None:
            changes, before = event.changes, self.timeline.state_at(event.table_id, event.seq - 1)
        else:
            changes = self._hearers.changes(event, as_player)
            before = self._hearers.state(as_player, event.table_id, event.seq - 1)
        for path, value in changes:
            yield ChangeInFull(self.timeline.numbers.path(path), value, _at(before, path))

    def _copies(self, row: StoredMessage, as_player: str | None) -> tuple[tuple[Copy, ...], int]:
        """The first copies of a message, and how many there are in all; others' are not shown to a player."""
        if row.event_id is None:
            return (), 0
        same = "m.event_id = ? AND +m.name = ? AND +m.direction = ? AND m.id != ?"
        given: list[Any] = [row.event_id, row.name, row.direction, row.id]
        if as_player is not None:
            streams = sorted(self._hearers.streams_of(as_player))
            same += f" AND +m.stream_id IN ({marks(streams)})"
            given += streams
        connection = self.timeline.connection
        (in_all,) = connection.execute(f"SELECT count(*) FROM messages AS m WHERE {same}", given).fetchone()
        found = connection.execute(
            "SELECT m.id, m.stream_id, s.client, m.ts_ns FROM messages AS m"
            f" JOIN streams AS s ON s.id = m.stream_id WHERE {same} ORDER BY m.id LIMIT {MOST_COPIES}",
            given,
        )
        numbers = self.timeline.numbers
        copies = (
            Copy(
                numbers.number("messages", copy),
                copy,
                numbers.number("streams", stream),
                client,
                self._player(stream),
                (ts_ns - row.ts_ns) / 1e9,
            )
            for copy, stream, client, ts_ns in found
        )
        return tuple(copies), in_all


def _pieces(dissector: Dissector | None, direction: Direction, data: bytes) -> tuple[Piece, ...]:
    """What took the bytes; all of them are in one piece where the protocol is not installed."""
    return whole(data, unreadable(), "") if dissector is None else dissector.codec.anatomy(data, direction)


def _about(dissector: Dissector | None, row: StoredMessage, data: bytes) -> RowInFull | None:
    """What the grammar says of a message."""
    if dissector is None:
        return None
    read = dissector.codec.decode(data, row.direction).row
    # Of one that is not read to its end the name must do.
    found = read if read is not None and read.name == row.name else _row_of(dissector, row)
    if found is None:
        return None
    return RowInFull(found.description, dissector.codec.notation(found), found.clause, found.deviation)


def _row_of(dissector: Dissector, row: StoredMessage) -> MessageType | None:
    return dissector.grammar.row_of(row.name, row.direction, row.fields)


def _at(state: Any, path: Sequence[str]) -> Any:
    """The value at a path of a state, UNSET if there is none."""
    for step in path:
        if not isinstance(state, dict) or step not in state:
            return msgspec.UNSET
        state = state[step]
    return state
