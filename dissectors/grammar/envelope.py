"""The bytes of a frame around its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

LINE_ENDS = b"\r\n"


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

    def wire_framing(self) -> Mapping[str, Any] | None:
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

    def end_of(self, frame: bytes) -> bytes:
        """Return the last line that a packet needs, empty if it needs none."""
        return self.ends.get(frame.partition(b"\n")[0].removesuffix(b"\r"), self._end)

    def is_ended(self, frame: bytes) -> bool:
        """Return True if a packet has the last line that it needs."""
        end = self.end_of(frame)
        return not end or _last_line(frame, len(_without_line_end(frame))) == end

    def body(self, frame: bytes) -> Body:
        upto = len(_without_line_end(frame))
        if (end := self.end_of(frame)) and _last_line(frame, upto) == end:
            upto = len(_without_line_end(frame[: frame.rindex(end, 0, upto)]))
        return Body(0, upto)

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


def _without_line_end(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _last_line(frame: bytes, end: int) -> bytes:
    return frame[frame.rfind(b"\n", 0, end) + 1 : end]
