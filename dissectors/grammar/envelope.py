"""The bytes of a frame around its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LINE_ENDS = b"\r\n"


class Body(NamedTuple):
    """The range of a message within its frame; `is_whole` is False if the frame contradicts its framing."""

    start: int
    end: int
    is_whole: bool = True


class Envelope:
    """The bytes of a frame around its message: a line end, or none.

    If there is a line end, all CR and LF at the end of a frame belong to it. Of `any_line_end`, the LF of the
    line before may precede a message.
    """

    title = "white space"
    """Description of the bytes before a message."""

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
        start, end, _ = self.body(frame)
        return frame[:start] + body + frame[end:]

    def wire_framing(self) -> Mapping[str, Any] | None:
        """Return a declarative description of the framing, None for that of the framer's type."""
        return {"kind": "lines", "cr": True} if self.has_any_line_end else None

    @property
    def wire_parts(self) -> Sequence[str]:
        """The parts of the run-time library that the framing needs."""
        return ()
