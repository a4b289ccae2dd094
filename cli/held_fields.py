"""The editable fields of a held message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kiebitz.cli.terminal.table import short_address
from kiebitz.dissectors.editing.assignment_parser import AssignmentError, parse_assignments
from kiebitz.dissectors.editing.message_encoding import edit_message, target_of
from kiebitz.dissectors.grammar.grammar import Path, shortened
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.services.alteration.control_server import HeldMessage

_MOST_SLOTS = 60
"""Maximum number of slots; longer messages are edited by whole fields."""

_SHOWN = 40


class Slot(msgspec.Struct, frozen=True):
    """An editable value: the spelling of its `field` and current `value` in an assignment."""

    field: str
    value: str


def sender(message: HeldMessage) -> str:
    """Return the sender's name."""
    return _client(message) if message.direction == "c2s" else "the server"


def receiver(message: HeldMessage) -> str:
    """Return the receiver's name."""
    return "the server" if message.direction == "c2s" else _client(message)


def patience(message: HeldMessage) -> str:
    """Return how long the server waits for it, or for its answer, in words; empty if unknown."""
    if message.bears_ns is None:
        return ""
    answer = "" if message.direction == "c2s" else " for the answer"
    return f"the server waits {message.bears_ns / 1e9:g} s{answer}"


def answers(message: HeldMessage) -> list[str]:
    """Return the names of messages that can be sent back to its sender."""
    dissector = dissector_of(message.protocol)
    return [] if dissector is None else dissector.grammar.names(OPPOSITE[message.direction])


def slots(message: HeldMessage) -> list[Slot]:
    """Return the editable values; empty if the protocol is unknown."""
    dissector = dissector_of(message.protocol)
    if dissector is None:
        return []
    target = target_of(dissector, message.name, message.direction, message.fields)
    paths = [*_leaves(message.fields, ())]
    if len(paths) > _MOST_SLOTS:
        paths = [(name,) for name in message.fields]
    return [Slot(*target.slot(path)) for path in paths]


def assigned(message: HeldMessage, values: Mapping[str, str]) -> str:
    """Return the assignments for changed values; empty if there are none."""
    known = {slot.field: slot.value for slot in slots(message)}
    return " ".join(f"{field}={value}" for field, value in values.items() if known.get(field) != value)


def misfits(message: HeldMessage, values: Mapping[str, str]) -> dict[str, str]:
    """Return errors by field, each value checked alone; the relay checks the whole message."""
    known = {slot.field: slot.value for slot in slots(message)}
    return {
        field: why
        for field, value in values.items()
        if known.get(field) != value and (why := _misfit(message, field, value)) is not None
    }


def _misfit(message: HeldMessage, field: str, value: str) -> str | None:
    dissector = dissector_of(message.protocol)
    if dissector is None:
        return not_installed(message.protocol)
    try:
        assignments = parse_assignments(f"{field}={value}")
        if len(assignments) != 1:
            raise AssignmentError("more than one value; quote a text with blanks")
        if message.is_whole:
            edit_message(dissector, message.data, message.direction, assignments)
    except AssignmentError as error:
        return str(error)
    return None


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of the values in a value; a list of scalars counts as one."""
    if isinstance(value, dict) and (value or not path):
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        for place, part in enumerate(value):
            yield from _leaves(part, (*path, place))
    else:
        yield path


def _client(message: HeldMessage) -> str:
    return short_address(message.client) if message.who is None else shortened(message.who, _SHOWN)
