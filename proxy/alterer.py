"""The interface between relays and message alteration: bytes go in, and deliveries come out.

It is used only with alteration options; otherwise relays forward bytes directly. Relays know no protocol: the
`Alterer` that they are given decides which messages are altered, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from kiebitz.dissectors.model import Action, Direction, Transport


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A record of an alteration: what was delivered differs from what was sent.

    Attributes:
        action: The kind of alteration.
        rule: The rule that caused it, as the user wrote it.
        sent_ns: When the original was sent; None if nothing was.
        original: The bytes that were sent; None if nothing was.
        name: Name of the original message; None if it could not be decoded.
        fields_json: Fields of the original message; None if it could not be decoded.
    """

    action: Action
    rule: str
    sent_ns: int | None
    original: bytes | None
    name: str | None
    fields_json: str | None


class Delivery(msgspec.Struct, gc=False):
    """One action to carry out now in one direction of a stream.

    Attributes:
        number: The stream.
        direction: The direction.
        data: Bytes to send to the receiver; None if only `mark` is to be recorded.
        mark: Alteration to record with the data, if any.
        ends: True if the sender has ended this direction; then there are no bytes.
        resets: True if the whole connection is to be reset; then there are no bytes.
    """

    number: int
    direction: Direction
    data: bytes | None
    mark: Mark | None = None
    ends: bool = False
    resets: bool = False


class Alterer(Protocol):
    """Interface for altering messages, without clock or socket; times are non-decreasing Unix nanoseconds.

    Each call may return deliveries of any stream, to be carried out in order and immediately.
    """

    on_ready: Callable[[], None]
    """Callback in the loop's thread when `due` has deliveries that do not depend on the clock."""

    @property
    def next_due_ns(self) -> int | None:
        """Time for the next call of `due`, 0 for immediately; None if no delivery depends on the clock."""

    def stream_opened(self, number: int, transport: Transport, client: str, server: str, now_ns: int) -> None:
        """Register a new stream."""

    def data_received(
        self, number: int, direction: Direction, now_ns: int, data: bytes
    ) -> Sequence[Delivery]:
        """Process a received datagram or piece of a byte stream."""

    def eof_received(self, number: int, direction: Direction, now_ns: int) -> Sequence[Delivery]:
        """Process the end of one direction of a byte stream; the other direction continues."""

    def stream_closed(self, number: int, now_ns: int) -> Sequence[Delivery]:
        """Remove a stream on which nothing can be sent any more; return the marks of its queued messages."""

    def due(self, now_ns: int) -> Sequence[Delivery]:
        """Return the deliveries that were scheduled for `now_ns` or earlier."""

    def finish(self, now_ns: int) -> Sequence[Delivery]:
        """Flush or drop all queues as the relay ends; later input is handled the same way immediately."""

    def is_full(self, number: int, direction: Direction) -> bool:
        """Return True if reading from this direction's sender should pause, as too much is queued."""
