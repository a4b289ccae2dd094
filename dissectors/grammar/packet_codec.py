"""The codec of packets of lines: a first line with the name, the lines of its fields, and a last line.

Only the first violation of a packet is reported, in the order of its bytes: further ones are often only its
consequences.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.dissection_tree import Piece, whole
from kiebitz.dissectors.grammar.envelope import LINE_ENDS, PacketEnvelope
from kiebitz.dissectors.grammar.field_type import WHOLE_REST, FieldType, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import (
    MAX_QUOTED,
    ListText,
    Number,
    PartsText,
    Rest,
    Word,
    decode_incomplete,
    token_types,
    unknown_word,
)
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Place,
    Violation,
    count_of_fields,
    nearest_word,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import Part
from kiebitz.dissectors.grammar.packet_framer import (
    AnyLine,
    Counted,
    PacketForm,
    PacketForms,
    PacketFramer,
    TypedLine,
)
from kiebitz.dissectors.grammar.text_codec import ABSENT, ALL_TOKENS, TextCodec
from kiebitz.dissectors.grammar.text_message import Sent, spans_of, undecoded
from kiebitz.dissectors.grammar.tokens import Splitter
from kiebitz.dissectors.model import DIRECTIONS, Direction, Severity
from kiebitz.dissectors.suggestions import with_suggestion

LINES = Splitter("\n")
"""The lines of a packet."""


class FirstLines(NamedTuple):
    """A row as far as lines after the first one fit it.

    Attributes:
        row: The row.
        fields: The fields before the first error.
        right: Number of lines that fit.
        error: Why the next line does not; None if it is missing, or there is none.
        types: Types of all lines of a packet of this row with as many lines, as far as possible.
    """

    row: MessageType
    fields: dict[str, Any]
    right: int
    error: Mismatch | None
    types: Sequence[FieldType]


def line_types(row: MessageType, count: int = 0) -> list[FieldType]:
    """Return the types of the lines of a row, with `count` lines after the first one if it may have them."""
    return [
        kind for field, start, end in spans_of(row, count)[0] for kind in token_types(field.type, end - start)
    ]


def _either(forms: Sequence[Any]) -> Any:
    """Return the form of a line that has one of several."""
    if all(isinstance(form, frozenset) for form in forms):
        return frozenset().union(*forms)
    return forms[0] if len(forms) == 1 else AnyLine()


def _most_lines(row: MessageType) -> int:
    widths = [field.type.width[1] for field in row.fields]
    return ALL_TOKENS if None in widths else sum(filter(None, widths))


def _period(row: MessageType) -> int:
    """Return the number of lines of the last field's items."""
    kind = row.fields[-1].type if row.fields else None
    return kind.item.width[0] if isinstance(kind, ListText) and kind.is_spread else 1


class PacketCodec(TextCodec):
    """A codec of packets of lines. Of several rows of a name, the first one whose fields fit is used.

    `mark` begins each first line, `more_ends` are last lines by name that differ from the usual `end`.
    """

    unit = "packet"
    noun = "line"
    names_fields = True
    may_be_cut: Collection[str] = ()
    """Names of packets that may be incomplete at the end of a stream."""
    lines = LINES
    """The separators of a packet's lines."""
    envelope: PacketEnvelope

    def __init__(
        self,
        grammar: Grammar,
        *,
        mark: str = "",
        end: str = "",
        more_ends: Mapping[str, str] = MappingProxyType({}),
        line_end: str = "\n",
        encoding: str = "utf-8",
        codes: Mapping[tuple[Direction, str], int | str] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        sent = {
            (row.direction, row.name): f"{mark}{codes.get((row.direction, row.name), row.name)}"
            for row in grammar.rows
        }
        ends = {
            first.encode(encoding): more_ends[name].encode(encoding)
            for (_, name), first in sent.items()
            if name in more_ends
        }
        envelope = PacketEnvelope(end.encode(encoding), ends, line_end)
        super().__init__(grammar, self.lines, envelope, codes=sent, encoding=encoding, **more)
        self.mark, self.end = mark, end
        self._forms: dict[Direction, PacketForms] = {}

    def framer(self, direction: Direction) -> PacketFramer:
        """Return a framer for the packets that are sent in a direction."""
        return PacketFramer(direction, self.forms(direction))

    def forms(self, direction: Direction) -> PacketForms:
        """Return the forms of the packets that are sent in a direction."""
        found = self._forms.get(direction)
        if found is None:
            usual = self.end.encode(self.encoding)
            forms: dict[bytes, PacketForm] = {}
            for name in self.grammar.names(direction):
                rows = self.grammar.rows_named(direction, name)
                first = str(self.sent_name(rows[0])).encode(self.encoding)
                forms[first] = self._form(rows, self.envelope.ends.get(first, usual))
            found = self._forms[direction] = PacketForms(self.mark.encode(self.encoding), usual, forms)
        return found

    def _form(self, rows: Sequence[MessageType], end: bytes) -> PacketForm:
        if not end:
            lines = [line_types(row) for row in rows]
            forms = (map(self._texts_of, kinds) for kinds in zip(*lines, strict=True))
            return PacketForm(
                end, counted=Counted(tuple(_either([*each]) for each in forms), _period(rows[0]))
            )
        with_texts = [row for row in rows if any(kind.is_free_text for kind in line_types(row, 1))]
        most = max((_most_lines(row) for row in with_texts), default=0)
        least = min((len(line_types(row)) for row in with_texts), default=0)
        return PacketForm(end, most, most if most < ALL_TOKENS else least)

    def _texts_of(self, kind: FieldType) -> Any:
        if isinstance(kind, Word):
            return frozenset(each for word in kind.values for each in self.encoded_word(word))
        return TypedLine(kind) if isinstance(kind, Number) else AnyLine()

    def encoded_word(self, word: str) -> Iterable[bytes]:
        """Return the encodings of a word."""
        encodings = (self.encoding, *(["cp1252"] if self.lenient.charset else []))
        with suppress(UnicodeEncodeError):
            return [word.encode(each) for each in encodings]
        return [word.encode(self.encoding)]

    # Decoding.

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        if self.envelope.is_ended(frame):
            return super().decode(frame, direction)
        return self._misfit(frame, direction, None)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        return whole(frame, decoded, "") if decoded.row is None else super().anatomy(frame, direction)

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        return self.exact_rows(rows, count)

    def _misfit(self, frame: bytes, direction: Direction, error: UnicodeDecodeError | None) -> Decoded:
        sent = self.sent(frame)
        texts = self.lines_of(sent)
        name, _ = self.name_in(texts, direction)
        if name is None:
            is_empty = len(texts) < 2 and frame.rstrip(LINE_ENDS) in (b"", *self.forms(direction).ends)
            return self.nothing(sent, direction) if is_empty else unreadable(self.unknown(sent, direction))
        read = self._closest(self.grammar.rows_named(direction, name), texts[1:])
        violation = self._violation(sent, read, texts[1:])
        if error is not None and not self.lenient.charset:
            violation = self.not_text(frame, error, sent.start)
        if violation.severity != "note":
            return Decoded(read.row, read.fields, to_json(read.fields), False, (violation,))
        notes = () if error is None else (self.charset_note(sent, error),)
        return Decoded(read.row, read.fields, to_json(read.fields), True, (*notes, violation))

    def lines_of(self, sent: Sent) -> list[str]:
        """Return the lines of a packet without the last one, even if it should have none."""
        texts = [token.text for token in sent.tokens]
        has_end = bool(texts[1:]) and texts[-1].encode(self.encoding, "replace") in self.envelope.all_ends
        return texts[:-1] if has_end else texts

    def _read(self, row: MessageType, body: Sequence[str]) -> FirstLines:
        """Return how far lines after the first one fit a row."""
        fields: dict[str, Any] = {}
        types = line_types(row, len(body))
        at = 0
        for field, start, end in spans_of(row, len(body))[0]:
            kind, lines = field.type, body[start:end]
            try:
                if len(lines) < end - start:
                    decode_incomplete(kind, lines)
                    return FirstLines(row, fields, len(body), None, types)
                sent: Any = lines if isinstance(kind, PartsText) and kind.is_spread else "\n".join(lines)
                value = self._decoder(field, row)(sent)
            except Mismatch as error:
                return FirstLines(row, fields, start + error.token, error, types)
            if value is not ABSENT:
                fields[field.name] = value
            at = end
        return FirstLines(row, fields, min(len(body), at), None, types)

    def _closest(self, rows: Sequence[MessageType], body: Sequence[str]) -> FirstLines:
        """Return the row of a name that was probably meant: with the most lines that fit."""

        def likeness(read: FirstLines) -> tuple[int, bool, int, bool, bool]:
            lines = len(read.types)
            is_whole = read.error is None and len(body) >= lines
            # A row without fields has no wrong lines: all are ignored.
            return read.right, lines == 0, -abs(len(body) - lines), is_whole, read.row.deviation is None

        return max((self._read(row, body) for row in rows), key=likeness)

    def _violation(self, sent: Sent, read: FirstLines, body: Sequence[str]) -> Violation:
        """Return the first violation of a packet with these lines after the first one."""
        row, count = read.row, len(read.types)
        if read.error is not None:
            return self.wrong(sent, read, body, read.error)
        if len(body) < count:
            return self._missing(sent, read, len(body))
        place = line_place(sent, count + 1, len(sent.tokens) - 1)
        if not self.envelope.end_of(sent.frame):
            problem = f"{row.name} continues after its {self.count_of_lines(row, count)}"
            return self.error("stray-lines", problem, place, "the next message", row.clause)
        is_begun = len(body) > count and body[count].endswith(self.first_lines(row.direction))
        if (is_begun and self.mark) or not self.envelope.is_ended(sent.frame):
            # If the next packet has begun, its last line ends both.
            return self._missing_end(sent, read)
        problem = f"{row.name} has {count_of_fields(count)}"
        if not self.lenient.surplus:
            return self.error("surplus-fields", problem, place, self.notation(row), row.clause)
        problem += "; what follows is ignored"
        return self.note("surplus-fields", problem, place, self.notation(row), row.clause)

    def count_of_lines(self, row: MessageType, count: int) -> str:
        """Return the words for the number of lines of a packet without a last line."""
        return count_of_fields(count, "line")

    def first_lines(self, direction: Direction) -> tuple[str, ...]:
        """Return the first lines of a direction's packets."""
        rows = (self.grammar.rows_named(direction, name)[0] for name in self.grammar.names(direction))
        return tuple(str(self.sent_name(row)) for row in rows)

    # Between two packets.

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        line = sent.frame.rstrip(LINE_ENDS)
        if line in self.forms(direction).ends:
            shown = line.decode(self.encoding)
            return _ignored(sent, "stray-end", f"{shown} without a message before it is ignored")
        if not line:
            return _ignored(sent, "empty-line", "an empty line between two messages is ignored")
        return unreadable(self.unknown(sent, direction))

    def beginnings(self, direction: Direction) -> str:
        """Return the expectation at the beginning of a packet."""
        return f"one of {', '.join(self.first_lines(direction))}"

    # In a packet.

    def wrong(self, sent: Sent, read: FirstLines, body: Sequence[str], mismatch: Mismatch) -> Violation:
        """Return the error of a line that does not fit."""
        row, line = read.row, read.right
        # The words of all rows of this name may have been meant.
        rows = self.grammar.rows_named(row.direction, row.name)
        others = [kinds[line] for kinds in (line_types(row, len(body)) for row in rows) if len(kinds) > line]
        if len(others) > 1 and all(isinstance(other, Word) for other in others):
            words = tuple(word for other in others for word in other.words)
            mismatch = unknown_word(body[line], words, mismatch.expected)
        spans = spans_of(row, len(body))[0]
        name = next(field.name for field, start, end in spans if start <= line < max(end, line + 1))
        return self.field_error(row, name, mismatch, self._wrong_place(sent, line + 1, mismatch))

    def _wrong_place(self, sent: Sent, line: int, mismatch: Mismatch) -> Place:
        """Return the place of an error in a line."""
        if line >= len(sent.tokens) or mismatch.end == WHOLE_REST:
            return line_place(sent, line, len(sent.tokens) - 1)
        token = sent.tokens[line]
        if (mismatch.start, mismatch.end) == (0, len(token.text)):
            return line_place(sent, line)
        return sent.span(*self.tokenizer.part(sent.text, token, mismatch.start, mismatch.end))

    def _missing(self, sent: Sent, read: FirstLines, count: int) -> Violation:
        row, lines = read.row, read.types
        place = line_place(sent, count + 1)
        if place[0] == len(sent.frame) and (end := sent.frame[sent.end :].strip(b"\r\n")):
            place = sent.frame.rindex(end), len(end)
        problem = f"{row.name} ends after {self.part_of_lines(row, count, len(lines))}"
        return self.error("missing-field", problem, place, lines[count].title, row.clause)

    def part_of_lines(self, row: MessageType, count: int, total: int) -> str:
        """Return the words for the lines that an incomplete packet has."""
        return f"{count} of its {count_of_fields(total)}"

    def _missing_end(self, sent: Sent, read: FirstLines) -> Violation:
        """Return the violation of a packet with all its fields, but without its last line."""
        row, body, count = read.row, self.lines_of(sent)[1:], len(read.types)
        end = self.envelope.end_of(sent.frame).decode(self.encoding)
        slip = _misspelled_end(count, body, end)
        if slip is not None:
            place = line_place(sent, slip + 1)
            problem = with_suggestion(f'{row.name}: "{body[slip][-MAX_QUOTED:]}" does not end it', end)
        elif len(body) > count:
            place = line_place(sent, count + 1)
            problem = f'{row.name} has no end: here is "{body[count][:MAX_QUOTED]}"'
        else:
            place = len(sent.frame), 0
            problem = f"{row.name} has no end: here the next message begins"
        return self.error("missing-end", problem, place, f'"{end}"', row.clause)

    # At the end of the stream.

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        if not frame.endswith(b"\n"):
            # A peer that reads line by line accepts the last line without its end, too.
            whole = self.decode(frame, direction)
            if whole.valid:
                place = len(frame), 0
                problem = "the stream ends without a line end"
                note = Violation("note", "malformed", "no-line-end", problem, *place, "a line feed")
                return Decoded(whole.row, whole.fields, whole.fields_json, True, (*whole.violations, note))
        complete = frame[: frame.rfind(b"\n") + 1]
        if not complete:
            return self._in_first_line(frame, direction)
        texts = self.tokenizer.texts(undecoded(complete, self.encoding, self.lenient.charset))[:-1]
        name, _ = self.name_in(texts, direction)
        if name is None:
            return unreadable(self.unknown(self.sent(frame), direction))
        rows, body = self.grammar.rows_named(direction, name), texts[1:]
        read, end = self._closest(rows, body), self.envelope.end_of(frame).decode(self.encoding)
        if read.error is not None or (end and _misspelled_end(len(read.types), body, end) is not None):
            return self._misfit(complete, direction, None)
        fitting = [each for each in (self._read(row, body) for row in rows) if each.error is None]
        fitting = [each for each in fitting if len(each.types) >= len(body)]
        titles = [line.title for each in fitting for line in each.types[len(body) : len(body) + 1]]
        if not fitting or any(len(each.types) == len(body) for each in fitting):
            titles.append(f'"{end}"')
        expected = " or ".join(dict.fromkeys(titles))
        return self._cut_short(frame, read.row, expected, read.row.name in self.may_be_cut)

    def _in_first_line(self, frame: bytes, direction: Direction) -> Decoded:
        """Decode an incomplete first line, known or unknown."""
        sent = self.sent(frame)
        begun = undecoded(frame, self.encoding, self.lenient.charset).removesuffix("\r")
        if not any(line.startswith(begun) for line in self.first_lines(direction)):
            return unreadable(self.unknown(sent, direction)) if sent.text else self.nothing(sent, direction)
        # Real servers often close the connection before the line is complete.
        harmless = any(f"{self.mark}{name}".startswith(begun) for name in self.may_be_cut)
        return self._cut_short(frame, None, self.beginnings(direction), harmless)

    def _cut_short(self, frame: bytes, row: MessageType | None, expected: str, harmless: bool) -> Decoded:
        """Decode a packet that is valid, but incomplete."""
        severity: Severity = "note" if harmless else "error"
        problem = f"the stream ends in the middle of {row.name if row is not None else 'a message'}"
        clause = row.clause if row is not None else self.clause
        violation = Violation(severity, "malformed", "truncated", problem, len(frame), 0, expected, clause)
        return Decoded(row, {}, "{}", False, (violation,))

    # Places and spelling.

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        parts = super().layout(frame, row)
        return [_with_line_end(part, frame) for part in parts]

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        kind = part.type
        assert kind is not None
        end = self.envelope.end_of(frame).decode(self.encoding)
        if isinstance(kind, Rest):
            line_end = b"\r\n" if b"\r\n" in frame else b"\n"
            return line_end.join(self.spelled_as(frame, b"", text) for text in kind.encode(value).split("\n"))
        if isinstance(kind, PartsText) and kind.is_spread:
            texts = kind.encode_tokens(value)
        else:
            texts = [super().write_part(frame, part, value).decode(self._charset_of(frame))]
        start, length = part.value
        lines = frame[start : start + length].split(b"\n")
        if any("\n" in text or text == end for text in texts if text) or len(texts) != len(lines):
            raise ValueError(f"{part.path} would be read as something else")
        return b"\n".join(self.spelled_as(frame, *each) for each in zip(lines, texts, strict=True))

    def spelled_as(self, frame: bytes, line: bytes, text: str) -> bytes:
        """Encode a text that replaces a line of a packet, in its sender's style.

        The charset is that of the line, or of the frame if the line is ASCII.
        """
        line_end = b"\r" if line.endswith(b"\r") else b""
        try:
            (frame if line.isascii() else line).decode(self.encoding)
        except UnicodeDecodeError:
            with suppress(UnicodeEncodeError):
                return text.encode("cp1252") + line_end
        return text.encode(self.encoding) + line_end

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        written = super().as_text(frame, row, field, text)
        return written.replace(b"\n", b"\r\n") if b"\r\n" in frame else written

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.decode(frame, direction).row is not None

    def wire_format(self) -> WireType:
        forms = {each: self.forms(each) for each in DIRECTIONS}
        kinds: list[Container[bytes]] = []
        for form in (form for each in forms.values() for form in each.forms.values()):
            kinds += [line for line in (form.counted.lines if form.counted else ()) if line not in kinds]
        framing = {
            "kind": "packets",
            "mark": self.mark,
            "end": self.end,
            "ends": {
                direction: {lua_bytes(end): True for end in sorted(each.ends)}
                for direction, each in forms.items()
            },
            "longest": {direction: each.longest for direction, each in forms.items()},
            "kinds": [self._wire_kind(kind) for kind in kinds],
            "marked": {
                lua_bytes(word): True
                for kind in kinds
                for word in (sorted(kind) if isinstance(kind, frozenset) and self._is_marked(kind) else ())
            },
            "forms": {
                direction: {
                    lua_bytes(line): _wire_form(each, form, kinds) for line, form in each.forms.items()
                }
                for direction, each in forms.items()
            },
        }
        return {
            "kind": "packets",
            "framing": framing,
            "encoding": "windows" if self.lenient.charset else self.encoding,
            "ignores_surplus": self.lenient.surplus or None,
            "may_be_cut": {f"{self.mark}{name}": True for name in self.may_be_cut},
            "runtime": ("text_types", "packets"),
        }

    def _is_marked(self, kind: frozenset[bytes]) -> bool:
        mark = self.mark.encode(self.encoding)
        return bool(mark) and all(word.startswith(mark) for word in kind)

    def _wire_kind(self, kind: Container[bytes]) -> WireType:
        if isinstance(kind, frozenset):
            words = {lua_bytes(word): True for word in sorted(kind)}
            return {"words": words, "marked": self._is_marked(kind) or None}
        return {"type": kind.type.wire_type()} if isinstance(kind, TypedLine) else {}

    def notation(self, row: MessageType) -> str:
        names = (f"[{field.name}]" if field.optional else field.name for field in row.fields)
        name = str(self.sent_name(row))
        end = self.envelope.end_of(name.encode(self.encoding)).decode(self.encoding)
        return " ⏎ ".join([name, *names, *([end] if end else [])])


def _wire_form(forms: PacketForms, form: PacketForm, kinds: Sequence[Container[bytes]]) -> WireType:
    """Return the declarative description of a form; lines are numbers of their kinds."""
    if form.counted is None:
        misspelt = {lua_bytes(line): True for line in sorted(forms.misspelt_ends[form.end])}
        texts = min(form.texts, FRAME_LIMIT)
        return {"end": lua_bytes(form.end), "texts": texts, "least": form.least, "misspelt": misspelt}
    lines = [kinds.index(line) + 1 for line in form.counted.lines]
    return {"lines": lines, "period": form.counted.period}


def lua_bytes(data: bytes) -> str:
    """Return bytes as text, of which those that are not UTF-8 are halves of surrogate pairs."""
    return data.decode("utf-8", "surrogateescape")


def line_place(sent: Sent, first: int, last: int | None = None) -> Place:
    """Return the place of the lines `first` to `last`, the first one being 0; the end if there are none."""
    if first >= len(sent.tokens):
        return len(sent.frame), 0
    final = sent.tokens[first if last is None else last]
    return sent.span(sent.tokens[first].start, final.end - len(final.text) + len(final.text.rstrip("\r")))


def _ignored(sent: Sent, code: str, problem: str) -> Decoded:
    size = len(sent.frame.rstrip(b"\r\n"))
    return unreadable(Violation("note", "malformed", code, problem, 0, size))


def _misspelled_end(count: int, body: Sequence[str], end: str) -> int | None:
    """Return the line that was probably meant to be the end of a packet with all its `count` lines."""
    for number in (count, len(body) - 1):
        if count <= number < len(body) and nearest_word(body[number], (end,)) is not None:
            return number
    # A line end may be missing before it.
    return len(body) - 1 if len(body) >= count and body and body[-1].endswith(end) else None


def _with_line_end(part: Part, frame: bytes) -> Part:
    """Return a part with the line end after it."""
    end = part.end
    end += frame.startswith(b"\r", end)
    end += frame.startswith(b"\n", end)
    parts = tuple(_with_line_end(each, frame) for each in part.parts)
    return msgspec.structs.replace(part, end=end, whole=(part.start, end - part.start), parts=parts)
