"""Patterns of protocol files: the language of Python's `re`, in linear time, within the budget of a file."""

from __future__ import annotations

import random
import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.dissectors.game.table import LimitError
from kiebitz.dissectors.protocol_file import patterns
from kiebitz.dissectors.protocol_file.patterns import matcher, one_budget

ATOMS = [
    *("a", "b", "A", "é", "ß", ".", "\\d", "\\w", "\\s", "\\W", "[ab]", "[^a]", "[a-cX]", "[\\d_]"),
    *("i", "\n"),
]
PLACES = ["^", "$", "\\A", "\\Z", "\\b", "\\B"]
REPEATS = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    kind = draw(st.sampled_from(["atom", "place", "all", "any", "repeat"] if depth else ["atom"]))
    if kind == "atom":
        return draw(st.sampled_from(ATOMS))
    if kind == "place":
        return draw(st.sampled_from(PLACES))
    inner = expressions(depth - 1)
    if kind == "repeat":
        return f"(?:{draw(inner)}){draw(st.sampled_from(REPEATS))}"
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    return "".join(parts) if kind == "all" else f"({'|'.join(parts)})"


@settings(max_examples=times(3000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["", "", "(?i)", "(?m)", "(?s)", "(?a)"]),
    expressions(),
    st.lists(st.text("abAcXéß_ 1i\n-", max_size=6), min_size=1, max_size=5),
)
def test_it_matches_what_re_matches(flags: str, expression: str, texts: list[str]) -> None:
    pattern = flags + expression
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(pattern)
    whole, contained = matcher(pattern), matcher(pattern, whole=False)
    for text in texts:
        assert whole(text) == (re.compile(f"{flags}(?:{expression})\\Z").match(text) is not None)
        assert contained(text) == (expected.search(text) is not None)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "back references"),
        ("(a)?(?(1)b|c)", "back references"),
        ("(", "not a regular expression"),
        ("a{1001}", "over 1,000 characters"),
        ("(a{40}){40}", "over 1,000 characters"),
        ("a" * 501, "at most 500"),
        ("(" * 240 + "a" + ")" * 240, "nested too deeply"),
    ],
)
def test_what_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        matcher(pattern)


SLOW = ["(a|a)*b", "(a*)*b", "(a?){30}a{30}b", "(a|b|ab)*c", r"(\w|\w)*[0-9]", "(.*)(.*)(.*)(.*)x"]


@pytest.mark.parametrize("pattern", SLOW)
def test_steps_are_linear_in_the_text(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def charge(_self: patterns.Budget, number: int) -> None:
        nonlocal steps
        steps += number

    monkeypatch.setattr(patterns.Budget, "charge", charge)
    found = []
    for length in (1000, 2000, 4000):
        steps = 0
        assert not matcher(pattern)("a" * length)
        found.append(steps)
    assert found[2] <= 4 * found[0]


EXPLODING = "(a|b)*a(a|b){200}"
"""It has 2 ** 200 deterministic states."""


def test_a_budget_ends_what_takes_too_long() -> None:
    with one_budget():
        first, second = matcher(EXPLODING), matcher("(b|a)*b(a|b){200}")
    draw = random.Random(1)
    text = "".join(draw.choice("ab") for _ in range(20_000))
    with pytest.raises(LimitError):
        first(text)
    with pytest.raises(LimitError):
        second(text)
    # Another file has a budget of its own.
    assert matcher("[ab]*")(text)


def test_the_patterns_of_a_file_have_one_size() -> None:
    with one_budget():
        for number in range(21):
            matcher(f"a{{900}}{number}")
            matcher("b{90}")
        matcher("c{900}")
        with pytest.raises(ValueError, match="the patterns of this file have over 20,000 characters"):
            matcher("d{900}")
