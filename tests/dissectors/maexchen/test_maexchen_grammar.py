"""Mäxchen datagrams: decoding and encoding, driven by the table of cases and by the grammar's own rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_cases import CASES, Case, cases

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import ListText, Number, Text, Word
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, Findings, Gap, Ids, Stream
from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR, Dice, Scores, Token

PLAIN_NAMES = st.text(
    st.characters(exclude_characters=",;:", exclude_categories=["Cs"]), min_size=1, max_size=30
)


def values(kind: FieldType) -> st.SearchStrategy[Any]:
    """Values that a field of this type can carry, from the grammar's own types."""
    match kind:
        case Word():
            return st.sampled_from(kind.words)
        case Text():
            return st.text(st.characters(exclude_characters=";", exclude_categories=["Cs"]), max_size=40)
        case Token():
            return st.uuids().map(str)
        case Number():
            return st.integers(0, 10**14)
        case Dice():
            return st.sampled_from(ROLLS)
        case ListText():
            return st.lists(PLAIN_NAMES, min_size=1, max_size=6)
        case Scores():
            return st.dictionaries(PLAIN_NAMES, st.integers(-(10**6), 10**6), max_size=6)
        case _:
            raise AssertionError(f"no values are known for {kind.title}: add them here")


def messages(row: MessageType) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: values(field.type) for field in row.fields})


@pytest.mark.parametrize("row", GRAMMAR.rows, ids=lambda row: f"{row.name}-{len(row.fields)}")
@given(data=st.data())
def test_decode_after_encode_is_the_identity_for_every_row(row: MessageType, data: st.DataObject) -> None:
    fields = data.draw(messages(row))
    decoded = MAEXCHEN.codec.decode(MAEXCHEN.codec.encode(row.name, row.direction, fields), row.direction)
    assert decoded.valid
    assert decoded.row is not None
    assert decoded.row.name == row.name
    assert decoded.fields == fields


@pytest.mark.parametrize(
    ("data", "direction", "expected"),
    [
        (b"register;klein", "c2s", "similar"),
        (b"REGISTER", "c2s", "similar"),
        (b"JOIN;x", "s2c", None),
        (b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x02de\x00", "c2s", None),
        (b"GET / HTTP/1.1\r\n", "c2s", None),
        (b"", "c2s", None),
    ],
)
def test_slips_are_similar_and_foreign_traffic_is_not(
    data: bytes, direction: Direction, expected: object
) -> None:
    assert MAEXCHEN.recognise(data, direction) == expected


def inspect(*items: Chunk | Gap) -> Findings:
    inspector = Inspector([MAEXCHEN], Ids(), {("udp", 9000): MAEXCHEN})
    for item in items:
        inspector.feed(item)
    return inspector.drain()


@pytest.mark.parametrize("case", CASES[MAEXCHEN], ids=lambda case: repr(case.data[:40]))
def test_a_datagram_says_the_same_after_a_gap_and_in_mid_stream(case: Case) -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9000", 0)
    whole = inspect(Chunk(stream, case.direction, 1, 0, case.data))
    after_gap = inspect(
        Gap(stream, case.direction, 0, 0, 10), Chunk(stream, case.direction, 1, 10, case.data)
    )
    assert [(m.name, m.fields) for m in whole.messages] == [(m.name, m.fields) for m in after_gap.messages]
    gap, *violations = after_gap.diagnostics
    assert (gap.code, gap.offset, gap.length) == ("gap", 0, 10)
    assert [(d.code, d.offset + 10) for d in whole.diagnostics] == [(d.code, d.offset) for d in violations]


@pytest.mark.parametrize("case", cases(MAEXCHEN, "sound"), ids=lambda case: repr(case.data[:40]))
def test_a_truncated_datagram_is_no_violation(case: Case) -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9000", 0)
    found = inspect(Chunk(stream, case.direction, 1, 0, case.data[:3], missing=len(case.data) - 3))
    assert found.messages == []
    (violation,) = found.diagnostics
    assert (violation.code, violation.group, violation.blame) == ("cut-off", "network", "network")
    assert (violation.offset, violation.length) == (0, len(case.data))


def test_the_order_of_the_rolls() -> None:
    assert ROLLS[:3] == ("3,1", "3,2", "4,1")
    assert ROLLS[13:16] == ("6,5", "1,1", "2,2")
    assert ROLLS[-1] == MIA
    assert beats("1,1", "6,5")
    assert beats("4,1", "4,1") is False
    assert beats("7,7", "4,1") is None
