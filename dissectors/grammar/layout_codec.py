"""The base of codecs that know the places of fields: byte tree, patching, spelling, and diagnostics.

A codec describes a frame once, as a `layout`: its name and its fields in the order of their bytes. From it
derive the annotated bytes, the replacement of changed values, and the places of fields.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import UNWRITABLE, Fields, FieldType, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import PartsText
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Path,
    Place,
    Violation,
    differences,
    error_at,
    replaced,
    sender_of,
    shortened,
    to_json,
    unreadable,
    value_at,
)
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Direction
from kiebitz.dissectors.suggestions import with_suggestion

MAX_QUOTED = 40
"""Maximum length of a quoted name or value, in characters."""

DELIMITER = "delimiter"
SURPLUS = "surplus: readers ignore it"
TOO_MUCH = "not understood: unexpected after the last field"
NO_FIELDS = "no fields"
UNKNOWN_FIELD = "not specified: readers ignore it"

_OTHER_VALUES = (Mismatch, *UNWRITABLE)
"""Exceptions for values that belong to another row."""


class Part(msgspec.Struct, frozen=True):
    """The bytes of a field or of a part of it, from `start` to `end`, with its name.

    Attributes:
        start: Offset in the frame.
        end: Offset after it.
        path: Path in the message's fields; () for other bytes.
        kind: Kind of bytes.
        title: Description, such as its type's.
        value: Place of the value alone.
        whole: Place of all bytes that belong to it alone, such as the delimiter before it.
        type: Its type, if it can be written.
        parts: The parts inside it.
        pad: Padding of quoted parts in its message.
    """

    start: int
    end: int
    path: Path
    kind: Kind
    title: str
    value: Place = (0, 0)
    whole: Place = (0, 0)
    type: FieldType | None = None
    parts: tuple[Part, ...] = ()
    pad: str = ""


class LayoutCodec(Codec):
    """A codec whose messages have a name, or a code that stands for it, and fields with places.

    `clause` is the clause of the specification about the form of messages, if it has one. `codes` are what is
    sent in place of names. If messages are nameless, their name is elsewhere: it is the only one.
    """

    between = "punctuation"
    """Description of the bytes between fields."""

    unit = "message"
    """Word for a message in diagnostics."""

    names_fields = True
    """True if the error of a field begins with its name."""

    is_self_delimited = False
    """True if a message shows by itself where it ends: then it needs no line end."""

    def __init__(
        self,
        grammar: Grammar,
        envelope: Envelope,
        *,
        clause: str | None = None,
        encoding: str = "utf-8",
        codes: Mapping[tuple[Direction, str], int | str] = MappingProxyType({}),
        is_nameless: bool = False,
    ) -> None:
        self.is_nameless = is_nameless
        self.only_names = {each: next(iter(grammar.names(each)), "") for each in DIRECTIONS}
        """The first name of each direction: that of all messages if they are nameless."""
        self.grammar = grammar
        self.envelope = envelope
        self.clause = clause
        self.encoding = encoding
        self._sent_names: dict[tuple[Direction, str], str | int] = {
            (row.direction, row.name): codes.get((row.direction, row.name), row.name) for row in grammar.rows
        }
        self._names: dict[Direction, dict[str | int, str]] = {each: {} for each in DIRECTIONS}
        for (direction, name), sent in self._sent_names.items():
            self._names[direction].setdefault(sent, name)

    # What formats define.

    @abstractmethod
    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        """Return the name and the fields of a frame in the order of their bytes, as far as it has them."""

    @abstractmethod
    def write_message(self, row: MessageType, fields: Fields) -> bytes:
        """Return the bytes of a message of this row without its envelope; raise ValueError if impossible."""

    @abstractmethod
    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        """Return the bytes that replace a part's value."""

    # The same for all formats.

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        decoded = self.decode(frame, direction)
        if self.is_self_delimited and decoded.row is not None and self.envelope.is_line:
            return decoded
        start, end = self.envelope.body(frame)
        if start == end:
            return self.empty(frame)
        violation = self.error(
            "truncated",
            f"the stream ends in this {self.unit}",
            (len(frame), 0),
            f"the end of the {self.unit}",
        )
        if decoded.row is None:
            return unreadable(violation)
        return Decoded(decoded.row, decoded.fields, decoded.fields_json, False, (violation,))

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        rows = self.grammar.rows_named(direction, name)
        return self.encoded(rows, name, direction, fields, self.write_message)

    def encoded(
        self,
        rows: Sequence[MessageType],
        name: str,
        direction: Direction,
        fields: Fields,
        write: Callable[[MessageType, Mapping[str, Any]], bytes],
    ) -> bytes:
        """Return the frame of the first row that has these fields and decodes to them; see `encode`."""
        wanted = to_json(fields)
        for row in rows:
            if not row.matches(fields) or not self.has_all(row, fields):
                continue
            try:
                frame = self.envelope.wrap(write(row, fields))
            except _OTHER_VALUES:
                continue
            decoded = self.decode(frame, direction)
            is_same = decoded.row is not None and decoded.row.name == name and decoded.fields_json == wanted
            if is_same and decoded.valid:
                return frame
        raise ValueError(f"{direction} {name} has no row with these fields: {shortened(wanted, MAX_QUOTED)}")

    def has_all(self, row: MessageType, fields: Fields) -> bool:
        """Return True if a message has all fields that it needs."""
        return all(field.name in fields or field.optional for field in row.fields)

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        parts = {part.path: part for part in walk(self.layout(frame, row)) if part.type is not None}
        pieces: dict[Place, bytes] = {}
        for path in differences(before, fields):
            # The smallest part around the value that has bytes of its own.
            while path and path not in parts:
                path = path[:-1]
            if not path:
                raise ValueError("a field is new, or gone")
            part = parts[path]
            pieces[part.value] = self.write_part(frame, part, value_at(fields, path))
        start, end = self.envelope.body(frame)
        changed = replaced(frame, pieces)
        return self.envelope.rewrap(frame, changed[start : len(changed) - (len(frame) - end)])

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        start, end = self.envelope.body(frame)
        pieces = Pieces(frame)
        pieces.take_any(start, "markup", self.envelope.title)
        if decoded.row is None:
            pieces.take_any(end, *not_understood(decoded))
        else:
            for part in self.layout(frame, decoded.row):
                self._take(pieces, part, decoded)
            pieces.take_any(end, "markup", self.between)
        pieces.take_any(len(frame), "markup", self.envelope.tail)
        return pieces.finish(decoded)

    def _take(self, pieces: Pieces, part: Part, decoded: Decoded) -> None:
        if pieces.is_full or part.end < pieces.at:
            return
        pieces.take_any(part.start, "markup", self.between)
        kind, title = part.kind, part.title
        if kind == "field" and self.is_unread(part, decoded):
            kind = "unread"
        elif title is SURPLUS and not decoded.valid:
            kind, title = "unread", TOO_MUCH
        if part.parts and kind == "field":
            with pieces.inside(kind, part.title, part.path):
                for each in part.parts:
                    self._take(pieces, each, decoded)
                pieces.take_any(part.end, "markup", self.between)
        elif kind == "field":
            pieces.take(part.end, kind, part.title, part.path)
        else:
            pieces.take_any(part.end, kind, title, part.path)

    def place_at(self, frame: bytes, row: MessageType, *path: str | int) -> Place:
        """Return the place of a value in a valid frame; raise LookupError if it has none."""
        parts = walk(self.layout(frame, row))
        return {part.path: part.value for part in parts}[path]

    def is_unread(self, part: Part, decoded: Decoded) -> bool:
        """Return True if a field's bytes could not be read."""
        # An optional field of a valid message may have an empty text.
        return bool(part.path) and not decoded.valid and part.path[0] not in decoded.fields

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        part = self._part_of(frame, row, name)
        return None if part is None or part.type is None else part.value

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        part = self._part_of(frame, row, name)
        return None if part is None else part.whole

    def _part_of(self, frame: bytes, row: MessageType, name: str) -> Part | None:
        return next((part for part in reversed(self.layout(frame, row)) if part.path == (name,)), None)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        if self.encoding == "utf-8":
            return super().as_text(frame, row, field, text)
        return text.encode(self.encoding, "surrogateescape")

    def wire_format(self) -> WireType:
        return {
            "framing": self.envelope.wire_framing(),
            "encoding": self.encoding,
            "runtime": ("text_types", "framing_text", *self.wire_parts()),
            **self.wire_details(),
        }

    def wire_parts(self) -> Sequence[str]:
        """Return the parts of the run-time library that the format and the framing need."""
        return self.envelope.wire_parts

    @abstractmethod
    def wire_details(self) -> WireType:
        """Return what describes this format, with its `kind`."""

    def wire_row(self, row: MessageType) -> WireType:
        sent = self.sent_name(row)
        if not isinstance(sent, str):
            return {"code": str(sent)}
        return {} if sent == row.name else {"sent": sent}

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        decoded = self.decode(frame, direction)
        return decoded.row is not None or any(each.suggestion is not None for each in decoded.violations)

    def sent_name(self, row: MessageType) -> str | int:
        """Return what stands for a message's name in its bytes."""
        return self._sent_names.get((row.direction, row.name), row.name)

    def name_of(self, sent: Any, direction: Direction) -> str | None:
        """Return the message name for what was sent in its place, None if it is unknown."""
        if type(sent) is str or type(sent) is int:
            return self._names[direction].get(sent)
        return None

    def name_of_text(self, sent: str, direction: Direction) -> str | None:
        """Return the message name for a text, which may be the digits of a code; None if it is unknown."""
        name = self.name_of(sent, direction)
        if name is None and sent.isdigit() and sent.isascii() and len(sent) < 20:
            name = self.name_of(int(sent), direction)
        return name

    # Diagnostics.

    def error(
        self, code: str, text: str, place: Place, expected: str | None = None, clause: str | None = None
    ) -> Violation:
        """Return an error of a message."""
        return error_at(code, text, place, expected, clause or self.clause)

    def field_error(self, row: MessageType, name: str, mismatch: Mismatch, place: Place) -> Violation:
        """Return the error of a field with an invalid value."""
        head = f"{row.name}: {name}" if self.names_fields else row.name
        text = f"{head}: {mismatch.problem}"
        return self.error(mismatch.code, text, place, mismatch.expected, row.clause)

    def missing_error(self, row: MessageType, name: str, place: Place) -> Violation:
        """Return the error of a message without a field."""
        text = f"{row.name} has no {name}"
        return self.error("missing-field", text, place, self.notation(row), row.clause)

    def unknown_message(self, sent: Any, direction: Direction, place: Place) -> Violation:
        """Return the error of a message whose name is not known."""
        is_others = isinstance(sent, str | int) and sent in self._names[OPPOSITE[direction]]
        return unknown_name(self.grammar, sent, direction, place, is_others, self.clause)

    def not_text(self, frame: bytes, error: UnicodeDecodeError, offset: int) -> Violation:
        """Return the error of bytes that are not in the protocol's encoding."""
        wrong = error.object[error.start : error.end]
        charset = self.encoding.upper()
        text = f"the bytes {wrong.hex(' ')} are not {charset}"
        place = offset + error.start, len(wrong)
        return self.error("not-utf-8" if charset == "UTF-8" else "charset", text, place, f"{charset} text")

    def empty(self, frame: bytes) -> Decoded:
        """Return the note on a frame without a message."""
        text = "there is no message between two others"
        return unreadable(
            Violation("note", "malformed", "empty-message", text, 0, len(frame), "a message", self.clause)
        )


def unknown_name(
    grammar: Grammar,
    sent: Any,
    direction: Direction,
    place: Place,
    is_others: bool,
    clause: str | None = None,
) -> Violation:
    """Return the error of a message whose name is not known; it may be one of the other side's."""
    shown = f'"{shortened(sent, MAX_QUOTED)}"' if isinstance(sent, str) else to_json(sent)[:MAX_QUOTED]
    text = f"{shown} is not a message {sender_of(direction)} sends"
    near = grammar.nearest(sent, direction) if isinstance(sent, str) else None
    if is_others:
        text += f"; {sender_of(OPPOSITE[direction])} does"
    elif near is not None:
        text = with_suggestion(text, near)
    elif sent == "":
        text = "the message name is missing"
    names = grammar.names(direction)
    expected = f"one of {', '.join(names)}" if names else None
    return error_at("unknown-message", text, place, expected, clause)


def walk(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield parts, each before those inside it."""
    for part in parts:
        yield part
        yield from walk(part.parts)


def parts_in(
    kind: FieldType,
    text: str,
    places: Sequence[Place],
    path: Path,
    is_literal: bool,
    is_writable: bool = True,
) -> Iterator[Part]:
    """Yield the parts of a value, given the places of the characters of its text in the frame.

    Of a text that is not literal, such as one in quotation marks, the only part is the text itself.
    """
    is_writable = is_writable and is_literal
    if not isinstance(kind, PartsText):
        if not is_literal and text:
            place = _joined(places, 0, len(text))
            yield Part(place[0], sum(place), path, "field", kind.title)
        return
    for number, token in enumerate(kind.tokenizer.tokens(text) if text else ()):
        found = kind.part_at(number)
        if found is None:
            return
        steps, of = (*path, *found[0]), found[1]
        place = _joined(places, token.start, token.end)
        inner = [_joined(places, *each) for each in kind.tokenizer.places(text, token)]
        is_bare = token.end - token.start == len(token.text)
        parts = tuple(parts_in(of, token.text, inner, steps, is_bare, is_writable))
        own = of if is_writable and is_bare else None
        yield Part(place[0], sum(place), steps, "field", of.title, place, place, own, parts)


def _joined(places: Sequence[Place], start: int, end: int) -> Place:
    """Return the place of a range of characters."""
    if start == end:
        return (places[start][0] if start < len(places) else sum(places[-1])), 0
    return places[start][0], sum(places[end - 1]) - places[start][0]
