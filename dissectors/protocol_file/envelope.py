"""The bytes of a frame around its message: line ends, delimiters, length prefixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.envelope import LINE_ENDS, Body, Envelope
from kiebitz.dissectors.protocol_file.binary_types import layout_of, read_varint, write_varint
from kiebitz.dissectors.protocol_file.specification import Format, Framing
from kiebitz.dissectors.protocol_file.text_types import integer_limits

_STRIPPED = {"json": b" \t\r\n", "xml": b" \t\r\n", "struct": b""}
_PREFIX_KEYS = ("prefix", "order", "inclusive")
_PARTS = {"json": "json", "xml": "xml", "length": "struct"}


class FileEnvelope(Envelope):
    """The bytes of a frame around its message, in any framing of protocol files."""

    def __init__(self, framing: Framing, of: Format, *, any_line_end: bool = False) -> None:
        super().__init__(of.line_end, any_line_end)
        self.framing = framing
        self._stripped = _STRIPPED.get(of.kind, LINE_ENDS)
        if framing.kind in ("lines", "block"):
            self.line_end = self.line_end or b"\n"
        elif framing.kind in ("json", "xml") and of.line_end == "\n":
            # The default: these messages need no line end.
            self.line_end = b""
        self._end = framing.end.encode()
        if not any_line_end:
            self.stripped = self._stripped if framing.kind in ("lines", "datagrams") else None
        self.is_line = framing.kind in ("lines", of.kind)
        if framing.kind == "length":
            self.title = "length"

    def body(self, frame: bytes) -> Body:
        kind = self.framing.kind
        if self.has_any_line_end:
            return super().body(frame)
        if kind == "length":
            return self._stripped_body(frame, *self._after_prefix(frame))
        if kind == "delimiter" and frame.endswith(self._end):
            return self._stripped_body(frame, 0, len(frame) - len(self._end))
        if kind == "block":
            return self._stripped_body(frame, 0, self._last_line(frame))
        return self._stripped_body(frame, 0, len(frame))

    def _stripped_body(self, frame: bytes, start: int, end: int, is_whole: bool = True) -> Body:
        if not self._stripped:
            return Body(start, end, is_whole)
        end = start + len(frame[start:end].rstrip(self._stripped))
        if self._stripped != LINE_ENDS:
            start = end - len(frame[start:end].lstrip(self._stripped))
        return Body(start, end, is_whole)

    def _after_prefix(self, frame: bytes) -> tuple[int, int, bool]:
        framing = self.framing
        found = prefix_of(framing, frame, 0, len(frame))
        if found is None:
            return len(frame), len(frame), False
        start, size = found
        return start, len(frame), size == len(frame)

    def _last_line(self, frame: bytes) -> int:
        """Return the offset of the last line of a block if it is its end, else the end of the frame."""
        text = frame.removesuffix(b"\n")
        if text == frame:
            return len(frame)
        text = text.removesuffix(b"\r")
        start = text.rfind(b"\n") + 1
        return start if text[start:] == self._end else len(frame)

    def check(self, body: bytes) -> None:
        kind = self.framing.kind
        if kind == "lines":
            super().check(body)
        elif kind == "delimiter" and (body + self._end).find(self._end) != len(body):
            raise ValueError("the message would contain its delimiter")
        elif kind == "block" and body and self._end in [line.rstrip(b"\r") for line in body.split(b"\n")]:
            raise ValueError("the message would contain the line that ends it")

    def wrap(self, body: bytes) -> bytes:
        kind = self.framing.kind
        if kind == "length":
            return self._prefixed(body)
        self.check(body)
        if kind == "delimiter":
            return body + self._end
        if kind == "block":
            if b"\r" in body:
                raise ValueError("the message would contain half a line end")
            return self.line_end.join([*body.split(b"\n"), self._end, b""])
        return body + self.line_end

    def rewrap(self, frame: bytes, body: bytes) -> bytes:
        return self._prefixed(body) if self.framing.kind == "length" else super().rewrap(frame, body)

    def wire_framing(self) -> Mapping[str, Any]:
        framing = self.framing
        return super().wire_framing() or {
            "kind": framing.kind,
            "end": framing.end if framing.kind in ("delimiter", "block") else None,
            "skips_blanks": framing.kind in ("json", "xml") or None,
            **({key: getattr(framing, key) for key in _PREFIX_KEYS} if framing.kind == "length" else {}),
        }

    @property
    def wire_parts(self) -> Sequence[str]:
        part = _PARTS.get(self.framing.kind)
        return () if part is None else (part,)

    def _prefixed(self, body: bytes) -> bytes:
        framing = self.framing
        if framing.prefix == "varint":
            if not framing.inclusive:
                return write_varint(len(body)) + body
            sizes = (len(write_varint(len(body) + size)) for size in (1, 2, 3, 4, 5))
            size = next(size for size, needed in enumerate(sizes, 1) if size >= needed)
            return write_varint(len(body) + size) + body
        layout = layout_of(framing.prefix, framing.order)
        size = len(body) + (layout.size if framing.inclusive else 0)
        if size > integer_limits(framing.prefix)[1]:
            raise ValueError(f"{len(body)} bytes are too many for a length of {layout.size} bytes")
        return layout.pack(size) + body


def prefix_of(framing: Framing, data: bytes | bytearray, at: int, end: int) -> tuple[int, int] | None:
    """Return where the message after a length prefix begins, and its frame's size with the prefix.

    Returns None if the prefix is incomplete or not valid.
    """
    if framing.prefix == "varint":
        found = read_varint(data, at, end)
        if found is None:
            return None
        length, start = found
    else:
        layout = layout_of(framing.prefix, framing.order)
        start = at + layout.size
        if start > end:
            return None
        (length,) = layout.unpack_from(data, at)
    size = length if framing.inclusive else start - at + length
    return (start, size) if size >= start - at else None
