"""The named types of a protocol file: texts in the notation of types, and their keys."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import msgspec

from kiebitz.dissectors.grammar.field_type import Wrong
from kiebitz.dissectors.grammar.json.forms import SizeRule
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.document import TypeTable
from kiebitz.dissectors.protocol_file.reading.notation import NamedTypes, ParsedType, Parser, near
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    ChoiceType,
    FieldSpec,
    FieldTypeSpec,
    FormatKind,
    IdentifierType,
    ListType,
    NumberType,
    PythonType,
    TextType,
    value_type,
)

_IN_ALL_FORMATS = {"is", "title", "descriptions", "keep", "spelled"}


class TypeSection:
    """Reads `[types]`; mistakes are added to the source. Types of a package may be in `python`.

    Attributes:
        used: Names of the types that other types and rows name.
    """

    def __init__(
        self,
        source: Source,
        written: Any,
        descriptions: Mapping[str, str],
        kind: FormatKind,
        python: Collection[str] = (),
    ) -> None:
        self._source = source
        self._written: Mapping[str, Any] = written if isinstance(written, dict) else {}
        self._descriptions = descriptions
        self._format = kind
        self._python = python
        self._types = NamedTypes({*self._written, *python}, self._use)
        self._parsed: dict[str, ParsedType] = {}
        self._parsing: list[str] = []
        self.used: set[str] = set()
        self.fields: set[str] = set()
        """Names of fields in these types."""

    def check(self) -> None:
        """Report mistakes in all types."""
        for name in self._written:
            if name in notation.BUILT_IN or name in self._python:
                self._source.wrong_key(("types", name), f"{name} is a type already: choose another name")
            elif not re.fullmatch(r"[^\W\d][\w-]*", name):
                problem = f'{name} is no name of a type: use letters, digits, "_" and "-"'
                self._source.wrong_key(("types", name), problem)
            self._type(name)

    @property
    def named(self) -> dict[str, FieldTypeSpec]:
        """The types by name."""
        return {name: parsed.type for name, parsed in self._parsed.items()}

    def parser(self, text: str, descriptions: Mapping[str, str] = MappingProxyType({})) -> Parser:
        """Return a parser of a row or a type, whose fields have these descriptions, too."""
        described = {**self._descriptions, **descriptions}
        return Parser(text, self._types, self._format == "json", self._format == "xml", described)

    def _use(self, name: str) -> ParsedType:
        self.used.add(name)
        return ParsedType(PythonType(name), 0, 1) if name in self._python else self._type(name)

    def _type(self, name: str) -> ParsedType:
        """Return a named type, which is parsed on first use. Raises Mistake if it contains itself."""
        if name in self._parsing:
            raise notation.Mistake(f"the type {name} contains itself", 0, 1)
        if len(self._parsing) > notation.MAX_NESTING:
            raise notation.Mistake(f"more than {notation.MAX_NESTING} types in one another", 0, 1)
        if name not in self._parsed:
            self._parsing.append(name)
            self._parsed[name] = self._parse(("types", name), self._written[name])
            self._parsing.pop()
        return self._parsed[name]

    def _parse(self, path: Path, written: Any) -> ParsedType:
        table = TypeTable(type="")
        at = path
        if isinstance(written, dict):
            table = self._source.table(path, written, TypeTable) or table
            at, written = (*path, "is"), table.type
        if not isinstance(written, str):
            self._source.wrong(path, 'a type is a text, such as "1..6", or a table')
        elif written or at == path:
            parser = self.parser(written, table.descriptions)
            try:
                parsed = parser.whole_type()
            except notation.Mistake as mistake:
                self._source.wrong(at, mistake.message, mistake.start, mistake.end)
            else:
                self.fields |= parser.names
                return (
                    parsed if at == path else parsed._replace(type=self._with_keys(path, parsed.type, table))
                )
        return ParsedType(AnyType(), 0, 1)

    def _with_keys(self, path: Path, kind: FieldTypeSpec, table: TypeTable) -> FieldTypeSpec:
        """Return a type with the keys of its table, of which some belong to some types only."""
        written = self._written[str(path[-1])]
        inner = value_type(kind)
        keys: dict[str, Any] = {}
        for key in written:
            if key in ("is", "title", "descriptions") or not hasattr(table, key):
                continue
            if key not in inner.__struct_fields__:
                self._source.wrong_key((*path, key), f"{key} means nothing for this type")
            elif self._format != "json" and key not in _IN_ALL_FORMATS:
                self._source.wrong_key((*path, key), f"{key} belongs to format = json")
            else:
                keys[key] = self._key((*path, key), key, inner, table)
        keys = {key: value for key, value in keys.items() if value is not None}
        if isinstance(kind, IdentifierType):
            inner = cast("TextType | NumberType", msgspec.structs.replace(inner, **keys))
            return msgspec.structs.replace(kind, of=inner, title=table.title)
        return msgspec.structs.replace(kind, **keys, title=table.title)

    def _key(self, path: Path, key: str, kind: FieldTypeSpec, table: TypeTable) -> Any:
        """Return the value of a key, None for its default."""
        value = getattr(table, key)
        match key:
            case "keep":
                return self._kept(path, value)
            case "usual" if value is not None and type(value) is not (
                int if isinstance(kind, NumberType) else str
            ):
                noun = "the least usual number" if isinstance(kind, NumberType) else "the usual text"
                self._source.wrong(path, f"usual must be {noun}")
                return None
            case "spelled" if isinstance(kind, ChoiceType):
                self._known_words(path, value, kind)
                return {word: tuple(others) for word, others in value.items()}
            case "sizes":
                return size_rule(self._source, path, table.sizes, getattr(kind, "fields", ()))
            case "wrong":
                return tuple(
                    Wrong(each.kind, each.title, each.text, allowed=each.allowed) for each in table.wrong
                )
        return value

    def _kept(self, path: Path, keep: bool | str | tuple[str, ...]) -> bool | str | tuple[str, ...] | None:
        if not isinstance(keep, str):
            return keep
        if len(keep) < 3 or keep[0] != "/" or keep[-1] != "/":
            self._source.wrong(path, 'keep must be true, a list of words, or a "/pattern/"')
            return None
        try:
            matcher(keep[1:-1])
        except (ValueError, RecursionError) as error:
            self._source.wrong(path, str(error) or "nested too deeply")
            return None
        return keep[1:-1]

    def _known_words(self, path: Path, spelled: Mapping[str, Any], kind: ChoiceType) -> None:
        words = kind.words or [value for value in kind.values if isinstance(value, str)]
        for word in spelled:
            if word not in words:
                self._source.wrong_key((*path, word), f"no word {word}{near(word, words)}")


def size_rule(
    source: Source, path: Path, table: SizeRule | None, fields: Sequence[FieldSpec]
) -> SizeRule | None:
    """Return the rule for the number of items of one of these fields, None if there is none."""
    if table is None:
        return None
    types = {field.name: field.type for field in fields}
    for key in ("by", "of"):
        name = getattr(table, key)
        if name and name not in types:
            source.wrong((*path, key), f"no field {name}{near(name, types)}")
    if table.of in types and not isinstance(types[table.of], ListType):
        source.wrong((*path, "of"), f"{table.of} is no list")
    by = types.get(table.by)
    if isinstance(by, ChoiceType):
        for value in table.sizes:
            if value not in by.values:
                words = [word for word in by.values if isinstance(word, str)]
                source.wrong_key((*path, "sizes", value), f"{table.by} is never {value}{near(value, words)}")
    return table
