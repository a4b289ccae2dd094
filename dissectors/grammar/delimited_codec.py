"""Codecs of text protocols, whose messages are a name followed by fields: `NAME field field`.

Of several rows with one name, the first whose fields fit is used; rows with the same number of fields as the
frame precede rows with fewer. For a frame that fits no row, the first error is reported. Protocols override
the methods that report errors and unusual spellings.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Violation,
    count_of_fields,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.patching import Place, changed_fields
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.suggestions import with_suggestion

MAX_QUOTED = 40
"""Maximum length of a quoted message name, in characters."""

_MAX_NAME_LENGTH = 64
"""Number of bytes of a frame that are compared with the names of messages."""


class Parts(msgspec.Struct):
    """The texts of a frame: its name, then its fields.

    `size` is the length in bytes up to the end of the last text, `delimiter_size` that of a delimiter.
    """

    frame: bytes
    texts: list[str]
    size: int
    delimiter_size: int

    def place(self, number: int, start: int = 0, end: int | None = None) -> Place:
        """Return the place in the frame of characters `start` to `end` of a text; the name is text 0."""
        before = sum(len(text.encode()) + self.delimiter_size for text in self.texts[:number])
        text = self.texts[number]
        return before + len(text[:start].encode()), len(text[start:end].encode())


P = TypeVar("P", bound=Parts)

DELIMITER = "delimiter"
LINE_END = "line end"
SURPLUS = "surplus: readers ignore it"
TOO_MUCH = "not understood: unexpected after the last field"
AFTER_AN_ERROR = "not read, because of the error before it"
"""Production of the bytes after a field that could not be decoded."""


class Reading(NamedTuple):
    """A row prepared for decoding: a decoder for each field, and the fields that may have remarks."""

    row: MessageType
    decoders: tuple[tuple[str, Callable[[str], Any]], ...]
    remarkable: tuple[int, ...]


class TextCodec(Codec, Generic[P]):
    """A codec of messages that are a name and fields; `split` finds these in a frame.

    `clause` is the clause of the specification about the form of messages.
    """

    empty_fields = False
    """True if a field may be empty; otherwise an empty field counts as missing."""
    ignores_surplus = False
    """True if readers ignore text after the last field: it is then reported as a note, otherwise as an
    error.
    """

    def __init__(self, grammar: Grammar, clause: str) -> None:
        self.grammar = grammar
        self.clause = clause
        self._max_fields = max((len(row.fields) for row in grammar.rows), default=0)
        self._readings: dict[tuple[Direction, str, int], tuple[Reading, ...]] = {}
        """Candidate rows by direction, name and number of fields, cached on first use."""

    @abstractmethod
    def split(self, frame: bytes) -> P:
        """Return the texts of a frame: name (may be empty) and fields. Raises UnicodeDecodeError."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        try:
            parts = self.split(frame)
        except UnicodeDecodeError as error:
            return self.undecodable(frame, direction, error)
        return self.decode_parts(parts, direction)

    def decode_parts(self, parts: P, direction: Direction) -> Decoded:
        """Return the decoded message of a split frame."""
        texts = parts.texts
        name, count = texts[0], len(texts) - 1
        readings = self._readings.get((direction, name, count))
        if readings is None:
            readings = self._readings_of(direction, name, count)
        for reading in readings:
            row, decoders, _ = reading
            fields: dict[str, Any] = {}
            try:
                # This loop takes half the time of a comprehension; `strict=` would cost as much as a field.
                for (field, decode), text in zip(decoders, texts[1:]):  # noqa: B905  # see above
                    fields[field] = decode(text)
            except Mismatch:
                continue
            violations = self.remarks(parts, reading)
            return Decoded(
                row,
                fields,
                to_json(fields),
                not violations or not any(map(_is_error, violations)),
                violations,
            )
        rows = self.grammar.rows_named(direction, name)
        if not rows:
            return unreadable(self.unknown(parts, direction))
        row = rows[0] if len(rows) == 1 else self.closest(rows, texts[1:])
        fields, violation = self._first_violation(parts, row)
        return Decoded(row, fields, to_json(fields), False, (violation,))

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        row = decoded.row
        places, end = self.places(frame, 0 if row is None else len(row.fields) + 1)
        pieces = Pieces(frame)
        if row is None:
            pieces.take_any(end, *not_understood(decoded))
            pieces.take_any(len(frame), "markup", LINE_END)
            return pieces.finish(decoded)
        (start, length), *values = places
        pieces.take_any(start, "ignored", LINE_END)
        pieces.take(start + length, "name", self.shape(row))
        for field, (start, length) in zip(row.fields, values, strict=False):
            pieces.take_any(start, "markup", DELIMITER)
            if field.name not in decoded.fields:
                pieces.take(start + length, "unread", field.type.title, (field.name,))
                pieces.take_any(end, "unread", AFTER_AN_ERROR)
                break
            self.take_field(pieces, field, frame[start : start + length])
        pieces.take_any(end, *(("ignored", SURPLUS) if decoded.valid else ("unread", TOO_MUCH)))
        pieces.take_any(len(frame), "markup", LINE_END)
        return pieces.finish(decoded)

    def places(self, frame: bytes, count: int) -> tuple[list[Place], int]:
        """Return the places of a frame's first `count` texts, name included, and the end of all texts."""
        try:
            parts = self.split(frame)
        except UnicodeDecodeError:
            return [(0, len(frame))][:count], len(frame)
        return [parts.place(number) for number in range(min(count, len(parts.texts)))], parts.size

    def take_field(self, pieces: Pieces, field: Field, sent: bytes) -> None:
        """Annotate the bytes of a decoded field; override it to annotate the parts of a field."""
        pieces.take(pieces.at + len(sent), "field", field.type.title, (field.name,))

    @abstractmethod
    def shape(self, row: MessageType) -> str:
        """Return the notation of a message of a row: its name, then the names of its fields."""

    def notation(self, row: MessageType) -> str:
        return self.shape(row)

    # Selection of the row.

    def _readings_of(self, direction: Direction, name: str, count: int) -> tuple[Reading, ...]:
        """Return the rows that a message with `count` fields can have, in the order to try them."""
        key = direction, name, min(count, self._max_fields + 1)
        readings = self._readings.get(key)
        if readings is None:
            rows = self.grammar.rows_named(direction, name)
            if not rows:
                # Not cached: the number of unknown names is unlimited.
                return ()
            readings = self._readings[key] = tuple(map(self._reading, self.fitting(rows, count)))
        return readings

    def _reading(self, row: MessageType) -> Reading:
        shape = self.shape(row)
        decoders = (
            (field.name, field.type.decode if self.empty_fields else _filled(field.type.decode, shape))
            for field in row.fields
        )
        remarkable = (
            number
            for number, field in enumerate(row.fields, 1)
            if type(field.type).remark is not FieldType.remark
        )
        return Reading(row, tuple(decoders), tuple(remarkable))

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows that can have `count` fields, in the order to try them."""
        return [*exact_rows(rows, count), *shorter_rows(rows, count)]

    def closest(self, rows: Sequence[MessageType], values: Sequence[str]) -> MessageType:
        """Return the row that an invalid message most probably has: that with the most valid fields."""

        def likeness(row: MessageType) -> tuple[int, bool]:
            count = 0
            for (_, decode), text in zip(self._reading(row).decoders, values, strict=False):
                try:
                    decode(text)
                except Mismatch:
                    break
                count += 1
            return count, row.deviation is None

        return max(rows, key=likeness)

    # Errors.

    def _first_violation(self, parts: P, row: MessageType) -> tuple[dict[str, Any], Violation]:
        """Return the fields before the first invalid one, and the error of that one."""
        fields: dict[str, Any] = {}
        for number, (name, decode) in enumerate(self._reading(row).decoders, 1):
            if number >= len(parts.texts):
                return fields, self.missing(parts, row, number)
            try:
                fields[name] = decode(parts.texts[number])
            except Mismatch as mismatch:
                return fields, self.wrong(parts, row, number, mismatch)
        raise AssertionError("the fields of a row are valid, though decoding failed")

    def missing(self, parts: P, row: MessageType, number: int) -> Violation:
        """Return the error of a message that ends before field `number`, counted from 1."""
        names = ", ".join(field.name for field in row.fields[number - 1 :] if not field.optional)
        text = f"{row.name} ends before its {names}"
        return self.error("missing-field", text, (parts.size, 0), self.shape(row), row.clause)

    def wrong(self, parts: P, row: MessageType, number: int, mismatch: Mismatch) -> Violation:
        """Return the error of a field with an invalid text; `number` counts from 1."""
        place = parts.place(number, mismatch.start, mismatch.end)
        return self.error(mismatch.code, f"{row.name}: {mismatch}", place, mismatch.expected, row.clause)

    def unknown(self, parts: P, direction: Direction) -> Violation:
        """Return the error of a frame with an unknown name; the closest name is suggested."""
        name = parts.texts[0]
        text = f'"{name[:MAX_QUOTED]}" is not a message {sender_of(direction)} sends'
        near = self.grammar.nearest(name, direction)
        if near is not None:
            text = with_suggestion(text, near)
        elif not name:
            text = "the message name is missing"
        return self.error("unknown-message", text, parts.place(0), self.names(direction))

    def undecodable(self, frame: bytes, direction: Direction, error: UnicodeDecodeError) -> Decoded:
        """Return the result for a frame that is not UTF-8."""
        return unreadable(self.not_utf_8(error))

    def not_utf_8(self, error: UnicodeDecodeError) -> Violation:
        """Return the error of bytes that are not UTF-8."""
        wrong = error.object[error.start : error.end]
        text = f"the bytes {wrong.hex(' ')} are not UTF-8"
        return self.error("not-utf-8", text, (error.start, len(wrong)), "UTF-8 text")

    def error(
        self, code: str, text: str, place: Place, expected: str, clause: str | None = None
    ) -> Violation:
        """Return a diagnostic for a message that is invalid, or whose meaning is in doubt."""
        return Violation("error", "malformed", code, text, *place, expected, clause or self.clause)

    def names(self, direction: Direction) -> str:
        """Return the `expected` text for the beginning of a message: its possible names."""
        return "one of " + ", ".join(self.grammar.names(direction))

    # Notes.

    def remarks(self, parts: P, reading: Reading) -> tuple[Violation, ...]:
        """Return the diagnostics of a message whose fields fit its row; an error makes it invalid."""
        row, decoders, remarkable = reading
        if not remarkable and len(parts.texts) <= len(decoders) + 1:
            return ()
        found: list[Violation] = []
        for number in remarkable:
            if number < len(parts.texts):
                field = row.fields[number - 1]
                remark = field.type.remark(parts.texts[number])
                if remark is not None:
                    found.append(self.loose(row, field, remark, parts.place(number)))
        if len(parts.texts) > len(decoders) + 1:
            found.extend(self.surplus(parts, row))
        return tuple(found)

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        """Return a note on a field with an unusual but harmless text."""
        return self.note(f"loose-{field.name}", remark, place, field.type.title, row.clause, habit=True)

    def surplus(self, parts: P, row: MessageType) -> Sequence[Violation]:
        """Return the diagnostics of a message with more fields than its row."""
        count = len(row.fields)
        begin, _ = parts.place(count + 1)
        begin -= parts.delimiter_size
        place = begin, parts.size - begin
        text = f"{row.name} has {count_of_fields(count)}"
        if not self.ignores_surplus:
            return (self.error("surplus-fields", text, place, self.shape(row), row.clause),)
        text += "; what follows is ignored"
        return (self.note("surplus-fields", text, place, self.shape(row), row.clause),)

    def note(
        self,
        code: str,
        text: str,
        place: Place,
        expected: str,
        clause: str | None = None,
        habit: bool = False,
    ) -> Violation:
        """Return a diagnostic for something unusual that does not change the message's meaning."""
        return Violation("note", "malformed", code, text, *place, expected, clause or self.clause, habit)


class DelimitedCodec(TextCodec[Parts]):
    """A codec of names and fields with a delimiter between them, in UTF-8, and an optional line end.

    If there is a line end, all CR and LF at the end of a frame belong to it.
    """

    def __init__(self, grammar: Grammar, clause: str, delimiter: str = " ", line_end: str = "") -> None:
        self._delimiter = delimiter
        self._delimiter_size = len(delimiter.encode())
        self._line_end = line_end
        super().__init__(grammar, clause)

    def split(self, frame: bytes) -> Parts:
        body = self._body(frame)
        return Parts(frame, body.decode().split(self._delimiter), len(body), self._delimiter_size)

    def places(self, frame: bytes, count: int) -> tuple[list[Place], int]:
        # The delimiter's bytes are never part of another character, so this works for invalid UTF-8, too.
        body = self._body(frame)
        found: list[Place] = []
        start = 0
        for part in body.split(self._delimiter.encode(), count)[:count]:
            found.append((start, len(part)))
            start += len(part) + self._delimiter_size
        return found, len(body)

    def shape(self, row: MessageType) -> str:
        names = (f"[{field.name}]" if field.optional else field.name for field in row.fields)
        return self._delimiter.join([row.name, *names])

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        row = self.grammar.row_with(name, direction, fields)
        texts = [field.type.encode(fields[field.name]) for field in row.fields if field.name in fields]
        return f"{self._delimiter.join([name, *texts])}{self._line_end}".encode()

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        # Surplus fields and the line end are kept.
        body = self._body(frame)
        delimiter = self._delimiter.encode()
        parts = body.split(delimiter)
        changed = changed_fields(before, fields)
        for number, field in enumerate(row.fields, 1):
            if field.name in changed:
                parts[number] = field.type.encode(fields[field.name]).encode()
        return delimiter.join(parts) + frame[len(body) :]

    def _body(self, frame: bytes) -> bytes:
        """Return a frame without its line end."""
        return frame.rstrip(b"\r\n") if self._line_end else frame

    def wire_format(self) -> Mapping[str, Any]:
        return {
            "kind": "positional",
            "runtime": ("text_types", "framing_text", "positional"),
            "delimiter": self._delimiter,
            "line_end": bool(self._line_end),
            "encoding": "utf-8",
            "optional": "exact",
            "filled": not self.empty_fields,
            "ignores_surplus": self.ignores_surplus,
        }

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        name = frame[:_MAX_NAME_LENGTH].decode("utf-8", "replace").partition(self._delimiter)[0]
        return self.grammar.nearest(name, direction) is not None


def exact_rows(rows: Sequence[MessageType], count: int) -> list[MessageType]:
    """Return the rows that can have exactly `count` fields."""
    return [
        row for row in rows if sum(not field.optional for field in row.fields) <= count <= len(row.fields)
    ]


def shorter_rows(rows: Sequence[MessageType], count: int) -> list[MessageType]:
    """Return the rows with fewer than `count` fields, those of the specification first."""
    return sorted((row for row in rows if len(row.fields) < count), key=lambda row: row.deviation is not None)


def _filled(decode: Callable[[str], Any], shape: str) -> Callable[[str], Any]:
    """Return a decoder that rejects the empty text, and otherwise calls `decode`."""

    def decode_filled(text: str) -> Any:
        if not text:
            raise Mismatch(0, 0, "the value is empty", shape, "missing-field")
        return decode(text)

    return decode_filled


def _is_error(violation: Violation) -> bool:
    return violation.severity == "error"
