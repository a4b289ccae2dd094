"""Rows as one player, or the public, sees them: filters in a player's view match these.

Otherwise a filter's matches would reveal what is hidden.

The messages of the public view: those that a server sent to all players of a game alike.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import PUBLIC, Event, Message, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.schema import GREATEST_ID
from kiebitz.storage.read.message_queries import (
    VISIBLE_GROUPS,
    StoredDiagnostic,
    diagnostics_by_id,
    messages,
    placeholders,
    visible_groups,
)
from kiebitz.storage.read.visibility import Visibility

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter, Predicate, Target


ALL_PLAYERS = "all players"
"""Receiver of a public message: its copies went to several connections, whose addresses are not public."""

NO_SUCH_MESSAGE = "the public view has only messages that the server sent to all players alike"


class PublicMessages:
    """The public messages of a session."""

    def __init__(self, visibility: Visibility) -> None:
        self._visibility = visibility
        self._latest: tuple[int, list[list[int]]] = (0, [])
        """An event and the copies that report it: of several in a row, most report the same."""

    def first_copy(self, row: Message) -> Message | None:
        """Return a message as the public view lists it; None if it is a further copy, or not public."""
        found = self.as_public(row)
        return found if any(copies[0] == row.id for copies in self._of_event(row.event_id)) else None

    def as_public(self, row: Message) -> Message | None:
        """Return a copy of a public message without its receiver; None for other messages."""
        if not any(row.id in copies for copies in self._of_event(row.event_id)):
            return None
        to_all = msgspec.structs.replace(row.stream, client=ALL_PLAYERS, player=None)
        return msgspec.structs.replace(row, stream=to_all)

    def _of_event(self, event_id: int | None) -> list[list[int]]:
        """Return the copies, oldest first, of each public message that reports an event."""
        if event_id is None:
            return []
        if event_id != self._latest[0]:
            self._latest = event_id, self._read(event_id)
        return self._latest[1]

    def _read(self, event_id: int) -> list[list[int]]:
        visibility = self._visibility
        timeline = visibility.timeline
        event = timeline.event(event_id)
        dissector = dissector_of(timeline.table(event.table_id).protocol) if event is not None else None
        public = visibility.seen(event, PUBLIC) if event is not None and dissector is not None else None
        if event is None or dissector is None or public is None:
            return []
        # A message contains all that its event does.
        if public.data != event.data and not dissector.identity.sees_own_dissection:
            return []
        copies: dict[str, list[tuple[int, int, str]]] = {}
        for name, number, stream, fields in timeline.connection.execute(
            "SELECT name, id, stream_id, fields FROM messages"
            " WHERE event_id = ? AND +direction = 's2c' ORDER BY id",
            (event_id,),
        ):
            copies.setdefault(name, []).append((number, stream, fields))
        present = visibility.others_present(event)
        return [
            [number for number, _, _ in sent]
            for name, sent in copies.items()
            if present <= {stream for _, stream, _ in sent}
            and _are_alike(dissector, name, [fields for _, _, fields in sent])
        ]


def _are_alike(dissector: Dissector, name: str, copies: Sequence[str]) -> bool:
    """Return True if all clients get the same fields (JSON) in a message, not only those recorded."""
    if name in dissector.identity.differing_copies or len({*copies}) > 1:
        return False
    row = dissector.grammar.row_of(name, "s2c", msgspec.json.decode(copies[0]))
    return row is not None and (row.broadcast or len(copies) > 1)


_MessageOrDiagnostic = TypeVar("_MessageOrDiagnostic", Message, StoredDiagnostic)


class SeenRows:
    """The rows of a player's view that pass a filter.

    Args:
        visibility: The players of the session.
        player: The player's label.
        wanted: The filter; None if all rows pass.
    """

    def __init__(self, visibility: Visibility, player: str, wanted: Filter | None) -> None:
        self._visibility = visibility
        self._player = player
        self._wanted = wanted
        self._public = PublicMessages(visibility) if player == PUBLIC else None
        self._compiled: dict[Target, Predicate] = {}

    def event(self, event: Event) -> Event | None:
        """Return a stored event as the player sees it; None if it is hidden or does not pass."""
        seen = self._visibility.seen(event, self._player)
        if seen is None or self._wanted is None:
            return seen
        own = self._visibility.streams_of(self._player)
        found = messages(self._visibility.timeline, "m.event_id = ?", [event.id])
        if self._public is not None:
            rows = [row for row in map(self._public.first_copy, found) if row is not None]
        else:
            rows = [row for row in found if row.stream.id in own]
        about = [diagnostic for row in rows for diagnostic in self._byte_diagnostics(row, seen)]
        table = self._visibility.timeline.table(event.table_id)
        return seen if self._passes("events", rows, seen, about, table) else None

    def message(self, row: Message) -> Message | None:
        """Return a message of the player as it sees it; None if it does not pass, or is not public."""
        if self._public is not None:
            public = self._public.first_copy(row)
            if public is None:
                return None
            row = public
        event = self._event_of(row)
        seen = _with_event(row, event)
        if self._wanted is None:
            return seen
        return seen if self._passes("messages", [seen], event, self._byte_diagnostics(row, event)) else None

    def diagnostic(self, row: StoredDiagnostic) -> StoredDiagnostic | None:
        """Return a diagnostic of the player's bytes as it sees it; None if it does not pass."""
        event = self._event_of(row)
        seen = _with_event(row, event)
        if self._wanted is None:
            return seen
        about: list[Message] = []
        if row.message_id is not None:
            found = messages(self._visibility.timeline, "m.id = ?", [row.message_id], row.message_id - 1)
            about = [_with_event(message, event) for message in found]
        return seen if self._passes("diagnostics", about, event, [seen]) else None

    def _event_of(self, row: Message | StoredDiagnostic) -> Event | None:
        if row.event_id is None:
            return None
        event = self._visibility.timeline.event(row.event_id)
        return self._visibility.seen(event, self._player) if event is not None else None

    def _byte_diagnostics(self, row: Message, event: Event | None) -> list[StoredDiagnostic]:
        """Return the diagnostics of a message's bytes, with the event if it is visible."""
        groups = visible_groups(self._player)
        condition = f"d.message_id = ? AND d.grp IN ({placeholders(groups)})"
        found = diagnostics_by_id(self._visibility.timeline, condition, [row.id, *groups])
        return [_with_event(diagnostic, event) for diagnostic in found]

    def _passes(
        self,
        target: Target,
        about: Sequence[Message],
        event: Event | None,
        diagnostics: Sequence[StoredDiagnostic],
        table: TableInfo | None = None,
    ) -> bool:
        from kiebitz.dissectors.filters import Row

        assert self._wanted is not None
        timeline = self._visibility.timeline
        passes = self._compiled.get(target)
        if passes is None:
            passes = self._compiled[target] = self._wanted.predicate(target, timeline.numbers)
        row = Row(timeline.started_ns, about, event, diagnostics, table, timeline.session.id)
        return passes(row)


class DiagnosticNumbers:
    """The numbers of the diagnostics in a player's view, from 1: ids depend on those of other connections."""

    def __init__(self, visibility: Visibility, player: str) -> None:
        rows = visibility.timeline.connection.execute(
            "SELECT id FROM diagnostics WHERE stream_id IN (SELECT value FROM json_each(?))"
            f" AND grp IN ({placeholders(VISIBLE_GROUPS)}) ORDER BY id",
            (to_json(sorted(visibility.streams_of(player))), *VISIBLE_GROUPS),
        )
        self._ids = array("q", (row_id for (row_id,) in rows))

    def number(self, row_id: int) -> int:
        """Return the number of a diagnostic of this view."""
        return bisect_left(self._ids, row_id) + 1

    def row_id(self, number: int) -> int:
        """Return the id of a diagnostic; before the first one 0, beyond the last one the greatest."""
        if number < 1:
            return 0
        return self._ids[number - 1] if number <= len(self._ids) else GREATEST_ID


def _with_event(row: _MessageOrDiagnostic, event: Event | None) -> _MessageOrDiagnostic:
    """Return a row without its event if that is hidden."""
    return msgspec.structs.replace(row, event_id=event.id if event is not None else None)
