"""The codec of datagrams, `NAME;field;field` in UTF-8 (Grundlagen)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Violation, unreadable
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.text_codec import TextCodec
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.model import Direction


class MaexchenCodec(TextCodec):
    """The codec; a message with surplus fields is assumed to have no other mistake."""

    names_fields = False

    def fitting(self, rows: Sequence[MessageType], count: int) -> Sequence[MessageType]:
        return self.exact_rows(rows, count) or self.shorter_rows(rows, count)

    def closest(self, valid: Mapping[MessageType, int], count: int) -> MessageType:
        return min(valid, key=lambda row: abs(len(row.fields) - count))

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        text, expected = "an empty datagram has no message", ", ".join(self.grammar.names(direction))
        return unreadable(self.error("empty-datagram", text, (0, 0), f"one of {expected}"))

    def loose(self, row: MessageType, field: Field, remark: str, place: Place) -> Violation:
        return self.note("loose-spelling", remark, place, field.type.title, row.clause)
