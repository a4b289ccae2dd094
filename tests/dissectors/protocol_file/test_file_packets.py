"""Packets of lines in protocol files: Schafkopf's Pakete, and packets that end with their fields."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from conversation_files import PROTOCOLS, file_dissector
from file_conversations import dissector_of
from message_cases import Case, cases
from snapshots import DATA
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import GRAMMAR
from kiebitz.dissectors.testing import check_anatomy

TYPES = DATA / "protocol_files" / "pakete_types.txt"


def _file() -> str:
    """Return Schafkopf's messages as a file, with its types in the notation of files."""
    assert GRAMMAR.table_file is not None
    text = Path(GRAMMAR.table_file).read_text()
    rows = text[text.index("[clauses]") : text.index("[events]")]
    (mode,) = (field.type for row in GRAMMAR.rows if row.name == "SPIELSTDU" for field in row.fields)
    return TYPES.read_text().replace("MODES", "|".join(f"'{word}'" for word in mode.words)) + rows


FILE = dissector_of(_file())


def frames_of(
    dissector: Dissector, direction: Direction, data: bytes, cuts: list[int], gap: int
) -> list[Any]:
    """Return the frames of a stream in segments, with missing bytes in one place."""
    framer = dissector.framer(direction)
    found: list[Frame] = []
    start = 0
    for end in [*cuts, len(data)]:
        if start <= gap < end:
            found += framer.feed(start, data[start:gap])
            found += framer.gap(gap, 7)
            start = min(gap + 7, end)
        found += framer.feed(start, data[start:end])
        start = end
    found += framer.eof()
    return [(each.offset, each.data, each.cut) for each in found]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_packets_are_those_of_the_built_in_protocol(direction: Direction) -> None:
    sent = cases(SCHAFKOPF, "sound", "loose", "malformed", "ignored", "unknown")
    some = [case for case in sent if len(case.data) < 4000]
    for seed in range(times(20, quick=4)):
        random = Random(seed)
        random.shuffle(some)
        data = b"".join(case.data for case in some)
        cuts = sorted(random.sample(range(len(data)), 50))
        gap = random.randrange(len(data))
        ours = frames_of(FILE, direction, data, cuts, gap)
        assert ours == frames_of(SCHAFKOPF, direction, data, cuts, gap)
        assert b"".join(each[1] for each in ours) in data or len(ours) > 1


def card(value: Any) -> Any:
    """Return a card of Schafkopf as it is in the file."""
    if isinstance(value, list):
        return [card(each) for each in value]
    colour, _, rank = (value or " ").partition(" ")
    return {"farbe": colour or None, "wert": rank or None}


def fields_of(case: Case) -> dict[str, Any]:
    return {name: _plain(name, value) for name, value in case.fields.items()}


def _plain(name: str, value: Any) -> Any:
    if name in ("spielerhand", "tisch", "letzter_stich", "karte"):
        return card(value)
    return str(value) if name in ("id", "spieler", "mitspieler", "dran") else value


@pytest.mark.parametrize("case", cases(SCHAFKOPF, "sound"), ids=lambda case: repr(case.data[:50]))
def test_a_file_reads_and_writes_what_the_built_in_protocol_does(case: Case) -> None:
    found = FILE.codec.decode(case.data, case.direction)
    assert (found.row and found.row.name, found.fields, found.valid) == (case.name, fields_of(case), True)
    assert case.name is not None
    encoded = FILE.codec.encode(case.name, case.direction, found.fields)
    assert encoded == SCHAFKOPF.codec.encode(case.name, case.direction, case.fields)
    check_anatomy(FILE, case.data, case.direction)


@pytest.mark.parametrize(
    "case",
    [case for case in cases(SCHAFKOPF, "malformed") if case.name],
    ids=lambda case: repr(case.data[-50:]),
)
def test_a_file_reports_what_the_built_in_protocol_does(case: Case) -> None:
    found, known = (each.codec.decode(case.data, case.direction) for each in (FILE, SCHAFKOPF))
    if "are not a card" in known.violations[0].text:
        # In the file, colour and rank are two values.
        assert found.valid
        return
    codes = {each.code for each in (*found.violations, *known.violations)}
    assert len(codes) == 1 or codes <= {"bad-field", "bad-number"}
    assert [each.place(case.data) for each in found.violations] == [
        each.place(case.data) for each in known.violations
    ]
    check_anatomy(FILE, case.data, case.direction)


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
    assert {"!END", "!", "Â§", "EICHEL"} <= FILE.grammar.words
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
