"""What a protocol brings to make sense of messages: its game table, as the inspector calls it.

A protocol's table derives from `GameTable` and says what its messages mean; all that it says goes into its
context. It never looks at a clock, only at the times of what it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Message, Stream


class GameTable(ABC):
    """One server's table. Subclasses read messages, and tell their `context` what comes of them."""

    def __init__(self, context: GameContext) -> None:
        self.context = context

    @abstractmethod
    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        """Take the next message, whose bytes are `frame`; `valid` says that its row allows it.

        Sets its event and game, at once or before it is no longer among the `undecided`.
        """

    def unreadable(self, stream: Stream, direction: Direction) -> None:
        """A frame came in which no message could be made out; it has its diagnostic already."""
        return

    def missing(self, stream: Stream, direction: Direction) -> None:
        """Bytes of a direction are not in the capture: what they said is not known."""
        return

    def closed(self, stream: Stream, ts_ns: int) -> None:
        """A stream of this table is over."""
        return

    def unreachable(self, stream: Stream) -> None:
        """Nobody listens at the server's port: there is no server now."""
        return

    def undecided(self) -> int | None:
        """The id of the first message whose event is not yet set; it and those after it wait to be stored."""
        return None

    def finish(self, ts_ns: int) -> None:
        """Nothing more comes: give the verdicts that waited for more."""
        return
