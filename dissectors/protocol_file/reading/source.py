"""The text of a protocol file with its locations, and the mistakes found in it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from kiebitz.dissectors.protocol_file.reading.errors import Mistake
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.positions import Place, Step, TomlPlaces

Path = tuple[Step, ...]

MAX_MISTAKES = 100
"""Maximum number of mistakes that are reported of a file."""

MAX_EXPRESSIONS = 5_000
"""Maximum number of conditions, values, and names in sentences."""

MAX_NESTING = 20
"""Maximum depth of lists and tables in a value."""

_BRACES = re.compile(r"\{([^{}\[\]]*)[^{}]*\}")
"""A name in braces, such as `{player}` or `{player[id]}`."""

_INDEX = re.compile(r"at `\$\[(\d+)\]")

Kind = TypeVar("Kind", bound=msgspec.Struct)


class TooManyMistakes(Exception):
    """Ends the reading of a file."""


class Source:
    """The text of a file and its mistakes; a path consists of keys and indices.

    Attributes:
        clauses: Headings of clauses by their short names.
        mistakes: What makes the file invalid.
        remarks: What is probably a mistake.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._mistakes: dict[Mistake, None] = {}
        self._expressions = 0
        self.clauses: Mapping[str, str] = {}
        self.remarks: list[Mistake] = []

    @cached_property
    def places(self) -> TomlPlaces:
        """The locations, which a valid file need not have."""
        return TomlPlaces(self._text)

    @property
    def mistakes(self) -> list[Mistake]:
        """The mistakes, in order of the text."""
        return sorted(self._mistakes, key=lambda mistake: mistake.place)

    def wrong_key(self, path: Path, message: str) -> None:
        """Report a mistake in a key."""
        self._report(self.places.key(path), message)

    def wrong(self, path: Path, message: str, start: int = 0, end: int | None = None) -> None:
        """Report a mistake in a value, or in characters of a text."""
        self._report(self.places.value(path, start, end), message)

    def _report(self, place: Place, message: str) -> None:
        self._mistakes[Mistake(message, place)] = None
        if len(self._mistakes) >= MAX_MISTAKES:
            raise TooManyMistakes

    def remark(self, path: Path, message: str) -> None:
        """Report something about a key that is probably a mistake."""
        self.remarks.append(Mistake(message, self.places.key(path)))

    def remark_value(self, path: Path, message: str, start: int, end: int) -> None:
        """Report something about characters of a value that is probably a mistake."""
        self.remarks.append(Mistake(message, self.places.value(path, start, end)))

    def count_expression(self, path: Path) -> None:
        """Count an expression. Raises TooManyMistakes."""
        self._expressions += 1
        if self._expressions > MAX_EXPRESSIONS:
            self.wrong(path, f"more than {MAX_EXPRESSIONS:,} expressions")
            raise TooManyMistakes

    def names(self, path: Path, value: str | list[str], known: Collection[str]) -> tuple[str, ...]:
        """Return the names of messages; unknown ones are reported."""
        names = [value] if isinstance(value, str) and value else [*value]
        for number, name in enumerate(names):
            if name not in known:
                at = path if isinstance(value, str) else (*path, number)
                self.wrong(at, f"no message {name}{near(name, known)}")
        return tuple(names)

    def check_braces(self, path: Path, text: str, known: Collection[str], kind: str) -> None:
        """Report names in braces that are not known."""
        for found in _BRACES.finditer(text):
            name = found[1]
            if name not in known:
                self.wrong(path, f"no {kind} {name}{near(name, known)}", found.start(1), found.end(1))

    def clause(self, path: Path, text: str) -> str | None:
        """Return a clause with its names in braces replaced by headings; unknown ones are reported."""
        if self.clauses:
            self.check_braces(path, text, self.clauses, "clause")
            text = filled(text, self.clauses)
        return text or None

    # Tables.

    def table(self, path: Path, value: Any, kind: type[Kind]) -> Kind | None:
        """Return the content of a table without the tables inside; None if it is no table.

        A wrong value is reported, and replaced by the default.
        """
        if not isinstance(value, dict):
            self.wrong(path, f"{path[-1]} must be a table")
            return None
        infos = _fields(kind)
        for key in value:
            if key not in infos:
                hint = near(key, infos) or f"; valid keys are {', '.join(infos)}"
                self.wrong_key((*path, key), f"unknown key {key}{hint}")
        found: dict[str, Any] = {}
        for key, info in infos.items():
            if key in value:
                read = self._value((*path, key), value[key], info.type)
                if read is not msgspec.UNSET:
                    found[info.name] = read
            elif info.required:
                self.wrong_key(path, f"{key} is missing")
            if info.required and info.name not in found:
                found[info.name] = ""
        return kind(**found)

    def _value(self, path: Path, value: Any, kind: Any) -> Any:
        """Return a value as its type; UNSET if it is wrong, or a table to be read by itself."""
        plain, words = _unwrapped(kind)
        if get_origin(plain) is dict:
            of = get_args(plain)[1]
            if not isinstance(value, dict):
                self.wrong(path, f"{path[-1]} must be {words or 'a table'}")
                return msgspec.UNSET
            if _is_nested(of):
                return msgspec.UNSET
            items = {key: self._value((*path, key), item, of) for key, item in value.items()}
            return {key: item for key, item in items.items() if item is not msgspec.UNSET}
        if _is_nested(plain):
            return msgspec.UNSET
        if plain is Any:
            return self._json(path, value)
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, OverflowError) as error:
            index = _INDEX.search(str(error))
            at = (*path, int(index[1])) if index else path
            self.wrong(at, _must_be(path[-1], value, plain, words))
            return msgspec.UNSET

    def _json(self, path: Path, value: Any, depth: int = 0) -> Any:
        """Return a value that is valid JSON; else UNSET."""
        if depth > MAX_NESTING:
            self.wrong(path, "nested too deeply")
            return msgspec.UNSET
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for step, item in items:
                if self._json((*path, step), item, depth + 1) is msgspec.UNSET:
                    return msgspec.UNSET
            return value
        if isinstance(value, bool | str):
            return value
        if isinstance(value, int) and abs(value) < 2**63:
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        self.wrong(path, f"{path[-1]} must be a text, a number, true or false, a list or a table")
        return msgspec.UNSET


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with names in braces replaced by values, unknown ones by nothing."""
    return _BRACES.sub(lambda found: values.get(found[1], ""), text)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the keys of a table."""
    return {info.encode_name: info for info in msgspec.structs.fields(kind)}


def _unwrapped(kind: Any) -> tuple[Any, str | None]:
    """Return a type without annotations, and the words for its values."""
    words = None
    if hasattr(kind, "__metadata__"):
        for meta in kind.__metadata__:
            words = (meta.extra or {}).get("is", words)
        kind = kind.__origin__
    return kind, words


def _is_nested(kind: Any) -> bool:
    """Return whether a type is a table with keys of its own, or has one among its choices."""
    return any(
        isinstance(each, type) and issubclass(each, msgspec.Struct) for each in (kind, *get_args(kind))
    )


def _must_be(key: Step, value: Any, kind: Any, words: str | None) -> str:
    options = [
        option for each in (kind, *get_args(kind)) if get_origin(each) is Literal for option in get_args(each)
    ]
    if options:
        hint = near(value, options) if isinstance(value, str) else ""
        return f"{key} must be {listed(options)}{hint}"
    return f"{key} must be {words or {int: 'a whole number', str: 'a text'}.get(kind, 'something else')}"


def listed(words: Sequence[str] | Collection[str]) -> str:
    """Return `"a", "b" or "c"`."""
    *first, last = [f'"{word}"' for word in words]
    return f"{', '.join(first)} or {last}" if first else last
