"""FIELD=VALUE as people write it: what it names, and what the value may be."""

from __future__ import annotations

import string
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kiebitz.dissectors.editing.assignment_parser import AssignmentError, parse_assignments, split_name
from kiebitz.dissectors.editing.field_assignment import Target
from kiebitz.dissectors.filters.fields import known_name
from kiebitz.dissectors.filters.syntax import Step
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN


@pytest.mark.parametrize(
    ("text", "steps", "values"),
    [
        ("dice=5,4", ("dice",), ["5,4"]),
        ("dice='5,4'", ("dice",), ["5,4"]),
        ("maexchen.dice=5,4", ("maexchen", "dice"), ["5,4"]),
        ("Wurf[0]=6", ("Wurf", 0), [6, "6"]),
        ("Wurf=[6, 5]", ("Wurf",), [[6, 5]]),
        ("a.b[10].c=true", ("a", "b", 10, "c"), [True, "true"]),
        ('a."Längste Handelsstraße"=null', ("a", "Längste Handelsstraße"), [None, "null"]),
        ("x=", ("x",), [""]),
        ('x=""', ("x",), [""]),
        ('x="5"', ("x",), ["5"]),
        ('x="say \\"so\\" \\u00fc\\n"', ("x",), ['say "so" ü\n']),
        ("x='a=b'", ("x",), ["a=b"]),
        ("x=a=b", ("x",), ["a=b"]),
        ('x={"a": [1, "b c"]}', ("x",), [{"a": [1, "b c"]}]),
        ("x=-1.5", ("x",), [-1.5, "-1.5"]),
        ("x=NaN", ("x",), ["NaN"]),
        ("x=a'b", ("x",), ["a'b"]),
    ],
)
def test_an_assignment_is_read(text: str, steps: tuple[Step, ...], values: list[Any]) -> None:
    (found,) = parse_assignments(f"  {text} ")
    assert (found.text, found.steps, [*found.values]) == (text, steps, values)
    # And among others.
    texts = ["before=1", text, 'after="2 3"']
    assert [one.text for one in parse_assignments("  ".join(texts))] == texts


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("PLAYER LOST names=bob reason=MIA", "PLAYER LOST", "names=bob reason=MIA"),
        ("+LOGI actualname=a", "+LOGI", "actualname=a"),
        ("LOGO", "LOGO", ""),
        ("Spiel starten ", "Spiel starten", ""),
        ("dice=5,4", "", "dice=5,4"),
        ("", "", ""),
    ],
)
def test_a_name_ends_where_the_first_assignment_begins(text: str, name: str, rest: str) -> None:
    assert split_name(text) == (name, rest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=4), parts, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.text(string.ascii_letters + "ü ß-\"'\\.", min_size=1, max_size=6), JSON, min_size=1)
)
@example({"a": "\b\f\\b"})
def test_a_message_s_fields_are_read_as_written(values: dict[str, Any]) -> None:
    for name, value in values.items():
        target = Target("p", "M", (), values)
        # A name that is no keyword must follow a dot.
        (found,) = parse_assignments(f"p.{target.notation((name,))}")
        assert known_name(found.steps[1], values) is not None
        assert to_json(value) in map(to_json, found.values)


@given(st.lists(st.sampled_from([*"ab=\"'[]{}.,0 \\!&|()\nü\0", "and", "dice=", "dice[0]="])).map("".join))
def test_no_text_breaks_the_reading(text: str) -> None:
    name, rest = split_name(text)
    assert text.strip().startswith(name)
    assert text.endswith(rest)
    target = Target("p", "M", MAEXCHEN.grammar.rows_named("s2c", "ROLLED"), {"dice": "3,3"})
    with suppress(AssignmentError):
        found = parse_assignments(text)
        assert all(one.text in text for one in found)
        assert all(reading["dice"] is not None or "null" in text for reading in target.readings(found))


def test_many_values_that_could_be_meant_in_many_ways_are_bounded() -> None:
    row = MAEXCHEN.grammar.rows_named("s2c", "ROLLED")
    values = {"dice": {str(number): 0 for number in range(60)}}
    target = Target("maexchen", "ROLLED", row, values)
    given = parse_assignments(" ".join(f'dice."{number}"=1' for number in range(60)))
    assert 1000 < sum(1 for _ in target.readings(given)) < 10_000
