"""The codec of lines: arguments separated by blanks, quoted if necessary.

Extra arguments are ignored, as real programs do. Lines are read as leniently as real programs do; what is
unusual in them is noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.charset import read_text, windows_note
from kiebitz.dissectors.grammar.delimited_codec import MAX_QUOTED, Parts, Reading, TextCodec
from kiebitz.dissectors.grammar.dissection_tree import Pieces
from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    MessageType,
    Violation,
    nearest_word,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.patching import Path, Place, changed_fields, replaced
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR, Argument
from kiebitz.dissectors.protocols.okey.quoting import (
    BLANK_PAD,
    PERCENT_PAD,
    Tokens,
    cut,
    inner_places,
    quote,
    shown_pad,
)
from kiebitz.dissectors.suggestions import with_suggestion

_FORM = "Einige Eigenheiten unseres Protokolls"
"""The clause on how messages are written."""

_CONTROL = frozenset(map(chr, (*range(32), 127))) - {"\t"}

_QUOTE = "quotation mark"
_PAD = "padding and quotation mark"

_DEVIATIONS = {
    "vanished": 'an empty argument without a padding vanishes; it is written " "',
    "unpadded": "no padding before the closing quotation mark; it is read unchanged",
    "unended": "a quotation has no end, so readers drop it",
    "loose": "extra blanks are ignored",
}


class Line(Parts):
    """A frame's text without its line end, its tokens, and the byte offsets of its characters."""

    skipped: int
    """Number of bytes at the beginning that belong to the previous line end."""
    body: bytes
    text: str
    undecodable: UnicodeDecodeError | None
    found: Tokens

    @property
    def end(self) -> bytes:
        """The line end."""
        return self.frame[self.size :]

    def place(self, number: int, start: int = 0, end: int | None = None) -> Place:
        """Return offset and length of a part of an argument's text.

        The place of the whole text includes its quotation marks.
        """
        token = self.found.tokens[number]
        if end is None or (start, end) == (0, len(token.text)):
            return self.span(token.start, token.end)
        places = inner_places(self.text, token)
        # A missing end is located after the last character.
        first = places[start][0] if start < len(places) else places[-1][1]
        return self.span(first, places[end - 1][1] if end > start else first)

    def span(self, start: int, end: int) -> Place:
        """Return offset and length in bytes of a range of the line's characters."""
        if self.undecodable is not None:
            # Each byte was decoded as one character.
            return self.skipped + start, end - start
        before = len(self.text[:start].encode())
        return self.skipped + before, len(self.text[start:end].encode())


def read_line(frame: bytes) -> Line:
    """Split a line into tokens; a line without any has an empty name."""
    # The rest of the previous line's end may precede this line.
    skipped = int(len(frame) > 1 and frame[:1] == b"\n")
    body = frame[skipped:].rstrip(b"\r\n")
    text, undecodable = read_text(body)
    found = cut(text)
    texts = [token.text for token in found.tokens] or [""]
    return Line(frame, texts, skipped + len(body), 1, skipped, body, text, undecodable, found)


class OkeyCodec(TextCodec[Line]):
    """The codec of Okey's lines, in both paddings."""

    empty_fields = True
    ignores_surplus = True

    def __init__(self) -> None:
        super().__init__(GRAMMAR, _FORM)
        names = b"|".join(re.escape(row.name.encode()) for row in GRAMMAR.rows)
        # A quoted token can have any parts.
        self._beginning = re.compile(rb'\n? *(?:"|%b)' % names)

    def split(self, frame: bytes) -> Line:
        return read_line(frame)

    def names_message(self, frame: bytes, direction: Direction) -> bool:
        """Return True if a line begins with the name of a message; no other line has a row.

        Decoding a line of another protocol costs far more: it searches for the nearest name.
        """
        return bool(
            self._beginning.match(frame) and self.grammar.rows_named(direction, self.split(frame).texts[0])
        )

    def decode_parts(self, parts: Line, direction: Direction) -> Decoded:
        if not parts.found.tokens:
            return unreadable(self._empty(parts))
        return super().decode_parts(parts, direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        # Servers process an incomplete line as it is.
        if frame == b"\n":
            # The rest of a line end.
            return unreadable()
        decoded = self.decode(frame, direction)
        if decoded.valid:
            return decoded
        violation = self.error(
            "truncated", "the stream ends in this line", (len(frame), 0), "the end of the line"
        )
        return Decoded(decoded.row, decoded.fields, decoded.fields_json, False, (violation,))

    def encode(
        self, name: str, direction: Direction, fields: Mapping[str, Any], pad: str = BLANK_PAD
    ) -> bytes:
        """Encode a message with the padding of a dialect; see `Codec.encode`."""
        # Rows of the padding's own dialect come first.
        late = pad != BLANK_PAD
        rows = self.grammar.rows_named(direction, name)
        for row in sorted(rows, key=lambda row: (row.deviation is not None) != late):
            given = [field for field in row.fields if field.name in fields]
            if len(given) != len(fields) or any(
                field.name not in fields and not field.optional for field in row.fields
            ):
                continue
            try:
                texts = [_encode_value(field.type, fields[field.name], pad) for field in given]
                if _read(row, texts) == fields:
                    line = " ".join([name, *(quote(text, pad) for text in texts)])
                    if not {"\r", "\n"} & {*line}:
                        return f"{line}\r\n".encode()
            except (Mismatch, LookupError, TypeError, AttributeError):
                # Values of other types than this row's.
                continue
        raise ValueError(f"{direction} {name} has no row with these fields: {to_json(fields)[:MAX_QUOTED]}")

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        """Replace arguments of a line; see `Codec.patch`.

        They are padded like others in the line. A line without padding is assumed to be of the
        specification's dialect, unless only the last dialect has such a message.
        """
        line = read_line(frame)
        pad = shown_pad(line.text) or (BLANK_PAD if row.deviation is None else PERCENT_PAD)
        if before.keys() != fields.keys():
            return self.encode(row.name, row.direction, fields, pad)
        changed = changed_fields(before, fields)
        charset = "utf-8" if line.undecodable is None else "cp1252"
        pieces: dict[Place, bytes] = {}
        for field, token in zip(row.fields, line.found.tokens[1:], strict=False):
            if field.name in changed:
                text = quote(_encode_value(field.type, fields[field.name], pad), pad)
                if {"\r", "\n"} & {*text}:
                    raise ValueError(f"{field.name} would end the line")
                pieces[line.span(token.start, token.end)] = text.encode(charset)
        return replaced(frame, pieces)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        pad = shown_pad(read_line(frame).text) or (BLANK_PAD if row.deviation is None else PERCENT_PAD)
        return super().as_text(frame, row, field, quote(text, pad))

    def take_field(self, pieces: Pieces, field: Field, sent: bytes) -> None:
        # The tokens depend on ASCII characters only, so each byte may be decoded as one character.
        text = sent.decode("latin-1")
        path, kind = (field.name,), field.type
        tokens = kind.tokens if isinstance(kind, Argument) else ()
        if not (tokens or text.startswith('"')):
            pieces.take(pieces.at + len(sent), "field", kind.title, path)
            return
        with pieces.inside("field", kind.title, path):
            _take_inside(pieces, text, kind.title, path, tokens)

    def shape(self, row: MessageType) -> str:
        arguments = (f"[<{field.name}>]" if field.optional else f"<{field.name}>" for field in row.fields)
        return " ".join([row.name, *arguments])

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.decode(frame, direction).row is not None

    def missing(self, parts: Line, row: MessageType, number: int) -> Violation:
        text = f"{row.name} ends before its {row.fields[number - 1].name}"
        start = end = len(parts.text)
        deviation = parts.found.deviation
        if deviation is not None and deviation.kind == "unended":
            text = f"{row.name}: a quotation has no end, so readers drop this argument"
            start, end = deviation.start, deviation.end
        elif deviation is not None and deviation.kind == "vanished":
            text = f'{row.name}: "" without a padding is not an argument; the empty one is written " "'
            start, end = deviation.start, deviation.end
        return self.error("missing-field", text, parts.span(start, end), self.shape(row), row.clause)

    def _empty(self, line: Line) -> Violation:
        text = "an empty line has no message"
        if line.found.deviation is not None and line.found.deviation.kind == "unended":
            text = "a quotation has no end, so readers drop it"
        elif line.body:
            text = "there is no command in this line"
        return self.error("empty-line", text, line.span(0, len(line.text)), "a command")

    def unknown(self, parts: Line, direction: Direction) -> Violation:
        name = parts.texts[0]
        token = parts.found.tokens[0]
        start, end = token.start, token.end
        names = self.grammar.names(direction)
        text = f'"{name[:MAX_QUOTED]}" is not a message {sender_of(direction)} sends'
        command = name.split("\t")[0]
        near = nearest_word(name, names)
        if command in names and command != name:
            text = f"a tab is not a separator: after {command} comes a blank"
            start, end = start + len(command), start + len(command) + 1
        elif near is not None and name.upper() == near:
            text += f": commands are in capital letters, {near}"
        elif name in self.grammar.names(OPPOSITE[direction]):
            text += f"; {sender_of(OPPOSITE[direction])} does"
        elif near is not None:
            text = with_suggestion(text, near)
        return self.error("unknown-message", text, parts.span(start, end), self.names(direction))

    def remarks(self, parts: Line, reading: Reading) -> tuple[Violation, ...]:
        row = reading.row
        found: list[Violation] = []
        if parts.undecodable is not None:
            found.append(windows_note(parts.undecodable, parts.skipped, "UTF-8", _FORM))
        if parts.end not in (b"\r\n", b""):
            found.append(self._line_end(parts))
        if row.direction == "c2s" and not _CONTROL.isdisjoint(parts.text):
            found.append(self._control(parts))
        deviation = parts.found.deviation
        if deviation is not None and not (
            deviation.kind == "unended" and len(parts.texts) <= len(row.fields)
        ):
            place = parts.span(deviation.start, deviation.end)
            found.append(self.note(deviation.kind, _DEVIATIONS[deviation.kind], place, self.shape(row)))
        return (*found, *super().remarks(parts, reading))

    def surplus(self, parts: Line, row: MessageType) -> Sequence[Violation]:
        deviation = parts.found.deviation
        if row.fields and row.fields[-1].optional:
            return ()
        if deviation is not None and deviation.kind not in ("loose", "unpadded"):
            return ()
        first = parts.found.tokens[len(row.fields) + 1]
        text = f"{row.name} has {len(row.fields) or 'no'} arguments; what follows is ignored"
        place = parts.span(first.start, parts.found.tokens[-1].end)
        return (self.note("surplus-fields", text, place, self.shape(row), row.clause),)

    def _line_end(self, line: Line) -> Violation:
        shown = line.end.decode().replace("\r", "CR").replace("\n", "LF")
        return self.note(
            "line-end", f"the line ends with {shown}", (line.size, len(line.end)), "CRLF", habit=True
        )

    def _control(self, line: Line) -> Violation:
        at = next(number for number, char in enumerate(line.text) if char in _CONTROL)
        text = f"the control character {ord(line.text[at]):#04x}; servers forward it to the others"
        return self.note("control-character", text, line.span(at, at + 1), "text")

    def wire_format(self) -> Mapping[str, Any]:
        return {
            "kind": "positional",
            "framing": {"kind": "lines", "cr": True},
            "tokenizer": "okey",
            "delimiter": " ",
            "line_end": True,
            "encoding": "windows",
            "optional": "exact",
            "ignores_surplus": True,
            "runtime": ("text_types", "framing_text", "okey", "positional"),
        }


def _take_inside(
    pieces: Pieces, text: str, title: str, path: Path, parts: Sequence[tuple[str, str | None]]
) -> None:
    """Take an argument with its quotation marks, and the tokens of a list one by one."""
    start, end = pieces.at, pieces.at + len(text)
    (token,) = cut(text).tokens
    # The offset of each character of the token, and the end of the last one.
    places = inner_places(text, token)[: len(token.text)]
    edges = [start + first for first, _ in places]
    edges.append(start + places[-1][1] if places else start + text.startswith('"'))
    if not parts:
        pieces.take_any(edges[0], "markup", _QUOTE)
        pieces.take(edges[-1], "field", title, path)
    tokens = cut(token.text).tokens if parts else []
    for number, inner in enumerate(tokens):
        pieces.take_any(edges[inner.start], "markup", _QUOTE)
        part, key = parts[number % len(parts)]
        steps: Path = (number // len(parts),) if key is None else (number // len(parts), key)
        # The following blank belongs to it.
        upto = tokens[number + 1].start if number + 1 < len(tokens) else inner.end
        pieces.take(edges[upto], "field", part, (*path, *steps))
        if pieces.is_full:
            break
    pieces.take_any(end, "markup", _PAD)


def argument_place(frame: bytes, row: MessageType, name: str, part: int | None = None) -> Place:
    """Return offset and length of an argument in a valid message, or of a list's token `part` (from 0)."""
    line = read_line(frame)
    number = next(number for number, field in enumerate(row.fields, 1) if field.name == name)
    if part is None:
        return line.place(number)
    inner = cut(line.texts[number]).tokens[part]
    return line.place(number, inner.start, inner.end)


def _encode_value(kind: FieldType, value: Any, pad: str) -> str:
    return kind.write(value, pad) if isinstance(kind, Argument) else kind.encode(value)


def _read(row: MessageType, texts: Sequence[str]) -> dict[str, Any] | None:
    """Return the fields of a row's arguments; None if some are missing. Raises Mismatch."""
    fields: dict[str, Any] = {}
    for number, field in enumerate(row.fields):
        if number < len(texts):
            fields[field.name] = field.type.decode(texts[number])
        elif not field.optional:
            return None
    return fields
