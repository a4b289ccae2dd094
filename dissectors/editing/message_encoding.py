"""The bytes of messages that are given other values, or that are new: as `whatif` and the relay write them.

Each reading of what somebody wrote is tried in turn, and the first that the grammar takes counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import Assignment, AssignmentError
from kiebitz.dissectors.editing.field_assignment import Target
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import nearest_word, to_json
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.suggestions import did_you_mean


def edited(
    dissector: Dissector, frame: bytes, direction: Direction, assignments: Sequence[Assignment]
) -> bytes:
    """A message's bytes with other values, spelt as it was in all else. Raises AssignmentError."""
    decoded = dissector.codec.decode(frame, direction)
    if decoded.row is None:
        raise AssignmentError("this message could not be read: it can be dropped, but not edited")
    # Names are listed as a session's listings have them.
    fields = msgspec.json.decode(decoded.fields_json)
    target = target_of(dissector, decoded.row.name, direction, fields)
    return rewritten(dissector, frame, direction, target, assignments)


def rewritten(
    dissector: Dissector,
    frame: bytes,
    direction: Direction,
    target: Target,
    assignments: Sequence[Assignment],
) -> bytes:
    """A message's bytes with other values than those of `target`. Raises AssignmentError."""
    for values in target.readings(assignments):
        with suppress(ValueError):
            return dissector.codec.rewrite(frame, direction, values)
    raise AssignmentError(target.refusal(assignments))


def made(
    dissector: Dissector, name: str, directions: Sequence[Direction], assignments: Sequence[Assignment]
) -> tuple[Direction, bytes]:
    """The bytes of a new message, and which way it goes: the first of these that has such messages.

    Raises AssignmentError.
    """
    direction = direction_of(dissector, name, directions)
    target = target_of(dissector, name, direction, {})
    for values in target.readings(assignments):
        data = _written(dissector, name, direction, values)
        if data is not None:
            return direction, data
    raise AssignmentError(target.refusal(assignments))


def direction_of(dissector: Dissector, name: str, directions: Sequence[Direction]) -> Direction:
    """The first of these directions in which messages of this name go. Raises AssignmentError."""
    grammar = dissector.grammar
    direction = next((way for way in directions if grammar.rows_named(way, name)), None)
    if direction is None:
        names = [known for way in directions for known in grammar.names(way)]
        near = nearest_word(name, names)
        hint = did_you_mean(near) if near else f"kiebitz protocols {dissector.protocol} has them all"
        raise AssignmentError(f"{dissector.protocol} has no message {name}; {hint}")
    return direction


def target_of(dissector: Dissector, name: str, direction: Direction, values: Mapping[str, Any]) -> Target:
    """A message that is to be given values."""
    return Target(dissector.protocol, name, dissector.grammar.rows_named(direction, name), values)


def _written(dissector: Dissector, name: str, direction: Direction, values: dict[str, Any]) -> bytes | None:
    """The bytes of a message, None if the grammar does not take these values."""
    try:
        data = dissector.codec.encode(name, direction, values)
    except UNWRITABLE:
        return None
    decoded = dissector.codec.decode(data, direction)
    is_same = decoded.row is not None and decoded.row.name == name and decoded.fields_json == to_json(values)
    return data if is_same and decoded.valid else None
