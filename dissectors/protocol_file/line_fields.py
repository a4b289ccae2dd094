"""Text messages whose last fields are on lines of their own, such as `update 2` and two names after it.

The first line has the name and the other fields, with blanks or a delimiter between them. Each further line
is one token of the message. Their number depends on the row, on a number in the message, or on a last line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.codec import CarriedCodec, Codec
from kiebitz.dissectors.grammar.field_type import Fields, FieldType, WireType
from kiebitz.dissectors.grammar.fields import ListText, PartsText, spans_in, written
from kiebitz.dissectors.grammar.framing import Frame, LineFramer
from kiebitz.dissectors.grammar.grammar import NAMELESS, Decoded, Field, Grammar, MessageType, Violation
from kiebitz.dissectors.grammar.text_codec import TextCodec
from kiebitz.dissectors.grammar.text_message import spans_of
from kiebitz.dissectors.grammar.tokens import Splitter, Texts, Token, Tokenizer
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.header import Header, TextHead
from kiebitz.dissectors.protocol_file.header_codec import HeaderCodec
from kiebitz.dissectors.protocol_file.specification import Specification

LINE = "\n"
_LINES = Splitter(LINE)


class HeadAndLines(Tokenizer):
    """The tokens of the first line, and each further line."""

    def __init__(self, head: Splitter) -> None:
        self._head = head
        self.separator, self.quote, self.is_blank = head.separator, head.quote, head.is_blank

    def texts(self, text: str) -> list[str]:
        return self.read(text).texts

    def read(self, text: str) -> Texts:
        first, *lines = _LINES.texts(text)
        found = self._head.read(first)
        return Texts([*found.texts, *lines], found.deviation)

    def tokens(self, text: str) -> list[Token]:
        first, *lines = _LINES.tokens(text)
        return [*self._head.tokens(first.text), *lines]

    def count_in_head(self, text: str) -> int:
        """Return the number of tokens in the first line."""
        return len(self._head.texts(_LINES.texts(text)[0]))

    def quoted(self, text: str, pad: str = "") -> str:
        return self._head.quoted(text, pad)

    def places(self, text: str, token: Token) -> Sequence[tuple[int, int]]:
        return self._head.places(text, token)

    def wire(self) -> WireType:
        return {**self._head.wire(), "has_lines": True}


class LineFieldsCodec(TextCodec):
    """The codec of such messages; its tokenizer is `HeadAndLines`."""

    tokenizer: HeadAndLines

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        decoded = super().decode(frame, direction)
        if decoded.row is None or not decoded.valid:
            return decoded
        wrong = self._misplaced(frame, decoded.row)
        if wrong is None:
            return decoded
        return Decoded(decoded.row, decoded.fields, decoded.fields_json, False, (wrong,))

    def _misplaced(self, frame: bytes, row: MessageType) -> Violation | None:
        """Return the error of a message with a field that is not on its line, or None."""
        sent = self.sent(frame)
        if LINE not in sent.text and not any(field.type.is_on_lines for field in row.fields):
            return None
        in_head = self.tokenizer.count_in_head(sent.text)
        _, first = self.name_in(sent.texts, row.direction)
        spans, used = spans_of(row, len(sent.tokens) - first, sent.texts[first:])
        wanted = first + next((start for field, start, _ in spans if field.type.is_on_lines), used)
        if wanted == in_head:
            return None
        token = sent.tokens[min(wanted, in_head)]
        line = "a line of its own" if wanted < in_head else "the first line"
        text = f"{row.name}: {token.text[:40]} must be on {line}"
        return self.error("bad-line", text, sent.span(token.start, token.end), self.notation(row), row.clause)

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        if any(field.type.is_on_lines for field in row.fields):
            return self.encode(row.name, row.direction, fields)
        return super().patch(frame, row, before, fields)

    def _message(self, row: MessageType, fields: Fields, pad: str) -> bytes:
        own = [field for field in row.fields if field.type.is_on_lines and field.name in fields]
        head = {key: value for key, value in fields.items() if all(key != field.name for field in own)}
        lines = [line for field in own for line in _lines_of(field.type, fields[field.name])]
        if any(LINE in line or line.endswith("\r") for line in lines):
            raise ValueError("the message would contain a line end")
        first = super()._message(row, head, pad)
        if b"\n" in first:
            raise ValueError("the message would contain a line end")
        return LINE.encode().join([first, *(line.encode(self.encoding) for line in lines)])

    def notation(self, row: MessageType) -> str:
        first = msgspec.structs.replace(
            row, fields=tuple(field for field in row.fields if not field.type.is_on_lines)
        )
        own = [f", a line: {field.name}" for field in row.fields if field.type.is_on_lines]
        return super().notation(first) + "".join(own)


def _lines_of(kind: FieldType, value: Any) -> list[str]:
    if isinstance(kind, PartsText) and kind.is_spread:
        return kind.encode_tokens(value)
    return [written(kind, value, "")]


class _Wanted(msgspec.Struct, frozen=True):
    """The lines that a message still needs: a number of one type, and perhaps more up to the line `until`."""

    count: int = 0
    until: str = ""
    type: FieldType | None = None


_NOTHING = _Wanted()


class LineExtents:
    """The lines of the messages of one direction; `before` is the beginning before their names."""

    def __init__(
        self, codec: LineFieldsCodec, direction: Direction, before: Header | TextHead | None
    ) -> None:
        self._codec, self._direction, self._before = codec, direction, before
        self._encoding = codec.encoding

    def begins(self, line: bytes) -> bool:
        """Return True if a line begins with the name of a message."""
        return self._rows_of(line.decode(self._encoding, "replace"))[0] != ()

    def wanted(self, lines: Sequence[bytes]) -> _Wanted:
        """Return the lines that follow those of the beginning of a message."""
        first, *more = (line.decode(self._encoding, "replace") for line in lines)
        rows, texts = self._rows_of(first)
        for row in rows:
            own = [field for field in row.fields if field.type.is_on_lines]
            head = [(field.name, field.type) for field in row.fields if not field.type.is_on_lines]
            spans = [*spans_in(head, texts)]
            if own and max((end for _, _, end in spans), default=0) == len(texts):
                return _wanted_of(row.fields, [*texts, *more])
        return _NOTHING

    def _rows_of(self, line: str) -> tuple[Sequence[MessageType], Sequence[str]]:
        """Return the rows that a message with this first line may have, and the tokens after the name."""
        if self._before is not None:
            data = line.encode()
            found = self._before.extent(data, 0, len(data))
            if found is None or not found.size:
                return (), ()
            line = data[found.start :].decode()
        texts = self._codec.tokenizer.texts(line)
        name, first = self._codec.name_in(texts, self._direction)
        return () if name is None else self._codec.grammar.rows_named(self._direction, name), texts[first:]


def _wanted_of(fields: Sequence[Field], texts: Sequence[str]) -> _Wanted:
    spans = spans_in(((field.name, field.type) for field in fields), texts)
    for (_, _, end), field in zip(spans, fields, strict=True):
        if end > len(texts) and isinstance(field.type, ListText):
            return _Wanted(end - len(texts), field.type.until, field.type.item)
        if end > len(texts):
            return _Wanted(end - len(texts), type=field.type)
    return _NOTHING


class LineFieldsFramer(LineFramer):
    """Messages of one or several lines.

    If a further line does not fit, and begins like a message, the message before it ends there. After a gap,
    a message begins at the first whole line that has the name of one.
    """

    def __init__(self, direction: Direction, extents: Mapping[Direction, LineExtents]) -> None:
        super().__init__(direction)
        self._extents = extents.get(direction)
        self._lines: list[bytes] = []
        """The whole lines of the incomplete message."""
        self._line = 0
        """Position in `_held` of the incomplete line."""
        self._wanted = _NOTHING
        self._is_lost = False

    def _is_one_line(self, data: bytes) -> bool:
        if not super()._is_one_line(data):
            return False
        return self._extents is None or not self._extents.wanted([_text(data)]).count

    def _end_line(self, upto: int, frames: list[Frame]) -> None:
        extents = self._extents
        if extents is None:
            super()._end_line(upto, frames)
            return
        line = _text(self._held[self._line : upto])
        if self._cut is not None:
            # A cut message extends to the next line with a name.
            if not self._is_lost or not extents.begins(line):
                self._is_lost = True
                self._line = self._searched = upto
                return
            begins_anew = True
        else:
            begins_anew = bool(self._lines) and self._is_another(line)
        if begins_anew:
            start = self._line
            super()._end_line(start, frames)
            upto -= start
        self._lines.append(line)
        wanted = self._wanted
        if wanted.count > 1:
            self._wanted = msgspec.structs.replace(wanted, count=wanted.count - 1)
        elif not wanted.count or not wanted.until or line.decode("utf-8", "replace") == wanted.until:
            self._wanted = extents.wanted(self._lines)
        if self._wanted.count:
            self._line = self._searched = upto
        else:
            super()._end_line(upto, frames)

    def _is_another(self, line: bytes) -> bool:
        """Return True if a line is certainly no part of the incomplete message."""
        kind = self._wanted.type
        assert self._extents is not None, "only then messages have several lines"
        text = line.decode("utf-8", "replace")
        fits = kind is None or kind.accepts(text) or text == self._wanted.until
        return not fits and self._extents.begins(line)

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._lines.clear()
        self._line = 0
        self._wanted = _NOTHING
        self._is_lost = False

    def _drop(self) -> None:
        super()._drop()
        self._line = 0
        self._is_lost = False


def _text(line: bytes | bytearray) -> bytes:
    return bytes(line).removesuffix(b"\n").removesuffix(b"\r")


def line_extents(
    specification: Specification, codec: Codec, grammar: Grammar
) -> dict[Direction, LineExtents]:
    """Return the extents of the messages of each direction that has such fields."""
    framing = specification.framing
    found: dict[Direction, LineExtents] = {}
    for row in grammar.rows if framing.kind == "lines" else ():
        inner: Codec = codec
        if row.name == NAMELESS:
            continue
        while isinstance(inner, CarriedCodec) and (within := inner.inner_of(row)) is not None:
            inner, row = within  # the same row, of the inner codec
        if isinstance(inner, LineFieldsCodec):
            before = codec.header if isinstance(codec, HeaderCodec) else None
            found[row.direction] = LineExtents(inner, row.direction, before)
    return found
