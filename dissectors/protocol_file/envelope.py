"""The bytes of a frame around its message: line ends, delimiters, padding."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.grammar.envelope import LINE_ENDS, Body, Envelope
from kiebitz.dissectors.grammar.field_type import WireType
from kiebitz.dissectors.protocol_file.specification import Format, Framing

_STRIPPED = {"json": b" \t\r\n", "xml": b" \t\r\n", "struct": b""}
_PARTS = {"json": "json", "xml": "xml"}


class FileEnvelope(Envelope):
    """The bytes of a frame around its message, in any framing of protocol files.

    A message that `has_lines` of its own ends with the line end of its last one.
    """

    def __init__(
        self, framing: Framing, of: Format, *, any_line_end: bool = False, has_lines: bool = False
    ) -> None:
        super().__init__(of.line_end, any_line_end)
        self._has_lines = has_lines and framing.kind == "lines"
        self.framing = framing
        self._stripped = _STRIPPED.get(of.kind, LINE_ENDS)
        if framing.kind in ("lines", "block"):
            self.line_end = self.line_end or b"\n"
        elif framing.kind in ("json", "xml") and of.line_end == "\n":
            # The default: these messages need no line end.
            self.line_end = b""
        self._end = framing.end.encode()
        self._closing = self.line_end.rstrip(LINE_ENDS) if self._stripped == LINE_ENDS else b""
        """The delimiter after the last field."""
        if not any_line_end:
            is_all = framing.kind == "datagrams" or (framing.kind == "lines" and bool(self._stripped))
            self.stripped = self._stripped if is_all else None
        if framing.kind == "datagrams" and of.is_strict and of.kind in ("words", "delimited", "lines"):
            self.stripped = self._stripped = b""
        if self._has_lines:
            self.stripped, self._stripped = None, b""
        if self._closing:
            self.stripped = None
        self.is_line = framing.kind in ("lines", of.kind)
        self.has_only_blanks = framing.kind not in ("delimiter", "block", "size")
        if framing.kind == "size":
            self.tail = "padding"

    def body(self, frame: bytes) -> Body:
        kind = self.framing.kind
        if self.has_any_line_end:
            return super().body(frame)
        if kind == "delimiter" and frame.endswith(self._end):
            return self._stripped_body(frame, 0, len(frame) - len(self._end))
        if kind == "block":
            return self._stripped_body(frame, 0, self._last_line(frame))
        if kind == "lines" and not self._stripped:
            # Of binary fields, only one line end is none.
            text = frame.removesuffix(b"\n")
            return Body(0, len(text.removesuffix(b"\r")) if len(text) < len(frame) else len(frame))
        if kind == "size" and self._stripped:
            return self._stripped_body(frame, 0, len(frame.partition(b"\0")[0]))
        return self._stripped_body(frame, 0, len(frame))

    def _stripped_body(self, frame: bytes, start: int, end: int) -> Body:
        if not self._stripped:
            return Body(start, end)
        end = start + len(frame[start:end].rstrip(self._stripped))
        if self._closing and frame.endswith(self._closing, start, end):
            end -= len(self._closing)
        if self._stripped != LINE_ENDS:
            start = end - len(frame[start:end].lstrip(self._stripped))
        return Body(start, end)

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
            if not self._has_lines:
                super().check(body)
        elif kind == "delimiter" and (body + self._end).find(self._end) != len(body):
            raise ValueError("the message would contain its delimiter")
        elif kind == "block" and body and self._end in [line.rstrip(b"\r") for line in body.split(b"\n")]:
            raise ValueError("the message would contain the line that ends it")

    def wrap(self, body: bytes) -> bytes:
        kind = self.framing.kind
        self.check(body)
        if kind == "delimiter":
            return body + self._end
        if kind == "block":
            if b"\r" in body:
                raise ValueError("the message would contain half a line end")
            return self.line_end.join([*body.split(b"\n"), self._end, b""])
        if self._has_lines:
            body = body.replace(b"\n", self.line_end)
        if kind == "datagrams" and not body:
            return body
        return self._padded(body) if kind == "size" else body + self.line_end

    def rewrap(self, frame: bytes, body: bytes) -> bytes:
        return self._padded(body) if self.framing.kind == "size" else super().rewrap(frame, body)

    def _padded(self, body: bytes) -> bytes:
        """Return a message with padding, of which it may have some."""
        size = self.framing.size
        if (self._stripped and b"\0" in body) or body[size:].strip(b"\0"):
            raise ValueError(f"the message does not fit into {size} bytes")
        return body[:size].ljust(size, b"\0")

    def wire_framing(self) -> WireType:
        framing = self.framing
        return super().wire_framing() or {
            "kind": "line_fields" if self._has_lines else framing.kind,
            "end": framing.end if framing.kind in ("delimiter", "block") else None,
            "size": framing.size or None,
            "closing": self._closing.decode() or None,
            "skips_blanks": framing.kind in ("json", "xml") or None,
        }

    @property
    def wire_parts(self) -> Sequence[str]:
        part = _PARTS.get(self.framing.kind)
        return () if part is None else (part,)
