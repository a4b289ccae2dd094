"""A recorded session as a script: the messages of all streams in one order."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.model import Direction, Transport


class StreamRole(msgspec.Struct, frozen=True):
    """A recorded stream, by its number in the database, with its client and server."""

    number: int
    protocol: str
    transport: Transport
    client: str
    server: str

    @property
    def server_key(self) -> str:
        """A key that identifies the role's server."""
        return f"{self.transport} {self.server}"


class StreamOpening(msgspec.Struct, frozen=True):
    """The start of a stream: the client connects to the server."""

    role: StreamRole
    ts_ns: int


class RecordedLine(msgspec.Struct, frozen=True):
    """A recorded message, by its number in the database, with its bytes.

    One that is not `whole` lacks bytes that are not in the capture. `event_id` is the event that it reports.
    """

    role: StreamRole
    ts_ns: int
    direction: Direction
    number: int
    name: str
    data: bytes
    whole: bool
    event_id: int | None


class StreamClosing(msgspec.Struct, frozen=True):
    """The end of a stream."""

    role: StreamRole
    ts_ns: int


ScriptStep = StreamOpening | RecordedLine | StreamClosing


class Script(msgspec.Struct, frozen=True):
    """The steps in the order of the record; each role's first is its opening and its last its closing."""

    roles: tuple[StreamRole, ...]
    steps: tuple[ScriptStep, ...]

    @property
    def servers(self) -> list[StreamRole]:
        """The first role of each server, in order of appearance."""
        first: dict[str, StreamRole] = {}
        for role in self.roles:
            first.setdefault(role.server_key, role)
        return list(first.values())

    def only(self, roles: set[int]) -> Script:
        """Return the part of the script that these roles play."""
        return Script(
            tuple(role for role in self.roles if role.number in roles),
            tuple(step for step in self.steps if step.role.number in roles),
        )
