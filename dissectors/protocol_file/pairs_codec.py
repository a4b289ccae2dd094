"""The codec of protocol files for `key=value`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.fields import PartsText, Rest
from kiebitz.dissectors.grammar.grammar import Decoded, Field, Grammar, MessageType, Violation, unreadable
from kiebitz.dissectors.grammar.layout_codec import (
    DELIMITER,
    UNKNOWN_FIELD,
    Part,
    byte_offsets,
    parts_in,
    span_of,
)
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.quoted_text import quoted_text
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.mapping_codec import MappingCodec, Read
from kiebitz.dissectors.protocol_file.specification import Specification

_BLANKS = " \t\r\n"
_NAME = re.compile(r"[^ \t\r\n]*")


class Pair(NamedTuple):
    """A pair, and the ranges of characters of it and of its value."""

    key: str
    text: str
    start: int
    end: int
    value_start: int
    value_end: int
    has_value: bool


class PairsCodec(MappingCodec):
    """The codec of pairs of keys and values in any order."""

    between = DELIMITER

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        super().__init__(specification, grammar)
        of = specification.format
        self._delimiter, self._assign, self._quote = of.delimiter, of.assign, of.quote
        self._name_key = None if of.name == "first" else of.name
        self._rest_keys = {
            field.name for row in grammar.rows for field in row.fields if isinstance(field.type, Rest)
        }
        self._is_quoted = re.compile("")
        if self._quote:
            mark, assign, delimiter = map(re.escape, (self._quote, self._assign, self._delimiter))
            key = rf"(?>.*?(?={assign}|{delimiter}|{mark})){assign}\s*"
            self._is_quoted = re.compile(f"{key}{mark}{quoted_text(mark)}{mark}", re.DOTALL)

    def reader_of(self, kind: FieldType) -> Read:
        return kind.decode

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        start, end, is_whole = self.envelope.body(frame)
        if not is_whole:
            return self.not_framed(frame)
        if start == end:
            return self.empty(frame)
        try:
            text = frame[start:end].decode(self.encoding)
        except UnicodeDecodeError as error:
            return unreadable(self.not_text(frame, error, start))
        head = ""
        values: dict[str, Any] = {}
        notes: tuple[Violation, ...] = ()
        bare: Pair | None = None
        for number, pair in enumerate(self._pairs(text)):
            if not pair.has_value:
                if number == 0 and self._name_key is None:
                    head = pair.key
                else:
                    bare = bare or pair
                continue
            if pair.key in values and not notes:
                notes = (self._duplicate(frame, pair),)
            values[pair.key] = pair.text
        sent = head if self._name_key is None else values.get(self._name_key)
        if sent is None:
            expected = f"{self._name_key}{self._assign}…"
            problem = f"there is no {self._name_key}"
            return unreadable(self.error("unknown-message", problem, (start, end - start), expected))
        name = self.name_of_text(sent, direction)
        if name is None:
            return self.unknown(sent, direction, self._name_place(frame))
        reserved = () if self._name_key is None else (self._name_key,)
        if bare is not None:
            row = self.grammar.rows_named(direction, name)[0]
            place = self._span(frame, bare.start, bare.end)
            problem = f"{row.name}: there is no {self._assign} after this"
            violation = self.error("bad-pair", problem, place, f"key{self._assign}value", row.clause)
            return Decoded(row, {}, "{}", False, (violation,))
        return self.read(frame, direction, name, values, reserved, notes)

    def _duplicate(self, frame: bytes, pair: Pair) -> Violation:
        text = f'"{pair.key[:40]}" is in this message already; the last value counts'
        place = self._span(frame, pair.start, pair.end)
        return Violation("warning", "malformed", "duplicate-key", text, *place, "each key once")

    def _pairs(self, text: str) -> Iterator[Pair]:
        """Yield the pairs of a message, the first word first if it is the name."""
        at = 0
        if self._name_key is None:
            head = _NAME.match(text)
            assert head is not None
            word = head[0].partition(self._delimiter)[0]
            yield Pair(word, "", 0, len(word), 0, 0, False)
            at = len(word)
        while at < len(text):
            quoted = self._is_quoted.match(text, at) if self._quote else None
            end = text.find(self._delimiter, at if quoted is None else quoted.end())
            end = len(text) if end < 0 else end
            if self._takes_rest(text, at, end):
                end = len(text)
            pair = self._pair(text, at, end)
            if pair is not None:
                yield pair
            at = end + len(self._delimiter)

    def _takes_rest(self, text: str, at: int, end: int) -> bool:
        """Return True if the value of the key at `at` is all that remains."""
        if not self._rest_keys:
            return False
        assign = text.find(self._assign, at, end)
        return assign >= 0 and text[at:assign].strip(_BLANKS) in self._rest_keys

    def _pair(self, text: str, start: int, end: int) -> Pair | None:
        item = text[start:end]
        stripped = item.strip(_BLANKS)
        if not stripped:
            return None
        start += len(item) - len(item.lstrip(_BLANKS))
        end = start + len(stripped)
        key, assign, value = stripped.partition(self._assign)
        shown = value.strip(_BLANKS)
        value_start = end - len(value.lstrip(_BLANKS)) if shown else end
        value_end = value_start + len(shown)
        mark = self._quote
        if mark and len(shown) > 1 and shown.startswith(mark) and shown.endswith(mark):
            shown = re.sub(rf"\\([\\{re.escape(mark)}])", r"\1", shown[len(mark) : -len(mark)])
        return Pair(key.rstrip(_BLANKS), shown, start, end, value_start, value_end, bool(assign))

    # Places.

    def _span(self, frame: bytes, start: int, end: int) -> Place:
        begin, upto, _ = self.envelope.body(frame)
        text = frame[begin:upto].decode(self.encoding)
        return span_of(byte_offsets(text, upto - begin), begin, start, end)

    def _all_pairs(self, frame: bytes) -> list[Pair]:
        start, end, _ = self.envelope.body(frame)
        return [*self._pairs(frame[start:end].decode(self.encoding))]

    def _last_pair(self, frame: bytes, key: str) -> Pair | None:
        pairs = reversed(self._all_pairs(frame))
        return next((pair for pair in pairs if pair.key == key and pair.has_value), None)

    def _name_place(self, frame: bytes) -> Place:
        if self._name_key is None:
            head = self._all_pairs(frame)[:1]
            return self._span(frame, 0, head[0].end if head and not head[0].has_value else 0)
        pair = self._last_pair(frame, self._name_key)
        assert pair is not None
        return self._span(frame, pair.value_start, pair.value_end)

    def place_of_error(self, frame: bytes, name: str, error: Mismatch | None) -> Place:
        pair = self._last_pair(frame, name)
        if pair is None or error is None:
            return self.envelope.body(frame)[1], 0
        if pair.value_end - pair.value_start == len(pair.text):
            return self._span(frame, pair.value_start + error.start, pair.value_start + error.end)
        return self._span(frame, pair.value_start, pair.value_end)

    def place_of_name(self, frame: bytes, name: str) -> Place:
        pair = self._last_pair(frame, name)
        return (0, 0) if pair is None else self._span(frame, pair.start, pair.start + len(pair.key))

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        fields = {field.name: field for field in row.fields}
        parts: list[Part] = []
        before = 0
        begin, upto, _ = self.envelope.body(frame)
        text = frame[begin:upto].decode(self.encoding)
        span = partial(span_of, byte_offsets(text, upto - begin), begin)
        for number, pair in enumerate(self._pairs(text)):
            start, length = span(pair.start, pair.end)
            end = start + length
            is_head = self._name_key is None and number == 0 and not pair.has_value
            if is_head or (pair.has_value and pair.key == self._name_key):
                parts.append(Part(start, end, (), "name", row.name))
            elif not pair.has_value:
                parts.append(Part(start, end, (), "unread", f"no {self._assign}"))
            elif pair.key in fields:
                whole = before, end - before
                if not number:
                    whole = start, length + len(self._delimiter.encode())
                parts.append(_field_part(span, fields[pair.key], pair, (start, end), whole))
            else:
                parts.append(Part(start, end, (), "ignored", UNKNOWN_FIELD))
            before = end
        return parts

    def twice(self, whole: bytes) -> bytes:
        delimiter = self._delimiter.encode()
        if whole.startswith(delimiter) or whole.endswith(delimiter):
            return whole * 2
        return whole + delimiter + whole.lstrip()

    # Spelling.

    def write_message(self, row: MessageType, fields: Mapping[str, Any]) -> bytes:
        sent = str(self.sent_name(row))
        texts = [sent if self._name_key is None else f"{self._name_key}{self._assign}{sent}"]
        for field in row.fields:
            if field.name in fields:
                value = self._value_text(field.type, fields[field.name])
                texts.append(f"{field.name}{self._assign}{value}")
        return self._delimiter.join(texts).encode(self.encoding)

    def _value_text(self, kind: FieldType, value: Any) -> str:
        text = kind.encode(value)
        return text if isinstance(kind, Rest) else self._written(text)

    def _written(self, text: str) -> str:
        if self._quote and (
            self._delimiter in text or text != text.strip(_BLANKS) or text.startswith(self._quote)
        ):
            escaped = text.replace("\\", "\\\\").replace(self._quote, "\\" + self._quote)
            return f"{self._quote}{escaped}{self._quote}"
        if self._delimiter in text:
            raise ValueError(f"{text!r} contains the delimiter")
        return text

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert part.type is not None
        return self._value_text(part.type, value).encode(self.encoding)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        if self._quote and not isinstance(field.type, Rest):
            text = self._written(text)
        return super().as_text(frame, row, field, text)

    def notation(self, row: MessageType) -> str:
        sent = str(self.sent_name(row))
        head = sent if self._name_key is None else f"{self._name_key}{self._assign}{sent}"
        names = (f"{field.name}{self._assign}…" for field in row.fields)
        shown = (
            f"[{each}]" if field.optional else each for each, field in zip(names, row.fields, strict=True)
        )
        return self._delimiter.join([head, *shown])

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "pairs")

    def wire_details(self) -> Mapping[str, Any]:
        return {
            "kind": "pairs",
            "name": self._name_key or "first",
            "delimiter": self._delimiter,
            "assign": self._assign,
            "quote": self._quote or None,
            "rest": dict.fromkeys(sorted(self._rest_keys), True),
        }


def _field_part(
    place: Callable[[int, int], Place], field: Field, pair: Pair, span: tuple[int, int], whole: Place
) -> Part:
    kind, path = field.type, (field.name,)
    value = place(pair.value_start, pair.value_end)
    inner: tuple[Part, ...] = ()
    if isinstance(kind, PartsText) and pair.value_end - pair.value_start == len(pair.text):
        places = [place(at, at + 1) for at in range(pair.value_start, pair.value_end)]
        inner = tuple(parts_in(kind, pair.text, places, path, True))
    # The value without its key.
    shown = Part(value[0], sum(value), path, "field", kind.title, value, value, None, inner)
    return Part(*span, path, "field", kind.title, value, whole, kind, (shown,))
