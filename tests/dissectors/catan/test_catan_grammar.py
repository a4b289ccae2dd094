"""Catan's messages: decoding, encoding and recognising, driven by the table of cases and the rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversation import Conversation
from field_values import fields_of
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from single_direction import inspect
from strength import every, times

from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.grammar.json.layouts import JsonRow
from kiebitz.dissectors.grammar.json.types import (
    JsonText,
)
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import DIRECTIONS, Chunk, Direction, Findings, Ids, Stream
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.catan.grammar import GRAMMAR, OTHER_SPELLINGS
from kiebitz.dissectors.protocols.catan.words import (
    FARBEN,
    FELDER,
    GEBÄUDE,
    HÄFEN,
    KARTEN,
    ROHSTOFFE,
    STATUS,
)
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF

CASES = cases(CATAN)
each_direction = pytest.mark.parametrize("direction", DIRECTIONS)


def shortly(case: Case) -> str:
    return f"{case.direction} {case.data[:70].decode(errors='backslashreplace')!r}"


def each(*cases: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=shortly)


def name_of(decoded: Decoded) -> str | None:
    return decoded.row.name if decoded.row is not None else None


each_row = pytest.mark.parametrize(
    "row", GRAMMAR.rows, ids=lambda row: f"{row.direction} {row.name} {row.deviation or ''}"
)


FREE_TEXTS = {field.name for row in GRAMMAR.rows for field in row.fields if isinstance(field.type, JsonText)}
WORDS = {*FELDER, *HÄFEN, *GEBÄUDE, *FARBEN, *STATUS, *KARTEN, *ROHSTOFFE}


def spelt_in_ascii(value: Any) -> Any:
    """Return a value as the programs write it that have no umlauts; a free text may be such a word, too."""
    match value:
        case dict():
            return {
                OTHER_SPELLINGS.plain(key): part if key in FREE_TEXTS else spelt_in_ascii(part)
                for key, part in value.items()
            }
        case list():
            return [spelt_in_ascii(part) for part in value]
        case str() if value in WORDS:
            return OTHER_SPELLINGS.plain(value)
    return value


def hidden_in_words(value: Any, name: str = "") -> Any:
    """Return a value with what is hidden as most real servers write it."""
    match value:
        case dict():
            return {key: hidden_in_words(part, key) for key, part in value.items()}
        case bool():
            return value
        case int() if name in ("Rohstoffe", "Entwicklungskarten"):
            return {"Unbekannt": value}
        case int() if name == "Entwicklungskarte":
            return "Unbekannt"
    return value


def in_another_order(value: Any) -> Any:
    match value:
        case dict():
            return {key: in_another_order(part) for key, part in reversed(value.items())}
        case list():
            return [in_another_order(part) for part in value]
    return value


LAYOUTS: list[tuple[str, str, dict[str, Any]]] = [
    ("", "\n", {}),
    ("", "\r\n", {}),
    ("", "", {}),
    (" \t", " \n", {}),
    ("", "\n", {"separators": (",", ":")}),
    ("", "\n", {"separators": (" ,\t", "\t: ")}),
    ("", "\n", {"indent": 2}),
    ("\r\n", "\r\n", {"indent": "\t"}),
]


@pytest.mark.full(but=4)
@each_row
@given(
    data=st.data(),
    layout=st.sampled_from(LAYOUTS),
    escapes=st.booleans(),
    dialects=st.sets(st.sampled_from([spelt_in_ascii, hidden_in_words, in_another_order])),
)
@settings(max_examples=times(60), deadline=None)
def test_every_dialect_decodes_to_the_same(
    row: JsonRow,
    data: st.DataObject,
    layout: tuple[str, str, dict[str, Any]],
    escapes: bool,
    dialects: set[Any],
) -> None:
    fields = data.draw(fields_of(row))
    value = json.loads(CATAN.codec.encode(row.name, row.direction, fields))
    for dialect in dialects:
        value = dialect(value)
    before, after, how = layout
    message = f"{before}{json.dumps(value, ensure_ascii=escapes, **how)}{after}".encode()
    decoded = CATAN.codec.decode(message, row.direction)
    assert decoded.valid
    assert (name_of(decoded), decoded.fields) == (row.name, fields)
    assert {violation.severity for violation in decoded.violations} <= {"note"}


# In a stream.


def messages(found: Findings) -> list[tuple[str, Any, int, int]]:
    return [(message.name, message.fields, message.offset, message.length) for message in found.messages]


def violations(found: Findings) -> list[tuple[str, int, int]]:
    return [
        (d.code, d.offset, d.length)
        for d in found.diagnostics
        if d.group == "malformed" and d.code != "dialect"
    ]


REST = b'rsion":"x"}}\n'


@each_direction
def test_messages_without_a_line_feed_between_them(direction: Direction) -> None:
    some = [case for case in cases(CATAN, "sound", "dialects") if case.direction == direction]
    found = inspect(CATAN, direction, *(case.data.rstrip() for case in some), b"\n")
    assert [told[:2] for told in messages(found)] == [(case.name, case.fields) for case in some]
    assert [code for code, _, _ in violations(found)] == ["no-line-feed"]


# Recognising.


@pytest.mark.full(but=19)
@each(*cases(CATAN, "sound"))
def test_a_message_is_recognised_that_comes_in_the_middle_of_another(case: Case) -> None:
    for at in range(1, len(case.data), max(1, len(case.data) // 20)):
        assert CATAN.recognise(case.data[at:] + case.data, case.direction) == "certain"
        assert CATAN.recognise(case.data + case.data[:at], case.direction) == "certain"


@pytest.mark.full(but=25)
@each(*cases(CATAN, "malformed"))
def test_a_slip_of_a_message_is_like_one(case: Case) -> None:
    assert CATAN.recognise(case.data, case.direction) == "similar"


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("beginning", [b"", REST, b'{"Bauen":{"Typ":"Do', b"\n", b"{}\n"])
def test_a_stream_is_recognised_from_one_side_of_it(direction: Direction, beginning: bytes) -> None:
    said = (
        b'{"Monopol":{"Spieler":1,"Rohstoff":"Erz"}}\n' if direction == "s2c" else '{"Würfeln":{}}\n'.encode()
    )
    stream = Stream(1, "tcp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    inspector = Inspector([SCHAFKOPF, CATAN], Ids())
    data = beginning + said
    for at in range(len(data)):
        inspector.feed(Chunk(stream, direction, at, at, data[at : at + 1]))
    inspector.finish()
    found = inspector.drain()
    assert stream.protocol == "catan"
    assert [(m.name, m.offset) for m in found.messages][-1:] == [
        ("Monopol" if direction == "s2c" else "Würfeln", len(beginning))
    ]


# Messages that break off.

BROKEN_OFF = list(
    {(case.direction, case.name): case for case in cases(CATAN, "sound") if len(case.data) < 90}.values()
)
CLEAR = {"c2s": '{"Zug beenden":{}}\n', "s2c": '{"OK":{}}\n'}
UNCLEAR = {"c2s": '{"Spieler":{"Name":"Anna"}}\n', "s2c": '{"Monopol":{"Spieler":1,"Rohstoff":"Holz"}}\n'}


def a_value_comes(data: bytes, cut: int) -> bool:
    return data[cut - 1] in b":[" or (data[cut - 1] in b"," and data[cut] not in b'"')


@pytest.mark.full(but=4)
@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("following", [CLEAR, UNCLEAR])
@pytest.mark.parametrize("case", every(10, BROKEN_OFF), ids=lambda case: f"{case.direction} {case.name}")
def test_a_message_that_breaks_off_before_the_next_one(
    case: Case, following: dict[Direction, str], between: str
) -> None:
    """The diagnostic is at the break, and the next message is read.

    The exception is where a value would come next, and the next message can be one.
    """
    next_one = following[case.direction].encode()
    next_name = next_one.decode().split('"')[1]
    for cut in range(1, len(case.data) - 1):
        kept = case.data[:cut] + between.encode()
        wire = Conversation(CATAN, 1000)
        wire.say("a", case.direction, kept + next_one)
        found = wire.close()
        (violation,) = (violation for violation in found.diagnostics if violation.severity != "note")
        if following is UNCLEAR and a_value_comes(case.data, cut):
            assert violation.code == "truncated"
            continue
        assert (violation.code, violation.offset, violation.length) == ("broken-json", cut, 0)
        assert violation.text == "the message ends too early"
        assert violation.expected
        assert [(message.name, message.length) for message in found.messages] == [
            ("unreadable", len(kept)),
            (next_name, len(next_one)),
        ]
