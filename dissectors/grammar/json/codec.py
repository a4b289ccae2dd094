"""The codec for messages in JSON: objects to messages and back.

The fast path lets msgspec decode and validate at once: the message is valid, in the specification's form and
without notes. All other messages are decoded, then read by the types of the rows that their name has: the
first row that fits is used, preferably one that knows all attributes. Places in the bytes are found only when
a diagnostic is reported, or a message is shown or changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.envelope import Body, Envelope
from kiebitz.dissectors.grammar.field_type import Fields, FieldType, WireType
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    MessageType,
    Place,
    differences,
    error_at,
    replaced,
    spelt_alike,
    to_json,
    unreadable,
    value_at,
)
from kiebitz.dissectors.grammar.json.containers import JsonObject
from kiebitz.dissectors.grammar.json.diagnostics import ESCAPED_COLON, Conventions, Diagnostics, duplicate_key
from kiebitz.dissectors.grammar.json.framer import JsonFraming
from kiebitz.dissectors.grammar.json.layouts import Candidates, JsonRow, Layout, build_tree
from kiebitz.dissectors.grammar.json.scanner import DEPTH_LIMIT, parse_places
from kiebitz.dissectors.grammar.json.types import JsonAny, Misfit, Reading, quoted
from kiebitz.dissectors.model import Direction

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of msgspec for a text that it cannot decode, or that is not of the expected type."""

_TRIES = 16
"""Number of messages of a name after which strict readers are only tried for every 16th, if all had notes."""

_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|[^\\]"
)


class _StrictReader(NamedTuple):
    """A decoder of messages of one row that are valid, in the specification's form, and without notes."""

    row: JsonRow
    decode: Callable[[bytes], Any]
    check: Callable[[Any], bool] | None
    colons: int
    """Number of colons outside the fields."""
    has_any: bool
    """True if a value may be nested to any depth."""


class JsonCodec(Codec):
    """The codec for messages that are one JSON object each.

    An invalid message has those of its fields that are valid, if readers of the layout are lenient.

    Args:
        layout: Where messages have their names and fields.
        envelope: The bytes around an object.
        framing: How objects are found in a stream, if their structure says where they end.
        clause: Clause of the specification about the form of messages.
        productions: Returns the objects to describe in the reference, by name.
    """

    conventions = Conventions()

    def __init__(
        self,
        layout: Layout,
        envelope: Envelope,
        *,
        framing: JsonFraming | None = None,
        clause: str | None = None,
        productions: Callable[[], Mapping[str, JsonObject]] = dict,
    ) -> None:
        self.layout, self.envelope = layout, envelope
        self._is_bare = envelope.has_only_blanks
        self.framing = framing
        self._has_lines = framing is not None and not framing.ends_at_bracket
        """True if each message is a line; other line ends and blanks are noted."""
        self._productions = productions
        conventions = self.conventions
        if clause is not None:
            conventions = msgspec.structs.replace(conventions, message_clause=clause, names_clause=clause)
        self._report = Diagnostics(conventions, layout)
        self._names: dict[tuple[Direction, bytes], tuple[JsonRow, ...]] = {}
        for row in layout.all_rows:
            for text in layout.sent_texts(row):
                key = row.direction, text
                self._names[key] = (*self._names.get(key, ()), row)
        self._strict: dict[tuple[Direction, bytes | None], tuple[_StrictReader, ...]] = {}
        self._misses: dict[tuple[Direction, bytes | None], int] = {}
        """Number of the last messages of a name that no strict reader could decode."""

    # Decoding.

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        place = None
        if not self._is_bare:
            place = self.envelope.body(frame)
            frame = frame[slice(*place)]
        if not self._has_lines or (frame[-2:] == b"}\n" and frame.count(b"\n") == 1):
            key = direction, self.layout.name_in(frame)
            readers = self._strict.get(key)
            if readers is None:
                readers = self._strict_readers(*key)
            if readers:
                misses = self._misses.get(key, 0)
                if misses < _TRIES or misses % _TRIES == 0:
                    decoded = self._decode_strictly(frame, readers)
                    if decoded is not None:
                        self._misses[key] = 0
                        return decoded
                self._misses[key] = misses + 1
        decoded = self.decode_slowly(frame, direction)
        return self._moved(decoded, place) if decoded.violations else decoded

    def _moved(self, decoded: Decoded, body: Body | None = None) -> Decoded:
        """Return a decoded object with its diagnostics' places in the frame, and their public codes."""
        codes = self.conventions.codes
        if body is None and not codes:
            return decoded
        start, end = body or (0, None)

        violations = (
            msgspec.structs.replace(each.inside(start, end), code=codes.get(each.code, each.code))
            for each in decoded.violations
        )
        return msgspec.structs.replace(decoded, violations=tuple(violations))

    def _decode_strictly(self, frame: bytes, readers: tuple[_StrictReader, ...]) -> Decoded | None:
        for row, read, check, colons, has_any in readers:
            try:
                whole = read(frame)
            except NOT_JSON:
                continue
            if check is not None and not check(whole):
                continue
            fields = self.layout.fields(row, whole)
            text = to_json(fields)
            # The fields lack attributes that are unknown or repeated, and so their colons.
            if (
                frame.count(b":") == text.count(":") + colons
                and ESCAPED_COLON not in frame
                and not (has_any and _brackets(frame) > DEPTH_LIMIT)
            ):
                return Decoded(row, fields, text, True)
        return None

    def _strict_readers(self, direction: Direction, text: bytes | None) -> tuple[_StrictReader, ...]:
        rows = self._names.get((direction, text or b""))
        if rows is None:
            return ()
        readers = []
        for number, row in enumerate(rows):
            around = self.layout.around(row)
            kind = around.strict() if row.form == "object" else None
            # A message that an earlier row might fit, too, is read by all of them.
            if kind is not None and all(_differ(row, other) for other in rows[:number]):
                colons = to_json(self.layout.whole(row, {})).count(":")
                decode = msgspec.json.Decoder(kind).decode
                readers.append(_StrictReader(row, decode, around.check(), colons, _has_any(around)))
        self._strict[direction, text] = found = tuple(readers)
        return found

    def decode_slowly(self, frame: bytes, direction: Direction) -> Decoded:
        """Return the decoded message by the types of its row, without the fast path."""
        try:
            value = _decode(frame)
        except NOT_JSON:
            return self._report.undecodable(frame)
        if _brackets(frame) > DEPTH_LIMIT and (error := self._report.syntax_error(frame)) is not None:
            return unreadable(error)
        if type(value) is not dict:
            return self._report.not_an_object(frame, value)
        found = self.layout.candidates(value, direction)
        decoded = (
            self._decode_object(frame, value, found) if found.rows else self._unknown(value, found, direction)
        )
        duplicate = duplicate_key(frame, value)
        if duplicate is None:
            return decoded
        return msgspec.structs.replace(decoded, violations=(*decoded.violations, duplicate))

    def _unknown(self, value: dict[str, Any], found: Candidates, direction: Direction) -> Decoded:
        if self.layout.name_is_key and (found.sent is None or not value):
            return self._report.not_one_message(value, direction)
        if found.sent is None:
            return self._report.no_name(found.path)
        return self._report.unknown_message(found.sent, direction, found.path, self.layout.name_is_key)

    def _decode_object(self, frame: bytes, value: dict[str, Any], candidates: Candidates) -> Decoded:
        unfit: Misfit | None = None
        closest = candidates.rows[0]
        found: tuple[JsonRow, dict[str, Any], Reading] | None = None
        for row in candidates.rows:
            reading = Reading()
            try:
                whole = self.layout.around(row).read(value, reading)
            except Misfit as error:
                error.below(reading.path)
                if unfit is None or self._nearness(error, row) > self._nearness(unfit, closest):
                    unfit, closest = error, row
                continue
            if found is None or not reading.has_surplus:
                found = row, whole, reading
            if not reading.has_surplus:
                break
        if found is None:
            assert unfit is not None
            return self._misfit(closest, unfit)
        row, whole, reading = found
        if reading.has_surplus and unfit is not None and self._is_surplus(unfit, row):
            return self._misfit(closest, unfit)
        fields = self.layout.fields(row, whole)
        notes = self._report.remarks_on(row, reading.remarks) if reading.remarks else ()
        if self._has_lines and (
            frame[:1] != b"{" or frame[-2:] != b"}\n" or frame.find(b"\n") != len(frame) - 1
        ):
            notes = (*self._report.layout_notes(frame), *notes)
        return Decoded(row, fields, to_json(fields), True, notes)

    def _nearness(self, error: Misfit, row: JsonRow) -> tuple[bool, bool, int, int]:
        """Return a sort key for how closely a row fits that does not fit.

        A missing value is closer than another form of the whole message; an invalid value is closer still,
        and the closer the deeper it is nested. Otherwise the row with more valid fields is closer.
        """
        is_missing = error.code == "missing-attribute"
        is_inside = len(error.path) > len(self.layout.path(row, ()))
        return is_missing or is_inside, not is_missing, len(error.path), len(error.valid_fields)

    def _is_surplus(self, error: Misfit, row: JsonRow) -> bool:
        """Return True if a value is invalid in one row only because `row` has no such attribute."""
        place = len(self.layout.path(row, ()))
        names = self.layout.spellings.of(field.name for field in row.fields)
        return error.code == "bad-value" and len(error.path) > place and error.path[place] not in names

    def _misfit(self, row: JsonRow, error: Misfit) -> Decoded:
        names = {field.name for field in row.fields if self.layout.is_lenient}
        fields = {name: value for name, value in error.valid_fields.items() if name in names}
        return self._report.misfit(row, error, fields)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        start, end = self.envelope.body(frame)
        if not self.envelope.is_line and start < end:
            decoded = self.decode(frame, direction)
            text, expected = "the stream ends in this message", "the rest of the message"
            violation = error_at("truncated", text, (len(frame), 0), expected)
            return msgspec.structs.replace(decoded, valid=False, violations=(violation,))
        try:
            _decode(frame[start:end])
        except NOT_JSON:
            return self._moved(self._report.undecodable(frame[start:end], ended=True), Body(start, end))
        # A reader of single objects needs no line feed after the last one.
        return self.decode(frame, direction)

    # Encoding.

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        for row in self.layout.rows_named(direction, name):
            try:
                value = self.layout.whole(row, fields)
                whole = self.layout.around(row).read(value, Reading())
            except (Misfit, ValueError):
                continue
            if self.layout.fields(row, whole) == fields:
                return self.envelope.wrap(_encode(value) + b"\n" * self._has_lines)
        raise ValueError(f"{direction} {name} has no row with these fields: {quoted(fields)}")

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        """Return the frame with the changed values replaced in place; see `Codec.patch`.

        A value whose parts differ from before is written as a whole, in the specification's spelling.
        """
        assert isinstance(row, JsonRow)
        start, end = self.envelope.body(frame)
        body = frame[start:end]
        root = parse_places(body)
        pieces: dict[Place, bytes] = {}
        for path in differences(before, fields):
            new = value_at(fields, path) if path else self.layout.whole(row, fields)
            sent = self.layout.path(row, path) if path else ()
            at, length = root.place_of(sent, spellings=self.layout.spellings)
            pieces[at, length] = _spelt_alike(body[at : at + length], new)
        return self.envelope.rewrap(frame, replaced(body, pieces))

    # Places.

    def field_place(self, frame: bytes, row: MessageType, *steps: str | int) -> Place:
        """Return the place of a field, or of a part of it, in a valid message.

        `steps` are in the specification's spelling; at a step that does not exist, the path ends.
        """
        assert isinstance(row, JsonRow)
        start, end = self.envelope.body(frame)
        path, spellings = self.layout.path(row, steps), self.layout.spellings
        at, length = parse_places(frame[start:end]).place_of(path, spellings=spellings)
        return start + at, length

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        row, (start, end) = decoded.row, self.envelope.body(frame)
        upto = end
        try:
            _decode(frame[start:end])
        except NOT_JSON:
            upto = decoded.violations[0].place(frame)[0]
            row = next(iter(self.layout.begun_rows(frame[start:upto], direction)), None)
        row = row if isinstance(row, JsonRow) else None
        return build_tree(frame, decoded, self.layout, row, upto, self.envelope)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        is_there = super().text_place(frame, row, name) is not None
        return self.field_place(frame, row, name) if is_there else None

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        # A member includes the comma after it; the last one has none, and includes the comma before it.
        place = super().text_place(frame, row, name)
        if place is None:
            return None
        start, length = place
        before = frame[:start].rstrip()
        if not frame[start : start + length].rstrip().endswith(b",") and before.endswith(b","):
            return len(before) - 1, start + length - len(before) + 1
        return place

    def twice(self, whole: bytes, row: MessageType) -> bytes:
        is_alone = not (whole.startswith(b",") or whole.rstrip().endswith(b","))
        return b"%b,%b" % (whole, whole) if is_alone else whole * 2

    # The reference, and Wireshark.

    @property
    def productions(self) -> tuple[str, ...]:
        return tuple(
            f"{name} = {{{', '.join(f'{field.name}: {field.type.title}' for field in each.fields)}}}"
            for name, each in self._productions().items()
        )

    def notation(self, row: MessageType) -> str:
        assert isinstance(row, JsonRow)
        return _notation(self.layout.whole(row, {field.name: ... for field in row.fields}))

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        decoded = self.decode(frame, direction)
        return decoded.row is not None or any(
            violation.code == "unknown-message" and violation.suggestion is not None
            for violation in decoded.violations
        )

    wire_fallback = "json_any"

    def wire_format(self) -> WireType:
        framing = self.envelope.wire_framing()
        if self.framing is not None and self._has_lines:
            framing = {**self.framing.wire(), "skips_blanks": True}
        return {
            "framing": framing,
            "encoding": "utf-8",
            "runtime": ("text_types", "framing_text", *self.envelope.wire_parts, "json", "pairs"),
            "kind": "json",
            **self.layout.wire(),
        }

    def wire_row(self, row: MessageType) -> WireType:
        assert isinstance(row, JsonRow)
        return self.layout.wire_row(row)


def _notation(value: Any) -> str:
    if value is ...:
        return "…"
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{_notation(part)}" for key, part in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_notation, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _brackets(frame: bytes) -> int:
    """Return the number of opening brackets, which is the largest possible depth."""
    return frame.count(b"[") + frame.count(b"{")


def _has_any(kind: FieldType) -> bool:
    return isinstance(kind, JsonAny) or any(map(_has_any, kind.parts))


def _differ(row: JsonRow, other: JsonRow) -> bool:
    """Return True if a message with the fields of one row never fits the other one."""
    names, others = ({field.name for field in each.fields} for each in (row, other))
    required, others_required = (
        {field.name for field in each.fields if not field.optional} for each in (row, other)
    )
    return other.form != row.form or not required <= others or not others_required <= names


def _spelt_alike(before: bytes, value: Any) -> bytes:
    """Encode a value as JSON; use escapes if the previous text did, as many programs write ASCII only."""
    if b"\\" in before and isinstance(value, str):
        text = spelt_alike(before.decode()[1:-1], value, _CHARACTER, _unescaped, _escaped_alike)
        if text is not None:
            return f'"{text}"'.encode()
    return _encode(value)


def _unescaped(character: str) -> str:
    return str(json.loads(f'"{character}"'))


def _escaped_alike(before: str, character: str) -> str:
    return json.dumps(character, ensure_ascii=len(before) > 1)[1:-1]
