"""A held message as people are shown it and edit it, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kiebitz.cli.terminal.table import short_address
from kiebitz.dissectors.editing.assignment_parser import AssignmentError, parse_assignments
from kiebitz.dissectors.editing.message_encoding import edit_message, target_of
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.registry import dissector_of, not_installed
from kiebitz.services.alteration.control_server import HeldMessage

_MOST_SLOTS = 60
"""A message of more parts is edited by its fields as wholes."""

_SHOWN = 40


class Slot(msgspec.Struct, frozen=True):
    """A value that can be edited: how its `field` is written, and how the `value` is that it has."""

    field: str
    value: str


def sender(message: HeldMessage) -> str:
    """Who has sent it, in words."""
    return _client(message) if message.direction == "c2s" else "the server"


def receiver(message: HeldMessage) -> str:
    """Who is to get it, in words."""
    return "the server" if message.direction == "c2s" else _client(message)


def patience(message: HeldMessage) -> str:
    """How long it, or its answer, is awaited, in words; empty where nobody knows."""
    if message.bears_ns is None:
        return ""
    answer = "" if message.direction == "c2s" else " for the answer"
    return f"the server waits {message.bears_ns / 1e9:g} s{answer}"


def answers(message: HeldMessage) -> list[str]:
    """The names of messages that can be an answer to its sender."""
    dissector = dissector_of(message.protocol)
    return [] if dissector is None else dissector.grammar.names(OPPOSITE[message.direction])


def slots(message: HeldMessage) -> list[Slot]:
    """The values that it has, each with its place; none if its fields are not known."""
    dissector = dissector_of(message.protocol)
    if dissector is None:
        return []
    target = target_of(dissector, message.name, message.direction, message.fields)
    paths = [*_leaves(message.fields, ())]
    if len(paths) > _MOST_SLOTS:
        paths = [(name,) for name in message.fields]
    return [Slot(*target.slot(path)) for path in paths]


def assigned(message: HeldMessage, values: Mapping[str, str]) -> str:
    """The assignments for the slots whose value is another than the message has; empty if there is none."""
    known = {slot.field: slot.value for slot in slots(message)}
    return " ".join(f"{field}={value}" for field, value in values.items() if known.get(field) != value)


def misfits(message: HeldMessage, values: Mapping[str, str]) -> dict[str, str]:
    """By slot, why a value does not fit by itself. Whether they fit together the relay knows."""
    known = {slot.field: slot.value for slot in slots(message)}
    found: dict[str, str] = {}
    for field, value in values.items():
        if known.get(field) != value and (why := _misfit(message, field, value)) is not None:
            found[field] = why
    return found


def _misfit(message: HeldMessage, field: str, value: str) -> str | None:
    dissector = dissector_of(message.protocol)
    if dissector is None:
        return not_installed(message.protocol)
    try:
        assignments = parse_assignments(f"{field}={value}")
        if len(assignments) != 1:
            raise AssignmentError("this is more than one value; a text with blanks stands in quotes")
        if message.is_whole:
            edit_message(dissector, message.data, message.direction, assignments)
    except AssignmentError as error:
        return str(error)
    return None


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    """The paths to the values in a value; a list of plain ones is edited as a whole."""
    if isinstance(value, dict) and (value or not path):
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        for place, part in enumerate(value):
            yield from _leaves(part, (*path, place))
    else:
        yield path


def _client(message: HeldMessage) -> str:
    """What a client calls itself, or else its address."""
    return short_address(message.client) if message.who is None else shortened(message.who, _SHOWN)
