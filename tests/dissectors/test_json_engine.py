"""The engine for JSON: its two ways to decode agree, and what it says about messages of protocol files."""

from __future__ import annotations

import json
from typing import Any

from conversation_files import PROTOCOLS as FILES
from conversation_files import blocks
from file_conversations import dissector_of
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import CASES
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.protocols.catan.dissector import CATAN

PROTOCOLS = {
    "key": 'name = "*"',
    "flat": 'name = "type"',
    "nested": 'name = "head.type"\nfields = "body"',
}


def protocol(head: str) -> Dissector:
    return dissector_of(blocks(FILES)["protocol maps"].text.replace('name = "*"', head))


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
    quick, slow = codec.decode(frame, direction), codec.decode_slowly(frame, direction)
    assert quick.row is slow.row
    # 1, 1.0 and true are equal in Python, but not in JSON.
    assert (quick.fields_json, quick.valid) == (slow.fields_json, slow.valid)
    assert [each.text for each in quick.violations] == [each.text for each in slow.violations]


def test_a_list_has_the_specified_number_of_items() -> None:
    codec = _MADE["flat"].codec
    for count in range(5):
        decoded = codec.decode(json.dumps({"type": "SHOW", "cards": ["red"] * count}).encode(), "s2c")
        assert decoded.valid == (1 <= count <= 2)
