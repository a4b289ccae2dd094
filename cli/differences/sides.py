"""The two sides of a comparison, the texts for their events, and their difference as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.diff.result import Difference
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Event, Game, TableInfo
from kiebitz.storage.read.message_queries import StoredDiagnostic, diagnostics_numbered
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.session import Diagnostic, diagnostic_numbers, project

_LONGEST = 160
"""Maximum length of a sentence (characters)."""


class Side:
    """A compared session; `label` is A or B, `title` the user's argument."""

    def __init__(self, timeline: Timeline, label: str, title: str) -> None:
        self.timeline = timeline
        self.label = label
        self.title = title
        self.numbers = timeline.numbers
        # Slow to import.
        from kiebitz.cli.spectator.view import SpectatorView

        self.spectator_view = SpectatorView(timeline, None)

    def event(self, number: int) -> Event:
        """Return an event by its id."""
        return next(self.timeline.events("e.id = ?", [number]))

    def diagnostic(self, number: int) -> StoredDiagnostic:
        """Return a diagnostic by its id."""
        return next(diagnostics_numbered(self.timeline, [number]))

    def diagnostic_text(self, diagnostic: StoredDiagnostic) -> str:
        """Return the message, or else the stream, the time and the text of a diagnostic, shortened."""
        if diagnostic.message_id is not None:
            place = f"message #{self.numbers.number('messages', diagnostic.message_id)}"
        else:
            place = f"stream {self.numbers.number('streams', diagnostic.stream.id)}"
        seconds = self.timeline.seconds(diagnostic.ts_ns)
        return f"{place}  {seconds:.3f}s  {shortened(diagnostic.text, _LONGEST)}"

    def diagnostic_json(self, number: int | None) -> dict[str, Any] | None:
        """Return a diagnostic as JSON."""
        if number is None:
            return None
        found = self.diagnostic(number)
        numbers = diagnostic_numbers(self.timeline, found)
        return msgspec.structs.asdict(project(Diagnostic, found, **numbers))

    def name(self, event: Event) -> str:
        """Return an event's number, as in #7."""
        return f"#{self.numbers.number('events', event.id)}"

    def sentence(self, event: Event) -> str:
        """Return an event's sentence, shortened."""
        return shortened(self.spectator_view.sentence(event), _LONGEST)

    def event_text(self, event: Event) -> str:
        """Return time and sentence of an event."""
        return f"{self.spectator_view.seconds(event):9.3f}s  {self.sentence(event)}"

    def reference(self, event: Event) -> dict[str, Any]:
        """Return an event as JSON."""
        return {
            "number": self.numbers.number("events", event.id),
            "id": event.id,
            "time": self.spectator_view.seconds(event),
            "sentence": self.spectator_view.sentence(event),
            **_values(event, "kind", "actor", "data"),
        }


class Sides(NamedTuple):
    """Both sessions."""

    a: Side
    b: Side


def sides(a: Timeline, b: Timeline, title_a: str, title_b: str) -> Sides:
    """Return both sides, titled with the user's arguments."""
    return Sides(Side(a, "A", title_a), Side(b, "B", title_b))


def difference_json(difference: Difference, both: Sides) -> dict[str, Any]:
    """Return all differences; `a` and `b` are the two sides, null if missing."""
    events_a = _references(both.a, [one.a for one in difference.events])
    events_b = _references(both.b, [one.b for one in difference.events])
    return {
        "equal": difference.equal,
        "same": difference.same,
        "tables": [
            {
                "a": _table(pair.a),
                "b": _table(pair.b),
                "events": {"a": pair.events[0], "b": pair.events[1]},
                "players_by": pair.matching,
                "players": [_values(player, "a", "b") for player in pair.players],
            }
            for pair in difference.tables
        ],
        "games": [
            {
                "table": pair.table,
                "a": _game(both.a, pair.a),
                "b": _game(both.b, pair.b),
                "events": {"a": pair.events[0], "b": pair.events[1]},
            }
            for pair in difference.games
        ],
        "differences": [
            {
                **_values(one, "sort", "table", "game", "kind", "fields"),
                "a": events_a[one.a] if one.a is not None else None,
                "b": events_b[one.b] if one.b is not None else None,
            }
            for one in difference.events
        ],
        "messages": [
            {
                **_values(one, "table", "direction", "name", "sort", "fields", "count"),
                "a": both.a.numbers.number_if_any("messages", one.a),
                "b": both.b.numbers.number_if_any("messages", one.b),
            }
            for one in difference.messages
        ],
        "conversations": [
            {
                **_values(one, "table", "player"),
                "a": _streams(both.a, one.a),
                "b": _streams(both.b, one.b),
            }
            for one in difference.conversations
        ],
        "diagnostics": [
            {
                **_values(one, "sort", "table", "severity", "code", "blame", "name"),
                "a": both.a.diagnostic_json(one.a),
                "b": both.b.diagnostic_json(one.b),
            }
            for one in difference.diagnostics
        ],
    }


def _references(side: Side, ids: list[int | None]) -> dict[int, dict[str, Any]]:
    """Return events by id, in one pass, which is faster than single queries."""
    wanted = {number for number in ids if number is not None}
    return {event.id: side.reference(event) for event in side.timeline.events() if event.id in wanted}


def _table(row: TableInfo | None) -> dict[str, Any] | None:
    return None if row is None else _values(row, "id", "protocol", "server")


def _game(side: Side, row: Game | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"number": side.numbers.number("games", row.id), **_values(row, "id", "label", "result")}


def _values(record: msgspec.Struct, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _streams(side: Side, ids: Sequence[int]) -> list[int]:
    return [side.numbers.number("streams", one) for one in ids]
