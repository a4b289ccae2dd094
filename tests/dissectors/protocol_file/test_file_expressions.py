"""Expressions of protocol files: values, three-valued conditions, and the position of mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snapshots import DATA, as_bytes, check

from kiebitz.dissectors.filters import FilterError
from kiebitz.dissectors.protocol_file.expressions import Scope, compile_expression, compile_path
from kiebitz.dissectors.protocol_file.templates import sentence_of, value_words

GAME = {"turn": "alice", "squares": ["", "x", ""], "hand": ["A", "B", "A"], "phase": 2, "grid": {"5,7": "o"}}
TABLE = {"players": {"bob": {"points": 3}, "alice": {}}, "x": "shadowed", "phase": 1}
FIELDS = {"pips": 5, "name": "bob", "filled": False, "square": "3", "card": "A", "x": 7, "absent": None}
SCOPE = Scope(FIELDS, "bob", (GAME, TABLE))


EXPRESSIONS = DATA / "protocol_files" / "expressions.txt"


def evaluated(text: str) -> str:
    """Return what an expression means, in words."""
    try:
        compiled = compile_expression(text)
    except FilterError as error:
        return f"mistake at {error.position}: {error.message}"
    strict, lenient = (
        json.dumps(compiled.evaluate(Scope(FIELDS, "bob", (GAME, TABLE), lenient=is_lenient)))
        for is_lenient in (False, True)
    )
    known = compiled.known(SCOPE)
    return ", ".join(
        [
            strict.replace("null", "unknown"),
            *([f"absent {lenient}"] if lenient != strict else []),
            *([f"known {json.dumps(known)}"] if known is not None else []),
        ]
    )


def test_values() -> None:
    lines = EXPRESSIONS.read_text().splitlines()
    for number, line in enumerate(lines):
        text, arrow, _ = line.partition(" →")
        if arrow and number > 3:
            lines[number] = f"{text} → {evaluated(as_bytes(text).decode())}"
    check(EXPRESSIONS, "\n".join(lines) + "\n")


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
            *("a + b", "a - b", "a < b", "a == b", "a in b", "a contains b", "a.{b}", "a[b]", "a.#"),
            *("a in {b, c}", "not a"),
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
