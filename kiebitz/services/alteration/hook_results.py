"""What a hook gives back, made into bytes: in the words of the grammar, or not at all."""

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
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import Decoded, shortened, to_json
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.hooks import MAX_DELAY_S, Message, Stream
from kiebitz.services.alteration.hook_protocol import MOST_BYTES, MOST_MESSAGES, Ask, Outcome

_SHOWN = 60
"""So much of a value or of a text is quoted (characters)."""


class Rubbish(Exception):
    """What a hook gave back is nothing that could be passed on; says what it is, and what is expected."""


def gathered(given: object) -> list[Message]:
    """The messages that a hook has given back; none if it dropped what it got. Raises Rubbish, and whatever a
    generator raises."""
    if given is None:
        return []
    if isinstance(given, Message):
        return [given]
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise Rubbish(f"gave back {_kind(given)}; expected the message, several in a list, or None")
    found: list[Message] = []
    for one in given:
        if not isinstance(one, Message):
            raise Rubbish(f"gave back several, one of them {_kind(one)}; expected messages")
        if len(found) == MOST_MESSAGES:
            raise Rubbish(f"gave back over {MOST_MESSAGES} messages for one")
        found.append(one)
    return found


def _check(message: Message) -> None:
    """Raise Rubbish for a message that was put together by hand, and wrongly."""
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
            value = shortened(repr(getattr(message, name)), _SHOWN)
            raise Rubbish(f"gave back a message with the {name} {value}")


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeio' else 'a'} {shortened(name, _SHOWN)}"


def outcomes(
    dissector: Dissector, asked: Ask, decoded: Decoded, messages: Sequence[Message], is_forced: bool
) -> list[Outcome]:
    """What is to be passed on for the messages that a hook gave back for one that was `decoded`.

    Raises AssignmentError where the grammar does not take one; Rubbish where they are too much.
    """
    found: list[Outcome] = []
    size = 0
    for message in messages:
        _check(message)
        if message.stream.id != asked.number:
            raise AssignmentError(
                f"a message of stream {message.stream.id} cannot be passed on in place of one of stream "
                f"{asked.number}"
            )
        is_asked = (message.data, message.direction) == (asked.frame, asked.direction)
        data = _written(dissector, message, decoded if is_asked else None, is_forced)
        size += len(data)
        if size > MOST_BYTES:
            raise Rubbish(f"gave back over {MOST_BYTES >> 20} MiB for one message")
        # Of two that are the same only one is the message itself.
        is_same = (
            data == asked.frame
            and message.direction == asked.direction
            and not message.is_new
            and not any(one.is_same for one in found)
        )
        found.append(Outcome(message.direction, data, round(message.delay * 1e9), is_same))
    return found


def _written(dissector: Dissector, message: Message, decoded: Decoded | None, is_forced: bool) -> bytes:
    """The bytes of a message; `decoded` is what its data say, if that is known. Raises AssignmentError."""
    try:
        if message.is_new:
            return _new(dissector, message, is_forced)
        decoded = decoded or dissector.codec.decode(message.data, message.direction)
        if decoded.row is None:
            if message.fields:
                raise AssignmentError("this message could not be read: it can be dropped, but not edited")
            return message.data
        if to_json(message.fields) == decoded.fields_json:
            return message.data
        return _edited(dissector, decoded, message, is_forced)
    except AssignmentError:
        raise
    # Values are whatever a hook has put there, with whatever their classes do.
    except Exception as error:
        said = shortened(" ".join(f"{type(error).__name__}: {error}".split()), _SHOWN)
        raise AssignmentError(f"{shortened(message.name, _SHOWN)} cannot be written ({said})") from error


def _new(dissector: Dissector, message: Message, is_forced: bool) -> bytes:
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


def _edited(dissector: Dissector, decoded: Decoded, message: Message, is_forced: bool) -> bytes:
    """The message's bytes with its fields as they are now, spelt as they were in all else."""
    assert decoded.row is not None
    before: dict[str, Any] = msgspec.json.decode(decoded.fields_json)
    wanted = _assignments(
        {
            name: value
            for name, value in message.fields.items()
            if name not in before or to_json(value) != to_json(before[name])
        }
    )
    # A field that may be left out may have been taken out.
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
    """Fields with values, each as it is, or if it is a text as it may stand in the protocol."""
    return [
        Assignment(
            f"{written(name)}={value if isinstance(value, str) else json_text(value)}",
            (name,),
            (value,),
            value if isinstance(value, str) else None,
        )
        for name, value in fields.items()
    ]
