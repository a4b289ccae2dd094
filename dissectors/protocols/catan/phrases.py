"""Texts for counts and places in diagnostics and in the sentences of events."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.sentences import UNKNOWN, counted
from kiebitz.dissectors.protocols.catan.board import Spot
from kiebitz.dissectors.protocols.catan.hand import Counts


def counts_text(counts: Counts | None) -> str:
    """Return counts as text: `2 Holz, 1 Erz`, or `3 cards` if they are hidden."""
    if counts is None:
        return "nothing that is known"
    if isinstance(counts, int):
        return counted(counts, "card")
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def spot_text(where: Spot) -> str:
    """Return an edge or corner as text: the coordinates of its fields."""
    return " ".join(f"({x},{y})" for x, y in where)


def resource_words(counts: Any) -> str:
    """Return the text of counts in an event, which may be invalid."""
    return counts_text(counts) if isinstance(counts, dict | int) else UNKNOWN


def place_words(place: Any) -> str:
    """Return the text of an edge or corner in an event, which may be invalid."""
    try:
        return spot_text(tuple((field["x"], field["y"]) for field in place))
    except (TypeError, KeyError):
        return UNKNOWN
