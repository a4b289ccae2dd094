"""Encoding of the messages that a hook returns, checked by the grammar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.editing.assignment_parser import Assignment, AssignmentError
from kiebitz.dissectors.editing.field_assignment import Target
from kiebitz.dissectors.editing.message_encoding import encode_new, rewrite_message, target_of
from kiebitz.dissectors.escaping import json_text
from kiebitz.dissectors.filters.fields import written
from kiebitz.dissectors.grammar.field_type import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import Decoded, shortened, to_json
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.hooks import MAX_DELAY_S, Message, Stream
from kiebitz.services.alteration.hook_protocol import MAX_MESSAGES, MAX_RETURNED_BYTES, Ask, Outcome

_MAX_QUOTED = 60
"""Maximum number of characters quoted of a value or a text."""


class InvalidReturn(Exception):
    """An invalid return value of a hook; the text says what it is and what is expected."""


def returned_messages(given: object) -> list[Message]:
    """Return the messages that a hook returned; none if it dropped its message.

    Raises InvalidReturn, and whatever a generator raises.
    """
    if given is None:
        return []
    if isinstance(given, Message):
        return [given]
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidReturn(f"returned {_kind(given)}; expected the message, several in a list, or None")
    found: list[Message] = []
    for one in given:
        if not isinstance(one, Message):
            raise InvalidReturn(f"returned several, one of them {_kind(one)}; expected messages")
        if len(found) == MAX_MESSAGES:
            raise InvalidReturn(f"returned over {MAX_MESSAGES} messages for one")
        found.append(one)
    return found


def _check(message: Message) -> None:
    """Raise InvalidReturn for a `Message` with invalid attributes."""
    sound = {
        "name": isinstance(message.name, str),
        "fields": isinstance(message.fields, dict),
        "direction": message.direction in DIRECTIONS,
        "stream": isinstance(message.stream, Stream),
        "data": isinstance(message.data, bytes),
        "delay": isinstance(message.delay, int | float) and 0 <= message.delay <= MAX_DELAY_S,
    }
    for name, is_sound in sound.items():
        if not is_sound:
            value = shortened(repr(getattr(message, name)), _MAX_QUOTED)
            raise InvalidReturn(f"returned a message with the {name} {value}")


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeio' else 'a'} {shortened(name, _MAX_QUOTED)}"


def outcomes(
    dissector: Dissector, asked: Ask, decoded: Decoded, messages: Sequence[Message], is_forced: bool
) -> list[Outcome]:
    """Return what to forward for the messages that a hook returned in place of the `decoded` one.

    Raises:
        AssignmentError: The grammar does not allow a message.
        InvalidReturn: The messages are too long together.
    """
    found: list[Outcome] = []
    size = 0
    for message in messages:
        _check(message)
        if message.stream.id != asked.number:
            raise AssignmentError(
                f"a message of stream {message.stream.id} cannot replace one of stream {asked.number}"
            )
        is_asked = (message.data, message.direction) == (asked.frame, asked.direction)
        data = _encode(dissector, message, decoded if is_asked else None, is_forced)
        size += len(data)
        if size > MAX_RETURNED_BYTES:
            raise InvalidReturn(f"returned over {MAX_RETURNED_BYTES >> 20} MiB for one message")
        # Of two equal messages only one is the original.
        is_same = (
            data == asked.frame
            and message.direction == asked.direction
            and not message.is_new
            and not any(one.is_same for one in found)
        )
        found.append(Outcome(message.direction, data, round(message.delay * 1e9), is_same))
    return found


def _encode(dissector: Dissector, message: Message, decoded: Decoded | None, is_forced: bool) -> bytes:
    """Encode a message; `decoded` is its decoded data if known. Raises AssignmentError."""
    try:
        if message.is_new:
            return _encode_new(dissector, message, is_forced)
        decoded = decoded or dissector.codec.decode(message.data, message.direction)
        if decoded.row is None:
            if message.fields:
                raise AssignmentError("this message could not be read: it can be dropped, but not edited")
            return message.data
        if to_json(message.fields) == decoded.fields_json:
            return message.data
        return _encode_edited(dissector, decoded, message, is_forced)
    except AssignmentError:
        raise
    # Values may be objects of any class of the hook, and raise anything.
    except Exception as error:
        said = shortened(" ".join(f"{type(error).__name__}: {error}".split()), _MAX_QUOTED)
        raise AssignmentError(f"{shortened(message.name, _MAX_QUOTED)} cannot be written ({said})") from error


def _encode_new(dissector: Dissector, message: Message, is_forced: bool) -> bytes:
    wanted = _assignments(message.fields)
    try:
        return encode_new(dissector, message.name, (message.direction,), wanted)[1]
    except AssignmentError:
        if is_forced:
            target = target_of(dissector, message.name, message.direction, {})
            for values in target.readings(wanted):
                with suppress(*UNWRITABLE):
                    return dissector.codec.encode(message.name, message.direction, values)
        raise


def _encode_edited(dissector: Dissector, decoded: Decoded, message: Message, is_forced: bool) -> bytes:
    """Encode the message with its current fields, keeping its spelling otherwise."""
    assert decoded.row is not None
    before: dict[str, Any] = msgspec.json.decode(decoded.fields_json)
    wanted = _assignments(
        {
            name: value
            for name, value in message.fields.items()
            if name not in before or to_json(value) != to_json(before[name])
        }
    )
    # The hook may have removed an optional field.
    kept = {name: value for name, value in before.items() if name in message.fields}
    target: Target = target_of(dissector, decoded.row.name, message.direction, kept)
    try:
        return rewrite_message(dissector, message.data, message.direction, target, wanted)
    except AssignmentError:
        if is_forced:
            for values in target.readings(wanted):
                with suppress(*UNWRITABLE):
                    return dissector.codec.patch(message.data, decoded.row, decoded.fields, values)
        raise


def _assignments(fields: Mapping[str, Any]) -> list[Assignment]:
    """Return assignments of the values; a string may also be the value's text in the protocol."""
    return [
        Assignment(
            f"{written(name)}={value if isinstance(value, str) else json_text(value)}",
            (name,),
            (value,),
            value if isinstance(value, str) else None,
        )
        for name, value in fields.items()
    ]
