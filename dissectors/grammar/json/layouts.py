"""Places of the name and the fields in a JSON message: a key, or values at paths; the dissection tree."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import Fields, WireType
from kiebitz.dissectors.grammar.grammar import BLANKS, Decoded, Field, Grammar, MessageType, Path
from kiebitz.dissectors.grammar.json.containers import JsonAlone, JsonObject, JsonTuple
from kiebitz.dissectors.grammar.json.forms import Form, SizeRule
from kiebitz.dissectors.grammar.json.scanner import Member, Node, as_sent, name_at, parse_places
from kiebitz.dissectors.grammar.json.types import JsonChoice, JsonType, Part
from kiebitz.dissectors.grammar.lenient import AS_WRITTEN, Spellings
from kiebitz.dissectors.grammar.tokens import quoted_text
from kiebitz.dissectors.model import DIRECTIONS, Direction

Role = Literal["name", "around", "fields", "other"]
"""Role of a member: the name, an object around name or fields, the object with the fields, or none."""


class JsonRow(MessageType, frozen=True):
    """A row with the layout of its fields: attributes of an object, a list in their order, or a single value.

    The fields `beside` are next to the message's name instead. `sizes` is as in `JsonObject`.
    """

    form: Form = "object"
    beside: tuple[str, ...] = ()
    sizes: SizeRule | None = None


class Candidates(NamedTuple):
    """The rows that may fit a message, and the place of its name: the path of a value, or of a key."""

    rows: tuple[JsonRow, ...]
    sent: Any
    path: Path


class Layout:
    """The layout of all messages of a protocol, whose name is a key: `{"name": {fields}}`.

    Args:
        grammar: The grammar, whose rows are `JsonRow`.
        spellings: Other spellings of names and attributes.
        is_lenient: As in `JsonObject`; then keys beside the name are noted. Otherwise they belong to a row or
            are an error.
    """

    name_is_key = True

    def __init__(self, grammar: Grammar, spellings: Spellings = AS_WRITTEN, is_lenient: bool = False) -> None:
        self.grammar, self.spellings, self.is_lenient = grammar, spellings, is_lenient
        self.all_rows = cast("tuple[JsonRow, ...]", grammar.rows)
        """The rows of all messages."""
        self._alone: dict[tuple[Direction, str], tuple[JsonRow, ...]] = {}
        """Rows with no attribute next to the message's name."""
        for row in self.all_rows:
            if not row.beside:
                key = row.direction, row.name
                self._alone[key] = (*self._alone.get(key, ()), row)
        self.names: Mapping[Direction, Mapping[Any, str]] = self._sent_names()
        """The message names of each direction, by what is sent for them."""
        self._around: dict[int, JsonObject] = {}

    def _sent_names(self) -> Mapping[Direction, Mapping[Any, str]]:
        return {direction: self.spellings.of(self.grammar.names(direction)) for direction in DIRECTIONS}

    def rows_of(self, direction: Direction, sent: Any) -> tuple[JsonRow, ...]:
        """Return the rows of a message for what was sent as its name."""
        if type(sent) is not str and type(sent) is not int:
            return ()
        return self.rows_named(direction, self.names[direction].get(sent, ""))

    def rows_named(self, direction: Direction, name: str) -> tuple[JsonRow, ...]:
        """Return the rows of a message."""
        return cast("tuple[JsonRow, ...]", self.grammar.rows_named(direction, name))

    def around(self, row: JsonRow) -> JsonObject:
        """Return the type of the whole message."""
        found = self._around.get(id(row))
        if found is None:
            found = self._around[id(row)] = self._make_around(row)
        return found

    def body(self, row: JsonRow) -> JsonType:
        """Return the type of the value with the fields, without those beside the name."""
        inner = [field for field in row.fields if field.name not in row.beside]
        if row.form == "list":
            return JsonTuple(*inner)
        if row.form == "value":
            return JsonAlone(*inner)
        body = JsonObject(*inner, spellings=self.spellings, sizes=row.sizes, is_lenient=self.is_lenient)
        body.is_body = True
        return body

    def _make_around(self, row: JsonRow) -> JsonObject:
        """Return the type of the whole message, which `around` keeps."""
        may_be_null = self.is_lenient and all(field.optional for field in row.fields)
        body = Field(row.name, self.body(row), row.description, optional=may_be_null)
        beside = (field for field in row.fields if field.name in row.beside)
        return JsonObject(body, *beside, spellings=self.spellings)

    def name_in(self, frame: bytes) -> bytes | None:
        """Return the probable name of a message as it was sent, without decoding it."""
        return frame[2 : frame.find(b'"', 2)] if frame[:2] == b'{"' else None

    def begun_rows(self, begun: bytes, direction: Direction) -> tuple[JsonRow, ...]:
        """Return the rows of a message of which only the beginning is valid."""
        members = parse_places(begun).members
        return self.rows_of(direction, members[0].step) if members else ()

    def sent_texts(self, row: JsonRow) -> frozenset[bytes]:
        """Return the possible results of `name_in` for messages of a row."""
        return frozenset() if row.beside else as_sent((row.name,))

    def candidates(self, value: Mapping[str, Any], direction: Direction) -> Candidates:
        """Return the rows that may fit a message."""
        first = next(iter(value), "")
        for key in value if len(value) > 1 else ():
            rows = tuple(
                row for row in self.rows_of(direction, key) if row.beside and {key, *row.beside} == {*value}
            )
            if rows:
                return Candidates(rows, key, (key,))
        if len(value) != 1:
            if not self.is_lenient:
                return Candidates((), None, ())
            first = next((key for key in value if key in self.names[direction]), first)
        rows = self._alone.get((direction, self.names[direction].get(first, "")), ())
        return Candidates(rows, first, (first,))

    def fields(self, row: JsonRow, whole: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a message, whose decoded value is not needed any more."""
        inner: dict[str, Any] = whole.pop(row.name, None) or {}
        return inner | whole if row.beside else inner

    def whole(self, row: JsonRow, fields: Fields) -> dict[str, Any]:
        """Return the value of a message with these fields."""
        beside = {key: fields[key] for key in row.beside if key in fields}
        body: Any = {key: part for key, part in fields.items() if key not in beside}
        if row.form == "list":
            body = [body[field.name] for field in row.fields if field.name in body]
        elif row.form == "value":
            body = body.get(row.fields[0].name)
        return {row.name: body, **beside}

    def path(self, row: JsonRow, steps: Path) -> Path:
        """Return the path to a part of the fields in the whole message, in the specification's spelling."""
        if steps and steps[0] in row.beside:
            return steps
        if steps and row.form == "list":
            names = [field.name for field in row.fields if field.name not in row.beside]
            return (row.name, names.index(str(steps[0])), *steps[1:])
        return (row.name, *(steps[1:] if row.form == "value" else steps))

    def role(self, row: JsonRow, path: Path) -> Role:
        """Return the role of a member at a path in the specification's spelling."""
        return "fields" if path == (row.name,) else "other"

    def wire(self) -> WireType:
        """Return the declarative description of the layout; see `Codec.wire_format`."""
        return {"keys": self.names, "others": self.is_lenient or None}

    def wire_row(self, row: JsonRow) -> WireType:
        """Return what else describes a row; see `Codec.wire_row`."""
        body = self.body(row)
        return {
            "form": row.form,
            "beside": dict.fromkeys(row.beside, True) or None,
            "spelt": body.spelt if isinstance(body, JsonObject) and not self.is_lenient else None,
        }


class PathLayout(Layout):
    """Messages with the name at a path, and the fields in the object at another one.

    Args:
        sent: What stands for each message's name.
        name: Path of the name; () if it is not in the message, and the only one of its direction.
        fields: Path of the object with the fields; () if it is the message itself.
    """

    name_is_key = False

    def __init__(
        self,
        grammar: Grammar,
        sent: Mapping[tuple[Direction, str], str | int],
        name: tuple[str, ...],
        fields: tuple[str, ...],
        **options: Any,
    ) -> None:
        self._sent, self.name_path, self.fields_path = sent, name, fields
        super().__init__(grammar, **options)
        value = rb'("%s")|(-?\d{1,20})' % quoted_text('"').encode()
        self._name = re.compile(
            rb'"%s"\s*+:\s*+(?:%s)' % (re.escape(json.dumps("".join(name[-1:]))[1:-1].encode()), value)
        )
        self._inside = {path[:steps] for path in (name, (*fields, "")) for steps in range(len(path))}
        """Paths of the objects around name and fields, and of that with the fields."""
        common = len(fields)
        self.reserved = name[common] if name[:common] == fields and len(name) > common else None
        """Key in the object with the fields that leads to the name."""

    def _sent_names(self) -> Mapping[Direction, Mapping[Any, str]]:
        names: dict[Direction, dict[Any, str]] = {direction: {} for direction in DIRECTIONS}
        for (direction, name), sent in self._sent.items():
            names[direction].setdefault(sent, name)
        return names

    def _make_around(self, row: JsonRow) -> JsonObject:
        sent = self._sent[row.direction, row.name]
        are_optional = all(field.optional for field in row.fields)

        def inside(path: Path) -> JsonObject:
            is_body = path == self.fields_path
            fields = [*(row.fields if is_body else ())]
            for inner in sorted(self._inside):
                if inner and inner[:-1] == path:
                    optional = are_optional and inner == self.fields_path
                    fields.append(Field(inner[-1], inside(inner), "", optional=optional))
            if self.name_path and path == self.name_path[:-1]:
                fields.append(Field(self.name_path[-1], JsonChoice((sent,)), "the message's name"))
            found = JsonObject(*fields, is_open=not is_body, is_lenient=is_body and self.is_lenient)
            found.is_body = is_body
            return found

        return inside(())

    def name_in(self, frame: bytes) -> bytes | None:
        found = self._name.search(frame) if self.name_path else None
        return None if found is None else found[found.lastindex or 0].strip(b'"')

    def begun_rows(self, begun: bytes, direction: Direction) -> tuple[JsonRow, ...]:
        if not self.name_path:
            return self._nameless(direction)
        found = self._name.search(begun)
        if found is None:
            return ()
        if found[1] is None:
            return self.rows_of(direction, int(found[2]))
        return self.rows_of(direction, name_at(found[1], (0, len(found[1]))))

    def _nameless(self, direction: Direction) -> tuple[JsonRow, ...]:
        return tuple(row for row in self.all_rows if row.direction == direction)

    def sent_texts(self, row: JsonRow) -> frozenset[bytes]:
        return as_sent((str(self._sent[row.direction, row.name]) if self.name_path else "",))

    def candidates(self, value: Mapping[str, Any], direction: Direction) -> Candidates:
        if not self.name_path:
            return Candidates(self._nameless(direction), "", ())
        sent: Any = value
        for step in self.name_path:
            sent = sent.get(step) if type(sent) is dict else None
        return Candidates(self.rows_of(direction, sent), sent, self.name_path)

    def fields(self, row: JsonRow, whole: dict[str, Any]) -> dict[str, Any]:
        for step in self.fields_path:
            whole = whole.get(step) or {}
        if self.reserved is not None:
            whole.pop(self.reserved, None)
        return whole

    def whole(self, row: JsonRow, fields: Fields) -> dict[str, Any]:
        message: dict[str, Any] = {}
        if self.reserved in fields:
            raise ValueError(f"{self.reserved} is the message's name")
        if self.name_path:
            around = _object_at(message, self.name_path[:-1])
            around[self.name_path[-1]] = self._sent[row.direction, row.name]
        inner = _object_at(message, self.fields_path)
        inner.update({field.name: fields[field.name] for field in row.fields if field.name in fields})
        return message

    def path(self, row: JsonRow, steps: Path) -> Path:
        return (*self.fields_path, *steps)

    def role(self, row: JsonRow, path: Path) -> Role:
        if path and path == self.name_path:
            return "name"
        if path == self.fields_path:
            return "fields"
        return "around" if path in self._inside else "other"

    def wire(self) -> WireType:
        return {"name_path": self.name_path, "fields_path": self.fields_path, "reserved": self.reserved}

    def wire_row(self, row: JsonRow) -> WireType:
        sent = self._sent[row.direction, row.name]
        return {} if isinstance(sent, str) else {"code": str(sent)}


def _object_at(message: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for step in path:
        message = message.setdefault(step, {})
    return message


_BRACKETS = {ord("{"): "object", ord("["): "list"}
_UNKNOWN = "not specified here: readers ignore it"


def build_tree(
    frame: bytes, decoded: Decoded, layout: Layout, row: JsonRow | None, upto: int, envelope: Envelope
) -> tuple[Piece, ...]:
    """Return the pieces of a frame that is JSON up to an offset.

    Args:
        frame: The bytes.
        decoded: The decoded message.
        layout: Where messages have their names and fields.
        row: The row that the frame fits, or was probably intended to fit.
        upto: Offset up to which the frame is JSON.
        envelope: The bytes around the object.
    """
    size = len(frame)
    start, end = envelope.body(frame)
    frame = frame[:end]
    pieces = Pieces(frame)
    pieces.take_any(start, "markup", envelope.title)
    if row is None:
        body = len(frame.rstrip(BLANKS)) or len(frame)
        pieces.take_any(body, *not_understood(decoded))
    else:
        _TreeBuilder(frame, decoded, layout, row, upto, pieces).take(parse_places(frame, upto))
    if not frame[pieces.at :].strip(BLANKS):
        pieces.take_any(end, "markup", "line feed" if frame.endswith(b"\n") else "blanks")
    found = pieces.finish(decoded)
    return found if end == size else (*found, Piece(end, size - end, 0, "markup", envelope.tail))


class _TreeBuilder:
    """Builder of the pieces from the values of an object.

    A member is one piece: its name, its value, and the comma and blanks after it. If the value is an object
    or a list, the piece contains its parts.
    """

    def __init__(
        self, frame: bytes, decoded: Decoded, layout: Layout, row: JsonRow, upto: int, pieces: Pieces
    ) -> None:
        self._frame, self._layout, self._row, self._pieces = frame, layout, row, pieces
        self._is_valid = decoded.valid
        self._violation: int | None = None
        """Offset of the value or name that is invalid."""
        if not decoded.valid and upto == len(frame) and decoded.violations[0].code != "missing-attribute":
            self._violation = decoded.violations[0].place(frame)[0]

    def take(self, root: Node) -> None:
        self._pieces.take_any(root.start, "ignored", "blanks")
        self._object_around(root, self._layout.around(self._row), ())

    def _object_around(self, node: Node, kind: JsonType, path: Path) -> None:
        """Add an object that contains the name or the fields, or both, at a path."""
        pieces, row = self._pieces, self._row
        is_body = self._layout.role(row, path) == "fields"
        pieces.take(node.inside, "markup", "object")
        for member in node.members:
            value = member.value
            part = kind.part(member.step)
            inner = () if part is None else (*path, part.step)
            role = "other" if part is None else self._layout.role(row, inner)
            if part is not None and role == "fields" and self._layout.name_is_key:
                self._body(member, part.type, is_last=node.is_complete and member is node.members[-1])
            elif part is not None and role in ("around", "fields") and self._brackets(value) == "object":
                pieces.take(value.start, "markup", str(part.step))
                self._object_around(value, part.type, inner)
            elif role == "name" and not self._is_wrong(value.start):
                if value.is_complete:
                    pieces.take(value.after, "name", row.name)
            else:
                is_field = part is not None and any(part.step == field.name for field in row.fields)
                self._part(member, part if is_field or is_body else None, ())
        self._close(node, "object")

    def _body(self, member: Member, kind: JsonType, is_last: bool) -> None:
        """Add the fields of a message, whose name is the key before them."""
        value, brackets = member.value, self._brackets(member.value)
        if not brackets or self._is_wrong(member.start, value.start) or isinstance(kind, JsonAlone):
            self._pieces.take(value.start, "name", self._row.name)
            part = Part(self._row.name, kind)
            if isinstance(kind, JsonAlone):
                part = Part(kind.field.name, kind.type)
            self._part(member, part, ())
            return
        self._pieces.take(value.inside, "name", f"{self._row.name}: {kind.title}")
        self._members(value, kind, ())
        if not is_last:
            self._close(value, brackets)

    def _members(self, node: Node, kind: JsonType, path: Path) -> None:
        """Add the members of an object, or the items of a list, whose opening bracket is consumed."""
        for member in node.members:
            if self._pieces.is_full:
                return
            self._part(member, kind.part(member.step), path)

    def _part(self, member: Member, part: Part | None, path: Path) -> None:
        """Add a member or item; None if it is unknown."""
        value = member.value
        kind: Kind = "field" if part is not None else "ignored"
        if self._is_wrong(member.start, value.start):
            kind = "unread"
        path = (*path, part.step) if part is not None else ()
        production = part.type.title if part is not None else _UNKNOWN
        brackets = self._brackets(value)
        # A compact value is short enough for one piece, unless it contains an error.
        is_whole = part is None or (self._is_valid and part.type.is_compact)
        if part is not None and brackets and kind == "field" and not is_whole:
            with self._pieces.inside(kind, production, path):
                self._pieces.take(value.inside, "markup", brackets)
                self._members(value, part.type, path)
                self._close(value, brackets)
        elif value.is_complete:
            self._pieces.take(value.after, kind, production, path)

    def _close(self, node: Node, brackets: str) -> None:
        if node.is_complete:
            self._pieces.take(node.after, "markup", f"end of the {brackets}")

    def _brackets(self, node: Node) -> str:
        """Return the word for an object or a list; empty for any other value."""
        return _BRACKETS.get(self._frame[node.start], "") if node.start < node.end else ""

    def _is_wrong(self, *offsets: int) -> bool:
        """Return True if the value or name at one of the offsets is invalid."""
        return self._violation in offsets
