"""Packets of lines in protocol files, which end with their fields."""

from __future__ import annotations

import pytest
from conversation_files import PROTOCOLS, file_dissector
from file_conversations import dissector_of

from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.testing import check_anatomy

MIXED = file_dissector(PROTOCOLS, "packets")


@pytest.mark.parametrize(
    ("direction", "data", "expected"),
    [
        ("c2s", b"NAME\nann\nQUIT\nREADY\nyes\n", ["NAME ann", "QUIT", "READY True"]),
        ("c2s", b"NAME\r\n\r\nQUIT\r\n", ["NAME ", "QUIT"]),
        ("s2c", b"LIST\nann\nDICE\nEND\nDICE\n1\n6\n", ["LIST ['ann', 'DICE']", "DICE [1, 6]"]),
        ("s2c", b"LIST\nEND\nDICE\n1\n6\n", ["LIST []", "DICE [1, 6]"]),
        # A line too few, an unknown one, a stray one: the next message is found.
        ("s2c", b"DICE\n1\nDICE\n2\n3\n", ["bad DICE", "DICE [2, 3]"]),
        ("s2c", b"DICE\n7\n1\nDICE\n2\n3\n", ["bad DICE", "DICE [2, 3]"]),
        ("s2c", b"DCIE\n1\nDICE\n2\n3\n", ["bad None", "bad None", "DICE [2, 3]"]),
        ("s2c", b"END\n\nDICE\n2\n3\n", ["bad None", "bad None", "DICE [2, 3]"]),
        ("c2s", b"MOVE\n1\n2\n3\n4\n5\n6\n", ["MOVE {'x': 1, 'y': 2} [{'x': 3, 'y': 4}, {'x': 5, 'y': 6}]"]),
    ],
)
def test_packets_that_end_with_their_fields(direction: Direction, data: bytes, expected: list[str]) -> None:
    for step in (1, 3, len(data)):
        framer = MIXED.framer(direction)
        frames = [
            frame for at in range(0, len(data), step) for frame in framer.feed(at, data[at : at + step])
        ]
        assert not framer.is_unfinished
        found = [MIXED.codec.decode(frame.data, direction) for frame in frames]
        shown = [
            " ".join([each.row.name, *map(str, each.fields.values())])
            if each.valid and each.row
            else f"bad {each.row and each.row.name}"
            for each in found
        ]
        assert shown == expected
        for frame in frames:
            check_anatomy(MIXED, frame.data, direction)


def test_an_anonymized_copy_keeps_last_lines_and_spellings() -> None:
    head = 'protocol = "p"\nformat = "lines"\nmark = "!"\nend = "!END"\n[spelled]\n"§" = ["Â§"]\n[messages]'
    assert {"!END", "!", "Â§"} <= dissector_of(f'{head}\nB = "c: what=§|Ort"').grammar.words
    assert {"END", "yes"} <= MIXED.grammar.words


def test_only_changed_lines_are_replaced() -> None:
    codec = MIXED.codec
    frame = b"MOVE\r\n1\n2\r\n3\r\n4\r\n5\r\n6\r\n"
    fields = codec.decode(frame, "c2s").fields
    changed = {**fields, "by": [{"x": 3, "y": 9}, fields["by"][1]]}
    assert codec.rewrite(frame, "c2s", changed) == b"MOVE\r\n1\n2\r\n3\r\n9\r\n5\r\n6\r\n"
    assert codec.encode("READY", "c2s", {"ready": False}) == b"READY\r\nno\r\n"
    for name in ("a\nb", "a\r"):
        with pytest.raises(ValueError, match="NAME"):
            codec.encode("NAME", "c2s", {"name": name})


def test_other_spellings_are_noted_and_kept() -> None:
    file = 'protocol = "p"\n[spelled]\n"Straße" = ["Strasse"]\n[messages]\nB = "c: n=integer what=Straße|Ort"'
    codec = dissector_of(file).codec
    found = codec.decode(b"B 1 Strasse\n", "c2s")
    assert (found.fields, found.valid) == ({"n": 1, "what": "Straße"}, True)
    assert [(each.severity, each.text) for each in found.violations] == [
        ("note", '"Strasse" is written Straße')
    ]
    assert codec.rewrite(b"B 1 Strasse\n", "c2s", {"n": 2, "what": "Straße"}) == b"B 2 Strasse\n"
