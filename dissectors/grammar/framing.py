"""Framers: bytes of one direction in, frames out.

A framer never takes one segment for one message: the same bytes cut anywhere give the same frames. It is
bounded, and after a gap, or in mid-stream, it goes on at the next place where a message can begin.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import msgspec

from kiebitz.dissectors.model import Direction

FRAME_LIMIT = 1 << 20
"""No frame is longer (bytes); what goes on for longer is skipped up to where a message can begin."""

Cut = Literal["gap", "end", "limit"]
"""Why a frame is no whole message: bytes beside it are not in the capture, the stream ends in it, or it goes
on beyond `FRAME_LIMIT`."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """The bytes of one message, from `offset` of its direction, or what is left of one that is `cut`.

    `size` is how many bytes of the stream it takes: of one over the limit `data` has only the beginning, and
    `place` is where in it the line or value begins that has no end.
    """

    offset: int
    data: bytes
    size: int
    cut: Cut | None = None
    place: int = 0


class Framer(ABC):
    """Cuts the bytes of one direction of a stream into frames."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    @abstractmethod
    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        """Return the frames that are complete after these bytes."""

    @abstractmethod
    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        """Handle missing bytes: return the rest of the bytes before them as a cut frame."""

    @abstractmethod
    def eof(self) -> Sequence[Frame]:
        """Handle the end of the direction: return the rest of the bytes as frames."""

    def settle(self) -> Sequence[Frame]:
        """Return a complete frame that was held for an optional end, as the other side has sent something."""
        return ()

    @property
    @abstractmethod
    def is_unfinished(self) -> bool:
        """True if the bytes of an incomplete frame have arrived."""


class ByteFramer(Framer):
    """Holds the bytes of a stream until a frame is complete, which the protocol decides."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._held = bytearray()
        """Bytes of the incomplete frame that are kept, from offset `_start`."""
        self._start = 0
        self._cut: Cut | None = None
        self._place = 0
        self._dropped = 0
        """Number of bytes of the incomplete frame that are not kept, as they are too many."""

    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        frames: list[Frame] = []
        self._cut = self._cut or "gap"
        self._release(len(self._held), frames)
        self._seek()
        self._cut = "gap"
        return frames

    def eof(self) -> Sequence[Frame]:
        frames: list[Frame] = []
        self._cut = self._cut or "end"
        self._release(len(self._held), frames)
        return frames

    @property
    def is_unfinished(self) -> bool:
        return bool(self._held or self._dropped)

    @abstractmethod
    def _seek(self) -> None:
        """Resynchronise after missing bytes, where a message can begin."""

    def _release(self, upto: int, frames: list[Frame]) -> None:
        """Emit the bytes up to there as a frame, and continue after it."""
        size = self._dropped + upto
        if size:
            data = b"" if self._cut in ("gap", "limit") else bytes(self._held[:upto])
            frames.append(Frame(self._start, data, size, self._cut, self._place))
        del self._held[:upto]
        self._start += size
        self._dropped = self._place = 0
        self._cut = None


class LineFramer(ByteFramer):
    """Lines, each with its end: LF, or CR and LF. After a gap a line begins behind the next end."""

    line_end = re.compile(rb"\n")
    """Ends a line. A CR that came last may be half an end, and is looked at again with what follows."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._searched = 0
        """Number of bytes of `_held` that contain no line end."""
        self._seeking = False
        """True if bytes are missing before these, and no line is known to begin here."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        held = self._held
        if not held and not self._dropped:
            self._begin(offset, data)
            if self._is_one_line(data):
                # So is nearly every piece: nothing of it needs to be held.
                self._searched = 0
                return (Frame(offset, data, len(data)),)
        held += data
        frames: list[Frame] = []
        if self._seeking:
            self._resync()
        while (end := self.line_end.search(held, self._searched)) is not None:
            self._end_line(end.end(), frames)
        self._searched = max(self._searched, len(held) - 1)
        if self._dropped + len(held) > FRAME_LIMIT:
            self._drop()
        return frames

    def _begin(self, offset: int, data: bytes) -> None:
        """Begin a line with these bytes."""
        self._start = offset

    def _is_one_line(self, data: bytes) -> bool:
        if self._cut is not None or self._seeking or len(data) > FRAME_LIMIT:
            return False
        end = self.line_end.search(data, self._searched)
        return end is not None and end.end() == len(data)

    def _seek(self) -> None:
        self._searched = 0
        self._seeking = True

    def _resync(self) -> None:
        """Stop seeking if a line is known to begin right after the missing bytes: then none is cut."""
        self._seeking = False

    def _end_line(self, upto: int, frames: list[Frame]) -> None:
        if self._dropped + upto > FRAME_LIMIT:
            self._cut = self._cut or "limit"
        self._release(upto, frames)
        self._searched = 0

    def _drop(self) -> None:
        """Drop all but what may be half a line end."""
        self._cut = self._cut or "limit"
        rest = b"\r" if self._held[-1:] == b"\r" else b""
        self._dropped += len(self._held) - len(rest)
        self._held[:] = rest
        self._searched = 0


SHORT = 512
"""Of pieces that have no more bytes it is remembered where messages end: a server says the same to all."""

MAX_SHORT = 4096
"""Of so many short pieces at the most: those that came last."""

GOES_ON = -1
"""Stands for the end of a frame that cannot be told yet."""


class StructuredFramer(ByteFramer):
    """Finds the end of a frame by the structure of what has come, be it many lines.

    What needs no such look is taken as a whole, and what is too long up to the next beginning is not kept.
    """

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        held = self._held
        frames: list[Frame] = []
        if not held and not self._dropped:
            size = 0
            for end in self._whole(data):
                # What is all of the piece is the same object, which need not be hashed again to be looked up.
                frames.append(Frame(offset + size, data[size:end], end - size))
                size = end
            self._start = offset + size
            if size == len(data):
                return frames
            data = data[size:]
        held += data
        while held:
            end = self._frame_end()
            if end != GOES_ON:
                self._release(end, frames)
            elif self._cut is not None:
                self._drop()
                break
            elif len(held) > FRAME_LIMIT:
                self._cut = "limit"
                self._overflow()
            else:
                break
        return frames

    @abstractmethod
    def _whole(self, data: bytes) -> Sequence[int]:
        """Return the ends of the messages that are complete at first sight, if one can begin here."""

    @abstractmethod
    def _frame_end(self) -> int:
        """Return the end of the frame in `_held`, or `GOES_ON`.

        A cut frame ends where the next message can begin.
        """

    @abstractmethod
    def _overflow(self) -> None:
        """Handle a frame that is too long: set the place of the part without an end."""

    @abstractmethod
    def _drop(self) -> None:
        """Drop all but what may be part of a beginning."""


class DatagramFramer(Framer):
    """Each datagram is a frame, an empty one too."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        return (Frame(offset, data, len(data)),)

    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        # Nothing spans two datagrams, so nothing is lost but the gap itself.
        return ()

    def eof(self) -> Sequence[Frame]:
        return ()

    @property
    def is_unfinished(self) -> bool:
        return False
