"""`--force`: messages with values that the grammar does not allow, for testing parsers.

The given text replaces a field's value as it is. The frame remains one message: names, tags, quotation
marks, line ends, lengths and blank lines are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import Assignment, AssignmentError
from kiebitz.dissectors.escaping import json_text
from kiebitz.dissectors.filters.fields import written
from kiebitz.dissectors.filters.syntax import Step
from kiebitz.dissectors.grammar.patching import Path, replaced
from kiebitz.dissectors.model import Direction

_NAME = re.compile(rb"""\s*(?:"(?:[^"\\]|\\.)*"\s*:|[\w:-]+\s*=(?=\s*["']))?\s*""")
"""The name before a value: of a member of a JSON object, or of an attribute."""

_TAG = re.compile(rb"<[\w:-]+(?:\s[^<>]*)?(?<!/)>")


def force_values(
    dissector: Dissector, frame: bytes, direction: Direction, assignments: Sequence[Assignment]
) -> bytes:
    """Return a frame with other bytes in these fields. Raises AssignmentError.

    A lone surrogate in an assignment's text represents a raw byte (`surrogateescape`).
    """
    pieces = dissector.codec.anatomy(frame, direction)
    places: dict[tuple[int, int], bytes] = {}
    for assignment in assignments:
        # The innermost piece of a field is last.
        piece = next((piece for piece in reversed(pieces) if _matches(piece.path, assignment.steps)), None)
        if piece is None:
            raise AssignmentError(f"{assignment.text} cannot be forced: the field has no bytes of its own")
        text = assignment.own if assignment.own is not None else json_text(assignment.values[0])
        start, end = _value_span(frame[piece.offset : piece.offset + piece.length])
        places[piece.offset + start, end - start] = text.encode("utf-8", "surrogateescape")
    data = replaced(frame, places)
    carried = dissector.encapsulation
    if carried is not None:
        # It ends any message; only its length has to be right.
        again = carried.unwrap(carried.wrap(data, direction), direction)
        return data if again is None else again.data
    if dissector.transport == "tcp":
        # The end of a message may only be found with the beginning of the next.
        first = next(iter(dissector.framer(direction).feed(0, data + frame)), None)
        if first is None or (first.offset, first.size, first.cut) != (0, len(data), None):
            raise AssignmentError("with this value it would no longer be one message")
    return data


def _matches(path: Path, steps: Sequence[Step]) -> bool:
    return len(path) == len(steps) and all(
        step == part or (isinstance(part, str) and written(part) == step)
        for part, step in zip(path, steps, strict=True)
    )


def _value_span(field: bytes) -> tuple[int, int]:
    """Return start and end of the value within a field's bytes, without its JSON or XML syntax."""
    name = _NAME.match(field)
    assert name is not None
    start, end = name.end(), len(field.rstrip().removesuffix(b",").rstrip())
    if end - start > 1 and field[start] in b"\"'" and field[end - 1] == field[start]:
        return start + 1, end - 1
    tag = _TAG.match(field, start, end)
    closing = field.rfind(b"</", start, end)
    if tag is not None and closing >= tag.end():
        return tag.end(), closing
    return start, max(start, end)
