"""Grammars as tables: a row per message type, with its clause of the specification; changed fields.

Each protocol has one set of rows. Decoding, encoding, the printed reference, the filter language's names, and
the generated test messages derive from it. A dialect is a further row with the same name, not another
grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import (
    Fields,
    FieldType,
    IdentifierKind,
    IdentifierKinds,
    Rename,
    Replace,
)
from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.model import Blame, Direction, Group, Severity
from kiebitz.dissectors.suggestions import suggestion_in

Path = tuple[str | int, ...]
"""The path of a part of a JSON value, of keys and list indexes; () is the whole."""

BLANKS = b" \t\r\n"
"""The blanks of JSON and XML: fewer characters than Python's."""

Place = tuple[int, int]
"""A place in a frame: offset and length in bytes."""


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the smallest values that differ between two JSON values of one shape.

    An object with other keys, or a list of another length, differs as a whole.
    """
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for key in before:
            yield from differences(before[key], after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, (*path, number))
    elif type(before) is not type(after) or before != after:
        # 1 and true are equal in Python.
        yield path


def value_at(fields: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        fields = fields[step]
    return fields


def spelt_alike(
    old: str,
    new: str,
    character: re.Pattern[str],
    read: Callable[[str], str],
    write: Callable[[str, str], str],
) -> str | None:
    """Return a text with each character spelt as the one in its place was, with or without an escape.

    `character` finds each character in the sent text, `read` decodes it, and `write` encodes another one
    alike. Returns None if the texts differ in length; raises ValueError if `read` does.
    """
    spelt = character.findall(old)
    if len(spelt) != len(new):
        return None
    return "".join(
        one if read(one) == char else write(one, char) for one, char in zip(spelt, new, strict=True)
    )


def replaced(frame: bytes, pieces: Mapping[Place, bytes]) -> bytes:
    """Return the frame with other bytes in these places, which must not overlap."""
    parts: list[bytes] = []
    at = 0
    for (start, length), piece in sorted(pieces.items()):
        parts += frame[at:start], piece
        at = start + length
    return b"".join((*parts, frame[at:]))


UNREADABLE = "unreadable"
"""Name of a message whose type is unknown; its diagnostic says why."""

NAMELESS = "_"
"""Name of messages that have none: whether bytes are one is no evidence for a protocol."""

ImpliedBy = Literal["before", "after"]
"""Position of the event that implies an event known to one player: the last one before it, or the next
one.
"""

_MEANT = 40
"""Maximum length of a text that is compared with known words, in characters."""

_JSON = msgspec.json.Encoder(order="sorted")


def to_json(value: Any) -> str:
    """Return compact JSON text with sorted keys."""
    return _JSON.encode(value).decode()


def trimmed(frame: bytes, start: int, end: int) -> Place:
    """Return the place of a text in a range of a frame, without the blanks around it."""
    text = frame[start:end]
    return end - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with an ellipsis if it was cut."""
    return text if len(text) <= most else f"{text[:most]}…"


class Field(msgspec.Struct, frozen=True):
    """A field of a message.

    A `generated` value is made up by the server and differs in every game. An `optional` field may be absent.
    """

    name: str
    type: FieldType
    description: str
    generated: bool = False
    optional: bool = False


class _MessageHead(msgspec.Struct, frozen=True, dict=True):
    """Attributes of a message type that may be given by position."""

    name: str
    direction: Direction
    fields: tuple[Field, ...]
    description: str


class MessageType(_MessageHead, frozen=True, kw_only=True, eq=False):
    """A row of a grammar.

    Attributes:
        clause: Heading or number of the specification's clause.
        answers: Names of the messages that this one replies to.
        broadcast: True if the server sends a copy to each client.
        deviation: Sentence about how the row differs from the specification; noted once per table.
        summary: Text for listings, with fields in braces; if None, the description.
        heartbeat: True if it is sent at fixed times and has no meaning in the game.
    """

    clause: str
    answers: tuple[str, ...] = ()
    broadcast: bool = False
    deviation: str | None = None
    summary: str | None = None
    heartbeat: bool = False

    @cached_property
    def is_generated(self) -> bool:
        """True if no two messages of this type are the same."""
        return any(field.generated for field in self.fields)

    def matches(self, fields: Fields) -> bool:
        """Return True if a message of this name with these fields can be of this row."""
        return {field.name for field in self.fields} >= {*fields}

    def has_values(self, fields: Fields) -> bool:
        """Return True if these are all the fields that a message of this row must have, with its values."""
        return all(
            field.type.has(fields[field.name]) if field.name in fields else field.optional
            for field in self.fields
        )

    def renamed(self, fields: Fields, rename: Rename) -> dict[str, Any]:
        """Return the fields with every identifier replaced by `rename`."""
        return self.with_each(fields, lambda kind, value: kind.renamed(value, rename))

    def anonymized(self, fields: Fields, replace: Replace, rename: Rename) -> dict[str, Any]:
        """Return the fields with everything personal replaced; see `FieldType.anonymized`."""
        return self.with_each(fields, lambda kind, value: kind.anonymized(value, replace, rename))

    def with_each(self, fields: Fields, change: Callable[[FieldType, Any], Any]) -> dict[str, Any]:
        """Return the fields with `change` applied to each."""
        types = {field.name: field.type for field in self.fields}
        return {name: change(types[name], value) for name, value in fields.items()}

    def identifiers(self, fields: Fields) -> list[tuple[IdentifierKind, Any]]:
        """Return the identifiers in the fields, with their kinds, in order."""
        found: list[tuple[IdentifierKind, Any]] = []

        def note(kind: IdentifierKind, value: Any) -> Any:
            found.append((kind, value))
            return value

        self.renamed(fields, note)
        return found

    def player_names(self, fields: Fields) -> list[str]:
        """Return the players' names in the fields, in order."""
        named = self.identifiers(fields)
        return [value for kind, value in named if kind.of_player and isinstance(value, str)]


NeededValue = tuple[str, bool, Any]
"""A field of an event's data, True if it must have a value, False if it must not, and the value."""


class _EventHead(msgspec.Struct, frozen=True):
    """Attributes of an event kind that may be given by position."""

    kind: str
    fields: tuple[str, ...]
    sentence: str


class EventKind(_EventHead, frozen=True, kw_only=True):
    """A kind of event: its data fields, a sentence with them in braces, and its visibility.

    Attributes:
        instead: Other sentences, each with what an event's data must have for it. The first that fits counts.
        secret: True if only its actor knows of it.
        ending: Field that may contain how a connection ended.
        reported_by: Messages that report it on its actor's own connection.
        identifies: True if the first of these messages on a connection identifies its player.
        restores: True if the server has accepted the client as an earlier player of that name.
        reveals: Parts of the state that the message contains completely: paths with dots. In them, `{game}`
            is the event's game, and another name in braces is a field of its data, each value of a list.
        implied_by: Position of the event of the same game that implies it: observers of that event know it.
        accompanies: Position of the event whose message it belongs to if no message reports it; an event with
            an `ending` then belongs to none.
        directed: True if it may have been sent to a single client, which `to` in its data names if known.
        public: True if the server reports it to each player at the table in a message of its own.
        joins: True if its actor takes part in the game from here on: a message that reports it is no move.
        ends: True if the game has been played to its end with it.
        cancels: True if the game ends with it without having been played.
        timeout: True if a player loses only because an answer is missing.

    The last three may be conditions on the event's data in the notation of protocol files.
    """

    instead: tuple[tuple[tuple[NeededValue, ...], str], ...] = ()
    secret: bool = False
    ending: str | None = None
    reported_by: tuple[str, ...] = ()
    identifies: bool = False
    restores: bool = False
    reveals: tuple[str, ...] = ()
    implied_by: ImpliedBy | None = None
    accompanies: ImpliedBy = "before"
    directed: bool = False
    public: bool = False
    joins: bool = False
    ends: bool | str = False
    cancels: bool | str = False
    timeout: bool | str = False

    def sentence_for(self, data: Mapping[str, Any]) -> str:
        """Return the sentence for an event with this data."""
        for needed, sentence in self.instead:
            if all((data.get(field) == value) is must for field, must, value in needed):
                return sentence
        return self.sentence

    def changed_paths(self, game: int | None, data: Mapping[str, Any]) -> Iterator[list[str]]:
        """Yield the paths in `reveals` for an event of this game with this data."""
        for pattern in self.reveals:
            steps = [_step_values(step, game, data) for step in pattern.split(".")]
            yield from (list(path) for path in product(*steps))


def _step_values(step: str, game: int | None, data: Mapping[str, Any]) -> list[str]:
    """Return the values of a step of a path in `EventKind.reveals`; none if they are unknown."""
    if not step.startswith("{"):
        return [step]
    name = step.strip("{}")
    value = game if name == "game" else data.get(name)
    values = value if isinstance(value, list) else [value]
    return [str(each) for each in values if each is not None]


OWN_CLAUSE = "{clause}"
"""In the clause of a rule: the clause of the row whose message violates it."""


class Rule(msgspec.Struct, frozen=True):
    """A check of a table, and the diagnostic for a message that violates it.

    `key` is the diagnostic's code; several rows of one code are distinguished by a suffix after a slash.
    `message` is the name of the message that breaks it, None if several can. `text`, `expected` and `clause`
    are templates with placeholders in braces. `blame` is None if the sender is at fault. If there is no
    clause, `unwritten` gives the reason.
    """

    key: str
    message: str | None
    text: str
    expected: str | None = None
    group: Group = "rule"
    severity: Severity = "error"
    clause: str | None = OWN_CLAUSE
    blame: Blame | None = None
    unwritten: str | None = None

    @property
    def code(self) -> str:
        """Code of its diagnostics."""
        return self.key.partition("/")[0]


class Violation(msgspec.Struct, frozen=True):
    """An error in a frame; `offset` and `length` are bytes from the start of the frame.

    A `habit` of its sender is reported only once per direction of a stream. If its place is costly to find,
    `locate` finds it in the frame when it is reported.
    """

    severity: Severity
    group: Group
    code: str
    text: str
    offset: int
    length: int
    expected: str | None = None
    clause: str | None = None
    habit: bool = False
    locate: Callable[[bytes], tuple[int, int]] | None = None

    @property
    def suggestion(self) -> str | None:
        """Suggestion for the intended word."""
        return suggestion_in(self.group, self.text)

    def place(self, frame: bytes) -> tuple[int, int]:
        """Return its offset and length in the frame."""
        return self.locate(frame) if self.locate is not None else (self.offset, self.length)

    def inside(self, start: int, end: int | None = None) -> Violation:
        """Return it for the frame around its message, which is the range from `start` to `end`."""
        locate = self.locate
        if locate is None:
            return msgspec.structs.replace(self, offset=self.offset + start)

        def located(frame: bytes) -> tuple[int, int]:
            offset, length = locate(frame[start:end])
            return offset + start, length

        return msgspec.structs.replace(self, locate=located)


class Decoded(msgspec.Struct, frozen=True):
    """A decoded frame; `row` is None if its message type is unknown.

    A `valid` message conforms to its row: its violations, if any, are notes or warnings.
    """

    row: MessageType | None
    fields: dict[str, Any]
    fields_json: str
    valid: bool
    violations: tuple[Violation, ...] = ()


class Grammar:
    """The rows, event kinds and rules of one protocol.

    Args:
        protocol: Name in the database and in filters, one word in small letters.
        title: Display name.
        rows: Message types; several of one name are dialects.
        events: Kinds of events that the game table reports.
        rules: Checks of the game table.
        foreign: True if message names are not English, so that listings add a gloss.
        data_identifiers: Kinds of the identifiers in the data of events by key, and of `actor`.
        state_identifiers: The same for the state.
        aliases: Pairs of keys of identifiers of the same player: number and name, or old and new name.
        variable_shape: Paths of values in fields or data that are a list or an object in some messages only,
            such as `Spieler.Rohstoffe`; lists on the path are omitted.
        more_words: Words of the protocol that no row contains, such as markup; they are read once, if at all.
        spellings: Returns all spellings of names of messages and fields.
        transport_rows: Message types of what carries the protocol's messages, which are none of its own.
        table_file: Path of the TOML file with its tables, if it has one.
        lenient: Deviations that real readers accept.
        python_types: Types of fields in Python, by their names in the TOML file.
    """

    def __init__(
        self,
        protocol: str,
        title: str,
        *,
        rows: Iterable[MessageType],
        events: Iterable[EventKind] = (),
        rules: Iterable[Rule] = (),
        foreign: bool = False,
        data_identifiers: IdentifierKinds = MappingProxyType({}),
        state_identifiers: IdentifierKinds = MappingProxyType({}),
        aliases: Mapping[str, str] = MappingProxyType({}),
        variable_shape: Collection[str] = (),
        more_words: Iterable[str] = (),
        spellings: Callable[[Iterable[str]], Iterable[str]] = tuple,
        transport_rows: Iterable[MessageType] = (),
        table_file: str | None = None,
        lenient: Lenient | None = None,
        python_types: Mapping[str, FieldType] = MappingProxyType({}),
    ) -> None:
        self.python_types = python_types
        self.table_file = table_file
        self.lenient = lenient or Lenient()
        self.foreign = foreign
        self.variable_shape = frozenset(variable_shape)
        self.data_identifiers = data_identifiers
        self.state_identifiers = state_identifiers
        self.aliases = aliases
        self._more_words = more_words
        self._spellings = spellings
        self.protocol = protocol
        self.title = title
        self.rows = tuple(rows)
        self.events: Mapping[str, EventKind] = {event.kind: event for event in events}
        self.rules: Mapping[str, Rule] = {rule.key: rule for rule in rules}
        self._by_name: dict[tuple[Direction, str], tuple[MessageType, ...]] = {}
        self.transport_rows = tuple(transport_rows)
        for row in (*self.rows, *self.transport_rows):
            key = (row.direction, row.name)
            self._by_name[key] = (*self._by_name.get(key, ()), row)

    def part(self, rows: Iterable[MessageType]) -> Grammar:
        """Return the grammar of a codec that reads messages of these rows for the codec of all."""
        return Grammar(self.protocol, self.title, rows=rows, lenient=self.lenient)

    def rows_named(self, direction: Direction, name: str) -> tuple[MessageType, ...]:
        """Return the rows (dialects) of a message name in one direction; empty if there is none."""
        return self._by_name.get((direction, name), ())

    def is_shared(self, direction: Direction, name: str) -> bool:
        """Return True if several messages of the specification have this name, such as question and notice.

        Then `answers` does not tell which of them is answered.
        """
        return sum(row.deviation is None for row in self.rows_named(direction, name)) > 1

    def row_of(self, name: str, direction: Direction, fields: Fields) -> MessageType | None:
        """Return the first row of a message name with these fields, if possible one that has their values."""
        rows = [row for row in self.rows_named(direction, name) if row.matches(fields)]
        if len(rows) < 2:
            return rows[0] if rows else None
        return next((row for row in rows if row.has_values(fields)), rows[0])

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the protocol: names of messages and fields, and fixed words of values."""
        rows = (*self.rows, *self.transport_rows)
        fields = [field for row in rows for field in row.fields]
        return frozenset(
            [*self._spellings([*(row.name for row in rows), *(field.name for field in fields)])]
            + [word for field in fields for word in field.type.all_words()]
            + [*self._more_words]
        )

    def names(self, direction: Direction) -> list[str]:
        """Return the message names of a direction in the order of the grammar."""
        return list(dict.fromkeys(row.name for row in self.rows if row.direction == direction))

    def heartbeats_to(self, asked: str, direction: Direction) -> list[str]:
        """Return the names of the heartbeats of a direction that answer the message `asked`."""
        return [
            row.name
            for row in (*self.rows, *self.transport_rows)
            if row.direction == direction and row.heartbeat and asked in row.answers
        ]

    def free_heartbeats(self, direction: Direction) -> list[str]:
        """Return the names of the heartbeats of a direction that answer nothing, and are due at any time."""
        return [
            row.name for row in self.rows if row.direction == direction and row.heartbeat and not row.answers
        ]

    def nearest(self, name: str, direction: Direction) -> str | None:
        """Return the known message name closest to `name`, None if none is close."""
        return nearest_word(name.strip(), self.names(direction))


def error_at(
    code: str, text: str, place: Place, expected: str | None = None, clause: str | None = None
) -> Violation:
    """Return the error of a malformed message at a place in its frame."""
    return Violation("error", "malformed", code, text, *place, expected, clause)


def unreadable(*violations: Violation) -> Decoded:
    """Return a decoded frame whose message type is unknown."""
    return Decoded(None, {}, "{}", False, violations)


def nearest_word(text: str, words: Iterable[str]) -> str | None:
    """Return the word that equals `text` except for case and whitespace, or that is similar to it."""
    return _nearest(text[:_MEANT].strip().casefold(), tuple(words))


@lru_cache
def _nearest(meant: str, words: tuple[str, ...]) -> str | None:
    # A comparison takes a millisecond, and a wrong program sends its unknown word again and again.
    folded = {word.casefold(): word for word in words}
    if meant in folded:
        return folded[meant]
    close = get_close_matches(meant, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def count_of_fields(count: int, noun: str = "field") -> str:
    """Return `no field`, `1 field` or `2 fields`."""
    return f"no {noun}" if count == 0 else f"{count} {noun}{'s' if count > 1 else ''}"


def sender_of(direction: Direction) -> str:
    """Return the words for the sender of a direction."""
    return "a client" if direction == "c2s" else "a server"


def blame_of(direction: Direction) -> Blame:
    """Return the sender of a direction."""
    return "client" if direction == "c2s" else "server"
