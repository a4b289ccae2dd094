"""What turns frames into messages and back: the half of a protocol that reads and writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.grammar.dissection_tree import Piece, whole
from kiebitz.dissectors.grammar.grammar import Decoded, Field, Flaw, MessageType, unreadable
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import Direction


class Codec(ABC):
    """Reads and writes the messages of one protocol."""

    @abstractmethod
    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        """What a frame says. Never raises; what is wrong stands in the result's flaws."""

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        """What the rest of a stream says whose sender ended it in the middle of a message. Never raises."""
        flaw = Flaw("error", "malformed", "truncated", "the stream ends in this message", len(frame), 0)
        return unreadable(flaw)

    @abstractmethod
    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        """The frame of a message; raises ValueError where no row of the grammar has these fields."""

    def respelt(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        """A frame of this row, whose fields were `before`, with only the bytes of other values changed.

        It may say something else in the end: `Dissector.rewrite` sees to that. Raises ValueError where it
        cannot be done.
        """
        return self.encode(row.name, row.direction, fields)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        """Which production took which bytes of a frame; see `Piece`. Never raises.

        A codec that does not say it gives the frame in one piece.
        """
        decoded = self.decode(frame, direction)
        notation = self.notation(decoded.row) if decoded.row is not None else None
        return whole(frame, decoded, notation or "message")

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        """Where the text of a field stands in a sound frame; None where there is none, or where that is not
        known. It is as the anatomy has it."""
        piece = next((each for each in self.anatomy(frame, row.direction) if each.path == (name,)), None)
        return None if piece is None else (piece.offset, piece.length)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        """The same with all that belongs to the field alone, such as the delimiter before it: without that,
        the field is left out, and with that twice, it is doubled."""
        before: Piece | None = None
        for piece in self.anatomy(frame, row.direction):
            if piece.path == (name,):
                start = before.offset if before is not None and before.kind == "markup" else piece.offset
                return start, piece.end - start
            if piece.depth == 0:
                before = piece
        return None

    def twice(self, whole: bytes) -> bytes:
        """What stands in a `whole_place`, doubled."""
        return whole * 2

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        """Any text, be it wrong, as it is written in a field of such a frame. Half a surrogate pair stands
        for a byte that is no UTF-8 (`surrogateescape`)."""
        return text.encode("utf-8", "surrogateescape")

    def notation(self, row: MessageType) -> str | None:
        """How the specification writes down such a message, None if it has no notation."""
        return None

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        """Whether a frame that is no sound message may be a slip of one."""
        return self.decode(frame, direction).row is not None
