"""The tests of single values, and of the values within a JSON value.

The predicate and the SQL function for JSON columns both end here. SQLite's own JSON functions would not do:
up to 3.40 at least they cut a text at an escaped NUL, and they make a float of an integer beyond 64 bits, so
that a hostile peer could make a stored row and the live one differ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

import msgspec

from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.filters.expressions import PATIENCE_S, TookTooLong, searching
from kiebitz.dissectors.filters.syntax import Passage, Step, Value

Question = Literal["has", "in", "<", "<=", ">", ">=", "contains", "matches"]

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Test(msgspec.Struct, frozen=True):
    """A question about a value, with one value to compare, any number for `in`, none for `has`.

    The value of `matches`, a pattern, has its `passage` in the filter, where an error points.
    """

    question: Question
    values: tuple[Value, ...] = ()
    passage: Passage | None = None


def holds(test: Test) -> Callable[[object], bool]:
    """Return the test as a function of one scalar. Different types are neither equal nor ordered.

    The function raises FilterError if searching a text for a pattern takes too long.
    """
    if test.question == "has":
        return lambda value: True
    if test.question == "in":
        wanted = {(_type(value), value) for value in test.values}
        # What has no type, a list in a list, cannot be looked for in a set.
        return lambda value: (kind := _type(value)) is not None and (kind, value) in wanted
    constant = test.values[0]
    if test.question == "contains":
        return lambda value: isinstance(value, str) and cast(str, constant) in value
    if test.question == "matches":
        return _matches(test)
    ordered, wanted_type = _ORDERS[test.question], _type(constant)
    return lambda value: _type(value) == wanted_type and ordered(value, constant)


def holds_inside(test: Test, path: tuple[Step, ...]) -> Callable[[object], bool]:
    """Return the test as a function of a JSON object: True if it holds for any value at the end of the path.

    A list counts as its elements and an object as its keys; null counts as absent. The function raises
    FilterError as that of `holds` does.
    """
    if test.question == "has":
        return lambda whole: bool(_at_end(whole, path))
    scalar_holds = holds(test)

    def any_holds(whole: object) -> bool:
        for value in _at_end(whole, path):
            # A list or an object counts as its contents; nested lists are not searched.
            if isinstance(value, (list, tuple, dict)):
                if any(map(scalar_holds, value)):
                    return True
            elif scalar_holds(value):
                return True
        return False

    return any_holds


def texts_in(whole: object) -> Iterator[str]:
    """Yield all texts in a JSON value, at any depth, including the keys of its objects."""
    waiting = [whole]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, (list, tuple)):
            waiting += value


def _matches(test: Test) -> Callable[[object], bool]:
    search = searching(cast(str, test.values[0]))

    def matches(value: object) -> bool:
        try:
            return isinstance(value, str) and search(value)
        except TookTooLong:
            assert test.passage is not None
            sentence = f'"matches" took longer than {PATIENCE_S:g} s on one text; simplify the pattern'
            raise FilterError(sentence, *test.passage) from None

    return matches


def _type(value: object) -> str | None:
    """Return the type of a scalar; None for values that equal nothing.

    `true` is no number, and 1 equals 1.0.
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, (int, float)) else None


def _at_end(whole: object, path: tuple[Step, ...]) -> list[object]:
    """Return the values at the end of a path. A key is looked up in each element of a list."""
    found = [whole]
    for step in path:
        inside: list[object] = []
        for value in found:
            if isinstance(step, int):
                if isinstance(value, (list, tuple)) and step < len(value):
                    inside.append(value[step])
            elif isinstance(value, dict):
                inside.append(value.get(step))
            elif isinstance(value, (list, tuple)):
                inside.extend(element.get(step) for element in value if isinstance(element, dict))
        found = inside
    return [value for value in found if value is not None]
