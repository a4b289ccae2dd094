"""Inspection of a recorder's items, which turns them into rows, in this process or another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from kiebitz.dissectors.inspection.inspector import DecodeAs, Inspector
from kiebitz.dissectors.model import End, Event, Findings, Game, Ids, Item, Snapshot
from kiebitz.dissectors.registry import installed
from kiebitz.storage.recording.rows import Rows, empty_rows, gather


class Inspection(Protocol):
    """An inspection of one session's items."""

    on_full: Callable[[], object]
    """Called when the findings take much memory, also while an item is fed; gathers and writes them."""

    def feed(self, item: Item) -> None:
        """Process the next item."""

    def gather(self, rows: Rows) -> Findings:
        """Append the rows of all known findings to `rows`; return the findings held in this process."""

    def stop_soon(self) -> None:
        """Ignore further items, except ends, after the next message; signal handlers may use this."""

    def finish(self) -> None:
        """Signal the end of the items: `gather` returns the rest, or, while it `is_busy`, part of it."""

    @property
    def is_busy(self) -> bool:
        """True while an item is still being inspected elsewhere."""

    def close(self) -> None:
        """Release its resources."""


InspectionFactory = Callable[[int, Ids, DecodeAs], Inspection]
"""Factory of an inspection from the session's id, the last used ids, and forced protocols."""


class _Stopped(Exception):
    """Raised within an item to stop its inspection."""


class LocalInspection:
    """An inspection in this process, with findings available at once; `ids` are the last used ones."""

    def __init__(self, session_id: int, ids: Ids, decode_as: DecodeAs) -> None:
        self._session_id = session_id
        self._protocols: dict[int, str] = {}
        self._inspector = Inspector(installed().dissectors.values(), ids, decode_as)
        self._feed = self._inspector.feed
        self._inspector.on_full = self._write
        self._is_stopping = self._is_stopped = False
        self.on_full: Callable[[], object] = lambda: None

    def feed(self, item: Item) -> None:
        """Process the next item; once it is to stop, only the ends of streams."""
        if self._is_stopping:
            self._stop()
            if not isinstance(item, End):
                return
        try:
            self._feed(item)
        except _Stopped:
            self._stop()

    def stop_soon(self) -> None:
        """Stop after the next message; signal handlers may use this."""
        self._is_stopping = True
        self._inspector.call_on_full()

    def _stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            self._inspector.stop()

    def _write(self) -> None:
        self.on_full()
        if self._is_stopping and not self._is_stopped:
            raise _Stopped

    def gather(self, rows: Rows) -> Findings:
        """Append the rows of all findings since the last call to `rows`, and return the findings.

        A finding whose row cannot be made or stored ends its table's game, and is left out.
        """
        found = self._inspector.drain()
        made = empty_rows()
        try:
            gather(found, self._session_id, self._protocols, made)
        except Exception:
            found = self._storable(found)
            made = empty_rows()
            gather(found, self._session_id, self._protocols, made)
            # The diagnostics about what is left out.
            for kind, more in msgspec.structs.asdict(self.gather(made)).items():
                getattr(found, kind).extend(more)
        for table, columns in made.items():
            rows[table].extend(columns.columns)
        return found

    def _storable(self, found: Findings) -> Findings:
        """Return the findings that have rows; end the games of the others, from the first one on."""
        kept = Findings()
        ended: set[int] = set()
        for kind, findings in msgspec.structs.asdict(found).items():
            for finding in findings:
                table = finding.table_id if isinstance(finding, Event | Snapshot | Game) else None
                if table in ended:
                    # Later changes of the state build on those that are left out.
                    continue
                try:
                    gather(Findings(**{kind: [finding]}), self._session_id, self._protocols, empty_rows())
                except Exception as error:
                    if table is not None:
                        ended.add(table)
                    self._inspector.end_game(finding, error)
                else:
                    getattr(kept, kind).append(finding)
        lost = {event.id for event in found.events} - {event.id for event in kept.events}
        for message in kept.messages:
            if message.event_id in lost:
                message.event_id = None
        return kept

    @property
    def is_settled(self) -> bool:
        """True if the findings include all items so far, so that nothing is pending."""
        return self._inspector.is_settled

    def continue_as(self, session_id: int) -> None:
        """Assign all further rows to another session; requires that everything is settled and gathered."""
        self._session_id = session_id

    def finish(self) -> None:
        """Decide everything that is still undecided, and finish the tables."""
        if self._is_stopping:
            self._stop()
        with suppress(_Stopped):
            self._inspector.finish()

    @property
    def is_busy(self) -> bool:
        """Always False, as items are inspected at once."""
        return False

    def close(self) -> None:
        """Do nothing, as there are no resources."""
