"""What alters messages as they pass, as the relays see it: bytes go in, and deliveries come out.

Only where it is asked for. A relay without it passes bytes on by the way it always does. The relays know no
protocol: which message is altered, and how, is decided by an `Altering` that somebody gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from kiebitz.dissectors.model import Action, Direction, Transport


class Mark(msgspec.Struct, frozen=True, gc=False):
    """That what is delivered is not what was sent: `action`, and by which `rule`, as it was written.

    `original` are the bytes that were sent, at `sent_ns`; None if nothing was. `name` and `fields_json` are
    what they said, None where that could not be read.
    """

    action: Action
    rule: str
    sent_ns: int | None
    original: bytes | None
    name: str | None
    fields_json: str | None


class Delivery(msgspec.Struct, gc=False):
    """What is to be done now on a stream, in a direction.

    `data` is to be passed on to its receiver, and recorded with its `mark`, if it has one; if it is None,
    nothing is passed on, and only the mark is recorded. With `ends` the sender of this direction has ended
    it, with `resets` the whole connection is to be reset; then there are no bytes.
    """

    number: int
    direction: Direction
    data: bytes | None
    mark: Mark | None = None
    ends: bool = False
    resets: bool = False


class Altering(Protocol):
    """Alters messages. It has no clock and no socket: times are nanoseconds since 1970 UTC, in order.

    Each call may give deliveries of any stream, to be carried out in order, at once.
    """

    on_ready: Callable[[], None]
    """Called, in the loop's thread, when `due` has something to give without the clock."""

    @property
    def next_due_ns(self) -> int | None:
        """When `due` has something to give, 0 for at once; None if it is nothing by the clock alone."""

    def opened(self, number: int, transport: Transport, client: str, server: str, now_ns: int) -> None:
        """A stream begins."""

    def came(self, number: int, direction: Direction, now_ns: int, data: bytes) -> Sequence[Delivery]:
        """A datagram, or a piece of a byte stream, has come."""

    def ended(self, number: int, direction: Direction, now_ns: int) -> Sequence[Delivery]:
        """The sender of a byte stream's direction has ended it; the other direction goes on."""

    def closed(self, number: int, now_ns: int) -> Sequence[Delivery]:
        """A stream is over, and nothing more can be passed on on it: the marks of what waited."""

    def due(self, now_ns: int) -> Sequence[Delivery]:
        """What was to wait until now."""

    def finish(self, now_ns: int) -> Sequence[Delivery]:
        """The relay ends: let go what waits, or drop it; and do so at once with what may still come."""

    def is_full(self, number: int, direction: Direction) -> bool:
        """Whether so much waits in this direction that nothing more should be read from its sender."""
