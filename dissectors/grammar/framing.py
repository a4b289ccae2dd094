"""Framers: from the bytes of one direction to frames.

Frames do not depend on segmentation: the same bytes, cut anywhere, give the same frames. The memory of a
framer is bounded. After a gap, or in mid-stream, it resumes where the next message can begin.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.model import Direction

FRAME_LIMIT = 1 << 20
"""Maximum length of a frame in bytes; a longer one is skipped up to where a message can begin."""

Cut = Literal["gap", "end", "limit"]
"""Reason why a frame is not a whole message: adjacent bytes are not in the capture, the stream ended within
it, or it exceeds `FRAME_LIMIT`.
"""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """The bytes of one message, from `offset` of its direction; of a `cut` message, only some of them.

    Attributes:
        offset: Offset in the direction of the stream.
        data: Its bytes; those in the stream differ if the message is encapsulated.
        size: Length in the stream in bytes; `data` is shorter if the frame exceeds the limit.
        cut: Reason why it is not a whole message.
        place: If it is too long: offset in it of the line or value without an end.
        spans: Where bytes of `data` are in the stream, if that has other bytes, too: position in `data`,
            distance from `offset`, and length. Of all other bytes the place is unknown.
        violations: Errors of what carries the message; their places count from `offset`.
    """

    offset: int
    data: bytes
    size: int
    cut: Cut | None = None
    place: int = 0
    spans: tuple[tuple[int, int, int], ...] = ()
    violations: tuple[Violation, ...] = ()

    def in_stream(self, position: int, length: int) -> tuple[int, int]:
        """Return the place in the stream, from `offset`, of bytes of `data`; if unknown, the whole frame."""
        return _moved(self.spans, position, length, self.size)

    def in_data(self, position: int, length: int) -> tuple[int, int]:
        """Return the place in `data` of bytes of the stream, from `offset`; if unknown, all of it."""
        return _moved([(b, a, size) for a, b, size in self.spans], position, length, len(self.data))


def _moved(spans: Sequence[tuple[int, int, int]], position: int, length: int, whole: int) -> tuple[int, int]:
    if not spans:
        return position, length
    start = _at(spans, position, is_end=False)
    end = _at(spans, position + length, is_end=length > 0)
    return (0, whole) if start is None or end is None else (start, max(0, end - start))


def _at(spans: Sequence[tuple[int, int, int]], position: int, is_end: bool) -> int | None:
    """Return the place of a position, of an end that of the byte before; None if it is in no span."""
    for begin, moved, size in spans:
        if begin + is_end <= position < begin + size + is_end or position == begin + size == begin:
            return moved + position - begin
    return None


class Framer(ABC):
    """A splitter of the bytes of one direction of a stream into frames."""

    depends_on_segments = False
    """True if the same bytes in other segments give other frames."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    @abstractmethod
    def feed(self, offset: int, data: bytes) -> Iterable[Frame]:
        """Return the frames that are complete after these bytes.

        Frames that are larger than their bytes may be made while they are consumed; consume all of them
        before the next call.
        """

    @abstractmethod
    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        """Handle missing bytes; return the incomplete frame before them as cut."""

    @abstractmethod
    def eof(self) -> Iterable[Frame]:
        """Handle the end of the direction; return the incomplete frame, if any."""

    def settle(self) -> Sequence[Frame]:
        """Return a complete frame that waits for an optional end, because the other side has sent data."""
        return ()

    def meet(self, other: Framer) -> None:  # noqa: B027 (most protocols need nothing of the other direction)
        """Share what both directions have to know with the framer of the other one."""

    @property
    @abstractmethod
    def is_unfinished(self) -> bool:
        """True if the bytes of an incomplete frame have arrived."""


class ByteFramer(Framer):
    """A framer that buffers the bytes of a stream until a frame is complete; the protocol decides when."""

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
        """Emit the first `upto` held bytes as a frame, and continue after it."""
        size = self._dropped + upto
        if size:
            data = b"" if self._cut in ("gap", "limit") else bytes(self._held[:upto])
            frames.append(Frame(self._start, data, size, self._cut, self._place))
        del self._held[:upto]
        self._start += size
        self._dropped = self._place = 0
        self._cut = None


class LineFramer(ByteFramer):
    """A framer of lines that end with LF, or CR and LF.

    After a gap, a line begins after the next line end.
    """

    line_end = re.compile(rb"\n")
    """Pattern of a line end."""

    overlap = 1
    """Number of last bytes that may begin a line end, so they are searched again later, such as a CR."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._searched = 0
        """Number of bytes of `_held` that contain no line end."""
        self._seeking = False
        """True if bytes before the held ones are missing, and no line is known to begin here."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        held = self._held
        if not held and not self._dropped:
            self._begin(offset, data)
            if self._is_one_line(data):
                # The usual case; nothing has to be held.
                self._searched = 0
                return (Frame(offset, data, len(data)),)
        held += data
        frames: list[Frame] = []
        if self._seeking:
            self._resync()
        while (end := self.line_end.search(held, self._searched)) is not None:
            self._end_line(end.end(), frames)
        self._searched = max(self._searched, len(held) - self.overlap)
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
        """Stop seeking if a line is known to begin right after the missing bytes, so that it is not cut."""
        self._seeking = False

    def _end_line(self, upto: int, frames: list[Frame]) -> None:
        if self._dropped + upto > FRAME_LIMIT:
            self._cut = self._cut or "limit"
        self._release(upto, frames)
        self._searched = 0

    def _drop(self) -> None:
        """Drop all held bytes but those that may begin a line end."""
        self._cut = self._cut or "limit"
        self._dropped += len(self._held) - self.overlap
        del self._held[: len(self._held) - self.overlap]
        self._searched = 0


class AnyLineFramer(LineFramer):
    """A framer of lines that end with CR, LF or both.

    A CR at the end of the received bytes may be half of a CR LF, so its line waits for one more byte, unless
    the server answers first. A LF that arrives after that precedes the next line. After a gap, a line begins
    where a known name follows immediately, else after the next line end.
    """

    line_end = re.compile(rb"\r\n|\n|\r(?!\Z)")

    def __init__(self, direction: Direction, names: Mapping[Direction, Iterable[str]]) -> None:
        super().__init__(direction)
        known = [name.encode() for name in names[direction]]
        self._beginning = re.compile(rb"(?:%s)[ \r\n]" % b"|".join(map(re.escape, known)))
        self._longest = max(map(len, known), default=0) + 1
        """Length of the longest name and the character after it, in bytes."""
        self._after_cr = False
        """True if a LF that comes next belongs to the end of a finished line."""

    def settle(self) -> Sequence[Frame]:
        frames: list[Frame] = []
        if self._direction == "c2s" and self._held[-1:] == b"\r":
            self._end_line(len(self._held), frames)
            self._after_cr = True
        return frames

    def eof(self) -> Sequence[Frame]:
        # No more bytes follow: the CR was the whole line end.
        frames: list[Frame] = []
        if self._held[-1:] == b"\r":
            self._end_line(len(self._held), frames)
        return [*frames, *super().eof()]

    def _begin(self, offset: int, data: bytes) -> None:
        super()._begin(offset, data)
        if self._after_cr and data:
            self._after_cr = False
            self._searched = int(data[:1] == b"\n")

    def _seek(self) -> None:
        super()._seek()
        self._after_cr = False

    def _resync(self) -> None:
        held = self._held
        if len(held) >= self._longest or self.line_end.search(held) is not None:
            # Usually whole segments are lost, and those end with a line.
            self._seeking = False
            if self._beginning.match(held):
                self._cut = None


MAX_CACHED_LENGTH = 512
"""Maximum length in bytes of data whose message ends are cached: a server sends the same to all clients."""

CACHE_SIZE = 4096
"""Number of the latest short data with cached message ends."""

Ends = Callable[[bytes], tuple[int, ...]]
"""A function that returns the ends of the leading messages that are complete in data."""


class CachedEnds:
    """A function that finds the ends of messages, with a cache for `short` data."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self.short = lru_cache(CACHE_SIZE)(ends)

    def __call__(self, data: bytes) -> tuple[int, ...]:
        is_short = len(data) <= MAX_CACHED_LENGTH <= FRAME_LIMIT
        return self.short(data) if is_short else self._ends(data)


INCOMPLETE = -1
"""Returned in place of the end of a frame that is not complete yet."""


class StructuredFramer(ByteFramer):
    """A framer that finds the end of a frame by its structure; frames may have several lines.

    Complete messages are recognised without buffering, and a frame that is too long is not kept.
    """

    _at = 0
    """Offset in `_held` of the next byte to examine."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        held = self._held
        frames: list[Frame] = []
        if not held and not self._dropped:
            size = 0
            for end in self._whole(data):
                # A slice of all bytes is the same object, whose hash is already known.
                frames.append(Frame(offset + size, data[size:end], end - size))
                size = end
            self._start = offset + size
            if size == len(data):
                return frames
            data = data[size:]
        held += data
        while held:
            end = self._frame_end()
            if end != INCOMPLETE:
                self._release(end, frames)
            elif self._cut is not None:
                self._drop()
                break
            elif self._is_too_long():
                self._cut = "limit"
                self._overflow()
            else:
                break
        return frames

    def _is_too_long(self) -> bool:
        """Return True if the incomplete frame exceeds the limit."""
        return len(self._held) > FRAME_LIMIT

    @abstractmethod
    def _whole(self, data: bytes) -> Sequence[int]:
        """Return the ends of the messages that are complete in new data, if a message can begin here."""

    @abstractmethod
    def _frame_end(self) -> int:
        """Return the end of the frame in `_held`, or `INCOMPLETE`.

        A cut frame ends where the next message can begin.
        """

    @abstractmethod
    def _overflow(self) -> None:
        """Handle a frame that is too long: set the place of the part without an end."""

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._at = 0

    def _drop(self) -> None:
        """Drop all held bytes but those that may be the beginning of a message."""
        # The byte before the next one may show whether a message begins there.
        size = max(0, self._at - 1)
        del self._held[:size]
        self._dropped += size
        self._at -= size


class DatagramFramer(Framer):
    """A framer for datagrams: each one is a frame, even if it is empty."""

    depends_on_segments = True

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        return (Frame(offset, data, len(data)),)

    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        # A frame never spans two datagrams, so the gap affects no other frame.
        return ()

    def eof(self) -> Sequence[Frame]:
        return ()

    @property
    def is_unfinished(self) -> bool:
        return False
