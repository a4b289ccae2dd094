"""Inspection of a recorder's items, which turns them into rows, in this process or another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kiebitz.dissectors.inspection.inspector import DecodeAs, Inspector
from kiebitz.dissectors.model import Findings, Ids, Item
from kiebitz.dissectors.registry import installed
from kiebitz.storage.recording.rows import Rows, gather


class Inspection(Protocol):
    """An inspection of one session's items."""

    def feed(self, item: Item) -> None:
        """Process the next item."""

    def gather(self, rows: Rows) -> Findings:
        """Append the rows of all known findings to `rows`; return the findings held in this process."""

    def finish(self) -> None:
        """Signal the end of the items: `gather` returns the rest, or, while it `is_busy`, part of it."""

    @property
    def is_busy(self) -> bool:
        """True while an item is still being inspected elsewhere."""

    def close(self) -> None:
        """Release its resources."""


InspectionFactory = Callable[[int, Ids, DecodeAs], Inspection]
"""Factory of an inspection from the session's id, the last used ids, and forced protocols."""


class LocalInspection:
    """An inspection in this process, with findings available at once; `ids` are the last used ones."""

    def __init__(self, session_id: int, ids: Ids, decode_as: DecodeAs) -> None:
        self._session_id = session_id
        self._protocols: dict[int, str] = {}
        self._inspector = Inspector(installed().dissectors.values(), ids, decode_as)
        self.feed = self._inspector.feed

    def gather(self, rows: Rows) -> Findings:
        """Append the rows of all findings since the last call to `rows`, and return the findings."""
        found = self._inspector.drain()
        gather(found, self._session_id, self._protocols, rows)
        return found

    @property
    def is_settled(self) -> bool:
        """True if the findings include all items so far, so that nothing is pending."""
        return self._inspector.is_settled

    def continue_as(self, session_id: int) -> None:
        """Assign all further rows to another session; requires that everything is settled and gathered."""
        self._session_id = session_id

    def finish(self) -> None:
        """Decide everything that is still undecided, and finish the tables."""
        self._inspector.finish()

    @property
    def is_busy(self) -> bool:
        """Always False, as items are inspected at once."""
        return False

    def close(self) -> None:
        """Do nothing, as there are no resources."""
