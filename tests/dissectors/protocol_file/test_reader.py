"""The reader of protocol files: what it reads, and the place of every mistake."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from command import ROOT
from hypothesis import given
from hypothesis import strategies as st
from make_file_schema import PATH, schema_text
from strength import a_few

from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.document import json_schema
from kiebitz.dissectors.protocol_file.reading.errors import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.notation import Mistake, NamedTypes, Parser
from kiebitz.dissectors.protocol_file.reading.positions import TomlPlaces, parse_toml
from kiebitz.dissectors.protocol_file.reading.reader import (
    read,
    read_specification,
)
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BagType,
    BinaryType,
    ChoiceType,
    EitherType,
    FieldSpec,
    Format,
    Framing,
    IdentifierType,
    ListType,
    NumberType,
    ObjectType,
    Put,
    TextType,
)

EXAMPLE = (ROOT / "docs" / "protocol-files.md").read_text().split("```toml\n")[1].split("```")[0]
FILES = [
    *sorted((ROOT / "tests" / "data" / "protocol_files").glob("*.toml")),
    *sorted(file for file in (ROOT / "docs" / "examples").glob("*.toml") if file.stem != "class"),
]

JSON = """protocol = "p"
framing = "json"
name = "*"
[messages]
TURN = "s:"
"""
"""Five lines before those of a table below."""

MESSAGES = """protocol = "p"
[messages]
JOIN = "c: name=player"
ROLLED = "s*: name=player pips=1..6 at={x=integer y=integer} < JOIN"
"""
"""Four lines before those of a row below."""


# What it reads.


def test_the_example_of_the_reference() -> None:
    found = read_specification(EXAMPLE)
    assert (found.protocol, found.title, found.transport, found.ports) == ("dice", "Dice", "tcp", (4711,))
    assert (found.framing, found.format) == (Framing(), Format(line_end="\n"))
    assert found.text == EXAMPLE
    rows = {row.name: row for row in found.messages}
    assert [*rows] == ["JOIN", "JOINED", "ROLL", "ROLLED", "ERROR"]
    rolled = rows["ROLLED"]
    assert (rolled.direction, rolled.broadcast, rolled.answers) == ("s2c", True, ("ROLL",))
    assert rolled.fields == (
        FieldSpec("name", IdentifierType("player"), "player"),
        FieldSpec("pips", NumberType(1, 6), "pips"),
    )
    assert rows["ERROR"].answers == ("JOIN", "ROLL")
    assert found.identity is not None
    assert found.identity.login == ("JOIN",)
    assert found.events[0].puts == (Put("players.{name}.rolls", 0),)
    assert found.events[0].actor == "who"
    assert found.rules[0].unless == "name != turn"
    assert found.board is not None
    assert (found.board.dice, found.board.unit) == ("dice", "rolls")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_the_tests(file: Any) -> None:
    assert read_specification(file.read_text()).protocol


TYPES = {
    "text": TextType(),
    "rest": TextType(rest=True),
    "number": NumberType(whole=False),
    "1..6": NumberType(1, 6),
    "-3..": NumberType(-3, None),
    "..9": NumberType(None, 9),
    "0.5..1.5": NumberType(0.5, 1.5, whole=False),
    "red|blue": ChoiceType(("red", "blue")),
    "'red'": ChoiceType(("red",)),
    "'dark red'|blue": ChoiceType(("dark red", "blue")),
    "1|2|'3'": ChoiceType((1, 2, "3")),
    "U-turn|clockwise": ChoiceType(("U-turn", "clockwise")),
    "/[A-Z] [0-9]/": TextType("[A-Z] [0-9]"),
    r"/a\/b/": TextType("a/b"),
    "[integer]": ListType(NumberType()),
    "[1..6;]": ListType(NumberType(1, 6), ";"),
    "[text ]": ListType(TextType(), " "),
    "[red|blue|]": ListType(ChoiceType(("red", "blue")), "|"),
    "[text-]": ListType(TextType(), "-"),
    "[text:]": ListType(TextType(), ":"),
    "[[integer];]": ListType(ListType(NumberType()), ";"),
    "{x=integer y?=text}": ObjectType(
        (FieldSpec("x", NumberType(), "integer"), FieldSpec("y", TextType(), "text", optional=True))
    ),
    "{x=text y=text=}": ObjectType(
        (FieldSpec("x", TextType(), "text"), FieldSpec("y", TextType(), "text")), "="
    ),
    "{x=text y=text/}": ObjectType(
        (FieldSpec("x", TextType(), "text"), FieldSpec("y", TextType(), "text")), "/"
    ),
    "[{x=integer};]": ListType(ObjectType((FieldSpec("x", NumberType(), "integer"),)), ";"),
    "bool t|f": ChoiceType((True, False), ("t", "f")),
    "§=null|1=2|'a b'=yes|no": ChoiceType((None, 2, "yes", "no"), ("§", "1", "a b", "no")),
    "{x=integer y=text\n}": ObjectType(
        (FieldSpec("x", NumberType(), "integer"), FieldSpec("y", TextType(), "text")), "\n"
    ),
    "id": IdentifierType("id"),
    "id:game": IdentifierType("game"),
    "id u16": IdentifierType("id", BinaryType("u16")),
    "player text8": IdentifierType("player", BinaryType("text", "u8")),
    "id:seat 1..4": IdentifierType("seat", NumberType(1, 4)),
    "1..4 or [text]": EitherType((NumberType(1, 4), ListType(TextType()))),
    "bag wood|'fired clay'": BagType(("wood", "fired clay")),
    "id 1": None,
    "list": ListType(AnyType()),
    "text:10": BinaryType("text", 10),
    "bytes16": BinaryType("bytes", "u16"),
}


@pytest.mark.parametrize("text", TYPES)
def test_a_type(text: str) -> None:
    expected = TYPES[text]
    if expected is None:
        with pytest.raises(Mistake) as raised:
            Parser(text, NamedTypes()).whole_type()
        assert "end of the type" in raised.value.message
    else:
        assert Parser(text, NamedTypes()).whole_type().type == expected


def test_fields() -> None:
    parser = Parser("name?=player token=text! 'my key'=[text ] client=id u16 last=rest", NamedTypes())
    assert parser.fields("") == (
        FieldSpec("name", IdentifierType("player"), "player", optional=True),
        FieldSpec("token", TextType(), "text", generated=True),
        FieldSpec("my key", ListType(TextType(), " "), "[text ]"),
        FieldSpec("client", IdentifierType("id", BinaryType("u16")), "id u16"),
        FieldSpec("last", TextType(rest=True), "rest"),
    )
    assert not parser.mistakes


def test_names_of_several_words_in_answers() -> None:
    found = read_specification(
        'protocol = "p"\n[messages]\n"DRAW CARD" = "c:"\nDRAW = "c:"\nOK = "s: < DRAW CARD DRAW"\n'
    )
    assert found.messages[2].answers == ("DRAW CARD", "DRAW")


def test_defaults_follow_the_transport_and_the_framing() -> None:
    for head, transport, framing, line_end in [
        ("", "tcp", "lines", "\n"),
        ('transport = "udp"', "udp", "datagrams", ""),
        ('framing = "datagrams"', "udp", "datagrams", ""),
        ('framing = "delimiter"\nend = "\\u0000"', "tcp", "delimiter", ""),
        ('line_end = "\\r\\n"', "tcp", "lines", "\r\n"),
    ]:
        found = read_specification(f'protocol = "p"\n{head}\n[messages]\nA = "c:"\n')
        assert (found.transport, found.framing.kind, found.format.line_end) == (transport, framing, line_end)


def test_json_and_xml_are_named_once() -> None:
    for head, kind in {'framing = "json"\nname = "type"': "json", 'framing = "xml"': "xml"}.items():
        found = read_specification(f'protocol = "p"\n{head}\n[messages]\nA = "c:"\n')
        assert (found.framing.kind, found.format.kind) == (kind, kind)


def test_numbers_are_choices_in_json_only() -> None:
    messages = '[messages]\nA = "c: x=1|2"\n'
    for head, expected in {
        "": ChoiceType(("1", "2")),
        'format = "json"\nname = "type"\n': ChoiceType((1, 2)),
    }.items():
        found = read_specification(f'protocol = "p"\n{head}{messages}')
        assert found.messages[0].fields[0].type == expected


def test_a_type_may_follow_its_use() -> None:
    found = read_specification(
        'protocol = "p"\n[messages]\nA = "c: x=hand"\n[types]\nhand = "[card;]"\ncard = "a|b"\n'
    )
    assert found.messages[0].fields[0] == FieldSpec("x", ListType(ChoiceType(("a", "b")), ";"), "hand")


# Mistakes.

_FIELDS = 'framing = "fields"\nformat = "struct"\n[codes]\nA = 1\n[messages]\n'
_HEADER = 'framing = "length"\nheader = "{}"\n'

MISTAKES = {
    # TOML.
    "no TOML": ('protocol = "p\n', "1:14", "", "invalid TOML: illegal character '\\n'"),
    "not closed": ("x = [", "1:6", "", "invalid TOML: invalid value"),
    "key twice": ('protocol = "p"\nprotocol = "p"\n', "2:1", "protocol", "protocol exists already"),
    "event twice": (
        f'{MESSAGES}[events]\na = {{ on = "JOIN", say = "x" }}\na = {{ on = "JOIN", say = "y" }}\n',
        "7:1",
        "a",
        "a exists already",
    ),
    "nested": (f"x = {'[' * 9000}", "1:1", "x", "nested too deeply"),
    "long key": (f"{'a.' * 40}a = 1", "1:2", ".a" * 30 + ".", "a key has more than 30 parts"),
    # Head.
    "no protocol": ('[messages]\nA = "c:"\n', "1:1", "[", "protocol is missing"),
    "no messages": ('protocol = "p"\n', "1:1", "p", "messages is missing"),
    "empty messages": ('protocol = "p"\n[messages]\n', "2:2", "messages", "a protocol has messages"),
    "bad name": ('protocol = "Dice"', "1:12", '"Dice"', "protocol must be a word of up to 30 small letters"),
    "built-in": ('protocol = "catan"', "1:12", '"catan"', "catan is a protocol of Kiebitz itself"),
    "filter name": ('protocol = "tcp"', "1:12", '"tcp"', "tcp has another meaning in filters"),
    "unknown key": ('protocol = "p"\nframeing = "lines"\n', "2:1", "frameing", "did you mean framing?"),
    "unknown section": ("[event]\n", "1:2", "event", "unknown key event: did you mean events?"),
    "wrong type": ("title = 3", "1:9", "3", "title must be a text"),
    "port": ("port = [4711, 70000]", "1:15", "70000", "port must be a number from 1 to 65535, or a list"),
    "framing": ('framing = "line"', "1:11", '"line"', '"websocket": did you mean lines?'),
    "transport": ('transport = "sctp"', "1:13", '"sctp"', 'transport must be "tcp" or "udp"'),
    "no datagrams": ('transport = "tcp"\nframing = "datagrams"\n', "2:11", '"datagrams"', "over TCP"),
    "no lines": ('transport = "udp"\nframing = "lines"\n', "2:11", '"lines"', "each datagram is a message"),
    "foreign key": ('prefix = "u8"', "1:1", "prefix", 'belongs to framing = "length", not to lines'),
    "no name in XML": (
        'format = "xml"\n[messages]\n_ = "c:"\n',
        "3:1",
        "_",
        "in xml with this framing, each message has a name",
    ),
    "before without brackets": ('before = "id=integer"\n', "1:11", "id=integer", "is in brackets, such as"),
    "before twice": ('before = "[a=text][a=text]"\n', "1:20", "a", "a second field a"),
    "wrong type before": ('before = "[@a=txt]"\n', "1:15", "txt", "no type txt: did you mean text?"),
    "before in a row, too": (
        'before = "[a=text]"\n[messages]\nA = "c: a=text"\n',
        "3:9",
        "a",
        "the header has a field a, too",
    ),
    "format and formats": (
        'format = "words"\nformats = { c = "words", s = "json" }\n',
        "1:1",
        "format",
        "formats has the format of each direction: remove this",
    ),
    "one format": ('formats = { s = "words" }\n', "1:1", "formats", "c is missing"),
    "formats of objects": (
        'framing = "json"\nname = "t"\nformats = { c = "words", s = "json" }\n',
        "1:11",
        '"json"',
        "messages of two formats need another framing",
    ),
    "key of neither format": (
        'formats = { c = "words", s = "json" }\nname = "t"\nassign = ":"\n',
        "3:1",
        "assign",
        "assign belongs to format",
    ),
    "long name": (
        f'{_HEADER.format("name=text:3 length=u8")}[messages]\nMOVE = "c:"\n',
        "4:1",
        "MOVE",
        "MOVE has more than 3 bytes",
    ),
    "fields without a name": (
        f'{_FIELDS}_ = "c: x=u8"\n',
        "6:5",
        '"c: x=u8"',
        "where a message without a name",
    ),
    "no size": ('framing = "size"\n', "1:1", "framing", "size needs size"),
    "varint in a sized header": (
        'framing = "size"\nsize = 9\nheader = "a=varint"\n',
        "3:10",
        '"a=varint"',
        "all parts of a header have a fixed size",
    ),
    "length of a size": (
        'framing = "size"\nsize = 9\nheader = "length=u8"\n',
        "3:11",
        "length",
        'a length belongs to framing = "length", not to size',
    ),
    "fields of words": ('framing = "fields"\n', "1:11", '"fields"', 'format = "struct"'),
    "open field": (
        f'{_FIELDS}A = "c: x=text y=rest"\n',
        "6:16",
        "y",
        "nothing shows where y ends: use text8, text:20 or [item]*n",
    ),
    "absent field": (f'{_FIELDS}A = "c: x?=u8"\n', "6:9", "x", "nothing shows whether x is absent"),
    "rows alike": (f'{_FIELDS}A = ["c: x=u8", "c: y=u16"]\n', "6:17", '"c: y=u16"', "which row of A"),
    "unknown count": (
        f'{_FIELDS}A = "c: n=u8 x=[u8]*m"\n',
        "6:14",
        "x",
        "no number m is before the list",
    ),
    "count in JSON": (
        'format = "json"\n[messages]\nA = "s: n=integer xs=[integer]*n"\n',
        "3:19",
        "xs",
        'belongs to format = "struct", "words", "delimited" or "lines"',
    ),
    "count before its list": (
        '[messages]\nA = "s: xs=[integer]*n n=integer"\n',
        "2:9",
        "xs",
        "no number n is before the list",
    ),
    "fixed text in JSON": (
        'format = "json"\n[messages]\nA = \'s: who="("player\'\n',
        "3:9",
        "who",
        'fixed text belongs to format = "words" or "delimited", not to json',
    ),
    "cut text in JSON": (
        'format = "json"\n[messages]\nA = "s: xs=/a*/ as [text]"\n',
        "3:9",
        "xs",
        "values without anything between them belong to text, not to json",
    ),
    "foreign header": (
        'header = "length=u8"',
        "1:1",
        "header",
        'belongs to framing = "length", "size", "fields", "send" or "datagrams", not to lines',
    ),
    "no length": (_HEADER.format("name=u8"), "2:10", '"name=u8"', "such as length=u32"),
    "two lengths": (_HEADER.format("length=u8 length=u8"), "2:21", "length", "a second field length"),
    "signed length": (_HEADER.format("length=i32"), "2:11", "length", "a number such as u8"),
    "name of varying size": (_HEADER.format("name=text8 length=u8"), "2:11", "name", "such as text:4"),
    "part of varying size": (_HEADER.format("length=u8 x=text"), "2:21", "x", "needs a type of a fixed size"),
    "optional part": (_HEADER.format("length=u8 x?=u8"), "2:21", "x", "is in every header: write x="),
    "odd constant": (_HEADER.format("'0x4d5' length=u8"), "2:11", "'0x4d5'", "pairs of hexadecimal digits"),
    "prefix and header": (
        f'{_HEADER.format("length=u8")}prefix = "u8"\n',
        "3:1",
        "prefix",
        "the header has the length: remove this",
    ),
    "name and header": (
        f'{_HEADER.format("name=u8 length=u8")}format = "struct"\nname = "u8"\n',
        "4:1",
        "name",
        "the header has the name: remove this",
    ),
    "name of an element": (
        f'{_HEADER.format("name=u8 length=u8")}format = "xml"\n',
        "2:10",
        '"name=u8 length=u8"',
        "the name of an XML element is in the message",
    ),
    "field of header and row": (
        f'{_HEADER.format("length=u8 x=u8")}[messages]\nA = "c: x=integer"\n',
        "4:9",
        "x",
        "the header has a field x, too",
    ),
    "no code for the header": (
        f'{_HEADER.format("name=u8 length=u8")}[messages]\nA = "c:"\n',
        "4:1",
        "A",
        "A has no number in [codes]",
    ),
    "inclusive": (
        f'{_HEADER.format("length=u8")}inclusive = "all"\n',
        "3:13",
        '"all"',
        'inclusive must be "length" or "header"',
    ),
    "foreign format key": ('quote = "x"\nformat = "xml"', "1:1", "quote", '"words", "delimited" or "pairs"'),
    "no end": ('framing = "delimiter"', "1:1", "framing", "a delimiter needs end"),
    "no name": ('format = "json"', "1:1", "format", "json needs name"),
    "no name in JSON": ('framing = "json"', "1:1", "framing", "json needs name"),
    "line before": (
        "[messages]\nA = 'c: x=[text\\n]2 y=text'\n",
        "2:21",
        "y",
        "x is on a line of its own: y must be before it",
    ),
    "optional line": (
        "[messages]\nA = 'c: x?=\"\\n\"text'\n",
        "2:9",
        "x",
        "whether the line of x is absent",
    ),
    "any number of lines after words": (
        "[messages]\nA = 'c: x=[text\\n]'\n",
        "2:9",
        "x",
        "nothing shows how many lines x has",
    ),
    "line end in a text": (
        "[messages]\nA = 'c: x=\"a\\n\"text'\n",
        "2:9",
        "x",
        "a line end is the first character",
    ),
    "counted packet with an end": (
        'format = "lines"\nend = "END"\n[messages]\nA = "c: n=integer x=[text]*n"\n',
        "4:5",
        '"c: n=integer x=[text]*n"',
        "if there is no end",
    ),
    "name with a dot": (
        '[messages]\ngame.start = "s:"\n',
        "2:6",
        "start",
        'a name with a dot stands in quotes: "game.start"',
    ),
    "sign as a value": (
        '[messages]\nA = "s: x=text"\n[events]\na = { on = "A", put = { x = "#" } }\n',
        "4:30",
        "#",
        "a text is written '#', in quotes",
    ),
    "word as a value": (
        '[messages]\nA = "s: x=text"\n[events]\na = { on = "A", put = { x = "red" } }\n',
        "4:30",
        "red",
        "a text is written 'red', in quotes",
    ),
    "delimiter in a value": (
        'format = "delimited"\ndelimiter = ";"\n[messages]\nA = "s: xs=[{x=text y=text;},]"\n',
        "4:9",
        "xs",
        '";" is between fields of the message: choose another',
    ),
    "delimiter in a pair": (
        'format = "pairs"\nname = "first"\ndelimiter = ";"\n[messages]\nA = "s: xs=[text;]"\n',
        "5:9",
        "xs",
        '";" is between fields of the message: choose another',
    ),
    "optional word of a value": (
        '[messages]\nA = "s: o={x=text y?=text }"\n',
        "2:9",
        "o",
        "none can be absent",
    ),
    "value of players that is never put": (
        '[messages]\nA = "s: x=player"\n[events]\na = { on = "A", put = { "players.{x}.points" = 1 } }\n'
        '[board]\nscores = "players.{player}.point"\n',
        "6:11",
        "players.{player}.point",
        "no event puts anything at players.{…}.point",
    ),
    "key of a fixed cell": (
        '[messages]\nA = "s: x=text"\n[events]\na = { on = "A", put = { "cells.0,2" = "x" } }\n',
        "4:25",
        '"cells.0,2"',
        "numbers with a comma stand in braces: cells.{0},{2}",
    ),
    "one port": ("port = 1\ntogether = true", "2:1", "together", "for a server with several ports"),
    "player of a port": (
        'port = [1, 2]\n[identity]\nports = ["white", "white"]',
        "3:9",
        '["white", "white"]',
        "2 different names",
    ),
    "no delimiter": ('format = "delimited"', "1:1", "format", "delimited needs delimiter"),
    "struct name": ('format = "struct"\nname = "f32"\n', "2:8", '"f32"', "in struct, name must be"),
    "XML name": ('format = "xml"\nname = "type"\n', "2:8", '"type"', '"@attribute" or "element/@attribute"'),
    "XML attribute": (
        'format = "xml"\n[messages]\nA = "c: @a=text"\n',
        "3:10",
        "a",
        "@ belongs to strict = true",
    ),
    "inner attribute": (
        'format = "xml"\n[messages]\nA = "c: b=[{@a=text}]"\n',
        "3:9",
        "b",
        "@ belongs to strict = true",
    ),
    "lists in lists": (
        'format = "xml"\nstrict = true\n[messages]\nA = "c: b=[[text]]"\n',
        "4:9",
        "b",
        "elements do not show to which of several lists they belong",
    ),
    "empty item": (
        'format = "xml"\nstrict = true\n[messages]\nA = "c: b=[text?]"\n',
        "4:9",
        "b",
        "? for an item belongs to text that is no xml",
    ),
    "strict name": (
        'format = "xml"\nstrict = true\nname = "@type"\n',
        "3:8",
        '"@type"',
        "the name is the tag",
    ),
    "strict pairs": ('format = "pairs"\nstrict = true', "2:1", "strict", "not to pairs"),
    "strict lines": ("strict = true", "1:10", "true", "belongs to datagrams"),
    "end of JSON": ('framing = "json"\nname = "a"\nend = ";"', "3:7", '";"', "end is a line feed"),
    "root of lines": ('format = "xml"\nroot = "game"', "2:1", "root", 'framing = "xml", not to lines'),
    "two roots": ('framing = "xml"\nroot = "a"\nenvelope = "b"', "3:1", "envelope", "envelope is not needed"),
    "envelope": ('framing = "xml"\nenvelope = "@a?=text"', "2:13", "@", "begins with the name of an element"),
    "envelope's element": ('framing = "xml"\nenvelope = "a b?=text"', "2:15", "b", "write @b?="),
    "envelope's type": ('framing = "xml"\nenvelope = "a @b?=tex"', "2:19", "tex", "did you mean text?"),
    "always": ('framing = "xml"\nroot = "a @b=text"', "2:12", "b", "messages have it or not: write @b?="),
    "end of XML": ('framing = "xml"\nend = "\\n"', "2:7", '"\\n"', "in XML, end is an empty line"),
    "text and elements": (
        'format = "xml"\nstrict = true\n[messages]\nA = "c: A=text b=text"\n',
        "4:5",
        '"c: A=text b=text"',
        "a text or elements in it, not both",
    ),
    "long misprint": (
        'format = "xml"\n[lenient]\nmisprints = [{ name = "a", sent = "[b]", meant = "bc" }]\n',
        "3:50",
        '"bc"',
        "meant has as many bytes",
    ),
    "misprint": (
        'format = "xml"\n[lenient]\nmisprints = [{ name = "a", sent = "b", meant = "c" }]',
        "3:35",
        '"b"',
        "a text with brackets around the misprint",
    ),
    "misprint in words": (
        '[lenient]\nmisprints = [{ name = "a", sent = "[b]", meant = "c" }]',
        "2:13",
        '[{ name = "a", sent = "[b]", meant = "c" }]',
        'misprints belongs to format = "xml"',
    ),
    "surplus in XML": (
        'format = "xml"\n[lenient]\nsurplus = true',
        "3:11",
        "true",
        'format = "words", "delimited" or "lines"',
    ),
    "long quote": ('quote = "<<"', "1:9", '"<<"', "quote must be one character"),
    "same signs": (
        'format = "pairs"\ndelimiter = "="\n',
        "2:1",
        "delimiter",
        "assign and delimiter are the same",
    ),
    "empty sign": ('format = "pairs"\nassign = ""\n', "2:10", '""', "assign is empty"),
    "encoding": (
        'encoding = "ascii"\nformat = "delimited"\ndelimiter = "§"\n',
        "3:13",
        '"§"',
        "delimiter has a character that ascii lacks",
    ),
    # Types.
    "named as built-in": ('[types]\ntext = "integer"\n', "2:1", "text", "text is a type already"),
    "no name of a type": ('[types]\n"a b" = "integer"\n', "2:1", '"a b"', "a b is no name of a type"),
    "type in type": ('[types]\na = "[tex]"\n', "2:7", "tex", "no type tex: did you mean text?"),
    "type is no text": ("[types]\na = 1\n", "2:5", "1", 'a type is a text, such as "1..6", or a table'),
    "type in itself": ('[types]\na = "[b]"\nb = "[a]"\n', "3:7", "a", "the type a contains itself"),
    "limits": ('[types]\na = "6..1"\n', "2:6", "6..1", "6 is greater than 1"),
    "not closed list": ('[types]\na = "[text"\n', "2:6", "[", '"[" has no "]"'),
    "not closed object": ('[types]\na = "{x=text"\n', "2:6", "{", '"{" has no "}"'),
    "pattern": ('[types]\na = "/[a/"\n', "2:6", "/[a/", "not a regular expression"),
    "not closed pattern": ('[types]\na = "/ab"\n', "2:6", "/ab", 'a regular expression ends with "/"'),
    "choice": ('[types]\na = "red|blue|red"\n', "2:6", "red|blue|red", "red occurs twice"),
    "after a type": ('[types]\na = "text text"\n', "2:11", "t", "expected the end of the type"),
    "escaped": ('[types]\na = "\\u005btex]"\n', "2:12", "tex", "no type tex"),
    "lines": ('[types]\na = """\n[tex]"""\n', "3:2", "tex", "no type tex"),
    "deep": (f'[types]\na = "{"[" * 12}text{"]" * 12}"\n', "2:17", "[", "more than 10 lists and objects"),
    # Messages.
    "type": ('[messages]\nA = "s*: name=playr"\n', "2:15", "playr", "no type playr: did you mean player?"),
    "direction": ('[messages]\nA = "x: name=text"\n', "2:6", "x", 'a row begins with "s:" (from the server)'),
    "no direction": ('[messages]\nA = "name"\n', "2:6", "name", "a row begins with"),
    "copies": ('[messages]\nA = "c*: name=text"\n', "2:7", "*", "copies that the server sends"),
    "flag": ('[messages]\nA = "s**:"\n', "2:7", "**", '"*" is written once'),
    "no type": ('[messages]\nA = "s: name"\n', "2:9", "name", "did you mean name=text?"),
    "empty type": ('[messages]\nA = "s: name= b=text"\n', "2:14", " ", "expected a type"),
    "optional": ('[messages]\nA = "s: name? b=text"\n', "2:9", "name?", '"name?=type"'),
    "field twice": ('[messages]\nA = "s: a=text a=text"\n', "2:16", "a", "a second field a"),
    "comma": ('[messages]\nA = "s: a=text, b=text"\n', "2:15", ",", "expected a blank"),
    "answers": ('[messages]\nJOIN = "c:"\nA = "s: < JION"\n', "3:11", "JION", "did you mean JOIN?"),
    "row": ("[messages]\nA = 3\n", "2:5", "3", "a row is a text"),
    "row in list": ('[messages]\nA = ["c:", "x:"]\n', "2:13", "x", "a row begins with"),
    "same rows": ('[messages]\nA = ["c:", "c:"]\n', "2:12", '"c:"', "two rows of A are the same"),
    "row in table": ('[messages]\nA = { is = "s: a=tex" }\n', "2:18", "tex", "no type tex"),
    "table without row": ('[messages]\nA = { about = "x" }\n', "2:1", "A", "is is missing"),
    "summary": (
        '[messages]\nA = { is = "s: name=text", summary = "is {nam}" }\n',
        "2:43",
        "nam",
        "no field nam: did you mean name?",
    ),
    "description": (
        '[messages]\nA = { is = "s: name=text", descriptions = { nam = "x" } }\n',
        "2:45",
        "nam",
        "no field nam: did you mean name?",
    ),
    "clause": (
        '[clauses]\nplay = "Play"\n[messages]\nA = { is = "s:", clause = "{paly}" }\n',
        "4:29",
        "paly",
        "no clause paly: did you mean play?",
    ),
    "table key": ('[messages]\nA = { is = "s:", abuot = "x" }\n', "2:18", "abuot", "did you mean about?"),
    "name": ('[messages]\n" A" = "c:"\n', "2:1", '" A"', "with no blanks around them"),
    "rest": ('[messages]\nA = "s: a=rest b=text"\n', "2:9", "a", "it must be the last field"),
    "list to the end": ('[messages]\nA = "s: a=[text ] b=text"\n', "2:9", "a", "it must be the last field"),
    # Packets of lines, and other words for values.
    "values twice": ('[types]\na = "x=1|y=1"\n', "2:6", "x=1|y=1", "1 occurs twice"),
    "words in JSON": (
        'format = "json"\nname = "t"\n[messages]\nA = "s: a=bool t|f"\n',
        "4:9",
        "a",
        "other words for values belong to text that is no json",
    ),
    "spelled in text": (
        '[spelled]\nred = ["rot"]\n[messages]\nA = "s: a=rde|blue"\n',
        "2:1",
        "red",
        "no field has the word red: did you mean rde?",
    ),
    "mark": ('mark = "!"\n[messages]\nA = "s:"\n', "1:1", "mark", "mark belongs to format"),
    "own end": ('[messages]\nA = { is = "s:", end = "E" }\n', "2:18", "end", "end belongs to format = lines"),
    "end of datagrams": (
        'format = "lines"\ntransport = "udp"\nend = "E"\n[messages]\nA = "s:"\n',
        "3:1",
        "end",
        'end belongs to framing = "delimiter", "block", "json", "xml" or "lines", not to datagrams',
    ),
    "any number of lines": (
        'format = "lines"\n[messages]\nA = "s: a=text b=[text]..3"\n',
        "3:16",
        "b",
        "b has any number of lines: this needs a last line, end",
    ),
    "other numbers of lines": (
        'format = "lines"\n[messages]\nA = ["s: a=text", "s: a=text b=text"]\n',
        "3:19",
        '"s: a=text b=text"',
        "rows of A have different numbers of lines",
    ),
    "other ends": (
        'format = "lines"\nend = "."\n[messages]\nA = ["s: a=text", { is = "c:", end = "" }]\n',
        "4:26",
        '"c:"',
        'all rows of A have the same end, and another has "."',
    ),
    "name is end": (
        'format = "lines"\nend = "."\n[messages]\n"." = "c:"\n',
        "4:1",
        '"."',
        ". is the last line of its packets",
    ),
    "two open lists": (
        'format = "lines"\nend = "."\n[messages]\nA = "s: a=[text] b=[text]"\n',
        "4:18",
        "b",
        "the field before it takes all lines that remain",
    ),
    "lines in a line": (
        'format = "lines"\nend = "."\n[messages]\nA = "s: a=[{x=text y=text\\n},]"\n',
        "4:9",
        "a",
        "lines cannot be within a line",
    ),
    "open items": (
        'format = "lines"\nend = "."\n[messages]\nA = "s: a=[[text\\n]\\n]"\n',
        "4:9",
        "a",
        "an item of several lines has a fixed number of them",
    ),
    "optional lines": (
        'format = "lines"\nend = "."\n[messages]\nA = "s: a={x=text y?=text\\n}"\n',
        "4:9",
        "a",
        "a value of several lines has a fixed number of them",
    ),
    "too many lines": (
        'format = "lines"\nend = "."\n[messages]\nA = "s: a=[[text\\n]999\\n]999"\n',
        "4:9",
        "a",
        "more than 500 lines",
    ),
    # Codes.
    "code": ('[codes]\nB = 1\n[messages]\nA = "c:"\n', "2:1", "B", "no message B"),
    "large code": (
        'format = "struct"\n[codes]\nA = 300\n[messages]\nA = "c:"\n',
        "3:5",
        "300",
        "a code is from 0 to 255",
    ),
    "no code": ('format = "struct"\n[messages]\nA = "c:"\n', "3:1", "A", "A has no number in [codes]"),
    "code twice": (
        '[codes]\nA = 1\nB = 1\n[messages]\nA = "c:"\nB = "c:"\n',
        "3:5",
        "1",
        "A has the code 1, too",
    ),
    "code is no number": ('[codes]\nA = "x"\n', "2:5", '"x"', "A must be a whole number"),
    # Identity.
    "login": (f'{MESSAGES}[identity]\nlogin = "JION"\n', "6:9", '"JION"', "no message JION"),
    "login in list": (f'{MESSAGES}[identity]\nlogin = ["JION"]\n', "6:10", '"JION"', "no message JION"),
    "sender": (
        f'{MESSAGES}[identity]\nlogin = "ROLLED"\n',
        "6:9",
        '"ROLLED"',
        "a client does not send ROLLED",
    ),
    "id": (f'{MESSAGES}[identity]\nid = "nam"\n', "6:6", '"nam"', "no message has a field nam: did you mean"),
    "identity": (
        f'{MESSAGES}[events]\n[identity]\nidd = "x"\n',
        "7:1",
        "idd",
        "unknown key idd: did you mean id?",
    ),
    # Events.
    "on": (f'{MESSAGES}[events]\na = {{ on = "ROLED" }}\n', "6:12", '"ROLED"', "did you mean ROLLED?"),
    "no on": (f'{MESSAGES}[events]\na = {{ say = "x" }}\n', "6:1", "a", "on is missing"),
    "from": (
        f'{MESSAGES}[events]\na = {{ on = "JOIN", from = "server" }}\n',
        "6:27",
        '"server"',
        "the server sends no JOIN",
    ),
    "from whom": (
        f'{MESSAGES}[events]\na = {{ on = "JOIN", from = "bank" }}\n',
        "6:27",
        '"bank"',
        'from must be "server" or "client"',
    ),
    "say": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", say = "{{name}} rolls {{pip}}" }}\n',
        "6:43",
        "pip",
        "pip is neither a field nor put by an event: did you mean pips?",
    ),
    "say empty": (
        f'{MESSAGES}[events]\na = {{ on = "JOIN", say = "a {{}}" }}\n',
        "6:30",
        "}",
        "ends too early",
    ),
    "say open": (f'{MESSAGES}[events]\na = {{ on = "JOIN", say = "a {{name" }}\n', "6:29", "{", "not closed"),
    "part": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", say = "{{at.z}}" }}\n',
        "6:30",
        "at.z",
        "at has no part z",
    ),
    "part of a number": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", say = "{{pips.z}}" }}\n',
        "6:30",
        "pips.z",
        "pips has no part z",
    ),
    "when": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", when = "pips = 3" }}\n',
        "6:35",
        "=",
        '"=" alone is not an operator; did you mean "=="?',
    ),
    "matches": (
        f"{MESSAGES}[events]\na = {{ on = 'ROLLED', when = 'name matches \"[\"' }}\n",
        "6:43",
        '"["',
        "not a regular expression",
    ),
    "put": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", put = {{ x = "pips + pip" }} }}\n',
        "6:42",
        "pip",
        "pip is neither a field nor put by an event",
    ),
    "put at": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", put = {{ "x.{{nam}}" = 1 }} }}\n',
        "6:30",
        '"x.{nam}"',
        "nam is neither a field nor put by an event: did you mean name?",
    ),
    "put at no path": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", put = {{ "x +" = 1 }} }}\n',
        "6:30",
        '"x +"',
        "x + is no path of the state",
    ),
    "put no JSON": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", put = {{ x = [nan] }} }}\n',
        "6:35",
        "nan",
        "0 must be a text, a number, true or false, a list or a table",
    ),
    "cancels": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", cancels = 1 }}\n',
        "6:32",
        "1",
        "cancels must be true or false",
    ),
    "opens and cancels": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", opens = true, cancels = true }}\n',
        "6:46",
        "true",
        "an event that opens a game cannot cancel it",
    ),
    "flag value": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", opens = "yes" }}\n',
        "6:30",
        '"yes"',
        "opens must be true or false",
    ),
    "actor": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", actor = "nam" }}\n',
        "6:31",
        "nam",
        "nam is neither a field",
    ),
    "result": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", ends = true, result = {{ winner = "nam" }} }}\n',
        "6:56",
        "nam",
        "nam is neither a field",
    ),
    "path": (
        f'{MESSAGES}[events]\na = {{ on = "ROLLED", put = {{ "x.{{name}}.y" = 1, z = "x.{{name}}.w" }} }}\n',
        "6:53",
        "x.{name}.w",
        "no event puts anything at x.{…}.w",
    ),
    # Rules.
    # Keys of types, and of rows in JSON.
    "key of a type": (
        f"{JSON}[types]\na = {{ is = '1..6', nuon = 'x' }}\n",
        "7:20",
        "nuon",
        "did you mean noun?",
    ),
    "key of another type": (
        f"{JSON}[types]\na = {{ is = '1..6', noun = 'x' }}\n",
        "7:20",
        "noun",
        "noun means nothing for this type",
    ),
    "key of JSON": (
        f"{MESSAGES}[types]\na = {{ is = '[text]', noun = 'x' }}\n",
        "6:22",
        "noun",
        "noun belongs to format = json",
    ),
    "type in a table": (f"{JSON}[types]\na = {{ is = '[tex]' }}\n", "7:14", "tex", "did you mean text?"),
    "no type in a table": (f"{JSON}[types]\na = {{ title = 'x' }}\n", "7:1", "a", "is is missing"),
    "usual": (
        f"{JSON}[types]\na = {{ is = '1..6', usual = 'x' }}\n",
        "7:28",
        "'x'",
        "usual must be the least usual number",
    ),
    "keep": (
        f"{JSON}[types]\na = {{ is = 'text', keep = 'x' }}\n",
        "7:27",
        "'x'",
        'keep must be true, a list of words, or a "/pattern/"',
    ),
    "spelled": (
        f"{JSON}[types]\na = {{ is = 'red|blue', spelled = {{ rde = ['r'] }} }}\n",
        "7:36",
        "rde",
        "no word rde: did you mean red?",
    ),
    "odd": (
        f"{JSON}[types]\na = {{ is = 'red|blue', odd = {{ x = {{ value = 'red' }} }} }}\n",
        "7:32",
        "x",
        "note is missing",
    ),
    "sizes of no list": (
        f"{JSON}[types.a]\nis = '{{t=b|c x=text}}'\n"
        "sizes = { by = 't', of = 'x', sizes = {}, otherwise = 1 }\n",
        "8:26",
        "'x'",
        "x is no list",
    ),
    "sizes by no word": (
        f"{JSON}[messages.X]\nis = 's: t=b|c x=[text]'\n"
        "sizes = { by = 't', of = 'x', sizes = { d = 1 }, otherwise = 1 }\n",
        "8:41",
        "d",
        "t is never d",
    ),
    "alternatives": (
        f"{JSON}X = 's: a=text or b|c'\n",
        "6:11",
        "text or b|c",
        "two of these may be a text: they cannot be told apart",
    ),
    "or in words": (f"{MESSAGES}X = 's: a=1..6 or [text]'\n", "5:9", "a", "or belongs to format = json"),
    "bag of a type": (f"{JSON}X = 's: a=bag text'\n", "6:15", "text", "a bag has the names of its kinds"),
    "beside": (
        f"{JSON}X = {{ is = 's: a=text', beside = ['b'] }}\n",
        "6:35",
        "'b'",
        "no field b",
    ),
    "form of two fields": (
        f"{JSON}X = {{ is = 's: a=text b=text', form = 'value' }}\n",
        "6:39",
        "'value'",
        "a value is one field, not 2",
    ),
    "form of words": (
        f"{MESSAGES}X = {{ is = 's: a=text', form = 'list' }}\n",
        "5:25",
        "form",
        'form belongs to format = json with name = "*"',
    ),
    "letters of words": (
        f'{MESSAGES}[letters]\n"ä" = "ae"\n',
        "5:2",
        "letters",
        'letters belongs to format = "json"',
    ),
    "no demand": (
        f'{MESSAGES}[rules]\na = {{ on = "ROLLED", say = "x" }}\n',
        "6:1",
        "a",
        "rule a has neither when nor unless",
    ),
    "unless": (
        f'{MESSAGES}[rules]\na = {{ on = "ROLLED", unless = "who == turn", say = "x" }}\n',
        "6:39",
        "turn",
        "turn is neither a field nor put by an event",
    ),
    "severity": (
        f'{MESSAGES}[rules]\na = {{ on = "JOIN", unless = "name", say = "x", severity = "bad" }}\n',
        "6:59",
        '"bad"',
        'severity must be "note", "warning" or "error"',
    ),
    "known": (
        f'{MESSAGES}[rules]\na = {{ on = "JOIN", unless = "known", say = "{{known}}" }}\n',
        "6:30",
        "known",
        "known is neither a field",
    ),
    # Board.
    "score": (
        f'{MESSAGES}[board]\nscores = "points.{{player}}"\n',
        "6:11",
        "points.{player}",
        "points is not put by any event",
    ),
    "score of whom": (
        f'{MESSAGES}[board]\nscores = "players.{{who}}.x"\n',
        "6:20",
        "who",
        "who is not put by any event",
    ),
    "no path": (f'{MESSAGES}[board]\ndice = "1 + 2"\n', "6:8", '"1 + 2"', "dice must be a path of the state"),
    "board text": (f'{MESSAGES}[board]\ntext = ["a", "{{x}}"]\n', "6:16", "x", "x is not put by any event"),
    "grid": (f"{MESSAGES}[board.grid]\nwidht = 3\n", "6:1", "widht", "did you mean width?"),
    "cell": (f'{MESSAGES}[board.grid]\ncell = "a b"\n', "6:8", '"a b"', "cell must be a path within a cell"),
    "width": (
        f"{MESSAGES}[board.grid]\nwidth = 1000\n",
        "6:9",
        "1000",
        "width must be a number from 1 to 60, or a path of the state",
    ),
    "symbols": (f"{MESSAGES}[board.grid.symbols]\na = 3\n", "6:5", "3", "a must be a text"),
    # Statistics and queries.
    **{
        name: (f"{MESSAGES}[statistics]\na = {{ {entry} }}\n", f"6:{1 + mark}", marked, message)
        for name, (entry, mark, marked, message) in {
            "form": ('counts = "ROLLED", shares = "ROLLED"', 0, "a", "a statistic has one of "),
            "no form": ('title = "x"', 0, "a", 'one of "counts", "shares", "histogram", "course" or "dur'),
            "event of a statistic": ('counts = "ROLED"', 15, '"ROLED"', "ROLED: did you mean ROLLED?"),
            "column": ('counts = "ROLLED", by = "pip"', 31, "pip", "pip is neither a field nor put by"),
            "line": ('course = "ROLLED", line = ["who", "nme"]', 41, "nme", "did you mean name?"),
            "words of shares": ('shares = "ROLLED", words = ["x"]', 0, "a", "shares need two words"),
            "value": ('histogram = "ROLLED", of = "dice"', 0, "a", "a histogram needs by"),
            "beginning": ('durations = "ROLLED"', 0, "a", "durations need begins"),
            "chance": ('counts = "ROLLED", chance = { 1 = 1 }', 25, "chance", 'belongs to "histogram", not'),
            "weight": (
                'histogram = "ROLLED", by = "pips", chance = { 1 = 0 }',
                56,
                "0",
                "1 must be a whole number from 1 to",
            ),
            "reader": ('counts = "p.a:B"', 15, '"p.a:B"', "no event p.a:B"),
        }.items()
    },
    # Expectations.
    **{
        name: (f"{MESSAGES}[quotes]\nq = ''\n[expectations]\na = {{ {entry} }}\n", place, marked, message)
        for name, (entry, place, marked, message) in {
            "role": ('reaction = "ignores"', "8:1", "a", "an expectation is about servers or clients"),
            "level": ('server = "may", reaction = "ignores"', "8:16", '"may"', '"should" or'),
            "reaction": ('server = "must", reaction = "no"', "8:35", '"no"', 'or "closes"'),
            "refusal": ('server = "must", reaction = "refuses"', "8:35", '"refuses"', "refuses needs as"),
            "refusing message": (
                'server = "must", reaction = "refuses", as = "JOINED"',
                "8:51",
                '"JOINED"',
                "no message JOINED of a server",
            ),
            "refusing field": (
                'server = "must", reaction = "refuses", as = ["ROLLED pip=1"]',
                "8:52",
                '"ROLLED pip=1"',
                "ROLLED has no field pip: did you mean pips?",
            ),
            "quote of none": (
                'server = "must", reaction = "ignores", quote = "{qq}"',
                "8:56",
                "qq",
                "mean q?",
            ),
        }.items()
    },
    "broken rule": (f'{MESSAGES}[probe.broken_by]\na = "JOIN/twice"\n', "6:1", "a", "no rule a"),
    "awaited": (f'{MESSAGES}[probe]\nawaited = "JOI"\n', "6:11", '"JOI"', "did you mean JOIN?"),
    "bot": (f'{MESSAGES}[probe]\nbot = "p.bot:Bot"\n', "6:1", "bot", "only the file of an installed package"),
    "queries": (
        f'{MESSAGES}[queries.a]\ntitle = "x"\nsql = "x"\n',
        "5:2",
        "queries",
        "only the file of an installed package may have queries",
    ),
}
"""Text, `LINE:COLUMN` of a mistake, what has carets under it, and a part of its message."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_its_place(name: str) -> None:
    text, place, marked, message = MISTAKES[name]
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(text, "x.toml")
    found = {
        f"{each.place.number}:{each.place.position + 1}": each
        for each in reversed(raised.value.all)
        if message in each.message
    }
    assert place in found, [each.text("x.toml") for each in raised.value.all]
    _, line, position, length = found[place].place
    assert line[position : position + length] == marked


def test_all_mistakes_are_reported() -> None:
    text = f'{MESSAGES}X = "s: a=tex b=tixt"\n[events]\na = {{ on = "A", say = "x" }}\n[boards]\n'
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(text, "x.toml")
    error = raised.value
    assert [each.text("x.toml") for each in error.all] == [
        "x.toml:5:11: no type tex: did you mean text?",
        "x.toml:5:17: no type tixt: did you mean text?",
        "x.toml:7:12: no message A",
        "x.toml:8:2: unknown key boards: did you mean board?",
    ]
    assert str(error) == "x.toml:5:11: no type tex: did you mean text?"
    assert (error.name, error.line, error.column, error.length) == ("x.toml", 5, 11, 3)
    assert error.excerpt() == [
        '  X = "s: a=tex b=tixt"',
        "            ^^^",
        "3 more mistakes: kiebitz protocols --check x.toml",
    ]


def test_an_unknown_message_hides_no_other_mistake_and_causes_none() -> None:
    text = (
        f'{MESSAGES}[events]\na = {{ on = ["JOIN", "X"], say = "{{name}} {{anything}} {{", when = "who" }}\n'
    )
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(text)
    assert [each.message for each in raised.value.all] == ["no message X", 'this "{" is not closed']


REMARKS = {
    "description": (
        '[descriptions]\nnme = "x"\n',
        "6:1",
        "no row has the field nme: did you mean name?",
    ),
    "type": ('[types]\na = "integer"\n', "6:1", "no row uses the type a"),
    "event": ('[events]\na = { on = "JOIN" }\n', "6:1", "event a neither says nor puts anything"),
    "turn": ('[board]\nturn = "turn"\n', "6:1", "no event puts anything at turn"),
    "label": (
        '[events]\na = { on = "JOIN", say = "x", label = "x" }\n',
        "6:31",
        "label means nothing without opens = true",
    ),
    "result": (
        '[events]\na = { on = "JOIN", say = "x", result = { x = 1 } }\n',
        "6:31",
        "result means nothing without ends = true",
    ),
}


def test_a_cancelled_game_ends() -> None:
    found = read(
        f'{MESSAGES}[events]\na = {{ on = "JOIN", cancels = true, result = {{ x = 1 }} }}\n'
        'b = { on = "JOIN", timeout = true, ends = true }\nc = { on = "JOIN", joins = true, opens = true }\n'
    )
    assert [*found.remarks] == []
    ends = [(each.ends, each.cancels, each.timeout, each.joins) for each in found.specification.events]
    assert ends == [
        (True, True, False, False),
        (True, False, True, False),
        (False, False, False, True),
    ]


def test_binary_lines_are_remarked_on() -> None:
    remarks = read('protocol = "p"\nformat = "struct"\n[codes]\nA = 1\n[messages]\nA = "c:"\n').remarks
    assert [each.text("x") for each in remarks] == [
        'x:2:1: binary messages may contain line ends: use framing = "length"'
    ]


@pytest.mark.parametrize("name", REMARKS)
def test_a_remark(name: str) -> None:
    text, place, message = REMARKS[name]
    remarks = read(MESSAGES + text).remarks
    assert [each.text("x") for each in remarks] == [f"x:{place}: {message}"]


# Strange files.


def _is_read(text: str) -> None:
    """Check that a text is a specification or has mistakes inside it."""
    try:
        found = read_specification(text)
    except ProtocolFileError as error:
        lines = text.replace("\r\n", "\n").split("\n")
        for mistake in error.all:
            place = mistake.place
            assert 1 <= place.number <= len(lines)
            assert 0 <= place.position <= len(place.line)
            mistake.excerpt()
    else:
        # Nothing that is read fails later.
        dissector_from(found)


@given(st.text())
def test_any_text(text: str) -> None:
    _is_read(text)


_TOKENS = [
    *("protocol", "messages", "events", "types", "board", "on", "say", "put", "is", "A", "B", "x", "format"),
    *(
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        ".",
        ",",
        "\n",
        " ",
        '"',
        "'",
        '"""',
        "#",
        "\\u0041",
        "\\",
        "1",
        "nan",
    ),
    *("c:", "s*:", "<", "a=text", "b?=[1..6;]", "/[/", "{a}", "1979-05-27", "true", "'c: a=id u16'", "|"),
]


@given(st.lists(st.sampled_from(_TOKENS)).map("".join))
def test_any_tokens(text: str) -> None:
    _is_read(text)


@given(st.lists(st.sampled_from(_TOKENS)).map("".join))
def test_any_row(text: str) -> None:
    _is_read(f'protocol = "p"\n[messages]\nA = {json.dumps(text)}\n')


@given(st.integers(0, len(EXAMPLE)), st.integers(0, 5), st.sampled_from(["", *_TOKENS]))
def test_any_change_of_the_example(at: int, removed: int, added: str) -> None:
    _is_read(EXAMPLE[:at] + added + EXAMPLE[at + removed :])


_VALUES = st.recursive(
    st.one_of(
        st.none(), st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.sampled_from(_TOKENS)
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_TOKENS), inner, max_size=3),
)


_KEYS = [*json_schema()["$defs"]["Document"]["properties"]]


@pytest.mark.parametrize(
    "value", ["1979-05-27", "1", '"x"', "true", "[]", "[1]", '[{ x = "x" }]', '{ x = "x" }']
)
def test_no_key_with_a_value_of_another_kind_stops_the_reader(value: str) -> None:
    for key in _KEYS:
        _is_read(f"{key} = {value}")


@pytest.mark.full
@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_any_values(document: dict[str, Any]) -> None:
    _is_read("\n".join(f"{key} = {_toml(value)}" for key, value in document.items()))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return "1979-05-27" if value is None else json.dumps(value)


_MANY = 'protocol = "p"\n[messages]\n' + "".join(f"M{n} = 'c: a=text'\n" for n in range(900))
LARGE = {
    "size": "#" * (MAX_SIZE + 1),
    "rows": 'protocol = "p"\n[messages]\n' + "".join(f"M{n} = 'c:'\n" for n in range(1100)),
    "mistakes": "[messages]\n" + "".join(f"M{n} = 'c: a=tex'\n" for n in range(9000)),
    "mistakes in a row": f"[messages]\nA = 'c: {'a=tex ' * 20_000}'\n",
    "unknown messages": f"{_MANY}[events]\n" + "".join(f"e{n} = {{ on = 'Q{n}' }}\n" for n in range(9000)),
    "expressions": f"{_MANY}[events]\n"
    + "".join(f"e{n} = {{ on = 'M0', say = '{{a}} {{who}}' }}\n" for n in range(5000)),
    "answers": f"{_MANY}A = 's: < {'B ' * 90_000}'\n",
    "braces": f"{_MANY}[events]\na = {{ on = 'M0', say = '{'{a}' * 70_000}' }}\n",
    "types": "protocol = 'p'\n[types]\n"
    + "".join(f"t{n} = '{{a=t{n + 1} b=t{n + 1}}}'\n" for n in range(4000))
    + "[messages]\nA = 'c: a=t1'\n",
    "parts": "protocol = 'p'\n[types]\n"
    + "".join(f"t{n} = '{{{' '.join(f'{k}=t{n + 1}' for k in 'abcdefgh')}}}'\n" for n in range(9))
    + "t9 = 'text'\n[messages]\nA = 'c: a=t0'\n",
    "dotted": "\n".join(f"a{n}.b = 1" for n in range(19_000)),
    "array": f"x = [{'1,' * 90_000}]",
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize("name", a_few(LARGE, lambda name: name not in ("expressions", "array")))
def test_a_large_file_is_refused_soon(name: str) -> None:
    began = time.process_time()
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(LARGE[name])
    assert len(raised.value.all) <= 101
    # Some take a second; without bounds, they would take minutes.
    assert time.process_time() - began < 20


# Locations, and the schema.


def test_locations_of_keys_and_values() -> None:
    text = 'a = 1 # x\n"b c".d = "x\\u0041 y"\n[t.u]\nk = [1, "two", {z = 3}]\n'
    text += "[[arr]]\nq = 1\n[arr.in]\nv = 2\n[[arr]]\nq = 3\n"
    places = TomlPlaces(text)

    def marked(place: Any) -> str:
        return f"{place.number} {place.line[place.position : place.position + place.length]}"

    assert marked(places.key(["b c", "d"])) == "2 d"
    assert marked(places.key(["b c"])) == '2 "b c"'
    assert marked(places.value(["b c", "d"], 1, 3)) == "2 \\u0041 "
    assert marked(places.key(["t", "u", "k", 2, "z"])) == "4 z"
    assert marked(places.value(["t", "u", "k", 1])) == '4 "two"'
    assert marked(places.value(["arr", 0, "in", "v"])) == "8 2"
    assert marked(places.value(["arr", 1, "q"])) == "10 3"
    assert marked(places.key(["t", "nothing"])) == "3 t"


def test_the_schema_is_that_of_the_code() -> None:
    assert PATH.read_text() == schema_text(), "python tests/support/make_file_schema.py makes it anew"


def _violations(value: Any, schema: Any, whole: Any, path: str = "") -> Iterator[str]:
    """Yield what a value violates of the keywords that the schema has."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    types = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
    }
    known = {*schema} - {"$defs", "$schema", "title", "description", "default"}
    assert known <= {
        *("type", "anyOf", "enum", "pattern", "minimum", "exclusiveMinimum", "maximum", "items"),
        *("properties", "required", "additionalProperties"),
    }
    if (
        ("type" in schema and not isinstance(value, types[schema["type"]]))
        or ("anyOf" in schema and all([*_violations(value, each, whole)] for each in schema["anyOf"]))
        or ("enum" in schema and value not in schema["enum"])
        or ("pattern" in schema and not re.search(schema["pattern"], value))
        or not schema.get("minimum", -math.inf) <= (value if "minimum" in schema else 0)
        or ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"])
        or not (value if "maximum" in schema else 0) <= schema.get("maximum", math.inf)
    ):
        yield f"{path} is wrong"
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            yield from _violations(item, schema["items"], whole, path)
    elif isinstance(value, dict) and "anyOf" not in schema:
        yield from (
            f"{path}.{key} is missing"[bool(not path) :] for key in {*schema.get("required", ())} - {*value}
        )
        for key, item in value.items():
            inside = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            at = f"{path}.{key}" if path else key
            if inside is None:
                continue
            if inside is False:
                yield f"{at} is unknown"
            else:
                yield from _violations(item, inside, whole, at)


@pytest.mark.parametrize("text", [EXAMPLE, *(file.read_text() for file in FILES)])
def test_a_file_has_the_schema(text: str) -> None:
    schema = json_schema()
    assert [*_violations(parse_toml(text), schema, schema)] == []


def test_a_violation_of_the_schema_is_found() -> None:
    schema = json_schema()
    document = {
        "protocol": "Dice",
        "messages": {"A": "x"},
        "port": 0,
        "frameing": 1,
        "events": {"a": {"say": 1}},
    }
    assert sorted(_violations(document, schema, schema)) == [
        "events.a is wrong",
        "frameing is unknown",
        "messages.A is wrong",
        "port is wrong",
        "protocol is wrong",
    ]
