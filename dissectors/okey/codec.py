"""Lines to messages and back.

Of several rows with one name the first whose arguments fit is taken. Surplus arguments are ignored, as real
programs do; what fits no row is told to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar import (
    Decoded,
    Field,
    FieldType,
    Flaw,
    MessageType,
    Mismatch,
    nearest_word,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.okey.grammar import GRAMMAR, Argument
from kiebitz.dissectors.okey.quoting import (
    BLANK_PAD,
    PERCENT_PAD,
    Sloppy,
    Token,
    Tokens,
    cut,
    inner_places,
    quote,
    shown_pad,
)
from kiebitz.dissectors.records import OPPOSITE, Direction
from kiebitz.dissectors.rewriting import changed_fields, replaced
from kiebitz.dissectors.suggestions import suggesting

_FORM = "Einige Eigenheiten unseres Protokolls"
"""The clause on how messages are written."""

_SHOWN = 40

_CONTROL = frozenset(map(chr, (*range(32), 127))) - {"\t"}


class _Line:
    """A frame's text without its line end, and where its characters stand in the frame's bytes."""

    def __init__(self, frame: bytes) -> None:
        # What is left of a line end whose line is over already stands before this one.
        self.skipped = int(len(frame) > 1 and frame[:1] == b"\n")
        self.body = frame[self.skipped :].rstrip(b"\r\n")
        self.end = frame[self.skipped + len(self.body) :]
        self.undecodable: UnicodeDecodeError | None = None
        self.charset = "utf-8"
        try:
            self.text = self.body.decode()
        except UnicodeDecodeError as error:
            self.undecodable = error
            self.charset = "cp1252"
            self.text = self.body.decode(self.charset, "replace")

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Offset and length in bytes of some of its characters."""
        if self.undecodable is not None:
            # One character for each byte.
            return self.skipped + start, end - start
        before = len(self.text[:start].encode())
        return self.skipped + before, len(self.text[start:end].encode())


def decode(frame: bytes, direction: Direction) -> Decoded:
    """What a line says; see `Dissector.decode`."""
    line = _Line(frame)
    found = cut(line.text)
    if not found.tokens:
        return unreadable(_empty(line, found))
    name = found.tokens[0]
    rows = GRAMMAR.rows_named(direction, name.text)
    if not rows:
        return unreadable(_unknown(line, name, direction))
    texts = [token.text for token in found.tokens[1:]]
    for row in rows:
        try:
            fields = _read(row, texts)
        except Mismatch:
            continue
        if fields is not None:
            return Decoded(row, fields, to_json(fields), True, _notes(line, row, found, direction))
    row = _closest(rows, texts)
    fields, flaw = _first_flaw(line, row, found)
    return Decoded(row, fields, to_json(fields), False, (flaw,))


def truncated(frame: bytes, direction: Direction) -> Decoded:
    """What is left when a stream is closed in the middle of a line: servers take it as it is."""
    if frame == b"\n":
        # The rest of a line end.
        return unreadable()
    decoded = decode(frame, direction)
    if decoded.sound:
        return decoded
    text = "the stream ends in this line"
    flaw = Flaw("error", "malformed", "truncated", text, len(frame), 0, "the end of the line", _FORM)
    return Decoded(decoded.row, decoded.fields, decoded.fields_json, False, (flaw,))


def encode(name: str, direction: Direction, fields: Mapping[str, Any], pad: str = BLANK_PAD) -> bytes:
    """The line of a message, with the padding of its dialect; see `Dissector.encode`."""
    # Of several rows with the same fields the padding's own dialect goes first.
    late = pad != BLANK_PAD
    rows = sorted(GRAMMAR.rows_named(direction, name), key=lambda row: (row.deviation is not None) != late)
    for row in rows:
        given = [field for field in row.fields if field.name in fields]
        if len(given) != len(fields) or any(
            field.name not in fields and not field.optional for field in row.fields
        ):
            continue
        try:
            texts = [_written(field.type, fields[field.name], pad) for field in given]
            if _read(row, texts) == fields:
                line = " ".join([name, *(quote(text, pad) for text in texts)])
                if not {"\r", "\n"} & {*line}:
                    return f"{line}\r\n".encode()
        except (Mismatch, LookupError, TypeError, AttributeError):
            # Values of other types than this row's.
            continue
    raise ValueError(f"{direction} {name} has no row with these fields: {to_json(fields)[:_SHOWN]}")


def respelt(frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]) -> bytes:
    """The line with other arguments in the places of those before; see `Dissector.respelt`.

    They are padded as others in the line are. A line with no padding is taken for one of the specification's
    dialect, unless only the last dialect has such a message.
    """
    line = _Line(frame)
    pad = shown_pad(line.text) or (BLANK_PAD if row.deviation is None else PERCENT_PAD)
    if before.keys() != fields.keys():
        return encode(row.name, row.direction, fields, pad)
    changed = changed_fields(before, fields)
    pieces: dict[tuple[int, int], bytes] = {}
    for field, token in zip(row.fields, cut(line.text).tokens[1:], strict=False):
        if field.name in changed:
            text = quote(_written(field.type, fields[field.name], pad), pad)
            if {"\r", "\n"} & {*text}:
                raise ValueError(f"{field.name} would end the line")
            pieces[line.place(token.start, token.end)] = text.encode(line.charset)
    return replaced(frame, pieces)


def argument_place(frame: bytes, row: MessageType, name: str, part: int | None = None) -> tuple[int, int]:
    """Where in a sound message's bytes an argument stands, or the `part`th token of a list (from 0)."""
    line = _Line(frame)
    number = next(number for number, field in enumerate(row.fields, 1) if field.name == name)
    token = cut(line.text).tokens[number]
    if part is None:
        return line.place(token.start, token.end)
    inner = cut(token.text).tokens[part]
    return _inner(line, token, inner.start, inner.end)


def _written(kind: FieldType, value: Any, pad: str) -> str:
    return kind.write(value, pad) if isinstance(kind, Argument) else kind.encode(value)


def _read(row: MessageType, texts: Sequence[str]) -> dict[str, Any] | None:
    """The fields of a row's arguments; None if some are missing. Raises Mismatch."""
    fields: dict[str, Any] = {}
    for number, field in enumerate(row.fields):
        if number < len(texts):
            fields[field.name] = field.type.decode(texts[number])
        elif not field.optional:
            return None
    return fields


def _closest(rows: Sequence[MessageType], texts: Sequence[str]) -> MessageType:
    """Of several rows with one name the one that was meant: of which the most arguments fit."""

    def fitting(row: MessageType) -> tuple[int, bool]:
        count = 0
        for field, text in zip(row.fields, texts, strict=False):
            try:
                field.type.decode(text)
            except Mismatch:
                break
            count += 1
        return count, row.deviation is None

    return max(rows, key=fitting)


def shape(row: MessageType) -> str:
    """How a message of a row is written: its name, then its arguments' names."""
    arguments = (f"[<{field.name}>]" if field.optional else f"<{field.name}>" for field in row.fields)
    return " ".join([row.name, *arguments])


# What is wrong.


def _first_flaw(line: _Line, row: MessageType, found: Tokens) -> tuple[dict[str, Any], Flaw]:
    """The fields before the first that does not fit, and what is wrong with that one."""
    fields: dict[str, Any] = {}
    for number, field in enumerate(row.fields, 1):
        if number >= len(found.tokens):
            return fields, _missing(line, row, field, found.sloppy)
        token = found.tokens[number]
        try:
            fields[field.name] = field.type.decode(token.text)
        except Mismatch as error:
            offset, length = _inner(line, token, error.start, error.end)
            text = f"{row.name}: {error}"
            return fields, Flaw(
                "error", "malformed", error.code, text, offset, length, error.expected, row.clause
            )
    raise AssertionError("a row was asked for its flaw that has none")


def _inner(line: _Line, token: Token, start: int, end: int) -> tuple[int, int]:
    """Where a part of a token's text stands in the frame; all of it includes its quotation marks."""
    if (start, end) == (0, len(token.text)):
        return line.place(token.start, token.end)
    places = inner_places(line.text, token)
    # What is missing at the end stands behind the last character; without a padding nothing else is there.
    first = places[start][0] if start < len(places) else places[-1][1]
    return line.place(first, places[end - 1][1] if end > start else first)


def _missing(line: _Line, row: MessageType, field: Field, sloppy: Sloppy | None) -> Flaw:
    text = f"{row.name} ends before its {field.name}"
    start = end = len(line.text)
    if sloppy is not None and sloppy.kind == "unended":
        text = f"{row.name}: a quotation has no end, so readers drop this argument"
        start, end = sloppy.start, sloppy.end
    elif sloppy is not None and sloppy.kind == "vanished":
        text = f'{row.name}: "" without a padding is no argument; the empty one is written " "'
        start, end = sloppy.start, sloppy.end
    return Flaw("error", "malformed", "missing-field", text, *line.place(start, end), shape(row), row.clause)


def _empty(line: _Line, found: Tokens) -> Flaw:
    text = "an empty line says nothing"
    if found.sloppy is not None and found.sloppy.kind == "unended":
        text = "a quotation has no end, so readers drop it"
    elif line.body:
        text = "there is no command in this line"
    return Flaw("error", "malformed", "empty-line", text, *line.place(0, len(line.text)), "a command", _FORM)


def _unknown(line: _Line, name: Token, direction: Direction) -> Flaw:
    """A line that begins with no known name, and what it may have been meant to be."""
    names = GRAMMAR.names(direction)
    text = f'"{name.text[:_SHOWN]}" is no message {sender_of(direction)} sends'
    start, end = name.start, name.end
    command = name.text.split("\t")[0]
    near = nearest_word(name.text, names)
    if command in names and command != name.text:
        text = f"a tab is no separator: after {command} comes a blank"
        start, end = start + len(command), start + len(command) + 1
    elif near is not None and name.text.upper() == near:
        text += f": commands are in capital letters, {near}"
    elif name.text in GRAMMAR.names(OPPOSITE[direction]):
        text += f"; {sender_of(OPPOSITE[direction])} does"
    else:
        text = suggesting(text, near)
    expected = "one of " + ", ".join(names)
    return Flaw("error", "malformed", "unknown-message", text, *line.place(start, end), expected, _FORM)


# What is unusual.


def _notes(line: _Line, row: MessageType, found: Tokens, direction: Direction) -> tuple[Flaw, ...]:
    """Notes on a message that its row allows."""
    notes: list[Flaw] = []
    if line.undecodable is not None:
        notes.append(_charset(line))
    if line.end not in (b"\r\n", b""):
        notes.append(_line_end(line))
    if direction == "c2s" and not _CONTROL.isdisjoint(line.text):
        notes.append(_control(line))
    sloppy = found.sloppy
    if sloppy is not None and not (sloppy.kind == "unended" and len(found.tokens) <= len(row.fields)):
        notes.append(_quoting(line, sloppy, row))
    for number, field in enumerate(row.fields, 1):
        if (
            number < len(found.tokens)
            and (remark := field.type.remark(found.tokens[number].text)) is not None
        ):
            token = found.tokens[number]
            place = line.place(token.start, token.end)
            notes.append(
                _note(f"loose-{field.name}", remark, place, field.type.title, row.clause, habit=True)
            )
    if (
        len(found.tokens) > len(row.fields) + 1
        and not (row.fields and row.fields[-1].optional)
        and (sloppy is None or sloppy.kind in ("loose", "unpadded"))
    ):
        first = found.tokens[len(row.fields) + 1]
        text = f"{row.name} has {len(row.fields) or 'no'} arguments; what follows is ignored"
        place = line.place(first.start, found.tokens[-1].end)
        notes.append(_note("surplus-fields", text, place, shape(row), row.clause))
    return tuple(notes)


def _note(
    code: str, text: str, place: tuple[int, int], expected: str, clause: str = _FORM, habit: bool = False
) -> Flaw:
    return Flaw("note", "malformed", code, text, *place, expected, clause, habit)


def _charset(line: _Line) -> Flaw:
    error = line.undecodable
    assert error is not None
    wrong = error.object[error.start : error.end]
    text = f"{wrong.hex(' ')} is no UTF-8; read as Windows-1252"
    return _note("charset", text, (line.skipped + error.start, len(wrong)), "UTF-8", habit=True)


def _line_end(line: _Line) -> Flaw:
    shown = line.end.decode().replace("\r", "CR").replace("\n", "LF")
    place = line.skipped + len(line.body), len(line.end)
    return _note("line-end", f"the line ends with {shown}", place, "CRLF", habit=True)


def _control(line: _Line) -> Flaw:
    at = next(number for number, char in enumerate(line.text) if char in _CONTROL)
    text = f"the control character {ord(line.text[at]):#04x}; servers pass it on to the others"
    return _note("control-character", text, line.place(at, at + 1), "text")


_SLOPPY = {
    "vanished": 'an empty argument without a padding vanishes; it is written " "',
    "unpadded": "no padding before the closing quotation mark; it is read as it stands",
    "unended": "a quotation has no end, so readers drop it",
    "loose": "blanks where none belong are passed over",
}


def _quoting(line: _Line, sloppy: Sloppy, row: MessageType) -> Flaw:
    return _note(sloppy.kind, _SLOPPY[sloppy.kind], line.place(sloppy.start, sloppy.end), shape(row))
