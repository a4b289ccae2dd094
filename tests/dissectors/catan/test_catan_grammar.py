"""Catan's messages: decoding, encoding and recognising, driven by the table of cases and the rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from single_direction import inspect
from strength import times

from kiebitz.dissectors.grammar.grammar import Decoded, Field
from kiebitz.dissectors.grammar.json.containers import JsonBag, JsonList, JsonObject
from kiebitz.dissectors.grammar.json.layouts import JsonRow
from kiebitz.dissectors.grammar.json.types import (
    JsonBoolean,
    JsonChoice,
    JsonEither,
    JsonNumber,
    JsonText,
    JsonType,
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
    STRASSE,
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


# The table of cases.


# Messages of all rows, made from the types of their fields.

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def values(kind: JsonType) -> st.SearchStrategy[Any]:
    """Values that a field can have, from the grammar's own types."""
    match kind:
        case JsonObject(sizes=None):
            return objects(*kind.fields)
        case JsonObject():
            return objects(*kind.fields).filter(stands_right)
        case JsonText(matches=None):
            return st.just("1.0") if kind.usual else TEXTS
        case JsonText():
            return st.sampled_from(["a", "Zz"])
        case JsonBoolean():
            return st.booleans()
        case JsonNumber():
            return st.integers(int(kind.least or 0), int(kind.most or 0))
        case JsonChoice():
            return st.sampled_from(list(kind.values))
        case JsonEither():
            return st.one_of(*map(values, kind.options))
        case JsonList():
            sizes = st.sampled_from(list(range(kind.least, min(kind.most or 4, 4) + 1)))
            return sizes.flatmap(lambda size: st.lists(values(kind.item), min_size=size, max_size=size))
        case JsonBag():
            counts = st.dictionaries(st.sampled_from(kind.names), st.integers(0, 19))
            return counts if kind.hidden is None else st.one_of(counts, st.integers(0, 95))
        case _:
            raise AssertionError(f"no values are known for {kind.title}: add them here")


def objects(*fields: Field) -> st.SearchStrategy[dict[str, Any]]:
    """Attributes with their values, in any number of those that may be left out."""
    parts: dict[bool, dict[str, st.SearchStrategy[Any]]] = {False: {}, True: {}}
    for field in fields:
        assert isinstance(field.type, JsonType)
        parts[field.optional][field.name] = values(field.type)
    return st.fixed_dictionaries(parts[False], optional=parts[True])


def stands_right(building: dict[str, Any]) -> bool:
    return len(building["Ort"]) == (2 if building["Typ"] == STRASSE else 3)


def fields_of(row: JsonRow) -> st.SearchStrategy[dict[str, Any]]:
    found = objects(*row.fields)
    if row.form == "list":
        # Of a list nothing can be left out but the end of it.
        return found
    return found.filter(stands_right) if row.sizes is not None else found


each_row = pytest.mark.parametrize(
    "row", GRAMMAR.rows, ids=lambda row: f"{row.direction} {row.name} {row.deviation or ''}"
)


@pytest.mark.full(but=13)
@each_row
@given(data=st.data())
@settings(max_examples=times(60, 2), deadline=None)
def test_decode_after_encode_is_the_identity_for_every_row(row: JsonRow, data: st.DataObject) -> None:
    fields = data.draw(fields_of(row))
    message = CATAN.codec.encode(row.name, row.direction, fields)
    decoded = CATAN.codec.decode(message, row.direction)
    assert decoded.valid
    assert (name_of(decoded), decoded.fields) == (row.name, fields)
    assert json.loads(decoded.fields_json) == fields
    assert [told[:2] for told in messages(inspect(CATAN, row.direction, message))] == [(row.name, fields)]


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


# Whatever comes.

KEYS = st.one_of(
    st.sampled_from(sorted(GRAMMAR.words | {"", "Unbekannt", "Wurf ", "\n", "\ud800"})),
    st.text(max_size=5),
)
JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([10**20, -(10**400), 2**31, 2**63, 1e300, 0.5, float("nan"), float("inf")]),
        st.sampled_from(sorted(WORDS)),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)


def changed(case: Case, at: int, length: int, value: Any) -> bytes:
    """Return a message with some other value, or the beginning of one, in the middle of it."""
    return case.data[:at] + json.dumps(value).encode() + case.data[at + length :]


ODD = st.one_of(
    st.binary(max_size=60),
    JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    st.builds(lambda name, value: json.dumps({name: value}).encode(), KEYS, JSON_VALUES),
    st.builds(changed, st.sampled_from(CASES), st.integers(0, 90), st.integers(0, 40), JSON_VALUES),
    st.builds(
        lambda case, at, junk: case.data[:at] + junk + case.data[at:],
        st.sampled_from(CASES),
        st.integers(0, 90),
        st.binary(max_size=4),
    ),
    st.sampled_from(
        [
            b'{"Bauen":' + b"[" * 9999 + b"]" * 9999 + b"}\n",
            b'{"Hallo":' * 2000,
            b'{"Willkommen":{"id":' + b"9" * 5000 + b"}}\n",
            b'{"Willkommen":{"id":1e999}}\n',
            b'{"OK":{},"OK":{}}\n',
            b'{"Bauen":{"Typ":"Dorf","Typ":"Stra\xc3\x9fe","Ort":[],"Ort":7}}\n',
            rb'{"Spieler":{"Name":"\ud800"}}',
            rb'{"\udfff":{}}',
        ]
    ),
)


@given(ODD, st.sampled_from(DIRECTIONS))
@settings(max_examples=times(1500, 40), deadline=None)
def test_the_decoder_accepts_any_bytes_and_diagnostics_lie_inside(data: bytes, direction: Direction) -> None:
    for decoded in (CATAN.codec.decode(data, direction), CATAN.codec.truncated(data, direction)):
        codes = [violation.code for violation in decoded.violations if not violation.habit]
        # A duplicate name is reported once, in addition to other violations.
        assert codes.count("duplicate-key") <= 1
        assert len(codes) - codes.count("duplicate-key") == (0 if decoded.valid else 1)
        for violation in decoded.violations:
            offset, length = violation.place(data)
            assert 0 <= offset <= offset + length <= len(data)
            assert violation.text.encode()
            assert len(violation.text) < 500
    CATAN.recognise(data, direction)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('{"Spieler":{"Name":"A","Name":"B"}}', {"Name": "B"}),
        ('{"Spieler":{"Name":"A"},"Spieler":{"Name":"B"}}', {"Name": "B"}),
        ('{"Spieler":{"Name":7,"Name":"B"}}', {"Name": "B"}),
    ],
)
def test_of_attributes_with_the_same_name_the_last_counts(text: str, fields: dict[str, Any]) -> None:
    decoded = CATAN.codec.decode(f"{text}\n".encode(), "c2s")
    assert (name_of(decoded), decoded.fields) == ("Spieler", fields)


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


def test_a_habit_is_reported_once_in_a_direction() -> None:
    found = inspect(CATAN, "s2c", *(b' {"Ok":{}}\r\n' for _ in range(5)))
    assert violations(found) == [("blanks", 0, 1), ("crlf", 10, 2), ("spelling", 2, 4)]


# Recognising.

FIRST_LINES = [
    ("s2c", b'{"Hallo":{"Version":"0.1","Protokoll":1}}\n'),
    ("s2c", b'{"Hallo":{"Version":"NServer 1.0","Protokoll":"1.0"}}\n'),
    ("s2c", b'{"Hallo":{"Protokoll":"1.0","Version":"LServer (Gr\\u00fcn)"}}\r\n'),
    ("s2c", b'{"Serverantwort":"The game running on that server has already started."}\n'),
    ("c2s", b'{"Hallo":{"Version":"SwingClient 1.0 (SparsameWitze) (KI)"}}\n'),
    ("c2s", b'{"Hallo":{"Version":"x"}}'),
]


@pytest.mark.parametrize(("direction", "data"), FIRST_LINES)
def test_the_first_line_is_recognised(direction: Direction, data: bytes) -> None:
    assert CATAN.recognise(data, direction) == "certain"


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
