"""Expressions of protocol files: values, three-valued conditions, and the position of mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.filters import FilterError
from kiebitz.dissectors.protocol_file.expressions import Scope, compile_expression, compile_path
from kiebitz.dissectors.protocol_file.templates import sentence_of, value_words

GAME = {"turn": "alice", "squares": ["", "x", ""], "hand": ["A", "B", "A"], "phase": 2, "grid": {"5,7": "o"}}
TABLE = {"players": {"bob": {"points": 3}, "alice": {}}, "x": "shadowed", "phase": 1}
FIELDS = {"pips": 5, "name": "bob", "filled": False, "square": "3", "card": "A", "x": 7, "absent": None}
SCOPE = Scope(FIELDS, "bob", (GAME, TABLE))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("who", "bob"),
        ("pips", 5),
        ("-2", -2),
        ("'a b'", "a b"),
        ("true", True),
        ("who == turn", False),
        ("who != turn", True),
        ("pips in {5, 6}", True),
        ("pips in {turn, 6}", False),
        ("name in {who}", True),
        ("pips > 4 and pips <= 5", True),
        ("pips - 1 + 2", 6),
        ("pips-1", 4),
        ("square - 1", 2),
        ("pips * 2 + x", 17),
        ("x + pips * 2", 17),
        ("(x - pips) * 2 % 3", 1),
        ("x // 2", 3),
        ("-7 // 2", -4),
        ("square * 2", 6),
        ("x // 0", None),
        ("x % phase.y", None),
        ("turn * 2", None),
        ("min(x, pips, 9)", 5),
        ("max(players.bob)", 3),
        ("max(hand)", "B"),
        ("min(name, who, 'a')", "a"),
        ("max(name, pips)", None),
        ("max(x, nobody)", None),
        ("abs(pips - x)", 2),
        ("known(pips) and known(absent)", None),
        ("players.{name}.points * x", 21),
        ("grid.{pips},{x}", "o"),
        ("grid.{pips}-{x}", None),
        ("x in {min(x, 9), 1}", True),
        ("players.{who}.points + pips", 8),
        ("players.bob.points", 3),
        ('players."bob".points', 3),
        ("not filled", True),
        ("!filled && pips == 5", True),
        ("squares[square - 1] == ''", True),
        ("squares.1", "x"),
        ("squares[7]", None),
        ("hand.#", 3),
        ("hand + card", ["A", "B", "A", "A"]),
        ("hand - card", ["B", "A"]),
        ("hand - 'C'", None),
        ("card in hand", True),
        ("hand contains 'C'", False),
        ("'lic' in turn", True),
        ("turn contains 'lic'", True),
        ("hand == 'B'", True),
        ("name matches '^b'", True),
        ("name + ',' + pips", "bob,5"),
        ("x", 7),
        ("state.x", "shadowed"),
        ("state.phase", 2),
        ("filled == 0", False),
        ("pips == 5.0", True),
        ("pips == '5'", False),
        # What is not known is neither true nor false.
        ("unknown", None),
        ("absent", None),
        ("not unknown", None),
        ("unknown == 1", None),
        ("unknown + 1", None),
        ("pips + true", None),
        ("pips < 'a'", None),
        ("players.eve.points == 3", None),
        ("'eve' in players", None),
        ("who in players", True),
        ("pips in {unknown, 6}", None),
        ("pips in {unknown, 5}", True),
        ("pips == 5 || unknown", True),
        ("pips == 5 && unknown", None),
        ("pips == 4 && unknown", False),
        ("1000000000000000 + pips", None),
    ],
)
def test_values(text: str, value: Any) -> None:
    found = compile_expression(text).evaluate(SCOPE)
    assert (found, type(found)) == (value, type(value))


def test_what_is_not_in_an_unknown_object_is_absent_if_the_scope_is_lenient() -> None:
    scope = Scope(FIELDS, "bob", (GAME, TABLE), lenient=True)
    for text in ("'eve' in players", "card in unknown", "not (unknown contains card) == false"):
        assert compile_expression(text).evaluate(scope) is False


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("who ==", 6, "ends too early"),
        ("who = turn", 4, "alone is not an operator"),
        ("who == turn)", 11, 'no "("'),
        ("pips in {5", 10, 'expected "," or "}"'),
        ("pips pips", 5, "expected an operator"),
        ("name matches turn", 13, "takes text in quotes"),
        ("name matches '('", 13, "not a regular expression"),
        ("a.1.5e3", 2, "index"),
        ("(" * 40 + "a" + ")" * 40, 30, "parentheses"),
        ("a" + "+1" * 600, 999, "conditions"),
        ("a." * 5000 + "aa", 10_000, "characters long"),
    ],
)
def test_mistakes_have_a_position(text: str, position: int, message: str) -> None:
    with pytest.raises(FilterError, match=message.replace("(", r"\(")) as caught:
        compile_expression(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("who == turn", "alice"),
        ("turn == who", "alice"),
        ("pips == 5 && who == turn", "alice"),
        ("squares[square - 2] == ''", "x"),
        ("pips in {1, 2}", [1, 2]),
        ("name in hand", ["A", "B", "A"]),
        ("not squares[1]", "x"),
    ],
)
def test_known_is_the_other_side_of_the_comparison(text: str, known: Any) -> None:
    assert compile_expression(text).known(SCOPE) == known


def test_paths_have_computed_steps() -> None:
    steps = compile_path("players.{who}.cards[pips - 1]")
    assert [step(SCOPE) if callable(step) else step for step in steps] == ["players", "bob", "cards", 4]
    with pytest.raises(FilterError, match="no path"):
        compile_path("pips + 1")


def test_sentences_are_templates_of_single_words() -> None:
    sentence = sentence_of("{who}: {{{players.{who}.points + 1}}} of {__class__.x} {before}")
    assert sentence.template == "{who}: {{{players_who_points_1}}} of {class___x} {before_}"
    values = sentence.evaluate(SCOPE)
    assert sentence.fill(lambda word: value_words(values[word])) == "bob: {4} of ? ?"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(
        [
            "a + b",
            "a - b",
            "a < b",
            "a == b",
            "a in b",
            "a contains b",
            "a.{b}",
            "a[b]",
            "a.#",
            "a in {b, c}",
            "not a",
        ]
    ),
    st.fixed_dictionaries({"a": JSON, "b": JSON, "c": JSON}),
    st.booleans(),
)
def test_no_values_raise(text: str, values: dict[str, Any], lenient: bool) -> None:
    compiled = compile_expression(text)
    scope = Scope({}, None, (values,), lenient=lenient)
    value_words(compiled.evaluate(scope))
    compiled.holds(scope)
    compiled.known(scope)
