"""Framers: bytes of one direction in, frames out.

A framer never takes one segment for one message: the same bytes cut anywhere give the same frames. It is
bounded, and after a gap, or in mid-stream, it goes on at the next place where a message can begin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import msgspec

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
    """The bytes of one direction of one stream."""

    @abstractmethod
    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        """The frames that are whole after these bytes."""

    @abstractmethod
    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        """Bytes are missing here: what is left from before, as a frame that is cut."""

    @abstractmethod
    def eof(self) -> Sequence[Frame]:
        """The direction is over: what is left, as frames."""

    @property
    @abstractmethod
    def is_unfinished(self) -> bool:
        """Whether something has come that is no frame yet."""


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
