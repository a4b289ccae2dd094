"""The codec of protocol files for a name and fields with blanks or another delimiter between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
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
from kiebitz.dissectors.grammar.layout_codec import DELIMITER, SURPLUS, Part, byte_offsets, span_of
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.quoted_text import quoted_text
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.file_codec import FileCodec
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.protocol_file.text_types import ListText, PartsText, Rest

Step = tuple[str, Callable[[str], Any], int]
"""Name, decoder and token number of a field."""

_ABSENT = object()
"""The value of an optional field whose text is empty."""


class Token(NamedTuple):
    """A token: its text without quotation marks, and its range of characters."""

    text: str
    start: int
    end: int


class WrongToken(NamedTuple):
    """The name of a field whose token is not valid, and why."""

    name: str
    error: Mismatch


class Assignment(NamedTuple):
    """The tokens of a row's fields.

    Attributes:
        row: The row.
        steps: Name, decoder and token number of each field.
        tail: The last field if it takes all remaining tokens.
        first: The first token that it takes, or that is surplus.
    """

    row: MessageType
    steps: tuple[Step, ...]
    tail: Field | None
    first: int
    has_optional: bool


class WordsCodec(FileCodec):
    """The codec of names and fields in a fixed order."""

    between = DELIMITER

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        super().__init__(specification, grammar)
        of = specification.format
        self._is_words = of.kind == "words"
        self._separator = " " if self._is_words else of.delimiter
        self._quote = of.quote
        self._has_lines = specification.framing.kind == "block"
        self._is_plain = specification.framing.kind in ("lines", "datagrams")
        self._find = self._token_pattern(self._has_lines)
        self._most = max((len(row.fields) for row in grammar.rows), default=0) + 1
        self._assignments: dict[tuple[Direction, str, int], tuple[Assignment, ...]] = {}
        self._long_names: dict[Direction, dict[str, list[tuple[str, ...]]]] = {
            each: {} for each in DIRECTIONS
        }
        """Names of several words by their first one, the longest first."""
        for direction, name in self._sent_names:
            words = tuple(name.split())
            if self._is_words and len(words) > 1:
                self._long_names[direction].setdefault(words[0], []).append(words)
        for names in self._long_names.values():
            for alike in names.values():
                alike.sort(key=len, reverse=True)
        self._shown = {row: self._sent_words(row) for row in grammar.rows}

    def _token_pattern(self, has_lines: bool) -> re.Pattern[str]:
        quoted = ""
        if self._quote:
            mark = re.escape(self._quote)
            quoted = rf"{mark}(?P<quoted>{quoted_text(mark)}){mark}|"
        if self._is_words:
            blanks = r" \t\r\n" if has_lines else r" \t"
            return re.compile(rf"{quoted}(?P<bare>[^{blanks}]+)", re.DOTALL)
        delimiter = r"\r?\n" if self._separator == "\n" else re.escape(self._separator)
        return re.compile(rf"(?:\A|{delimiter})(?:{quoted}(?P<bare>.*?)(?={delimiter}|\Z))", re.DOTALL)

    def _sent_words(self, row: MessageType) -> str:
        return str(self.sent_name(row))

    # Decoding.

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        start = 0
        if self._is_plain:
            body = frame.rstrip(b"\r\n")
        else:
            start, end, is_whole = self.envelope.body(frame)
            if not is_whole:
                return self.not_framed(frame)
            body = frame[start:end]
        try:
            text = body.decode(self.encoding)
        except UnicodeDecodeError as error:
            return self._undecodable(frame, direction, error, start)
        texts = self._split(text)
        name, first = self._name_in(texts, direction)
        if name is None:
            if not body or not texts:
                return self.empty(frame)
            return unreadable(self.unknown_message(texts[0], direction, self._place(frame, 0)))
        count = len(texts) - first
        for assignment in self._assigned(direction, name, count, first):
            row, steps, tail, at, has_optional = assignment
            notes: tuple[Violation, ...] = ()
            fields: dict[str, Any] = {}
            try:
                for field, decode, number in steps:
                    fields[field] = decode(texts[number])
                if tail is not None:
                    if at < len(texts) or not tail.optional:
                        fields[tail.name] = self._decode_tail(tail.type, text, texts, at)
                elif at < len(texts):
                    if at + 1 < len(texts) or texts[at] or self._is_words:
                        continue
                    notes = (self._trailing(frame, row),)
            except Mismatch:
                continue
            if has_optional:
                fields = {key: value for key, value in fields.items() if value is not _ABSENT}
            return Decoded(row, fields, to_json(fields), True, notes)
        return self._misfit(frame, direction, name, text, texts, first)

    def _split(self, text: str) -> list[str]:
        if self._quote and self._quote in text:
            return [token.text for token in self._tokens(text)]
        if self._is_words:
            return (
                self._find.findall(text)
                if not self._quote
                else [each[1] for each in self._find.findall(text)]
            )
        if self._separator == "\n":
            return text.replace("\r\n", "\n").split("\n")
        return text.split(self._separator)

    def _tokens(self, text: str) -> Iterator[Token]:
        for found in self._find.finditer(text):
            quoted = found["quoted"] if self._quote else None
            if quoted is None:
                yield Token(found["bare"], found.start("bare"), found.end("bare"))
            else:
                start = found.start("quoted") - len(self._quote)
                yield Token(self._unescaped(quoted), start, found.end())

    def _unescaped(self, quoted: str) -> str:
        if "\\" not in quoted:
            return quoted
        escape = re.compile(rf"\\([\\{re.escape(self._quote)}])")
        return escape.sub(r"\1", quoted)

    def _name_in(self, texts: Sequence[str], direction: Direction) -> tuple[str | None, int]:
        """Return the name of a message, None if it is unknown, and the number of its tokens."""
        if not texts:
            return None, 0
        head = texts[0]
        long_names = self._long_names[direction].get(head)
        if long_names is not None:
            for words in long_names:
                if (*texts[: len(words)],) == words:
                    return " ".join(words), len(words)
        return self.name_of_text(head, direction), 1

    def _assigned(self, direction: Direction, name: str, count: int, first: int) -> tuple[Assignment, ...]:
        count = min(count, self._most)
        key = direction, name, count
        found = self._assignments.get(key)
        if found is None:
            rows = self.grammar.rows_named(direction, name)
            made = (self._assignment(row, count, first) for row in rows)
            found = self._assignments[key] = tuple(each for each in made if each is not None)
        return found

    def _assignment(self, row: MessageType, count: int, first: int) -> Assignment | None:
        """Return the tokens of a row's fields, None if there are fewer than it needs."""
        tail = row.fields[-1] if row.fields and self._takes_rest(row.fields[-1].type) else None
        fields = row.fields if tail is None else row.fields[:-1]
        optional = count - sum(not field.optional for field in fields)
        if optional < 0:
            return None
        steps: list[Step] = []
        number = first
        for field in fields:
            if field.optional:
                if optional == 0:
                    continue
                optional -= 1
            decode = field.type.decode
            steps.append((field.name, _or_absent(decode) if field.optional else decode, number))
            number += 1
        return Assignment(row, tuple(steps), tail, number, any(field.optional for field in fields))

    def _takes_rest(self, kind: FieldType) -> bool:
        return isinstance(kind, Rest) or (isinstance(kind, ListText) and kind.separator == self._separator)

    def _decode_tail(self, kind: FieldType, text: str, texts: Sequence[str], at: int) -> Any:
        if isinstance(kind, ListText):
            decode = kind.item.decode
            return [decode(each) for each in texts[at:]]
        return kind.decode(text[self._rest_start(text, at) :])

    def _rest_start(self, text: str, at: int) -> int:
        """Return the character after the delimiter behind the token before this one."""
        tokens = self._tokens(text)
        end = 0
        for _ in range(at):
            end = next(tokens).end
        if end >= len(text):
            return len(text)
        return end + (1 if self._is_words else len(self._separator))

    # Errors.

    def _trailing(self, frame: bytes, row: MessageType) -> Violation:
        _, end, _ = self.envelope.body(frame)
        length = len(self._separator.encode(self.encoding))
        text = f"{row.name} has a delimiter after its last field"
        place = end - length, length
        return Violation(
            "note", "malformed", "trailing-delimiter", text, *place, self.notation(row), row.clause, True
        )

    def _undecodable(
        self, frame: bytes, direction: Direction, error: UnicodeDecodeError, start: int
    ) -> Decoded:
        violation = self.not_text(frame, error, start)
        name, _ = self._name_in(self._split(self._text(frame)), direction)
        rows = self.grammar.rows_named(direction, name) if name is not None else ()
        return Decoded(rows[0], {}, "{}", False, (violation,)) if rows else unreadable(violation)

    def _misfit(
        self, frame: bytes, direction: Direction, name: str, text: str, texts: Sequence[str], first: int
    ) -> Decoded:
        """Return the first error of the row that fits best."""
        best: tuple[tuple[bool, int, bool], MessageType, dict[str, Any], int, WrongToken | None] | None = None
        for row in self.grammar.rows_named(direction, name):
            fields, number, wrong = self._first_error(row, text, texts, first)
            least = first + sum(not field.optional for field in row.fields)
            has_tail = bool(row.fields) and self._takes_rest(row.fields[-1].type)
            has_count = least - has_tail <= len(texts) and (has_tail or len(texts) <= first + len(row.fields))
            rank = has_count, len(fields), wrong is not None or number >= len(texts)
            if best is None or rank > best[0]:
                best = rank, row, fields, number, wrong
        assert best is not None
        _, row, fields, number, wrong = best
        if wrong is not None:
            place = self._place(frame, number, wrong.error.start, wrong.error.end)
            violation = self.field_error(row, wrong.name, wrong.error, place)
        elif number < len(texts):
            _, end, _ = self.envelope.body(frame)
            before, length = self._place(frame, number - 1)
            problem = f"{row.name} has {count_of_fields(len(row.fields))}"
            place = before + length, end - before - length
            violation = self.error("surplus-fields", problem, place, self.notation(row), row.clause)
        else:
            _, end, _ = self.envelope.body(frame)
            missing = [field.name for field in row.fields if not field.optional and field.name not in fields]
            problem = f"{row.name} ends before its {', '.join(missing)}"
            violation = self.error("missing-field", problem, (end, 0), self.notation(row), row.clause)
        return Decoded(row, fields, to_json(fields), False, (violation,))

    def _first_error(
        self, row: MessageType, text: str, texts: Sequence[str], first: int
    ) -> tuple[dict[str, Any], int, WrongToken | None]:
        """Return the fields before the first error, the number of its token, and what is wrong with it.

        Without the latter, fields are missing or surplus.
        """
        assignment = self._assignment(row, len(texts) - first, first)
        fields: dict[str, Any] = {}
        if assignment is None:
            required = [field for field in row.fields if not field.optional]
            steps: tuple[Step, ...] = tuple(
                (field.name, field.type.decode, number) for number, field in enumerate(required, first)
            )
        else:
            steps = assignment.steps
        for name, decode, number in steps:
            if number >= len(texts):
                return fields, len(texts), None
            try:
                value = decode(texts[number])
            except Mismatch as error:
                return fields, number, WrongToken(name, error)
            if value is not _ABSENT:
                fields[name] = value
        if assignment is not None and assignment.tail is not None:
            tail = assignment.tail
            return fields, *self._tail_error(tail, text, texts, assignment.first)
        return fields, first + len(steps), None

    def _tail_error(
        self, tail: Field, text: str, texts: Sequence[str], at: int
    ) -> tuple[int, WrongToken | None]:
        kind = tail.type.item if isinstance(tail.type, ListText) else tail.type
        each = texts[at:] if isinstance(tail.type, ListText) else [text[self._rest_start(text, at) :]]
        for number, part in enumerate(each, at):
            try:
                kind.decode(part)
            except Mismatch as error:
                return number, WrongToken(tail.name, error)
        return len(texts), None

    def _text(self, frame: bytes) -> str:
        """Return the text of a frame, with one character for each byte if it is in no such encoding."""
        start, end, _ = self.envelope.body(frame)
        body = frame[start:end]
        try:
            return body.decode(self.encoding)
        except UnicodeDecodeError:
            return body.decode("latin-1")

    def _place(self, frame: bytes, number: int, first: int = 0, last: int | None = None) -> Place:
        """Return the place of a token, or of characters of its text."""
        text = self._text(frame)
        tokens = [*self._tokens(text)]
        if number >= len(tokens):
            return self.envelope.body(frame)[1], 0
        token = tokens[number]
        if last is None or (first, last) == (0, len(token.text)):
            return self._span(frame, text, token.start, token.end)
        start = token.start
        if text[start : token.end] != token.text:
            if "\\" in text[start : token.end]:
                return self._span(frame, text, token.start, token.end)
            start += len(self._quote)
        return self._span(frame, text, start + first, start + last)

    def _span(self, frame: bytes, text: str, start: int, end: int) -> Place:
        """Return the bytes of a range of characters."""
        begin, upto, _ = self.envelope.body(frame)
        return span_of(byte_offsets(text, upto - begin), begin, start, end)

    # Places and spelling.

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        text = self._text(frame)
        tokens = [*self._tokens(text)]
        _, first = self._name_in([token.text for token in tokens], row.direction)
        first = min(max(first, 1), len(tokens))

        body_start, body_end, _ = self.envelope.body(frame)
        offsets = byte_offsets(text, body_end - body_start)

        def span(start: int, end: int) -> tuple[int, int]:
            return body_start + offsets[start], body_start + offsets[end]

        if not tokens:
            return ()
        parts = [Part(*span(tokens[0].start, tokens[first - 1].end), (), "name", self.notation(row))]
        fields = {field.name: field for field in row.fields}
        assignment = self._assignment(row, len(tokens) - first, first)
        if assignment is None:
            required = [field for field in row.fields if not field.optional]
            numbers = [(field.name, number) for number, field in enumerate(required, first)]
            after = len(tokens)
        else:
            numbers = [(name, number) for name, _, number in assignment.steps]
            after = assignment.first
        for name, number in numbers:
            if number < len(tokens):
                parts.append(self._token_part(fields[name], tokens, number, span))
        if assignment is not None and assignment.tail is not None:
            parts.extend(self._tail_parts(assignment.tail, text, tokens, after, span))
        elif after < len(tokens):
            parts.append(Part(*span(tokens[after].start, len(text)), (), "unread", SURPLUS))
        return parts

    def _token_part(
        self, field: Field, tokens: Sequence[Token], number: int, span: Callable[[int, int], tuple[int, int]]
    ) -> Part:
        token, kind, path = tokens[number], field.type, (field.name,)
        start, end = span(token.start, token.end)
        before, _ = span(tokens[number - 1].end, token.end)
        inner: list[Part] = []
        is_literal = token.end - token.start == len(token.text)
        if isinstance(kind, PartsText) and is_literal:
            for count, (begin, upto) in enumerate(kind.part_places(token.text)):
                of = kind.type_at(count)
                if of is None:
                    break
                at, ended = span(token.start + begin, token.start + upto)
                place = at, ended - at
                step = (*path, kind.step(count))
                inner.append(Part(at, ended, step, "field", of.title, place, place, of))
        value = start, end - start
        return Part(start, end, path, "field", kind.title, value, (before, end - before), kind, tuple(inner))

    def _tail_parts(
        self,
        field: Field,
        text: str,
        tokens: Sequence[Token],
        at: int,
        span: Callable[[int, int], tuple[int, int]],
    ) -> Iterator[Part]:
        kind, path = field.type, (field.name,)
        if at >= len(tokens) and field.optional:
            return
        before, _ = span(tokens[at - 1].end, len(text))
        inner: list[Part] = []
        if isinstance(kind, ListText):
            begin = tokens[at].start if at < len(tokens) else len(text)
            for number, token in enumerate(tokens[at:]):
                start, end = span(token.start, token.end)
                whole, _ = span(tokens[at + number - 1].end, token.end)
                step, title = (*path, number), kind.item.title
                place = start, end - start
                inner.append(Part(start, end, step, "field", title, place, (whole, end - whole), kind.item))
        else:
            begin = self._rest_start(text, at)
        start, end = span(begin, len(text))
        value = start, end - start
        yield Part(start, end, path, "field", kind.title, value, (before, end - before), kind, tuple(inner))

    def write_message(self, row: MessageType, fields: Mapping[str, Any]) -> bytes:
        texts = [self._sent_words(row) if self._is_words else self._written(self._sent_words(row))]
        left = len(fields)
        for field in row.fields:
            if field.name in fields:
                left -= 1
                text = self._value_text(field.type, fields[field.name])
                if text is not None:
                    texts.append(text)
            elif left and not self._is_words:
                # An empty text keeps the place of a field that is left out.
                texts.append("")
        return self._separator.join(texts).encode(self.encoding)

    def _value_text(self, kind: FieldType, value: Any) -> str | None:
        """Return the text of a value; None for a list of the remaining tokens that is empty."""
        if isinstance(kind, Rest):
            return kind.encode(value)
        if isinstance(kind, ListText) and kind.separator == self._separator:
            items = kind.encode_items(value)
            return self._separator.join(map(self._written, items)) if items else None
        return self._written(kind.encode(value))

    def _written(self, text: str) -> str:
        """Return the token of a text; raise ValueError if there is none."""
        if self._is_words:
            needs_quotes = not text or any(blank in text for blank in " \t")
        else:
            needs_quotes = self._separator in text
        if self._quote and (needs_quotes or text.startswith(self._quote)):
            escaped = text.replace("\\", "\\\\").replace(self._quote, "\\" + self._quote)
            return f"{self._quote}{escaped}{self._quote}"
        if needs_quotes:
            raise ValueError(f"{text!r} contains a delimiter, or is empty")
        return text

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert part.type is not None
        text = self._value_text(part.type, value) or ""
        start, length = part.value
        separator = self._separator.encode()
        needs_delimiter = not length and text and not frame[:start].endswith(separator)
        return (separator if needs_delimiter else b"") + text.encode(self.encoding)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        if self._quote and not isinstance(field.type, Rest):
            text = self._written(text)
        return super().as_text(frame, row, field, text)

    def notation(self, row: MessageType) -> str:
        names = (f"[{field.name}]" if field.optional else field.name for field in row.fields)
        return self._separator.join([self._sent_words(row), *names])

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "positional")

    def wire_details(self) -> Mapping[str, Any]:
        return {
            "kind": "positional",
            "words": self._is_words or None,
            "blanks": (" \t\r\n" if self._has_lines else " \t") if self._is_words else None,
            "delimiter": self._separator,
            "quote": self._quote or None,
            "optional": "count",
        }


def _or_absent(decode: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a decoder of an optional field: an empty text is none, unless it is a value."""

    def decode_any(text: str) -> Any:
        try:
            return decode(text)
        except Mismatch:
            if text:
                raise
            return _ABSENT

    return decode_any
