"""The codec of Pakete: a flag, lines, and the end, with Schafkopf's own diagnostics.

Only the first violation of a Paket is reported, in the order of its bytes: further ones are often only its
consequences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.charset import read_text, windows_note
from kiebitz.dissectors.grammar.dissection_tree import Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.envelope import PacketEnvelope
from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.fields import PartsText, Word, decode_incomplete, token_types, unknown_word
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    MessageType,
    Violation,
    count_of_fields,
    nearest_word,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import Part
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.text_codec import TextCodec
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.model import DIRECTIONS, Direction, Severity
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, HAND, SEATS, WERTE
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    EMPTY,
    EMPTY_SPELLINGS,
    END,
    GRAMMAR,
    LINES,
    MODEL_FLAG,
    MODEL_LINES,
    TWICE_ENCODED,
    notation,
    packet_forms,
    production,
    symbol_of,
    terminals,
)
from kiebitz.dissectors.suggestions import with_suggestion

_MAX_QUOTED = 40

_MODEL = "MODEL"

_TWICE = TWICE_ENCODED.encode()

_FLAGS = {direction: tuple(f"!{name}" for name in GRAMMAR.names(direction)) for direction in DIRECTIONS}

_FIRST_CARD = {"spielerhand": 0, "tisch": HAND, "letzter_stich": HAND + SEATS}
"""The first card of each field of a MODEL."""


class FirstLines(NamedTuple):
    """A row as far as lines after a flag fit it.

    Attributes:
        row: The row.
        fields: The fields before the first error.
        right: Number of lines that fit.
        error: Why the next line does not; None if it is missing, or there is none.
    """

    row: MessageType
    fields: dict[str, Any]
    right: int
    error: Mismatch | None


def _read(row: MessageType, body: Sequence[str]) -> FirstLines:
    """Return how far lines after a flag fit a row."""
    fields: dict[str, Any] = {}
    at = 0
    for field in row.fields:
        kind, size = field.type, field.type.width[0]
        lines = body[at : at + size]
        try:
            if len(lines) < size:
                decode_incomplete(kind, lines)
                return FirstLines(row, fields, len(body), None)
            fields[field.name] = (
                kind.decode_tokens(lines) if isinstance(kind, PartsText) else kind.decode(lines[0])
            )
        except Mismatch as error:
            return FirstLines(row, fields, at + error.token, error)
        at += size
    return FirstLines(row, fields, min(len(body), at), None)


def _closest(rows: Sequence[MessageType], body: Sequence[str]) -> FirstLines:
    """Return the row with this flag that was probably meant: with the most lines that fit."""

    def likeness(read: FirstLines) -> tuple[int, bool, int, bool, bool]:
        lines = len(terminals(read.row))
        is_whole = read.error is None and len(body) >= lines
        # A row without fields has no wrong lines: all are ignored.
        return read.right, lines == 0, -abs(len(body) - lines), is_whole, read.row.deviation is None

    return max((_read(row, body) for row in rows), key=likeness)


class SchafkopfCodec(TextCodec):
    """The codec of Pakete. Of several rows with one flag, the first one whose fields fit is used."""

    names_fields = False
    unit = "Paket"
    charset_rule = ("Zeichen = UTF_8", "Zeichen")
    envelope: PacketEnvelope

    def __init__(self) -> None:
        super().__init__(
            GRAMMAR,
            LINES,
            PacketEnvelope(END, [f"!{_MODEL}"]),
            clause="Paket",
            codes={(row.direction, row.name): f"!{row.name}" for row in GRAMMAR.rows},
        )

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        if self.envelope.is_ended(frame):
            decoded = super().decode(frame, direction)
            if not decoded.valid and self.envelope.is_counted(frame):
                return self._misfit(frame, direction, None)
            return self._with_note(frame, decoded) if _TWICE in frame and decoded.valid else decoded
        return self._misfit(frame, direction, None)

    def _with_note(self, frame: bytes, decoded: Decoded) -> Decoded:
        """Add the note on a § that was encoded twice, if a line is one."""
        sent = self.sent(frame)
        twice = next((token for token in sent.tokens if token.end - token.start > len(token.text)), None)
        if twice is None:
            return decoded
        place = sent.span(twice.start, twice.end)
        problem = f"{EMPTY} was encoded as UTF-8 twice"
        note = self.note("encoded-twice", problem, place, f'"{EMPTY}" (c2 a7)', "Zeichen", habit=True)
        return msgspec.structs.replace(decoded, violations=(*decoded.violations, note))

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        if decoded.row is not None:
            return super().anatomy(frame, direction)
        pieces = Pieces(frame)
        pieces.take_any(len(frame), *not_understood(decoded))
        return pieces.finish(decoded)

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        return self.exact_rows(rows, count)

    def _misfit(self, frame: bytes, direction: Direction, error: UnicodeDecodeError | None) -> Decoded:
        sent = self.sent(frame)
        texts = _texts(sent)
        name, _ = self._name_in(texts, direction)
        if name is None:
            is_empty = len(texts) < 2 and not any(texts)
            return self.nothing(sent, direction) if is_empty else unreadable(self.unknown(sent, direction))
        read = _closest(GRAMMAR.rows_named(direction, name), texts[1:])
        violation = self._violation(sent, read, texts[1:])
        if violation.severity != "note":
            return Decoded(read.row, read.fields, to_json(read.fields), False, (violation,))
        notes = () if error is None else (windows_note(error, sent.start, *self.charset_rule),)
        return Decoded(read.row, read.fields, to_json(read.fields), True, (*notes, violation))

    def _violation(self, sent: Sent, read: FirstLines, body: Sequence[str]) -> Violation:
        """Return the first violation of a Paket with these lines after its flag."""
        row, count = read.row, len(terminals(read.row))
        if read.error is not None:
            return self._wrong(sent, read, body, read.error)
        if len(body) < count:
            return self._missing(sent, row, len(body))
        place = _line_place(sent, count + 1, len(sent.tokens) - 1)
        if row.name == _MODEL:
            problem = f"{_MODEL} continues after its {MODEL_LINES} lines of cards"
            return self.error("stray-lines", problem, place, "the next message", row.clause)
        is_begun = len(body) > count and body[count].endswith(_FLAGS[row.direction])
        if is_begun or not self.envelope.is_ended(sent.frame):
            # If the next message has begun, its !END ends both.
            return self._missing_end(sent, row)
        problem = f"{row.name} has {count_of_fields(count)}; what follows is ignored"
        return self.note("surplus-fields", problem, place, notation(row), row.clause)

    # Between two Pakete.

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        if sent.frame.rstrip(b"\r\n") == END.encode():
            return _ignored(sent, "stray-end", f"{END} without a message before it is ignored")
        if not sent.frame.rstrip(b"\r\n"):
            return _ignored(sent, "empty-line", "an empty line between two messages is ignored")
        return unreadable(self.unknown(sent, direction))

    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        line = sent.tokens[0].text if sent.tokens else ""
        flags = _FLAGS[direction]
        severity: Severity = "error"
        code, size = "unknown-flag", None
        first = re.match(r"!?\w*", line)
        near = nearest_word(line, flags) or nearest_word(f"!{line}", flags)
        if near is None and first is not None and first[0] in flags:
            near = first[0]
        merged = next((flag for flag in flags if line.endswith(flag)), None)
        if line.startswith("\ufeff"):
            code, problem, size = "byte-order-mark", "a byte order mark is no part of a flag", 1
        elif line.count("\0") > 1 and 3 * line.count("\0") >= len(line):
            code, problem = "utf-16", "there are NULs between the letters: is this UTF-16?"
        elif line in MODEL_FLAG.words:
            problem = f'"{line}" is the flag of a MODEL, but there is no !MODEL before it'
        elif near is not None:
            problem = with_suggestion(f'"{line[:_MAX_QUOTED]}" is not a flag', near)
        elif merged is not None:
            problem = f'in "{line[-_MAX_QUOTED:]}" {merged} begins without a line of its own'
        elif line.startswith("!"):
            # Real peers ignore unknown flags, and a later release may have more of them.
            severity = "note"
            sender = sender_of(direction)
            problem = (
                f'"{line[:_MAX_QUOTED]}" is not a flag that {sender} sends; it is ignored up to its {END}'
            )
        else:
            code = "stray-lines"
            problem = f'"{line[:_MAX_QUOTED]}" is where a message should begin, but is no flag'
        place = _line_place(sent, 0) if size is None else sent.span(0, size)
        return Violation(severity, "malformed", code, problem, *place, _any_flag(direction), "Paket")

    # In a Paket.

    def _wrong(self, sent: Sent, read: FirstLines, body: Sequence[str], mismatch: Mismatch) -> Violation:
        row, line = read.row, read.right
        # The words of all rows with this flag may have been meant.
        others = [
            terminals(other)[line]
            for other in GRAMMAR.rows_named(row.direction, row.name)
            if len(terminals(other)) > line
        ]
        if len(others) > 1 and all(isinstance(other, Word) for other in others):
            words = tuple(word for other in others for word in other.words)
            mismatch = unknown_word(body[line], words, mismatch.expected)
        problem = f"{row.name}: {mismatch.problem}"
        if row.name == _MODEL and len(body) != MODEL_LINES + 1:
            problem += f"; it has {len(body) - 1} lines of cards, not {MODEL_LINES}"
        place = _line_place(sent, line + 1)
        return self.error(mismatch.code, problem, place, mismatch.expected, row.clause)

    def _missing(self, sent: Sent, row: MessageType, count: int) -> Violation:
        lines = terminals(row)
        shown = f"{count} of its {count_of_fields(len(lines))}"
        if row.name == _MODEL:
            shown = f"{count - 1} of its {MODEL_LINES} lines of cards" if count else "its flag"
        place = _line_place(sent, count + 1)
        if place[0] == len(sent.frame) and (end := sent.frame[sent.end :].strip(b"\r\n")):
            place = sent.frame.rindex(end), len(end)
        problem = f"{row.name} ends after {shown}"
        return self.error("missing-field", problem, place, lines[count].title, row.clause)

    def _missing_end(self, sent: Sent, row: MessageType) -> Violation:
        """Return the violation of a Paket with all its fields, but without its end."""
        body, count = _texts(sent)[1:], len(terminals(row))
        slip = _misspelled_end(row, body)
        if slip is not None:
            place = _line_place(sent, slip + 1)
            problem = with_suggestion(f'{row.name}: "{body[slip][-_MAX_QUOTED:]}" does not end it', END)
        elif len(body) > count:
            place = _line_place(sent, count + 1)
            problem = f'{row.name} has no end: here is "{body[count][:_MAX_QUOTED]}"'
        else:
            place = len(sent.frame), 0
            problem = f"{row.name} has no end: here the next message begins"
        return self.error("missing-end", problem, place, f'"{END}"', row.clause)

    # Notes.

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        expected = field.type.title
        return self.note("unusual-value", f"{field.name}: {remark}", place, expected, row.clause, habit=True)

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
            return self._in_flag(frame, direction)
        texts = LINES.texts(read_text(complete)[0])[:-1]
        name, _ = self._name_in(texts, direction)
        if name is None:
            return unreadable(self.unknown(self.sent(frame), direction))
        rows, body = GRAMMAR.rows_named(direction, name), texts[1:]
        read = _closest(rows, body)
        if read.error is not None or _misspelled_end(read.row, body) is not None:
            return self._misfit(complete, direction, None)
        fitting = [row for row in rows if _read(row, body).error is None and len(terminals(row)) >= len(body)]
        titles = [line.title for row in fitting for line in terminals(row)[len(body) : len(body) + 1]]
        if not fitting or any(len(terminals(row)) == len(body) for row in fitting):
            titles.append(f'"{END}"')
        harmless = read.row.name == "BEENDEN"
        return _cut_short(frame, read.row, " or ".join(dict.fromkeys(titles)), harmless)

    def _in_flag(self, frame: bytes, direction: Direction) -> Decoded:
        """Decode the incomplete line of a flag, or of an unknown one."""
        sent = self.sent(frame)
        begun = read_text(frame)[0].removesuffix("\r")
        if not any(flag.startswith(begun) for flag in _FLAGS[direction]):
            return unreadable(self.unknown(sent, direction)) if sent.text else self.nothing(sent, direction)
        # Real servers often close the connection before the flag is complete.
        return _cut_short(frame, None, _any_flag(direction), harmless="!BEENDEN".startswith(begun))

    # Places and spelling.

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        return [_with_line_end(part, frame, row) for part in super().layout(frame, row)]

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        kind = part.type
        assert kind is not None
        texts = kind.encode_tokens(value) if isinstance(kind, PartsText) else [kind.encode(value)]
        start, length = part.value
        lines = frame[start : start + length].split(b"\n")
        if any("\n" in text or text == END for text in texts) or len(texts) != len(lines):
            raise ValueError(f"{part.path} would be read as something else")
        return b"\n".join(map(_spelled_as, [frame] * len(lines), lines, texts))

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        written = super().as_text(frame, row, field, text)
        return written.replace(b"\n", b"\r\n") if b"\r\n" in frame else written

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.decode(frame, direction).row is not None

    def notation(self, row: MessageType) -> str:
        return notation(row)

    @property
    def productions(self) -> tuple[str, ...]:
        found: dict[str, str] = {}
        for row in GRAMMAR.rows:
            for field in row.fields:
                for each in (field.type, *field.type.parts, *token_types(field.type)):
                    symbol, equals, _ = each.title.partition(" = ")
                    # A dialect may have another production for the same symbol; the first is the
                    # specification's.
                    if equals and symbol.isalpha():
                        found.setdefault(symbol, each.title)
        return tuple(found.values())

    def wire_format(self) -> Mapping[str, Any]:
        forms = {each: packet_forms(each) for each in DIRECTIONS}
        return {
            "kind": "paket",
            "framing": {
                "kind": "paket",
                "flags": {each: dict.fromkeys(_FLAGS[each], True) for each in DIRECTIONS},
                "longest": max(form.longest for form in forms.values()),
                "texts": {line.decode(): n for form in forms.values() for line, n in form.texts.items()},
                "model_flags": dict.fromkeys(MODEL_FLAG.words, True),
                "model_lines": MODEL_LINES,
                # Those of even and of odd numbers of lines.
                "cards": [dict.fromkeys(words, True) for words in (WERTE, FARBEN)],
            },
            "runtime": ("text_types", "paket"),
        }

    def wire_row(self, row: MessageType) -> Mapping[str, Any]:
        return {}


def _texts(sent: Sent) -> list[str]:
    """Return the lines of a Paket without the end, even if it should have none."""
    texts = [token.text for token in sent.tokens]
    return texts[:-1] if texts[1:] and texts[-1] == END else texts


def _line_place(sent: Sent, first: int, last: int | None = None) -> Place:
    """Return the place of the lines `first` to `last`, the flag being 0; the end if there are none."""
    if first >= len(sent.tokens):
        return len(sent.frame), 0
    final = sent.tokens[first if last is None else last]
    return sent.span(sent.tokens[first].start, final.end - len(final.text) + len(final.text.rstrip("\r")))


def _ignored(sent: Sent, code: str, problem: str) -> Decoded:
    size = len(sent.frame.rstrip(b"\r\n"))
    return unreadable(Violation("note", "malformed", code, problem, 0, size))


def _misspelled_end(row: MessageType, body: Sequence[str]) -> int | None:
    """Return the line that was probably meant to be the end of a Paket with all its fields."""
    count = len(terminals(row))
    for number in (count, len(body) - 1):
        if count <= number < len(body) and nearest_word(body[number], (END,)) is not None:
            return number
    # A line end may be missing before it.
    return len(body) - 1 if len(body) >= count and body and body[-1].endswith(END) else None


def _cut_short(frame: bytes, row: MessageType | None, expected: str, harmless: bool) -> Decoded:
    """Decode a Paket that is valid, but incomplete."""
    severity: Severity = "note" if harmless else "error"
    problem = f"the stream ends in the middle of {row.name if row is not None else 'a message'}"
    clause = row.clause if row is not None else "Paket"
    violation = Violation(severity, "malformed", "truncated", problem, len(frame), 0, expected, clause)
    return Decoded(row, {}, "{}", False, (violation,))


def _any_flag(direction: Direction) -> str:
    """Return the expectation at the beginning of a Paket."""
    return production("Paket", _FLAGS[direction]) + " …"


def _with_line_end(part: Part, frame: bytes, row: MessageType) -> Part:
    """Return a part with the line end after it, and lines of a card named by their symbols."""
    end = part.end
    end += frame.startswith(b"\r", end)
    end += frame.startswith(b"\n", end)
    parts = tuple(_with_line_end(each, frame, row) for each in part.parts)
    title = part.title
    if part.kind == "field" and not part.path and part.type is not None:
        title = symbol_of(part.type)
    return msgspec.structs.replace(
        part, end=end, whole=(part.start, end - part.start), parts=parts, title=title
    )


def _spelled_as(frame: bytes, line: bytes, text: str) -> bytes:
    """Encode a text that replaces a line of a Paket, in its sender's style.

    The charset is that of the line, or of the frame if the line is ASCII; § is spelled as in the frame.
    """
    line_end = b"\r" if line.endswith(b"\r") else b""
    if text == EMPTY:
        lines = {each.removesuffix(b"\r") for each in frame.split(b"\n")}
        shown = next((spelt for spelt in EMPTY_SPELLINGS if spelt in lines), None)
        if shown is not None:
            return shown + line_end
    try:
        (frame if line.isascii() else line).decode()
    except UnicodeDecodeError:
        with suppress(UnicodeEncodeError):
            return text.encode("cp1252") + line_end
    return text.encode() + line_end


def card_place(
    direction: Direction, fields: Mapping[str, Any], length: int, field: str, place: int
) -> tuple[int, int]:
    """Return offset and length in bytes of a card in one of the fields of a MODEL of `length` bytes.

    Computed from the decoded fields: the length shows the line ends used, and the spelling of §.
    """
    lines = CODEC.encode(_MODEL, direction, fields).decode().split("\n")[:-1]
    empty = lines.count(EMPTY)
    plain = sum(len(line.encode()) + 1 for line in lines)
    for line_end in (1, 2):
        for spelling in (len(spelt) - len(EMPTY.encode()) for spelt in EMPTY_SPELLINGS):
            if plain + (line_end - 1) * len(lines) + spelling * empty == length:
                sizes = [len(line.encode()) + line_end + spelling * (line == EMPTY) for line in lines]
                first = 2 + 2 * (_FIRST_CARD[field] + place)
                return sum(sizes[:first]), sum(sizes[first : first + 2]) - line_end
    return 0, length


CODEC = SchafkopfCodec()
