"""What stands in many verdicts: counts and places as they are written."""

from __future__ import annotations

from kiebitz.dissectors.catan.board import Spot
from kiebitz.dissectors.catan.hand import Counts


def words(counts: Counts | None) -> str:
    """Counts as they are written in a sentence."""
    if counts is None:
        return "nothing that is known"
    if isinstance(counts, int):
        return f"{counts} cards"
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def where_words(where: Spot) -> str:
    """A spot as it is written in a sentence."""
    return " ".join(f"({x},{y})" for x, y in where)
