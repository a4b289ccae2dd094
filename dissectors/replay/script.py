"""A recorded session as a script: the messages of all streams in one order."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kiebitz.dissectors.dissector import Dissector
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


def names_of_roles(script: Script, dissectors: Mapping[str, Dissector]) -> dict[int, set[str]]:
    """Return all names of each role's client, by the role's number; numbers are given as text."""
    names: dict[int, set[str]] = {role.number: set() for role in script.roles}
    introduced: dict[int, str] = {}
    for step in script.steps:
        if not isinstance(step, RecordedLine):
            continue
        number = step.role.number
        introduces = step.direction == "c2s" and introduced.get(number, step.name) == step.name
        dissector = dissectors[step.role.protocol]
        rows = dissector.grammar.rows_named(step.direction, step.name)
        if not introduces and not any(row.is_generated for row in rows):
            continue
        decoded = dissector.codec.decode(step.data, step.direction)
        if decoded.row is None:
            continue
        fresh = {field.name for field in decoded.row.fields if field.generated}
        fields = (
            decoded.fields
            if introduces
            else {name: decoded.fields[name] for name in fresh & decoded.fields.keys()}
        )
        named = decoded.row.identifiers(fields)
        # An identifier that is valid in one conversation only, such as a token, is no player's name.
        found = {str(name) for handle, name in named if not handle.per_stream}
        if found and introduces:
            introduced[number] = step.name
        names[number] |= found
    return names
