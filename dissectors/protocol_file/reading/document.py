"""The tables and keys of a protocol file: their types, descriptions, and the JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from kiebitz.dissectors.conformance.expectations import Reaction, RequirementLevel
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE
from kiebitz.dissectors.grammar.json.forms import Form
from kiebitz.dissectors.model import Blame, Group, Severity, Transport
from kiebitz.dissectors.protocol_file.specification import (
    ByteOrder,
    FormatKind,
    FramingKind,
    GridShape,
    TextEncoding,
)


def _kind(words: str) -> Meta:
    """Name the values of a type for error messages."""
    return Meta(extra={"is": words})


def _about(description: str) -> Meta:
    return Meta(description=description)


Text = Annotated[str, _kind("a text")]
Flag = Annotated[bool, _kind("true or false")]
Condition = Annotated[bool | str, _kind("true, false, or a condition")]
Side = Literal["before", "after"]
Names = Annotated[str | list[str], _kind("a name or a list of names")]
Port = Annotated[int, Meta(ge=1, le=65535)]
Row = Annotated[
    str,
    Meta(
        description='"DIRECTION: FIELDS < ANSWERED", such as "s*: name=player pips=1..6 < ROLL"',
        pattern=r"^\s*[sc][*~]*\s*:",
    ),
]
Seconds = Annotated[float, Meta(gt=0, le=3600), _kind("a number of seconds")]
_SIZE = "a number from 1 to 60, or a path of the state"
Size = Annotated[Annotated[int, Meta(ge=1, le=60)] | str, _kind(_SIZE)]


PROTOCOL_NAME = r"[a-z][a-z0-9_]{0,29}"
"""Regular expression for the name of a protocol."""


class Table(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class RowTable(Table):
    """A message with a description."""

    row: Annotated[Text, _about("The row, such as 's*: name=player'.")] = field(name="is")
    about: Annotated[Text, _about("Meaning of the message, for the reference.")] = ""
    summary: Annotated[Text, _about("Words for listings, with fields in braces.")] = ""
    clause: Annotated[Text, _about("Clause of the specification, with names of clauses in braces.")] = ""
    dialect: Annotated[
        Text, _about("Difference from the specification, which is noted once for each server.")
    ] = ""
    end: Annotated[
        Text | None, _about("Last line of its packets of lines; empty if they end with their fields.")
    ] = None
    descriptions: Annotated[
        dict[str, str], _about("Fields of this row, and their meanings."), _kind("a table")
    ] = {}
    repeats: Annotated[
        Flag, _about("True if another message may follow without the empty line that XML messages end in.")
    ] = False
    form: Annotated[
        Form | None, _about("Form of the value of a key that is the name: an object, a list, or one field.")
    ] = None
    beside: Annotated[list[str], _about("Fields that are next to such a key."), _kind("a list")] = []
    sizes: Annotated[SizesTable | None, _about("Number of items of one field by the value of another.")] = (
        None
    )


class SizesTable(Table):
    """The number of items of one field by the value of another."""

    by: Annotated[Text, _about("Field whose value decides.")]
    of: Annotated[Text, _about("Field that is a list.")]
    sizes: Annotated[dict[str, int], _about("Numbers of items by value."), _kind("a table")]
    otherwise: Annotated[int, Meta(ge=0), _about("Number of items for any other value.")]


class OddTable(Table):
    """A word that is not specified, and stands for another value."""

    value: Annotated[str | int, _about("The value that it stands for."), _kind("a word or a number")]
    note: Annotated[Text, _about("Sentence with which it is noted.")]


class WrongTable(Table):
    """A value for the test cases of probe that its type does not yield by itself."""

    kind: Annotated[Text, _about("A word for it in names of test cases.")]
    title: Annotated[Text, _about("The same in words.")]
    text: Annotated[Text, _about("The value as it is sent.")]
    allowed: Annotated[Flag, _about("True if it is no violation.")] = False


class TypeTable(Table):
    """A type with keys."""

    type: Annotated[Text, _about("The type, such as '1..6'.")] = field(name="is")
    title: Annotated[Text, _about("Words for its values, in the reference and in diagnostics.")] = ""
    descriptions: Annotated[
        dict[str, str], _about("Fields of this type, and their meanings."), _kind("a table")
    ] = {}
    keep: Annotated[
        bool | str | list[str],
        _about("Texts that an anonymized copy keeps: words, those like a '/pattern/', or all."),
        _kind("true, a list of words, or a '/pattern/'"),
    ] = []
    usual: Annotated[
        str | int | None,
        _about("The usual text, or the least usual number; others are noted."),
        _kind("a text or a whole number"),
    ] = None
    note: Annotated[Text, _about("Sentence about an unusual text, with {value}.")] = ""
    noun: Annotated[Text, _about("Word for a value, or for the items of a list, in diagnostics.")] = ""
    compact: Annotated[Flag, _about("True if show has the object in one piece.")] = False
    hidden: Annotated[Text, _about("Key of the number of hidden things in a bag.")] = ""
    owes: Annotated[Flag, _about("True if numbers below zero are noted, and no errors.")] = False
    spelled: Annotated[
        dict[str, list[str]],
        _about("Words, and other spellings that are noted."),
        _kind("a table from words to lists"),
    ] = {}
    odd: Annotated[dict[str, OddTable], _about("Words that stand for another value."), _kind("a table")] = {}
    sizes: Annotated[SizesTable | None, _about("Number of items of one field by the value of another.")] = (
        None
    )
    wrong: Annotated[list[WrongTable], _about("Values for the test cases of probe."), _kind("a list")] = []


class RoomTable(Table, kw_only=True):
    """Rules for the game, of several, to which a message belongs."""

    id: Annotated[Text, _about("Field with the id of the game.")]
    joins: Annotated[
        Names, _about("Messages with which a client enters a game; by default, the server's with an id.")
    ] = []
    leaves: Annotated[Names, _about("Messages with which a client leaves it.")] = []
    of: Annotated[Text, _about("Field with the player who enters; by default, it is the receiver.")] = ""


class PythonTable(Table, kw_only=True):
    """The parts of a package in Python."""

    codec: Annotated[Text, _about("The class of the codec, such as 'okey.codec:OkeyCodec'.")] = ""
    table: Annotated[Text, _about("The class of the game table, such as 'okey.table:OkeyTable'.")] = ""
    view: Annotated[Text, _about("The function that draws the table, such as 'okey.view:view_of'.")] = ""


class FormatsTable(Table, kw_only=True):
    """The formats of messages of clients and of the server."""

    c: Annotated[FormatKind, _about("Format of messages of a client.")]
    s: Annotated[FormatKind, _about("Format of messages of the server.")]


class AnswersTable(Table, kw_only=True):
    """Fields by which an answer names its request."""

    by: Annotated[Names, _about("Field of an answer that repeats a value of its request, or several.")]
    of: Annotated[
        Names, _about("Fields of the request with these values; by default, of the same names.")
    ] = []


class IdentityTable(Table):
    """The messages and fields that identify players."""

    login: Annotated[Names, _about("Messages in which a client gives its name.")] = []
    introduces: Annotated[Names, _about("The same as login.")] = []
    given: Annotated[Names, _about("Messages in which the server gives a connection its id.")] = []
    named: Annotated[Names, _about("Messages with both an id and a name.")] = []
    left: Annotated[Names, _about("Messages that report that the player in them has left.")] = []
    id: Annotated[Text, _about("Name of the field with a player's id.")] = ""
    name: Annotated[Text, _about("Name of the field with a player's name.")] = ""
    same_player: Annotated[
        Literal["connection", "address"],
        _about("What a client that comes back has in common with the player of its name."),
    ] = "connection"
    ports: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=40)]],
        _about("Names of the players at the ports of a server, in the order of port."),
        _kind("a list of names of players"),
    ] = []


class Selection(Table):
    """The messages that an event or a rule is about."""

    on: Annotated[Names, _about("A message, or a list of messages.")]
    from_: Annotated[
        Literal["server", "client"] | None, _about("The sender, if both send messages of this name.")
    ] = field(name="from", default=None)
    let: Annotated[
        dict[str, str],
        _about("Names, and expressions for their values, which the others may use."),
        _kind('a table, such as { box = "boxes[line]" }'),
    ] = {}
    when: Annotated[Text, _about("Condition, such as 'pips > 3 && who == turn'.")] = ""


class EventTable(Selection):
    """Something that happens in a game."""

    say: Annotated[Text, _about("Sentence with names in braces, such as '{who} rolls {pips}'.")] = ""
    put: Annotated[
        dict[str, Any],
        _about("Changes of the state: paths with names in braces, and expressions for the new values."),
        _kind('a table, such as { "players.{who}.points" = "points" }'),
    ] = {}
    actor: Annotated[Text, _about("Expression for the name of the player who acts.")] = ""
    opens: Annotated[Flag, _about("True if a game begins.")] = False
    ends: Annotated[Flag, _about("True if the game ends.")] = False
    joins: Annotated[Flag, _about("True if the actor takes part in the game from here on.")] = False
    cancels: Annotated[Flag, _about("True if the game ends without having been played.")] = False
    timeout: Annotated[Flag, _about("True if a player loses only because an answer is missing.")] = False
    label: Annotated[Text, _about("Sentence for the label of the game that begins.")] = ""
    result: Annotated[
        dict[str, Any],
        _about("Expressions for the result of the game that ends."),
        _kind('a table, such as { winner = "name" }'),
    ] = {}
    secret: Annotated[Flag, _about("True if only the actor knows of it.")] = False
    turn: Annotated[Flag, _about("True if it is the actor's turn from here on.")] = False
    silent: Annotated[Flag, _about("True if it only changes the state, and is not listed.")] = False


class RuleTable(Selection, kw_only=True):
    """A rule of the game."""

    unless: Annotated[Text, _about("Condition that must hold.")] = ""
    say: Annotated[Text, _about("Sentence for the violation; {known} is the other side of the comparison.")]
    expected: Annotated[Text, _about("Sentence about what is expected.")] = ""
    clause: Annotated[Text, _about("Clause of the specification, with names of clauses in braces.")] = ""
    severity: Annotated[Severity, _about("Severity of a violation.")] = "error"


class PythonEventTable(Table, kw_only=True):
    """A kind of event, if the table is in Python."""

    data: Annotated[Names, _about("Names of the event's values.")] = []
    say: Annotated[Text, _about("Sentence with values in braces.")]
    on: Annotated[Names, _about("Messages that report it on the connection of its actor.")] = []
    identifies: Annotated[Flag, _about("True if these messages identify the connection's player.")] = False
    restores: Annotated[Flag, _about("True if a client is an earlier player again.")] = False
    joins: Annotated[Flag, _about("True if the actor takes part in the game from here on.")] = False
    ends: Annotated[Condition, _about("True, or a condition: the game has ended.")] = False
    cancels: Annotated[Condition, _about("True, or a condition: the game ends without a result.")] = False
    timeout: Annotated[Condition, _about("True, or a condition: an answer is missing.")] = False
    secret: Annotated[Flag, _about("True if only the actor knows of it.")] = False
    public: Annotated[Flag, _about("True if the server sends it to each player at the table.")] = False
    directed: Annotated[Flag, _about("True if it may have been sent to one client.")] = False
    reveals: Annotated[list[str], _about("Paths of the state that the message contains.")] = []
    ending: Annotated[Text, _about("Value with the end of a connection.")] = ""
    implied_by: Annotated[
        Side | None, _about("The position of the event that implies this one: observers of it know this.")
    ] = None
    accompanies: Annotated[Side, _about("The position of the event whose message it belongs to.")] = "before"


class PythonRuleTable(Table, kw_only=True):
    """A rule, if the table is in Python."""

    on: Annotated[Names, _about("The message that violates it.")] = []
    say: Annotated[Text, _about("Sentence for the violation.")]
    expected: Annotated[Text, _about("Sentence about what is expected.")] = ""
    clause: Annotated[Text, _about("Clause; {clause} is that of the message, as without this key.")] = (
        OWN_CLAUSE
    )
    severity: Annotated[Severity, _about("Severity of a violation.")] = "error"
    group: Annotated[Group, _about("Group of the diagnostic.")] = "rule"
    blame: Annotated[Blame | None, _about("Who is at fault, if that is not the sender.")] = None
    unwritten: Annotated[Text, _about("Reason for the rule, if it has no clause.")] = ""


class EdgesTable(Table):
    """Lines between the cells of a board."""

    above: Annotated[Text, _about("State path of an object from 'x,y' to a line above this cell.")] = ""
    left: Annotated[Text, _about("State path of an object from 'x,y' to a line left of this cell.")] = ""


class GridTable(Table):
    """A rectangular board."""

    cells: Annotated[
        Text, _about("State path of a list of rows, a list of cells, or an object from 'x,y'.")
    ] = ""
    columns: Annotated[Flag, _about("True if cells is a list of columns instead.")] = False
    runs: Annotated[Flag, _about("True if a number is that many empty cells, as in chess's FEN.")] = False
    cell: Annotated[Text, _about("Path of the word within a cell that is an object or a list.")] = ""
    symbols: Annotated[
        dict[str, str], _about("Words of cells, and their signs."), _kind("a table from words to signs")
    ] = {}
    tokens: Annotated[Text, _about("State path of an object from players to objects with coordinates.")] = ""
    x: Annotated[Text, _about("Name of the column in a token.")] = "x"
    y: Annotated[Text, _about("Name of the row in a token.")] = "y"
    width: Annotated[Size | None, _about("Number of columns, or its state path."), _kind(_SIZE)] = None
    height: Annotated[Size | None, _about("Number of rows, or its state path."), _kind(_SIZE)] = None
    first: Annotated[
        int, Meta(ge=-100, le=100), _about("Number of the first column and row."), _kind("a whole number")
    ] = 0
    edges: Annotated[EdgesTable | None, _about("Lines between cells, such as walls.")] = None
    shape: Annotated[
        GridShape,
        _about("Shape of the cells; in hex, each second row is shifted by half a cell."),
    ] = "square"


class BoardTable(Table):
    """The picture of a table."""

    title: Annotated[Text, _about("Sentence above the picture.")] = ""
    text: Annotated[str | list[str], _about("Sentences below the picture."), _kind("a text or a list")] = []
    players: Annotated[Text, _about("State path of an object whose keys are the players.")] = "players"
    turn: Annotated[Text, _about("State path of the name of the player whose turn it is.")] = ""
    scores: Annotated[Text, _about("State path of the score of {player}.")] = ""
    unit: Annotated[Text, _about("Unit of the scores.")] = "points"
    figures: Annotated[
        dict[str, str],
        _about("Words, and state paths of further numbers of {player}."),
        _kind("a table from words to paths"),
    ] = {}
    hand: Annotated[Text, _about("State path of a list, or of a number of hidden pieces, of {player}.")] = ""
    dice: Annotated[Text, _about("State path of a list of faces, or of a number.")] = ""
    piles: Annotated[
        dict[str, str],
        _about("Labels, and state paths of lists or of numbers of hidden pieces."),
        _kind("a table from labels to paths"),
    ] = {}
    grid: Annotated[GridTable | None, _about("The board.")] = None


class StatisticTable(Table):
    """A statistic: one of counts, shares, histogram, course and durations names its events."""

    title: Annotated[Text, _about("Title; by default, the key.")] = ""
    counts: Annotated[Names, _about("Events to count: for each player, or of each kind.")] = []
    shares: Annotated[Names, _about("Events of two words, of which the first one's share is shown.")] = []
    histogram: Annotated[Names, _about("Events with values to count, such as dice.")] = []
    course: Annotated[Names, _about("Events to show over time.")] = []
    durations: Annotated[Names, _about("Events with which a duration begins or ends.")] = []
    when: Annotated[Text, _about("Condition on the values of the event, such as 'pips > 3'.")] = ""
    line: Annotated[
        str | list[str] | dict[str, str],
        _about("Expression for the player or players; or expressions, and the column of each."),
        _kind("a text, a list, or a table from expressions to columns"),
    ] = []
    by: Annotated[Text, _about("Expression for the column, or for the value of a histogram.")] = ""
    split: Annotated[Text, _about("Text between several values in one, such as ','.")] = ""
    words: Annotated[
        list[str] | dict[str, str],
        _about("The values to count, or a table from these to other words, in this order."),
        _kind("a list, or a table from values to words"),
    ] = []
    of: Annotated[Text, _about("Name of the lines, or of the values of a histogram in the plural.")] = (
        "player"
    )
    amount: Annotated[Text, _about("Expression for a number that is added, or that a course shows.")] = ""
    unit: Annotated[Text, _about("Unit of a course.")] = "times"
    chance: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=10**6), _kind("a whole number from 1 to 1000000")]],
        _about("Values of a histogram, and how often each is expected in proportion to the others."),
        _kind("a table from values to whole numbers"),
    ] = {}
    begins: Annotated[Text, _about("Condition for the events with which a duration begins.")] = ""


class ExpectationTable(Table, kw_only=True):
    """The right reactions of a program under test to some test cases."""

    server: Annotated[RequirementLevel | None, _about("Level of the requirement for servers.")] = None
    client: Annotated[RequirementLevel | None, _about("Level of the requirement for clients.")] = None
    reaction: Annotated[Reaction | list[Reaction], _about("The right reactions.")]
    refusals: Annotated[Names, _about("Messages that refuse, such as 'ERROR' or 'MOVED ok=false'.")] = field(
        name="as", default=[]
    )
    clause: Annotated[Text, _about("Clause of the specification, with names of clauses in braces.")] = ""
    quote: Annotated[Text, _about("Words of the clause, or the name of a quote in braces.")] = ""
    spares_others: Annotated[Flag, _about("False where another player's game may end.")] = True
    answer: Annotated[Names, _about("The messages that count as an answer.")] = []
    others: Annotated[Text, _about("The message that the other clients must receive.")] = ""


class SpellingTable(Table, kw_only=True):
    """Another spelling of messages, made by a function in Python."""

    say: Annotated[Text, _about("The spelling in words, such as 'on one line'.")]
    frame: Annotated[Text, _about("The function that respells a message, such as 'okey.probe:quoted'.")]
    level: Annotated[RequirementLevel, _about("Level of the requirement to accept it.")] = "open"
    clause: Annotated[Text, _about("Clause of the specification.")] = ""
    quote: Annotated[Text, _about("Words of the clause, or the name of a quote in braces.")] = ""
    messages: Annotated[Text, _about("Patterns for the messages that have such parts.")] = "*"


class ProbeTable(Table):
    """The section `[probe]`: facts about the protocol for the test cases."""

    seats: Annotated[
        int, Meta(ge=1, le=16), _about("Number of players at a table."), _kind("a number from 1 to 16")
    ] = 2
    silence: Annotated[Seconds | None, _about("Maximum silence of a connection in seconds.")] = None
    timeouts: Annotated[
        dict[str, Seconds],
        _about("Patterns of messages, and the seconds that the other side waits for them."),
        _kind("a table from messages to seconds"),
    ] = {}
    awaited: Annotated[Names, _about("The messages that all other clients wait for.")] = []
    spares_others: Annotated[Flag, _about("True if the others play on when a player leaves.")] = True
    broken_by: Annotated[
        dict[str, str], _about("Rules, and the cases that break them."), _kind("a table from rules to cases")
    ] = {}
    unreachable: Annotated[
        dict[str, str],
        _about("Rules that no case breaks, and the reasons."),
        _kind("a table from rules to reasons"),
    ] = {}
    bot: Annotated[Text, _about("The class of a simulated client, only in packages.")] = ""
    simulated_server: Annotated[Text, _about("The class of a simulated server, only in packages.")] = ""
    violations: Annotated[Text, _about("The ways to break rules, only in packages.")] = ""
    spellings: Annotated[
        dict[str, SpellingTable], _about("Other spellings, only in packages."), _kind("a table")
    ] = {}


class QueryTable(Table, kw_only=True):
    """An example query for Datasette."""

    title: Annotated[Text, _about("Title.")]
    about: Annotated[Text, _about("Meaning of the columns.")] = ""
    sql: Annotated[Text, _about("A SELECT on the views of a database.")]


class MisprintTable(Table, kw_only=True):
    """A misprint of the specification in tags of XML."""

    name: Annotated[Text, _about("A word for it, which ends the code of its note.")]
    sent: Annotated[
        Text,
        Meta(pattern=r"^[^\[\]…]*\[[^\[\]]+\][^\[\]]*$", max_length=100),
        _about("The misprint in brackets, between its neighbours; an ellipsis is a word."),
        _kind('a text with brackets around the misprint, such as \'=["… "]…="\''),
    ]
    meant: Annotated[Text, _about("What is meant, in as many characters.")]
    where: Annotated[Text, _about("Its place in the specification.")] = ""


class LenientTable(Table):
    """Deviations that readers accept: they are notes, and no errors."""

    surplus: Annotated[Flag, _about("True if readers ignore fields after the last one.")] = False
    charset: Annotated[
        Literal["", "windows-1252", "iso-8859-2"], _about("Encoding of text that is not UTF-8.")
    ] = ""
    line_ends: Annotated[Flag, _about("True if CR, LF, or the end of the stream ends a line.")] = False
    control: Annotated[
        Text, _about("What readers do with control characters in a client's message, in words.")
    ] = ""
    blanks: Annotated[Flag, _about("True if several blanks between words are noted.")] = False
    misprints: Annotated[
        list[MisprintTable], _about("Misprints in tags of XML that peers have copied."), _kind("a list")
    ] = []


class Document(Table, kw_only=True):
    """A protocol file."""

    protocol: Annotated[
        Text,
        Meta(pattern=f"^{PROTOCOL_NAME}$"),
        _about("Name in filters and in the database: a word of small letters, digits and _."),
        _kind('a word of up to 30 small letters, digits and "_", such as "dice"'),
    ]
    title: Annotated[Text, _about("Name for people.")] = ""
    transport: Annotated[Transport | None, _about("tcp by default; udp if framing is datagrams.")] = None
    port: Annotated[
        Port | list[Port],
        _about("Usual ports of servers."),
        _kind("a number from 1 to 65535, or a list of them"),
    ] = []
    together: Annotated[Flag, _about("True if the ports of an address are those of one server.")] = False
    framing: Annotated[FramingKind | None, _about("How bytes are cut into messages.")] = None
    format: Annotated[FormatKind | None, _about("How a message contains its name and fields.")] = None
    formats: Annotated[FormatsTable | None, _about("The format of each direction, if they differ.")] = None
    encoding: Annotated[TextEncoding, _about("Encoding of text.")] = "utf-8"
    line_end: Annotated[Text, _about("Line end of messages that Kiebitz writes.")] = "\n"
    end: Annotated[
        Text,
        _about("Bytes after a message, or the text of the last line of a block or of a packet of lines."),
    ] = ""
    mark: Annotated[Text, _about("Text before the names of packets of lines.")] = ""
    header: Annotated[
        Text,
        _about("Parts before a message: length, name, constants, fields: 'name=u8 length=u32 '0x4d58''."),
    ] = ""
    before: Annotated[
        Text, _about("Fields before the name that may be absent, such as '[id=integer][@ref=integer]'.")
    ] = ""
    size: Annotated[
        Annotated[int, Meta(ge=0, le=1 << 20)],
        _about("Number of bytes of each message."),
        _kind("a number of bytes up to 1048576"),
    ] = 0
    prefix: Annotated[
        Literal["u8", "u16", "u32", "u64", "varint"], _about("Type of the length, if that is the header.")
    ] = "u32"
    order: Annotated[ByteOrder, _about("Byte order of binary numbers.")] = "big"
    inclusive: Annotated[
        bool | Literal["length", "header"],
        _about("What the length counts beside the message: itself (length or true), or the whole header."),
        _kind('true, false, "length" or "header"'),
    ] = False
    quote: Annotated[Text, _about("Quotation mark around words with blanks.")] = ""
    pad: Annotated[
        list[str], _about("Paddings before a closing quotation mark; lists are quoted, too."), _kind("a list")
    ] = []
    delimiter: Annotated[Text, _about("Text between fields.")] = ""
    assign: Annotated[Text, _about("Text between the key and the value of a pair.")] = "="
    name: Annotated[Text, _about("Where the name of a message is.")] = ""
    fields: Annotated[Text, _about("Path of the object with a message's fields.")] = ""
    envelope: Annotated[
        Text, _about("Element around messages of XML, and its attributes: 'game @version?=text'.")
    ] = ""
    root: Annotated[Text, _about("Likewise, an element around all messages of a direction.")] = ""
    strict: Annotated[
        Flag, _about("True if a message has only what its row says; in XML, '@x=1..8' is an attribute.")
    ] = False
    clause: Annotated[Text, _about("Clause of the specification about the form of messages.")] = ""
    codes: Annotated[
        dict[str, int], _about("Messages, and the numbers that stand for them."), _kind("a table")
    ] = {}
    types: Annotated[
        dict[str, str | TypeTable], _about("Names of types, and types such as '1..6'."), _kind("a table")
    ] = {}
    spelled: Annotated[
        dict[str, list[str]],
        _about("In JSON, words and keys with other spellings that are noted."),
        _kind("a table from words to lists"),
    ] = {}
    letters: Annotated[
        dict[str, str],
        _about("In JSON, letters of words and keys, and what replaces them."),
        _kind("a table"),
    ] = {}
    clauses: Annotated[
        dict[str, str], _about("Short names of clauses, and their headings."), _kind("a table")
    ] = {}
    descriptions: Annotated[dict[str, str], _about("Fields, and their meanings."), _kind("a table")] = {}
    lenient: Annotated[LenientTable | None, _about("Deviations that readers accept: notes, no errors.")] = (
        None
    )
    messages: Annotated[
        dict[str, Row | RowTable | list[Row | RowTable]], _about("Messages and their rows."), _kind("a table")
    ]
    game: Annotated[
        str | RoomTable | None, _about("Field with the id of the game, if there are several games at once.")
    ] = None
    python: Annotated[
        PythonTable | None, _about("The parts in Python, only in the file of an installed package.")
    ] = None
    answers: Annotated[
        AnswersTable | list[AnswersTable],
        _about("How an answer names its request, if answers do not come in order; the first that fits."),
        _kind('a table, such as { by = "id" }, or a list of tables'),
    ] = []
    identity: Annotated[IdentityTable | None, _about("How players are recognised.")] = None
    events: Annotated[dict[str, EventTable], _about("What happens in a game."), _kind("a table")] = {}
    rules: Annotated[dict[str, RuleTable], _about("Rules that messages can violate."), _kind("a table")] = {}
    board: Annotated[BoardTable | None, _about("The picture of a table.")] = None
    statistics: Annotated[
        dict[str, StatisticTable], _about("What kiebitz stats counts."), _kind("a table")
    ] = {}
    expectations: Annotated[
        dict[str, ExpectationTable | list[ExpectationTable]],
        _about("Patterns of probe's cases, and the right reactions; the first that fits counts."),
        _kind("a table"),
    ] = {}
    quotes: Annotated[
        dict[str, str], _about("Short names of quotes from the specification."), _kind("a table")
    ] = {}
    probe: Annotated[
        ProbeTable | None, _about("Facts about the protocol for the test cases of kiebitz probe.")
    ] = None
    queries: Annotated[
        dict[str, QueryTable],
        _about("Queries for Datasette, only in the file of an installed package."),
        _kind("a table"),
    ] = {}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of protocol files."""
    (schema, event, rule), parts = msgspec.json.schema_components(
        (Document, PythonEventTable, PythonRuleTable), ref_template="#/$defs/{name}"
    )
    for section, other in (("events", event), ("rules", rule)):
        rows = parts["Document"]["properties"][section]
        rows["additionalProperties"] = {"anyOf": [rows["additionalProperties"], other]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Kiebitz protocol file",
        **_without_null({**schema, "$defs": parts}),
    }


def _without_null(value: Any) -> Any:
    """Remove the JSON null, which TOML lacks, from a schema."""
    if isinstance(value, list):
        return [_without_null(item) for item in value if item not in (None, {"type": "null"})]
    if not isinstance(value, dict):
        return value
    found = {key: _without_null(item) for key, item in value.items() if (key, item) != ("default", None)}
    if len(found.get("anyOf", ())) == 1:
        found |= found.pop("anyOf")[0]
    return found
