"""What a stored event says: asked of its protocol's grammar; to whom it was said, `visibility.py` knows.

A session may have been recorded with a plug-in that is not installed now. Its events are then shown as they
are stored.
"""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.escaping import field_words, printable
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.schema import StorageError


def describe(protocol: str, event: Event) -> str:
    """What happened, with all that was sent as it was sent: `printable` makes it fit for a terminal.

    Raises StorageError where this Kiebitz knows the protocol, but no such events.
    """
    dissector = dissector_of(protocol)
    if dissector is None:
        return f"{event.kind} {field_words(event.data)}".rstrip()
    if event.kind not in dissector.grammar.events:
        raise StorageError(
            f"this Kiebitz knows no {protocol} event {event.kind}: make it anew with kiebitz redissect"
        )
    return dissector.presentation.describe(event)


def sentence(protocol: str, kind: str, data: dict[str, Any]) -> str:
    """The same on one line, for an event of which no more is at hand. Raises StorageError as `describe`."""
    return printable(describe(protocol, Event(0, 0, None, 0, 0, kind, None, data, [])))


def game_title(protocol: str) -> str:
    """What people call a game; the protocol's name, if that is all that is known."""
    dissector = dissector_of(protocol)
    return protocol if dissector is None else dissector.grammar.title
