"""The content of a protocol file: what `reader` reads and `protocol` turns into a `Dissector`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.conformance.expectations import Expectation, RequirementLevel
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Limits
from kiebitz.dissectors.grammar.grammar import EventKind, Rule
from kiebitz.dissectors.grammar.invalid_values import Wrong
from kiebitz.dissectors.grammar.json.forms import Form, OddWord, SizeRule
from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.grammar.spellings import Spellings
from kiebitz.dissectors.identity import SamePlayer
from kiebitz.dissectors.model import Direction, Severity, Transport
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
GridShape = Literal["square", "hex"]
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
    word for it; if it is `compact`, `show` has it in one piece.
    """

    fields: tuple[FieldSpec, ...]
    separator: str = ""
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


class ReferenceSpec(msgspec.Struct, frozen=True):
    """The fields `by` of an answer, and the fields `of` of its request, have the same values."""

    by: tuple[str, ...]
    of: tuple[str, ...]


class RoomSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for the game, of several, to which a message belongs.

    Attributes:
        id: Expression for the id of the game over `who` and the fields of a message, usually one of these.
        joins: Messages with which a client enters a game; by default, those of the server with an id.
        leaves: Messages with which a client leaves it.
        of: Expression for the player who enters; None if it is the connection's.
    """

    id: str
    joins: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    of: str | None = None


class IdentitySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The messages and fields that identify players.

    Attributes:
        login: Messages in which a client gives its player's name.
        given: Messages of the server that give a connection its player's id (or name).
        named: Messages that contain both an id and a name.
        id: Field with the player's id; None if players have names only.
        name: Field with the player's name.
        left: Messages that say that the player named in them has left.
        same_player: Condition for two clients of one name to be the same player.
        ports: Names of the players at the protocol's ports, in their order.
    """

    login: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    id: str | None = None
    name: str | None = None
    left: tuple[str, ...] = ()
    same_player: SamePlayer = "connection"
    ports: tuple[str, ...] = ()


class Put(msgspec.Struct, frozen=True):
    """A change of the state: `path` with `{names}` in braces, and the new value.

    A text, also one in a list or an object, is an expression; any other value is itself, and None removes
    the path.
    """

    path: str
    value: Any


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `[events]`.

    Attributes:
        kind: Name of the event.
        on: Messages that report it.
        direction: The direction of these messages; None for both.
        let: Expressions for values that the others may name; each may use those before it.
        when: Condition, as an expression.
        say: Sentence with names in braces.
        actor: Expression for the acting player's name; by default `who`.
        puts: Changes of the state.
        opens: True if a game begins.
        ends: True if the game ends.
        joins: True if the actor takes part in the game from here on, which is no move.
        cancels: True if the game ends without having been played.
        timeout: True if a player loses only because an answer is missing.
        result: Expressions by name for the game's result, such as `winner`.
        label: Sentence for the label of the game that begins.
        secret: True if only its actor knows of it.
        turn: True if it says whose turn it is.
        silent: True if it only changes the state, and is not reported.
        data: Names of its values, if the table is in Python.
        row: Its row of the grammar, if the table is in Python.
    """

    kind: str
    on: tuple[str, ...]
    direction: Direction | None = None
    let: Mapping[str, str] = {}
    when: str | None = None
    say: str = ""
    actor: str = "who"
    puts: tuple[Put, ...] = ()
    opens: bool = False
    ends: bool = False
    joins: bool = False
    cancels: bool = False
    timeout: bool = False
    result: Mapping[str, Any] = {}
    label: str | None = None
    secret: bool = False
    turn: bool = False
    silent: bool = False
    data: tuple[str, ...] = ()
    row: EventKind | None = None


class RuleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `[rules]`: it is violated if `when` is true and `unless` is false.

    `let` has expressions for values that the others may name. If a value in them is unknown, nothing is
    reported. If the table is in Python, `row` is the rule's row of the grammar.
    """

    key: str
    on: tuple[str, ...]
    direction: Direction | None = None
    let: Mapping[str, str] = {}
    when: str | None = None
    unless: str | None = None
    say: str = ""
    severity: Severity = "error"
    clause: str | None = None
    expected: str | None = None
    row: Rule | None = None


class GridSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangular board: cells in the state, and tokens of players at coordinates.

    Attributes:
        cells: State path of a list of rows, a list of cells, or an object from `x,y` to a cell.
        columns: True if `cells` is a list of columns instead.
        runs: True if a number in a list of cells is that many empty cells.
        cell: Path of the word within a cell that is an object or a list.
        symbols: Words of cells and the tokens that are drawn for them; an empty token is an empty square.
        tokens: State path of an object from players to objects with coordinates.
        x: Name of the column (from `first`).
        y: Name of the row.
        width: Number of columns, or its state path; None to derive it.
        height: Number of rows, likewise.
        first: Number of the first column and row.
        above: State path of an object from `x,y` to the lines above cells, each a player or any other value.
        left: State path of an object from `x,y` to the lines left of cells.
        shape: `square`, or `hex`: each second row is shifted to the right by half a cell.
    """

    cells: str | None = None
    columns: bool = False
    runs: bool = False
    cell: str | None = None
    symbols: Mapping[str, str] = {}
    tokens: str | None = None
    x: str = "x"
    y: str = "y"
    width: int | str | None = None
    height: int | str | None = None
    first: int = 0
    above: str | None = None
    left: str | None = None
    shape: GridShape = "square"


class BoardSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`[board]`: the picture of a table. All paths lead through the state; `{player}` is each player.

    Attributes:
        title: Sentence above the picture.
        players: Path of an object whose keys are the players.
        turn: Path of the name of the player whose turn it is.
        scores: Path of a player's score, with `{player}`.
        unit: Unit of the scores.
        figures: Words to paths of further numbers of a player, with `{player}`.
        hand: Path of a list, or of a number of hidden pieces, with `{player}`.
        dice: Path of a list of faces, or of a number.
        piles: Labels to paths of lists, or of numbers of hidden pieces.
        grid: The board.
        text: Sentences below the picture.
    """

    title: str | None = None
    players: str = "players"
    turn: str | None = None
    scores: str | None = None
    unit: str = "points"
    figures: Mapping[str, str] = {}
    hand: str | None = None
    dice: str | None = None
    piles: Mapping[str, str] = {}
    grid: GridSpec | None = None
    text: tuple[str, ...] = ()


StatisticForm = Literal["counts", "shares", "histogram", "course", "durations"]


class StatisticSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `[statistics]`.

    Attributes:
        on: Kinds of the events that are counted, or a reader in Python such as `okey.statistics:Wins`.
        when: Condition, as an expression over the data of an event and the state after it.
        line: Expressions for the lines, each with its column; by default, the actor's line.
        by: Expression for the column, or the value of a histogram; by default, the kind of the event.
        split: Text between several values in one.
        words: Words for values; if there are some, no other values are counted.
        of: Name of the lines, or of the values of a histogram in the plural.
        amount: Expression for a number; by default, 1, and in a course the number of events so far.
        unit: Unit of a course.
        chance: Weights of the values of a histogram, if chance decides.
        begins: Condition for the events with which a duration begins.
    """

    key: str
    title: str
    form: StatisticForm
    on: tuple[str, ...]
    when: str | None = None
    line: Mapping[str, str | None] = {}
    by: str | None = None
    split: str = ""
    words: Mapping[str, str] = {}
    of: str = "player"
    amount: str | None = None
    unit: str = "times"
    chance: Mapping[str, int] = {}
    begins: str | None = None


class SpellingSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `[probe.spellings]`; `frame` names the function that respells a message."""

    word: str
    sentence: str
    frame: str
    level: RequirementLevel
    clause: str | None
    quote: str | None
    messages: str


class ProbeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`[probe]` and `[expectations]`: what `kiebitz probe` knows about the protocol.

    `timeouts` are seconds by patterns of messages. `bot`, `simulated_server` and `violations` are in Python.
    """

    expectations: tuple[Expectation, ...] = ()
    spellings: tuple[SpellingSpec, ...] = ()
    seats: int = 2
    silence_s: float | None = None
    timeouts: Mapping[str, float] = {}
    awaited: tuple[str, ...] = ()
    spares_others: bool = True
    broken_by: Mapping[str, str] = {}
    unreachable: Mapping[str, str] = {}
    bot: str = ""
    simulated_server: str = ""
    violations: str = ""


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
        codec: The class of the codec in Python, such as `okey.codec:OkeyCodec`; None for that of the format.
        table: The table in Python, such as `okey.table:OkeyTable`; None if events and rules are all.
        view: The function in Python that draws the table; None for `board`.
        references: The fields by which an answer names its request, in the order in which they are tried.
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
    rules: tuple[RuleSpec, ...] = ()
    board: BoardSpec | None = None
    statistics: tuple[StatisticSpec, ...] = ()
    queries: tuple[Query, ...] = ()
    probe: ProbeSpec = ProbeSpec()

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
