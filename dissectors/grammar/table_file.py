"""Grammars of built-in protocols as TOML tables: a line for each message, kind of event and rule.

A row is `NAME = { is = "s*: field=type other?=type < ANSWERED", … }`, as in protocol files; several rows of
one name are a list. The module `grammar` of the protocol defines the types that the rows name. A clause is a
heading of the specification, with names of `[clauses]` in braces.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Word
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, EventKind, Field, Grammar, MessageType, Rule
from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.model import Direction

_ROW = re.compile(r"(?P<side>[cs])(?P<all>\*?)(?P<beat>~?):(?P<fields>[^<]*)(?:<(?P<answers>.*))?")
_FIELD = re.compile(
    r"\s*(?P<attribute>@?)(?:'(?P<quoted>[^']+)'|(?P<name>[^\s'=?]+))(?P<optional>\??)="
    r"(?:'(?P<word>[^']+)'|(?P<type>[^\s!\[\]]+)|\[(?P<item>[^\s!\[\]]+)\](?P<least>\d+)(?:\.\.(?P<most>\d+))?)"
    r"(?P<new>!?)(?=\s|$)"
)
_DIRECTIONS: dict[str, Direction] = {"c": "c2s", "s": "s2c"}


class FieldEntry(NamedTuple):
    """A field of a row: `@name` is an attribute of an XML element, `[type]1..32` is 1 to 32 elements.

    `most` is None for a single element.
    """

    field: Field
    is_attribute: bool
    least: int
    most: int | None


def plain_row(
    name: str,
    direction: Direction,
    entries: tuple[FieldEntry, ...],
    description: str,
    row_class: type[MessageType] = MessageType,
    **more: Any,
) -> MessageType:
    """Return a row that needs only the fields of its entries."""
    return row_class(name, direction, tuple(entry.field for entry in entries), description, **more)


def grammar_from(
    package: str,
    types: Mapping[str, FieldType],
    *,
    choice: Callable[..., FieldType] = Word,
    make_row: Callable[..., MessageType] = plain_row,
    **more: Any,
) -> Grammar:
    """Return the grammar in the TOML file of a protocol's package: `okey.toml` in `okey`.

    Args:
        package: Name of the package.
        types: Types of fields, by their names in the file.
        choice: Makes a type of the words of `red|blue` or `'red'`.
        make_row: Makes a row like `plain_row`, if rows have further keys.
        more: Further arguments of `Grammar`.

    Raises:
        ValueError: If an entry is wrong.
    """
    document, path = table_document(package)
    reader = _Reader(document, types, choice, make_row)
    return Grammar(
        document["protocol"],
        document["title"],
        rows=reader.rows(),
        events=[_event_kind(kind, **entry) for kind, entry in document["events"].items()],
        rules=reader.rules(),
        table_file=path,
        lenient=msgspec.convert(document.get("lenient", {}), Lenient),
        **more,
    )


def table_document(package: str) -> tuple[dict[str, Any], str]:
    """Return the content of the TOML file of a protocol's package, and its path."""
    folder = os.path.dirname(sys.modules[package].__file__ or "")
    module = ModuleType(package.rpartition(".")[2])
    path = os.path.join(folder, f"{module.__name__}.toml")
    _TableLoader(module.__name__, path).exec_module(module)
    return module.document, path


class _TableLoader(SourceFileLoader):
    """Loader of a TOML file as a module, which Python caches in compiled form.

    Parsing the files of all protocols at each start would take longer than importing the protocols.
    """

    @staticmethod
    def source_to_code(  # type: ignore[override]  # typeshed has it as static in one base class only
        data: Any, path: Any = ""
    ) -> CodeType:
        # Imported only where there is no cached file.
        import tomllib

        return compile(f"document = {tomllib.loads(bytes(data).decode())!r}", path, "exec")


class _Reader:
    """Reader of the rows and rules of a document."""

    def __init__(
        self,
        document: Mapping[str, Any],
        types: Mapping[str, FieldType],
        choice: Callable[..., FieldType],
        make_row: Callable[..., MessageType],
    ) -> None:
        self._document = document
        self._types = types
        self._choice = choice
        self._make_row = make_row
        self._clauses: Mapping[str, str] = document.get("clauses", {})
        names = sorted(document["messages"], key=len, reverse=True)
        self._name = re.compile(r"\s*(" + "|".join(map(re.escape, names)) + r")(?=\s|$)")

    def rows(self) -> Iterator[MessageType]:
        for name, given in self._document["messages"].items():
            for entry in given if isinstance(given, list) else [given]:
                yield self._row(name, entry.pop("is"), **entry)

    def rules(self) -> Iterator[Rule]:
        for key, entry in self._document["rules"].items():
            clause = entry.pop("clause", OWN_CLAUSE).format_map({**self._clauses, "clause": OWN_CLAUSE})
            yield Rule(key, entry.pop("on", None), entry.pop("say"), clause=clause or None, **entry)

    def _row(
        self,
        name: str,
        notation: str,
        *,
        about: str,
        clause: str,
        descriptions: Mapping[str, str] | None = None,
        dialect: str | None = None,
        **more: Any,
    ) -> MessageType:
        """Return a row; `descriptions` of its fields precede those in `[descriptions]`."""
        parts = _ROW.fullmatch(notation)
        if (
            parts is None
            or _FIELD.sub("", parts["fields"]).strip()
            or self._name.sub("", parts["answers"] or "").strip()
        ):
            raise ValueError(f"{name}: {notation!r} is not a row")
        described = {**self._document.get("descriptions", {}), **(descriptions or {})}
        return self._make_row(
            name,
            _DIRECTIONS[parts["side"]],
            tuple(self._field(found, described) for found in _FIELD.finditer(parts["fields"])),
            about,
            clause=clause.format_map(self._clauses),
            answers=tuple(self._name.findall(parts["answers"] or "")),
            broadcast=bool(parts["all"]),
            heartbeat=bool(parts["beat"]),
            deviation=dialect,
            **more,
        )

    def _field(self, found: re.Match[str], descriptions: Mapping[str, str]) -> FieldEntry:
        name = found["quoted"] or found["name"]
        kind = found["type"] or found["item"] or found["word"]
        is_choice = found["word"] is not None or "|" in kind
        optional = bool(found["optional"])
        least = int(found["least"] or not optional)
        return FieldEntry(
            Field(
                name,
                self._choice(*kind.split("|")) if is_choice else self._types[kind],
                descriptions[name],
                generated=bool(found["new"]),
                optional=optional,
            ),
            is_attribute=bool(found["attribute"]),
            least=least,
            most=int(found["most"] or least) if found["item"] else None,
        )


def _event_kind(
    kind: str,
    *,
    data: str,
    say: str,
    on: str | Sequence[str] = (),
    reveals: Sequence[str] = (),
    **more: Any,
) -> EventKind:
    """Return a kind of event; `on` names the messages that report it on its actor's connection."""
    reported_by = (on,) if isinstance(on, str) else tuple(on)
    return EventKind(kind, tuple(data.split()), say, reported_by=reported_by, reveals=tuple(reveals), **more)
