"""Quoted lists, numbers of items, nulls, and lenient readers in protocol files: Okey's lines as a file."""

from __future__ import annotations

from conversation_files import PROTOCOLS, file_dissector
from file_conversations import dissector_of

from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.wireshark.script import wireshark_script

LINES = file_dissector(PROTOCOLS, "quoted lists")


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
