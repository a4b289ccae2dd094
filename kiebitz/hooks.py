"""What a hook works with: `kiebitz relay -s hooks.py` calls the functions of that file.

    def message(message, table):            for each message, before it is passed on
        return message

    def connected(stream): ...              a client has come
    def closed(stream): ...                 a connection is over

`message` gives back what is to be passed on in its place: the message, a changed one, several, or none. It
runs in a process of its own. A hook needs no import to work; these are for its types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import isfinite
from typing import Any, Self

import msgspec

from kiebitz.dissectors.model import OPPOSITE, Direction, Transport

__all__ = ["Message", "Stream", "Table"]

LONGEST_DELAY_S = 3600.0
"""No message is kept back for longer."""


class Stream(msgspec.Struct, frozen=True):
    """A TCP connection, or a pair of addresses that talk over UDP.

    `client` and `server` are written `ip:port`; `id` is the number that listings show. `player` is what the
    client has called itself by now, None before it does.
    """

    id: int
    transport: Transport
    client: str
    server: str
    player: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way: `direction` is `c2s` or `s2c`, `time` in seconds since 1970 UTC.

    `fields` has JSON values, as `kiebitz messages --json` shows them; it is this message's own copy and may
    be changed in place. `data` are the bytes that came; none if the hook has made the message, which `is_new`
    then. One in which nothing could be made out is called `unreadable`. `delay` is for how many seconds it is
    to be kept back.
    """

    name: str
    fields: dict[str, Any]
    direction: Direction
    stream: Stream
    time: float
    protocol: str
    data: bytes = b""
    is_new: bool = False
    delay: float = 0.0

    def but(self, **values: Any) -> Self:
        """The same message with other values in these fields, spelt as it was in all else.

        A value is written as in `fields`, or as a text that stands in the protocol.
        """
        return msgspec.structs.replace(self, fields={**self.fields, **values})

    def also(self, name: str, /, **values: Any) -> Message:
        """A new message of this name, which goes the same way on the same stream."""
        return self._new(name, self.direction, values)

    def reply(self, name: str, /, **values: Any) -> Message:
        """A new message of this name, which goes back to whoever has sent this one."""
        return self._new(name, OPPOSITE[self.direction], values)

    def later(self, seconds: float) -> Self:
        """The same message, to be kept back for so long, an hour at the most. Raises ValueError."""
        if not (isfinite(seconds) and 0 <= seconds <= LONGEST_DELAY_S):
            raise ValueError(f"a message is kept back for 0 to {LONGEST_DELAY_S:g} seconds, not {seconds!r}")
        return msgspec.structs.replace(self, delay=float(seconds))

    def _new(self, name: str, direction: Direction, values: dict[str, Any]) -> Message:
        return Message(
            name=name,
            fields=values,
            direction=direction,
            stream=self.stream,
            time=self.time,
            protocol=self.protocol,
            is_new=True,
        )


class Table:
    """The table of the server that a message goes to or comes from, as it was before the message."""

    def __init__(self, protocol: str, server: str, look: Callable[[], dict[str, Any]]) -> None:
        self.protocol = protocol
        self.server = server
        self._look = look

    @cached_property
    def state(self) -> dict[str, Any]:
        """A copy of the state after all that was passed on so far, as `kiebitz state --json` shows it.

        It is looked at when it is first asked for, and costs nothing before.
        """
        return self._look()
