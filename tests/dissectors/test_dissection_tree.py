from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from conversation_files import Block, as_json, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from inspected_captures import CAPTURES, messages_of
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from message_cases import CASES, Case
from snapshots import DATA, as_bytes, as_text
from strength import few_captures, times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import MAX_PIECES, Piece
from kiebitz.dissectors.grammar.fields import ListText
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.grammar.grammar import Decoded, unreadable
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.testing import check_anatomy

RECORDED = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)

each_protocol = pytest.mark.parametrize("dissector", CASES, ids=lambda dissector: dissector.protocol)


def check_frame(dissector: Dissector, frame: bytes, direction: Direction) -> None:
    """Its pieces are all of it; what is sound is understood, and what is nothing is not."""
    pieces = check_anatomy(dissector, frame, direction)
    decoded = dissector.codec.decode(frame, direction)
    is_unread = any(piece.kind == "unread" for piece in pieces)
    if decoded.valid:
        assert not is_unread, frame
    elif (
        decoded.row is None
        and frame.strip()
        and any(violation.severity == "error" for violation in decoded.violations)
    ):
        assert is_unread, frame
    # It turns to JSON as it is, and what has no value has none there.
    told = json.loads(msgspec.json.encode(pieces))
    assert ["value" in piece for piece in told] == [piece.value is not msgspec.UNSET for piece in pieces]


@each_protocol
def test_the_pieces_of_every_case_are_all_of_it(dissector: Dissector) -> None:
    for case in CASES[dissector]:
        check_frame(dissector, case.data, case.direction)


@each_protocol
@given(data=st.data(), inserted=st.sampled_from([b"\\", b'"', b"<", b"[", b"\xff", b"\\ud800"]))
@settings(max_examples=times(300, 40), deadline=None)
def test_the_pieces_of_a_broken_message_are_all_of_it(
    dissector: Dissector, data: st.DataObject, inserted: bytes
) -> None:
    case = data.draw(st.sampled_from(CASES[dissector]))
    at = data.draw(st.integers(0, len(case.data)))
    check_anatomy(dissector, case.data[:at] + inserted + case.data[at:], case.direction)


def test_a_backslash_outside_a_text_leaves_the_pieces_before_it() -> None:
    frame = b'{"Ertrag":{"Spieler":2,\\"Rohstoffe":{"Holz":1}}}\n'
    pieces = CATAN.codec.anatomy(frame, "s2c")
    assert [(piece.path, piece.value) for piece in pieces if piece.kind == "field"] == [
        (("Spieler",), msgspec.UNSET)
    ]
    assert sum(piece.length for piece in pieces if piece.depth == 0) == len(frame)


@pytest.mark.parametrize("name", few_captures(RECORDED))
def test_the_pieces_of_what_was_recorded_are_all_of_it(name: str) -> None:
    for dissector, direction, frame in messages_of(name):
        check_frame(dissector, frame, direction)


# The bytes of a value's piece alone decode to the value.


@pytest.mark.parametrize("dissector", [MAEXCHEN, KNOBELN, NOUGHTS], ids=lambda dissector: dissector.protocol)
def test_the_bytes_of_a_field_say_its_value(dissector: Dissector) -> None:
    count = 0
    for case in CASES[dissector]:
        row = dissector.codec.decode(case.data, case.direction).row
        types = {} if row is None else {field.name: field.type for field in row.fields}
        for piece in _valued(dissector, case):
            text = case.data[piece.offset : piece.end].decode("utf-8", "replace")
            kind = types[str(piece.path[0])]
            for step in piece.path[1:]:
                assert isinstance(kind, ListText), step
                kind = kind.item
            assert kind.decode(text) == piece.value, case.data
            count += 1
    assert count > 3


def test_the_bytes_of_a_member_say_its_value() -> None:
    count = 0
    for case in CASES[CATAN]:
        if case.diagnostics or not case.name:
            continue
        for piece in _valued(CATAN, case):
            text = case.data[piece.offset : piece.end].decode().rstrip(", \r\n")
            if isinstance(piece.path[-1], str) and text.startswith('"') and '":' in text:
                assert json.loads(f"{{{text}}}") == {piece.path[-1]: piece.value}, case.data
            else:
                assert json.loads(text) == piece.value, case.data
            count += 1
    assert count > 200


def test_the_lines_of_a_field_say_its_value() -> None:
    for case in CASES[SCHAFKOPF]:
        if case.diagnostics or b"\r" in case.data or b"\xa7" in case.data:
            continue
        for piece in _valued(SCHAFKOPF, case):
            text = case.data[piece.offset : piece.end].decode().removesuffix("\n")
            if isinstance(piece.value, int):
                assert int(text) == piece.value, case.data
            else:
                is_flag = piece.path == ("flag",)
                assert text[is_flag:].replace("\n", " ") == piece.value, case.data


def _valued(dissector: Dissector, case: Case) -> list[Piece]:
    pieces = dissector.codec.anatomy(case.data, case.direction)
    return [piece for piece in pieces if piece.value is not msgspec.UNSET]


# What the pieces are.


@pytest.mark.parametrize("block", blocks(DATA / "anatomies.txt").values(), ids=lambda block: block.title)
def test_bytes_of_each_production(block: Block) -> None:
    protocol, direction, _ = block.title.split(" ", 2)
    (dissector,) = (dissector for dissector in CASES if dissector.protocol == protocol)
    (sent,) = block.steps
    frame = as_bytes(sent.removesuffix("(nothing)"))
    pieces = check_anatomy(dissector, frame, "c2s" if direction == "c2s" else "s2c")
    lines = []
    for piece, after in zip(pieces, [*pieces[1:], None], strict=False):
        if after is None or after.depth <= piece.depth:
            path = ".".join(map(str, piece.path))
            value = f"= {as_json(piece.value)}" if piece.value is not msgspec.UNSET else ""
            found = f"{piece.kind} ⟨{as_text(frame[piece.offset : piece.end])}⟩ {path} {value}"
            lines.append(f"    {found.rstrip()}")
    check(block, "\n".join([sent, *lines]))


def test_a_piece_says_its_production() -> None:
    words = {
        piece.production for piece in SCHAFKOPF.codec.anatomy(b"!HOCHZEIT\nJA\nHERZ\nSAU\n!END\n", "c2s")
    }
    assert words == {
        '"!HOCHZEIT" "JA" Karte "!END"',
        'Boolean = "JA" | "NEIN"',
        "Karte = Farbe Wert",
        "Farbe",
        "Wert",
        '"!END"',
    }


class Silent(Codec):
    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        row = GRAMMAR.rows_named("c2s", "JOIN")[0]
        return unreadable() if frame == b"?" else Decoded(row, {}, "{}", True)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return b""


def test_a_codec_without_productions_gives_a_frame_in_one_piece() -> None:
    assert [(piece.length, piece.kind) for piece in Silent().anatomy(b"JOIN;x", "c2s")] == [(6, "name")]
    assert [(piece.length, piece.kind) for piece in Silent().anatomy(b"?", "c2s")] == [(1, "unread")]
    assert Silent().anatomy(b"", "c2s") == ()


_HUGE = times(FRAME_LIMIT, 60_000) - 200


@pytest.mark.parametrize(
    ("dissector", "begin", "again", "end", "direction"),
    [
        (MAEXCHEN, b"PLAYER ROLLS;", b"x;", b"", "s2c"),
        pytest.param(OKEY, b'+LPLA "', b"a ", b' "\r\n', "s2c", marks=pytest.mark.full),
        pytest.param(OKEY, b"+LPLA ", b"a ", b"\r\n", "s2c", marks=pytest.mark.full),
        pytest.param(SCHAFKOPF, b"!DRAN\n1\n", b"\n", b"!END\n", "s2c", marks=pytest.mark.full),
        (CATAN, '{"Würfelwurf":{"Spieler":1,"Wurf":[3,4],'.encode(), b'"a":1,', b'"b":2}}\n', "s2c"),
        (CATAN, b'{"OK":', b"[", b"\n", "s2c"),
        (CATAN, b'{"OK":{', b'"', b"\n", "s2c"),
        pytest.param(
            *(CGML, b'<dial type="cards" to="hand">', b"<card>A0A</card>", b"</dial>\r\n\r\n", "s2c"),
            marks=pytest.mark.full,
        ),
        (CGML, b"<dial ", b'a="1" ', b"/>\r\n\r\n", "s2c"),
        (CGML, b"<dial>", b"<x>", b"\r\n\r\n", "s2c"),
    ],
)
def test_a_huge_message_has_no_more_pieces_than_there_may_be(
    dissector: Dissector, begin: bytes, again: bytes, end: bytes, direction: Direction
) -> None:
    frame = begin + again * (_HUGE // len(again)) + end
    pieces = check_anatomy(dissector, frame, direction)
    assert len(pieces) <= MAX_PIECES + 1
    if len(pieces) > MAX_PIECES:
        assert (pieces[-1].kind, pieces[-1].end) == ("rest", len(frame))
