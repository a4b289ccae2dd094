"""A journal writer for sources of items (a sniffer) rather than of records (a relay)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kiebitz.dissectors.model import Altered, Chunk, End, Fault, Gap, Item, Stream
from kiebitz.proxy.journal.writer import FaultDetails, JournalWriter


class ItemWriter:
    """Writes items to `journal`, which numbers their streams itself."""

    def __init__(self, journal: JournalWriter) -> None:
        self.journal = journal
        self._numbers: dict[Stream, int] = {}

    def write(self, items: Iterable[Item]) -> None:
        """Write items in order; the first item of a stream opens it."""
        for item in items:
            stream = item.stream
            number = self._numbers.get(stream)
            if number is None:
                number = self._numbers[stream] = self.journal.open(
                    stream.transport, stream.client, stream.server, stream.opened_ns
                )
            self._write(number, item)

    def _write(self, number: int, item: Item) -> None:
        journal = self.journal
        if isinstance(item, Chunk):
            if item.missing:
                journal.cut(number, item.direction, item.ts_ns, item.offset, item.data, item.missing)
            else:
                journal.chunk(number, item.direction, item.ts_ns, item.offset, item.data)
        elif isinstance(item, Gap):
            journal.gap(number, item.direction, item.ts_ns, item.offset, item.length)
        elif isinstance(item, Fault):
            details = FaultDetails(*msgspec.structs.astuple(item)[4:])
            journal.detailed_fault(number, item.direction, item.ts_ns, item.offset, details)
        elif isinstance(item, End):
            journal.end(number, item.ts_ns, item.reason)
            del self._numbers[item.stream]
        else:
            assert not isinstance(item, Altered), "only a relay alters, and it writes records"
