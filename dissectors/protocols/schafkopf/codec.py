"""The codec of Pakete: packets of lines, with Schafkopf's own diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from kiebitz.dissectors.grammar.field_type import Fields, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import token_types
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    MessageType,
    Place,
    Violation,
    nearest_word,
    sender_of,
)
from kiebitz.dissectors.grammar.layout_codec import Part
from kiebitz.dissectors.grammar.packet_codec import FirstLines, PacketCodec, line_place
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.model import Direction, Severity
from kiebitz.dissectors.protocol_file.packaged import packaged_codec
from kiebitz.dissectors.protocols.schafkopf.cards import HAND, SEATS
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
    production,
    symbol_of,
)
from kiebitz.dissectors.suggestions import with_suggestion

_MAX_QUOTED = 40

_MODEL = "MODEL"

_TWICE = TWICE_ENCODED.encode()

_FIRST_CARD = {"spielerhand": 0, "tisch": HAND, "letzter_stich": HAND + SEATS}
"""The first card of each field of a MODEL."""


class SchafkopfCodec(PacketCodec):
    """The codec of Pakete."""

    names_fields = False
    unit = "Paket"
    noun = "field"
    charset_rule = ("Zeichen = UTF_8", "Zeichen")
    may_be_cut = ("BEENDEN",)
    lines = LINES

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        decoded = super().decode(frame, direction)
        return self._with_note(frame, decoded) if _TWICE in frame and decoded.valid else decoded

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

    def encoded_word(self, word: str) -> Iterable[bytes]:
        return EMPTY_SPELLINGS if word == EMPTY else super().encoded_word(word)

    # Diagnostics.

    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        line = sent.tokens[0].text if sent.tokens else ""
        flags = self.first_lines(direction)
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
        place = line_place(sent, 0) if size is None else sent.span(0, size)
        return Violation(severity, "malformed", code, problem, *place, self.beginnings(direction), "Paket")

    def beginnings(self, direction: Direction) -> str:
        return production("Paket", self.first_lines(direction)) + " …"

    def wrong(self, sent: Sent, read: FirstLines, body: Sequence[str], mismatch: Mismatch) -> Violation:
        violation = super().wrong(sent, read, body, mismatch)
        if read.row.name != _MODEL or len(body) == MODEL_LINES + 1:
            return violation
        problem = f"{violation.text}; it has {len(body) - 1} lines of cards, not {MODEL_LINES}"
        return msgspec.structs.replace(violation, text=problem)

    def count_of_lines(self, row: MessageType, count: int) -> str:
        return f"{count - 1} lines of cards"

    def part_of_lines(self, row: MessageType, count: int, total: int) -> str:
        if row.name != _MODEL:
            return super().part_of_lines(row, count, total)
        return f"{count - 1} of its {total - 1} lines of cards" if count else "its flag"

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        expected = field.type.title
        return self.note("unusual-value", f"{field.name}: {remark}", place, expected, row.clause, habit=True)

    # Places and spelling.

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        return list(map(_named, super().layout(frame, row)))

    def spelled_as(self, frame: bytes, line: bytes, text: str) -> bytes:
        if text == EMPTY:
            lines = {each.removesuffix(b"\r") for each in frame.split(b"\n")}
            shown = next((spelt for spelt in EMPTY_SPELLINGS if spelt in lines), None)
            if shown is not None:
                return shown + (b"\r" if line.endswith(b"\r") else b"")
        return super().spelled_as(frame, line, text)

    def notation(self, row: MessageType) -> str:
        return notation(row)

    @property
    def productions(self) -> tuple[str, ...]:
        found: dict[str, str] = {}
        for row in self.grammar.rows:
            for field in row.fields:
                for each in (field.type, *field.type.parts, *token_types(field.type)):
                    symbol, equals, _ = each.title.partition(" = ")
                    # A dialect may have another production for the same symbol; the first is the
                    # specification's.
                    if equals and symbol.isalpha():
                        found.setdefault(symbol, each.title)
        return tuple(found.values())

    def wire_format(self) -> WireType:
        return {**super().wire_format(), "ignored": "!", "spelled": {TWICE_ENCODED: EMPTY}}


def _named(part: Part) -> Part:
    """Return a part with lines of a card named by their symbols."""
    parts = tuple(map(_named, part.parts))
    if part.kind == "field" and not part.path and part.type is not None:
        return msgspec.structs.replace(part, parts=parts, title=symbol_of(part.type))
    return msgspec.structs.replace(part, parts=parts)


def card_place(direction: Direction, fields: Fields, length: int, field: str, place: int) -> tuple[int, int]:
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


CODEC: SchafkopfCodec = packaged_codec(__package__, GRAMMAR)
