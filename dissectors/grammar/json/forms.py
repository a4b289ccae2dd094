"""Forms of JSON messages, and numbers of items that depend on another field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Form = Literal["object", "list", "value"]
"""Form of the value with a message's fields."""


class OddWord(NamedTuple):
    """The value that an unspecified word stands for, and the note on it."""

    value: str | int
    note: str


class SizeRule(NamedTuple):
    """The number of items of the field `of`: `sizes` by the value of the field `by`, or else `otherwise`."""

    by: str
    of: str
    sizes: Mapping[str, int]
    otherwise: int

    def size(self, value: Mapping[str, Any]) -> int:
        """Return the required number of items."""
        return self.sizes.get(value[self.by], self.otherwise)

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Return True if an object has the required number of items."""
        return len(value[self.of]) == self.size(value)
