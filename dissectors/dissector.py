"""What a protocol must bring to be dissected: the one object that each protocol's package exports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.framing import Framer
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    EventKind,
    Follows,
    Grammar,
    Handle,
    MessageType,
    Rename,
    Replace,
    shortened,
    to_json,
)
from kiebitz.dissectors.grammar.sentences import (
    CALLED,
    ENDING_WORDS,
    UNKNOWN,
    Phrase,
    called,
    named,
    places,
    value_at,
)
from kiebitz.dissectors.model import DIRECTIONS, Direction, Event, Findings, Ids, TableInfo, Transport
from kiebitz.dissectors.queries import Query

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import BotFactory, SimulatedServerFactory
    from kiebitz.dissectors.conformance.expectations import Conformance
    from kiebitz.dissectors.game.view import Scene, View
    from kiebitz.dissectors.statistics import Statistic

Likeness = Literal["certain", "similar"]
"""How sure a protocol is that a frame is its own: it is a sound message of it, or a slip of one."""

Identity = Literal["connection", "address", "number"]
"""What makes a client with the same name the same player: its connection alone, its IP address at the same
server, or its IP address at any server, as clients connect anew for each part of a game."""

_GLOSS = 60
"""A gloss has no more characters."""

_NAME = 60
"""What a client calls itself is shown with no more characters."""

_SHOWN = 40
"""So much of fields that cannot be written is quoted (characters)."""

UNWRITABLE = (ValueError, TypeError, AttributeError, LookupError)
"""What values raise that a row cannot have; all but the first are those of other types than its own."""


class Dissector(ABC):
    """A protocol: its grammar, how its frames are cut, read and written, and its game table."""

    @property
    @abstractmethod
    def grammar(self) -> Grammar:
        """Its messages and events."""

    @property
    @abstractmethod
    def transport(self) -> Transport:
        """What carries it."""

    @property
    @abstractmethod
    def default_ports(self) -> frozenset[int]:
        """The ports that its servers take where nobody says otherwise; a server is recognised at any."""

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """What reads and writes its frames."""

    @property
    @abstractmethod
    def framer_class(self) -> Callable[[Direction], Framer]:
        """What cuts the bytes of one direction of a stream into frames."""

    @property
    @abstractmethod
    def table_class(self) -> Callable[[TableInfo, Ids, Findings], GameTable]:
        """What makes of a server's messages what happened."""

    counts = "points"
    """What `scores` counts: points, or money."""

    def scores(self, state: State) -> dict[str, int]:
        """By name what each player has at a moment, as far as both are known; empty where nobody counts."""
        return {}

    identity: Identity = "connection"
    """Which connections of clients with one name are one player's."""

    turn: str = "turn"
    """The kind of event that says whose turn it is, if there is one."""

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What `kiebitz stats` counts in its games, beside what follows from `scores` and from turns."""
        return ()

    def called(self, actor: str, state: State) -> str:
        """What the actor of an event is called in a state."""
        return actor

    def framer(self, direction: Direction) -> Framer:
        """A fresh framer for one direction of a stream."""
        return self.framer_class(direction)

    def table(self, info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        """A new game table for one server."""
        return self.table_class(info, ids, findings)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        """What a frame says; see `Codec.decode`."""
        return self.codec.decode(frame, direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        """What the rest of a stream says; see `Codec.truncated`."""
        return self.codec.truncated(frame, direction)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        """Which production took which bytes of a frame; see `Codec.anatomy`."""
        return self.codec.anatomy(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        """The frame of a message; see `Codec.encode`."""
        return self.codec.encode(name, direction, fields)

    def notation(self, row: MessageType) -> str | None:
        """How the specification writes down such a message; see `Codec.notation`."""
        return self.codec.notation(row)

    def rewrite(self, frame: bytes, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        """A frame that decodes, with these values in its fields, and spelt as it was in all else.

        If that cannot be, it is spelt as in the specification. Raises ValueError where no row of this name
        has these fields.
        """
        decoded = self.decode(frame, direction)
        row = decoded.row
        if row is None:
            raise ValueError(f"no message can be made out in this frame of {len(frame)} bytes")
        wanted = to_json(fields)
        if wanted == decoded.fields_json:
            return frame
        for written in self._spellings(frame, row, decoded.fields, fields):
            again = self.decode(written, direction)
            same_name = again.row is not None and again.row.name == row.name
            if same_name and again.fields_json == wanted and again.sound >= decoded.sound:
                return written
        raise ValueError(f"{direction} {row.name} cannot be written with these fields: {wanted[:_SHOWN]}")

    def _spellings(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """The frame as it was spelt, then as the specification spells it, as far as that can be done."""
        with suppress(*UNWRITABLE):
            yield self.codec.respelt(frame, row, before, fields)
        with suppress(*UNWRITABLE):
            yield self.codec.encode(row.name, row.direction, fields)

    def renamed(self, row: MessageType, fields: Mapping[str, Any], rename: Rename) -> dict[str, Any]:
        """The fields of a message of this row with another name wherever they name something."""
        types = {field.name: field.type for field in row.fields}
        return {name: types[name].renamed(value, rename) for name, value in fields.items()}

    def anonymized(
        self, row: MessageType, fields: Mapping[str, Any], replace: Replace, rename: Rename
    ) -> dict[str, Any]:
        """The fields of a message of this row with nothing in them that names anybody; see
        `FieldType.anonymized`."""
        types = {field.name: field.type for field in row.fields}
        return {name: types[name].anonymized(value, replace, rename) for name, value in fields.items()}

    def names(self, row: MessageType, fields: Mapping[str, Any]) -> list[tuple[Handle, Any]]:
        """What the fields of a message of this row name, in the order of their places."""
        found: list[tuple[Handle, Any]] = []

        def note(handle: Handle, name: Any) -> Any:
            found.append((handle, name))
            return name

        self.renamed(row, fields, note)
        return found

    patience: Mapping[str, float] = MappingProxyType({})
    """By a message's name, how long (seconds) it is awaited, or an answer to it, before the other side acts
    without it. Only what the specification says, or what all its servers do; of the others nobody knows."""

    def view(self, scene: Scene) -> View | None:
        """Return what is to be seen of a table; None to show the state itself."""
        return None

    # The next three are loaded when they are asked for: only a program that is probed needs them.

    @property
    def reactions(self) -> Conformance:
        """What its specification wants of a peer that is sent something odd, and how its rules are broken."""
        from kiebitz.dissectors.conformance.expectations import NO_CONFORMANCE

        return NO_CONFORMANCE

    @property
    def player(self) -> BotFactory | None:
        """What makes simple players of it; None if there are none. Then only a record leads to a case's
        place."""
        return None

    @property
    def host(self) -> SimulatedServerFactory | None:
        """The same for a simple server."""
        return None

    seats: int = 2
    """So many simple players sit at a table."""

    queries: tuple[Query, ...] = ()
    """What people ask of its games in SQL: `kiebitz export -T datasette` writes it down."""

    introductions: frozenset[str] = frozenset()
    """The messages by which a client says what it is called; from the others nobody learns it."""

    def introduced(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> str | None:
        """What a client calls itself in a message; None where it does not say."""
        if direction != "c2s" or name not in self.introductions:
            return None
        row = self.row_of(name, direction, fields)
        if row is None:
            return None
        with suppress(*UNWRITABLE):
            for handle, called in self.names(row, fields):
                if handle.of_player and isinstance(called, str) and called:
                    return shortened(called, _NAME)
        return None

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        """How sure it is that these bytes, the first that are seen of a direction, are this protocol's.

        In a byte stream they may begin in the middle of a message, and end in one.
        """
        frames = [frame.data for frame in self.framer(direction).feed(0, data) if frame.cut is None]
        if any(self.decode(frame, direction).sound for frame in frames):
            return "certain"
        return "similar" if any(self.codec.resembles(frame, direction) for frame in frames) else None

    @property
    def productions(self) -> tuple[str, ...]:
        """The productions of the symbols that stand in its notation."""
        return ()

    @property
    def protocol(self) -> str:
        """The protocol's name in the database and in filters."""
        return self.grammar.protocol

    phrases: Mapping[str, Phrase] = MappingProxyType({})
    """By field of an event's data, the words for its value where `words` would show a code."""

    def template(self, event: Event) -> str:
        """Return the sentence of an event with its fields in braces; override it where data decides."""
        return self.grammar.events[event.kind].sentence

    def describe(self, event: Event) -> str:
        """Return a sentence that says what happened; what is not known is a question mark."""
        kind = self.grammar.events[event.kind]
        sentence = self._filled(self.template(event), lambda path: self._field_words(kind, path, event.data))
        to = event.data.get("to") if kind.spoken else None
        return sentence if to is None else said_to(self.words(to), sentence)

    def _field_words(self, kind: EventKind, path: Sequence[str], data: Mapping[str, Any]) -> str:
        """Return a field of an event as it reads in a sentence: in words, players by name."""
        value, field = value_at(data, path), path[-1]
        if field == kind.ending and isinstance(value, str) and value in ENDING_WORDS:
            return ENDING_WORDS[value]
        phrase = self.phrases.get(field)
        if phrase is not None:
            return phrase(value)
        if CALLED in data and value is not None:
            value = named(value, self.grammar.data_handles.get(field), called(data[CALLED]))
        return self.words(value)

    def row_of(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> MessageType | None:
        """Which of the rows of a name a message is of that has these fields."""
        rows = self.grammar.rows_named(direction, name)
        return next((row for row in rows if {field.name for field in row.fields} >= {*fields}), None)

    def gloss(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> str | None:
        """What a message says, in a few English words; None where its name says it."""
        if not self.grammar.foreign:
            return None
        row = self.row_of(name, direction, fields)
        if row is None:
            return None
        if row.brief is None:
            return shortened(row.gloss, _GLOSS)
        gloss = self._filled(row.brief, lambda path: self.words(value_at(fields, path)))
        return shortened(gloss, _GLOSS)

    def words(self, value: Any) -> str:
        """A value as it stands in a sentence."""
        if value is None:
            return UNKNOWN
        if isinstance(value, str):
            # An empty name is one, too, and is seen.
            return value or '""'
        if isinstance(value, dict):
            return ", ".join(f"{key} {self.words(part)}" for key, part in value.items()) or "nobody"
        if isinstance(value, list):
            return ", ".join(map(self.words, value)) or "nobody"
        return str(value)

    def _filled(self, template: str, words: Callable[[Sequence[str]], str]) -> str:
        """Return a template with the words for each path in its places."""
        return "".join(part if isinstance(part, str) else words(part) for part in places(template))

    def follows(self, event: Event) -> Follows | None:
        """From what an event follows of which no message of one's own tells; None if from nothing."""
        return self.grammar.events[event.kind].follows

    def seen_by(self, event: Event, *names: str) -> Event | None:
        """Return an event as the player of these names sees it, None if it is another player's secret.

        Its data may say to whom all of it is `known_to`, and what `others_see` in place of it.
        """
        kind: EventKind = self.grammar.events[event.kind]
        if kind.secret and event.actor not in names:
            return None
        if "known_to" not in event.data or not {*names}.isdisjoint(event.data["known_to"]):
            return event
        data = {key: part for key, part in event.data.items() if key not in ("known_to", "others_see")}
        return msgspec.structs.replace(event, data=data | event.data.get("others_see", {}))


def said_to(hearer: str, sentence: str) -> str:
    """A sentence that was said to one client alone."""
    return f"to {hearer}: {sentence}"


def likeness(decoded: Sequence[Decoded]) -> Likeness | None:
    """How sure a protocol can be that these frames are its own."""
    if any(message.sound for message in decoded):
        return "certain"
    return "similar" if any(message.row is not None for message in decoded) else None


def recognise(
    dissectors: Iterable[Dissector], transport: Transport, data: bytes
) -> Iterator[tuple[Dissector, Direction, Likeness]]:
    """The protocols that these bytes can be, with the side that would have sent them and how sure that is."""
    for dissector in dissectors:
        if dissector.transport == transport:
            for direction in DIRECTIONS:
                likeness = dissector.recognise(data, direction)
                if likeness is not None:
                    yield dissector, direction, likeness
