"""The messages of the public view: those that a server sent to all players of a game alike."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import PUBLIC, Message
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.visibility import Visibility

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
        return msgspec.structs.replace(row, stream=msgspec.structs.replace(row.stream, client=ALL_PLAYERS))

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
        event = next(timeline.events("e.id = ?", [event_id]), None)
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
