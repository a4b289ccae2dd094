"""Mutations of a well-formed frame: each makes exactly one thing wrong.

Each result is decoded again. If it still has the same content and is as valid as before, it is no mutation
and `NotApplicable` is raised. So a case never claims what its bytes do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kiebitz.dissectors.conformance.expectations import (
    NotApplicable,
    RuleViolation,
    Situation,
    Spelling,
    UnsuitableMoment,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import (
    UNKNOWN_WORD,
    UNWRITABLE,
    Fields,
    IdentifierKind,
    Mismatch,
    Wrong,
)
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Place, replaced, to_json
from kiebitz.dissectors.model import Direction

_LATIN_1_BYTE = b"\xe4"
"""`ä` in Latin-1: invalid UTF-8 at any position."""

_UNUSED_OFFSET = 4711


class Mutator:
    """The mutations for frames of one direction of a protocol."""

    def __init__(self, dissector: Dissector, direction: Direction) -> None:
        self._dissector = dissector
        self._direction: Direction = direction

    # Fields.

    def replace_text(self, field: Field, wrong: Wrong, frame: bytes) -> bytes:
        """Replace a field's text by an invalid one. Raises NotApplicable."""
        with_field, decoded, row = self._with_field(field, frame)
        span = self._dissector.codec.text_place(with_field, row, field.name)
        if span is None:
            raise NotApplicable(f"the position of its {field.name} is unknown")
        value = decoded.fields[field.name]
        # Of a list of values, the first one is mutated.
        stood = value[0] if isinstance(value, list) and not _is_of_type(field, value) else value
        try:
            text = self._dissector.codec.as_text(with_field, row, field, wrong.of(stood))
        except LookupError as error:
            raise NotApplicable(f"its {field.name} lacks the part to make invalid") from error
        except UNWRITABLE as error:
            raise NotApplicable(f"its {field.name} cannot be made invalid in this way: {error}") from error
        return self._checked(frame, replaced(with_field, {span: text}), must_be_malformed=not wrong.allowed)

    def remove_field(self, field: Field, frame: bytes) -> bytes:
        """Remove a field. Raises NotApplicable."""
        if field.name not in self._read(frame)[0].fields:
            raise NotApplicable(f"it has no {field.name} to leave out")
        frame, span, _ = self._field_span(field, frame)
        return self._checked(frame, replaced(frame, {span: b""}), must_be_malformed=False)

    def repeat_field(self, field: Field, frame: bytes) -> bytes:
        """Repeat a field. Raises NotApplicable."""
        # A reader that uses the last of two sees nothing wrong; the field is duplicated all the same.
        frame, (start, length), row = self._field_span(field, frame)
        whole = frame[start : start + length]
        return replaced(frame, {(start, length): self._dissector.codec.twice(whole, row)})

    def insert_latin_1(self, field: Field, frame: bytes) -> bytes:
        """Insert a byte that is not valid UTF-8 into a field. Raises NotApplicable."""
        frame, _, row = self._with_field(field, frame)
        span = self._dissector.codec.text_place(frame, row, field.name)
        if span is None:
            raise NotApplicable(f"the position of its {field.name} is unknown")
        middle = span[0] + (span[1] + 1) // 2
        return self._checked(frame, frame[:middle] + _LATIN_1_BYTE + frame[middle:], must_be_malformed=False)

    def replace_identifier(
        self, field: Field, identifier: IdentifierKind, is_others: bool, at: Situation
    ) -> bytes:
        """Replace an identifier by another player's, or by one that does not exist. Raises NotApplicable."""
        frame, decoded, row = self._with_field(field, at.frame)
        known = at.others.get(identifier, ())

        def renamed(named: IdentifierKind, value: Any) -> Any:
            if named is not identifier:
                return value
            if not is_others:
                return _unused_identifier(value)
            return next((other for other in known if other != value and type(other) is type(value)), value)

        before = {field.name: decoded.fields[field.name]}
        after = row.renamed(before, renamed)
        if to_json(before) == to_json(after):
            raise NotApplicable(f"no other {identifier.title} is known")
        return self._rewritten(frame, {**decoded.fields, **after})

    # Messages.

    def break_rule(self, breach: RuleViolation, at: Situation) -> bytes:
        """Change the fields so that they break a rule.

        Raises NotApplicable; UnsuitableMoment if the state does not let them, as other cards may.
        """
        decoded, _ = self._read(at.frame)
        try:
            fields = breach.fields(decoded.fields, at)
        except NotApplicable as error:
            raise UnsuitableMoment(*error.args) from error
        except (*UNWRITABLE, StopIteration) as error:
            raise UnsuitableMoment(
                "the table's state does not show what would break the rule here"
            ) from error
        if breach.sends is None:
            return self._rewritten(at.frame, fields)
        try:
            return self._dissector.codec.encode(breach.sends, self._direction, fields)
        except UNWRITABLE as error:
            raise NotApplicable(f"such a message cannot be encoded: {error}") from error

    def dialect(self, row: MessageType, frame: bytes) -> bytes:
        """Return the same message in the form of a dialect's row. Raises NotApplicable.

        A field that only the dialect has gets a meaningless value.
        """
        decoded, before = self._read(frame)
        if before is row:
            return frame
        known: Mapping[str, Any] = decoded.fields
        for made_up in (UNKNOWN_WORD, 1, True, 0):
            fields = {
                field.name: known.get(field.name, made_up)
                for field in row.fields
                if field.name in known or not field.optional
            }
            try:
                mutated = self._dissector.codec.encode(row.name, row.direction, fields)
            except UNWRITABLE:
                continue
            again = self._dissector.codec.decode(mutated, self._direction)
            if again.row is row and again.valid:
                return mutated
        raise NotApplicable("it cannot be converted to this dialect")

    def respell(self, spelling: Spelling, frame: bytes) -> bytes:
        """Return the same message in another spelling with the same content. Raises NotApplicable."""
        decoded, _ = self._read(frame)
        mutated = spelling.frame(frame)
        again = self._dissector.codec.decode(mutated, self._direction)
        if mutated == frame or again.fields_json != decoded.fields_json or not again.valid:
            raise NotApplicable("nothing in it would be spelt differently")
        return mutated

    def to_utf_16(self, frame: bytes) -> bytes:
        """Encode the frame as UTF-16 without a byte order mark. Raises NotApplicable."""
        self._read(frame)
        return self._with_content(frame, lambda content: content.decode(errors="replace").encode("utf-16-le"))

    def add_byte_order_mark(self, frame: bytes) -> bytes:
        """Prepend a byte order mark. Raises NotApplicable."""
        return self._with_content(frame, lambda content: b"\xef\xbb\xbf" + content)

    def halve(self, frame: bytes) -> bytes:
        """Return the first half as the whole datagram. Raises NotApplicable."""
        return self._with_content(frame, lambda content: content[: len(content) // 2])

    def _with_content(self, frame: bytes, change: Callable[[bytes], bytes]) -> bytes:
        """Change a frame without what belongs to its encapsulation. Raises NotApplicable."""
        carried = self._dissector.encapsulation
        start = 0 if carried is None else carried.content_start(frame)
        return self._checked(frame, frame[:start] + change(frame[start:]), must_be_malformed=False)

    def renamed(self, frame: bytes) -> bytes:
        """Replace the message's name by one that no message has. Raises NotApplicable."""
        _, row = self._read(frame)
        mutated = frame.replace(row.name.encode(), UNKNOWN_WORD.upper().encode())
        if self._dissector.codec.decode(mutated, self._direction).row is not None:
            raise NotApplicable("its name does not occur literally in its bytes")
        return self._checked(frame, mutated, must_be_malformed=False)

    def _field_span(self, field: Field, frame: bytes) -> tuple[bytes, Place, MessageType]:
        """Return a frame with the field, the span of all bytes that are the field's alone, and its row."""
        frame, _, row = self._with_field(field, frame)
        span = self._dissector.codec.whole_place(frame, row, field.name)
        if span is None or not span[1]:
            raise NotApplicable(f"the position of its {field.name} is unknown")
        return frame, span, row

    def _with_field(self, field: Field, frame: bytes) -> tuple[bytes, Decoded, MessageType]:
        """Return the frame; if it lacks an optional field, the same message with an invented value for it."""
        decoded, row = self._read(frame)
        if field.name in decoded.fields:
            return frame, decoded, row
        words: tuple[Any, ...] = getattr(field.type, "words", ())
        for made_up in (*words[:1], UNKNOWN_WORD, 1, True):
            with suppress(NotApplicable, *UNWRITABLE):
                fields = {**decoded.fields, field.name: made_up}
                mutated = self._dissector.codec.encode(row.name, self._direction, fields)
                again, _ = self._read(mutated)
                if again.row is row and field.name in again.fields:
                    return mutated, again, row
        raise NotApplicable(f"it has no {field.name}")

    def _read(self, frame: bytes) -> tuple[Decoded, MessageType]:
        decoded = self._dissector.codec.decode(frame, self._direction)
        if decoded.row is None or not decoded.valid:
            raise NotApplicable("the message is invalid before any change")
        return decoded, decoded.row

    def _rewritten(self, frame: bytes, fields: Fields) -> bytes:
        try:
            mutated = self._dissector.codec.rewrite(frame, self._direction, fields)
        except UNWRITABLE as error:
            raise NotApplicable(f"such a message cannot be encoded: {error}") from error
        return self._checked(frame, mutated, must_be_malformed=False)

    def _checked(self, frame: bytes, mutated: bytes, must_be_malformed: bool) -> bytes:
        """Return a mutated frame whose content differs or is less valid, else raise NotApplicable."""
        before, after = (self._dissector.codec.decode(each, self._direction) for each in (frame, mutated))
        # A text that only a dialect allows is wrong by the specification.
        is_dialect = after.row is not before.row and after.row is not None and after.row.deviation is not None
        if must_be_malformed and after.valid and not is_dialect:
            raise NotApplicable("it is still valid")
        says_the_same = after.row is before.row and after.fields_json == before.fields_json
        if says_the_same and after.valid and _codes(after) <= _codes(before):
            raise NotApplicable("its content is unchanged")
        return mutated


def _codes(decoded: Decoded) -> set[str]:
    return {violation.code for violation in decoded.violations}


def _is_of_type(field: Field, value: Any) -> bool:
    """Return True if a value is one of the field's type, rather than a list of those."""
    try:
        return bool(field.type.decode(field.type.encode(value)) == value)
    except (Mismatch, *UNWRITABLE):
        return False


def _unused_identifier(value: Any) -> Any:
    """Return an identifier of the same kind that no player or object has."""
    return (
        value + _UNUSED_OFFSET if isinstance(value, int) else f"{UNKNOWN_WORD}{value}"[: max(len(value), 1)]
    )
