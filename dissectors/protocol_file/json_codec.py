"""The codec of protocol files for JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Violation,
    shortened,
    unreadable,
)
from kiebitz.dissectors.grammar.json_keys import duplicate_key
from kiebitz.dissectors.grammar.json_scanner import DEPTH_LIMIT, JsonMismatch, Member, Node, scan
from kiebitz.dissectors.grammar.layout_codec import UNKNOWN_FIELD, Part
from kiebitz.dissectors.grammar.patching import Path, Place, spelt_alike
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.json_types import JsonType, Misfit, json_quoted
from kiebitz.dissectors.protocol_file.mapping_codec import MappingCodec, Read
from kiebitz.dissectors.protocol_file.specification import Specification

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|[^\\]"
)
_VALUE = "value"
"""Name of the field that is the value of the only key, if that is no object."""

_NO_FIELDS: dict[str, Any] = {}


def _optional(read: Read) -> Read:
    """Return a reader that also accepts null."""
    return lambda value: None if value is None else read(value)


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")) if text else ()


class JsonCodec(MappingCodec):
    """The codec of JSON objects.

    The name is at a path, and the fields are in the object at another one. If the path is `*`, the name is
    the object's key, and its value has the fields, or is the field `value`.
    """

    is_self_delimited = True

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        super().__init__(specification, grammar)
        of = specification.format
        self._is_key = of.name == "*"
        self._name_path = () if self._is_key else _path(of.name)
        self._fields_path = _path(of.fields)
        # Beside the fields, if they are in the same object, is the first key of the name's path.
        self._reserved: tuple[str, ...] = ()
        common = len(self._fields_path)
        if self._name_path[:common] == self._fields_path and len(self._name_path) > common:
            self._reserved = (self._name_path[common],)
        self._is_plain = specification.framing.kind not in ("length", "delimiter", "block")

    def reader_of(self, kind: FieldType) -> Read:
        assert isinstance(kind, JsonType)
        return kind.read

    def _field_reader(self, field: Field) -> Read:
        read = super()._field_reader(field)
        return _optional(read) if field.optional else read

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        data = frame
        start = 0
        if not self._is_plain:
            start, end, is_whole = self.envelope.body(frame)
            if not is_whole:
                return self.not_framed(frame)
            data = frame[start:end]
        try:
            value = _decode(data)
            if data.count(b"[") + data.count(b"{") > DEPTH_LIMIT:
                scan(data)
        except (msgspec.DecodeError, ValueError, RecursionError, JsonMismatch):
            return self._no_json(frame)
        if type(value) is not dict:
            text = f"{json_quoted(value)} is not an object"
            return unreadable(self.error("no-object", text, self._whole(frame), "a JSON object"))
        notes: tuple[Violation, ...] = ()
        duplicate = duplicate_key(data, value)
        if duplicate is not None:
            notes = (msgspec.structs.replace(duplicate, offset=start + duplicate.offset),)
        return self._decode_object(frame, value, direction, notes)

    def _decode_object(
        self, frame: bytes, value: dict[str, Any], direction: Direction, notes: tuple[Violation, ...]
    ) -> Decoded:
        if self._is_key:
            known = self._names[direction]
            sent: Any = next((key for key in value if key in known), next(iter(value), ""))
            body: Any = value.get(sent, _NO_FIELDS)
            if type(body) is not dict and body is not None:
                body = {_VALUE: body}
            name_path: Path = (sent,)
            fields_path: Path = (sent,)
        else:
            name_path, fields_path = self._name_path, self._fields_path
            sent = _value_at(value, name_path)
            body = _value_at(value, fields_path)
        name = self.name_of(sent, direction)
        if name is None:
            if sent is None:
                text = f"there is no message name at {'.'.join(map(str, name_path))}"
                return unreadable(self.error("unknown-message", text, self._whole(frame), "a message name"))
            place = self._scan(frame).nearest(name_path)[0].place
            if self._is_key:
                place = self._key_place(frame, name_path)
            return self.unknown(sent, direction, place)
        if body is None and not any(
            not field.optional for row in self.grammar.rows_named(direction, name) for field in row.fields
        ):
            body = _NO_FIELDS
        if type(body) is not dict:
            row = self.grammar.rows_named(direction, name)[0]
            where = ".".join(map(str, fields_path))
            node, _, steps = self._scan(frame).nearest(fields_path)
            if steps < len(fields_path):
                violation = self.missing_error(row, where, node.place)
            else:
                text = f"{row.name}: {json_quoted(body)} is not an object"
                violation = self.error("bad-value", text, node.place, self.notation(row), row.clause)
            return Decoded(row, {}, "{}", False, (violation, *notes))
        if self._is_key and len(value) > 1:
            beside = next(key for key in value if key != sent)
            notes = (*notes, self._beside(direction, name, beside))
        return self.read(frame, direction, name, body, self._reserved, notes)

    def _beside(self, direction: Direction, name: str, key: str) -> Violation:
        row = self.grammar.rows_named(direction, name)[0]
        violation = self.unknown_field(row, key)
        return msgspec.structs.replace(violation, locate=lambda frame: self._key_place(frame, (key,)))

    def _no_json(self, frame: bytes) -> Decoded:
        start, end, _ = self.envelope.body(frame)
        if start == end:
            return self.empty(frame)
        body = frame[start:end]
        if body.startswith(b"\xef\xbb\xbf"):
            text = "a byte order mark precedes the message"
            return unreadable(self.error("byte-order-mark", text, (start, 3), "UTF-8 without one"))
        if not body.startswith((b"{", b"[", b'"')):
            text = f'"{shortened(body[:80].decode(errors="replace"), 40)}" is not the beginning of an object'
            return unreadable(self.error("no-object", text, (start, end - start), "a JSON object"))
        try:
            scan(frame, start, end)
        except JsonMismatch as error:
            place = error.offset, error.length
            text = "the message ends too early" if error.offset == end else str(error)
            code = "not-utf-8" if error.expected == "UTF-8 text" else "broken-json"
            return unreadable(self.error(code, text, place, error.expected))
        text = "this is not JSON that can be decoded"
        return unreadable(self.error("broken-json", text, (start, end - start), "a JSON object"))

    # Places.

    def _scan(self, frame: bytes) -> Node:
        start, end, _ = self.envelope.body(frame)
        return scan(frame, start, end)

    def _whole(self, frame: bytes) -> Place:
        start, end, _ = self.envelope.body(frame)
        return start, end - start

    def _fields_of(self, root: Node) -> Path:
        """Return the path of the object with the fields."""
        if not self._is_key:
            return self._fields_path
        names = [each for known in self._names.values() for each in known]
        steps = [member.step for member in root.members]
        return (*[step for step in steps if step in names][:1],) or (*steps[:1],)

    def place_of_error(self, frame: bytes, name: str, error: Mismatch | None) -> Place:
        root = self._scan(frame)
        around = self._fields_of(root)
        if error is None:
            return root.nearest(around)[0].place
        inner = error.path if isinstance(error, Misfit) else ()
        body = root.nearest(around)[0]
        steps = inner if self._is_key and not body.is_object else (name, *inner)
        return root.nearest((*around, *steps))[0].place

    def place_of_name(self, frame: bytes, name: str) -> Place:
        return self._key_place(frame, (*self._fields_of(self._scan(frame)), name))

    def _key_place(self, frame: bytes, path: Path) -> Place:
        node, member, steps = self._scan(frame).nearest(path)
        if member is None or steps < len(path):
            return node.place
        start, length = member.key
        return start, len(frame[start : start + length].rstrip(b" \t\r\n").removesuffix(b":").rstrip())

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        root = self._scan(frame)
        kinds = {field.name: field.type for field in row.fields}
        parts: list[Part] = []
        fields_path = self._fields_of(root)

        def walk(node: Node, around: Path) -> None:
            for number, member in enumerate(node.members):
                path = (*around, member.step)
                is_around = any(
                    inner[: len(path)] == path and inner != path for inner in (self._name_path, fields_path)
                )
                if path == self._name_path:
                    parts.append(Part(member.start, member.end, (), "name", row.name))
                elif path == fields_path and self._is_key:
                    parts.append(Part(member.start, member.value.start, (), "name", row.name))
                    if member.value.is_object:
                        walk(member.value, path)
                    elif _VALUE in kinds:
                        value = msgspec.structs.replace(member, start=member.value.start)
                        parts.append(_part(value, None, (_VALUE,), kinds[_VALUE], True))
                elif (path == fields_path or is_around) and member.value.is_object:
                    walk(member.value, path)
                elif around == fields_path:
                    kind = kinds.get(str(member.step))
                    before = node.members[number - 1] if number else None
                    parts.append(_part(member, before, (member.step,), kind, number + 1 == len(node.members)))
                else:
                    parts.append(Part(member.start, member.end, (), "ignored", UNKNOWN_FIELD))

        walk(root, ())
        return parts

    # Spelling.

    def write_message(self, row: MessageType, fields: Mapping[str, Any]) -> bytes:
        values = {field.name: fields[field.name] for field in row.fields if field.name in fields}
        if self._is_key:
            is_value = [*values] == [_VALUE] and not isinstance(values[_VALUE], dict)
            return _encode({self.sent_name(row): values[_VALUE] if is_value else values})
        message: dict[str, Any] = {}
        _put(message, self._name_path, self.sent_name(row))
        if self._fields_path:
            _put(message, self._fields_path, values)
        else:
            for name in values.keys() & message.keys():
                raise ValueError(f"{name} is the message's name")
            message |= values
        return _encode(message)

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        start, length = part.value
        before = frame[start : start + length]
        if b"\\" in before and isinstance(value, str) and before.startswith(b'"'):
            text = spelt_alike(before.decode()[1:-1], value, _CHARACTER, _unescaped, _escaped_alike)
            if text is not None:
                return f'"{text}"'.encode()
        return _encode(value)

    def twice(self, whole: bytes) -> bytes:
        is_alone = not (whole.startswith(b",") or whole.rstrip().endswith(b","))
        return b"%b,%b" % (whole, whole) if is_alone else whole * 2

    def notation(self, row: MessageType) -> str:
        names = (f'"{field.name}":…' for field in row.fields)
        fields = ",".join(names)
        name = json.dumps(self.sent_name(row))
        if self._is_key:
            return f"{{{name}:{{{fields}}}}}"
        head = f'"{".".join(self._name_path)}":{name}'
        if self._fields_path:
            return f'{{{head},"{".".join(self._fields_path)}":{{{fields}}}}}'
        return f"{{{head},{fields}}}" if fields else f"{{{head}}}"

    wire_fallback = "json_any"

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "json", "pairs")

    def wire_details(self) -> Mapping[str, Any]:
        return {
            "kind": "json",
            "is_key": self._is_key or None,
            "name_path": self._name_path,
            "fields_path": self._fields_path,
            "reserved": self._reserved[0] if self._reserved else None,
        }


def _part(member: Member, before: Member | None, path: Path, kind: FieldType | None, is_last: bool) -> Part:
    """Return the part of a member or an item, with those inside it."""
    if not isinstance(kind, JsonType):
        return Part(member.start, member.end, (), "ignored", UNKNOWN_FIELD)
    node = member.value
    inner = node.members
    parts = tuple(
        _part(each, inner[number - 1] if number else None, (*path, each.step), of, number + 1 == len(inner))
        for number, each in enumerate(inner)
        for of in (kind.inner(each.step),)
    )
    whole = member.start, member.end - member.start
    if is_last:
        # The last one has no comma after it, but one before it.
        start = member.start if before is None else before.value.end
        whole = start, node.end - start
    return Part(member.start, member.end, path, "field", kind.title, node.place, whole, kind, parts)


def _value_at(value: Any, path: Path) -> Any:
    """Return the value at a path; None if there is none."""
    for step in path:
        if type(value) is not dict:
            return None
        value = value.get(step)
    return value


def _put(message: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        message = message.setdefault(step, {})
    if isinstance(value, dict) and isinstance(message.get(path[-1]), dict):
        message[path[-1]] |= value
    else:
        message[path[-1]] = value


def _unescaped(character: str) -> str:
    return str(json.loads(f'"{character}"'))


def _escaped_alike(before: str, character: str) -> str:
    return json.dumps(character, ensure_ascii=len(before) > 1)[1:-1]
