"""The codec of datagrams, `NAME;field;field` in UTF-8 (Grundlagen), with the typical mistakes of peers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from kiebitz.dissectors.grammar.delimited_codec import DelimitedCodec, Parts, exact_rows, shorter_rows
from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Violation
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.suggestions import with_suggestion


class MaexchenCodec(DelimitedCodec):
    """The codec; like real servers it ignores extra fields, and decodes each invalid byte as U+FFFD."""

    empty_fields = True
    ignores_surplus = True

    def __init__(self) -> None:
        super().__init__(GRAMMAR, "Grundlagen", ";")

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        # A message with extra fields is assumed to have no other mistake.
        return exact_rows(rows, count) or shorter_rows(rows, count)

    def closest(self, rows: Sequence[MessageType], values: Sequence[str]) -> MessageType:
        return min(rows, key=lambda row: abs(len(row.fields) - len(values)))

    def undecodable(self, frame: bytes, direction: Direction, error: UnicodeDecodeError) -> Decoded:
        # A name can still be registered.
        texts = [part.decode("utf-8", "replace") for part in frame.split(b";")]
        decoded = self.decode_parts(Parts(frame, texts, len(frame), 1), direction)
        return Decoded(decoded.row, decoded.fields, decoded.fields_json, False, (self.not_utf_8(error),))

    def wrong(self, parts: Parts, row: MessageType, number: int, mismatch: Mismatch) -> Violation:
        if _fits_shuffled(row, parts.texts[1:]):
            mismatch = Mismatch(
                mismatch.start,
                mismatch.end,
                f"{mismatch}; are the fields in the wrong order?",
                mismatch.expected,
                mismatch.code,
            )
        return super().wrong(parts, row, number, mismatch)

    def unknown(self, parts: Parts, direction: Direction) -> Violation:
        name, frame = parts.texts[0], parts.frame
        length = len(name.encode())
        near = self.grammar.nearest(name.removeprefix("\ufeff"), direction)
        if not frame:
            code, text = "empty-datagram", "an empty datagram has no message"
        elif name.startswith("\ufeff"):
            code, text, length = "byte-order-mark", "there is a byte order mark before the message", 3
        elif b"\0" in frame[:2] and len(frame) > 1:
            code, text, near = "utf-16", "this looks like UTF-16", None
            length = len(frame)
        elif near is not None and name != name.lstrip() and name.strip() == near:
            code, text = "leading-blank", "there is a blank before the message"
            length = len(name) - len(name.lstrip())
        else:
            return super().unknown(parts, direction)
        if near is not None:
            text = with_suggestion(text, near)
        return self.error(code, text, (0, length), self.names(direction))

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        return self.note("loose-spelling", remark, place, field.type.title, row.clause)


def _fits_shuffled(row: MessageType, values: Sequence[str]) -> bool:
    if len(values) != len(row.fields):
        return False
    for order in permutations(values):
        try:
            for field, value in zip(row.fields, order, strict=True):
                field.type.decode(value)
        except Mismatch:
            continue
        return True
    return False
