"""One direction of a stream, cut into messages that can be altered and bytes that pass as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer


class Piece(NamedTuple):
    """Bytes that came one after the other; whether they are one whole message."""

    data: bytes
    is_message: bool


class Framing:
    """Cuts bytes where `framer` does. What is no whole message yet waits; none of its bytes is passed twice.

    `passed` are bytes of this direction that came, and were passed on, before it could be read.
    """

    def __init__(self, framer: Framer, passed: bytes) -> None:
        self._framer = framer
        self._held = bytearray()
        self._upto = self._start = len(passed)
        """How many bytes came; where those that are held begin."""
        if passed:
            framer.feed(0, passed)
        self._given_up = self._start
        """What begins before here has been passed on, at least in part."""
        self.is_inside = framer.is_unfinished
        """Whether the beginning of a message was passed on whose end has not come."""

    @property
    def unfinished(self) -> int | None:
        """Where in the stream bytes begin that wait for the rest of their message; None if none do."""
        return self._start if self._held else None

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their message."""
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Take bytes; gives what is whole now, and what need not, or is too long to, wait."""
        offset = self._upto
        self._upto += len(data)
        self._held += data
        yield from self._pieces(self._framer.feed(offset, data))
        if len(self._held) > FRAME_LIMIT or (self.is_inside and self._held):
            yield Piece(self.give_up(), False)

    def settle(self) -> Iterator[Piece]:
        """Nothing more came for a while: a message that only waited for the rest of its end is whole."""
        yield from self._pieces(self._framer.settle())

    def give_up(self) -> bytes:
        """The bytes that wait, to be passed on as they are; and so will be the rest of their message."""
        data = bytes(self._held)
        self._held.clear()
        self._start = self._given_up = self._upto
        self.is_inside = self._framer.is_unfinished
        return data

    def _pieces(self, frames: Sequence[Frame]) -> Iterator[Piece]:
        for frame in frames:
            end = frame.offset + frame.size
            size = max(0, end - self._start)
            data = bytes(self._held[:size])
            del self._held[:size]
            is_whole = frame.cut is None and frame.offset >= self._given_up
            self._start = max(self._start, end)
            self.is_inside &= end < self._given_up
            if data or is_whole:
                yield Piece(data, is_whole)
