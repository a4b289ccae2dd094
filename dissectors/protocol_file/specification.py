"""The content of a protocol file: what `reader` reads and `protocol` turns into a `Dissector`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from kiebitz.dissectors.conformance.expectations import Expectation
from kiebitz.dissectors.grammar.field_type import FieldType, Wrong
from kiebitz.dissectors.grammar.fields import Limits
from kiebitz.dissectors.grammar.grammar import EventKind, Rule
from kiebitz.dissectors.grammar.json.forms import Form, OddWord, SizeRule
from kiebitz.dissectors.grammar.lenient import Lenient, Spellings
from kiebitz.dissectors.model import Direction, Transport
from kiebitz.dissectors.protocol_file.sections import (
    BoardSpec,
    EventSpec,
    IdentitySpec,
    ProbeSpec,
    ReferenceSpec,
    RoomSpec,
    RuleSpec,
    StatisticSpec,
)
from kiebitz.dissectors.queries import Query

FramingKind = Literal[
    "lines",
    "datagrams",
    "delimiter",
    "block",
    "length",
    "size",
    "fields",
    "send",
    "json",
    "xml",
    "websocket",
]
FormatKind = Literal["words", "delimited", "lines", "pairs", "json", "xml", "struct"]
ByteOrder = Literal["big", "little"]
TextEncoding = Literal["utf-8", "latin-1", "ascii"]
Inclusive = Literal["", "length", "header"]
IntegerKind = Literal["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "varint"]

LENGTH, NAME = "length", "name"
"""Names of the parts of a header that have a meaning."""


class HeaderPart(msgspec.Struct, frozen=True):
    """A part of a header: a `field`, or bytes that are always the same, which are `constant`.

    The fields `length` and `name` are the length of the message, and what stands for its name.
    """

    field: FieldSpec | None = None
    constant: bytes = b""


class BeforePart(msgspec.Struct, frozen=True):
    """A field before the name of a message in text, with the characters around it; it may be absent."""

    field: FieldSpec
    opening: str = ""
    closing: str = ""


class Framing(msgspec.Struct, frozen=True, kw_only=True):
    """How a byte stream is cut into frames.

    Attributes:
        kind: `lines` end with LF or CR LF; a `delimiter` ends in `end`; a `block` is lines up to a line that
            is `end`; `length` has a header; `size` has as many bytes each; `fields` end as their fields do;
            `send` is what a segment has, which is a guess; `json` is concatenated values; `xml` is
            concatenated elements; `websocket` has a message in each message of RFC 6455.
        end: The bytes after a frame, or the text of a block's last line; in XML, an empty line or nothing; in
            JSON, a line feed or nothing.
        prefix: Type of the length, if that is the whole header.
        header: The parts of the header; empty if it is a length only, or if there is none.
        size: Number of bytes of each frame of `size`.
        before: The fields in text before the name of a message.
        order: Byte order of the header.
        inclusive: `length` if the length counts its own bytes, too, or all of the `header`; else empty.
    """

    kind: FramingKind = "lines"
    end: str = "\n"
    prefix: IntegerKind = "u32"
    header: tuple[HeaderPart, ...] = ()
    size: int = 0
    before: tuple[BeforePart, ...] = ()
    order: ByteOrder = "big"
    inclusive: Inclusive = ""

    @property
    def fields(self) -> tuple[FieldSpec, ...]:
        """The fields of the header, or of the text before the name, that are fields of every message."""
        if self.before:
            return tuple(part.field for part in self.before)
        found = (part.field for part in self.header if part.field is not None)
        return tuple(field for field in found if field.name not in (LENGTH, NAME))

    @property
    def has_name(self) -> bool:
        """True if the header has what stands for a message's name."""
        return any(part.field is not None and part.field.name == NAME for part in self.header)


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How a frame contains a message's name and fields.

    Attributes:
        kind: `words` are separated by blanks; `delimited` by `delimiter`; `lines` are lines, the first with
            the name; `pairs` are `key=value`; `json`, `xml`; `struct` is binary.
        name: Path of the message's name: keys with dots (JSON, pairs), the type of the code (struct), or
            `first`, the first word. In XML: `tag`, `@attribute`, or `element/@attribute`. In JSON, `*`: the
            object's only key; its value is the object with the fields, or any other value as the field
            `value`. Empty if the name is not in the message.
        fields: Path of the object that has the fields; empty if it is the message itself.
        delimiter: Text between fields, or between pairs.
        assign: Text between key and value of a pair.
        quote: Quotation mark around words with blanks; empty if there is none.
        pads: Paddings before a closing quotation mark, the usual one first; then lists are quoted, too.
        line_end: Text that the encoder appends to a message.
        order: Byte order of numbers.
        encoding: Encoding of text.
        mark: Text before each name; see `lines`.
        end: Last line of a message; empty if it ends with its fields.
        envelope: Name of an XML element around messages; empty if there is none.
        stays_open: True if it is around all messages of a direction.
        outer: Its attributes that are fields of the message.
        is_strict: True if a message has only what its row says: in XML, where that says it; in a datagram
            with text, no line end.
        spelled: Other spellings of words, in JSON of keys, too, that readers accept.
        letters: Replacements of letters in these that readers accept.
        python: Types of a package by name; None if the file is not that of a package.
    """

    kind: FormatKind = "words"
    name: str = "first"
    fields: str = ""
    delimiter: str = " "
    assign: str = "="
    quote: str = ""
    pads: tuple[str, ...] = ()
    line_end: str = ""
    order: ByteOrder = "big"
    encoding: TextEncoding = "utf-8"
    mark: str = ""
    end: str = ""
    envelope: str = ""
    stays_open: bool = False
    outer: tuple[FieldSpec, ...] = ()
    is_strict: bool = False
    spelled: Mapping[str, Sequence[str]] = {}
    letters: Mapping[str, str] = {}
    python: Mapping[str, FieldType] | None = None

    @property
    def spellings(self) -> Spellings:
        """The spellings of words and keys that readers accept."""
        return Spellings(self.spelled, self.letters)


# Types of fields. Keys of a table in `[types]` are attributes that are given by name.


class _Type(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of any type: its description, and invalid values for the test cases of `probe`."""

    title: str = ""
    wrong: tuple[Wrong, ...] = ()


class TextType(_Type, frozen=True):
    """Any text; `rest` is all that remains of a frame. `pattern` must match the whole text.

    Texts other than the `usual` one are noted with the sentence `note`. An anonymized copy keeps the words
    `keep`, texts that match it if it is a pattern, or all.
    """

    pattern: str | None = None
    rest: bool = False
    keep: bool | str | tuple[str, ...] = ()
    usual: str | None = None
    note: str = ""


class NumberType(Limits, frozen=True, kw_only=True):
    """A number within inclusive limits; `whole` if it has no fraction. Below `usual` it is noted."""

    title: str = ""
    wrong: tuple[Wrong, ...] = ()
    usual: int | None = None


class BooleanType(_Type, frozen=True):
    """True or false."""


ChoiceValue = str | int | bool | None


class ChoiceType(_Type, frozen=True):
    """One of a few values: words, or in JSON also numbers.

    If other words stand for the values in a text, or numbers in a binary message, `words` are these, and `of`
    is the type of the numbers, if the file says it. Readers accept other spellings of words, `spelled`, and
    `odd` words; both are noted.
    """

    values: tuple[ChoiceValue, ...]
    words: tuple[str, ...] = ()
    of: IntegerKind | None = None
    spelled: Mapping[str, tuple[str, ...]] = {}
    odd: Mapping[str, OddWord] = {}

    @property
    def plain(self) -> tuple[str | int, ...]:
        """The values that are texts or numbers."""
        return tuple(value for value in self.values if isinstance(value, str | int))


class IdentifierType(_Type, frozen=True):
    """An identifier of a `kind`: `player` is a player's name, `id` a player's number; others are free.

    `of` is the type of the value.
    """

    kind: str
    of: TextType | NumberType | BinaryType = TextType()


class ListType(_Type, frozen=True):
    """A list of `least` to `most` items; in text, with a separator between them.

    An empty separator is the usual one: a line end between lines of the message, else a comma. Of `nulls`, an
    empty item is null. `noun` is a word for its items. `count` is the field before it that has their number,
    `until` the word after the last one. If it `is_cut`, its items have nothing between them, and `pattern`
    must match the whole text.
    """

    item: FieldTypeSpec
    separator: str = ""
    least: int = 0
    most: int | None = None
    nulls: bool = False
    noun: str = ""
    count: str = ""
    until: str = ""
    is_cut: bool = False
    pattern: str = ""


class ObjectType(_Type, frozen=True):
    """An object with fields; in text, values with a separator between them.

    An empty separator is the usual one: a colon, or a blank if words are quoted with a padding. `noun` is a
    word for it; if it is `compact`, `show` has it in one piece. If it `is_cut`, its values have nothing
    between them, and `pattern` must match the whole text.
    """

    fields: tuple[FieldSpec, ...]
    separator: str = ""
    is_cut: bool = False
    pattern: str = ""
    noun: str = ""
    compact: bool = False
    sizes: SizeRule | None = None


class AnyType(_Type, frozen=True):
    """Any JSON value; in text, any text."""


class EitherType(_Type, frozen=True):
    """A value of one of several types, which differ in the kind of JSON value."""

    options: tuple[FieldTypeSpec, ...]
    noun: str = ""


class BagType(_Type, frozen=True):
    """In JSON, numbers of things of some kinds: an object, in which an absent kind is 0.

    Attributes:
        names: Names of the kinds.
        hidden: Key of the number of hidden things, which may be in place of the object, too; empty if none
            are.
        owes: True if numbers below zero are only noted.
        noun: Word for the things.
    """

    names: tuple[str, ...]
    hidden: str = ""
    owes: bool = False
    noun: str = ""


class MapType(_Type, frozen=True):
    """In JSON, an object with any keys of one type, each with a value of another."""

    key: FieldTypeSpec
    value: FieldTypeSpec


class BinaryType(_Type, frozen=True):
    """A value of the format `struct`.

    Attributes:
        kind: An integer; `f32`, `f64`; `bool8`; `text` or `bytes`.
        size: Of text and bytes: the number of bytes, the type of the length prefix, or None for all that
            remains.
    """

    kind: IntegerKind | Literal["f32", "f64", "bool8", "text", "bytes"]
    size: int | IntegerKind | None = None


class PythonType(_Type, frozen=True):
    """A type of a package, which is in Python."""

    name: str


FieldTypeSpec = (
    TextType
    | NumberType
    | BooleanType
    | ChoiceType
    | IdentifierType
    | ListType
    | ObjectType
    | AnyType
    | EitherType
    | BagType
    | MapType
    | BinaryType
    | PythonType
)


class FieldSpec(msgspec.Struct, frozen=True):
    """A field of a message; `title` is its type as written in the file, and `description` its meaning.

    A `generated` value differs in every game, such as a token. An `optional` field may be absent.
    `is_attribute` is true of an attribute of an XML element. In text, `before` and `after` are fixed texts
    around the value.
    """

    name: str
    type: FieldTypeSpec
    title: str
    optional: bool = False
    generated: bool = False
    is_attribute: bool = False
    description: str = ""
    before: str = ""
    after: str = ""


def value_type(kind: FieldTypeSpec) -> FieldTypeSpec:
    """Return a type itself, or the type of the value of an identifier."""
    return kind.of if isinstance(kind, IdentifierType) else kind


def parts_of(kind: FieldTypeSpec) -> Sequence[FieldTypeSpec]:
    """Return the types directly within a type."""
    match kind:
        case ListType(item):
            return (item,)
        case ObjectType(fields):
            return [field.type for field in fields]
        case EitherType(options):
            return options
        case MapType(key, value):
            return key, value
    return ()


class MessageSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `[messages]`.

    Attributes:
        code: The number that stands for the name, None if the name itself is sent.
        answers: Names of the messages to which it replies.
        broadcast: True if the server sends a copy to each client.
        heartbeat: True if it has no meaning in the game.
        description: Its meaning, for the reference.
        summary: Words for listings, with fields in braces.
        clause: Clause of the specification.
        dialect: Difference from the specification.
        end: Last line of its packets, None for that of all messages.
        repeats: True if another message may follow without the empty line after it.
        form: In JSON with the name as a key, the form of its value: an object with the fields, a list of
            them, or the only field itself.
        beside: Fields that are next to the name instead.
        sizes: The number of items of a field by the value of another one.
    """

    name: str
    direction: Direction
    fields: tuple[FieldSpec, ...] = ()
    code: int | None = None
    answers: tuple[str, ...] = ()
    broadcast: bool = False
    heartbeat: bool = False
    description: str = ""
    summary: str | None = None
    clause: str | None = None
    dialect: str | None = None
    end: str | None = None
    repeats: bool = False
    form: Form = "object"
    beside: tuple[str, ...] = ()
    sizes: SizeRule | None = None


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol file.

    Attributes:
        text: The file's text.
        protocol: Name in the database and in filters, one word in small letters.
        title: Name for people.
        transport: `tcp` or `udp`.
        ports: Default ports of its servers.
        together: True if the ports of an address are those of one server.
        formats: The formats of the directions, if they differ.
        clause: Clause about the form of messages.
        lenient: Deviations that readers accept.
        types: The named types.
        game: Rules for the game to which a message belongs; None if there is one at a time.
        codec: The class of the codec in Python: `okey.grammar:OkeyCodec`; None for that of the format.
        table: The table in Python, such as `okey.table:OkeyTable`; None if events and rules are all.
        view: The function in Python that draws the table; None for `board`.
        event_kinds: The kinds of events in the grammar, if the table is in Python.
        table_rules: The rules in the grammar, if the table is in Python.
        references: The fields by which an answer names its request, in the order in which they are tried.
        expectations: The right reactions of a program under test.
    """

    text: str
    protocol: str
    title: str
    transport: Transport
    ports: tuple[int, ...]
    together: bool = False
    framing: Framing
    format: Format
    formats: Mapping[Direction, Format] = {}
    clause: str | None = None
    lenient: Lenient = Lenient()
    types: Mapping[str, FieldTypeSpec] = {}
    messages: tuple[MessageSpec, ...]
    game: RoomSpec | None = None
    codec: str | None = None
    table: str | None = None
    view: str | None = None
    references: tuple[ReferenceSpec, ...] = ()
    identity: IdentitySpec | None = None
    events: tuple[EventSpec, ...] = ()
    event_kinds: tuple[EventKind, ...] = ()
    rules: tuple[RuleSpec, ...] = ()
    table_rules: tuple[Rule, ...] = ()
    board: BoardSpec | None = None
    statistics: tuple[StatisticSpec, ...] = ()
    queries: tuple[Query, ...] = ()
    probe: ProbeSpec = ProbeSpec()
    expectations: tuple[Expectation, ...] = ()

    def format_of(self, direction: Direction) -> Format:
        """Return the format of the messages of a direction."""
        return self.formats.get(direction, self.format)

    @property
    def codes(self) -> dict[tuple[Direction, str], int]:
        """The numbers that stand for names, by direction and name."""
        return {
            (message.direction, message.name): message.code
            for message in self.messages
            if message.code is not None
        }
