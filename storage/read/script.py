"""The replay script of a session: openings, messages with their bytes, and closings."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.replay.script import (
    RecordedLine,
    Script,
    ScriptStep,
    StreamClosing,
    StreamOpening,
    StreamRole,
)
from kiebitz.storage.read.recorded_bytes import RecordedBytes, RecordedFrames
from kiebitz.storage.read.timeline import Timeline


def script_of(timeline: Timeline) -> Script:
    """Return the whole session, held in memory, without streams of unknown protocol."""
    rows = timeline.connection.execute(
        "SELECT id, protocol, transport, client, server, opened_ns, closed_ns FROM streams"
        " WHERE session_id = ? AND protocol IS NOT NULL ORDER BY id",
        (timeline.session.id,),
    ).fetchall()
    roles = {row[0]: StreamRole(*row[:5]) for row in rows}
    marks: list[StreamOpening | StreamClosing] = [StreamOpening(roles[row[0]], row[5]) for row in rows]
    marks += [StreamClosing(roles[row[0]], row[6]) for row in rows if row[6] is not None]
    marks.sort(key=lambda mark: (mark.ts_ns, isinstance(mark, StreamClosing), mark.role.number))
    lines = list(_lines(timeline, roles))
    last = {line.role.number: line.number for line in lines}
    waiting = deque(marks)
    steps: list[ScriptStep] = []
    for line in lines:
        while waiting and _is_before(waiting[0], line, last):
            steps.append(waiting.popleft())
        steps.append(line)
    return Script(tuple(roles.values()), (*steps, *waiting))


def _is_before(mark: StreamOpening | StreamClosing, line: RecordedLine, last: dict[int, int]) -> bool:
    """Return True if a stream began or ended before a message; the order of bytes overrides times.

    `last` has each role's last message.
    """
    if isinstance(mark, StreamOpening):
        return mark.ts_ns <= line.ts_ns or mark.role is line.role
    return mark.ts_ns < line.ts_ns and last.get(mark.role.number, 0) < line.number


def _lines(timeline: Timeline, roles: dict[int, StreamRole]) -> Iterator[RecordedLine]:
    """Yield the messages in the order in which they were complete."""
    recorded = RecordedFrames(RecordedBytes(timeline.connection).between)
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.direction, m.ts_ns, m.name, m.offset, m.length, m.event_id"
        " FROM messages AS m JOIN streams AS s ON s.id = m.stream_id WHERE s.session_id = ? ORDER BY m.id",
        (timeline.session.id,),
    )
    for number, stream, direction, ts_ns, name, offset, length, event in rows:
        role = roles[stream]
        frame = recorded.frame(dissector_of(role.protocol), stream, direction, offset, length)
        is_whole = bool(frame.spans) or len(frame.data) == length
        yield RecordedLine(role, ts_ns, direction, number, name, frame.data, is_whole, event)
