"""Values in expressions of protocol files: steps into them, sums, and three-valued comparisons.

None is an unknown value, and the result of a comparison with one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

COUNT = "#"
"""Step of a path to the number of elements of a list or object."""

MAX_NUMBER = 10**15
"""Largest absolute value of a sum."""

MAX_TEXT = 1000
"""Maximum length of a text that is put together, in characters."""

MAX_ITEMS = 1000
"""Maximum number of elements of a list that is put together."""


_SEVERAL = (list, tuple, dict)


def truth(value: Any) -> bool | None:
    """Return a value as a condition: None is unknown; false, 0, and empty texts and lists are false."""
    return None if value is None else bool(value)


def value_in(container: Any, step: Any) -> Any:
    """Return the value at a step of a path, None if there is none.

    A list has its elements' values for a key, and `#` is the number of elements.
    """
    if step is None or isinstance(step, _SEVERAL):
        return None
    if isinstance(container, dict):
        found = container.get(step_text(step))
        return len(container) if found is None and step == COUNT else found
    if not isinstance(container, list | tuple):
        return None
    if step == COUNT:
        return len(container)
    number = index(step)
    if number is not None:
        return container[number] if number < len(container) else None
    values = [element.get(step_text(step)) for element in container if isinstance(element, dict)]
    return [value for value in values if value is not None] or None


def index(step: Any) -> int | None:
    """Return a step as the index of a list, None if it is none."""
    if isinstance(step, bool):
        return None
    if isinstance(step, int):
        return step if step >= 0 else None
    if isinstance(step, str) and step.isascii() and step.isdigit() and len(step) < 7:
        return int(step)
    return None


def step_text(value: Any) -> str:
    """Return a value as a key of the state."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def plus(left: Any, right: Any) -> Any:
    """Return the sum of numbers, a list with another element or other elements, or joined texts."""
    if left is None or right is None:
        return None
    if _is_number(left) and _is_number(right):
        return _limited(left + right)
    if isinstance(left, list | tuple):
        joined = [*left, *right] if isinstance(right, list | tuple) else [*left, right]
        return joined if len(joined) <= MAX_ITEMS else None
    if isinstance(left, str) or isinstance(right, str):
        if isinstance(left, dict | list | tuple) or isinstance(right, dict | list | tuple):
            return None
        joined_text = step_text(left) + step_text(right)
        return joined_text if len(joined_text) <= MAX_TEXT else None
    return None


def minus(left: Any, right: Any) -> Any:
    """Return the difference of numbers, or a list without an element or other elements."""
    if left is None or right is None:
        return None
    numbers = _as_number(left), _as_number(right)
    if None not in numbers:
        return _limited(numbers[0] - numbers[1])
    if isinstance(left, list | tuple):
        rest = [*left]
        for item in right if isinstance(right, list | tuple) else [right]:
            if item not in rest:
                # Something was taken away that was not there: the list is not known.
                return None
            rest.remove(item)
        return rest
    return None


def times(left: Any, right: Any) -> Any:
    """Return the product of numbers."""
    return _of_numbers(operator.mul, left, right)


def quotient(left: Any, right: Any) -> Any:
    """Return the largest whole number that is not greater than the quotient of numbers."""
    return _of_numbers(operator.floordiv, left, right)


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder of a division of numbers, which has the sign of the divisor."""
    return _of_numbers(operator.mod, left, right)


def _of_numbers(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    one, other = _as_number(left), _as_number(right)
    if one is None or other is None or _limited(one) is None or _limited(other) is None:
        return None
    try:
        return _limited(operation(one, other))
    except ZeroDivisionError:
        return None


def extreme(choose: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    """Return the least or greatest of numbers or of texts, or of those in a single list or object."""
    if len(values) == 1 and isinstance(values[0], _SEVERAL):
        values = [*values[0].values()] if isinstance(values[0], dict) else [*values[0]]
    numbers = [_as_number(value) for value in values]
    if None not in numbers:
        return choose(numbers) if numbers else None
    return choose([*values]) if all(isinstance(value, str) for value in values) else None


def absolute(value: Any) -> Any:
    """Return a number without its sign."""
    number = _as_number(value)
    return None if number is None else abs(number)


def joined(parts: Sequence[Any]) -> Any:
    """Return a step of a path with these parts; if some are lists of one length, a list of such steps."""
    if any(part is None or isinstance(part, dict) for part in parts):
        return None
    lengths = {len(part) for part in parts if isinstance(part, list | tuple)}
    if len(lengths) > 1:
        return None
    return (
        [
            joined([part[number] if isinstance(part, list | tuple) else part for part in parts])
            for number in range(*lengths)
        ]
        if lengths
        else "".join(map(step_text, parts))
    )


def _as_number(value: Any) -> Any:
    """Return a number, or a text that is a whole number as one; None for any other value."""
    return value if _is_number(value) else index(value)


def _limited(number: float) -> float | None:
    return number if -MAX_NUMBER <= number <= MAX_NUMBER else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def equal(left: Any, right: Any) -> bool | None:
    """Compare as filters do: `true` is no number, and a list or object equals a scalar that is in it."""
    if left is None or right is None:
        return None
    if isinstance(left, _SEVERAL) != isinstance(right, _SEVERAL):
        several, single = (left, right) if isinstance(left, _SEVERAL) else (right, left)
        return any(_is_same(item, single) for item in several if not isinstance(item, _SEVERAL))
    return _is_same(left, right)


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    try:
        return bool(left == right)
    except RecursionError:
        return False


def contains(whole: Any, part: Any, absent: bool | None) -> bool | None:
    """Return True if a text contains a text, or a list an element, or an object a key.

    If a key is not in it, or nothing is known of the whole, the result is `absent`.
    """
    if whole is None or part is None:
        return None if part is None else absent
    if isinstance(whole, str):
        return part in whole if isinstance(part, str) else False
    if isinstance(whole, list | tuple):
        return any(_is_same(item, part) for item in whole)
    if isinstance(whole, dict):
        return True if step_text(part) in whole else absent
    return False


def ordered(order: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    """Compare numbers with numbers and texts with texts; all others have no order."""
    if (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return order(left, right)
    if isinstance(left, list | tuple) and not isinstance(right, list | tuple):
        found = [ordered(order, item, right) for item in left]
        return any(found) if None not in found else None
    return None
