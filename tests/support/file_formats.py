"""One small protocol in every framing and format of protocol files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import ListText, Number, ObjectText, Text, Word
from kiebitz.dissectors.grammar.json import containers
from kiebitz.dissectors.grammar.json import types as json_types
from kiebitz.dissectors.grammar.xml.shapes import Compound, ElementList
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file import binary_types, text_types
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification

CODED = "'0x4d58' name=u16 length=u32"
NAMED = "length=varint name=text:6 'x'"
"""Headers with a code or a text for the name."""

FRAMINGS = {
    "lines": 'framing = "lines"',
    "crlf": 'framing = "lines"\nline_end = "\\r\\n"',
    "datagrams": 'transport = "udp"',
    "nul": 'framing = "delimiter"\nend = "\\u0000"',
    "bars": 'framing = "delimiter"\nend = "||"',
    "dot": 'framing = "block"\nend = "."',
    "blank": 'framing = "block"\nend = ""',
    "u8": 'framing = "length"\nprefix = "u8"',
    "u16-little": 'framing = "length"\nprefix = "u16"\norder = "little"',
    "u32-inclusive": 'framing = "length"\nprefix = "u32"\ninclusive = true',
    "u64": 'framing = "length"\nprefix = "u64"',
    "header": f'framing = "length"\nheader = "{CODED}"',
    "header-named": f'framing = "length"\nheader = "{NAMED}"\ninclusive = "header"',
    "header-text": """framing = "length"\nheader = "name=text '|' length=text:4 '|'\"""",
    "header-bars": """framing = "delimiter"\nend = "||"\nheader = "'UNO' name=text:6\"""",
    "header-lines": """framing = "lines"\nheader = "'C45' name=text:3 'x'\"""",
    "varint": 'framing = "length"\nprefix = "varint"',
    "varint-inclusive": 'framing = "length"\nprefix = "varint"\ninclusive = true',
    "json": 'framing = "json"',
    "xml": 'framing = "xml"',
    "xml-lines": 'framing = "xml"\nend = "\\r\\n\\r\\n"',
    "size": 'framing = "size"\nsize = 200',
    "size-header": f'framing = "size"\nsize = 100\nheader = "{CODED.replace(" length=u32", "")}"',
    "send": 'framing = "send"',
    "before": 'framing = "lines"\nbefore = "[id=integer:][@ref=text]"',
    "websocket": 'framing = "websocket"',
}

FORMATS = {
    "words": 'format = "words"',
    "quoted": 'format = "words"\nquote = "\\""',
    "delimited": 'format = "delimited"\ndelimiter = ";"',
    "closed": 'format = "delimited"\ndelimiter = ";"\nline_end = ";"',
    "packets": 'format = "lines"\nmark = "!"\nend = "!END"',
    "linefeeds": 'format = "lines"',
    "pairs": 'format = "pairs"\nname = "type"',
    "pairs-quoted": 'format = "pairs"\nname = "type"\nquote = "\\""',
    "pairs-first": 'format = "pairs"\ndelimiter = ";"\nassign = ": "\nname = "first"',
    "headers": 'format = "pairs"\ndelimiter = "\\n"\nassign = ":"\nname = "type"',
    "json": 'format = "json"\nname = "type"',
    "json-body": 'format = "json"\nname = "head.type"\nfields = "body"',
    "json-key": 'format = "json"\nname = "*"',
    "xml": 'format = "xml"',
    "mixed": 'formats = { c = "words", s = "json" }\nname = "type"',
    "xml-attribute": 'format = "xml"\nname = "@type"',
    "xml-strict": 'format = "xml"\nstrict = true\nenvelope = "game @version?=0..9"',
    "xml-root": 'format = "xml"\nroot = "game @version?=0..9"',
    "latin": 'format = "delimited"\ndelimiter = ";"\nencoding = "latin-1"',
    "struct": 'format = "struct"',
    "struct-little": 'format = "struct"\nname = "u16"\norder = "little"',
}

BINARY = ("struct", "struct-little")

_LINES = ("lines", "crlf", "datagrams", "nul", "bars", "u8", "u16-little", "u32-inclusive", "varint")

PAIRS = [
    *((framing, "words") for framing in (*_LINES, "dot", "blank", "u64", "varint-inclusive")),
    *(
        (framing, each)
        for each in ("quoted", "delimited", "pairs", "pairs-quoted", "latin")
        for framing in ("lines", "nul")
    ),
    *((framing, "packets") for framing in ("lines", "crlf")),
    *((framing, "linefeeds") for framing in ("datagrams", "nul", "u16-little")),
    *((framing, "pairs-first") for framing in ("crlf", "datagrams")),
    *((framing, "headers") for framing in ("dot", "blank", "u32-inclusive")),
    *((framing, "json") for framing in ("lines", "json", "datagrams", "nul", "u16-little", "blank")),
    *((framing, each) for each in ("json-body", "json-key") for framing in ("lines", "json")),
    *((framing, "xml") for framing in ("lines", "xml", "bars", "u32-inclusive", "dot")),
    ("xml", "xml-attribute"),
    ("xml", "xml-root"),
    *((framing, "xml-strict") for framing in ("lines", "xml", "xml-lines", "u32-inclusive")),
    *((framing, "struct") for framing in ("datagrams", "u8", "u16-little", "u64", "varint-inclusive")),
    ("u32-inclusive", "struct-little"),
    *(("header", each) for each in ("words", "delimited", "pairs", "json", "json-body", "struct")),
    *(("header-named", each) for each in ("quoted", "pairs-first", "struct-little")),
    *(("header-text", each) for each in ("closed", "json")),
    *(("header-bars", each) for each in ("delimited", "pairs-quoted", "json", "linefeeds")),
    *(("header-lines", each) for each in ("words", "json-body")),
    *(("size", each) for each in ("words", "headers", "json-body", "xml")),
    *(("size-header", each) for each in ("delimited", "json")),
    *(("send", each) for each in ("quoted", "headers", "struct")),
    *(("before", each) for each in ("words", "delimited", "pairs", "json")),
    *((framing, "mixed") for framing in ("lines", "nul")),
    *(("websocket", each) for each in ("json", "words", "pairs", "xml", "struct")),
]
"""The tested combinations of framing and format."""

USUAL = [
    ("lines", "words"),
    ("varint", "words"),
    ("nul", "quoted"),
    ("lines", "latin"),
    ("lines", "packets"),
    ("dot", "headers"),
    ("json", "json"),
    ("lines", "json-body"),
    ("xml", "xml"),
    ("xml", "xml-root"),
    ("xml-lines", "xml-strict"),
    ("u16-little", "struct"),
    ("header", "struct"),
    ("header-named", "quoted"),
    ("header-text", "closed"),
    ("header-bars", "delimited"),
    ("header-lines", "words"),
    ("size-header", "json"),
    ("before", "words"),
    ("lines", "mixed"),
    ("websocket", "json"),
]
"""Those of an ordinary run of the tests."""

_TEXTS = """
[types]
colour = "red|'dark blue'"
word = "/[a-z]+/"

[messages]
HELLO = "c:"
JOIN = "c: name=player colour?=colour"
JOINED = "s*: name=player seat=1..6 ready=bool < JOIN"
MOVE = ["c: x=integer y=integer", "c: to={x=integer y=integer} points?=number"]
DEALT = "s: seat=id:seat cards=LIST"
SAY = "c: text=rest"
STATE = ["c~:", "s~: round?=integer"]
"""

_BINARY = """
[types]
seat = "id:seat u8"

[messages]
HELLO = "c:"
JOIN = "c: name=player text8 colour?=u8"
JOINED = "s*: name=player text8 seat=1..6 ready=bool8 < JOIN"
MOVE = ["c: x=i16 y=i32", "c: to={x=i8 y=i8} points=f64"]
DEALT = "s: seat=seat count=varint cards=[u16]"
SAY = "c: tag=text:4 raw=bytes8 text=rest"
STATE = ["c~:", "s~: round?=u64"]

"""

_CODES = """
[codes]
HELLO = 0
JOIN = 1
JOINED = 2
MOVE = 3
DEALT = 4
SAY = 5
STATE = 255
"""


@cache
def protocol(framing: str, of: str) -> Dissector:
    """Return the protocol in this framing and format."""
    body = _BINARY + _CODES
    if of not in BINARY:
        item = {"words": "[word ]", "quoted": "[text ]"}
        usual = "[word;]" if of in ("delimited", "closed", "latin") else "[word]"
        body = _TEXTS.replace("LIST", item.get(of, usual))
        if of in ("words", "pairs", "mixed"):
            body = body.replace("'dark blue'", "blue")
    form = FORMATS[of]
    if "header" in FRAMINGS[framing]:
        form = re.sub('\nname = ".*?"', "", form)
        types, _, _ = body.partition("\n[codes]")
        body = types + ("" if framing in ("header-named", "header-text", "header-bars") else _CODES)
    head = f'protocol = "small"\nport = 4710\n{FRAMINGS[framing]}\n{form}\n'
    return dissector_from(read_specification(f"{head}{body}"))


TEXT_MESSAGES: list[tuple[str, Direction, dict[str, Any]]] = [
    ("HELLO", "c2s", {}),
    ("JOIN", "c2s", {"name": "Jörg"}),
    ("JOIN", "c2s", {"name": "ann", "colour": "red"}),
    ("JOINED", "s2c", {"name": "ann", "seat": 3, "ready": True}),
    ("MOVE", "c2s", {"x": -3, "y": 0}),
    ("MOVE", "c2s", {"to": {"x": 1, "y": 2}, "points": 2.5}),
    ("DEALT", "s2c", {"seat": "a7", "cards": ["ace", "king", "ten"]}),
    ("SAY", "c2s", {"text": "hello, you two"}),
    ("STATE", "c2s", {}),
    ("STATE", "s2c", {"round": 12}),
]

BINARY_MESSAGES: list[tuple[str, Direction, dict[str, Any]]] = [
    ("HELLO", "c2s", {}),
    ("JOIN", "c2s", {"name": "Jörg"}),
    ("JOIN", "c2s", {"name": "ann", "colour": 7}),
    ("JOINED", "s2c", {"name": "ann", "seat": 3, "ready": True}),
    ("MOVE", "c2s", {"x": -3, "y": 100000}),
    ("MOVE", "c2s", {"to": {"x": 1, "y": -2}, "points": 2.5}),
    ("DEALT", "s2c", {"seat": 9, "count": 300, "cards": [1, 65535, 2]}),
    ("SAY", "c2s", {"tag": "ab", "raw": "00ff", "text": "hello"}),
    ("STATE", "c2s", {}),
    ("STATE", "s2c", {"round": 2**40}),
]


COUNTED = """
protocol = "counted"
port = 4710
framing = "fields"
format = "struct"
header = "'MX' round=u8 name=u8"

[messages]
JOIN = "c: name=player text8"
SCORES = "s*: n=varint rows=[{name=player text8 m=u8 dice=[1..6]*m}]*n hand=[u16]2 < JOIN"
MOVE = "c: at={x=u16 y=u8} end=bool way=u16 0=up|9=null"

[codes]
JOIN = 1
SCORES = 2
MOVE = 3
"""
"""A protocol whose messages end where their fields do."""

COUNTED_FRAMES: list[tuple[Direction, bytes]] = [
    ("c2s", b"MX\1\1\3ann"),
    ("s2c", b"MX\1\2\2\3ann\2\1\6\2bo\0\0\1\0\2"),
    ("c2s", b"MX\1\3\0\1\2\1\0\x09"),
    ("s2c", b"MX\2\2\0\0\1\0\2"),
    # A die with seven points, neither true nor false, and an unknown number.
    ("s2c", b"MX\2\2\1\1a\1\7\0\1\0\2"),
    ("c2s", b"MX\1\3\0\1\2\2\0\0"),
    ("c2s", b"MX\1\3\0\1\2\1\0\7"),
]


WORDS_IN_ORDER = """
protocol = "ordered"
port = 4710
framing = "lines"
format = "words"

[types]
state = "WAITING|RUNNING"
square = "-=null|w|b"
card = "/(10|[2-9JQKA])[CDHS]/"
place = "{x=column y=1..8}"
column = "a=1|b=2|e=5|h=8"

[messages]
END = "s*: winner=player n=integer scores=[{name=player score=integer}]*n"
LIST = "s: n=integer rooms=[{id=integer name=text state}]*n m=integer waiting=[player]*m note?=text"
DEALT = "s: n=integer hands=[{name=player k=integer cards=[card]*k}]*n"
HAND_OF = "s: hand={name=player k=integer cards=[card]*k} n=integer"
UPTO = "s: names=[player]..'STOP' n=integer"
TABLE = "s: table={n=integer cards=[card]..'STOP'} n=integer"
BOARD = "s: board=/[-wb]{4}/ as [square]"
MOVE = "s: at=/([a-h][1-8]){2}/ as {from=place to=place} mark=/[A-Z][a-z0-9]+/ as {kind=K|Q text=text}"
HAND = "s: cards=/.*/ as [card]"
FEN = 's: rows=/[1-8kqpKQP\\/]+/ as [[/[1-8a-zA-Z]/]/]'
SAID = 's: n=integer text=":"rest'
OVER = 's: winner="Player "player loser="("player")" at="<"[integer,]">"'
MEET = "s: who={title=text name=player } n=integer pairs=[{a=integer b=integer } ]"
"""
"""A protocol of words with lists and values that only the message shows the ends of."""

WORDS_READ: dict[bytes, dict[str, Any]] = {
    b"END bob 2 ann 3 bob 5\n": {
        "winner": "bob",
        "n": 2,
        "scores": [{"name": "ann", "score": 3}, {"name": "bob", "score": 5}],
    },
    b"END bob 0\n": {"winner": "bob", "n": 0, "scores": []},
    b"LIST 1 7 r1 RUNNING 2 ann bob hi\n": {
        "n": 1,
        "rooms": [{"id": 7, "name": "r1", "state": "RUNNING"}],
        "m": 2,
        "waiting": ["ann", "bob"],
        "note": "hi",
    },
    b"LIST 0 0\n": {"n": 0, "rooms": [], "m": 0, "waiting": []},
    b"DEALT 2 ann 2 10H KS bob 0\n": {
        "n": 2,
        "hands": [{"name": "ann", "k": 2, "cards": ["10H", "KS"]}, {"name": "bob", "k": 0, "cards": []}],
    },
    b"HAND_OF ann 2 10H KS 5\n": {"hand": {"name": "ann", "k": 2, "cards": ["10H", "KS"]}, "n": 5},
    b"UPTO ann bob STOP 3\n": {"names": ["ann", "bob"], "n": 3},
    b"TABLE 1:STOP 3\n": {"table": {"n": 1, "cards": []}, "n": 3},
    b"MEET Mr bob 3 1 2 3 4\n": {
        "who": {"title": "Mr", "name": "bob"},
        "n": 3,
        "pairs": [{"a": 1, "b": 2}, {"a": 3, "b": 4}],
    },
    b"BOARD -wb-\n": {"board": [None, "w", "b", None]},
    b"MOVE e2h4 Qalongtextofmanyletters9\n": {
        "at": {"from": {"x": 5, "y": 2}, "to": {"x": 8, "y": 4}},
        "mark": {"kind": "Q", "text": "alongtextofmanyletters9"},
    },
    b"HAND 2C10HQS\n": {"cards": ["2C", "10H", "QS"]},
    b"FEN kq/8/PPP5\n": {"rows": [["k", "q"], ["8"], ["P", "P", "P", "5"]]},
    b"SAID 12 :hello,  you\n": {"n": 12, "text": "hello,  you"},
    b"OVER Player bob (ann) <3,0>\n": {"winner": "bob", "loser": "ann", "at": [3, 0]},
}
"""Frame of that protocol -> its fields."""

LINES_AFTER_WORDS = r"""
protocol = "after"
port = 4710
format = "words"
quote = "'"

[types]
seat = '{colour=text":" mode=text":" name=player}'

[messages]
UPDATE = 's*: count=integer seats=[seat\n]*count'
NAME = 's: name="\n"player'
"TOP TEN" = "s: names=[player\n]..'END' by=[{name=player n=integer}\n]2"
TWO = 's: x=integer grid=[/[a-z]+/\n]2 y="\n= "integer'
SAY = "s: text=rest"
QUIT = "s:"
_ = "s: n=1..9"
"""
"""A protocol of words, of which some messages have further lines."""

LINES_AFTER_WORDS_READ: dict[bytes, dict[str, Any]] = {
    b"UPDATE 2\n#1: player: oki\n#2: host: Anna Maria\n": {
        "count": 2,
        "seats": [
            {"colour": "#1", "mode": "player", "name": "oki"},
            {"colour": "#2", "mode": "host", "name": "Anna Maria"},
        ],
    },
    b"UPDATE 0\n": {"count": 0, "seats": []},
    b"NAME\nUPDATE 1\n": {"name": "UPDATE 1"},
    b"NAME\n\n": {"name": ""},
    b"TOP TEN\nann\nbob b\nEND\nann 3\nbob 5\n": {
        "names": ["ann", "bob b"],
        "by": [{"name": "ann", "n": 3}, {"name": "bob", "n": 5}],
    },
    b"TWO 3\nab\ncd\n= 5\n": {"x": 3, "grid": ["ab", "cd"], "y": 5},
    b"SAY hello  you\n": {"text": "hello  you"},
    b"QUIT\n": {},
    b"7\n": {"n": 7},
}

COUNTED_LINES = """
protocol = "packets"
port = 4710
format = "lines"
mark = "!"

[types]
room = "{id=integer name=text\\n}"

[messages]
UPDATE = "s*: n=integer names=[player]*n m=integer rooms=[room]*m"
TOPS = "s: names=[player]..'END' x=integer"
NAME = "s: name=player"
QUIT = "s:"
"""
"""A protocol of packets of lines with counted lists."""

COUNTED_LINES_READ: dict[bytes, dict[str, Any]] = {
    b"!UPDATE\n2\nann\nbob\n1\n7\nBlue Room\n": {
        "n": 2,
        "names": ["ann", "bob"],
        "m": 1,
        "rooms": [{"id": 7, "name": "Blue Room"}],
    },
    b"!UPDATE\n0\n0\n": {"n": 0, "names": [], "m": 0, "rooms": []},
    b"!TOPS\nann\nEND\n3\n": {"names": ["ann"], "x": 3},
    b"!NAME\n!QUIT\n": {"name": "!QUIT"},
    b"!QUIT\n": {},
}

ANY_KEYS = """protocol = "keys"
port = 4710
format = "json"
name = "t"

[messages]
S = "s: cells={/[0-9],[0-9]/: a|b} hands={id: [text]} points={player: integer}"
"""

ANY_KEYS_READ: dict[bytes, dict[str, Any]] = {
    b'{"t":"S","cells":{"1,2":"a"},"hands":{"1":["x"],"7":[]},"points":{"ann":3,"bob":-1}}\n': {
        "cells": {"1,2": "a"},
        "hands": {"1": ["x"], "7": []},
        "points": {"ann": 3, "bob": -1},
    }
}

READ_IN_ORDER = {
    "objects": (ANY_KEYS, ANY_KEYS_READ),
    "words": (WORDS_IN_ORDER, WORDS_READ),
    "lines after words": (LINES_AFTER_WORDS, LINES_AFTER_WORDS_READ),
    "lines": (COUNTED_LINES, COUNTED_LINES_READ),
}
"""Protocols whose messages show how many words, lines or keys values have; frames with their fields."""


def messages(of: str) -> list[tuple[str, Direction, dict[str, Any]]]:
    """Return the messages that a format can write."""
    return BINARY_MESSAGES if of in BINARY else TEXT_MESSAGES


def frames(framing: str, of: str) -> list[bytes]:
    """Return frames of all messages, and faulty ones."""
    codec = protocol(framing, of).codec
    sound = [codec.encode(*message) for message in messages(of)]
    faulty = [frame.replace(b"ann", b"\xff\xfe").replace(b"JOIN", b"JION") for frame in sound[2:5]]
    return [*sound, *faulty, sound[3] + sound[3][:-3], b"\r\n", b'{"type": "MOVE", "x": [1', b"<a><b></a>"]


_LETTERS = st.text(st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=255), min_size=1, max_size=12)
_WHOLE = st.integers(-(2**63), 2**63 - 1)


def values_of(kind: FieldType) -> st.SearchStrategy[Any] | None:
    """Return the values of a type that every format can write."""
    match kind:
        case text_types.PatternText():
            return st.text("abcdefg", min_size=1, max_size=5)
        case Word() if "true" in kind.words:
            return st.booleans()
        case json_types.JsonBoolean() | binary_types.BinaryBoolean():
            return st.booleans()
        case Word() | json_types.JsonChoice():
            return st.sampled_from(kind.words)
        case Number():
            assert kind.limits is not None
            return _numbers(kind.limits.minimum, kind.limits.maximum, kind.limits.whole)
        case json_types.JsonNumber():
            return _numbers(kind.least, kind.most, kind.whole)
        case ElementList() | ListText() | containers.JsonList() | binary_types.BinaryList():
            return st.lists(_known(kind.item), min_size=1, max_size=4)
        case containers.JsonObject():
            return _objects({field.name: field.type for field in kind.fields})
        case Compound():
            return _objects({field.name: field.type for field in kind.shape.fields})
        case ObjectText() | binary_types.BinaryObject():
            return _objects(kind.fields)
        case json_types.JsonText() if kind.matches is not None:
            return st.text("abcdefg", min_size=1, max_size=5)
        case json_types.JsonEither():
            return st.one_of(_WHOLE, _LETTERS)
        case binary_types.BinaryText():
            return st.text("abc", max_size=4) if kind.title.endswith("4 bytes") else _LETTERS
        case json_types.JsonText() | Text():
            return _LETTERS
        case binary_types.BinaryBytes():
            return st.binary(max_size=20).map(bytes.hex)
        case binary_types.Varint():
            return st.integers(0, 2**64 - 1)
        case binary_types.BinaryNumber():
            return _binary_numbers(kind)
    return None


def _known(kind: FieldType) -> st.SearchStrategy[Any]:
    values = values_of(kind)
    assert values is not None
    return values


def _objects(kinds: Mapping[str, FieldType]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({name: _known(kind) for name, kind in kinds.items()})


def _numbers(least: float | None, most: float | None, is_whole: bool) -> st.SearchStrategy[Any]:
    if not is_whole:
        return st.one_of(_WHOLE, st.floats(-1e15, 1e15))
    if least is None or most is None:
        return _WHOLE
    return st.integers(int(least), int(most))


def _binary_numbers(kind: binary_types.BinaryNumber) -> st.SearchStrategy[Any]:
    if kind.title == "f64":
        return st.floats(allow_nan=False, allow_infinity=False)
    if "from 1 to 6" in kind.title:
        return st.integers(1, 6)
    smallest, largest = text_types.integer_limits(kind.title.split(": ")[-1])
    return st.integers(smallest, largest)
