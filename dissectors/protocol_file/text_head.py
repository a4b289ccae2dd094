"""The optional text before a message, such as `6@4 `: fields with characters around them, and a blank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.protocol_file.header import Extent, Part, Read
from kiebitz.dissectors.protocol_file.specification import BeforePart, FieldTypeSpec, Format, NumberType
from kiebitz.dissectors.protocol_file.text_types import text_type

_BLANKS = re.compile(rb"[ \t]*")


class TextHead:
    """The text before each message of a direction, of which each part may be absent."""

    is_strong = False

    def __init__(self, before: Sequence[BeforePart], of: Format) -> None:
        self._encoding = of.encoding
        self._before = before
        self.parts: Sequence[Part] = [
            Part(each.field.name, text_type(each.field.type, of), 0, b"") for each in before
        ]
        marks = "".join(each.opening + each.closing for each in before)
        groups = (
            f"(?:({re.escape(each.opening)})({_pattern(each.field.type, marks)})({re.escape(each.closing)}))?"
            for each in before
        )
        self._pattern = re.compile("".join(groups).encode(of.encoding) + rb"(?=[ \t\r\n]|\Z)")

    def extent(self, data: bytes | bytearray, at: int, end: int) -> Extent:
        """Return the extent of a message, which is all that there is."""
        found = self._pattern.match(data, at)
        start = at
        if found is not None and found.end() > at:
            blanks = _BLANKS.match(data, found.end())
            start = blanks.end() if blanks is not None else found.end()
        return Extent(start, end - at)

    def read(self, frame: bytes) -> Read:
        """Return the text before the message of a frame."""
        start = self.extent(frame, 0, len(frame)).start
        places: list[tuple[Part, int, int]] = []
        read = Read(places, {}, start=start)
        found = self._pattern.match(frame) if start else None
        at = 0
        for number, part in enumerate(self.parts if found is not None else ()):
            assert found is not None
            begin, end = found.span(3 * number + 2)
            if begin < 0:
                continue
            if begin > at:
                places.append((_between(frame[at:begin]), at, begin))
            places.append((part, begin, end))
            at = end
            self._read_value(read, part, frame[begin:end], begin)
        if start > at:
            places.append((_between(frame[at:start]), at, start))
        return read

    def _read_value(self, read: Read, part: Part, sent: bytes, begin: int) -> None:
        assert part.type is not None
        try:
            read.fields[part.name] = part.type.decode(sent.decode(self._encoding))
        except UnicodeDecodeError:
            problem = f"the bytes {sent.hex(' ')} are not {self._encoding.upper()}"
            error = Mismatch(0, len(sent), problem, f"{self._encoding.upper()} text", "not-utf-8")
        except Mismatch as mismatch:
            error = mismatch
        else:
            return
        wrong = Mismatch(begin, begin + len(sent), error.problem, error.expected, error.code)
        read.error = read.error or (part.name, wrong)

    def write(self, sent: Any, fields: Mapping[str, Any], body: bytes) -> bytes:
        """Return the frame of a message."""
        texts = [
            f"{each.opening}{part.type.encode(fields[part.name])}{each.closing}"
            for each, part in zip(self._before, self.parts, strict=True)
            if part.name in fields and part.type is not None
        ]
        return f"{''.join(texts)}{' ' if texts else ''}".encode(self._encoding) + body

    def as_bytes(self, kind: FieldType, text: str) -> bytes:
        """Return a text as it is written in a field."""
        return text.encode(self._encoding, "surrogateescape")

    def wire(self) -> Mapping[str, Any]:
        """Return what the description of the framing has in addition."""
        return {
            "before": [
                {
                    "opening": each.opening,
                    "closing": each.closing,
                    "marks": "".join(other.opening + other.closing for other in self._before),
                    "name": part.name,
                    "type": part.type.wire_type() if part.type is not None else None,
                }
                for each, part in zip(self._before, self.parts, strict=True)
            ],
            "own": len(self._before),
        }


def _between(text: bytes) -> Part:
    return Part("", None, len(text), text)


def _pattern(kind: FieldTypeSpec, marks: str) -> str:
    """Return the pattern of a value; no other value has a blank or a character around one."""
    if isinstance(kind, NumberType):
        return r"-?[0-9]+" if kind.whole else r"-?[0-9]+(?:\.[0-9]+)?"
    return rf"[^ \t\r\n{re.escape(marks)}]+"
