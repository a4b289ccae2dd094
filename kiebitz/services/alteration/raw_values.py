"""`--force`: messages with values that the grammar does not allow, for who tests a parser.

What is given is written in the place of a field's value as it is. It stays one message: names, tags,
quotation marks, line ends, lengths and blank lines are not touched.
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
"""What names a value: a member of a JSON object, or an attribute."""

_TAG = re.compile(rb"<[\w:-]+(?:\s[^<>]*)?(?<!/)>")


def forced(
    dissector: Dissector, frame: bytes, direction: Direction, assignments: Sequence[Assignment]
) -> bytes:
    """A frame with other bytes in these fields. Raises AssignmentError.

    A lone surrogate of an assignment's text stands for the byte that somebody typed.
    """
    pieces = dissector.codec.anatomy(frame, direction)
    places: dict[tuple[int, int], bytes] = {}
    for assignment in assignments:
        # The innermost piece of a field comes last.
        piece = next((piece for piece in reversed(pieces) if _is_at(piece.path, assignment.steps)), None)
        if piece is None:
            raise AssignmentError(f"{assignment.text} cannot be forced: there are no bytes of its own for it")
        text = assignment.own if assignment.own is not None else json_text(assignment.values[0])
        start, end = _value_in(frame[piece.offset : piece.offset + piece.length])
        places[piece.offset + start, end - start] = text.encode("utf-8", "surrogateescape")
    data = replaced(frame, places)
    if dissector.transport == "tcp":
        # Where a message ends may be seen by the next one alone.
        first = next(iter(dissector.framer(direction).feed(0, data + frame)), None)
        if first is None or (first.offset, first.size, first.cut) != (0, len(data), None):
            raise AssignmentError("forced so, this would be no longer one message")
    return data


def _is_at(path: Path, steps: Sequence[Step]) -> bool:
    """Whether a path is the one that somebody wrote."""
    return len(path) == len(steps) and all(
        step == part or (isinstance(part, str) and written(part) == step)
        for part, step in zip(path, steps, strict=True)
    )


def _value_in(field: bytes) -> tuple[int, int]:
    """Where in the bytes of a field its value begins and ends, by what JSON and XML have around one."""
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
