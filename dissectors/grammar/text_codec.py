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
from itertools import accumulate, permutations
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar.charset import read_text, windows_note
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.fields import PartsText, Rest, error_place, written
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Violation,
    count_of_fields,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import DELIMITER, SURPLUS, LayoutCodec, Part, parts_in
from kiebitz.dissectors.grammar.lenient import Lenient
from kiebitz.dissectors.grammar.patching import Path, Place
from kiebitz.dissectors.grammar.tokens import Deviation, Splitter, Token, Tokenizer
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.suggestions import with_suggestion

_MARK = "\ufeff"
_ABSENT = object()
"""The value of an optional field whose text is empty."""

_ALL = 1 << 32
"""More tokens than a message can have."""

_MAX_SHUFFLED = 4
"""Maximum number of fields whose other orders are tried."""

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
        remarkable: The fields that may have remarks, with their tokens.
        has_absent: True if an optional field may be empty.
    """

    row: MessageType
    steps: tuple[tuple[str, Callable[[Any], Any]], ...]
    first: int
    taken: int
    slices: tuple[int | slice, ...] | None
    rest: int | None
    is_trailing: bool
    remarkable: tuple[tuple[Field, int], ...]
    has_absent: bool


class Sent(NamedTuple):
    """The text of a frame, and its tokens, with their places.

    Attributes:
        frame: The frame.
        start: Offset of the text.
        text: The text; of undecodable bytes it has one character for each.
        tokens: Its tokens.
        deviation: The first deviation in their quoting.
        offsets: Offset of each character and of the end, from `start`.
        pad: The padding of its dialect.
    """

    frame: bytes
    start: int
    text: str
    tokens: Sequence[Token]
    deviation: Deviation | None
    offsets: Sequence[int]
    pad: str = ""

    @property
    def end(self) -> int:
        """Offset of the end of the text."""
        return self.start + self.offsets[-1]

    def span(self, start: int, end: int) -> Place:
        """Return the place of a range of characters."""
        return self.start + self.offsets[start], self.offsets[end] - self.offsets[start]


class TextCodec(LayoutCodec):
    """A codec of messages that are a name and fields, divided by a tokenizer."""

    between = DELIMITER
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
            start, end, is_whole = self.envelope.body(frame)
            if not is_whole:
                return self.not_framed(frame)
            body = frame[start:end]
        error = deviation = None
        try:
            text = body.decode(self.encoding)
        except UnicodeDecodeError as wrong:
            # Readers that replace these bytes understand the rest.
            error = wrong
            text = read_text(body)[0] if self.lenient.charset else body.decode(self.encoding, "replace")
        if self._has_notes:
            texts, deviation = self.tokenizer.read(text)
        else:
            texts = self._split(text)
        if not texts:
            return self._misfit(frame, texts, direction, error)
        count = len(texts)
        readings = self._readings.get((direction, texts[0], count))
        if readings is None:
            readings = self._readings_of(direction, texts)
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
                    arguments = [*arguments[: len(steps) - 1], text[self._rest_start(text, rest) :]]
                # This loop takes half the time of a comprehension; `strict=` would cost as much as a field.
                for (field, decode), argument in zip(steps, arguments):  # noqa: B905  # see above
                    fields[field] = decode(argument)
            except Mismatch:
                continue
            if has_absent:
                fields = {key: value for key, value in fields.items() if value is not _ABSENT}
            is_unusual = self._has_notes or count > taken or error is not None
            for noted, number in remarkable:
                is_unusual = is_unusual or noted.type.remark(texts[number]) is not None
            if not is_unusual:
                return Decoded(row, fields, to_json(fields), True)
            notes = tuple(self._notes(frame, text, texts, deviation, error, reading))
            valid = not notes or all(note.severity != "error" for note in notes)
            return Decoded(row, fields, to_json(fields), valid, notes)
        return self._misfit(frame, texts, direction, error)

    def _readings_of(self, direction: Direction, texts: Sequence[str]) -> tuple[Reading, ...]:
        """Return the rows that a message can have, in the order to try them."""
        head, count = texts[0], min(len(texts), self._most)
        if (found := self._readings.get((direction, head, count))) is not None:
            return found
        name, first = self._name_in(texts, direction)
        if name is None:
            return ()
        rows = self.fitting(self.grammar.rows_named(direction, name), count - first)
        found = tuple(self._reading(row, count, first) for row in rows)
        if head in self._names[direction] and head not in self._long_names[direction]:
            # Others are not cached, as their number is unlimited.
            self._readings[direction, head, count] = found
        return found

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows that can have `count` fields, in the order to try them."""
        return [*self.exact_rows(rows, count), *self.shorter_rows(rows, count)]

    def exact_rows(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows that can have exactly `count` tokens."""
        return [row for row in rows if _spans(row, count)[1] == count]

    def shorter_rows(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        """Return the rows with fewer tokens, those of the specification first.

        Without leniency, a delimiter may follow the last field.
        """
        more = count if self.lenient.surplus else 0 if self.tokenizer.is_blank else 1
        found = (row for row in rows if 0 < count - _spans(row, count)[1] <= more)
        return sorted(found, key=lambda row: row.deviation is not None)

    def _reading(self, row: MessageType, count: int, first: int) -> Reading:
        spans, used = _spans(row, count - first)
        rest = first + spans[-1][1] if spans and isinstance(spans[-1][0].type, Rest) else None
        is_open = bool(spans) and spans[-1][0].type.width[1] is None
        taken = _ALL if is_open else first + used
        steps = tuple((field.name, self._decoder(field, row)) for field, _, _ in spans)
        slices = None
        if any(isinstance(field.type, PartsText) and field.type.is_spread for field, _, _ in spans):
            slices = tuple(
                first + start
                if field.type.width == (1, 1)
                else slice(first + start, None if field.type.width[1] is None else first + end)
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
                (field, first + start)
                for field, start, _ in spans
                if type(field.type).remark is not FieldType.remark
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

    def _name_in(self, texts: Sequence[str], direction: Direction) -> tuple[str | None, int]:
        """Return the name of a message, None if it is unknown, and the number of its tokens."""
        if not texts:
            return None, 0
        for words in self._long_names[direction].get(texts[0], ()):
            if (*texts[: len(words)],) == words:
                return self.tokenizer.separator.join(words), len(words)
        return self.name_of_text(texts[0], direction), 1

    def _rest_start(self, text: str, at: int) -> int:
        """Return the character after the separator behind the token before this one."""
        end = self.tokenizer.tokens(text)[at - 1].end
        return min(len(text), end + len(self.tokenizer.separator))

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

    def _misfit(
        self,
        frame: bytes,
        texts: Sequence[str],
        direction: Direction,
        error: UnicodeDecodeError | None,
    ) -> Decoded:
        """Return the first error of the row that fits best."""
        sent = self.sent(frame)
        undecodable = None
        if error is not None and not self.lenient.charset:
            undecodable = self.not_text(frame, error, sent.start)
        name, first = self._name_in(texts, direction)
        if name is None:
            if not texts or (len(texts) == 1 and not texts[0]):
                return self.nothing(sent, direction)
            return unreadable(undecodable or self.unknown(sent, direction))
        found = {
            row: self._first_error(row, texts, first, sent)
            for row in self.grammar.rows_named(direction, name)
        }
        row = self.closest(found, len(texts) - first)
        fields, number, wrong = found[row]
        if undecodable is not None:
            violation = undecodable
        elif wrong is not None:
            violation = self.wrong(sent, row, number, first, wrong)
        elif number < len(texts):
            violation = self.surplus_error(sent, row, number)
        else:
            violation = self.missing(sent, row, fields)
        return Decoded(row, fields, to_json(fields), False, (violation,))

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        """Return the result for a frame without a message."""
        return self.empty(sent.frame)

    def closest(self, found: Mapping[MessageType, FirstError], count: int) -> MessageType:
        """Return the row that an invalid message most probably has: that with the most valid fields."""

        def likeness(row: MessageType) -> tuple[int, bool, bool]:
            return len(found[row].fields), _spans(row, count)[1] == count, row.deviation is None

        return max(found, key=likeness)

    def _first_error(self, row: MessageType, texts: Sequence[str], first: int, sent: Sent) -> FirstError:
        """Return the fields of a row before the first error."""
        spans, _ = _spans(row, len(texts) - first)
        fields: dict[str, Any] = {}
        number = first
        for field, start, end in spans:
            number = first + start
            if isinstance(field.type, Rest):
                fields[field.name] = sent.text[self._rest_start(sent.text, number) :]
                return FirstError(fields, len(texts), None)
            is_one = field.type.width == (1, 1)
            if number + is_one > len(texts):
                return FirstError(fields, len(texts), None)
            try:
                value = self._decoder(field, row)(texts[number] if is_one else texts[number : first + end])
            except Mismatch as error:
                return FirstError(fields, number, WrongField(field, error))
            if value is not _ABSENT:
                fields[field.name] = value
            number = first + end
        return FirstError(fields, number, None)

    def wrong(self, sent: Sent, row: MessageType, number: int, first: int, wrong: WrongField) -> Violation:
        """Return the error of a field with an invalid text, which begins with the token `number`."""
        error = wrong.error
        texts = [token.text for token in sent.tokens[first:]]
        if error.code != "missing-field" and _fits_shuffled(row, texts):
            error.problem += "; are the fields in the wrong order?"
        place = sent.span(*error_place(self.tokenizer, sent.text, sent.tokens, error, number))
        return self.field_error(row, wrong.field.name, error, place)

    def missing(self, sent: Sent, row: MessageType, fields: Mapping[str, Any]) -> Violation:
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

    def surplus_error(self, sent: Sent, row: MessageType, number: int) -> Violation:
        """Return the error of a message with more fields than its row."""
        text = f"{row.name} has {count_of_fields(len(row.fields), self.noun)}"
        return self.error("surplus-fields", text, self._from(sent, number), self.notation(row), row.clause)

    def _from(self, sent: Sent, number: int) -> Place:
        """Return the place of all tokens from this one on, with the delimiter before them."""
        return sent.span(sent.tokens[number - 1].end, sent.tokens[-1].end)

    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        """Return the error of a message with an unknown name."""
        token = sent.tokens[0]
        name, names = token.text, self.grammar.names(direction)
        near = self.grammar.nearest(name.removeprefix(_MARK), direction)
        code, start, end, suggested = "unknown-message", token.start, token.end, near
        if name.startswith(_MARK):
            code, end = "byte-order-mark", 1
            text = "there is a byte order mark before the message"
        elif "\0" in sent.text[:2] and len(sent.text) > 1:
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

    def _notes(
        self,
        frame: bytes,
        text: str,
        texts: Sequence[str],
        deviation: Deviation | None,
        error: UnicodeDecodeError | None,
        reading: Reading,
    ) -> Iterator[Violation]:
        """Yield the diagnostics of a message whose fields fit its row; an error makes it invalid."""
        row, lenient = reading.row, self.lenient
        if error is not None and not lenient.charset:
            yield self.not_text(frame, error, self.sent(frame).start)
            return
        if error is not None:
            yield windows_note(error, self.sent(frame).start, "UTF-8", self.clause)
        if lenient.line_ends and not frame.endswith(self.envelope.line_end):
            sent = self.sent(frame)
            end = frame[sent.end :]
            if end:
                shown = end.decode().replace("\r", "CR").replace("\n", "LF")
                place = sent.end, len(end)
                yield self.note("line-end", f"the line ends with {shown}", place, "CRLF", habit=True)
        if lenient.control and row.direction == "c2s" and not _CONTROL.isdisjoint(text):
            at = next(number for number, char in enumerate(text) if char in _CONTROL)
            problem = f"the control character {ord(text[at]):#04x}; {lenient.control}"
            yield self.note("control-character", problem, self.sent(frame).span(at, at + 1), "text")
        if deviation is not None and self._is_noted(deviation, row, len(texts) - reading.first):
            problem = _DEVIATIONS[deviation.kind].format(noun=self.noun, empty=self.tokenizer.quoted(""))
            place = self.sent(frame).span(deviation.start, deviation.end)
            yield self.note(deviation.kind, problem, place, self.notation(row))
        for field, number in reading.remarkable:
            remark = field.type.remark(texts[number])
            if remark is not None:
                token = self.sent(frame).tokens[number]
                yield self.loose(row, field, remark, self.sent(frame).span(token.start, token.end))
        if len(texts) > reading.taken and not (deviation is not None and deviation.loses_token):
            yield from self.surplus(self.sent(frame), row, reading)

    def _is_noted(self, deviation: Deviation, row: MessageType, count: int) -> bool:
        # An unended quotation in place of an optional field is none.
        if deviation.kind == "unended":
            return count >= len(row.fields)
        return deviation.kind != "loose" or self.lenient.blanks

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
        place = self._from(sent, reading.taken)
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
        start, end, _ = self.envelope.body(frame)
        body = frame[start:end]
        try:
            text = body.decode(self.encoding)
        except UnicodeDecodeError:
            text = read_text(body)[0] if self.lenient.charset else body.decode("latin-1")
        offsets: Sequence[int] = range(len(body) + 1)
        if len(text) < len(body):
            offsets = (0, *accumulate(len(character.encode()) for character in text))
        tokens = self.tokenizer.tokens(text)
        return Sent(frame, start, text, tokens, self.tokenizer.read(text).deviation, offsets)

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        sent = self.sent(frame)
        tokens = sent.tokens
        if not tokens:
            return ()
        sent = sent._replace(pad=self._pad_of(sent.text, row))
        _, first = self._name_in([token.text for token in tokens], row.direction)
        first = min(max(first, 1), len(tokens))
        parts = [_part(sent, tokens[0].start, tokens[first - 1].end, (), "name", self.notation(row), None)]
        spans, used = _spans(row, len(tokens) - first)
        for field, start, end in spans:
            part = self._field_part(sent, field, first + start, first + end)
            if part is not None:
                parts.append(part)
        if first + used < len(tokens):
            parts.append(
                _part(sent, tokens[first + used - 1].end, len(sent.text), (), "ignored", SURPLUS, None)
            )
        return parts

    def _field_part(self, sent: Sent, field: Field, start: int, end: int) -> Part | None:
        tokens, kind, path = sent.tokens, field.type, (field.name,)
        before = tokens[start - 1].end if start <= len(tokens) else len(sent.text)
        if isinstance(kind, Rest):
            if start >= len(tokens) and field.optional:
                return None
            begin = self._rest_start(sent.text, start)
            return _part(sent, begin, len(sent.text), path, "field", kind.title, kind, before)
        if kind.width == (1, 1):
            if start >= len(tokens):
                return None
            token = tokens[start]
            is_bare = token.end - token.start == len(token.text)
            places = [sent.span(*place) for place in self.tokenizer.places(sent.text, token)]
            inner = tuple(parts_in(kind, token.text, places, path, is_bare))
            return _part(sent, token.start, token.end, path, "field", kind.title, kind, before, inner)
        assert isinstance(kind, PartsText)
        own = tokens[start:end]
        parts = []
        for number, token in enumerate(own):
            found = kind.part_at(number)
            if found is None:
                break
            at = tokens[start + number - 1].end
            parts.append(
                _part(sent, token.start, token.end, (*path, *found[0]), "field", found[1].title, found[1], at)
            )
        begin, upto = (own[0].start, own[-1].end) if own else (len(sent.text), len(sent.text))
        return _part(sent, begin, upto, path, "field", kind.title, kind, before, tuple(parts))

    def encode_padded(self, name: str, direction: Direction, fields: Mapping[str, Any], pad: str) -> bytes:
        """Encode a message in the dialect with this padding, whose rows come first; see `Codec.encode`."""
        rows = self.grammar.rows_named(direction, name)
        if pad:
            is_late = pad != self.tokenizer.pads[0]
            rows = tuple(sorted(rows, key=lambda row: (row.deviation is not None) != is_late))
        return self.encoded(rows, name, direction, fields, partial(self._message, pad=pad))

    def write_message(self, row: MessageType, fields: Mapping[str, Any]) -> bytes:
        return self._message(row, fields, "")

    def _message(self, row: MessageType, fields: Mapping[str, Any], pad: str) -> bytes:
        texts = [self._shown_name(row)]
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

    def _shown_name(self, row: MessageType) -> str:
        name = str(self.sent_name(row))
        return name if self.tokenizer.is_blank else self.tokenizer.quoted(name)

    def _value_text(self, kind: FieldType, value: Any, pad: str) -> str | None:
        """Return the text of a value; None for a list of tokens that is empty."""
        if isinstance(kind, Rest):
            return kind.encode(value)
        if isinstance(kind, PartsText) and kind.is_spread:
            texts = kind.encode_tokens(value, pad)
            return self.tokenizer.joined(texts, pad) if texts else None
        return self.tokenizer.quoted(written(kind, value, pad), pad)

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        if before.keys() != fields.keys():
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
        return self.tokenizer.separator.join([self._shown_name(row), *names])

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "tokens", "positional")

    def wire_details(self) -> Mapping[str, Any]:
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


class WrongField(NamedTuple):
    """A field whose text is not valid, and why."""

    field: Field
    error: Mismatch


class FirstError(NamedTuple):
    """The fields of a row before the first error, the number of its token, and the invalid field.

    If no field is invalid, fields are missing, or surplus from that token on.
    """

    fields: dict[str, Any]
    number: int
    wrong: WrongField | None


def _spans(row: MessageType, count: int) -> tuple[list[tuple[Field, int, int]], int]:
    """Return the ranges of tokens of a row's fields, of `count` after the name, and their end.

    If optional fields are absent, these are the last ones. If tokens are missing, the ranges exceed them.
    """
    spare = count - sum(field.type.width[0] for field in row.fields if not field.optional)
    spans: list[tuple[Field, int, int]] = []
    at = 0
    for field in row.fields:
        least, most = field.type.width
        if field.optional:
            least = max(least, 1)
            if spare < least:
                continue
            spare -= least
        more = max(spare, 0) if most is None else min(max(spare, 0), most - least)
        spare -= more
        spans.append((field, at, at + least + more))
        at += least + more
    return spans, at


def _part(
    sent: Sent,
    start: int,
    end: int,
    path: Path,
    kind: Any,
    title: str,
    of: FieldType | None,
    before: int | None = None,
    inner: tuple[Part, ...] = (),
) -> Part:
    """Return the part that is a range of characters; what belongs to it alone begins at `before`."""
    place = sent.span(start, end)
    whole = place if before is None else sent.span(before, end)
    return Part(place[0], sum(place), path, kind, title, place, whole, of, inner, sent.pad)


def _or_absent(decode: Callable[[str], Any], text: str) -> Any:
    """Decode an optional field: an empty text is none, unless it is a value."""
    try:
        return decode(text)
    except Mismatch:
        if text:
            raise
        return _ABSENT


def _filled(decode: Callable[[str], Any], notation: str, text: str) -> Any:
    """Decode a field that must not be empty."""
    if not text:
        raise Mismatch(0, 0, "the value is empty", notation, "missing-field")
    return decode(text)


def _fits_shuffled(row: MessageType, texts: Sequence[str]) -> bool:
    """Return True if the texts fit a row in another order."""
    if len(texts) != len(row.fields) or not 1 < len(texts) <= _MAX_SHUFFLED:
        return False
    for order in permutations(texts):
        try:
            for field, text in zip(row.fields, order, strict=True):
                field.type.decode(text)
        except Mismatch:
            continue
        return True
    return False


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
