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
"""So much of a wrong name is quoted (characters)."""

_MAX_NAME_LENGTH = 64
"""So many bytes of a frame are compared with the names of messages."""


class Parts(msgspec.Struct):
    """A frame taken apart: the texts of its name and its fields, in `size` bytes, and where they stand.

    The delimiter between two of them takes `between` bytes.
    """

    frame: bytes
    texts: list[str]
    size: int
    between: int

    def place(self, number: int, start: int = 0, end: int | None = None) -> Place:
        """Where in the frame characters `start` to `end` of a text stand; the name's number is 0."""
        before = sum(len(text.encode()) + self.between for text in self.texts[:number])
        text = self.texts[number]
        return before + len(text[:start].encode()), len(text[start:end].encode())


P = TypeVar("P", bound=Parts)

DELIMITER = "delimiter"
LINE_END = "line end"
SURPLUS = "surplus: readers ignore it"
TOO_MUCH = "not understood: nothing more was to come"
AFTER_AN_ERROR = "not read, because of the error before it"
"""What takes the bytes of a message that are no name and no field."""


class Reading(NamedTuple):
    """A row as the hot path wants it: how each field is decoded, and which of them can be remarked upon."""

    row: MessageType
    decoders: tuple[tuple[str, Callable[[str], Any]], ...]
    remarkable: tuple[int, ...]


class TextCodec(Codec, Generic[P]):
    """Reads messages that are a name and fields; how these stand in a frame says `split`.

    `clause` is the one of the specification on how messages are written.
    """

    empty_fields = False
    """Whether a field may be empty; else one that is counts as missing."""
    ignores_surplus = False
    """Whether readers ignore what follows the last field: then it is noted, else it is an error."""

    def __init__(self, grammar: Grammar, clause: str) -> None:
        self.grammar = grammar
        self.clause = clause
        self._most = max((len(row.fields) for row in grammar.rows), default=0)
        self._readings: dict[tuple[Direction, str, int], tuple[Reading, ...]] = {}
        """Made as they are asked for; with more fields than any row has they are the same."""

    @abstractmethod
    def split(self, frame: bytes) -> P:
        """Take a frame apart; a name is always there, if only an empty one. Raises UnicodeDecodeError."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        try:
            parts = self.split(frame)
        except UnicodeDecodeError as error:
            return self.undecodable(frame, direction, error)
        return self.read(parts, direction)

    def read(self, parts: P, direction: Direction) -> Decoded:
        """What a frame says that is taken apart."""
        texts = parts.texts
        name, count = texts[0], len(texts) - 1
        readings = self._readings.get((direction, name, count))
        if readings is None:
            readings = self._readings_of(direction, name, count)
        for reading in readings:
            row, decoders, _ = reading
            fields: dict[str, Any] = {}
            try:
                # A loop of its own costs half of a comprehension, and `strict=` as much as a field.
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
        """Where the first of a frame's texts stand, the name before the fields, and where they all end."""
        try:
            parts = self.split(frame)
        except UnicodeDecodeError:
            return [(0, len(frame))][:count], len(frame)
        return [parts.place(number) for number in range(min(count, len(parts.texts)))], parts.size

    def take_field(self, pieces: Pieces, field: Field, sent: bytes) -> None:
        """Take the bytes of a field that was read; one with parts in it may be taken part by part."""
        pieces.take(pieces.at + len(sent), "field", field.type.title, (field.name,))

    @abstractmethod
    def shape(self, row: MessageType) -> str:
        """How a message of a row is written: its name, then its fields' names."""

    def notation(self, row: MessageType) -> str:
        return self.shape(row)

    # Which row.

    def _readings_of(self, direction: Direction, name: str, count: int) -> tuple[Reading, ...]:
        """The rows that so many fields can be of, in the order to try them."""
        key = direction, name, min(count, self._most + 1)
        readings = self._readings.get(key)
        if readings is None:
            rows = self.grammar.rows_named(direction, name)
            if not rows:
                # Not kept: there are as many unknown names as anybody likes.
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
        """Of several rows with one name those that so many fields can be of, in the order to try them."""
        return [*exact_rows(rows, count), *shorter_rows(rows, count)]

    def closest(self, rows: Sequence[MessageType], values: Sequence[str]) -> MessageType:
        """Of several rows with one name, none of which fits, the one that was meant: of which the most fields
        fit."""

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

    # What is wrong.

    def _first_violation(self, parts: P, row: MessageType) -> tuple[dict[str, Any], Violation]:
        """The fields before the first that does not fit, and what is wrong with that one."""
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
        """The fields from this one on, 1 being the first, are not there."""
        names = ", ".join(field.name for field in row.fields[number - 1 :] if not field.optional)
        text = f"{row.name} ends before its {names}"
        return self.error("missing-field", text, (parts.size, 0), self.shape(row), row.clause)

    def wrong(self, parts: P, row: MessageType, number: int, mismatch: Mismatch) -> Violation:
        """A field, 1 being the first, has a text that is none of its values."""
        place = parts.place(number, mismatch.start, mismatch.end)
        return self.error(mismatch.code, f"{row.name}: {mismatch}", place, mismatch.expected, row.clause)

    def unknown(self, parts: P, direction: Direction) -> Violation:
        """A frame begins with no known name; what it may have been meant to be."""
        name = parts.texts[0]
        text = f'"{name[:MAX_QUOTED]}" is no message {sender_of(direction)} sends'
        near = self.grammar.nearest(name, direction)
        if near is not None:
            text = with_suggestion(text, near)
        elif not name:
            text = "there is no message name"
        return self.error("unknown-message", text, parts.place(0), self.names(direction))

    def undecodable(self, frame: bytes, direction: Direction, error: UnicodeDecodeError) -> Decoded:
        """What a frame says that is not UTF-8."""
        return unreadable(self.not_utf_8(error))

    def not_utf_8(self, error: UnicodeDecodeError) -> Violation:
        """Where the bytes are that are no text."""
        wrong = error.object[error.start : error.end]
        text = f"the bytes {wrong.hex(' ')} are not UTF-8"
        return self.error("not-utf-8", text, (error.start, len(wrong)), "UTF-8 text")

    def error(
        self, code: str, text: str, place: Place, expected: str, clause: str | None = None
    ) -> Violation:
        """Something that makes the message another than was meant, or none at all."""
        return Violation("error", "malformed", code, text, *place, expected, clause or self.clause)

    def names(self, direction: Direction) -> str:
        """What is expected where a message begins."""
        return "one of " + ", ".join(self.grammar.names(direction))

    # What is unusual.

    def remarks(self, parts: P, reading: Reading) -> tuple[Violation, ...]:
        """What is to be said of a message whose fields fit its row; where it is an error, it is not valid."""
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
        """A field's text is unusual, but harmless."""
        return self.note(f"loose-{field.name}", remark, place, field.type.title, row.clause, habit=True)

    def surplus(self, parts: P, row: MessageType) -> Sequence[Violation]:
        """There is more than the row's fields."""
        count = len(row.fields)
        begin, _ = parts.place(count + 1)
        begin -= parts.between
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
        """Something unusual that changes nothing of what the message says."""
        return Violation("note", "malformed", code, text, *place, expected, clause or self.clause, habit)


class DelimitedCodec(TextCodec[Parts]):
    """Name and fields with a delimiter between them, in UTF-8, and a line end behind them, if there is one.

    Of a line that comes any CR and LF at its end are its end.
    """

    def __init__(self, grammar: Grammar, clause: str, delimiter: str = " ", line_end: str = "") -> None:
        self._delimiter = delimiter
        self._between = len(delimiter.encode())
        self._line_end = line_end
        super().__init__(grammar, clause)

    def split(self, frame: bytes) -> Parts:
        body = self._body(frame)
        return Parts(frame, body.decode().split(self._delimiter), len(body), self._between)

    def places(self, frame: bytes, count: int) -> tuple[list[Place], int]:
        # A delimiter is no part of a character, so it is found where the others are no UTF-8, too.
        body = self._body(frame)
        found: list[Place] = []
        start = 0
        for part in body.split(self._delimiter.encode(), count)[:count]:
            found.append((start, len(part)))
            start += len(part) + self._between
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
        # What is surplus stays, and so does the line end.
        body = self._body(frame)
        delimiter = self._delimiter.encode()
        parts = body.split(delimiter)
        changed = changed_fields(before, fields)
        for number, field in enumerate(row.fields, 1):
            if field.name in changed:
                parts[number] = field.type.encode(fields[field.name]).encode()
        return delimiter.join(parts) + frame[len(body) :]

    def _body(self, frame: bytes) -> bytes:
        """A frame without its line end."""
        return frame.rstrip(b"\r\n") if self._line_end else frame

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        name = frame[:_MAX_NAME_LENGTH].decode("utf-8", "replace").partition(self._delimiter)[0]
        return self.grammar.nearest(name, direction) is not None


def exact_rows(rows: Sequence[MessageType], count: int) -> list[MessageType]:
    """Those that can have so many fields."""
    return [
        row for row in rows if sum(not field.optional for field in row.fields) <= count <= len(row.fields)
    ]


def shorter_rows(rows: Sequence[MessageType], count: int) -> list[MessageType]:
    """Those with fewer fields; the specification's go first."""
    return sorted((row for row in rows if len(row.fields) < count), key=lambda row: row.deviation is not None)


def _filled(decode: Callable[[str], Any], shape: str) -> Callable[[str], Any]:
    """Decodes a field that cannot be empty."""

    def decode_filled(text: str) -> Any:
        if not text:
            raise Mismatch(0, 0, "there is nothing here", shape, "missing-field")
        return decode(text)

    return decode_filled


def _is_error(violation: Violation) -> bool:
    return violation.severity == "error"
