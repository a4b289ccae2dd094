"""The two sessions of a difference, and how what is on either side is named and told."""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Event
from kiebitz.storage.read.timeline import Timeline

_LONGEST = 160
"""A sentence has no more characters here."""


class Side:
    """One of the two sessions; `label` is A or B, `title` what the user called it."""

    def __init__(self, timeline: Timeline, label: str, title: str) -> None:
        self.timeline = timeline
        self.label = label
        self.title = title
        self.numbers = timeline.numbers
        # Pictures take their time to load.
        from kiebitz.cli.spectator.view import Onlooker

        self.onlooker = Onlooker(timeline, None)

    def event(self, number: int) -> Event:
        """An event by its id."""
        return next(self.timeline.events("e.id = ?", [number]))

    def name(self, event: Event) -> str:
        """What an event is called."""
        return f"#{self.numbers.number('events', event.id)}"

    def sentence(self, event: Event) -> str:
        """What happened, in a line that is not too long."""
        return shortened(self.onlooker.sentence(event), _LONGEST)

    def told(self, event: Event) -> str:
        """When an event happened, and what."""
        return f"{self.onlooker.seconds(event):9.3f}s  {self.sentence(event)}"

    def reference(self, event: Event) -> dict[str, Any]:
        """An event as JSON."""
        return {
            "number": self.numbers.number("events", event.id),
            "id": event.id,
            "time": self.onlooker.seconds(event),
            "sentence": self.onlooker.sentence(event),
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
    """Two sessions with what the user called them."""
    return Sides(Side(a, "A", title_a), Side(b, "B", title_b))
