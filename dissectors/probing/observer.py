"""Observations of a conversation during a test case: player names, the table, the target's messages.

The observer receives all traffic as items. So at an injection point it can supply what a case may need
(`Situation`), and afterwards the target's messages since then.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.conformance.expectations import Situation
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.framing import Frame, Framer
from kiebitz.dissectors.grammar.grammar import UNREADABLE, Decoded
from kiebitz.dissectors.model import OPPOSITE, Chunk, Direction, Findings, Item, Stream
from kiebitz.dissectors.probing.routes import InjectionPoint
from kiebitz.dissectors.probing.verdict import ProgramMessage

MAX_MESSAGES = 500
"""Maximum number of the target's messages kept per stream: other players' game may go on for long."""


class Observer(msgspec.Struct, eq=False):
    """An observer of a target that sends in the direction `target_direction`."""

    _dissector: Dissector
    _target_direction: Direction
    _framers: dict[tuple[int, Direction], Framer] = {}
    _streams: dict[int, Stream] = {}
    _names: dict[int, str] = {}
    """The client's own name, by stream."""
    _identifiers: dict[int, dict[IdentifierKind, dict[Any, None]]] = {}
    """Identifiers in the messages, by stream."""
    _tables: dict[int, str] = {}
    _states: dict[str, State] = {}
    is_responsive: bool = False
    """True if the target has sent anything."""
    _since: bool = False
    _collected: dict[int, list[ProgramMessage]] = {}
    """The target's messages, by stream."""
    _violations: list[tuple[str, str]] = []
    delays_s: dict[str, float] = {}
    """The longest time in seconds until the target's next message on the same stream, by our message."""
    _unanswered: dict[int, tuple[str, int]] = {}
    """Our last message on each stream, and its time in nanoseconds, until the target sends any."""

    # Input.

    def feed(self, item: Item) -> None:
        """Process an item of the conversation."""
        self._streams[item.stream.id] = item.stream
        if not isinstance(item, Chunk):
            return
        self.is_responsive = self.is_responsive or item.direction == self._target_direction
        framer = self._framer(item.stream.id, item.direction)
        for frame in (*framer.feed(item.offset, item.data), *framer.settle()):
            self._read(item.stream.id, item.direction, frame)
            if not self._since:
                self._measure(item, frame)

    def take_findings(self, found: Findings) -> None:
        """Process the inspector's findings for the whole conversation."""
        self._tables |= {table.id: table.server for table in found.tables}
        for event in found.events:
            apply(self._states.setdefault(self._tables[event.table_id], {}), event.changes)

    def start_collecting(self) -> None:
        """Keep the target's messages from now on."""
        self._since = True

    def _framer(self, stream: int, direction: Direction) -> Framer:
        key = (stream, direction)
        if key not in self._framers:
            self._framers[key] = self._dissector.framer(direction)
        return self._framers[key]

    def _measure(self, item: Chunk, frame: Frame) -> None:
        """Measure how long the target takes to answer."""
        if item.direction != self._target_direction:
            row = self._dissector.codec.decode(frame.data, item.direction).row
            if row is not None:
                self._unanswered[item.stream.id] = (row.name, item.ts_ns)
        elif item.stream.id in self._unanswered:
            name, sent_ns = self._unanswered.pop(item.stream.id)
            self.delays_s[name] = max(self.delays_s.get(name, 0.0), (item.ts_ns - sent_ns) / 1e9)

    def _read(self, stream: int, direction: Direction, frame: Frame) -> None:
        decoded = self._dissector.codec.decode(frame.data, direction)
        row = decoded.row
        if row is not None and decoded.valid:
            identifiers = self._identifiers.setdefault(stream, {})
            for handle, value in row.identifiers(decoded.fields):
                if value is not None:
                    identifiers.setdefault(handle, {})[value] = None
            called = self._dissector.identity.introduced(row.name, direction, decoded.fields)
            if called is not None:
                self._names.setdefault(stream, called)
        if (
            self._since
            and direction == self._target_direction
            and (row is None or row not in self._dissector.grammar.transport_rows)
            and len(self._collected.get(stream, ())) < MAX_MESSAGES
        ):
            self._keep(stream, decoded)

    def _keep(self, stream: int, decoded: Decoded) -> None:
        name = UNREADABLE if decoded.row is None else decoded.row.name
        self._collected.setdefault(stream, []).append(ProgramMessage(name, decoded.fields))
        for violation in decoded.violations:
            if violation.severity == "error":
                self._violations.append((name, f"{name}: {violation.text}"))

    # Queries.

    def situation(self, point: InjectionPoint) -> Situation:
        """Return what a case may need at an injection point."""
        others: dict[IdentifierKind, list[Any]] = {}
        for stream, handles in self._identifiers.items():
            if stream == point.connection:
                continue
            for handle, values in handles.items():
                others.setdefault(handle, []).extend(values)
        # Over UDP a conversation begins with its first datagram.
        known = self._streams.get(point.connection) or next(iter(self._streams.values()), None)
        state = {} if known is None else self._states.get(known.server, {})
        player = self._names.get(point.connection)
        wrap = partial(self._dissector.to_wire, direction=OPPOSITE[self._target_direction])
        return Situation(
            point.frame,
            point.following,
            point.waits,
            deepcopy(state),
            player,
            others,
            wrap,
            point.heartbeat,
        )

    def received(self, *streams: int) -> tuple[ProgramMessage, ...]:
        """Return the target's messages since the actions began, on these streams or, without any, on all."""
        return tuple(
            received for stream in streams or self._collected for received in self._collected.get(stream, ())
        )

    def violations_except(self, but: Collection[str]) -> tuple[str, ...]:
        """Return a sentence for each violation of the grammar in those messages.

        Messages named in `but` are not considered.
        """
        return tuple(sentence for name, sentence in self._violations if name not in but)

    def has_sent(self, received: ProgramMessage, stream: int) -> bool:
        """Return True if the target has sent exactly this message on a stream since the actions began."""
        return received in self._collected.get(stream, ())

    def decode(self, data: bytes) -> ProgramMessage:
        """Decode a message of the target."""
        decoded = self._dissector.codec.decode(data, self._target_direction)
        return ProgramMessage(UNREADABLE if decoded.row is None else decoded.row.name, decoded.fields)
