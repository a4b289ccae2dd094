"""Values in `put` and `result` of a protocol file: expressions, and lists and tables of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kiebitz.dissectors.protocol_file.expressions import Compiled, Scope


class Composed:
    """A list or table of the file with expressions in it, ready to be evaluated."""

    def __init__(self, value: Any) -> None:
        self._value = _composed(value)

    def evaluate(self, scope: Scope) -> Any:
        """Return the value in a scope; an unknown element of a list is None, of a table absent."""
        return _evaluated(self._value, scope)


Value = Compiled | Composed


def expressions_in(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the expressions in a value of a file, and their paths; an empty text is a text."""
    if isinstance(value, str):
        if value.strip():
            yield path, value
    elif isinstance(value, dict | list):
        for step, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from expressions_in(part, (*path, step))


def compile_value(value: Any) -> Value | None:
    """Return a value of a file with expressions in it, ready to be evaluated; None if there are none.

    Raises:
        FilterError: A text is no expression.
    """
    if not any(expressions_in(value)):
        return None
    return Compiled(value) if isinstance(value, str) else Composed(value)


def _composed(value: Any) -> Any:
    if isinstance(value, str):
        return Compiled(value) if value.strip() else value
    if isinstance(value, list):
        return [_composed(part) for part in value]
    return {key: _composed(part) for key, part in value.items()} if isinstance(value, dict) else value


def _evaluated(value: Any, scope: Scope) -> Any:
    if isinstance(value, Compiled):
        return value.evaluate(scope)
    if isinstance(value, list):
        return [_evaluated(part, scope) for part in value]
    if isinstance(value, dict):
        parts = {key: _evaluated(part, scope) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not None}
    return value
