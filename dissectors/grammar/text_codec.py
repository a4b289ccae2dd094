"""The codec of text messages: a name, then fields in a fixed order.

A tokenizer divides a message; see `tokens.py`. The rows of a name are tried in one order: those that have as
many fields as the message, then those with fewer, if readers ignore surplus fields. For a message that fits
no row, the first error in the most similar row is reported. Protocols override the methods that report errors
to add their own wording.

A field usually takes one token. A list or object whose parts are tokens of the message takes as many as its
parts have (`PartsText.is_spread`), and a list without a greatest number takes all that remain. So a packet
of lines is a message whose tokens are lines: `table=[card]4` takes eight if a card is an object of two lines.
Its errors and its bytes have the places of single lines, and only the changed ones are replaced. The envelope
ends with the line of the end, or after as many lines as the row has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.dissection_tree import Pieces
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import Fields, FieldType, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import PartsText, Rest, error_place, token_types, written
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Place,
    Violation,
    count_of_fields,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import DELIMITER, NO_FIELDS, SURPLUS, LayoutCodec, Part
from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.grammar.text_message import (
    Sent,
    fits_in_other_order,
    is_counted,
    rest_of,
    sent_in,
    spans_of,
    undecoded,
)
from kiebitz.dissectors.grammar.tokens import Splitter, Tokenizer
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.suggestions import suggestion_in, with_suggestion

AFTER_AN_ERROR = "not read, because of the error before it"
"""Production of the bytes after a token that could not be decoded."""

_MARK = "\ufeff"
ABSENT = object()
"""The value of an optional field whose text is empty."""

ALL_TOKENS = 1 << 32
"""More tokens than a message can have."""

_CONTROL = frozenset(map(chr, (*range(32), 127))) - {"\t"}

_DEVIATIONS = {
    "vanished": "an empty {noun} without a padding vanishes; it is written {empty}",
    "unpadded": "no padding before the closing quotation mark; it is read unchanged",
    "unended": "a quotation has no end, so readers drop it",
    "loose": "extra blanks are ignored",
}


class Reading(NamedTuple):
    """A row prepared for messages with a certain number of fields.

    Attributes:
        row: The row.
        steps: Name and decoder of each field.
        first: The first token that is no part of the name.
        taken: Number of all tokens that are read.
        slices: Tokens of each field, None if each has one.
        rest: First token of the last field if that is the text that remains.
        is_trailing: True if one token more is possible that is empty.
        remarkable: The tokens that may have remarks, with their fields and types.
        has_absent: True if an optional field may be empty.
    """

    row: MessageType
    steps: tuple[tuple[str, Callable[[Any], Any]], ...]
    first: int
    taken: int
    slices: tuple[int | slice, ...] | None
    rest: int | None
    is_trailing: bool
    remarkable: tuple[tuple[Field, FieldType, int], ...]
    has_absent: bool


class TextCodec(LayoutCodec):
    """A codec of messages that are a name and fields, divided by a tokenizer."""

    between = DELIMITER
    charset_rule: tuple[str, str | None] = ("UTF-8", None)
    """The `expected` text for the encoding, and its clause if it differs from that of all messages."""
    noun = "field"
    """Word for a field in diagnostics."""
    empty_fields = True
    """True if a field may be empty; otherwise an empty field counts as missing."""

    def __init__(
        self,
        grammar: Grammar,
        tokenizer: Tokenizer,
        envelope: Envelope | None = None,
        *,
        lenient: Lenient | None = None,
        **more: Any,
    ) -> None:
        super().__init__(grammar, envelope or Envelope(), **more)
        self.tokenizer = tokenizer
        self.lenient = lenient = lenient or grammar.lenient
        self._strip = self.envelope.stripped
        self._split = tokenizer.splitter()
        self._readings: dict[tuple[Direction, str, int], tuple[Reading, ...]] = {}
        """Candidate rows by direction, first token and number of tokens, cached on first use."""
        self._has_notes = bool(tokenizer.pads or lenient.control or lenient.line_ends or lenient.blanks)
        self._long_names: dict[Direction, dict[str, list[tuple[str, ...]]]] = {
            each: {} for each in DIRECTIONS
        }
        """Names of several tokens by their first one, the longest first."""
        self._has_counted = any(map(is_counted, grammar.rows))
        self._most = 0
        """Number of tokens from which on it does not matter how many there are."""
        for row in grammar.rows:
            words = tuple(tokenizer.texts(row.name))
            alike = self._long_names[row.direction].setdefault(words[0], []) if len(words) > 1 else [words]
            if words not in alike:
                alike.append(words)
                alike.sort(key=len, reverse=True)
            sizes = (field.type.width[1] or field.type.width[0] for field in row.fields)
            self._most = max(self._most, len(words) + sum(sizes) + 2)

    # Decoding.

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        strip = self._strip
        if strip is not None:
            start, body = 0, frame.rstrip(strip) if strip else frame
        else:
            start, end = self.envelope.body(frame)
            body = frame[start:end]
        error = deviation = None
        try:
            text = body.decode(self.encoding)
        except UnicodeDecodeError as wrong:
            # Readers that replace these bytes understand the rest.
            error, text = wrong, undecoded(body, self.encoding, self.lenient.charset)
        if self._has_notes:
            texts, deviation = self.tokenizer.read(text)
        else:
            texts = self._split(text)
        if self.is_nameless and not text:
            texts = []
        elif not texts:
            return self._misfit(frame, direction, error)
        count = len(texts)
        readings = self._readings.get((direction, "" if self.is_nameless else texts[0], count))
        if readings is None:
            readings = self._readings_of(direction, texts)
        if self._has_counted:
            readings = self._counted(readings, texts)
        for reading in readings:
            row, steps, first, taken, slices, rest, is_trailing, remarkable, has_absent = reading
            if is_trailing and texts[-1]:
                continue
            fields: dict[str, Any] = {}
            try:
                arguments: Sequence[Any] = texts[first:taken]
                if slices is not None:
                    arguments = [texts[each] for each in slices]
                if rest is not None:
                    arguments = [*arguments[: len(steps) - 1], rest_of(self.tokenizer, text, rest)]
                # This loop takes half the time of a comprehension; `strict=` would cost as much as a field.
                for (field, decode), argument in zip(steps, arguments):  # noqa: B905  # see above
                    fields[field] = decode(argument)
            except Mismatch:
                continue
            if has_absent:
                fields = {key: value for key, value in fields.items() if value is not ABSENT}
            is_unusual = error is not None or deviation is not None or count > taken
            for _, kind, number in remarkable:
                is_unusual = is_unusual or kind.remark(texts[number]) is not None
            if not is_unusual and not (self._has_notes and self._is_odd(frame, text, direction)):
                return Decoded(row, fields, to_json(fields), True)
            notes = tuple(self._notes(self.sent(frame), reading, error))
            valid = all(note.severity != "error" for note in notes)
            return Decoded(row, fields, to_json(fields), valid, notes)
        return self._misfit(frame, direction, error)

    def _is_odd(self, frame: bytes, text: str, direction: Direction) -> bool:
        """Return True if the line end is not the usual one, or a client sends control characters."""
        lenient = self.lenient
        has_control = bool(lenient.control) and direction == "c2s" and not _CONTROL.isdisjoint(text)
        return has_control or (lenient.line_ends and not frame.endswith(self.envelope.line_end))

    def _readings_of(self, direction: Direction, texts: Sequence[str]) -> tuple[Reading, ...]:
        """Return the rows that a message can have, in the order to try them."""
        head, count = "" if self.is_nameless else texts[0], min(len(texts), self._most)
        if (found := self._readings.get((direction, head, count))) is not None:
            return found
        name, first = self.name_in(texts, direction)
        if name is None:
            return ()
        rows = self.fitting(self.grammar.rows_named(direction, name), count - first)
        found = tuple(self._reading(row, count, first) for row in rows)
        if self.is_nameless or (head in self._names[direction] and head not in self._long_names[direction]):
            # Others are not cached, as their number is unlimited.
            self._readings[direction, head, count] = found
        return found

    def _counted(self, readings: Sequence[Reading], texts: Sequence[str]) -> tuple[Reading, ...]:
        """Return the readings that fit the numbers of items in a message."""
        found: list[Reading] = []
        for reading in readings:
            if is_counted(reading.row):
                reading = self._reading(reading.row, len(texts), reading.first, texts[reading.first :])
                more = len(texts) - reading.taken
                if more < 0 or (
                    more > 0 and not self.lenient.surplus and (more > 1 or self.tokenizer.is_blank)
                ):
                    continue
            found.append(reading)
        return tuple(found)

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows that can have `count` fields, in the order to try them."""
        return [*self.exact_rows(rows, count), *self.shorter_rows(rows, count)]

    def exact_rows(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows that can have exactly `count` tokens."""
        return [row for row in rows if spans_of(row, count)[1] == count]

    def shorter_rows(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows with fewer tokens, those of the specification first.

        Without leniency, a delimiter may follow the last field.
        """
        more = count if self.lenient.surplus else 0 if self.tokenizer.is_blank else 1
        found = (row for row in rows if 0 < count - spans_of(row, count)[1] <= more)
        return sorted(found, key=lambda row: row.deviation is not None)

    def _reading(self, row: MessageType, count: int, first: int, texts: Sequence[str] = ()) -> Reading:
        spans, used = spans_of(row, count - first, texts)
        rest = first + spans[-1][1] if spans and isinstance(spans[-1][0].type, Rest) else None
        is_open = bool(spans) and spans[-1][0].type.width[1] is None and not spans[-1][0].type.is_counted
        taken = ALL_TOKENS if is_open else first + used
        steps = tuple((field.name, self._decoder(field, row)) for field, _, _ in spans)
        slices = None
        if any(isinstance(field.type, PartsText) and field.type.is_spread for field, _, _ in spans):
            slices = tuple(
                first + start
                if field.type.width == (1, 1)
                else slice(first + start, None if is_open and field is spans[-1][0] else first + end)
                for field, start, end in spans
            )
        return Reading(
            row,
            steps,
            first,
            taken,
            slices,
            rest,
            is_trailing=count > first + used and not self.lenient.surplus,
            remarkable=tuple(
                (field, kind, first + start + number)
                for field, start, _ in spans
                for number, kind in enumerate(token_types(field.type))
                if type(kind).remark is not FieldType.remark
            ),
            has_absent=any(field.optional for field, _, _ in spans),
        )

    def _decoder(self, field: Field, row: MessageType) -> Callable[[Any], Any]:
        kind = field.type
        if isinstance(kind, PartsText) and kind.is_spread:
            return kind.decode_tokens
        if field.optional:
            return partial(_or_absent, kind.decode)
        if not self.empty_fields:
            return partial(_filled, kind.decode, self.notation(row))
        return kind.decode

    def name_in(self, texts: Sequence[str], direction: Direction) -> tuple[str | None, int]:
        """Return the name of a message, None if it is unknown, and the number of its tokens."""
        if self.is_nameless:
            return self.only_names[direction], 0
        if not texts:
            return None, 0
        for words in self._long_names[direction].get(texts[0], ()):
            if (*texts[: len(words)],) == words:
                return self.tokenizer.separator.join(words), len(words)
        return self.name_of_text(texts[0], direction), 1

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        if self.lenient.line_ends:
            if frame == b"\n":
                # The rest of a line end.
                return unreadable()
            decoded = self.decode(frame, direction)
            if decoded.valid:
                return decoded
        return super().truncated(frame, direction)

    # Errors.

    def _misfit(self, frame: bytes, direction: Direction, error: UnicodeDecodeError | None) -> Decoded:
        """Return the first error of the row that fits best."""
        sent = self.sent(frame)
        undecodable = None
        if error is not None and not self.lenient.charset:
            undecodable = self.not_text(frame, error, sent.start)
        name, first = self.name_in(sent.texts, direction)
        if name is None:
            if not any(sent.texts) and len(sent.texts) < 2:
                return self.nothing(sent, direction)
            return unreadable(undecodable or self.unknown(sent, direction))
        rows = self.grammar.rows_named(direction, name)
        found = {row: self._first_error(sent, row, first) for row in rows}
        row = self.closest({row: len(fields) for row, (fields, _) in found.items()}, len(sent.tokens) - first)
        fields, violation = found[row]
        return Decoded(row, fields, to_json(fields), False, (undecodable or violation,))

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        """Return the result for a frame without a message."""
        return self.empty(sent.frame)

    def closest(self, valid: Mapping[MessageType, int], count: int) -> MessageType:
        """Return the row that an invalid message most probably has: that with the most `valid` fields."""

        def likeness(row: MessageType) -> tuple[int, bool, bool]:
            return valid[row], spans_of(row, count)[1] == count, row.deviation is None

        return max(valid, key=likeness)

    def _first_error(self, sent: Sent, row: MessageType, first: int) -> tuple[dict[str, Any], Violation]:
        """Return the fields of a row before the first error, and the error."""
        texts = sent.texts
        fields: dict[str, Any] = {}
        spans, used = spans_of(row, len(texts) - first, texts[first:])
        for field, start, end in spans:
            number, is_one = first + start, field.type.width == (1, 1)
            is_needed = is_one or (isinstance(field.type, Rest) and field.type.width[0] > 0)
            if number + is_needed > len(texts):
                return fields, self.missing(sent, row, fields)
            sent_value: Any = texts[number] if is_one else texts[number : first + end]
            if isinstance(field.type, Rest):
                sent_value = rest_of(self.tokenizer, sent.text, number)
            try:
                value = self._decoder(field, row)(sent_value)
            except Mismatch as error:
                is_suggested = suggestion_in("malformed", error.problem) is not None
                if not is_suggested and fits_in_other_order(row.fields, texts[first:]):
                    error.problem += "; are the fields in the wrong order?"
                place = sent.span(*error_place(self.tokenizer, sent.text, sent.tokens, error, number))
                return fields, self.field_error(row, field.name, error, place)
            if field.type.is_counted and first + end > len(texts):
                text = f"{row.name}: {field.name} has fewer items than its number says"
                return fields, self.error(
                    "missing-field", text, (sent.end, 0), self.notation(row), row.clause
                )
            if value is not ABSENT:
                fields[field.name] = value
        if first + used < len(texts):
            text = f"{row.name} has {count_of_fields(len(row.fields), self.noun)}"
            place = sent.remainder(first + used)
            return fields, self.error("surplus-fields", text, place, self.notation(row), row.clause)
        return fields, self.missing(sent, row, fields)

    def missing(self, sent: Sent, row: MessageType, fields: Fields) -> Violation:
        """Return the error of a message that ends before a field."""
        names = [field.name for field in row.fields if not field.optional and field.name not in fields]
        text = f"{row.name} ends before its {', '.join(names)}"
        place = sent.end, 0
        deviation, empty = sent.deviation, self.tokenizer.quoted("")
        if deviation is not None and deviation.loses_token:
            text = f"{row.name}: a quotation has no end, so readers drop this {self.noun}"
            if deviation.kind == "vanished":
                mark = self.tokenizer.quote
                text = f"{row.name}: {mark}{mark} without a padding is not {_a(self.noun)}"
                text += f"; the empty one is written {empty}"
            place = sent.span(deviation.start, deviation.end)
        return self.error("missing-field", text, place, self.notation(row), row.clause)

    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        """Return the error of a message with an unknown name."""
        token = sent.tokens[0]
        name, names = token.text, self.grammar.names(direction)
        near = self.grammar.nearest(name.removeprefix(_MARK), direction)
        code, start, end, suggested = "unknown-message", token.start, token.end, near
        if name.startswith(_MARK):
            code, end = "byte-order-mark", 1
            text = "there is a byte order mark before the message"
        elif "\0" in sent.text[:2] and sent.text.count("\0") * 3 > len(sent.text) > 1:
            code, start, end, suggested = "utf-16", 0, len(sent.text), None
            text = "this looks like UTF-16"
        elif near is not None and name != name.lstrip() and name.strip() == near:
            code, end = "leading-blank", start + len(name) - len(name.lstrip())
            text = "there is a blank before the message"
        elif self.tokenizer.is_blank and (word := name.split("\t")[0]) in names:
            start, end, suggested = start + len(word), start + len(word) + 1, None
            text = f"a tab is not a separator: after {word} comes a blank"
        else:
            return self.unknown_message(name, direction, sent.span(start, end))
        if suggested is not None:
            text = with_suggestion(text, suggested)
        return self.error(code, text, sent.span(start, end), f"one of {', '.join(names)}")

    # Notes.

    def _notes(self, sent: Sent, reading: Reading, error: UnicodeDecodeError | None) -> Iterator[Violation]:
        """Yield the diagnostics of a message whose fields fit its row; an error makes it invalid."""
        row, lenient, deviation = reading.row, self.lenient, sent.deviation
        if error is not None and not lenient.charset:
            yield self.not_text(sent.frame, error, sent.start)
            return
        if error is not None:
            yield self.charset_note(sent, error)
        end = sent.frame[sent.end :]
        if lenient.line_ends and end not in (self.envelope.line_end, b""):
            shown = end.decode().replace("\r", "CR").replace("\n", "LF")
            place = sent.end, len(end)
            yield self.note("line-end", f"the line ends with {shown}", place, "CRLF", habit=True)
        if lenient.control and row.direction == "c2s" and not _CONTROL.isdisjoint(sent.text):
            at = next(number for number, char in enumerate(sent.text) if char in _CONTROL)
            problem = f"the control character {ord(sent.text[at]):#04x}; {lenient.control}"
            yield self.note("control-character", problem, sent.span(at, at + 1), "text")
        if deviation is not None and (
            # An unended quotation in place of an optional field is none.
            len(sent.tokens) - reading.first >= len(row.fields)
            if deviation.kind == "unended"
            else deviation.kind != "loose" or lenient.blanks
        ):
            problem = _DEVIATIONS[deviation.kind].format(noun=self.noun, empty=self.tokenizer.quoted(""))
            place = sent.span(deviation.start, deviation.end)
            yield self.note(deviation.kind, problem, place, self.notation(row))
        for field, kind, number in reading.remarkable:
            token = sent.tokens[number]
            remark = kind.remark(token.text)
            if remark is not None:
                yield self.loose(row, field, remark, sent.span(token.start, token.end))
        if len(sent.tokens) > reading.taken and not (deviation is not None and deviation.loses_token):
            yield from self.surplus(sent, row, reading)

    def charset_note(self, sent: Sent, error: UnicodeDecodeError) -> Violation:
        """Return the note that bytes were read as Windows-1252, reported once per sender."""
        expected, clause = self.charset_rule
        wrong = error.object[error.start : error.end]
        text = f"{wrong.hex(' ')} is not UTF-8; read as Windows-1252"
        return self.note(
            "charset", text, (sent.start + error.start, len(wrong)), expected, clause, habit=True
        )

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        """Return a note on a field with an unusual but harmless text."""
        return self.note(f"loose-{field.name}", remark, place, field.type.title, row.clause, habit=True)

    def surplus(self, sent: Sent, row: MessageType, reading: Reading) -> Iterator[Violation]:
        """Yield the diagnostics of a message with more fields than its row."""
        if reading.is_trailing:
            text, code = f"{row.name} has a delimiter after its last field", "trailing-delimiter"
        else:
            text = f"{row.name} has {count_of_fields(len(row.fields), self.noun)}; what follows is ignored"
            code = "surplus-fields"
        place = sent.remainder(reading.taken)
        yield self.note(code, text, place, self.notation(row), row.clause, habit=reading.is_trailing)

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

    # Places and spelling.

    def sent(self, frame: bytes) -> Sent:
        """Return the text of a frame and its tokens, with their places."""
        start, end = self.envelope.body(frame)
        sent = sent_in(frame, start, end, self.encoding, self.tokenizer, self.lenient.charset)
        return sent if sent.text or not self.is_nameless else msgspec.structs.replace(sent, tokens=())

    def _take(self, pieces: Pieces, part: Part, decoded: Decoded) -> None:
        is_unread = part.kind == "field" and self.is_unread(part, decoded)
        if is_unread and part.start > decoded.violations[0].offset:
            # Also all that follows.
            pieces.take_any(self.envelope.body(pieces.frame).end, "unread", AFTER_AN_ERROR)
            return
        if not (is_unread and part.parts and isinstance(part.type, PartsText) and part.type.is_spread):
            super()._take(pieces, part, decoded)
            return
        # Tokens before the wrong one were read.
        wrong = decoded.violations[0].offset
        read = msgspec.structs.replace(decoded, fields={part.path[0]: None})
        pieces.take_any(part.start, "markup", self.between)
        with pieces.inside("field", part.title, part.path):
            for each in part.parts:
                if each.end <= wrong:
                    super()._take(pieces, each, read)
                elif each.start <= wrong:
                    title = each.title if each.type is None else each.type.title
                    path = each.path or part.path
                    self._take(pieces, msgspec.structs.replace(each, path=path, title=title), decoded)
        pieces.take_any(part.end, "unread", AFTER_AN_ERROR)

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        sent = self.sent(frame)
        tokens = sent.tokens
        if not tokens and not self.is_nameless:
            return ()
        sent = msgspec.structs.replace(sent, pad=self._pad_of(sent.text, row))
        _, first = self.name_in(sent.texts, row.direction)
        first = min(first, len(tokens))
        spans, used = spans_of(row, len(tokens) - first, sent.texts[first:])
        fields = (sent.field_part(field, first + start, first + end) for field, start, end in spans)
        parts = [part for part in fields if part is not None]
        if first:
            parts.insert(
                0, sent.other_part(tokens[0].start, tokens[first - 1].end, "name", self.notation(row))
            )
        if first + used < len(tokens):
            parts.append(sent.other_part(sent.end_of(first + used), len(sent.text), "ignored", SURPLUS))
        return parts

    def encode_padded(self, name: str, direction: Direction, fields: Fields, pad: str) -> bytes:
        """Encode a message in the dialect with this padding, whose rows come first; see `Codec.encode`."""
        rows = self.grammar.rows_named(direction, name)
        if pad:
            is_late = pad != self.tokenizer.pads[0]
            rows = tuple(sorted(rows, key=lambda row: (row.deviation is not None) != is_late))
        return self.encoded(rows, name, direction, fields, partial(self._message, pad=pad))

    def write_message(self, row: MessageType, fields: Fields) -> bytes:
        return self._message(row, fields, "")

    def _message(self, row: MessageType, fields: Fields, pad: str) -> bytes:
        texts = self._head(row)
        left = len(fields)
        for field in row.fields:
            if field.name in fields:
                left -= 1
                text = self._value_text(field.type, fields[field.name], pad)
                if text is not None:
                    texts.append(text)
            elif left and not self.tokenizer.is_blank:
                # An empty text keeps the place of a field that is left out.
                texts.append("")
        return self.tokenizer.separator.join(texts).encode(self.encoding)

    def _head(self, row: MessageType) -> list[str]:
        """Return the text of the name, if it is in the message."""
        if self.is_nameless:
            return []
        name = str(self.sent_name(row))
        return [name if self.tokenizer.is_blank else self.tokenizer.quoted(name)]

    def _value_text(self, kind: FieldType, value: Any, pad: str) -> str | None:
        """Return the text of a value; None for a list of tokens that is empty."""
        if isinstance(kind, Rest):
            return kind.encode(value)
        if isinstance(kind, PartsText) and kind.is_spread:
            texts = kind.encode_tokens(value, pad)
            return self.tokenizer.joined(texts, pad) if texts else None
        return self.tokenizer.quoted(written(kind, value, pad), pad)

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        if before.keys() != fields.keys() or is_counted(row):
            pad = self._pad_of(self.sent(frame).text, row)
            return self.encode_padded(row.name, row.direction, fields, pad)
        return super().patch(frame, row, before, fields)

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert part.type is not None
        text = self._value_text(part.type, value, part.pad) or ""
        start, length = part.value
        separator = self.tokenizer.separator
        if not length and text and not frame[:start].endswith(separator.encode(self.encoding)):
            text = separator + text
        return text.encode(self._charset_of(frame))

    def _pad_of(self, text: str, row: MessageType) -> str:
        """Return the padding in a message; without any, that of the dialect to which the row belongs."""
        pads = self.tokenizer.pads
        if not pads:
            return ""
        return self.tokenizer.shown_pad(text) or pads[0 if row.deviation is None else -1]

    def _charset_of(self, frame: bytes) -> str:
        if self.lenient.charset:
            try:
                frame.decode(self.encoding)
            except UnicodeDecodeError:
                return "cp1252"
        return self.encoding

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        if self.tokenizer.quote and not isinstance(field.type, Rest):
            text = self.tokenizer.quoted(text, self._pad_of(self.sent(frame).text, row))
        return super().as_text(frame, row, field, text)

    def notation(self, row: MessageType) -> str:
        names = (f"[{field.name}]" if field.optional else field.name for field in row.fields)
        return self.tokenizer.separator.join([*self._head(row), *names]) or NO_FIELDS

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "positional")

    def wire_details(self) -> WireType:
        details = {
            "unstripped": self._strip == b"",
            "filled": not self.empty_fields,
            "ignores_surplus": self.lenient.surplus,
            "skips_empty": type(self).nothing is TextCodec.nothing,
        }
        return {
            "kind": "positional",
            **self.tokenizer.wire(),
            **({"encoding": "windows"} if self.lenient.charset else {}),
            **{key: value for key, value in details.items() if value},
        }


class DelimitedCodec(TextCodec):
    """A codec of names and fields with a delimiter between them, in UTF-8, and an optional line end."""

    empty_fields = False

    def __init__(self, grammar: Grammar, clause: str, delimiter: str = " ", line_end: str = "") -> None:
        super().__init__(grammar, Splitter(delimiter), Envelope(line_end), clause=clause)


def _or_absent(decode: Callable[[str], Any], text: str) -> Any:
    """Decode an optional field: an empty text is none, unless it is a value."""
    try:
        return decode(text)
    except Mismatch:
        if text:
            raise
        return ABSENT


def _filled(decode: Callable[[str], Any], notation: str, text: str) -> Any:
    """Decode a field that must not be empty."""
    if not text:
        raise Mismatch(0, 0, "the value is empty", notation, "missing-field")
    return decode(text)


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
