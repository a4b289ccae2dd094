"""A session's messages as a Parquet file with typed columns, whose types are inferred.

`fields` has a member for each message name, and in it one for each field: `fields.ROLLED.dice`. `data` has
the same for kinds of events. A first pass over the messages collects the types. pyarrow loads slowly.

Column types inferred from JSON values, and the conversion of the values to them.

A typed table has one type per column. Texts and numbers that occur in the same place become texts. Where
objects, lists and scalars alternate, the type is an object with a member for each form: `value`, `list`,
`object`; also where a grammar says that shapes vary, even if only one form occurred. An object whose keys are
names, not words of the protocol, is a map. Deeply nested values, and objects with very many keys, become JSON
text, so types are bounded whatever a peer sends. The order of the values does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import parquet

from kiebitz.dissectors.escaping import encodable
from kiebitz.dissectors.grammar.field_type import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.derived.selection import Selection
from kiebitz.storage.export.rows import MessageRow, message_rows
from kiebitz.storage.read.timeline import Timeline

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


ROW_GROUP = 20_000
"""Messages held in memory at once."""

_TYPES = {
    "time": pa.float64(),
    "time_utc": pa.timestamp("us", "UTC"),
    **dict.fromkeys(("session", "message", "stream", "game", "event", "diagnostics"), pa.int64()),
}
"""The types of the columns that are not text."""

_SCALARS = {"truth": pa.bool_(), "whole": pa.int64(), "number": pa.float64(), "text": pa.string()}


def write(timeline: Timeline, file: BinaryIO, selection: Selection | None = None) -> None:
    """Write a row for each message of the session, or of a part of it."""
    shapes = _ColumnTypes()
    for row in message_rows(timeline, selection):
        shapes.take(row)
    columns = shapes.columns()
    schema = pa.schema(list(columns.items()))
    rows = message_rows(timeline, selection)
    with parquet.ParquetWriter(file, schema) as writer:
        while group := [shapes.fit(row) for row in islice(rows, ROW_GROUP)]:
            arrays = [pa.array([row[name] for row in group], type_) for name, type_ in columns.items()]
            writer.write_table(pa.table(arrays, schema=schema))


class _ColumnTypes:
    """The inferred types of a session's messages and events."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Shape]] = {"fields": {}, "data": {}}
        """Column -> name of a message or kind of an event -> type."""

    def take(self, row: MessageRow) -> None:
        """Extend the types by a message and its event."""
        self._shape("fields", row.name).take(json.loads(row.fields), _message_hints(row))
        if row.kind is not None and row.data is not None:
            self._shape("data", row.kind).take(json.loads(row.data), _event_hints(row.protocol))

    def columns(self) -> dict[str, Any]:
        """Return the columns with their types, without columns that are always empty."""
        named = (name if name != "ts_ns" else "time_utc" for name in MessageRow._fields)
        types = {name: self._type_of(name) for name in named}
        return {name: type_ for name, type_ in types.items() if type_ is not None}

    def fit(self, row: MessageRow) -> dict[str, Any]:
        """Return a row converted to these columns."""
        values: dict[str, Any] = {
            name: encodable(value) if isinstance(value, str) else value
            for name, value in row._asdict().items()
        }
        values["time_utc"] = row.ts_ns // 1000
        values["fields"] = self._fit("fields", row.name, row.fields)
        values["data"] = self._fit("data", row.kind, row.data)
        return values

    def _shape(self, column: str, name: str) -> Shape:
        return self._of[column].setdefault(name, Shape())

    def _type_of(self, column: str) -> Any:
        if column not in self._of:
            return _TYPES.get(column, pa.string())
        return _struct(self._of[column])

    def _fit(self, column: str, name: str | None, value: str | None) -> Any:
        if name is None or value is None:
            return None
        fitted = self._of[column][name].fit(json.loads(value))
        return {encodable(name): fitted} if fitted else None


def _type(shape: Shape) -> Any:
    """Return the Arrow type of a shape; None if only empty objects occurred."""
    if shape.is_json:
        return pa.string()
    types: dict[str, Any] = {}
    if shape.scalar is not None:
        types["value"] = _SCALARS[shape.scalar]
    if shape.part is not None:
        types["list"] = pa.list_(_type(shape.part) or pa.string())
    if shape.members is not None:
        types["object"] = (
            pa.map_(pa.string(), _type(shape.members[""]) or pa.string())
            if shape.is_map
            else _struct(shape.members)
        )
    known = {form: type_ for form, type_ in types.items() if type_ is not None}
    if shape.has_forms and known:
        return pa.struct(list(known.items()))
    return next(iter(known.values()), None)


def _struct(members: dict[str, Shape]) -> Any:
    """Return an object's type, with sorted members; None if no member has a type."""
    types = [
        (encodable(name), type_)
        for name, shape in sorted(members.items())
        if (type_ := _type(shape)) is not None
    ]
    return pa.struct(types) if types else None


def _message_hints(row: MessageRow) -> GrammarHints:
    """Return the grammar's knowledge of a message: keys are names in fields whose type says so."""
    dissector = dissector_of(row.protocol)

    def has_open_keys(path: Path, value: dict[str, Any]) -> bool:
        if dissector is None or len(path) != 1:
            return False
        direction: Direction = "c2s" if row.direction == "c2s" else "s2c"
        fields = json.loads(row.fields)
        message = dissector.grammar.row_of(row.name, direction, fields)
        if message is None:
            return False
        with suppress(*UNWRITABLE):
            renamed = message.renamed(fields, lambda _, name: f"another than {name}")[path[0]]
            return isinstance(renamed, dict) and renamed.keys() != value.keys()
        return False

    return GrammarHints(has_open_keys, dissector.grammar.variable_shape if dissector is not None else ())


def _event_hints(protocol: str) -> GrammarHints:
    """Return the grammar's knowledge of events: keys are names below those that it lists."""
    dissector = dissector_of(protocol)
    if dissector is None:
        return GrammarHints(lambda path, value: False, ())
    handles = dissector.grammar.data_identifiers
    return GrammarHints(
        lambda path, value: bool(path) and path[-1] in handles, dissector.grammar.variable_shape
    )
