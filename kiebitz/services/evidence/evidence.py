"""The evidence of a diagnostic: its stream, its bytes, an alteration, and where parsing resumed."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.grammar import Place, replaced
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.evidence.excerpt import (
    MAX_CELLS,
    Line,
    datagram_excerpt,
    ranges_to_read,
    stream_excerpt,
)
from kiebitz.storage.read.alterations import AlteredMessages, StoredAlteration
from kiebitz.storage.read.message_queries import ResumptionFinder, StoredDiagnostic
from kiebitz.storage.read.recorded_bytes import ByteRange, RecordedBytes, RecordedFrames
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.listing_records import ListedDiagnostic
from kiebitz.storage.session.session import diagnostic_numbers, project

_MARKED = 256
"""Maximum number of marked bytes in output for programs."""


class Evidence:
    """Looks up the evidence of a session's diagnostics."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._bytes = RecordedBytes(timeline.connection)
        self._frames = RecordedFrames(self._bytes.between)
        self._reading_on = ResumptionFinder(timeline)
        self._altered = AlteredMessages(timeline)

    def alteration(self, diagnostic: StoredDiagnostic) -> StoredAlteration | None:
        """Return the alteration of the message by Kiebitz, if any."""
        return None if diagnostic.message_id is None else self._altered.of(diagnostic.message_id)

    def is_in_datagram(self, diagnostic: StoredDiagnostic) -> bool:
        """Return True if the diagnostic is about a datagram."""
        return diagnostic.stream.transport == "udp"

    def listed(self, diagnostic: StoredDiagnostic) -> ListedDiagnostic:
        """Return a diagnostic with its stream, its bytes and the offset at which parsing resumed."""
        altered = self.alteration(diagnostic)
        resumed_offset, resumed_message = self.resumption(diagnostic)
        return project(
            ListedDiagnostic,
            diagnostic,
            **diagnostic_numbers(self.timeline, diagnostic),
            client=diagnostic.stream.client,
            player=diagnostic.stream.player,
            server=diagnostic.stream.server,
            marked=self.marked(diagnostic),
            lines=self.lines(diagnostic),
            resumed_offset=resumed_offset,
            resumed_message=resumed_message,
            altered=None if altered is None else altered.action,
        )

    def excerpt(self, diagnostic: StoredDiagnostic, room: int = MAX_CELLS) -> list[Line]:
        """Return the bytes around a diagnostic with carets; nothing if no bytes belong to it."""
        if self.is_in_datagram(diagnostic):
            found = self._bytes.datagram(diagnostic)
            return (
                datagram_excerpt(*found, diagnostic.offset, diagnostic.length, room)
                if found is not None
                else []
            )
        stretches: list[ByteRange] = []
        for start, end in ranges_to_read(diagnostic.offset, diagnostic.length):
            near = self._readable(
                diagnostic, self._bytes.between(diagnostic.stream.id, diagnostic.direction, start, end)
            )
            stretches += [stretch for stretch in near if stretch not in stretches]
        if not stretches:
            return []
        return stream_excerpt(
            stretches, diagnostic.offset, diagnostic.length, diagnostic.message_offset, room
        )

    def _readable(self, diagnostic: StoredDiagnostic, ranges: list[ByteRange]) -> list[ByteRange]:
        """Return bytes with those of the diagnostic's message as they are in its frame: without a mask."""
        dissector = dissector_of(diagnostic.stream.protocol)
        begin, length = diagnostic.message_offset, diagnostic.message_length
        if dissector is None or dissector.encapsulation is None or begin is None or length is None:
            return ranges
        frame = self._frames.frame(dissector, diagnostic.stream.id, diagnostic.direction, begin, length)
        return [
            each if each.data is None else ByteRange(each.offset, each.length, _overlaid(each, begin, frame))
            for each in ranges
        ]

    def lines(self, diagnostic: StoredDiagnostic) -> list[dict[str, Any]]:
        """Return the lines of the excerpt for programs."""
        return [
            {"offset": line.offset, "text": line.text + line.line_end}
            for line in self.excerpt(diagnostic)
            if line.offset is not None
        ]

    def marked(self, diagnostic: StoredDiagnostic) -> bytes | None:
        """Return the invalid bytes, up to a gap or the maximum; None if they are missing."""
        size = min(diagnostic.length, _MARKED)
        if self.is_in_datagram(diagnostic):
            found = self._bytes.datagram(diagnostic)
            if found is None:
                return None
            start, data = found
            return data[diagnostic.offset - start : diagnostic.offset - start + size]
        if not size:
            return b""
        stretches = self._bytes.between(
            diagnostic.stream.id, diagnostic.direction, diagnostic.offset, diagnostic.offset + size
        )
        pieces = (stretch.data for stretch in stretches if stretch.offset == diagnostic.offset)
        return next((data for data in pieces if data is not None), None)

    def resumption(self, diagnostic: StoredDiagnostic) -> tuple[int, str] | tuple[None, None]:
        """Return offset and name of the message at which parsing resumed."""
        return self._reading_on.after(diagnostic) or (None, None)


def _overlaid(stretch: ByteRange, begin: int, frame: Frame) -> bytes:
    """Return bytes of a stream with those of the frame of a message at offset `begin` in their places."""
    assert stretch.data is not None
    places: dict[Place, bytes] = {}
    for position, distance, size in frame.spans:
        start = begin + distance
        first = max(start, stretch.offset)
        last = min(start + size, stretch.offset + len(stretch.data))
        if first < last:
            at = position - start
            places[first - stretch.offset, last - first] = frame.data[first + at : last + at]
    return replaced(stretch.data, places)
