"""What is seen of a conversation in which a case is tried: who is who, the table, and what the peer says.

It is told all that is said, as items. So it knows at a place what a case may need (`Situation`), and
afterwards what the peer has said since.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from kiebitz.dissectors.conformance.expectations import Situation
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.framing import Frame, Framer
from kiebitz.dissectors.grammar.grammar import UNREADABLE, Decoded
from kiebitz.dissectors.model import Chunk, Direction, Findings, Item, Stream
from kiebitz.dissectors.probing.routes import Place
from kiebitz.dissectors.probing.verdict import Said

MOST_SAID = 500
"""So many messages of the peer are kept of each stream: others' game may go on for long."""


class Witness:
    """Watches a peer that says what goes in the direction `hears`."""

    def __init__(self, dissector: Dissector, hears: Direction) -> None:
        self._dissector = dissector
        self._hears: Direction = hears
        self._framers: dict[tuple[int, Direction], Framer] = {}
        self._streams: dict[int, Stream] = {}
        self._names: dict[int, str] = {}
        """By stream what its client calls itself."""
        self._named: dict[int, dict[IdentifierKind, dict[Any, None]]] = {}
        """By stream what stands in its messages' names."""
        self._tables: dict[int, str] = {}
        self._states: dict[str, State] = {}
        self.is_heard = False
        """Whether the peer has said anything."""
        self._since = False
        self._said: dict[int, list[Said]] = {}
        """By stream what the peer has said on it."""
        self._flawed: list[tuple[str, str]] = []

    # What it is told.

    def feed(self, item: Item) -> None:
        """Something was said, or has ended."""
        self._streams[item.stream.id] = item.stream
        if not isinstance(item, Chunk):
            return
        self.is_heard = self.is_heard or item.direction == self._hears
        framer = self._framer(item.stream.id, item.direction)
        for frame in (*framer.feed(item.offset, item.data), *framer.settle()):
            self._read(item.stream.id, item.direction, frame)

    def take(self, found: Findings) -> None:
        """What was found of all that was said."""
        self._tables |= {table.id: table.server for table in found.tables}
        for event in found.events:
            # A table's state is changed in place, and what was found belongs to others.
            changes = deepcopy(event.changes)
            apply(self._states.setdefault(self._tables[event.table_id], {}), changes)

    def begin(self) -> None:
        """From here on what the peer says is kept."""
        self._since = True

    def _framer(self, stream: int, direction: Direction) -> Framer:
        key = (stream, direction)
        if key not in self._framers:
            self._framers[key] = self._dissector.framer(direction)
        return self._framers[key]

    def _read(self, stream: int, direction: Direction, frame: Frame) -> None:
        decoded = self._dissector.codec.decode(frame.data, direction)
        row = decoded.row
        if row is not None and decoded.valid:
            named = self._named.setdefault(stream, {})
            for identifier, value in row.identifiers(decoded.fields):
                if value is not None:
                    named.setdefault(identifier, {})[value] = None
            called = self._dissector.identity.introduced(row.name, direction, decoded.fields)
            if called is not None:
                self._names.setdefault(stream, called)
        if self._since and direction == self._hears and len(self._said.get(stream, ())) < MOST_SAID:
            self._keep(stream, decoded)

    def _keep(self, stream: int, decoded: Decoded) -> None:
        name = UNREADABLE if decoded.row is None else decoded.row.name
        self._said.setdefault(stream, []).append(Said(name, decoded.fields))
        for flaw in decoded.flaws:
            if flaw.severity == "error":
                self._flawed.append((name, f"{name}: {flaw.text}"))

    # What it knows.

    def situation(self, place: Place) -> Situation:
        """What a case may need at a place."""
        others: dict[IdentifierKind, list[Any]] = {}
        for stream, identifiers in self._named.items():
            if stream == place.connection:
                continue
            for identifier, values in identifiers.items():
                others.setdefault(identifier, []).extend(values)
        # Over UDP a conversation begins with the first that is said in it.
        known = self._streams.get(place.connection) or next(iter(self._streams.values()), None)
        state = {} if known is None else self._states.get(known.server, {})
        player = self._names.get(place.connection)
        return Situation(place.frame, place.following, place.waits, deepcopy(state), player, others)

    def said(self, *streams: int) -> tuple[Said, ...]:
        """What the peer has said on these streams since the acts began; on any, if none is named."""
        return tuple(said for stream in streams or self._said for said in self._said.get(stream, ()))

    def flawed(self, but: Collection[str]) -> tuple[str, ...]:
        """What is wrong in that by the grammar, `but` for messages of these names."""
        return tuple(sentence for name, sentence in self._flawed if name not in but)

    def has_said(self, said: Said, stream: int) -> bool:
        """Whether the peer has said just this on a stream since the acts began."""
        return said in self._said.get(stream, ())

    def decode(self, data: bytes) -> Said:
        """What a message of the peer's says."""
        decoded = self._dissector.codec.decode(data, self._hears)
        return Said(UNREADABLE if decoded.row is None else decoded.row.name, decoded.fields)
