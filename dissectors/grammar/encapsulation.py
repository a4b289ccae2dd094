"""Encapsulation: what carries a protocol's messages, if their frames are not in the stream as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.model import Direction


class Encapsulation(ABC):
    """Leads from recorded bytes to the frames of the framer, and from frames to bytes to send."""

    @abstractmethod
    def needs_history(self, recorded: bytes) -> bool:
        """Return True if a message that begins with these bytes cannot be read without those before it."""

    @abstractmethod
    def unwrap(self, recorded: bytes, direction: Direction) -> Frame | None:
        """Return the frame in the recorded bytes of one message; None if there is none."""

    @abstractmethod
    def has_message(self, frame: bytes) -> bool:
        """Return True if a frame has a message of the protocol, and is none of the encapsulation itself."""

    @abstractmethod
    def content_start(self, frame: bytes) -> int:
        """Return where the protocol's own message begins in a frame."""

    @abstractmethod
    def rewritten(
        self, frame: Frame, recorded: bytes, message: bytes, other: Callable[[bytes], bytes]
    ) -> bytes:
        """Return recorded bytes with another message, in as many bytes unless they were compressed.

        Args:
            frame: The frame in the recorded bytes.
            recorded: All bytes of the frame in the stream.
            message: The frame with the other message.
            other: Returns other bytes for what the encapsulation itself sends, as many as they were.
        """

    @abstractmethod
    def blanked(self, recorded: bytes) -> bytes:
        """Return recorded bytes that begin a frame, and cannot be read, without their content."""

    @abstractmethod
    def opening(self, direction: Direction) -> bytes:
        """Return the bytes with which a direction begins, before its first message."""

    @abstractmethod
    def fitting(self, frame: bytes, received: bytes) -> bytes:
        """Return a recorded frame as the answer to the last frame that was received."""

    @abstractmethod
    def wrap(self, frame: bytes, direction: Direction) -> bytes:
        """Return the bytes to send for a frame."""
