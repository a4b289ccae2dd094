"""Framers: bytes of one direction in, frames out.

A framer never takes one segment for one message: the same bytes cut anywhere give the same frames. It is
bounded, and after a gap, or in mid-stream, it goes on at the next place where a message can begin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

Frame = tuple[int, bytes]
"""Offset of the first byte in its direction of the stream, and the bytes."""


class Framer(ABC):
    """The bytes of one direction of one stream."""

    @abstractmethod
    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        """The frames that are whole after these bytes."""

    @abstractmethod
    def gap(self, offset: int, length: int | None) -> None:
        """Bytes are missing here."""

    @abstractmethod
    def eof(self) -> Sequence[Frame]:
        """The direction is over: what is left, as frames."""


class DatagramFramer(Framer):
    """Each datagram is a frame, an empty one too."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        return ((offset, data),)

    def gap(self, offset: int, length: int | None) -> None:
        """Nothing spans two datagrams, so nothing is lost but the gap itself."""

    def eof(self) -> Sequence[Frame]:
        return ()
