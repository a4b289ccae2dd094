"""The bytes of edited and of new messages, as `whatif` and the relay write them.

The interpretations of an assignment are tried in turn; the first one that the grammar accepts is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import Assignment, AssignmentError
from kiebitz.dissectors.editing.field_assignment import Target
from kiebitz.dissectors.grammar.field_type import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import nearest_word, to_json
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.suggestions import did_you_mean


def edit_message(
    dissector: Dissector, frame: bytes, direction: Direction, assignments: Sequence[Assignment]
) -> bytes:
    """Return a message's bytes with new values, its spelling otherwise unchanged. Raises AssignmentError."""
    decoded = dissector.codec.decode(frame, direction)
    if decoded.row is None:
        raise AssignmentError("this message could not be read: it can be dropped, but not edited")
    # Names are listed as a session's listings have them.
    fields = msgspec.json.decode(decoded.fields_json)
    target = target_of(dissector, decoded.row.name, direction, fields)
    return rewrite_message(dissector, frame, direction, target, assignments)


def rewrite_message(
    dissector: Dissector,
    frame: bytes,
    direction: Direction,
    target: Target,
    assignments: Sequence[Assignment],
) -> bytes:
    """Return the bytes of the message of `target` with new values. Raises AssignmentError."""
    for values in target.readings(assignments):
        with suppress(ValueError):
            return dissector.codec.rewrite(frame, direction, values)
    raise AssignmentError(target.refusal(assignments))


def encode_new(
    dissector: Dissector, name: str, directions: Sequence[Direction], assignments: Sequence[Assignment]
) -> tuple[Direction, bytes]:
    """Return the (first possible) direction and the bytes of a new message. Raises AssignmentError."""
    direction = direction_of(dissector, name, directions)
    target = target_of(dissector, name, direction, {})
    for values in target.readings(assignments):
        data = _encode(dissector, name, direction, values)
        if data is not None:
            return direction, data
    raise AssignmentError(target.refusal(assignments))


def direction_of(dissector: Dissector, name: str, directions: Sequence[Direction]) -> Direction:
    """Return the first of these directions that has messages of this name. Raises AssignmentError."""
    grammar = dissector.grammar
    direction = next((way for way in directions if grammar.rows_named(way, name)), None)
    if direction is None:
        names = [known for way in directions for known in grammar.names(way)]
        near = nearest_word(name, names)
        hint = did_you_mean(near) if near else f"kiebitz protocols {dissector.protocol} has them all"
        raise AssignmentError(f"{dissector.protocol} has no message {name}; {hint}")
    return direction


def target_of(dissector: Dissector, name: str, direction: Direction, values: Mapping[str, Any]) -> Target:
    """Return a message to edit."""
    return Target(dissector.protocol, name, dissector.grammar.rows_named(direction, name), values)


def _encode(dissector: Dissector, name: str, direction: Direction, values: dict[str, Any]) -> bytes | None:
    """Return the bytes of a message, None if the grammar does not accept these values."""
    try:
        data = dissector.codec.encode(name, direction, values)
    except UNWRITABLE:
        return None
    decoded = dissector.codec.decode(data, direction)
    is_same = decoded.row is not None and decoded.row.name == name and decoded.fields_json == to_json(values)
    return data if is_same and decoded.valid else None
