"""Quoted lists, numbers of items, nulls, and lenient readers in protocol files: Okey's lines as a file."""

from __future__ import annotations

from typing import Any

import pytest
from message_cases import Case, cases

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.testing import check_anatomy
from kiebitz.dissectors.wireshark.script import wireshark_script

HEADING = """
protocol = "lines"
format = "words"
line_end = "\\r\\n"
quote = "\\""
pad = [" ", "%"]

[lenient]
surplus = true
charset = "windows-1252"
line_ends = true
control = "servers forward it to the others"
blanks = true
"""

FILE = f"""{HEADING}
[types]
tile = '/([0-9]|1[0-3]):(BLACK|RED|BLUE|YELLOW)/'
deck = "[tile? ]..24"
stacks = "[tile? ]4"
name = "player"
names = "[player? ]"
lobby = "-2147483648..2147483647"

[messages]
NAME = "c: nickname=name"
"+NAME" = "s: actualname=name < NAME"
"+LPLA" = "s: playerlist=names"
NAMS = "s*: playerlist=names"
"+RNAM" = "s: playerlist=names"
"+LLPL" = "s: lobbieswithplayerlist=[{{lobby=lobby players=[player? ]}} ]"
"+HIGH" = "s: highscores=[{{name=player date=text turns=integer}} ]"
"+LGAM" = "s: gamestatus='o' games=[{{lobby=lobby players=lobby:}} ]"
JLOB = "c: n=lobby"
STRT = "s: startdeck=deck playeridx=0..3"
STAT = "s*: exchangestacks=stacks currentplayeridx=0..3"
"+RSTA" = "s: exchangestacks=stacks currentplayeridx=0..3"
CATC = ["c: messagetype=b|l msg=text", "c: messagetype='w' msg=text whisperrecipient=player"]
CATS = "s*: messagetype=b|l|w msg=text sender=player"
LOGO = "c:"
PING = ["c~:", "s~:"]
"+PING" = ["s~: < PING", "c~: < PING"]
"""

LINES = dissector_from(read_specification(FILE))
KNOWN = {row.name for row in LINES.grammar.rows}


def known(some: list[Case], *without: str) -> list[Case]:
    """Return the cases with messages that the file has, in its dialect."""
    names = KNOWN - {*without}
    return [case for case in some if case.name in names and b"Lobby" not in case.data]


def decoded(dissector: Dissector, case: Case) -> tuple[Any, ...]:
    found = dissector.codec.decode(case.data, case.direction)
    places = [(each.severity, each.code, *each.place(case.data)) for each in found.violations]
    return found.row and found.row.name, found.fields, found.valid, places


@pytest.mark.parametrize(
    "case", known(cases(OKEY, "sound", "dialects"), "+LGAM"), ids=lambda case: repr(case.data[:50])
)
def test_a_file_reads_and_writes_what_the_built_in_protocol_does(case: Case) -> None:
    assert decoded(LINES, case) == (case.name, case.fields, True, [])
    assert case.name is not None
    encoded = LINES.codec.encode(case.name, case.direction, case.fields)
    assert OKEY.codec.decode(encoded, case.direction).fields == case.fields
    check_anatomy(LINES, case.data, case.direction)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in known(cases(OKEY, "loose", "malformed"), "NAME", "JLOB")
        if case.diagnostics[0][0] != "bad-deck"
    ],
    ids=lambda case: repr(case.data[:50]),
)
def test_a_file_notes_and_reports_what_the_built_in_protocol_does(case: Case) -> None:
    codes = {"bad-tile": {"bad-field"}, "bad-list": {"missing-field", "bad-number"}}
    ours, theirs = decoded(LINES, case), decoded(OKEY, case)
    assert ours[:3] == theirs[:3]
    if case.diagnostics[0][0] not in ("bad-tile", "bad-list"):
        assert ours[3] == theirs[3]
    else:
        assert [each[1] in codes[found[1]] for each, found in zip(ours[3], theirs[3], strict=True)] == [True]


@pytest.mark.parametrize(
    ("frame", "problem", "place"),
    [
        (b'STAT "1:RED 2:RED " 0\r\n', "2 items", (5, 14)),
        (b"STRT 1:RED" + b' "1:RED"' * 2 + b" 0\r\n", "is not a whole number", (11, 7)),
        (b'STRT "' + b"1:RED " * 25 + b'" 0\r\n', "25 items", (6 + 24 * 6, 5)),
        (b'STRT "1:RED 4:BLEU " 0\r\n', "has another form", (12, 6)),
        (b'STRT "1:RED \\"4:BLEU \\" " 0\r\n', "has another form", (12, 11)),
    ],
)
def test_errors_in_lists_have_their_place(frame: bytes, problem: str, place: tuple[int, int]) -> None:
    direction: Direction = "s2c"
    (violation,) = LINES.codec.decode(frame, direction).violations
    assert problem in violation.text
    assert violation.place(frame) == place
    check_anatomy(LINES, frame, direction)


def test_a_changed_value_keeps_the_padding_and_the_charset_of_its_line() -> None:
    line = 'CATS b  "grün wie%"  x\r\n'.encode("cp1252")
    fields = LINES.codec.decode(line, "s2c").fields
    written = LINES.codec.rewrite(line, "s2c", {**fields, "msg": "ä ö"})
    assert written == 'CATS b  "ä ö%"  x\r\n'.encode("cp1252")


def test_lines_with_any_end() -> None:
    framer = LINES.framer("c2s")
    frames: list[Frame] = [*framer.feed(0, b"LOGO\rPING\nLOGO\r\nPING\r")]
    frames += framer.settle()
    assert [frame.data for frame in frames] == [b"LOGO\r", b"PING\n", b"LOGO\r\n", b"PING\r"]
    assert LINES.codec.truncated(b"PING", "c2s").valid
    assert not LINES.codec.truncated(b"CATC b", "c2s").valid


def test_fields_that_are_lists_of_a_known_size_need_not_be_the_last() -> None:
    head = 'protocol = "p"\nformat = "delimited"\ndelimiter = ";"\n[messages]'
    text = f'{head}\nA = "c: x=[1..6;]2 y=[text;]1..2 z=integer"'
    codec = dissector_from(read_specification(text)).codec
    for frame, fields in (
        (b"A;1;2;a;3\n", {"x": [1, 2], "y": ["a"], "z": 3}),
        (b"A;1;2;a;b;3\n", {"x": [1, 2], "y": ["a", "b"], "z": 3}),
    ):
        found = codec.decode(frame, "c2s")
        assert (found.fields, found.valid) == (fields, True)
        assert codec.encode("A", "c2s", fields) == frame
    (violation,) = codec.decode(b"A;1;7;a;3\n", "c2s").violations
    assert (violation.code, violation.place(b"")) == ("bad-number", (4, 1))
    (violation,) = codec.decode(b"A;1;2;a\n", "c2s").violations
    assert violation.code == "missing-field"


MISTAKES = [
    ("", "x=[text ]4..2", "4 is greater than 2", "4..2"),
    ("", "x=[text ]0", "a list has at least one item", "0"),
    ('format = "json"\nname = "t"', "x=[text?]", "belongs to text that is no json", "x"),
    ('pad = [" "]', "", "pad needs quote", "pad"),
    ('quote = "\\""\npad = ["  "]', "", "a padding is one character", '["  "]'),
    ("lenient = { surpluss = true }", "", "surpluss", "surpluss"),
    ('lenient = { charset = "koi8-r" }', "", "windows-1252", '"koi8-r"'),
    ('framing = "block"\nend = "."\nlenient = { line_ends = true }', "", "framing = lines", "true"),
    ('format = "json"\nname = "t"\nlenient = { surplus = true }', "", "lenient belongs to", "lenient"),
    ('encoding = "ascii"\nlenient = { charset = "windows-1252" }', "", "= utf-8", '"windows-1252"'),
]


@pytest.mark.parametrize(("head", "fields", "problem", "marked"), MISTAKES)
def test_mistakes_are_found_with_their_place(head: str, fields: str, problem: str, marked: str) -> None:
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(f'protocol = "p"\n{head}\n[messages]\nA = "c: {fields}"')
    place = next(mistake.place for mistake in raised.value.all if problem in mistake.message)
    assert place.line[place.position : place.position + place.length] == marked


def test_wireshark_reads_quoted_lists_and_numbers_of_items() -> None:
    script = wireshark_script(LINES).text
    for part in ('pads = " %"', "nulls = true", "most = 24", "cr = true", 'encoding = "windows"'):
        assert part in script
