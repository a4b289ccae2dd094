"""Column types inferred from JSON values, and the conversion of the values to them.

A typed table has one type per column. Texts and numbers that occur in the same place become texts. Where
objects, lists and scalars alternate, the type is an object with a member for each form: `value`, `list`,
`object`; also where a grammar says that shapes vary, even if only one form occurred. An object whose keys are
names, not words of the protocol, is a map. Deeply nested values, and objects with very many keys, become JSON
text, so types are bounded whatever a peer sends. The order of the values does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

import msgspec

from kiebitz.dissectors.escaping import encodable
from kiebitz.dissectors.grammar.grammar import to_json

Scalar = Literal["truth", "whole", "number", "text"]

_MAX_KEYS = 200
"""Maximum number of an object's keys; with more it becomes JSON text."""

_MAX_DEPTH = 8

_INT64 = range(-(1 << 63), 1 << 63)
"""The integers that fit into 64 bits."""

Path = tuple[str, ...]
"""The keys that lead to a value from the outside; an empty one leads into a list."""


class GrammarHints(NamedTuple):
    """The grammar's knowledge of the values in one place.

    `has_open_keys` returns True if the keys of an object at a path are names. `mixed` has the paths whose
    shape varies.
    """

    has_open_keys: Callable[[Path, dict[str, Any]], bool]
    mixed: Collection[str]


class Shape(msgspec.Struct):
    """The inferred type in one place: kind of scalars, type of list elements, types of members.

    `members` maps keys to types; if it `is_map`, the key `""` has the type of all values. If it `is_json`,
    any value becomes JSON text. If it `is_mixed`, other sessions may have other forms there.
    """

    scalar: Scalar | None = None
    part: Shape | None = None
    members: dict[str, Shape] | None = None
    is_map: bool = False
    is_json: bool = False
    is_mixed: bool = False

    @property
    def has_forms(self) -> bool:
        """True if values are wrapped in an object with a member for each form."""
        return not self.is_json and (self.is_mixed or len(self.forms) > 1)

    @property
    def forms(self) -> list[str]:
        """The forms that occurred: `value`, `list`, `object`; objects without keys do not count."""
        if self.is_json:
            return ["value"]
        seen = {"value": self.scalar, "list": self.part, "object": self.members}
        return [form for form, inner in seen.items() if inner is not None]

    def take(self, value: Any, hints: GrammarHints, path: Path = ()) -> None:
        """Extend the type so that it includes a value."""
        if value is None or self.is_json:
            return
        self.is_mixed = self.is_mixed or ".".join(filter(None, path)) in hints.mixed
        if isinstance(value, dict | list) and len(path) >= _MAX_DEPTH:
            self.is_json = True
        elif isinstance(value, dict):
            self._take_object(value, hints, path)
        elif isinstance(value, list):
            self.part = self.part or Shape()
            for part in value:
                # Lists in lists count as deeper, too.
                self.part.take(part, hints, (*path, ""))
        else:
            self.scalar = _common(self.scalar, _scalar(value))

    def _take_object(self, value: dict[str, Any], hints: GrammarHints, path: Path) -> None:
        if not value:
            return
        if self.members is None:
            self.members, self.is_map = {}, hints.has_open_keys(path, value)
        for key, inner in value.items():
            name = "" if self.is_map else key
            self.members.setdefault(name, Shape()).take(inner, hints, (*path, key))
        if len(self.members) > _MAX_KEYS:
            self.is_json = True

    def fit(self, value: Any) -> Any:
        """Return a value that was taken, converted to this type; a map becomes a list of pairs."""
        if value is None:
            return None
        if self.is_json:
            return to_json(value)
        form = "object" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"
        fitted = self._fit(value)
        if form not in self.forms:
            return None
        return {form: fitted} if self.has_forms else fitted

    def _fit(self, value: Any) -> Any:
        if isinstance(value, list):
            assert self.part is not None
            return [self.part.fit(part) for part in value]
        if isinstance(value, dict):
            members = self.members or {}
            if self.is_map:
                return [(encodable(key), members[""].fit(inner)) for key, inner in value.items()]
            return {key: members[key].fit(inner) for key, inner in value.items()}
        if self.scalar != "text":
            return value
        return encodable(value) if isinstance(value, str) else to_json(value)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int) and value in _INT64:
        return "whole"
    return "number" if isinstance(value, float) else "text"


def _common(one: Scalar | None, other: Scalar) -> Scalar:
    """Return the kind that includes both."""
    if one is None or one == other:
        return other
    return "number" if {one, other} == {"whole", "number"} else "text"
