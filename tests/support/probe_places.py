"""Recorded games as setups of cases of `kiebitz probe`, and diagnostics for one changed message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from cleanup import close_after_test
from imported_databases import database_of

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, Situation, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Diagnostic, Direction, Findings, Ids, Stream
from kiebitz.dissectors.registry import dissector_of


class Line(NamedTuple):
    """A recorded message: which protocol it is of, and its bytes."""

    dissector: Dissector
    stream: Stream
    direction: Direction
    ts_ns: int
    frame: bytes


class Place(NamedTuple):
    """A place for a case: the number of its message, and what is around it."""

    number: int
    decoded: Decoded
    situation: Situation


@cache
def lines_of(name: str) -> tuple[Line, ...]:
    """Return the messages of a capture, in the order in which they came."""
    connection = close_after_test(open_session(database_of(name)).connection)
    sent: dict[tuple[int, str], bytearray] = {}
    for stream, direction, offset, data in connection.execute(
        "SELECT stream_id, direction, offset, data FROM chunks WHERE data IS NOT NULL ORDER BY id"
    ):
        told = sent.setdefault((stream, direction), bytearray())
        told += bytes(offset - len(told)) + data
    streams = {
        number: (Stream(number, transport, client, server, 0), protocol)
        for number, transport, client, server, protocol in connection.execute(
            "SELECT id, transport, client, server, protocol FROM streams"
        )
    }
    lines = []
    for number, direction, offset, length, ts_ns in connection.execute(
        "SELECT stream_id, direction, offset, length, ts_ns FROM messages ORDER BY id"
    ):
        stream, protocol = streams[number]
        dissector = dissector_of(protocol)
        assert dissector is not None
        frame = bytes(sent[number, direction][offset : offset + length])
        lines.append(Line(dissector, stream, direction, ts_ns, frame))
    return tuple(lines)


class Told:
    """Goes through lines, and knows what the table knows after each."""

    def __init__(self, dissector: Dissector) -> None:
        self._inspector = Inspector([dissector], Ids())
        self._ends: dict[tuple[int, Direction], int] = {}
        self._tables: dict[int, str] = {}
        self.states: dict[str, State] = {}
        """The state of each server's table."""

    def says(self, line: Line) -> list[Diagnostic]:
        """Return the expected diagnostics of the next line."""
        key = (line.stream.id, line.direction)
        offset = self._ends.get(key, 0)
        self._ends[key] = offset + len(line.frame)
        self._inspector.feed(Chunk(line.stream, line.direction, line.ts_ns, offset, line.frame))
        return self._take(self._inspector.drain())

    def ends(self) -> list[Diagnostic]:
        """Return the expected diagnostics at the end."""
        self._inspector.finish()
        return self._take(self._inspector.drain())

    def _take(self, found: Findings) -> list[Diagnostic]:
        self._tables |= {table.id: table.server for table in found.tables}
        for event in found.events:
            apply(self.states.setdefault(self._tables[event.table_id], {}), event.changes)
        return found.diagnostics


@cache
def places_of(name: str, role: TargetRole) -> tuple[Place, ...]:
    """Return the places of a capture at which a program of a role is sent something."""
    return tuple(_places(lines_of(name), INPUT_DIRECTION[role]))


def _places(lines: Sequence[Line], direction: Direction) -> Iterator[Place]:
    told = Told(lines[0].dissector)
    names: dict[int, str] = {}
    named: dict[int, dict[IdentifierKind, dict[object, None]]] = {}
    for number, line in enumerate(lines):
        dissector = line.dissector
        decoded = dissector.codec.decode(line.frame, line.direction)
        if decoded.row is not None and decoded.valid:
            if line.direction == direction:
                yield Place(number, decoded, _situation(lines, number, told, names, named))
            for handle, value in decoded.row.identifiers(decoded.fields):
                if value is not None:
                    named.setdefault(line.stream.id, {}).setdefault(handle, {})[value] = None
            called = dissector.identity.introduced(decoded.row.name, line.direction, decoded.fields)
            if called is not None:
                names.setdefault(line.stream.id, called)
        told.says(line)


def _situation(
    lines: Sequence[Line],
    number: int,
    told: Told,
    names: dict[int, str],
    named: dict[int, dict[IdentifierKind, dict[object, None]]],
) -> Situation:
    line = lines[number]
    following, waits = None, False
    for later in lines[number + 1 :]:
        if later.stream == line.stream:
            if later.direction == line.direction:
                following = later.frame
                break
            waits = True
    others: dict[IdentifierKind, list[object]] = {}
    for stream, handles in named.items():
        for handle, values in handles.items() if stream != line.stream.id else ():
            others.setdefault(handle, []).extend(values)
    state: State = {}
    apply(state, [([key], value) for key, value in _copy(told.states.get(line.stream.server, {})).items()])
    return Situation(line.frame, following, waits, state, names.get(line.stream.id), others)


def _copy(state: State) -> State:
    return {key: _copy(part) if isinstance(part, dict) else part for key, part in state.items()}


def judged_with(
    lines: Sequence[Line], number: int, frame: bytes, further: int, answer: bytes | None = None
) -> list[Diagnostic]:
    """Return the table's diagnostics if another frame replaces a line and its copies in other conversations.

    Only those for that line and a limited number of later ones are returned. An `answer` of the peer follows
    it
    at once.
    """
    line = lines[number]
    told = Told(line.dissector)
    for each in lines[:number]:
        told.says(each)
    found = told.says(line._replace(frame=frame))
    if answer is not None:
        away: Direction = "s2c" if line.direction == "c2s" else "c2s"
        found += told.says(line._replace(frame=answer, direction=away))
    for each in lines[number + 1 : number + 1 + further]:
        is_copy = each.frame == line.frame and each.direction == line.direction == "s2c"
        is_copy = is_copy and each.stream is not line.stream
        found += told.says(each._replace(frame=frame) if is_copy else each)
    return found + told.ends()
