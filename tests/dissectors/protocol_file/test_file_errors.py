"""Malformed messages of protocol files: ⟨…⟩ encloses the bytes of the first error."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Direction
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


class Row(NamedTuple):
    protocol: str
    direction: Direction
    frame: str
    code: str
    name: str | None = None
    fields: Mapping[str, Any] = MappingProxyType({})


C2S: Direction = "c2s"
S2C: Direction = "s2c"

ERRORS = [
    # Text before the name.
    Row("before", C2S, "3@ab MOVE ann ⟨7⟩", "bad-number", "MOVE", {"id": 3, "ref": "ab", "name": "ann"}),
    Row("before", C2S, "⟨12⟩ QUIT", "bad-number", "QUIT"),
    Row("before", C2S, "@ab ⟨STOP⟩", "unknown-message"),
    Row("before", C2S, "⟨x3⟩ QUIT", "unknown-message"),
    # A header before words.
    Row("header", C2S, "⟨MY⟩\x01\x01\x00\x05ann 3", "bad-header"),
    Row("header", C2S, "⟨MX\x01\x01\x00\x04ann 3⟩", "bad-length"),
    Row("header", C2S, "⟨MX\x01⟩", "bad-length"),
    Row("header", C2S, "MX⟨\x09⟩\x01\x00\x00", "unknown-message"),
    Row("header", C2S, "MX⟨\x03⟩\x01\x00\x00", "unknown-message"),
    Row("header", C2S, "MX\x01⟨\x07⟩\x00\x05ann 3", "bad-number", "MOVE", {"name": "ann", "x": 3}),
    Row("header", C2S, "MX\x01\x02\x00\x05ann ⟨9⟩", "bad-number", "MOVE", {"version": 2, "name": "ann"}),
    Row("header", C2S, "MX\x01\x02\x00\x03ann⟨⟩", "missing-field", "MOVE", {"version": 2, "name": "ann"}),
    Row("header", C2S, "MX\x01\x02\x00\x00⟨⟩", "missing-field", "MOVE", {"version": 2}),
    Row("header", C2S, "MX\x02\x02\x00\x03⟨ann⟩", "surplus-fields", "QUIT", {"version": 2}),
    # Lines.
    Row("lines", C2S, "⟨!HOP⟩\nann\nEND\n", "unknown-message"),
    Row("lines", C2S, "⟨MOVE⟩\nann\n3\nEND\n", "unknown-message"),
    Row("lines", C2S, "!MOVE\n⟨END⟩\n", "missing-field", "MOVE"),
    Row("lines", C2S, "!MOVE\r\nann\r\n⟨7⟩\r\n1\r\nEND\r\n", "bad-number", "MOVE", {"name": "ann"}),
    Row(
        "lines",
        C2S,
        "!MOVE\nann\n3\n4\n⟨5\n6⟩\nEND\n",
        "surplus-fields",
        "MOVE",
        {"name": "ann", "x": 3, "y": 4},
    ),
    Row("lines", C2S, "!MOVE\nann\n3\n⟨EDN⟩\n", "bad-number", "MOVE", {"name": "ann", "x": 3}),
    Row("lines", C2S, "!QUIT\n⟨ENDE⟩\n", "missing-end", "QUIT"),
    Row("lines", C2S, "!QUIT\n⟨⟩", "missing-end", "QUIT"),
    Row("lines", C2S, "!QUIT\n⟨now⟩\nEND\n", "surplus-fields", "QUIT"),
    Row("lines", C2S, "!MOVE\nJ⟨\udcf6⟩rg\n3\nEND\n", "not-utf-8", "MOVE", {"name": "J\ufffdrg", "x": 3}),
    Row("lines", S2C, "!DEAL\n3\nann\n⟨x⟩\nEND\n", "bad-field", "DEAL", {"count": 3, "name": "ann"}),
    Row("lines", S2C, "!SHOW\n1:⟨7⟩\nred\nEND\n", "bad-number", "SHOW"),
    Row("lines", S2C, "!SHOW\n1:2\nred\n⟨reed⟩\nblue\nEND\n", "bad-field", "SHOW", {"at": {"x": 1, "y": 2}}),
    # Words.
    Row("words", C2S, "⟨HOP⟩ ann 3", "unknown-message"),
    Row("words", C2S, "⟨MVOE⟩ ann 3", "unknown-message"),
    Row("words", C2S, "⟨DEAL⟩ red", "unknown-message"),
    Row("words", S2C, "⟨GAME⟩ red", "unknown-message"),
    Row("words", C2S, "MOVE⟨⟩", "missing-field", "MOVE"),
    Row("words", C2S, "MOVE ann⟨⟩\r\n", "missing-field", "MOVE", {"name": "ann"}),
    Row("words", C2S, "MOVE ann ⟨7⟩ 1", "bad-number", "MOVE", {"name": "ann"}),
    Row("words", C2S, "MOVE Jörg ⟨drei⟩", "bad-number", "MOVE", {"name": "Jörg"}),
    Row("words", C2S, 'MOVE "Jörg B" ⟨"3 4"⟩', "bad-number", "MOVE", {"name": "Jörg B"}),
    Row("words", C2S, "MOVE ann 3 4⟨ 5 6⟩\n", "surplus-fields", "MOVE", {"name": "ann", "x": 3, "y": 4}),
    Row("words", C2S, "QUIT⟨ now⟩\n", "surplus-fields", "QUIT"),
    Row("words", C2S, "MOVE J⟨\udcf6⟩rg 3\n", "not-utf-8", "MOVE", {"name": "J\ufffdrg", "x": 3}),
    Row("words", C2S, "⟨\udcff⟩\n", "not-utf-8"),
    Row("words", S2C, "GAME OVER⟨⟩\n", "missing-field", "GAME OVER"),
    Row("words", S2C, "DEAL ⟨green⟩", "bad-field", "DEAL"),
    Row("words", S2C, "DEAL 3 rde⟨⟩", "missing-field", "DEAL", {"count": 3, "name": "rde"}),
    Row("words", S2C, "DEAL 3 ann ⟨x⟩", "bad-field", "DEAL", {"count": 3, "name": "ann"}),
    Row("words", S2C, "SHOW 1:⟨7⟩ red", "bad-number", "SHOW"),
    Row("words", S2C, "SHOW 1⟨⟩", "missing-field", "SHOW"),
    Row("words", S2C, "SHOW 1:2 red ⟨reed⟩ blue", "bad-field", "SHOW", {"at": {"x": 1, "y": 2}}),
    Row("words", S2C, 'SHOW 1:2 "red" ⟨"re"⟩', "bad-field", "SHOW", {"at": {"x": 1, "y": 2}}),
    # Delimited.
    Row("delimited", C2S, "MOVE;ann;⟨⟩;4", "bad-number", "MOVE", {"name": "ann"}),
    Row("delimited", C2S, "MOVE;ann;3;⟨x⟩", "bad-number", "MOVE", {"name": "ann", "x": 3}),
    Row("delimited", C2S, "MOVE;ann;3;4⟨;5⟩", "surplus-fields", "MOVE", {"name": "ann", "x": 3, "y": 4}),
    Row("delimited", S2C, "⟨GAME OVR⟩;ann", "unknown-message"),
    Row("delimited", S2C, "SHOW;1:2:⟨3⟩;red", "surplus-fields", "SHOW"),
    Row("delimited", C2S, "⟨ ⟩MOVE;ann;3", "leading-blank"),
    Row("delimited", C2S, "⟨\ufeff⟩MOVE;ann;3", "byte-order-mark"),
    Row("words", C2S, "⟨M\0O\0V\0E\0⟩", "utf-16"),
    Row("latin", C2S, "MOVE;J\udcf6rg;⟨9⟩", "bad-number", "MOVE", {"name": "Jörg"}),
    # Pairs.
    Row("pairs", C2S, "⟨name=ann⟩", "unknown-message"),
    Row("pairs", C2S, "type=⟨MOV⟩;name=ann", "unknown-message"),
    Row("pairs", C2S, "type=MOVE;name=ann⟨⟩", "missing-field", "MOVE", {"name": "ann"}),
    Row("pairs", C2S, "type=MOVE; x=⟨9⟩; name=Jörg", "bad-number", "MOVE", {"name": "Jörg"}),
    Row("pairs", C2S, "type=MOVE;⟨name⟩;x=3", "bad-pair", "MOVE"),
    Row("pairs", C2S, "type=MOVE;name=J⟨\udcf6⟩;x=3", "not-utf-8"),
    Row("pairs", S2C, "type=SHOW;cards=red,⟨pink⟩;at=1:2", "bad-field", "SHOW", {"at": {"x": 1, "y": 2}}),
    Row("first", C2S, "⟨HOP⟩ x=1!", "unknown-message"),
    Row("first", C2S, "MOVE name=ann x=⟨0⟩!", "bad-number", "MOVE", {"name": "ann"}),
    # JSON.
    Row("json", C2S, '{"type":⟨"MOVEE"⟩,"body":{}}', "unknown-message"),
    Row("json", C2S, '{"type":⟨"DEAL"⟩,"body":{}}', "unknown-message"),
    Row("json", C2S, '{"type":⟨3⟩}', "unknown-message"),
    Row("json", C2S, '{"type":⟨true⟩}', "unknown-message"),
    Row("json", C2S, '⟨{"tipe":"MOVE"}⟩', "unknown-message"),
    Row("json", C2S, "⟨[1]⟩", "no-object"),
    Row("json", C2S, "⟨MOVE ann⟩\n", "no-object"),
    Row("json", C2S, '⟨{"type":"MOVE"}⟩', "missing-field", "MOVE"),
    Row("json", C2S, '{"type":"MOVE","body":⟨[]⟩}', "bad-value", "MOVE"),
    Row("json", C2S, '{"type":"MOVE","body":⟨{"x":3}⟩}', "missing-field", "MOVE", {"x": 3}),
    Row("json", C2S, '{"type":"MOVE","body":{"name":⟨7⟩,"x":3}}', "bad-value", "MOVE", {"x": 3}),
    Row("json", C2S, '{"type":"MOVE","body":{"name":"ö","x":⟨3.0⟩}}', "bad-value", "MOVE", {"name": "ö"}),
    Row("json", C2S, '{"type":"MOVE","body":{"name":"ö","x":⟨true⟩}}', "bad-value", "MOVE", {"name": "ö"}),
    Row("json", C2S, '{"type":"MOVE","body":{"name":"ö","x":⟨7⟩}}', "bad-value", "MOVE", {"name": "ö"}),
    Row(
        "json",
        C2S,
        '{"type":"MOVE","body":{"name":"ö","x":3,"y":⟨123456789012345678901⟩}}',
        "bad-value",
        "MOVE",
        {"name": "ö", "x": 3},
    ),
    Row("json", C2S, '{"type":"MOVE","body":{"name":"ann","x":⟨}⟩}', "broken-json"),
    Row("json", C2S, '{"type":"MOVE"⟨⟩\n', "broken-json"),
    Row("json", C2S, '{"type":"MOVE",⟨}⟩\n', "broken-json"),
    Row("json", C2S, '{"type":"QUIT"}⟨x⟩\n', "broken-json"),
    Row("json", C2S, '{"type":"MOVE","body":{"name":"⟨\udcff⟩"}}', "not-utf-8"),
    Row("json", C2S, '{"type":"MOVE","body":{"name":"⟨\\ud800⟩"}}', "broken-json"),
    Row("json", C2S, '{"type":"QUIT","body":{"a":⟨1e999⟩}}', "broken-json"),
    Row("json", C2S, '⟨\ufeff⟩{"type":"QUIT"}', "byte-order-mark"),
    Row("json", C2S, '{"a":' + "[" * 63 + "⟨[⟩" + "]" * 64 + ',"type":"QUIT"}', "broken-json"),
    Row(
        "json",
        S2C,
        '{"type":"SHOW","body":{"at":{"x":1,"y":⟨0⟩},"cards":["red"]}}',
        "bad-value",
        "SHOW",
        {"cards": ["red"]},
    ),
    Row(
        "json",
        S2C,
        '{"type":"SHOW","body":{"at":⟨{"x":1}⟩,"cards":[]}}',
        "missing-field",
        "SHOW",
        {"cards": []},
    ),
    Row(
        "json",
        S2C,
        '{"body":{"cards":["red",⟨"Red"⟩],"at":{"x":1,"y":2}},"type":"SHOW"}',
        "bad-value",
        "SHOW",
        {"at": {"x": 1, "y": 2}},
    ),
    Row("json", S2C, '{"type":"DEAL","body":{"colour":⟨"pink"⟩}}', "bad-value", "DEAL"),
    Row("flat", C2S, '{"name":"ann","type":"MOVE","x":⟨"3"⟩}', "bad-value", "MOVE", {"name": "ann"}),
    Row("key", C2S, '{⟨"MVE"⟩:{}}', "unknown-message"),
    Row("key", C2S, '{"MOVE":⟨{"x":1}⟩}', "missing-field", "MOVE", {"x": 1}),
    Row("key", C2S, '{"MOVE":{"name":"ann","x":⟨null⟩}}', "bad-value", "MOVE", {"name": "ann"}),
    Row("key", C2S, "⟨{}⟩", "unknown-message"),
    # XML.
    Row("xml", C2S, '<⟨HOP⟩ x="1"/>', "unknown-message"),
    Row("xml", C2S, '⟨<MOVE x="1"/>⟩', "missing-field", "MOVE", {"x": 1}),
    Row("xml", C2S, '<MOVE name="Jörg" x="⟨7⟩"/>', "bad-number", "MOVE", {"name": "Jörg"}),
    Row("xml", C2S, '<MOVE name="ann"><x>⟨seven⟩</x></MOVE>', "bad-number", "MOVE", {"name": "ann"}),
    Row("xml", C2S, '<MOVE name="ann" x="1">⟨</MOV>⟩', "stray-end-tag"),
    Row("xml", C2S, '⟨<MOVE name="ann" x="1">⟩', "unclosed-element"),
    Row("xml", C2S, '<MOVE ⟨name="ann x="1"⟩/>', "unterminated-value"),
    Row("xml", C2S, "<SAY text='a'/>⟨junk⟩", "text-outside"),
    Row("xml", C2S, '<MOVE name="⟨\udcff⟩"/>', "not-utf-8"),
    Row("xml", C2S, "⟨<!DOCTYPE⟩ a [<!ENTITY b 'c'>]><QUIT/>", "document-type"),
    Row("xml", C2S, "<SAY><text>⟨&b;⟩</text></SAY>", "undefined-entity"),
    Row(
        "xml",
        S2C,
        '<SHOW><at x="1" y="⟨9⟩"/><cards>red,blue</cards></SHOW>',
        "bad-number",
        "SHOW",
        {"cards": ["red", "blue"]},
    ),
    Row(
        "xml",
        S2C,
        '<SHOW at="1:2"><cards>red</cards><cards>⟨green⟩</cards></SHOW>',
        "bad-field",
        "SHOW",
        {"at": {"x": 1, "y": 2}},
    ),
    Row("strict", C2S, '⟨<move kind="card">⟩</move>\r\n\r\n', "unknown-message"),
    Row("strict", C2S, "⟨<table>⟩</table>\r\n\r\n", "wrong-direction"),
    Row("strict", C2S, '<MOVE kind="⟨carts⟩" to="a"/>\r\n\r\n', "bad-field", "MOVE"),
    Row("strict", C2S, '⟨<MOVE kind="card">⟩</MOVE>\r\n\r\n', "missing-attribute", "MOVE"),
    Row("strict", C2S, '<MOVE kind="card" to="a" ⟨card="red"⟩/>\r\n\r\n', "unknown-attribute", "MOVE"),
    Row("strict", C2S, '⟨<MOVE kind="card" to="a">⟩</MOVE>\r\n\r\n', "missing-element", "MOVE"),
    Row("strict", C2S, '<MOVE kind="card" to="a"><card>⟨rde⟩</card></MOVE>\r\n\r\n', "bad-field", "MOVE"),
    Row("strict", C2S, '<game version="⟨0⟩"><bid kind="ask"/></game>\r\n\r\n', "bad-number"),
    Row("strict", C2S, '<bid kind="answer">⟨10⟩</bid>\r\n\r\n', "bad-number", "bid"),
    Row("strict", C2S, '<bid kind="ask">⟨5⟩</bid>\r\n\r\n', "stray-text", "bid"),
    Row("strict", S2C, "⟨<table>⟩</table>\r\n\r\n", "missing-element", "table"),
    Row(
        "strict",
        S2C,
        '<table><host id="1"/><guest id="2"/><guest id="3"/>⟨<guest id="4"/>⟩</table>\r\n\r\n',
        "too-many",
        "table",
    ),
    Row("deep", C2S, '<stream><⟨HOP⟩ x="1"/>', "unknown-message"),
    Row("deep", C2S, '<room><SHOW kind="⟨HOP⟩"/></room>', "unknown-message"),
    Row("deep", C2S, "<room>⟨<SHOW>⟩</SHOW></room>", "unknown-message"),
    # Binary.
    Row("struct", C2S, "⟨\x09⟩ab", "unknown-message"),
    Row("struct", C2S, "⟨⟩", "unknown-message"),
    Row("struct", C2S, "\x01⟨⟩", "missing-field", "MOVE"),
    Row("struct", C2S, "\x01\x03⟨an⟩", "missing-field", "MOVE"),
    Row("struct", C2S, "\x01\x03a⟨\udcff⟩n\x03", "not-utf-8", "MOVE"),
    Row("struct", C2S, "\x01\x03ann⟨\x07⟩", "bad-number", "MOVE", {"name": "ann"}),
    Row("struct", C2S, "\x01\x03ann\x03⟨\x07⟩", "missing-field", "MOVE", {"name": "ann", "x": 3}),
    Row(
        "struct",
        C2S,
        "\x01\x03ann\x03\x00\x07⟨abc⟩",
        "surplus-fields",
        "MOVE",
        {"name": "ann", "x": 3, "y": 7},
    ),
    Row("struct", S2C, "\x02\x05⟨ab⟩", "missing-field", "DEAL", {"count": 5}),
    Row("struct", S2C, "\x03\x01⟨\x02⟩\x00\x01", "bad-field", "SHOW"),
    Row("struct", S2C, "\x03\x01\x01\x00\x01⟨\x00⟩", "missing-field", "SHOW", {"at": {"x": 1, "y": True}}),
    Row("struct", C2S, "\x04⟨\x7f\udcc0\x00\x00⟩\x01", "bad-number", "RATIO"),
    Row("struct", C2S, "\x04\x00\x00\x00\x00⟨\udcff⟩", "missing-field", "RATIO", {"value": 0.0}),
]
"""Each error with the fields that are read nevertheless."""


def _marked(text: str) -> tuple[bytes, tuple[int, int]]:
    before, wrong, after = (
        part.encode("utf-8", "surrogateescape") for part in text.replace("⟩", "⟨").split("⟨")
    )
    return before + wrong + after, (len(before), len(wrong))


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: f"{row.protocol} {row.frame[:60]!a}")
def test_the_first_error_has_its_place(row: Row) -> None:
    frame, place = _marked(row.frame)
    dissector = PROTOCOLS[row.protocol]
    decoded = dissector.codec.decode(frame, row.direction)
    assert not decoded.valid
    violation = decoded.violations[0]
    assert (violation.severity, violation.code) == ("error", row.code)
    assert violation.place(frame) == place
    assert violation.expected
    assert (None if decoded.row is None else decoded.row.name, decoded.fields) == (row.name, dict(row.fields))
    if row.name == "MOVE" and row.code != "not-utf-8":
        assert violation.clause == "3.2"
    check_anatomy(dissector, frame, row.direction)


NOTES = [
    Row("json", C2S, '{"type":"QUIT","body":{⟨"colour"⟩ : 1}}', "unknown-field", "QUIT"),
    Row("json", C2S, '{"type":"QUIT","body":{"a":1,⟨"a"⟩:2}}', "unknown-field,duplicate-key", "QUIT"),
    Row("flat", C2S, '{⟨"x"⟩:1,"type":"QUIT"}', "unknown-field", "QUIT"),
    Row("key", C2S, '{"QUIT":{},⟨"id"⟩:3}', "unknown-field", "QUIT"),
    Row("pairs", C2S, "type=QUIT;⟨when⟩=now", "unknown-field", "QUIT"),
    Row("pairs", C2S, "type=MOVE;name=a;x=1;⟨x=2⟩", "duplicate-key", "MOVE", {"name": "a", "x": 2}),
    Row("xml", C2S, '<QUIT ⟨when⟩="now"/>', "unknown-field", "QUIT"),
    Row("xml", C2S, "<QUIT><⟨when⟩>now</when></QUIT>", "unknown-field", "QUIT"),
    Row("strict", C2S, "⟨<!--⟩x--><bid kind='ask'/>\r\n\r\n", "comment", "bid", {"kind": "ask"}),
    Row("strict", C2S, "<bid kind='ask'/>⟨\n⟩\n", "line-feed", "bid", {"kind": "ask"}),
    Row("strict", C2S, "⟨<BID KIND='ask'/>⟩\r\n\r\n", "upper-case", "bid", {"kind": "ask"}),
    Row("strict", C2S, "<bid kind='ask'/>⟨⟩", "same-line", "bid", {"kind": "ask"}),
    Row("strict", C2S, "<say>⟨\udcb1⟩</say>\r\n\r\n", "iso-8859-2", "say", {"say": "ą"}),
    Row(
        "strict",
        C2S,
        '<MOVE kind=⟨"card "⟩to="a"><card>red</card></MOVE>\r\n\r\n',
        "misprint-quote",
        "MOVE",
        {"kind": "card", "to": "a", "card": ["red"]},
    ),
    Row("deep", C2S, "<stream><QUIT ⟨when⟩='now'/>", "unknown-field", "QUIT"),
    Row("delimited", C2S, "MOVE;a;1;2⟨;⟩", "trailing-delimiter", "MOVE", {"name": "a", "x": 1, "y": 2}),
    Row("delimited", S2C, "GAME OVER;ann⟨;⟩\n", "trailing-delimiter", "GAME OVER", {"winner": "ann"}),
    Row("words", C2S, "⟨\r\n⟩", "empty-message"),
    Row("json", C2S, "⟨ \n⟩", "empty-message"),
    Row("xml", C2S, "⟨\n⟩", "empty-message"),
]


@pytest.mark.parametrize("row", NOTES, ids=lambda row: f"{row.protocol} {row.frame[:60]!a}")
def test_harmless_deviations_are_noted(row: Row) -> None:
    frame, place = _marked(row.frame)
    decoded = PROTOCOLS[row.protocol].codec.decode(frame, row.direction)
    assert decoded.valid == (row.name is not None)
    assert {each.code for each in decoded.violations} == {*row.code.split(",")}
    assert all(each.severity != "error" for each in decoded.violations)
    assert place in [each.place(frame) for each in decoded.violations]
    assert decoded.fields == dict(row.fields)
    check_anatomy(PROTOCOLS[row.protocol], frame, row.direction)


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
