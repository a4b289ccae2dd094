"""Splitting of one direction of a stream into messages to alter and bytes to forward unchanged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer


class Piece(NamedTuple):
    """Consecutive bytes; if they are exactly one message, with its frame, else None."""

    data: bytes
    frame: bytes | None


class Framing:
    """Splits bytes as `framer` does and holds incomplete messages; no byte is returned twice.

    Once the framer has raised, bytes are neither split nor held.
    `passed` are the bytes of this direction forwarded before its protocol was known.
    """

    def __init__(self, framer: Framer, passed: bytes) -> None:
        self._framer = framer
        self._has_failed = False
        self._held = bytearray()
        self._upto = self._start = len(passed)
        """Number of bytes received; offset of the held bytes."""
        if passed:
            deque(self._frames(lambda framer: framer.feed(0, passed)), 0)
        self._given_up = self._start
        """Messages that begin before this offset have been forwarded, at least in part."""
        self.is_mid_message = self._is_unfinished
        """True if only the beginning of a message has been forwarded."""

    @property
    def unfinished(self) -> int | None:
        """Offset at which the held incomplete message begins, None if there is none."""
        return self._start if self._held else None

    @property
    def waiting(self) -> int:
        """Number of held bytes."""
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield complete messages, and bytes that need not or cannot be held."""
        offset = self._upto
        self._upto += len(data)
        self._held += data
        yield from self._pieces(self._frames(lambda framer: framer.feed(offset, data)))
        if len(self._held) > FRAME_LIMIT or (self.is_mid_message and self._held):
            yield Piece(self.give_up(), None)

    def settle(self) -> Iterator[Piece]:
        """Yield messages that only lack an optional end, after no more bytes have arrived for a while."""
        yield from self._pieces(self._frames(lambda framer: framer.settle()))

    def give_up(self) -> bytes:
        """Return the held bytes, to be forwarded unchanged; so will be the rest of their message."""
        data = bytes(self._held)
        self._held.clear()
        self._start = self._given_up = self._upto
        self.is_mid_message = self._is_unfinished
        return data

    def _frames(self, read: Callable[[Framer], Iterable[Frame]]) -> Iterator[Frame]:
        if not self._has_failed:
            try:
                yield from read(self._framer)
            except Exception:
                # The recorder, which reads the same bytes, reports it.
                self._has_failed = self.is_mid_message = True

    @property
    def _is_unfinished(self) -> bool:
        return self._has_failed or self._framer.is_unfinished

    def _pieces(self, frames: Iterable[Frame]) -> Iterator[Piece]:
        for frame in frames:
            end = frame.offset + frame.size
            size = max(0, end - self._start)
            data = bytes(self._held[:size])
            del self._held[:size]
            is_whole = frame.cut is None and frame.offset >= self._given_up
            self._start = max(self._start, end)
            self.is_mid_message &= end < self._given_up
            if data or is_whole:
                yield Piece(data, frame.data if is_whole else None)
