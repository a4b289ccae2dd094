"""What a session has on a flaw: its stream, its bytes, what was done to it, and what came after it."""

from __future__ import annotations

from typing import Any

from kiebitz.services.evidence.excerpt import ROOM, Line, datagram_excerpt, looked_at, stream_excerpt
from kiebitz.storage.read.alterations import AlteredMessages, StoredAlteration
from kiebitz.storage.read.message_queries import ResumptionFinder, StoredDiagnostic
from kiebitz.storage.read.players import name_of_stream
from kiebitz.storage.read.recorded_bytes import ByteRange, RecordedBytes
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.listing_records import ListedDiagnostic
from kiebitz.storage.session.session import diagnostic_numbers, project

_MARKED = 256
"""Programs get at most so many of the bytes that are wrong."""


class Evidence:
    """Looks up what belongs to a session's flaws."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._bytes = RecordedBytes(timeline.connection)
        self._reading_on = ResumptionFinder(timeline)
        self._name_of = name_of_stream(timeline)
        self._altered = AlteredMessages(timeline)

    def player(self, flaw: StoredDiagnostic) -> str | None:
        """What the client calls itself; None if it has not said so."""
        return self._name_of(flaw.stream.id)

    def alteration(self, flaw: StoredDiagnostic) -> StoredAlteration | None:
        """What Kiebitz has done to the message; None if nothing."""
        return None if flaw.message_id is None else self._altered.of(flaw.message_id)

    def is_in_datagram(self, flaw: StoredDiagnostic) -> bool:
        return flaw.stream.transport == "udp"

    def listed(self, flaw: StoredDiagnostic) -> ListedDiagnostic:
        """Return a flaw with its stream, its bytes and the offset at which parsing resumed."""
        altered = self.alteration(flaw)
        resumed_offset, resumed_message = self.resumption(flaw)
        return project(
            ListedDiagnostic,
            flaw,
            **diagnostic_numbers(self.timeline, flaw),
            client=flaw.stream.client,
            player=self.player(flaw),
            server=flaw.stream.server,
            marked=self.marked(flaw),
            lines=self.lines(flaw),
            resumed_offset=resumed_offset,
            resumed_message=resumed_message,
            altered=None if altered is None else altered.action,
        )

    def excerpt(self, flaw: StoredDiagnostic, room: int = ROOM) -> list[Line]:
        """What was sent there, with carets; nothing where no bytes belong to it."""
        if self.is_in_datagram(flaw):
            found = self._bytes.datagram(flaw)
            return datagram_excerpt(*found, flaw.offset, flaw.length, room) if found is not None else []
        stretches: list[ByteRange] = []
        for start, end in looked_at(flaw.offset, flaw.length):
            near = self._bytes.between(flaw.stream.id, flaw.direction, start, end)
            stretches += [stretch for stretch in near if stretch not in stretches]
        if not stretches:
            return []
        return stream_excerpt(stretches, flaw.offset, flaw.length, flaw.message_offset, room)

    def lines(self, flaw: StoredDiagnostic) -> list[dict[str, Any]]:
        """The lines of that, for programs."""
        return [
            {"offset": line.offset, "text": line.text + line.line_end}
            for line in self.excerpt(flaw)
            if line.offset is not None
        ]

    def marked(self, flaw: StoredDiagnostic) -> bytes | None:
        """The bytes that are wrong, up to a gap, and not too many; None if they are not there."""
        size = min(flaw.length, _MARKED)
        if self.is_in_datagram(flaw):
            found = self._bytes.datagram(flaw)
            if found is None:
                return None
            start, data = found
            return data[flaw.offset - start : flaw.offset - start + size]
        if not size:
            return b""
        stretches = self._bytes.between(flaw.stream.id, flaw.direction, flaw.offset, flaw.offset + size)
        pieces = (stretch.data for stretch in stretches if stretch.offset == flaw.offset)
        return next((data for data in pieces if data is not None), None)

    def resumption(self, flaw: StoredDiagnostic) -> tuple[int, str] | tuple[None, None]:
        """Offset and name of the message with which parsing resumed."""
        return self._reading_on.after(flaw) or (None, None)
