"""Types of a hook: `kiebitz relay -s hooks.py` calls the functions of that file.

    def message(message, table):            for each message, before it is forwarded
        return message

    def connected(stream): ...              a client has connected
    def closed(stream): ...                 a connection has ended

`message` returns what is forwarded in its place: the message, a changed one, several, or none. Hooks run in a
process of their own. A hook works without imports; these names are for its annotations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import isfinite
from typing import Any, Self

import msgspec

from kiebitz.dissectors.model import OPPOSITE, Direction, Transport

__all__ = ["Message", "Stream", "Table"]

MAX_DELAY_S = 3600.0
"""Maximum delay of a message in seconds."""


class Stream(msgspec.Struct, frozen=True):
    """A TCP connection, or the addresses of a client and a server over UDP.

    `client` and `server` are `ip:port`; `id` is the number in listings. `player` is the name that the client
    has given, None before it does.
    """

    id: int
    transport: Transport
    client: str
    server: str
    player: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """An intercepted message; `direction` is `c2s` or `s2c`, `time` in seconds since 1970 UTC.

    `fields` has JSON values, as in `kiebitz messages --json`, and may be changed in place. `data` are the
    received bytes, empty if the hook has made the message (`is_new`). A message of unknown type is called
    `unreadable`. `delay` is the time in seconds before it is forwarded.
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
        """Return a copy with other values in these fields and the same spelling otherwise.

        A value is a JSON value as in `fields`, or its text in the protocol.
        """
        return msgspec.structs.replace(self, fields={**self.fields, **values})

    def also(self, name: str, /, **values: Any) -> Message:
        """Return a new message in the same direction of the same stream."""
        return self._new(name, self.direction, values)

    def reply(self, name: str, /, **values: Any) -> Message:
        """Return a new message to the sender of this one."""
        return self._new(name, OPPOSITE[self.direction], values)

    def later(self, seconds: float) -> Self:
        """Return the message with a delay of at most an hour; raise ValueError for any other."""
        if not (isfinite(seconds) and 0 <= seconds <= MAX_DELAY_S):
            raise ValueError(f"a message is kept back for 0 to {MAX_DELAY_S:g} seconds, not {seconds!r}")
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
    """The table of a message's server, as it was before the message."""

    def __init__(self, protocol: str, server: str, look: Callable[[], dict[str, Any]]) -> None:
        self.protocol = protocol
        self.server = server
        self._look = look

    @cached_property
    def state(self) -> dict[str, Any]:
        """A copy of the state after all messages forwarded so far, as in `kiebitz state --json`.

        It is computed on first use.
        """
        return self._look()
