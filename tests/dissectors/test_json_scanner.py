"""The scanner of JSON: what it accepts, and the places of values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.grammar.json.scanner import Scanner, first_error, parse_places

Step = str | int
Path = tuple[Step, ...]

JUNK = st.one_of(
    st.sampled_from(
        [
            *(
                b"{",
                b"}",
                b"[",
                b"]",
                b":",
                b",",
                b'"',
                b"\\",
                b"\n",
                b" ",
                b"\r\n",
                b"\t",
                b"1",
                b"-",
                b"0.",
            ),
            *(b'"x"', b'{"x":', b"null", b"nul", b"\\u12", b"\xc3", b"\0", b"NaN", b"Infinity"),
            *(b"9" * 5000, b"00", b"0.", b"1e5"),
        ]
    ),
    st.binary(max_size=6),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=6),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "a{", '"', "ä"]), inner, max_size=3),
    ),
    max_leaves=6,
)


def text_of(value: Any, style: int) -> bytes:
    """Compact, with blanks, or over several lines, with and without escapes."""
    separators = ((",", ":"), (", ", " : "), None)[style % 3]
    indent = 2 if separators is None else None
    text = json.dumps(value, ensure_ascii=style < 3, separators=separators, indent=indent)
    return text.encode("utf-8", "replace")


def is_json(data: bytes) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(data.decode("utf-8", "surrogateescape"), parse_constant=refuse, parse_int=str)
    except ValueError:
        return False
    return True


TEXTS = st.builds(text_of, VALUES, st.integers(0, 5))
MUTATED = st.builds(
    lambda data, at, length, junk: data[:at] + junk + data[at + length :],
    TEXTS,
    st.integers(0, 30),
    st.integers(0, 3),
    JUNK,
)
ANY = st.one_of(TEXTS, MUTATED, st.lists(st.one_of(JUNK, TEXTS), max_size=25).map(b"".join))


@pytest.mark.full
@given(ANY)
@settings(max_examples=times(1000), deadline=None)
def test_the_scanner_accepts_what_a_parser_accepts(data: bytes) -> None:
    error = first_error(data)
    assert (error is None) == is_json(data)
    if error is not None:
        assert 0 <= error.offset <= error.offset + error.length <= len(data)
        # The text before the error is right: alone, it is complete or lacks only its end.
        before = first_error(data[: error.offset])
        assert before is None or before.offset == error.offset


@pytest.mark.full
@given(ANY, st.lists(st.integers(0, 600), max_size=12), st.booleans())
@settings(max_examples=times(500), deadline=None)
def test_the_scanner_keeps_its_place(data: bytes, places: list[int], raw_controls: bool) -> None:
    whole, cut_up = Scanner(0, raw_controls), Scanner(0, raw_controls)
    whole.scan(data, len(data))
    for end in sorted({*(place for place in places if place < len(data)), len(data)}):
        # Not one byte beyond the end is looked at.
        cut_up.scan(data[:end], end)
    for at in range(len(data) + 1):
        assert cut_up.expects_value(at) == whole.expects_value(at)
    assert (cut_up.at, cut_up.is_complete, cut_up.is_broken) == (whole.at, whole.is_complete, whole.is_broken)


Tree = Any
"""A scalar, a list of trees, or a tuple of pairs of a name and a tree."""

KEYS = st.sampled_from(["x", "y", "ä", '"', "\n", "\ud800", ""])
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(KEYS, inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)
OBJECTS = st.lists(st.tuples(KEYS, TREES), max_size=4).map(tuple)


def write(
    tree: Tree,
    path: Path,
    blanks: Iterator[bytes],
    out: bytearray,
    places: dict[Path, tuple[tuple[int, int] | None, tuple[int, int]]],
    name: tuple[int, int] | None = None,
) -> None:
    start = len(out)
    if isinstance(tree, tuple | list):
        is_object = isinstance(tree, tuple)
        out += (b"{" if is_object else b"[") + next(blanks)
        for number, item in enumerate(tree):
            out += b"," + next(blanks) if number else b""
            step: Step = number
            inner_name = None
            if is_object:
                step, item = item
                text = json.dumps(step, ensure_ascii=bool(next(blanks)) or step == "\ud800").encode()
                inner_name = len(out), len(text)
                out += text + next(blanks) + b":" + next(blanks)
                # A later member with the same name counts.
                for old in [old for old in places if old[: len(path) + 1] == (*path, step)]:
                    del places[old]
            write(item, (*path, step), blanks, out, places, inner_name)
            out += next(blanks)
        out += b"}" if is_object else b"]"
    else:
        out += json.dumps(tree).encode()
    places[path] = name, (start, len(out) - start)


@pytest.mark.full
@given(
    OBJECTS,
    st.lists(st.sampled_from([b"", b"", b" ", b"\n\t"]), min_size=1, max_size=9),
    st.lists(st.one_of(KEYS, st.integers(0, 3)), max_size=4),
)
@settings(max_examples=times(500), deadline=None)
def test_places_are_those_of_the_values(tree: Tree, blanks: list[bytes], missing: list[Step]) -> None:
    out = bytearray(blanks[0])
    places: dict[Path, tuple[tuple[int, int] | None, tuple[int, int]]] = {}
    write(tree, (), cycle(blanks), out, places)
    data = bytes(out + blanks[-1])
    for path, (name, value) in places.items():
        assert parse_places(data).place_of(path=path) == value
        assert parse_places(data).place_of(of_key=True, path=path) == (name or value)
        elsewhere = (*path, *missing)
        while elsewhere not in places:
            elsewhere = elsewhere[:-1]
        expected = places[elsewhere][1]
        assert parse_places(data).place_of(path=(*path, *missing)) == expected
        if elsewhere != (*path, *missing):
            assert parse_places(data).place_of(of_key=True, path=(*path, *missing)) == expected


@pytest.mark.full
def test_places_in_what_is_nested_deeply_or_long() -> None:
    depth = 5000
    data = b'{"a":' * depth + b"1" + b"}" * depth
    assert parse_places(data).place_of(path=("a",)) == (5, len(data) - 6)
    assert parse_places(data).place_of(of_key=True, path=("a", "b")) == (5, len(data) - 6)
    data = b'{"a":"' + b"\\n" * 500_000 + b'","b":[' + b"1," * 300_000 + b"2]}"
    assert parse_places(data).place_of(path=("b", 300_000)) == (len(data) - 3, 1)
