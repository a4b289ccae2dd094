"""What a stored event says, as a sentence."""

from __future__ import annotations

from typing import Any

from dissectors.records import Event
from dissectors.registry import BY_PROTOCOL
from storage.escaping import printable
from storage.schema import StorageError


def sentence(protocol: str, kind: str, data: dict[str, Any]) -> str:
    """A line that says what happened. Raises StorageError where this Kiebitz knows no such events."""
    dissector = BY_PROTOCOL.get(protocol)
    if dissector is None or kind not in dissector.grammar.events:
        raise StorageError(
            f"this Kiebitz knows no {protocol} event {kind}: make it anew with kiebitz redissect"
        )
    return printable(dissector.describe(Event(0, 0, None, 0, 0, kind, None, data, [])))
