"""CGML's messages: framing, decoding and encoding, driven by the table of cases and the grammar's rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from cgml_play import message
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from single_direction import inspect
from strength import times

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Number, Text, Word
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.xml.shapes import Compound, ElementList, ElementType, Shape
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.cgml.grammar import GRAMMAR, Card, Pattern, Range

CASES = cases(CGML)


def shortly(case: Case) -> str:
    return f"{case.direction} {case.data[:60]!r}"


def frames(pieces: Iterable[bytes], direction: Direction = "s2c") -> list[Frame]:
    framer = CGML.framer(direction)
    found: list[Frame] = []
    offset = 0
    for piece in pieces:
        found += framer.feed(offset, piece)
        offset += len(piece)
    return [*found, *framer.eof()]


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


# Decoding and encoding.


@pytest.mark.parametrize("case", cases(CGML, "loose"), ids=shortly)
def test_deviations_are_notes_reported_once_per_direction(case: Case) -> None:
    violations = CGML.codec.decode(case.data, case.direction).violations
    assert {violation.severity for violation in violations} <= {"note"}
    twice = inspect(CGML, case.direction, case.data, case.data)
    assert [violation.code for violation in twice.diagnostics] == [code for code, _, _ in case.diagnostics]
    assert len(twice.messages) == 2


# Values that a field of a type can carry.

TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=20
) | st.sampled_from(["\r\n\r\n<load>1</load>", "]]>", "&amp;", "<!--", " ", "\t"])


def values(kind: FieldType) -> st.SearchStrategy[Any]:
    """Values of a field, from the grammar's own types."""
    match kind:
        case Compound():
            return fields_of(kind.shape)
        case ElementList():
            unique = isinstance(kind.item, Card)
            return st.lists(
                values(kind.item),
                min_size=max(kind.least, 1),
                max_size=min(kind.most, 4),
                unique_by=(lambda card: card) if unique else None,
            )
        case Card():
            return st.sampled_from([word for word in kind.words if word])
        case Word():
            return st.sampled_from([*kind.values.values()])
        case Range():
            return st.integers(kind.least, kind.most)
        case Number():
            return st.integers(0, 10**15 - 1)
        case Pattern():
            return st.from_regex(kind.pattern, fullmatch=True)
        case Text():
            return TEXTS
        case _:
            raise AssertionError(f"no values are known for {kind.title}: add them here")


def fields_of(shape: Shape, *more: Field) -> st.SearchStrategy[dict[str, Any]]:
    single = [*shape.attributes, *([shape.text] if shape.text is not None else [])]
    required = {field.name: values(field.type) for field in single if not field.optional}
    # Nothing but blanks between two tags is nothing.
    optional = {
        field.name: values(field.type).filter(lambda value: value is None or str(value).strip())
        for field in single
        if field.optional
    }
    for field in shape.children:
        may_lack = field.optional or (isinstance(field.type, ElementList) and not field.type.least)
        (optional if may_lack else required)[field.name] = values(field.type)
    optional |= {field.name: st.sampled_from(["1.0", "1.19"]) for field in more}
    return st.fixed_dictionaries(required, optional=optional)


def row_id(row: ElementType) -> str:
    return f"{row.direction}-{CGML.codec.notation(row)}"


@pytest.mark.full(but=9)
@pytest.mark.parametrize("row", GRAMMAR.rows, ids=row_id)
@given(data=st.data())
@settings(max_examples=times(40))
def test_decode_after_encode_is_the_identity_for_every_row(row: ElementType, data: st.DataObject) -> None:
    fields = data.draw(fields_of(row.shape, row.fields[-1]))
    encoded = CGML.codec.encode(row.name, row.direction, fields)
    decoded = CGML.codec.decode(encoded, row.direction)
    assert decoded.row is row
    assert decoded.fields == fields
    assert decoded.violations == ()
    assert frames([encoded]) == [Frame(0, encoded, len(encoded))]


# Framing.


DIALS = (
    '<dial type="cards" to="hand" from="desk"><card>B07</card></dial>',
    '<dial type="info" to="hand" from="desk" playerid="8678"><card></card></dial>',
)


def test_several_elements_before_one_empty_line_are_several_messages() -> None:
    first, second = DIALS
    assert [frame.data.decode() for frame in frames([message(f"{first}~{second}")])] == [
        f"{first}\r\n",
        f"{second}\r\n\r\n",
    ]


def test_an_envelope_belongs_to_the_first_and_the_last_of_its_elements() -> None:
    first, second = DIALS
    data = message(f'<cgml version="1.19">~{first}~{second}~</cgml>')
    assert [frame.data.decode() for frame in frames([data])] == [
        f'<cgml version="1.19">\r\n{first}\r\n',
        f"{second}\r\n</cgml>\r\n\r\n",
    ]
    found = inspect(CGML, "s2c", data)
    assert [message.fields.get("version") for message in found.messages] == ["1.19", None]
    assert found.diagnostics == []


def test_a_message_that_another_follows_at_once_is_noted() -> None:
    ask = '<playcard type="ask"></playcard>'
    found = inspect(CGML, "s2c", message(f"{ask}~{ask}"), message(f"{ask}{ask}"))
    assert [(violation.code, violation.severity, violation.offset) for violation in found.diagnostics] == [
        ("no-empty-line", "note", 32),
        ("same-line", "note", 102),
    ]
    assert len(found.messages) == 4


@pytest.mark.parametrize("at", range(3, 60, 3))
def test_after_a_gap_reading_continues_with_the_next_message(at: int) -> None:
    trick = '<result><round number="1"><card>R07</card></round></result>'
    rest = message(trick)[at:]
    ask = message('<licite type="ask">G</licite>')
    found = inspect(CGML, "s2c", 100, rest, ask, None, ask)
    assert [message.name for message in found.messages if message.name != "unreadable"] == [
        "licite",
        "licite",
    ]
    assert {violation.severity for violation in found.diagnostics} <= {"note", "warning"}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("begin", [b"<cancelgame>", b"x", b"<!--", b'<pause type="', b"<![CDATA[", b"</a>"])
def test_an_endless_message_takes_bounded_memory(begin: bytes) -> None:
    framer = CGML.framer("s2c")
    piece = b"y" * 50_000
    found = [*framer.feed(0, begin)]
    offset = len(begin)
    tracemalloc.start()
    try:
        for _ in range(80):
            found += framer.feed(offset, piece)
            offset += len(piece)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * FRAME_LIMIT
    ask = message('<playcard type="ask"></playcard>')
    found += framer.feed(offset, b"\r\n\r\n" + ask)
    assert [frame.cut for frame in found] == ["limit", None]
    assert found[1].data == ask
    assert found[0].size == offset + 4


def test_a_document_type_is_not_followed() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "haha"><!ENTITY b "&a;&a;">]>~<disconnect>&b;</disconnect>'
    decoded = CGML.codec.decode(message(bomb), "s2c")
    assert [violation.code for violation in decoded.violations] == ["document-type"]
    assert decoded.fields == {}


@pytest.mark.parametrize(
    ("data", "violation"),
    [
        (
            b'<playcard type="cards" from="hand" to="desk">\r\n  <card>R0',
            ("unclosed-element", "error", 49, 8),
        ),
        (b'<playcard type="ask"></playcard>\r\n', ("no-empty-line", "note", 21, 13)),
        (b'<playcard type="ask"></playcard>', ("no-empty-line", "note", 21, 11)),
        (b"<disconnect>over", ("unclosed-element", "error", 0, 16)),
        (b"<disconn", ("unclosed-tag", "error", 0, 8)),
    ],
)
def test_a_sender_s_incomplete_message(data: bytes, violation: tuple[str, str, int, int]) -> None:
    decoded = CGML.codec.truncated(data, "c2s" if b"cards" in data else "s2c")
    assert [(one.code, one.severity, *one.place(data)) for one in decoded.violations] == [violation]
