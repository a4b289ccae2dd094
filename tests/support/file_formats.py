"""One small protocol in every framing and format of protocol files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from file_conversations import dissector_named, dissector_of
from hypothesis import strategies as st
from message_cases import groups
from snapshots import DATA

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import ListText, Number, ObjectText, Text, Word
from kiebitz.dissectors.grammar.json import containers
from kiebitz.dissectors.grammar.json import types as json_types
from kiebitz.dissectors.grammar.xml.shapes import Compound, ElementList
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file import binary_types, text_types

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
    return dissector_of(f"{head}{body}")


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


IN_ORDER = ("any_keys", "words_in_order", "lines_after_words", "counted_lines")
"""Protocol files whose messages show how many words, lines or keys values have."""


def sent_by(name: str, *titles: str) -> list[tuple[Direction, bytes]]:
    """Return the messages of some groups, or the sound ones, of a protocol file in the test data."""
    found = groups(dissector_named(name), DATA / "messages" / "protocol_files" / f"{name}.txt")
    return [(case.direction, case.data) for title in titles or ("sound",) for case in found[title]]


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
