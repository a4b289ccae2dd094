"""The engine for JSON: its two ways to decode agree, and what it says about messages of protocol files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import CASES
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.protocols.catan.dissector import CATAN

_ROWS = """
[messages]
MOVE = "c: name=player x=1..6 y?=number"
HANDS = "c: of={player: [1..6]}"
DEAL = ["s: colour=red|blue", "s: count=integer colour=red|blue"]
SHOW = "s: cards=[red|blue]1..2 at?={x=integer y?=integer} any?=any"
"""
PROTOCOLS = {
    "key": 'name = "*"',
    "flat": 'name = "type"',
    "nested": 'name = "head.type"\nfields = "body"',
}


def protocol(head: str) -> Dissector:
    return dissector_from(read_specification(f'protocol = "p"\nformat = "json"\n{head}\n{_ROWS}'))


_MADE = {name: protocol(head) for name, head in PROTOCOLS.items()}


def written(kind: str, name: str, fields: Any) -> Any:
    if kind == "key":
        return {name: fields}
    return {"type": name, **fields} if kind == "flat" else {"head": {"type": name}, "body": fields}


_VALUES = st.recursive(
    st.one_of(
        st.sampled_from(["red", "blue", "rde", "a:b", 1, 6, 7, 2**63, 2**64, -1, 1.5, 2.0, 1e300]),
        st.none(),
        st.booleans(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "y", "z", "type"]), inner, max_size=3),
    ),
    max_leaves=6,
)
_FIELDS = st.dictionaries(
    st.sampled_from(["name", "x", "y", "colour", "count", "cards", "at", "any", "nmae", "zz"]),
    _VALUES,
    max_size=5,
)


@given(st.sampled_from([*PROTOCOLS]), st.sampled_from(["MOVE", "DEAL", "SHOW"]), _FIELDS, st.booleans())
@settings(max_examples=times(3000, 300), deadline=None)
def test_both_ways_to_decode_agree(kind: str, name: str, fields: dict[str, Any], is_ascii: bool) -> None:
    frame = json.dumps(written(kind, name, fields), ensure_ascii=is_ascii).encode()
    for direction in ("c2s", "s2c"):
        _check(_MADE[kind].codec, frame, direction)


def test_both_ways_to_decode_cases_agree() -> None:
    for case in CASES[CATAN]:
        _check(CATAN.codec, case.data, case.direction)


def _check(codec: Codec, frame: bytes, direction: Any) -> None:
    assert isinstance(codec, JsonCodec)
    quick, slow = codec.decode(frame, direction), codec._decode_slowly(frame, direction)
    assert quick.row is slow.row
    # 1, 1.0 and true are equal in Python, but not in JSON.
    assert (quick.fields_json, quick.valid) == (slow.fields_json, slow.valid)
    assert [each.text for each in quick.violations] == [each.text for each in slow.violations]


@pytest.mark.parametrize(
    ("frame", "code", "text"),
    [
        ('{"HANDS":{"of":{"ann":[1,⟨7⟩]}}}', "bad-value", "$.HANDS.of.ann[1]: 7 is not from 1 to 6"),
        ('{"MOVE":{"x":⟨7⟩}}', "bad-value", "$.MOVE.x: 7 is not from 1 to 6"),
        ('{"MOVE":{⟨"nmae"⟩:"a","x":3}}', "unknown-attribute", 'did you mean "name"?'),
        ('{"MOVE":{"name":"a","x":3,⟨"yy"⟩:3}}', "unknown-field", "is not specified here"),
        ('{"MOVE":{"name":"a","x":3},⟨"seq"⟩:3}', "unknown-field", "is not specified here"),
        ('{"MOVE":⟨{"name":"a"}⟩}', "missing-field", 'there is no "x"'),
        ('{"MOVE":{"name":"a","x":3}⟨\udcff⟩}', "not-utf-8", "ff is not UTF-8"),
        ('⟨"MOVE"⟩', "no-object", '"MOVE" is not the beginning of a message'),
        ("⟨{}⟩", "unknown-message", "this object contains no message"),
        ('{⟨"MVOE"⟩:{}}', "unknown-message", 'did you mean "MOVE"?'),
    ],
)
def test_the_diagnostics_of_a_protocol_file(frame: str, code: str, text: str) -> None:
    before, wrong, after = frame.replace("⟩", "⟨").split("⟨")
    data = (before + wrong + after).encode("utf-8", "surrogateescape")
    (violation,) = _MADE["key"].codec.decode(data, "c2s").violations
    assert violation.code == code
    assert text in violation.text
    place = len(before.encode()), len(wrong.encode("utf-8", "surrogateescape"))
    assert violation.place(data) == place


def test_a_list_has_the_specified_number_of_items() -> None:
    codec = _MADE["flat"].codec
    for count in range(5):
        decoded = codec.decode(json.dumps({"type": "SHOW", "cards": ["red"] * count}).encode(), "s2c")
        assert decoded.valid == (1 <= count <= 2)


_PAGE = (ROOT / "docs" / "protocol-files-more.md").read_text()
_ISLANDS = _PAGE.split('protocol = "islands"')[1].split("```")[0]


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        ('{"Hello":{"version":"1.0","number":1}}', {"version": "1.0", "number": 1}),
        ('{"Hello":{"version":"1.1","number":1}}', ["version 1.1 is read as 1.0"]),
        ('{"Hello":{"version":"1.0","number":0}}', ["0 is below 1"]),
        ('{"Built":{"player":1,"piece":{"kind":"Dorf","at":[{"x":1,"y":2}]}}}', {}),
        ('{"Built":{"player":1,"piece":{"kind":"village","at":[{"x":1,"y":2}]}}}', ['is "Dorf" in the spec']),
        ('{"Built":{"player":1,"piece":{"kind":"Strasse","at":[{"x":1,"y":2}]}}}', ["Straße needs 2 values"]),
        ('{"Built":{"player":1,"piece":{"kind":"Way","at":[1]}}}', ["1 is not a place"]),
        ('{"Rolled":{"player":1,"pips":[1]}}', ["there are 1 dice"]),
        ('{"Robber":"A"}', {"to": "A"}),
        ('{"Robber":{"x":1,"y":2}}', {"to": {"x": 1, "y": 2}}),
        ('{"Robber":3}', ["3 is not"]),
        ('{"Cards":[{"wood":1},0],"player":1}', {"player": 1, "cards": {"wood": 1}, "drawn": 0}),
        ('{"Cards":[{"hidden":2},0],"player":1}', ["hidden cards"]),
        ('{"Cards":[-1,0],"player":1}', ["-1 is below zero"]),
        ('{"Cards":[{"wodo":1},0],"player":1}', ['did you mean "wood"?']),
        ('{"Drawn":{"card":"hidden"}}', ["hidden is written for 0"]),
    ],
)
def test_types_of_json(frame: str, found: dict[str, Any] | list[str]) -> None:
    dissector = dissector_from(read_specification(f'protocol = "islands"{_ISLANDS}'))
    direction: Any = "c2s" if "Robber" in frame else "s2c"
    decoded = dissector.codec.decode(frame.encode(), direction)
    if isinstance(found, dict):
        assert not decoded.violations
        assert decoded.fields == (found or json.loads(frame)["Built"])
        name = next(iter(json.loads(frame)))
        assert json.loads(dissector.codec.encode(name, direction, decoded.fields)) == json.loads(frame)
    else:
        texts = [violation.text for violation in decoded.violations]
        assert len(texts) == len(found)
        assert all(part in text for part, text in zip(found, texts, strict=True)), texts
