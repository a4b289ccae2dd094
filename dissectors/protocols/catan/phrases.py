"""Counts and places as they read in verdicts and in the sentences of events."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.sentences import UNKNOWN, counted
from kiebitz.dissectors.protocols.catan.board import Spot
from kiebitz.dissectors.protocols.catan.hand import Counts


def words(counts: Counts | None) -> str:
    """Counts as they are written in a sentence."""
    if counts is None:
        return "nothing that is known"
    if isinstance(counts, int):
        return counted(counts, "card")
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def where_words(where: Spot) -> str:
    """A spot as it is written in a sentence."""
    return " ".join(f"({x},{y})" for x, y in where)


def resource_words(counts: Any) -> str:
    """Return counts in the sentence of an event: `2 Holz, 1 Erz`, or `3 cards` where they are hidden."""
    return words(counts) if isinstance(counts, dict | int) else UNKNOWN


def place_words(place: Any) -> str:
    """Return a place on the board in the sentence of an event: the coordinates of the fields that meet."""
    try:
        return where_words(tuple((field["x"], field["y"]) for field in place))
    except (TypeError, KeyError):
        return UNKNOWN
