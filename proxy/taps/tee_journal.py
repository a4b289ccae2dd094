"""The journal of a tapped relay: each record is also written to a second journal, which is published.

Both have their own reader, limits and errors: if one is full, the other continues.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kiebitz.dissectors.model import Direction, Transport
from kiebitz.proxy.alterer import Mark
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.taps.wire_format import MAX_DATA


class TeeJournal(JournalWriter):
    """A writer for the journal in `directory` and for `tap`; streams have the same numbers in both."""

    def __init__(
        self,
        directory: Path,
        tap: JournalWriter,
        *,
        on_trouble: Callable[[str], None],
        has_room: Callable[[], bool],
    ) -> None:
        super().__init__(directory, on_trouble=on_trouble, has_room=has_room)
        self._tap = tap

    def open(self, transport: Transport, client: str, server: str, ts_ns: int) -> int:
        self._tap.open(transport, client, server, ts_ns)
        return super().open(transport, client, server, ts_ns)

    def chunk(self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes) -> None:
        """Write bytes to both; the tap's journal gets them in pieces that fit into one message."""
        for start in range(0, len(data) or 1, MAX_DATA):
            self._tap.chunk(number, direction, ts_ns, offset + start, data[start : start + MAX_DATA])
        super().chunk(number, direction, ts_ns, offset, data)

    def fault(self, number: int, direction: Direction, ts_ns: int, offset: int, code: str, text: str) -> None:
        self._tap.fault(number, direction, ts_ns, offset, code, text)
        super().fault(number, direction, ts_ns, offset, code, text)

    def altered(
        self, number: int, direction: Direction, ts_ns: int, offset: int, length: int, mark: Mark
    ) -> None:
        self._tap.altered(number, direction, ts_ns, offset, length, mark)
        super().altered(number, direction, ts_ns, offset, length, mark)

    def end(self, number: int, ts_ns: int, reason: str) -> None:
        self._tap.end(number, ts_ns, reason)
        super().end(number, ts_ns, reason)

    def flush(self) -> None:
        self._tap.flush()
        super().flush()

    def close(self) -> None:
        self._tap.close()
        super().close()
