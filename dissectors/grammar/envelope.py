"""The bytes of a frame around its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kiebitz.dissectors.grammar.field_type import WireType

LINE_ENDS = b"\r\n"

_LINE_FEED = 10


class Body(NamedTuple):
    """The range of a message within its frame."""

    start: int
    end: int


class Envelope:
    """The bytes of a frame around its message: a line end, or none.

    If there is a line end, all CR and LF at the end of a frame belong to it. Of `any_line_end`, the LF of the
    line before may precede a message.
    """

    title = "white space"
    """Description of the bytes before a message."""

    tail = "line end"
    """Description of the bytes after a message."""

    has_only_blanks = True
    """True if no other bytes are around a message than blanks."""

    is_line = True
    """True if all that a frame lacks without its last bytes is its end."""

    def __init__(self, line_end: str = "", any_line_end: bool = False) -> None:
        self.line_end = line_end.encode()
        self.has_any_line_end = any_line_end
        self.stripped: bytes | None = None if any_line_end else LINE_ENDS if line_end else b""
        """The bytes at the end of a frame that are no part of a message, None if that is not all."""

    def body(self, frame: bytes) -> Body:
        """Return the range of the message."""
        start = int(self.has_any_line_end and len(frame) > 1 and frame[:1] == b"\n")
        return Body(start, max(start, len(frame.rstrip(LINE_ENDS))) if self.line_end else len(frame))

    def check(self, body: bytes) -> None:
        """Raise ValueError if the bytes of a message would end it too early."""
        has_cr = b"\r" in body if self.has_any_line_end else body[-1:] == b"\r"
        if self.line_end and (has_cr or b"\n" in body):
            raise ValueError("the message would contain a line end")

    def wrap(self, body: bytes) -> bytes:
        """Return the frame of a message; raise ValueError if its bytes would end it too early."""
        self.check(body)
        return body + self.line_end

    def rewrap(self, frame: bytes, body: bytes) -> bytes:
        """Return the frame with another message, and otherwise as it was, except for its length."""
        self.check(body)
        start, end = self.body(frame)
        return frame[:start] + body + frame[end:]

    def wire_framing(self) -> WireType | None:
        """Return a declarative description of the framing, None for that of the framer's type."""
        return {"kind": "lines", "cr": True} if self.has_any_line_end else None

    @property
    def wire_parts(self) -> Sequence[str]:
        """The parts of the run-time library that the framing needs."""
        return ()


class PacketEnvelope(Envelope):
    """The last line of a packet of lines, and its line end.

    The last line is `end`, or that in `ends` for its first line; a packet without one ends after its fields.
    """

    is_line = False

    def __init__(
        self, end: bytes, ends: Mapping[bytes, bytes] = MappingProxyType({}), line_end: str = "\n"
    ) -> None:
        super().__init__(line_end)
        self.ends = ends
        self.all_ends = frozenset({end, *self.ends.values()} - {b""})
        self.tail = "last line"
        if len(self.all_ends) == 1:
            self.tail = f'"{next(iter(self.all_ends)).decode("utf-8", "replace")}"'
        self.stripped = None
        self._end = end
        has_other_ends = len(self.all_ends) > 1 or not end
        self._usual = () if has_other_ends else (b"\n" + end + b"\n", b"\n" + end + b"\r\n")
        """Last bytes of most packets, if there is one last line."""

    def end_of(self, frame: bytes) -> bytes:
        """Return the last line that a packet needs, empty if it needs none."""
        if not self.ends:
            return self._end
        stop = frame.find(b"\n")
        first = frame if stop < 0 else frame[:stop]
        return self.ends.get(first[:-1] if first.endswith(b"\r") else first, self._end)

    def is_ended(self, frame: bytes) -> bool:
        """Return True if a packet has the last line that it needs."""
        if frame.endswith(self._usual):
            return True
        return not self.end_of(frame) or self._last_line(frame) is not None

    def body(self, frame: bytes) -> Body:
        start = self._last_line(frame)
        return Body(0, _line_end(frame, len(frame) if start is None else start))

    def _last_line(self, frame: bytes) -> int | None:
        """Return the start of the last line, if it is the one that a packet needs."""
        end = self.end_of(frame)
        upto = _line_end(frame, len(frame))
        start = upto - len(end)
        if end and frame.endswith(end, 0, upto) and (not start or frame[start - 1] == _LINE_FEED):
            return start
        return None

    def check(self, body: bytes) -> None:
        lines, end = body.split(b"\n"), self.end_of(body)
        if (end and end in lines) or any(line.endswith(b"\r") for line in lines):
            raise ValueError("the packet would contain its last line, or a line end")

    def wrap(self, body: bytes) -> bytes:
        self.check(body)
        end = self.end_of(body)
        return self.line_end.join([*body.split(b"\n"), *([end] if end else []), b""])

    def rewrap(self, frame: bytes, body: bytes) -> bytes:
        self.check(body.replace(b"\r\n", b"\n"))
        return body + frame[self.body(frame).end :]


def _line_end(frame: bytes, upto: int) -> int:
    """Return the start of the line end before an offset, or this if there is none."""
    if frame.endswith(b"\n", 0, upto):
        upto -= 1
    return upto - 1 if frame.endswith(b"\r", 0, upto) else upto
