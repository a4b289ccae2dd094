"""Malformed messages of protocol files, in tests/data/messages/protocol_files."""

from __future__ import annotations

from typing import Any

import pytest
from command import ROOT
from conversation_files import PROTOCOLS as IN_TEXT
from conversation_files import file_dissector
from file_conversations import dissector_named, dissector_of
from file_formats import IN_ORDER
from message_cases import groups, rewritten
from snapshots import DATA, check

from kiebitz.dissectors.dissector import Dissector
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
    return dissector_of(f'protocol = "p"\n{head}\n{rows}')


_PAGE = (ROOT / "docs" / "protocol-files-more.md").read_text()
_ISLANDS = _PAGE.split('protocol = "islands"')[1].split("```")[0]
IN_FILES = ("strict", "header", "before", "struct", "counted")
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
    "deep": _protocol('framing = "xml"\nroot = "stream"\nname = "SHOW/@kind"', over="OVER"),
    "maps": file_dissector(IN_TEXT, "maps"),
    "quoted_lists": file_dissector(IN_TEXT, "quoted lists"),
    "islands": dissector_of(f'protocol = "islands"{_ISLANDS}'),
    **{name: dissector_named(name) for name in (*IN_FILES, *IN_ORDER)},
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_message_has_its_fields_and_diagnostics(name: str) -> None:
    dissector, path = PROTOCOLS[name], DATA / "messages" / "protocol_files" / f"{name}.txt"
    check(path, rewritten(dissector, path))
    for title, some in groups(dissector, path).items():
        for case in some:
            decoded = dissector.codec.decode(case.data, case.direction)
            assert decoded.valid == (title in ("sound", "loose") and case.name is not None), case
            assert (case.severity == "error") == (title == "malformed"), case
            assert title != "malformed" or decoded.violations[0].expected, case
            check_anatomy(dissector, case.data, case.direction)


def test_a_misspelt_name_is_suggested() -> None:
    for name, frame in (("words", b"MVOE a 1"), ("json", b'{"type":"Move"}'), ("pairs", b"type=move")):
        (violation,) = PROTOCOLS[name].codec.decode(frame, "c2s").violations
        assert violation.suggestion == "MOVE"
        assert PROTOCOLS[name].codec.resembles(frame, "c2s")


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
