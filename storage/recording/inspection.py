"""Where a recorder's items become rows: here, or where else an `Inspection` has them made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kiebitz.dissectors.inspection.inspector import DecodeAs, Inspector
from kiebitz.dissectors.model import Findings, Ids, Item
from kiebitz.dissectors.registry import installed
from kiebitz.storage.recording.rows import Rows, gather


class Inspection(Protocol):
    """Takes the items of one session, and gives the rows of what was found."""

    def feed(self, item: Item) -> None:
        """Take the next item."""

    def gather(self, rows: Rows) -> Findings:
        """Append to `rows` what was found and is known by now; give what of it is in this process."""

    def finish(self) -> None:
        """Nothing more comes: the next `gather` has all there is, or, while it `is_busy`, some more of it."""

    @property
    def is_busy(self) -> bool:
        """Whether something that was fed is still being inspected elsewhere."""

    def close(self) -> None:
        """Give back whatever it holds."""


Inspect = Callable[[int, Ids, DecodeAs], Inspection]
"""Makes an inspection: the session's number, the numbering that goes on, the protocols that are known."""


class InspectionHere:
    """In this process: all that was found is there at once. `ids` carries on the database's numbering."""

    def __init__(self, session_id: int, ids: Ids, decode_as: DecodeAs) -> None:
        self._session_id = session_id
        self._protocols: dict[int, str] = {}
        self._inspector = Inspector(installed().dissectors.values(), ids, decode_as)
        self.feed = self._inspector.feed

    def gather(self, rows: Rows) -> Findings:
        """Append to `rows` what was found since the last time, and give it."""
        found = self._inspector.drain()
        gather(found, self._session_id, self._protocols, rows)
        return found

    @property
    def is_settled(self) -> bool:
        """Whether all that came is in what was found, so that nothing reaches over from here."""
        return self._inspector.is_settled

    def go_on_as(self, session_id: int) -> None:
        """From here on, all being settled and gathered, make rows of the session that this one goes on as."""
        self._session_id = session_id

    def finish(self) -> None:
        """Nothing more comes: decide what is undecided, and let the tables give their last verdicts."""
        self._inspector.finish()

    @property
    def is_busy(self) -> bool:
        """Never: nothing is inspected elsewhere."""
        return False

    def close(self) -> None:
        """There is nothing to give back."""
