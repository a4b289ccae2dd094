"""The tables and keys of a protocol file, besides the sections that a specification keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from kiebitz.dissectors.conformance.expectations import Reaction, RequirementLevel
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE
from kiebitz.dissectors.grammar.json.forms import Form, OddWord, SizeRule
from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.model import Blame, Group, Severity, Transport
from kiebitz.dissectors.protocol_file.sections import (
    BoardSpec,
    EventSpec,
    IdentitySpec,
    NamedTable,
    Names,
    ProbeSpec,
    ReferenceSpec,
    RoomSpec,
    RuleSpec,
    StatisticSpec,
    Table,
    one_or_several,
    values,
)
from kiebitz.dissectors.protocol_file.specification import (
    ByteOrder,
    FormatKind,
    FramingKind,
    TextEncoding,
)

Condition = Annotated[bool | str, values("true, false, or a condition")]
Side = Literal["before", "after"]
Port = Annotated[int, Meta(ge=1, le=65535)]
Row = Annotated[
    str,
    Meta(
        description='"DIRECTION: FIELDS < ANSWERED", such as "s*: name=player pips=1..6 < ROLL"',
        pattern=r"^\s*[sc][*~]*\s*:",
    ),
]
PROTOCOL_NAME = r"[a-z][a-z0-9_]{0,29}"
"""Regular expression for the name of a protocol."""


class RowTable(Table, frozen=True):
    """A message with a description.

    Attributes:
        row: The row, such as 's*: name=player'.
        about: Meaning of the message, for the reference.
        summary: Words for listings, with fields in braces.
        clause: Clause of the specification, with names of clauses in braces.
        dialect: Difference from the specification, which is noted once for each server.
        end: Last line of its packets of lines; empty if they end with their fields.
        descriptions: Fields of this row, and their meanings.
        repeats: True if another message may follow without the empty line that XML messages end in.
        form: Form of the value of a key that is the name: an object, a list, or one field.
        beside: Fields that are next to such a key.
        sizes: Number of items of one field by the value of another.
    """

    row: str = field(name="is")
    about: str = ""
    summary: str = ""
    clause: str = ""
    dialect: str = ""
    end: str | None = None
    descriptions: Mapping[str, str] = {}
    repeats: bool = False
    form: Form | None = None
    beside: tuple[str, ...] = ()
    sizes: SizeRule | None = None


class WrongTable(Table, frozen=True):
    """A value for the test cases of probe that its type does not yield by itself.

    Attributes:
        kind: A word for it in names of test cases.
        title: The same in words.
        text: The value as it is sent.
        allowed: True if it is no violation.
    """

    kind: str
    title: str
    text: str
    allowed: bool = False


class TypeTable(Table, frozen=True):
    """A type with keys.

    Attributes:
        type: The type, such as '1..6'.
        title: Words for its values, in the reference and in diagnostics.
        descriptions: Fields of this type, and their meanings.
        keep: Texts that an anonymized copy keeps: words, those like a '/pattern/', or all.
        usual: The usual text, or the least usual number; others are noted.
        note: Sentence about an unusual text, with {value}.
        noun: Word for a value, or for the items of a list, in diagnostics.
        compact: True if show has the object in one piece.
        hidden: Key of the number of hidden things in a bag.
        owes: True if numbers below zero are noted, and no errors.
        spelled: Words, and other spellings that are noted.
        odd: Words that stand for another value.
        sizes: Number of items of one field by the value of another.
        wrong: Values for the test cases of probe.
    """

    type: str = field(name="is")
    title: str = ""
    descriptions: Mapping[str, str] = {}
    keep: Annotated[bool | str | tuple[str, ...], values("true, a list of words, or a '/pattern/'")] = ()
    usual: Annotated[str | int | None, values("a text or a whole number")] = None
    note: str = ""
    noun: str = ""
    compact: bool = False
    hidden: str = ""
    owes: bool = False
    spelled: Annotated[Mapping[str, list[str]], values("a table from words to lists")] = {}
    odd: Mapping[str, OddWord] = {}
    sizes: SizeRule | None = None
    wrong: tuple[WrongTable, ...] = ()


class PythonTable(Table, kw_only=True, frozen=True):
    """The parts of a package in Python.

    Attributes:
        codec: The class of the codec, such as 'okey.grammar:OkeyCodec'.
        table: The class of the game table, such as 'okey.table:OkeyTable'.
        view: The function that draws the table, such as 'okey.view:view_of'.
    """

    codec: str = ""
    table: str = ""
    view: str = ""


class FormatsTable(Table, kw_only=True, frozen=True):
    """The formats of messages of clients and of the server.

    Attributes:
        c: Format of messages of a client.
        s: Format of messages of the server.
    """

    c: FormatKind
    s: FormatKind


class PythonEventTable(NamedTable, kw_only=True, frozen=True):
    """A kind of event, if the table is in Python.

    Attributes:
        data: Names of the event's values.
        say: Sentence with values in braces.
        instead: Conditions such as 'mode=NICHTS', 'tile=' for null or 'why!=', and sentences in place of say.
        on: Messages that report it on the connection of its actor.
        identifies: True if these messages identify the connection's player.
        restores: True if a client is an earlier player again.
        joins: True if the actor takes part in the game from here on.
        ends: True, or a condition: the game has ended.
        cancels: True, or a condition: the game ends without a result.
        timeout: True, or a condition: an answer is missing.
        secret: True if only the actor knows of it.
        public: True if the server sends it to each player at the table.
        directed: True if it may have been sent to one client.
        reveals: Paths of the state that the message contains.
        ending: Value with the end of a connection.
        implied_by: The position of the event that implies this one: observers of it know this.
        accompanies: The position of the event whose message it belongs to.
    """

    data: Annotated[tuple[str, ...], one_or_several("a name or a list of names")] = ()
    say: str
    instead: Annotated[Mapping[str, str], values("a table from conditions to sentences")] = {}
    on: Names = ()
    identifies: bool = False
    restores: bool = False
    joins: bool = False
    ends: Condition = False
    cancels: Condition = False
    timeout: Condition = False
    secret: bool = False
    public: bool = False
    directed: bool = False
    reveals: tuple[str, ...] = ()
    ending: str = ""
    implied_by: Side | None = None
    accompanies: Side = "before"


class PythonRuleTable(NamedTable, kw_only=True, frozen=True):
    """A rule, if the table is in Python.

    Attributes:
        on: The message that violates it.
        say: Sentence for the violation.
        expected: Sentence about what is expected.
        clause: Clause; {clause} is that of the message, as without this key.
        severity: Severity of a violation.
        group: Group of the diagnostic.
        blame: Who is at fault, if that is not the sender.
        unwritten: Reason for the rule, if it has no clause.
    """

    on: Names = ()
    say: str
    expected: str = ""
    clause: str = OWN_CLAUSE
    severity: Severity = "error"
    group: Group = "rule"
    blame: Blame | None = None
    unwritten: str = ""


class ExpectationTable(NamedTable, kw_only=True, frozen=True):
    """The right reactions of a program under test to some test cases.

    Attributes:
        server: Level of the requirement for servers.
        client: Level of the requirement for clients.
        reaction: The right reactions.
        refusals: Messages that refuse, such as 'ERROR' or 'MOVED ok=false'.
        clause: Clause of the specification, with names of clauses in braces.
        quote: Words of the clause, or the name of a quote in braces.
        spares_others: False where another player's game may end.
        answer: The messages that count as an answer.
        others: The message that the other clients must receive.
    """

    server: RequirementLevel | None = None
    client: RequirementLevel | None = None
    reaction: Annotated[tuple[Reaction, ...], one_or_several("a reaction")]
    refusals: Names = field(name="as", default=())
    clause: str = ""
    quote: str = ""
    spares_others: bool = True
    answer: Names = ()
    others: str = ""


Expected = Annotated[tuple[ExpectationTable, ...], one_or_several("a table, or a list of tables")]
"""The reactions to the cases of a pattern."""


class QueryTable(NamedTable, kw_only=True, frozen=True):
    """An example query for Datasette.

    Attributes:
        title: Title.
        about: Meaning of the columns.
        sql: A SELECT on the views of a database.
    """

    title: str
    about: str = ""
    sql: str


class Document(Table, kw_only=True, frozen=True):
    """A protocol file.

    Attributes:
        protocol: Name in filters and in the database: a word of small letters, digits and _.
        title: Name for people.
        transport: tcp by default; udp if framing is datagrams.
        port: Usual ports of servers.
        together: True if the ports of an address are those of one server.
        framing: How bytes are cut into messages.
        format: How a message contains its name and fields.
        formats: The format of each direction, if they differ.
        encoding: Encoding of text.
        line_end: End of messages that Kiebitz writes: a line end, the delimiter, or both.
        end: Bytes after a message, or the text of the last line of a block or of a packet of lines.
        mark: Text before the names of packets of lines.
        header: Parts before a message: length, name, constants, fields: 'name=u8 length=u32 '0x4d58''.
        before: Fields before the name that may be absent, such as '[id=integer][@ref=integer]'.
        size: Number of bytes of each message.
        prefix: Type of the length, if that is the header.
        order: Byte order of binary numbers.
        inclusive: What the length counts beside the message: itself (length or true), or the whole header.
        quote: Quotation mark around words with blanks.
        pad: Paddings before a closing quotation mark; lists are quoted, too.
        delimiter: Text between fields.
        assign: Text between the key and the value of a pair.
        name: Where the name of a message is.
        fields: Path of the object with a message's fields.
        envelope: Element around messages of XML, and its attributes: 'game @version?=text'.
        root: Likewise, an element around all messages of a direction.
        strict: True if a message has only what its row says; in XML, '@x=1..8' is an attribute.
        clause: Clause of the specification about the form of messages.
        codes: Messages, and the numbers that stand for them.
        types: Names of types, and types such as '1..6'.
        spelled: In JSON, words and keys with other spellings that are noted.
        letters: In JSON, letters of words and keys, and what replaces them.
        clauses: Short names of clauses, and their headings.
        descriptions: Fields, and their meanings.
        lenient: Deviations that readers accept: notes, no errors.
        messages: Messages and their rows.
        game: Field with the id of the game, if there are several games at once.
        python: The parts in Python, only in the file of an installed package.
        answers: How an answer names its request, if answers do not come in order; the first that fits.
        identity: How players are recognised.
        events: What happens in a game.
        rules: Rules that messages can violate.
        board: The picture of a table.
        statistics: What kiebitz stats counts.
        expectations: Patterns of probe's cases, and the right reactions; the first that fits counts.
        quotes: Short names of quotes from the specification.
        probe: Facts about the protocol for the test cases of kiebitz probe.
        queries: Queries for Datasette, only in the file of an installed package.
    """

    protocol: Annotated[
        str,
        Meta(pattern=f"^{PROTOCOL_NAME}$"),
        values('a word of up to 30 small letters, digits and "_", such as "dice"'),
    ]
    title: str = ""
    transport: Transport | None = None
    port: Annotated[tuple[Port, ...], one_or_several("a number from 1 to 65535, or a list of them")] = ()
    together: bool = False
    framing: FramingKind | None = None
    format: FormatKind | None = None
    formats: FormatsTable | None = None
    encoding: TextEncoding = "utf-8"
    line_end: str = "\n"
    end: str = ""
    mark: str = ""
    header: str = ""
    before: str = ""
    size: Annotated[Annotated[int, Meta(ge=0, le=1 << 20)], values("a number of bytes up to 1048576")] = 0
    prefix: Literal["u8", "u16", "u32", "u64", "varint"] = "u32"
    order: ByteOrder = "big"
    inclusive: Annotated[bool | Literal["length", "header"], values('true, false, "length" or "header"')] = (
        False
    )
    quote: str = ""
    pad: tuple[str, ...] = ()
    delimiter: str = ""
    assign: str = "="
    name: str = ""
    fields: str = ""
    envelope: str = ""
    root: str = ""
    strict: bool = False
    clause: str = ""
    codes: Mapping[str, int] = {}
    types: Mapping[str, str | TypeTable] = {}
    spelled: Annotated[Mapping[str, list[str]], values("a table from words to lists")] = {}
    letters: Mapping[str, str] = {}
    clauses: Mapping[str, str] = {}
    descriptions: Mapping[str, str] = {}
    lenient: Lenient | None = None
    messages: Mapping[str, Row | RowTable | list[Row | RowTable]]
    game: str | RoomSpec | None = None
    python: PythonTable | None = None
    answers: Annotated[
        tuple[ReferenceSpec, ...], one_or_several('a table, such as { by = "id" }, or a list of tables')
    ] = ()
    identity: IdentitySpec | None = None
    events: Mapping[str, EventSpec] = {}
    rules: Mapping[str, RuleSpec] = {}
    board: BoardSpec | None = None
    statistics: Mapping[str, StatisticSpec] = {}
    expectations: Mapping[str, Expected] = {}
    quotes: Mapping[str, str] = {}
    probe: ProbeSpec | None = None
    queries: Mapping[str, QueryTable] = {}
