"""The scanner of JSON agrees with the decoder, and its places are those of the values."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.grammar.json_scanner import DEPTH_LIMIT, JsonMismatch, Node, scan

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
_TEXTS = _VALUES.flatmap(
    lambda value: st.builds(
        lambda escaped, indent: json.dumps(value, ensure_ascii=escaped, indent=indent).encode(
            errors="surrogatepass"
        ),
        st.booleans(),
        st.sampled_from([None, 0, 2]),
    )
)
_DAMAGED = st.builds(
    lambda text, at, cut, junk: text[:at] + junk + text[at + cut :],
    _TEXTS,
    st.integers(0, 60),
    st.integers(0, 3),
    st.one_of(
        st.binary(max_size=2), st.sampled_from([b"{", b"]", b'"', b",", b":", b"\\", b"\\ud800", b"1e", b"-"])
    ),
)


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


@settings(max_examples=times(3000, quick=100), deadline=None)
@given(_DAMAGED)
def test_it_accepts_what_the_decoder_accepts(text: bytes) -> None:
    if _is_json(text):
        scan(text)
        return
    with pytest.raises(JsonMismatch) as raised:
        scan(text)
    error = raised.value
    assert 0 <= error.offset <= error.offset + error.length <= len(text)
    assert error.expected


def _check(text: bytes, node: Node, value: Any) -> None:
    assert msgspec.json.decode(text[node.start : node.end]) == value
    for member in node.members:
        assert member.start <= member.value.start <= member.value.end <= member.end <= node.end
        if node.member(member.step) is member:
            _check(text, member.value, value[member.step])


@pytest.mark.full
@settings(max_examples=times(1000), deadline=None)
@given(_TEXTS)
def test_each_value_has_its_place(text: bytes) -> None:
    if _is_json(text):
        node = scan(text)
        _check(text, node, msgspec.json.decode(text))


@pytest.mark.parametrize(
    ("text", "offset", "found", "expected"),
    [
        ('{"a":1,}', 7, '"}"', "a name in quotes"),
        ('{"a" 1}', 5, '"1"', '":"'),
        ('{"a":1', 6, "the end", '"," or "}"'),
        ("[1 2]", 3, '"2"', '"," or "]"'),
        ('"a\tb"', 2, "a tab", 'an escape such as "\\n" in place of a control character'),
        ('"a', 2, "the end", "the rest of the string and its closing quote"),
        (r'"\x"', 2, '"x"', 'one of "\\/bfnrtu after the backslash'),
        ("-", 1, "the end", "a digit"),
        ("1.x", 2, '"x"', "a digit"),
        ("tru", 3, "the end", '"true"'),
        ("[] x", 3, '"x"', "nothing more"),
        ("1e999", 0, "a number that is too large", "a smaller number"),
        ("[" * 65 + "]" * 65, 64, '"["', "no more than 64 objects and lists inside each other"),
    ],
)
def test_the_first_error(text: str, offset: int, found: str, expected: str) -> None:
    with pytest.raises(JsonMismatch) as raised:
        scan(text.encode())
    assert (raised.value.offset, raised.value.found, raised.value.expected) == (offset, found, expected)


def test_the_nearest_value_of_a_path() -> None:
    node = scan(b'  {"a":[1,{"b":2}],"a":[3]} ', 1)
    assert node.nearest(("a", 0))[0].place == (24, 1)
    assert node.nearest(("a", 1, "b")) == (node.members[1].value, node.members[1], 1)
    assert DEPTH_LIMIT == 64
