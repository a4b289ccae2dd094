"""`--force`: messages with values that the grammar does not allow, for who tests a parser.

What is given is written in the place of a field as it is. It stays one message: its ends, lengths and blank
lines are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.records import Direction
from kiebitz.dissectors.rewriting import Path, replaced
from kiebitz.storage.assignments import Assignment, AssignmentError
from kiebitz.storage.escaping import json_text
from kiebitz.storage.filters.fields import written
from kiebitz.storage.filters.syntax import Step


def forced(
    dissector: Dissector, frame: bytes, direction: Direction, assignments: Sequence[Assignment]
) -> bytes:
    """A frame with other bytes in these fields. Raises AssignmentError.

    A lone surrogate of an assignment's text stands for the byte that somebody typed.
    """
    pieces = dissector.anatomy(frame, direction)
    places: dict[tuple[int, int], bytes] = {}
    for assignment in assignments:
        # The innermost piece of a field comes last.
        piece = next((piece for piece in reversed(pieces) if _is_at(piece.path, assignment.steps)), None)
        if piece is None:
            raise AssignmentError(f"{assignment.text} cannot be forced: there are no bytes of its own for it")
        text = assignment.own if assignment.own is not None else json_text(assignment.values[0])
        places[piece.offset, piece.length] = text.encode("utf-8", "surrogateescape")
    data = replaced(frame, places)
    frames = dissector.framer(direction).feed(0, data)
    if [(found.offset, found.size) for found in frames] != [(0, len(data))]:
        raise AssignmentError("forced so, this would be no longer one message")
    return data


def _is_at(path: Path, steps: Sequence[Step]) -> bool:
    """Whether a path is the one that somebody wrote."""
    return len(path) == len(steps) and all(
        step == part or (isinstance(part, str) and written(part) == step)
        for part, step in zip(path, steps, strict=True)
    )
