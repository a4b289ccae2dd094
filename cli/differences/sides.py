"""The two sides of a comparison, and the texts for their events."""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Event
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
            "kind": event.kind,
            "actor": event.actor,
            "data": event.data,
        }


class Sides(msgspec.Struct, frozen=True):
    """Both sessions."""

    a: Side
    b: Side

    def __iter__(self) -> Any:
        return iter((self.a, self.b))


def sides(a: Timeline, b: Timeline, title_a: str, title_b: str) -> Sides:
    """Return both sides, titled with the user's arguments."""
    return Sides(Side(a, "A", title_a), Side(b, "B", title_b))
