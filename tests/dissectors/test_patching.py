"""Frames with other values in them: they say what was asked for, and are spelt as they were in all else."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from bijections import back, onwards
from conversation_files import Block, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import CASES, each_protocol
from single_direction import is_one_frame
from snapshots import DATA, as_bytes, as_text
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import differences, replaced, to_json, value_at
from kiebitz.dissectors.model import DIRECTIONS, Direction


@pytest.mark.parametrize(
    "block", blocks(DATA / "rewritten_messages.txt").values(), ids=lambda block: block.title
)
def test_only_what_is_to_be_other_bytes_is(block: Block) -> None:
    protocol, word, others = block.title.split(" ", 2)
    (dissector,) = (each for each in CASES if each.protocol == protocol)
    direction: Direction = "c2s" if word == "c2s" else "s2c"
    (before,) = block.steps
    decoded = dissector.codec.decode(as_bytes(before), direction)
    assert decoded.row is not None
    fields = decoded.fields | json.loads(others)
    assert fields != decoded.fields
    written = dissector.codec.rewrite(as_bytes(before), direction, fields)
    check(block, f"{before}\n    {as_text(written)}")
    assert dissector.codec.decode(written, direction).fields == fields


@each_protocol
def test_other_names_go_into_every_case_and_out_again(dissector: Dissector) -> None:
    for case in CASES[dissector]:
        before = dissector.codec.decode(case.data, case.direction)
        if before.row is None or "2147483647" in before.fields_json:
            # Nothing names anything there, or the next number would be too large.
            continue
        fields = before.row.renamed(before.fields, onwards)
        other = dissector.codec.rewrite(case.data, case.direction, fields)
        after = dissector.codec.decode(other, case.direction)
        assert after.row is not None
        assert (after.row, after.fields) == (before.row, fields)
        assert after.valid >= before.valid
        first = dissector.codec.rewrite(other, case.direction, after.row.renamed(after.fields, back))
        assert dissector.codec.decode(first, case.direction).fields == before.fields


# Any fields, for any frame.

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["", "\n", "\r", ";", ",", " ", '"', "%", "§", "Â§", "<", "&", "!END", "ü", "ž", "\0"]),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=6), parts, max_size=4),
    max_leaves=5,
)


@st.composite
def others(draw: st.DrawFn, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with something else somewhere in them, or something more, or less."""
    new = deepcopy(fields)
    place: Any = new
    while True:
        steps = [*place] if isinstance(place, dict) else [*range(len(place))]
        if not steps or draw(st.integers(0, 9)) == 0:
            if isinstance(place, dict):
                place[draw(st.text(max_size=4))] = draw(JSON)
            else:
                place.append(draw(JSON))
            return new
        step = draw(st.sampled_from(steps))
        if isinstance(place[step], dict | list) and draw(st.integers(0, 3)):
            place = place[step]
        elif draw(st.integers(0, 5)):
            place[step] = draw(JSON)
            return new
        else:
            del place[step]
            return new


def check_rewriting(dissector: Dissector, direction: Direction, frame: bytes, fields: dict[str, Any]) -> None:
    before = dissector.codec.decode(frame, direction)
    try:
        written = dissector.codec.rewrite(frame, direction, fields)
    except ValueError:
        return
    after = dissector.codec.decode(written, direction)
    assert before.row is not None
    assert after.row is not None
    assert after.row.name == before.row.name
    assert to_json(after.fields) == to_json(fields)
    assert after.valid >= before.valid
    if is_one_frame(dissector, direction, frame):
        assert is_one_frame(dissector, direction, written)


@pytest.mark.full(but=1)
@each_protocol
@settings(max_examples=times(300, 8))
@given(data=st.data())
def test_a_frame_decodes_to_its_values_or_is_not_written(dissector: Dissector, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES[dissector]))
    fields = data.draw(others(dissector.codec.decode(case.data, case.direction).fields))
    check_rewriting(dissector, case.direction, case.data, fields)


@pytest.mark.full(but=1)
@each_protocol
@settings(max_examples=times(300))
@given(data=st.data())
def test_no_bytes_break_the_rewriting(dissector: Dissector, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(CASES[dissector])).data
    start, end = sorted((data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))))
    frame = whole[:start] + data.draw(st.binary(max_size=8)) + whole[end:]
    for direction in DIRECTIONS:
        fields = dissector.codec.decode(frame, direction).fields
        if dissector.codec.decode(frame, direction).row is not None:
            assert dissector.codec.rewrite(frame, direction, fields) == frame
        check_rewriting(dissector, direction, frame, data.draw(others(fields)))


# The pieces.


@given(JSON, JSON)
def test_only_differences_are_reported(before: Any, after: Any) -> None:
    merged = deepcopy(before)
    for path in differences(before, after):
        assert to_json(value_at(before, path)) != to_json(value_at(after, path))
        if not path:
            merged = after
        else:
            value_at(merged, path[:-1])[path[-1]] = value_at(after, path)
    assert to_json(merged) == to_json(after)


def test_differences_are_as_small_as_can_be() -> None:
    before = {"a": [1, {"b": 2, "c": [3]}], "d": 1, "e": {"f": 1}}
    after = {"a": [1, {"b": 4, "c": [3, 4]}], "d": True, "e": {"g": 1}}
    assert [*differences(before, after)] == [("a", 1, "b"), ("a", 1, "c"), ("d",), ("e",)]


def test_bytes_are_put_in_place_of_others() -> None:
    assert replaced(b"abcdef", {(4, 1): b"", (0, 2): b"AB!", (3, 0): b"-"}) == b"AB!c-df"
    assert replaced(b"abc", {}) == b"abc"
