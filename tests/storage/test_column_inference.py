from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.storage.export.parquet import GrammarHints, Shape

PLAIN = GrammarHints(lambda path, value: False, ())


def _shape(values: list[Any], place: GrammarHints = PLAIN) -> Shape:
    shape = Shape()
    for value in values:
        shape.take(value, place)
    return shape


@pytest.mark.parametrize(
    ("values", "fitted"),
    [
        ([1, 2], [1, 2]),
        ([1, None, 1.5], [1, None, 1.5]),
        ([1, "a", True], ["1", "a", "true"]),
        ([1 << 63], [str(1 << 63)]),
        (["\ud800"], ["\\ud800"]),
        ([[1], [], None], [[1], [], None]),
        ([{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
        ([{"a": 1}, 5, [6]], [{"object": {"a": 1}}, {"value": 5}, {"list": [6]}]),
        ([{"a": 1}, {"a": {"b": 2}}], [{"a": {"value": 1}}, {"a": {"object": {"b": 2}}}]),
    ],
)
def test_values_fit_into_the_shape_of_all(values: list[Any], fitted: list[Any]) -> None:
    assert [_shape(values).fit(value) for value in values] == fitted


def test_keys_that_are_names_make_a_map() -> None:
    place = GrammarHints(lambda path, value: path == ("scores",), ())
    scores = {"scores": {"alice": 1, "bob": 2}}
    assert _shape([scores], place).fit(scores) == {"scores": [("alice", 1), ("bob", 2)]}


def test_mixed_productions_have_forms_even_with_a_single_example() -> None:
    place = GrammarHints(lambda path, value: False, ("board.field",))
    value = {"board": [{"field": "a"}]}
    assert _shape([value], place).fit(value) == {"board": [{"field": {"value": "a"}}]}


def test_a_shape_is_bounded() -> None:
    wide = {str(number): number for number in range(1000)}
    assert json.loads(_shape([wide]).fit(wide)) == wide
    deep: Any = 1
    for _ in range(50):
        deep = {"a": deep}
    text = json.dumps(_shape([deep]).fit(deep))
    assert "\\" in text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_what_came_does_not_matter(values: list[Any], random: Any) -> None:
    other = values.copy()
    random.shuffle(other)
    one, another = _shape(values), _shape(other)
    assert [one.fit(value) for value in values] == [another.fit(value) for value in values]
