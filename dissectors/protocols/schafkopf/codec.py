"""The codec of Pakete.

Of several rows with one flag, the first one whose fields fit is used. `violations.py` describes errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Violation, to_json
from kiebitz.dissectors.grammar.patching import Place, changed_fields
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.schafkopf.anatomy import anatomy
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, HAND, SEATS, WERTE
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    EMPTY,
    EMPTY_SPELLINGS,
    END,
    GRAMMAR,
    MODEL_FLAG,
    MODEL_LINES,
    kinds,
    line_count,
    notation,
    terminals,
    text_lines,
)
from kiebitz.dissectors.protocols.schafkopf.paket import (
    RowLines,
    closest_row,
    first_wrong,
    is_line,
    lines_of,
    place_of,
    read_lines,
    rows_of_length,
    spelled_as_in,
)
from kiebitz.dissectors.protocols.schafkopf.violations import (
    any_flag,
    cut_short,
    invalid_paket,
    misspelled_end,
    surplus,
    unknown_lines,
)

_FIRST_CARD = {"spielerhand": 0, "tisch": HAND, "letzter_stich": HAND + SEATS}
"""The first card of each field of a MODEL."""


def _decode_row(frame: bytes, read: RowLines, body: Sequence[str], notes: tuple[Violation, ...]) -> Decoded:
    """Return the message of a row. Raises Mismatch if the fields do not fit."""
    fields = {
        name: kind.decode(body[start] if end - start == 1 else "\n".join(body[start:end]))
        for name, kind, start, end in read.fields
    }
    if read.remarkable:
        notes = (*_remarks(frame, read, body), *notes)
    return Decoded(read.row, fields, to_json(fields), True, notes)


def _remarks(frame: bytes, read: RowLines, body: Sequence[str]) -> list[Violation]:
    """Return notes on values that are valid, but unusual."""
    notes = []
    for name, kind, start, end in read.remarkable:
        remark = kind.remark("\n".join(body[start:end]))
        if remark is not None:
            offset, length = place_of(frame, start + 1, end)
            notes.append(
                Violation(
                    "note",
                    "malformed",
                    "unusual-value",
                    f"{name}: {remark}",
                    offset,
                    length,
                    kind.title,
                    read.row.clause,
                    habit=True,
                )
            )
    return notes


def _without_end(frame: bytes, lines: list[str], direction: Direction) -> Decoded:
    """Decode a Paket that is followed by another one, or lines that resemble a Paket."""
    rows = GRAMMAR.rows_named(direction, lines[0][1:]) if lines[0][:1] == "!" else ()
    if not rows:
        return unknown_lines(frame, lines, direction)
    body = lines[1:]
    return invalid_paket(frame, closest_row(rows, body), body, ended=False)


def _in_flag(frame: bytes, lines: list[str], direction: Direction) -> Decoded:
    """Decode the incomplete line of a flag, or of an unknown one."""
    begun = lines[0]
    if not any(f"!{name}".startswith(begun) for name in GRAMMAR.names(direction)):
        return unknown_lines(frame, lines, direction)
    # Real servers often close the connection before the flag is complete.
    return cut_short(frame, None, any_flag(direction), harmless="!BEENDEN".startswith(begun))


def _what_follows(rows: Sequence[MessageType], body: Sequence[str]) -> str:
    """Return the expected next line, by the rows that fit so far."""
    fitting = [row for row in rows if line_count(row) >= len(body) and first_wrong(row, body) is None]
    titles = [line.title for row in fitting for line in terminals(row)[len(body) : len(body) + 1]]
    if not fitting or any(line_count(row) == len(body) for row in fitting):
        titles.append(f'"{END}"')
    return " or ".join(dict.fromkeys(titles))


def _without_line_end(frame: bytes, whole: Decoded) -> Decoded:
    problem = "the stream ends without a line end"
    violation = Violation("note", "malformed", "no-line-end", problem, len(frame), 0, "a line feed")
    return Decoded(whole.row, whole.fields, whole.fields_json, True, (*whole.violations, violation))


def card_place(
    direction: Direction, fields: Mapping[str, Any], length: int, field: str, place: int
) -> tuple[int, int]:
    """Return offset and length in bytes of a card in one of the fields of a MODEL of `length` bytes.

    Computed from the decoded fields: the length shows the line ends used, and the spelling of §.
    """
    lines = SchafkopfCodec().encode("MODEL", direction, fields).decode().split("\n")[:-1]
    empty = lines.count(EMPTY)
    plain = sum(len(line.encode()) + 1 for line in lines)
    for line_end in (1, 2):
        for spelling in (len(spelt) - len(EMPTY.encode()) for spelt in EMPTY_SPELLINGS):
            if plain + (line_end - 1) * len(lines) + spelling * empty == length:
                sizes = [len(line.encode()) + line_end + spelling * (line == EMPTY) for line in lines]
                first = 2 + 2 * (_FIRST_CARD[field] + place)
                return sum(sizes[:first]), sum(sizes[first : first + 2]) - line_end
    return 0, length


class SchafkopfCodec(Codec):
    """The codec of Pakete: a flag, lines, and the end."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        lines, habits = read_lines(frame)
        name = lines[0][1:] if lines[0][:1] == "!" else ""
        body = lines[1:]
        if name != "MODEL":
            if not body or body[-1] != END:
                return _without_end(frame, lines, direction)
            del body[-1]
        for fitting in rows_of_length(direction, name, len(body)):
            try:
                return _decode_row(frame, fitting, body, habits)
            except Mismatch:
                continue
        rows = GRAMMAR.rows_named(direction, name)
        if not rows:
            return unknown_lines(frame, lines, direction)
        if name == "MODEL" and body and body[-1] == END:
            del body[-1]
        row = closest_row(rows, body)
        if name != "MODEL" and len(body) > line_count(row) and first_wrong(row, body) is None:
            more = surplus(frame, row, body)
            if more.severity == "note":
                return _decode_row(frame, lines_of(row), body, (*habits, more))
        return invalid_paket(frame, row, body, ended=True)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        return anatomy(frame, self.decode(frame, direction))

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        if not frame.endswith(b"\n"):
            # A peer that reads line by line accepts the last line without its end, too.
            whole = self.decode(frame, direction)
            if whole.valid:
                return _without_line_end(frame, whole)
        lines, _ = read_lines(frame)
        complete = lines if frame.endswith(b"\n") else lines[:-1]
        if not complete:
            return _in_flag(frame, lines, direction)
        rows = GRAMMAR.rows_named(direction, complete[0][1:]) if complete[0][:1] == "!" else ()
        if not rows:
            return unknown_lines(frame, lines, direction)
        body = complete[1:]
        row = closest_row(rows, body)
        if first_wrong(row, body) is not None or misspelled_end(row, body) is not None:
            return invalid_paket(frame, row, body, ended=False)
        return cut_short(frame, row, _what_follows(rows, body), harmless=row.name == "BEENDEN")

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        row = GRAMMAR.row_with(name, direction, fields)
        text = "".join(f"{field.type.encode(fields[field.name])}\n" for field in row.fields)
        lines = text.split("\n")[:-1]
        if len(lines) != line_count(row) or not all(map(is_line, lines)):
            raise ValueError(f"{name}: a field would be read as something else: {text[:80]!r}")
        end = "" if name == "MODEL" else f"{END}\n"
        return f"!{name}\n{text}{end}".encode()

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        lines = frame.split(b"\n")
        changed = changed_fields(before, fields)
        for name, kind, start, end in lines_of(row).fields:
            if name not in changed:
                continue
            old, new = (kind.encode(values[name]).split("\n") for values in (before, fields))
            if len(new) != end - start or not all(map(is_line, new)):
                raise ValueError(f"{name} would be read as something else")
            for at, (text, was) in enumerate(zip(new, old, strict=True), start + 1):
                if text != was:
                    line_end = b"\r" if lines[at].endswith(b"\r") else b""
                    lines[at] = spelled_as_in(frame, lines[at], text) + line_end
        return b"\n".join(lines)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        # The line feed is part of the line, but not of its text.
        place = super().text_place(frame, row, name)
        if place is None:
            return None
        start, length = place
        return start, len(frame[start : start + length].removesuffix(b"\n").removesuffix(b"\r"))

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        written = super().as_text(frame, row, field, text)
        return written.replace(b"\n", b"\r\n") if b"\r\n" in frame else written

    def notation(self, row: MessageType) -> str:
        return notation(row)

    @property
    def productions(self) -> tuple[str, ...]:
        found: dict[str, str] = {}
        for row in GRAMMAR.rows:
            for kind in kinds(row):
                for each in (kind, kind.part, *kind.terminals):
                    symbol, equals, _ = each.title.partition(" = ")
                    # A dialect may have another production for the same symbol; the first is the
                    # specification's.
                    if equals and symbol.isalpha():
                        found.setdefault(symbol, each.title)
        return tuple(found.values())

    def wire_format(self) -> Mapping[str, Any]:
        flags = {each: {f"!{name}": True for name in GRAMMAR.names(each)} for each in DIRECTIONS}
        return {
            "kind": "paket",
            "framing": {
                "kind": "paket",
                "flags": flags,
                "texts": {f"!{row.name}": text_lines(row) for row in GRAMMAR.rows},
                "model_flags": dict.fromkeys(MODEL_FLAG.words, True),
                "model_lines": MODEL_LINES,
                # Those of even and of odd numbers of lines.
                "cards": [dict.fromkeys(words, True) for words in (WERTE, FARBEN)],
            },
            "runtime": ("text_types", "paket"),
        }
