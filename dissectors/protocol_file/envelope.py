"""The bytes of a frame around its message: line ends, delimiters, length prefixes."""

from __future__ import annotations

from typing import NamedTuple

from kiebitz.dissectors.protocol_file.binary_types import layout_of, read_varint, write_varint
from kiebitz.dissectors.protocol_file.specification import Format, Framing
from kiebitz.dissectors.protocol_file.text_types import integer_limits

_STRIPPED = {"json": b" \t\r\n", "xml": b" \t\r\n", "struct": b""}
_LINE_ENDS = b"\r\n"


class Body(NamedTuple):
    """The range of a message within its frame; `is_whole` is False if the frame contradicts its framing."""

    start: int
    end: int
    is_whole: bool = True


class Envelope:
    """The bytes of a frame around its message."""

    def __init__(self, framing: Framing, of: Format) -> None:
        self.framing = framing
        self.is_text = of.kind != "struct"
        self._stripped = _STRIPPED.get(of.kind, _LINE_ENDS)
        self._line_end = of.line_end.encode()
        if framing.kind in ("lines", "block"):
            self._line_end = self._line_end or b"\n"
        elif framing.kind in ("json", "xml") and of.line_end == "\n":
            # The default: these messages need no line end.
            self._line_end = b""
        self._end = framing.end.encode()

    def body(self, frame: bytes) -> Body:
        """Return the range of the message."""
        kind = self.framing.kind
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
        if self._stripped != _LINE_ENDS:
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

    def wrap(self, body: bytes) -> bytes:
        """Return the frame of a message; raise ValueError if its bytes would end it too early."""
        kind = self.framing.kind
        if kind == "length":
            return self._prefixed(body)
        if kind == "delimiter":
            if (body + self._end).find(self._end) != len(body):
                raise ValueError("the message would contain its delimiter")
            return body + self._end
        if kind == "block":
            lines = body.split(b"\n")
            if (self._end in lines and body) or b"\r" in body:
                raise ValueError("the message would contain the line that ends it")
            return self._line_end.join([*lines, self._end, b""])
        if kind == "lines" and (b"\n" in body or body.endswith(b"\r")):
            raise ValueError("the message would contain a line end")
        return body + self._line_end

    def rewrap(self, frame: bytes, body: bytes) -> bytes:
        """Return the frame with another message, and otherwise as it was, except for its length."""
        if self.framing.kind == "length":
            return self._prefixed(body)
        start, end, _ = self.body(frame)
        return frame[:start] + body + frame[end:]

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
