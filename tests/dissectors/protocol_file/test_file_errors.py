"""Malformed messages of protocol files, in tests/data/messages/protocol_files."""

from __future__ import annotations

from typing import Any

import pytest
from message_cases import groups, rewritten
from snapshots import DATA, check

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.testing import check_anatomy

_ROWS = """
[types]
colour = "red|blue"

[messages]
MOVE = { is = "c: name=player x=1..6 y?=integer", clause = "3.2" }
"GAME OVER" = "s: winner=player"
DEAL = ["s: colour=colour", "s: count=integer colour=colour", "s: count=integer name=player colour=colour"]
SHOW = "s: at={x=1..6 y=1..6} cards=[CARDS]"
SAY = "c: text=rest"
QUIT = "c:"
"""


def _protocol(head: str, cards: str = "colour", over: str = '"GAME OVER"') -> Dissector:
    rows = _ROWS.replace("CARDS", cards).replace('"GAME OVER"', over)
    return dissector_from(read_specification(f'protocol = "p"\n{head}\n{rows}'))


PROTOCOLS = {
    "words": _protocol('format = "words"\nquote = "\\""', "colour "),
    "delimited": _protocol('format = "delimited"\ndelimiter = ";"', "colour;"),
    "latin": _protocol('format = "delimited"\ndelimiter = ";"\nencoding = "latin-1"', "colour;"),
    "lines": _protocol('format = "lines"\nmark = "!"\nend = "END"'),
    "pairs": _protocol('format = "pairs"\nname = "type"\ndelimiter = ";"'),
    "first": _protocol('format = "pairs"\nframing = "delimiter"\nend = "!"', over="OVER"),
    "json": _protocol('format = "json"\nname = "type"\nfields = "body"'),
    "flat": _protocol('format = "json"\nname = "type"\nframing = "json"'),
    "key": _protocol('format = "json"\nname = "*"'),
    "xml": _protocol('format = "xml"\nframing = "xml"', over="OVER"),
    "strict": dissector_from(
        read_specification("""
protocol = "p"
framing = "xml"
end = "\\r\\n\\r\\n"
envelope = "game @version?=1..9"
strict = true
[lenient]
charset = "iso-8859-2"
misprints = [{ name = "quote", sent = '=["… "]…="', meant = '"…" ' }]
[types]
card = "red|blue"
person = "{@id=integer name?=text}"
[messages]
MOVE = { is = "c: @kind='card' @to=text card=[card]1..2", clause = "3.2" }
bid = ["c: @kind='ask'", "c: @kind='answer' bid=1..9"]
say = "c: say=text"
table = "s: @open?=bool host=person guest=[person]..2"
""")
    ),
    "deep": _protocol('framing = "xml"\nroot = "stream"\nname = "SHOW/@kind"', over="OVER"),
    "header": dissector_from(
        read_specification("""
protocol = "p"
framing = "length"
header = "'0x4d58' name=u8 version=1..3 length=u16"
[messages]
MOVE = { is = "c: name=player x=1..6", clause = "3.2" }
QUIT = "c:"
DEAL = "s: count=integer"
[codes]
MOVE = 1
QUIT = 2
DEAL = 3
""")
    ),
    "before": dissector_from(
        read_specification("""
protocol = "p"
before = "[id=1..9][@ref=text]"
[messages]
MOVE = { is = "c: name=player x=1..6", clause = "3.2" }
QUIT = "c:"
""")
    ),
    "struct": dissector_from(
        read_specification("""
protocol = "p"
transport = "udp"
format = "struct"
[messages]
MOVE = { is = "c: name=player text8 x=1..6 y?=i16", clause = "3.2" }
DEAL = ["s: count=u8", "s: count=u8 name=text:3"]
SHOW = "s: at={x=u8 y=bool8} cards=[u16]"
RATIO = "c: value=f32 size=varint"
[codes]
MOVE = 1
DEAL = 2
SHOW = 3
RATIO = 4
""")
    ),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_message_has_its_fields_and_diagnostics(name: str) -> None:
    dissector, path = PROTOCOLS[name], DATA / "messages" / "protocol_files" / f"{name}.txt"
    check(path, rewritten(dissector, path))
    for title, some in groups(dissector, path).items():
        for case in some:
            decoded = dissector.codec.decode(case.data, case.direction)
            assert decoded.valid == (title == "loose" and case.name is not None), case
            assert (case.severity == "error") == (title == "malformed"), case
            assert title == "loose" or decoded.violations[0].expected, case
            check_anatomy(dissector, case.data, case.direction)


def test_a_misspelt_name_is_suggested() -> None:
    for name, frame in (("words", b"MVOE a 1"), ("json", b'{"type":"Move"}'), ("pairs", b"type=move")):
        (violation,) = PROTOCOLS[name].codec.decode(frame, "c2s").violations
        assert violation.suggestion == "MOVE"
        assert PROTOCOLS[name].codec.resembles(frame, "c2s")


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b"MOVE 3 ann\n", 'MOVE: x: "ann" is not a whole number'),
        (b"DEAL 3 red x\n", 'DEAL: colour: "x" is not known here; are the fields in the wrong order?'),
        (b"DEAL ann 3 red\n", 'DEAL: count: "ann" is not a whole number; are the fields in the wrong order?'),
        (b"DEAL 3 red blu\n", 'DEAL: colour: "blu" is not known here: did you mean blue?'),
    ],
)
def test_fields_in_the_wrong_order_are_recognised_unless_a_word_is_suggested(frame: bytes, text: str) -> None:
    (violation,) = PROTOCOLS["words"].codec.decode(frame, "c2s" if frame[:1] == b"M" else "s2c").violations
    assert violation.text == text


def test_the_first_row_that_fits_is_used() -> None:
    codec = PROTOCOLS["json"].codec
    fields: dict[str, Any] = {}
    for name, value in (("colour", "red"), ("count", 1), ("name", "a")):
        fields[name] = value
        decoded = codec.decode(codec.encode("DEAL", "s2c", fields), "s2c")
        assert decoded.row is not None
        assert ([*decoded.fields], decoded.violations) == ([field.name for field in decoded.row.fields], ())


@pytest.mark.parametrize(
    ("protocol", "frame", "fields", "written"),
    [
        (
            "json",
            ' { "body" : {"x" : 3, "name":"J\\u00f6rg" ,"z":[1]} , "type":"MOVE" }\r\n',
            {"name": "Jürg", "x": 4},
            ' { "body" : {"x" : 4, "name":"J\\u00fcrg" ,"z":[1]} , "type":"MOVE" }\r\n',
        ),
        ("words", "MOVE  ann   3\r\n", {"name": "b c", "x": 3}, 'MOVE  "b c"   3\r\n'),
        ("pairs", "type=MOVE; x = 3 ;name=ann;", {"name": "b", "x": 5}, "type=MOVE; x = 5 ;name=b;"),
        (
            "xml",
            "<MOVE  x='3'><name>a&amp;b</name><!-- x --></MOVE>",
            {"name": "<c>", "x": 3},
            "<MOVE  x='3'><name>&lt;c&gt;</name><!-- x --></MOVE>",
        ),
        (
            "header",
            "MX\x01\x02\x00\x05ann 3",
            {"version": 3, "name": "bo", "x": 4},
            "MX\x01\x03\x00\x04bo 4",
        ),
        ("before", "3@ab  MOVE ann  3", {"ref": "c", "name": "bo", "x": 3}, "@c MOVE bo  3"),
        ("before", "3@ab  QUIT\n", {"id": 4, "ref": "c"}, "4@c QUIT\n"),
        ("header", "MX\x02\x02\x00\x00", {"version": 1}, "MX\x02\x01\x00\x00"),
        ("struct", "\x01\x03ann\x03\x00\x07", {"name": "bo", "x": 3, "y": 7}, "\x01\x02bo\x03\x00\x07"),
    ],
)
def test_the_rest_of_a_frame_keeps_its_spelling(
    protocol: str, frame: str, fields: dict[str, Any], written: str
) -> None:
    assert PROTOCOLS[protocol].codec.rewrite(frame.encode(), "c2s", fields) == written.encode()
