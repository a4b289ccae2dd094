"""The text of a protocol file with its locations, and the mistakes found in it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from kiebitz.dissectors.game.table import is_part_of
from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.positions import Mistake, Place, Step, TomlPlaces
from kiebitz.dissectors.protocol_file.sections import NamedTable

Path = tuple[Step, ...]

MAX_MISTAKES = 100
"""Maximum number of mistakes that are reported of a file."""

MAX_EXPRESSIONS = 5_000
"""Maximum number of conditions, values, and names in sentences."""

MAX_NESTING = 20
"""Maximum depth of lists and tables in a value."""

_BRACES = re.compile(r"\{([^{}\[\]]*)[^{}]*\}")
"""A name in braces, such as `{player}` or `{player[id]}`."""

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", tuple: "a list", list: "a list"}
"""Words for the values of types."""

_INDEX = re.compile(r"at `\$\[(\d+)\]")

Kind = TypeVar("Kind", bound=msgspec.Struct)


class TooManyMistakes(Exception):
    """Ends the reading of a file."""


class Source:
    """The text of a file and its mistakes; a path consists of keys and indices.

    Attributes:
        clauses: Headings of clauses by their short names.
        instead: Tables that take the place of others.
        mistakes: What makes the file invalid.
        remarks: What is probably a mistake.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._mistakes: dict[Mistake, None] = {}
        self._expressions = 0
        self.clauses: Mapping[str, str] = {}
        self.instead: Mapping[type[Any], type[Any]] = {}
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

    def wrong_parts(self, path: Path, mistakes: Iterable[notation.Mistake], offset: int = 0) -> None:
        """Report the mistakes in a text in the notation of rows, which begins at `offset` of the value."""
        for mistake in mistakes:
            self.wrong(path, mistake.message, offset + mistake.start, offset + mistake.end)

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

    def check_part(self, path: Path, name: str, package: str, kind: str = "NAME") -> None:
        """Report a name in Python that is in no module of the package."""
        if not is_part_of(name, package):
            what = "a reader" if kind == "CLASS" else path[-1]
            self.wrong(path, f"{what} must be in the package: {package.rpartition('.')[2]}.MODULE:{kind}")

    def count_expression(self, path: Path) -> None:
        """Count an expression. Raises TooManyMistakes."""
        self._expressions += 1
        if self._expressions > MAX_EXPRESSIONS:
            self.wrong(path, f"more than {MAX_EXPRESSIONS:,} expressions")
            raise TooManyMistakes

    def check_names(self, path: Path, names: Sequence[str], known: Collection[str]) -> None:
        """Report unknown names of messages."""
        for number, name in enumerate(names):
            if name not in known:
                self.wrong((*path, number), f"no message {name}{near(name, known)}")

    def check_braces(self, path: Path, text: str, known: Collection[str], kind: str) -> None:
        """Report names in braces that are not known."""
        for found in _BRACES.finditer(text):
            name = found[1]
            if name not in known:
                self.wrong(path, f"no {kind} {name}{near(name, known)}", found.start(1), found.end(1))

    def clause(self, path: Path, text: str) -> str:
        """Return a clause with its names in braces replaced by headings; unknown ones are reported."""
        if self.clauses:
            self.check_braces(path, text, self.clauses, "clause")
            text = filled(text, self.clauses)
        return text

    # Tables.

    def table(self, path: Path, value: Any, kind: type[Kind], key: str = "") -> Kind | None:
        """Return the content of a table, which may be named `key`; None if it is no table.

        A wrong value is reported, and replaced by the default.
        """
        if not isinstance(value, dict):
            name = next((step for step in reversed(path) if isinstance(step, str)), "")
            self.wrong(path, f"{name} must be a table")
            return None
        of: Any = self.instead.get(kind, kind)
        infos = _keys(of)
        for word in value:
            if word not in infos:
                hint = near(word, infos) or f"; valid keys are {', '.join(infos)}"
                self.wrong_key((*path, word), f"unknown key {word}{hint}")
        found: dict[str, Any] = {"key": key} if issubclass(of, NamedTable) else {}
        for word, info in infos.items():
            if word in value:
                read = self._value((*path, word), value[word], info.type)
                if read is not msgspec.UNSET:
                    found[info.name] = read
            elif info.required:
                self.wrong_key(path, f"{word} is missing")
            if info.required and info.name not in found:
                found[info.name] = ""
        table: Kind = of(**found)
        return table

    def _value(self, path: Path, value: Any, kind: Any) -> Any:
        """Return a value as its type; UNSET if it is wrong, or to be read by itself."""
        plain, words, is_single = _unwrapped(kind)
        if is_single and not isinstance(value, list):
            value = [] if value == "" else [value]
        of = get_args(plain)
        if get_origin(plain) in (dict, Mapping):
            if not isinstance(value, dict):
                self.wrong(path, f"{path[-1]} must be {words or 'a table'}")
                return msgspec.UNSET
            items = {key: self._item((*path, key), item, of[1], key) for key, item in value.items()}
            return {key: item for key, item in items.items() if item is not msgspec.UNSET}
        if get_origin(plain) in (list, tuple) and _is_table(of[0]):
            if not isinstance(value, list):
                self.wrong(path, f"{path[-1]} must be {words or 'a list'}")
                return msgspec.UNSET
            parts = [self._item((*path, number), item, of[0]) for number, item in enumerate(value)]
            return get_origin(plain)(part for part in parts if part is not msgspec.UNSET)
        options = [each for each in of or (plain,) if each is not type(None)]
        if any(map(_is_table, options)):
            return self._item(path, value, options[0]) if len(options) == 1 else msgspec.UNSET
        if plain is Any:
            return self._json(path, value)
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, OverflowError) as error:
            index = _INDEX.search(str(error))
            at = (*path, int(index[1])) if index else path
            self.wrong(at, _must_be(path[-1], value, plain, words))
            return msgspec.UNSET

    def _item(self, path: Path, value: Any, kind: Any, key: str = "") -> Any:
        """Return a value in a table or list; UNSET if it is wrong."""
        if not _is_table(kind):
            return self._value(path, value, kind)
        table = self.table(path, value, kind, key)
        return msgspec.UNSET if table is None else table

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
def _keys(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the keys of a table."""
    infos = {info.encode_name: info for info in msgspec.structs.fields(kind)}
    return {key: info for key, info in infos.items() if key != "key"}


def _unwrapped(kind: Any) -> tuple[Any, str | None, bool]:
    """Return a type without annotations, the words for its values, and True if a list may be one value."""
    extra: dict[str, Any] = {}
    if hasattr(kind, "__metadata__"):
        for meta in kind.__metadata__:
            extra |= meta.extra or {}
        kind = kind.__origin__
    return kind, extra.get("is"), "single" in extra


def _is_table(kind: Any) -> bool:
    """Return True if a type is a table with keys of its own."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _must_be(key: Step, value: Any, kind: Any, words: str | None) -> str:
    options = [
        option for each in (kind, *get_args(kind)) if get_origin(each) is Literal for option in get_args(each)
    ]
    if options:
        hint = near(value, options) if isinstance(value, str) else ""
        return f"{key} must be {listed(options)}{hint}"
    default = _WORDS.get(get_origin(kind) or kind, "something else")
    return f"{key} must be {words or default}"


def listed(words: Sequence[str] | Collection[str]) -> str:
    """Return `"a", "b" or "c"`."""
    *first, last = [f'"{word}"' for word in words]
    return f"{', '.join(first)} or {last}" if first else last
