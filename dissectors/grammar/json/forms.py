"""Forms of JSON messages, and numbers of items that depend on another field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Form = Literal["object", "list", "value"]
"""Form of the value with a message's fields."""


class OddWord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A word that is not specified, and stands for another value.

    Attributes:
        value: The value that it stands for.
        note: Sentence with which it is noted.
    """

    value: Annotated[str | int, Meta(extra={"is": "a word or a number"})]
    note: str


class SizeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of items of one field by the value of another.

    Attributes:
        by: Field whose value decides.
        of: Field that is a list.
        sizes: Numbers of items by value.
        otherwise: Number of items for any other value.
    """

    by: str
    of: str
    sizes: Mapping[str, int]
    otherwise: Annotated[int, Meta(ge=0)]

    def size(self, value: Mapping[str, Any]) -> int:
        """Return the required number of items."""
        return self.sizes.get(value[self.by], self.otherwise)

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Return True if an object has the required number of items."""
        return len(value[self.of]) == self.size(value)
