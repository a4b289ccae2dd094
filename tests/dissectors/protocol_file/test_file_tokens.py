"""Quoted lists, numbers of items, nulls, and lenient readers in protocol files: Okey's lines as a file."""

from __future__ import annotations

from typing import Any

import pytest
from conversation_files import PROTOCOLS, file_dissector
from file_conversations import dissector_of
from message_cases import Case, cases

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.testing import check_anatomy
from kiebitz.dissectors.wireshark.script import wireshark_script

LINES = file_dissector(PROTOCOLS, "quoted lists")
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
    codec = dissector_of(text).codec
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


def test_wireshark_reads_quoted_lists_and_numbers_of_items() -> None:
    script = wireshark_script(LINES).text
    for part in ('pads = " %"', "nulls = true", "most = 24", "cr = true", 'encoding = "windows"'):
        assert part in script
