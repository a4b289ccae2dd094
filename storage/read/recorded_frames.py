"""The frames of recorded messages: their bytes, or what is in them if something else carries the messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame, Framer
from kiebitz.dissectors.model import Direction
from kiebitz.storage.read.recorded_bytes import ByteRange

Between = Callable[[int, Direction, int, int], list[ByteRange]]
"""Returns the bytes of a stream's direction from one offset to another."""

_STEP = 1 << 20
"""Number of bytes of a stream that are read at once."""


class RecordedFrames:
    """Reads the frames of messages.

    A message that refers to earlier ones of its stream is read together with those. In the order of a stream,
    each byte is read once.
    """

    def __init__(self, between: Between) -> None:
        self._between = between
        self._framers: dict[tuple[int, Direction], tuple[Framer, int]] = {}

    def frame(
        self, dissector: Dissector | None, stream_id: int, direction: Direction, offset: int, length: int
    ) -> Frame:
        """Return the frame of the message at an offset of a stream; of one with gaps, the bytes there are."""
        found = self._between(stream_id, direction, offset, offset + length)
        data = b"".join(piece.data for piece in found if piece.data is not None)
        encapsulation = dissector.encapsulation if dissector is not None else None
        if dissector is None or encapsulation is None:
            return Frame(offset, data, length)
        if encapsulation.needs_history(data):
            frame = self._read_on(dissector, stream_id, direction, offset, offset + length)
        else:
            frame = encapsulation.unwrap(data, direction)
        return frame or Frame(offset, data, length)

    def _read_on(
        self, dissector: Dissector, stream_id: int, direction: Direction, offset: int, end: int
    ) -> Frame | None:
        """Read on in a stream, or from its beginning; return the frame at an offset."""
        framer, at = self._framers.get((stream_id, direction)) or (dissector.framer(direction), 0)
        if at > offset:
            framer, at = dissector.framer(direction), 0
        found: Frame | None = None
        while at < end:
            upto = min(end, at + _STEP)
            for piece in self._between(stream_id, direction, at, upto):
                frames: Iterable[Frame]
                if piece.data is None:
                    frames = framer.gap(piece.offset, piece.length)
                else:
                    frames = framer.feed(piece.offset, piece.data)
                found = next((each for each in frames if each.offset == offset), found)
            at = upto
        self._framers[stream_id, direction] = framer, at
        return found
