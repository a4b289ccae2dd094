"""Events with their related records as one player sees them: for filters in a player's view."""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.dissectors.filters import Row
from kiebitz.dissectors.model import Event, Message
from kiebitz.storage.read.message_queries import (
    VISIBLE_GROUPS,
    StoredDiagnostic,
    diagnostics_by_id,
    messages,
    placeholders,
)
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility


def seen_event_row(visibility: Visibility, event: Event, player: str, names: Mapping[int, str]) -> Row:
    """Return a visible event with the player's messages about it, and the diagnostics of their bytes."""
    timeline = visibility.timeline
    own = visibility.streams_of(player)
    rows = [row for row in messages(timeline, "m.event_id = ?", [event.id]) if row.stream.id in own]
    return Row(
        timeline.started_ns,
        rows,
        event,
        [diagnostic for row in rows for diagnostic in byte_diagnostics(timeline, row)],
        timeline.table(event.table_id),
        timeline.session.id,
        names,
    )


def byte_diagnostics(timeline: Timeline, row: Message) -> list[StoredDiagnostic]:
    """Return the diagnostics of a message's bytes."""
    condition = f"d.message_id = ? AND d.grp IN ({placeholders(VISIBLE_GROUPS)})"
    return [*diagnostics_by_id(timeline, condition, [row.id, *VISIBLE_GROUPS])]
