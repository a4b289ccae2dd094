"""The codec of protocol files for `key=value`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import Fields, FieldType, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import Rest, error_place
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Place,
    Violation,
    shortened,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import (
    DELIMITER,
    MAX_QUOTED,
    NO_FIELDS,
    UNKNOWN_FIELD,
    LayoutCodec,
    Part,
    parts_in,
)
from kiebitz.dissectors.grammar.text_message import Sent, sent_in
from kiebitz.dissectors.grammar.tokens import Token, Tokenizer, quoted_text
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.specification import Format

_BLANKS = " \t\r\n"
_NAME = re.compile(r"[^ \t\r\n]*")


class Pair(Token, frozen=True):
    """The value of a pair, whose key begins at `at`; the first word may be the name, without a key."""

    key: str | None
    at: int


class Pairs(Tokenizer):
    """Keys and values; the values of `rest_keys` are all that remains."""

    def __init__(self, of: Format, rest_keys: Collection[str]) -> None:
        self.separator, self.assign, self.quote = of.delimiter, of.assign, of.quote
        self.has_head = of.name == "first"
        self._rest_keys = rest_keys
        mark, assign, delimiter = map(re.escape, (self.quote, self.assign, self.separator))
        self._escaped = ("\\\\", f"\\{self.quote}") if self.quote else ()
        self._escape = re.compile(rf"\\([\\{mark}])")
        key = rf"(?>.*?(?={assign}|{delimiter}|{mark})){assign}\s*"
        self._is_quoted = re.compile(f"{key}{mark}{quoted_text(mark)}{mark}", re.DOTALL) if mark else None

    def texts(self, text: str) -> list[str]:
        return [pair.text for pair in self.pairs(text)]

    def tokens(self, text: str) -> list[Token]:
        return [*self.pairs(text)]

    def pairs(self, text: str) -> Iterator[Pair]:
        """Yield the pairs of a message, the first word first if it is the name."""
        at = 0
        if self.has_head:
            head = _NAME.match(text)
            assert head is not None
            word = head[0].partition(self.separator)[0]
            yield Pair(word, 0, len(word), None, 0)
            at = len(word)
        while at < len(text):
            quoted = self._is_quoted.match(text, at) if self._is_quoted is not None else None
            end = text.find(self.separator, at if quoted is None else quoted.end())
            end = len(text) if end < 0 else end
            key = text[at:end].partition(self.assign)[0].strip(_BLANKS)
            if key in self._rest_keys and self.assign in text[at:end]:
                end = len(text)
            if text[at:end].strip(_BLANKS):
                yield self._pair(text, at, end)
            at = end + len(self.separator)

    def _pair(self, text: str, start: int, end: int) -> Pair:
        start = end - len(text[start:end].lstrip(_BLANKS))
        end = start + len(text[start:end].rstrip(_BLANKS))
        key, assign, value = text[start:end].partition(self.assign)
        if not assign:
            return Pair(key, start, end, None, start)
        shown, mark = value.strip(_BLANKS), self.quote
        at = end - len(value.lstrip(_BLANKS)) if shown else end
        if mark and len(shown) > 1 and shown.startswith(mark) and shown.endswith(mark):
            shown = self._escape.sub(r"\1", shown[len(mark) : -len(mark)])
        return Pair(shown, at, end, key.rstrip(_BLANKS), start)

    def quoted(self, text: str, pad: str = "") -> str:
        mark = self.quote
        if mark and (self.separator in text or text != text.strip(_BLANKS) or text.startswith(mark)):
            escaped = text.replace("\\", "\\\\").replace(mark, "\\" + mark)
            return f"{mark}{escaped}{mark}"
        return text

    def wire(self) -> WireType:
        return {"delimiter": self.separator, "assign": self.assign, "quote": self.quote or None}


class PairsCodec(LayoutCodec):
    """The codec of pairs of keys and values in any order."""

    between = DELIMITER

    def __init__(self, grammar: Grammar, envelope: Envelope, of: Format, **more: Any) -> None:
        super().__init__(grammar, envelope, **more)
        self._name_key = None if of.name in ("first", "") else of.name
        fields = (field for row in grammar.rows for field in row.fields)
        self._rest_keys = {field.name for field in fields if isinstance(field.type, Rest)}
        self._pairs = Pairs(of, self._rest_keys)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        start, end = self.envelope.body(frame)
        if start == end and not self.is_nameless:
            return self.empty(frame)
        try:
            text = frame[start:end].decode(self.encoding)
        except UnicodeDecodeError as error:
            return unreadable(self.not_text(frame, error, start))
        head = ""
        values: dict[str, str] = {}
        notes: tuple[Violation, ...] = ()
        bare: Pair | None = None
        for number, pair in enumerate(self._pairs.pairs(text)):
            if pair.key is None:
                if number == 0 and self._pairs.has_head:
                    head = pair.text
                else:
                    bare = bare or pair
                continue
            if pair.key in values and not notes:
                notes = (self._duplicate(frame, pair),)
            values[pair.key] = pair.text
        sent = head if self._name_key is None else values.get(self._name_key)
        if sent is None:
            expected = f"{self._name_key}{self._pairs.assign}…"
            problem = f"there is no {self._name_key}"
            return unreadable(self.error("unknown-message", problem, (start, end - start), expected))
        name = self.only_names[direction] if self.is_nameless else self.name_of_text(sent, direction)
        if name is None:
            token = self._last(self._sent(frame), self._name_key)
            assert token is not None
            place = self._sent(frame).span(token.start, token.end)
            return unreadable(self.unknown_message(sent, direction, place))
        if bare is not None:
            row = self.grammar.rows_named(direction, name)[0]
            place = self._sent(frame).span(bare.start, bare.end)
            problem = f"{row.name}: there is no {self._pairs.assign} after this"
            expected = f"key{self._pairs.assign}value"
            violation = self.error("bad-pair", problem, place, expected, row.clause)
            return Decoded(row, {}, "{}", False, (violation,))
        return self._read(frame, self.grammar.rows_named(direction, name), values, notes)

    def _read(
        self,
        frame: bytes,
        rows: Sequence[MessageType],
        values: Mapping[str, str],
        notes: tuple[Violation, ...],
    ) -> Decoded:
        """Return the message with these values: of the first row that fits, or else with its first error.

        Rows that have all values precede those that leave some out.
        """
        # The name may be one of the values.
        others = len(values) - (self._name_key is not None)
        found: tuple[MessageType, dict[str, Any]] | None = None
        misfits: list[tuple[MessageType, dict[str, Any], list[tuple[str, Mismatch | None]]]] = []
        for row in rows:
            fields: dict[str, Any] = {}
            wrong: list[tuple[str, Mismatch | None]] = []
            for field in row.fields:
                if field.name in values:
                    try:
                        fields[field.name] = field.type.decode(values[field.name])
                    except Mismatch as error:
                        wrong.append((field.name, error))
                elif not field.optional:
                    wrong.append((field.name, None))
            if wrong:
                misfits.append((row, fields, wrong))
            elif len(fields) >= others:
                return Decoded(row, fields, to_json(fields), True, notes)
            else:
                found = found or (row, fields)
        if found is None:
            row, fields, wrong = max(misfits, key=lambda each: len(each[1]) - len(each[2]))
            violation = self._error(frame, row, *wrong[0])
            return Decoded(row, fields, to_json(fields), False, (violation, *notes))
        row, fields = found
        known = {self._name_key, *(field.name for field in row.fields)}
        unknown = next((key for key in values if key not in known), None)
        if unknown is not None:
            notes = (*notes, self._unknown_field(row, unknown))
        return Decoded(row, fields, to_json(fields), True, notes)

    def _error(self, frame: bytes, row: MessageType, key: str, mismatch: Mismatch | None) -> Violation:
        """Return the error of a field; without a mismatch, it is missing."""
        sent = self._sent(frame)
        pair = self._last(sent, key)
        if pair is None or mismatch is None:
            return self.missing_error(row, key, (sent.end, 0))
        place = sent.span(*error_place(self._pairs, sent.text, [pair], mismatch))
        return self.field_error(row, key, mismatch, place)

    def _unknown_field(self, row: MessageType, name: str) -> Violation:
        """Return the note on a field that no row of the message has."""
        text = f'{row.name} has a field "{shortened(name, MAX_QUOTED)}", which is not specified'
        return Violation(
            "note",
            "malformed",
            "unknown-field",
            text,
            0,
            0,
            self.notation(row),
            row.clause,
            habit=True,
            locate=lambda frame: self._place_of_name(frame, name),
        )

    def _duplicate(self, frame: bytes, pair: Pair) -> Violation:
        text = f'"{(pair.key or "")[:40]}" is in this message already; the last value counts'
        place = self._sent(frame).span(pair.at, pair.end)
        return Violation("warning", "malformed", "duplicate-key", text, *place, "each key once")

    # Places.

    def _sent(self, frame: bytes) -> Sent:
        start, end = self.envelope.body(frame)
        return sent_in(frame, start, end, self.encoding, self._pairs)

    def _last(self, sent: Sent, key: str | None) -> Pair | None:
        """Return the last pair with a key, or the name without one."""
        pairs = [pair for pair in self._pairs.pairs(sent.text) if pair.key == key]
        return (pairs[0] if key is None else pairs[-1]) if pairs else None

    def _place_of_name(self, frame: bytes, name: str) -> Place:
        sent = self._sent(frame)
        pair = self._last(sent, name)
        return (0, 0) if pair is None else sent.span(pair.at, pair.at + len(name))

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        sent = self._sent(frame)
        fields = {field.name: field for field in row.fields}
        parts: list[Part] = []
        before = 0
        for number, pair in enumerate(self._pairs.pairs(sent.text)):
            if pair.key == self._name_key and (pair.key is not None or (not number and self._pairs.has_head)):
                parts.append(sent.other_part(pair.at, pair.end, "name", row.name))
            elif pair.key is None:
                parts.append(sent.other_part(pair.at, pair.end, "unread", f"no {self._pairs.assign}"))
            elif pair.key not in fields:
                parts.append(sent.other_part(pair.at, pair.end, "ignored", UNKNOWN_FIELD))
            else:
                # Of the first pair, the delimiter after it belongs to it.
                following = min(len(sent.text), pair.end + len(self._pairs.separator))
                whole = (before, pair.end) if number else (pair.at, following)
                parts.append(self._field_part(sent, fields[pair.key], pair, sent.span(*whole)))
            before = pair.end
        return parts

    def _field_part(self, sent: Sent, field: Field, pair: Pair, whole: Place) -> Part:
        kind, path = field.type, (field.name,)
        value = sent.span(pair.start, pair.end)
        places = [sent.span(*place) for place in self._pairs.places(sent.text, pair)]
        is_bare = pair.end - pair.start == len(pair.text)
        inner = tuple(parts_in(kind, pair.text, places, path, is_bare)) if is_bare else ()
        # The value without its key.
        shown = Part(value[0], sum(value), path, "field", kind.title, value, value, None, inner)
        start, _ = sent.span(pair.at, pair.at)
        return Part(start, sum(value), path, "field", kind.title, value, whole, kind, (shown,))

    def twice(self, whole: bytes, row: MessageType) -> bytes:
        delimiter = self._pairs.separator.encode()
        if whole.startswith(delimiter) or whole.endswith(delimiter):
            return whole * 2
        return whole + delimiter + whole.lstrip()

    # Spelling.

    def write_message(self, row: MessageType, fields: Fields) -> bytes:
        texts = self._head(row)
        for field in row.fields:
            if field.name in fields:
                value = self._value_text(field.type, fields[field.name])
                texts.append(f"{field.name}{self._pairs.assign}{value}")
        return self._pairs.separator.join(texts).encode(self.encoding)

    def _head(self, row: MessageType) -> list[str]:
        """Return the text of the name, if it is in the message."""
        if self.is_nameless:
            return []
        sent = str(self.sent_name(row))
        return [sent if self._name_key is None else f"{self._name_key}{self._pairs.assign}{sent}"]

    def _value_text(self, kind: FieldType, value: Any) -> str:
        text = kind.encode(value)
        return text if isinstance(kind, Rest) else self._pairs.quoted(text)

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert part.type is not None
        return self._value_text(part.type, value).encode(self.encoding)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        if not isinstance(field.type, Rest):
            text = self._pairs.quoted(text)
        return super().as_text(frame, row, field, text)

    def notation(self, row: MessageType) -> str:
        names = (f"{field.name}{self._pairs.assign}…" for field in row.fields)
        shown = (
            f"[{each}]" if field.optional else each for each, field in zip(names, row.fields, strict=True)
        )
        return self._pairs.separator.join([*self._head(row), *shown]) or NO_FIELDS

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "pairs")

    def wire_details(self) -> WireType:
        name = "" if self.is_nameless else self._name_key or "first"
        return {"kind": "pairs", "name": name, **self._pairs.wire()}
