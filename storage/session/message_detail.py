"""One message in detail: its annotated bytes, its diagnostics, its event and copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.dissection_tree import Piece, whole
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.grammar.grammar import unreadable
from kiebitz.dissectors.model import PUBLIC, Blame, Direction, Group, Severity
from kiebitz.dissectors.model import Event as StoredEvent
from kiebitz.dissectors.model import Message as StoredMessage
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.alterations import AlteredMessages, StoredAlteration
from kiebitz.storage.read.message_queries import diagnostics, messages, placeholders, visible_groups
from kiebitz.storage.read.recorded_bytes import RecordedFrames, bytes_between
from kiebitz.storage.read.seen_rows import DiagnosticNumbers, PublicMessages
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.session import Event, Message, event_record, message_record, project

MAX_BYTES = 1 << 16
"""Maximum bytes of a message to read."""

_MAX_CARRIED = 4 * FRAME_LIMIT
"""Maximum bytes to read of what carries a message."""

MAX_COPIES = 50
"""Maximum number of a message's copies to list."""


class GrammarDescription(msgspec.Struct, frozen=True):
    """The grammar's description of a message: its meaning, notation, and clause of the specification.

    `deviation` describes how it differs from the specification, if it does.
    """

    meaning: str
    notation: str | None
    clause: str
    deviation: str | None


class DiagnosticDetail(msgspec.Struct, frozen=True):
    """A diagnostic of the message; `offset` counts from its first byte."""

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


class ChangeDetail(msgspec.Struct, frozen=True):
    """A change of the state: the new value at a path, None if it was removed, and the previous value.

    JSON has no `before` if there was no previous value.
    """

    path: tuple[str, ...]
    value: Any
    before: Any = msgspec.UNSET


class BroadcastCopy(msgspec.Struct, frozen=True):
    """A copy of the message on another connection, `seconds` later (negative: earlier)."""

    number: int
    id: int
    stream: int
    client: str
    player: str | None
    seconds: float


class OriginalMessage(msgspec.Struct, frozen=True):
    """The original of a message that Kiebitz has altered, and the rule that altered it.

    All but the rule is None if there was no original. `left_out` bytes are missing from `data`. `time` is in
    seconds since the start of the session.
    """

    rule: str
    time: float | None
    name: str | None
    fields: dict[str, Any] | None
    data: bytes | None
    left_out: int


class MessageDetail(msgspec.Struct, frozen=True, rename={"diagnostics": "flaws"}):
    """One message with everything that a session knows about it.

    `protocol` is None if none was recognized, and `about` if the message matches no row of the grammar.
    `left_out` bytes of the message are missing from `data`: there are too many, or they were not recorded.
    `changes` are those of its `event`. Of `copies_in_all` copies the first are listed.
    """

    message: Message
    protocol: str | None
    about: GrammarDescription | None
    data: bytes
    left_out: int
    pieces: tuple[Piece, ...]
    diagnostics: tuple[DiagnosticDetail, ...]
    event: Event | None
    changes: tuple[ChangeDetail, ...]
    copies: tuple[BroadcastCopy, ...]
    copies_in_all: int
    as_sent: OriginalMessage | None


class MessageDetails:
    """Looks up messages of one session in detail."""

    def __init__(self, timeline: Timeline, visibility: Visibility | None = None) -> None:
        self.timeline = timeline
        self._visibility = visibility or Visibility(timeline)

    def message(self, message_id: int, as_player: str | None = None) -> MessageDetail | None:
        """Return a message by its id; None if the session has no such message.

        With `as_player` the result contains only what that player could know: None for a message on another's
        connection, or one that is not public, and only diagnostics that follow from the bytes, as others
        depend on all connections. If that cannot be determined, it raises StorageError.
        """
        row = next(messages(self.timeline, "m.id = ?", [message_id]), None)
        if row is None:
            return None
        protocol = row.stream.protocol
        dissector = dissector_of(protocol)
        if as_player is not None and protocol is not None and dissector is None:
            raise StorageError(f"the view of {as_player} cannot be determined: {not_installed(protocol)}")
        if as_player == PUBLIC:
            public = PublicMessages(self._visibility).as_public(row)
            if public is None:
                return None
            row = public
        elif as_player is not None and row.stream.id not in self._visibility.streams_of(as_player):
            return None
        record = self._event(row.event_id)
        seen = record if record is None else self._visibility.seen(record, as_player)
        if seen is None:
            row = msgspec.structs.replace(row, event_id=None)
        frame = self._frame(row, dissector)
        data = frame.data[:MAX_BYTES]
        # A player knows the received bytes, not the alterations.
        altered = AlteredMessages(self.timeline) if as_player is None else None
        alteration = altered.of(row.id) if altered is not None else None
        copies, in_all = self._copies(row, as_player)
        return MessageDetail(
            message_record(self.timeline, row, altered),
            protocol,
            _about(dissector, row, data),
            data,
            max((len(frame.data) if frame.spans else row.length) - len(data), 0),
            _pieces(dissector, row.direction, data),
            tuple(self._diagnostics(row, frame, as_player)),
            None if seen is None else event_record(self._visibility, seen, altered),
            () if record is None or seen is None else tuple(self._changes(record, as_player)),
            copies,
            in_all,
            None if alteration is None else self._as_sent(alteration, dissector, row.direction),
        )

    def neighbours(self, message: Message, count: int) -> tuple[list[StoredMessage], list[StoredMessage]]:
        """Return up to `count` messages before and after one on its stream, oldest first.

        If a player may see the message, it may see these, too; the public view has none of them.
        """
        same = "m.stream_id = ?"
        stream = self.timeline.numbers.row_id("streams", message.stream)
        before = messages(self.timeline, same, [stream], None, message.id)
        after = messages(self.timeline, same, [stream], message.id)
        return [*islice(before, count)][::-1], [*islice(after, count)]

    def _as_sent(
        self, row: StoredAlteration, dissector: Dissector | None, direction: Direction
    ) -> OriginalMessage:
        original = row.original
        carried = dissector.encapsulation if dissector is not None else None
        if original is not None and carried is not None:
            frame = carried.unwrap(original, direction)
            original = original if frame is None else frame.data
        return OriginalMessage(
            row.rule,
            None if row.sent_ns is None else self.timeline.seconds(row.sent_ns),
            row.name,
            row.fields,
            None if original is None else original[:MAX_BYTES],
            max(len(original or b"") - MAX_BYTES, 0),
        )

    def _frame(self, row: StoredMessage, dissector: Dissector | None) -> Frame:
        """Return the message's frame; of its own bytes the first ones, up to a gap."""
        between = partial(bytes_between, self.timeline.connection)
        place = row.stream.id, row.direction, row.offset
        if dissector is not None and dissector.encapsulation is not None:
            return RecordedFrames(between).frame(dissector, *place, min(row.length, _MAX_CARRIED))
        for piece in between(*place, row.offset + min(row.length, MAX_BYTES)):
            if piece.offset == row.offset and piece.data is not None:
                return Frame(row.offset, piece.data, row.length)
        return Frame(row.offset, b"", row.length)

    def _diagnostics(
        self, row: StoredMessage, frame: Frame, as_player: str | None
    ) -> Iterator[DiagnosticDetail]:
        numbers = None
        for diagnostic in diagnostics(self.timeline, "d.message_id = ?", [row.id]):
            if diagnostic.group in visible_groups(as_player):
                if as_player is not None:
                    numbers = numbers or DiagnosticNumbers(self._visibility, as_player)
                number = diagnostic.id if numbers is None else numbers.number(diagnostic.id)
                offset, length = frame.in_data(diagnostic.offset - row.offset, diagnostic.length)
                yield project(DiagnosticDetail, diagnostic, id=number, offset=offset, length=length)

    def _event(self, event_id: int | None) -> StoredEvent | None:
        return self.timeline.event(event_id) if event_id is not None else None

    def _changes(self, event: StoredEvent, as_player: str | None) -> Iterator[ChangeDetail]:
        """Yield the changes of an event, as far as a player could know."""
        changes = self._visibility.changes(event, as_player)
        if not changes:
            return
        before = self._visibility.shared_state(as_player, event.table_id, event.seq - 1)
        for path, value in changes:
            yield ChangeDetail(self.timeline.numbers.path(path), value, _copy(_value_at(before, path)))

    def _copies(self, row: StoredMessage, as_player: str | None) -> tuple[tuple[BroadcastCopy, ...], int]:
        """Return the first copies of a message and the number of all; a player sees only its own."""
        if row.event_id is None:
            return (), 0
        same = "m.event_id = ? AND +m.name = ? AND +m.direction = ? AND m.id != ?"
        given: list[Any] = [row.event_id, row.name, row.direction, row.id]
        if as_player is not None:
            streams = sorted(self._visibility.streams_of(as_player))
            same += f" AND +m.stream_id IN ({placeholders(streams)})"
            given += streams
        connection = self.timeline.connection
        (in_all,) = connection.execute(f"SELECT count(*) FROM messages AS m WHERE {same}", given).fetchone()
        found = connection.execute(
            "SELECT m.id, m.stream_id, s.client, s.player, m.ts_ns FROM messages AS m"
            f" JOIN streams AS s ON s.id = m.stream_id WHERE {same} ORDER BY m.id LIMIT {MAX_COPIES}",
            given,
        )
        numbers = self.timeline.numbers
        copies = (
            BroadcastCopy(
                numbers.number("messages", copy),
                copy,
                numbers.number("streams", stream),
                client,
                player,
                (ts_ns - row.ts_ns) / 1e9,
            )
            for copy, stream, client, player, ts_ns in found
        )
        return tuple(copies), in_all


def _pieces(dissector: Dissector | None, direction: Direction, data: bytes) -> tuple[Piece, ...]:
    """Annotate the bytes; all of them are one piece if the protocol is not installed."""
    return whole(data, unreadable(), "") if dissector is None else dissector.codec.anatomy(data, direction)


def _about(dissector: Dissector | None, row: StoredMessage, data: bytes) -> GrammarDescription | None:
    """Return the grammar's description of a message."""
    if dissector is None:
        return None
    read = dissector.codec.decode(data, row.direction).row
    # If it cannot be decoded to its end, use its name.
    found = read
    if read is None or read.name != row.name:
        found = dissector.grammar.row_of(row.name, row.direction, row.fields)
    if found is None:
        return None
    return GrammarDescription(
        found.description, dissector.codec.notation(found), found.clause, found.deviation
    )


def _copy(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, dict | list) else value


def _value_at(state: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of a state, UNSET if there is none."""
    for step in path:
        if not isinstance(state, dict) or step not in state:
            return msgspec.UNSET
        state = state[step]
    return state
