"""From a well-formed frame to one that has exactly one thing wrong.

Each result is read once more: one that says what the frame said before, and is as sound, is no spoilt one,
and `NotHere` is raised. So a case never claims what its bytes do not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kiebitz.dissectors.conformance.expectations import Breach, NotHere, Situation, Spelling
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.field_type import IdentifierKind, Mismatch
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, to_json
from kiebitz.dissectors.grammar.invalid_values import NOBODY, Wrong
from kiebitz.dissectors.grammar.patching import Place, replaced
from kiebitz.dissectors.model import Direction

_NO_UTF_8 = b"\xe4"
"""An `ä` in Latin-1: no UTF-8, wherever it stands."""

_NOBODYS_NUMBER = 4711


class Spoiler:
    """Spoils frames of one direction of a protocol."""

    def __init__(self, dissector: Dissector, direction: Direction) -> None:
        self._dissector = dissector
        self._direction: Direction = direction

    # Fields.

    def with_text(self, field: Field, wrong: Wrong, frame: bytes) -> bytes:
        """Another text in place of a field's. Raises NotHere."""
        with_field, decoded, row = self._with_field(field, frame)
        place = self._dissector.codec.text_place(with_field, row, field.name)
        if place is None:
            raise NotHere(f"it is not known which bytes are its {field.name}")
        value = decoded.fields[field.name]
        # Of several values that stand there one by one, the first is spoilt.
        stood = value[0] if isinstance(value, list) and not _is_of_type(field, value) else value
        try:
            text = self._dissector.codec.as_text(with_field, row, field, wrong.of(stood))
        except LookupError as error:
            raise NotHere(f"its {field.name} lacks the part that would be wrong") from error
        except UNWRITABLE as error:
            raise NotHere(f"its {field.name} cannot be spoilt so: {error}") from error
        return self._spoilt(frame, replaced(with_field, {place: text}), must_be_flawed=not wrong.allowed)

    def left_out(self, field: Field, frame: bytes) -> bytes:
        """Without a field. Raises NotHere."""
        if field.name not in self._read(frame)[0].fields:
            raise NotHere(f"there is no {field.name} in it to be left out")
        frame, place = self._whole(field, frame)
        return self._spoilt(frame, replaced(frame, {place: b""}), must_be_flawed=False)

    def doubled(self, field: Field, frame: bytes) -> bytes:
        """With a field twice. Raises NotHere."""
        # A reader that takes the last of two sees nothing wrong; there are two all the same.
        frame, (start, length) = self._whole(field, frame)
        whole = frame[start : start + length]
        return replaced(frame, {(start, length): self._dissector.codec.twice(whole)})

    def in_latin_1(self, field: Field, frame: bytes) -> bytes:
        """With a byte in a field that is no UTF-8. Raises NotHere."""
        frame, _, row = self._with_field(field, frame)
        place = self._dissector.codec.text_place(frame, row, field.name)
        if place is None:
            raise NotHere(f"it is not known which bytes are its {field.name}")
        middle = place[0] + (place[1] + 1) // 2
        return self._spoilt(frame, frame[:middle] + _NO_UTF_8 + frame[middle:], must_be_flawed=False)

    def naming(self, field: Field, identifier: IdentifierKind, is_others: bool, at: Situation) -> bytes:
        """With the name of somebody or something else: another player's, or nobody's. Raises NotHere."""
        frame, decoded, row = self._with_field(field, at.frame)
        known = at.others.get(identifier, ())

        def renamed(named: IdentifierKind, value: Any) -> Any:
            if named is not identifier:
                return value
            if not is_others:
                return _nobodys(value)
            return next((other for other in known if other != value and type(other) is type(value)), value)

        before = {field.name: decoded.fields[field.name]}
        after = row.renamed(before, renamed)
        if to_json(before) == to_json(after):
            raise NotHere(f"no other {identifier.title} is known")
        return self._rewritten(frame, {**decoded.fields, **after})

    # Messages.

    def breached(self, breach: Breach, at: Situation) -> bytes:
        """With fields that break a rule. Raises NotHere."""
        decoded, _ = self._read(at.frame)
        try:
            fields = breach.fields(decoded.fields, at)
        except (*UNWRITABLE, StopIteration) as error:
            raise NotHere("it is not known what would break the rule here") from error
        if breach.says is None:
            return self._rewritten(at.frame, fields)
        try:
            return self._dissector.codec.encode(breach.says, self._direction, fields)
        except UNWRITABLE as error:
            raise NotHere(f"such a message cannot be written: {error}") from error

    def dialect(self, row: MessageType, frame: bytes) -> bytes:
        """The same message as a dialect's row has it; a field that is new has a text of no meaning. Raises
        NotHere."""
        decoded, before = self._read(frame)
        if before is row:
            return frame
        known: Mapping[str, Any] = decoded.fields
        for made_up in (NOBODY, 1, True, 0):
            fields = {
                field.name: known.get(field.name, made_up)
                for field in row.fields
                if field.name in known or not field.optional
            }
            try:
                written = self._dissector.codec.encode(row.name, row.direction, fields)
            except UNWRITABLE:
                continue
            again = self._dissector.codec.decode(written, self._direction)
            if again.row is row and again.valid:
                return written
        raise NotHere("no message of this dialect can be made of it")

    def spelt(self, spelling: Spelling, frame: bytes) -> bytes:
        """The same message in another spelling, which says the same. Raises NotHere."""
        decoded, _ = self._read(frame)
        written = spelling.frame(frame)
        again = self._dissector.codec.decode(written, self._direction)
        if written == frame or again.fields_json != decoded.fields_json or not again.valid:
            raise NotHere("it has nothing that would be written otherwise")
        return written

    def in_utf_16(self, frame: bytes) -> bytes:
        """In UTF-16, without a byte order mark. Raises NotHere."""
        self._read(frame)
        return self._spoilt(frame, frame.decode(errors="replace").encode("utf-16-le"), must_be_flawed=False)

    def marked(self, frame: bytes) -> bytes:
        """With a byte order mark before it. Raises NotHere."""
        return self._spoilt(frame, b"\xef\xbb\xbf" + frame, must_be_flawed=False)

    def halved(self, frame: bytes) -> bytes:
        """The first half as all of a datagram. Raises NotHere."""
        return self._spoilt(frame, frame[: len(frame) // 2], must_be_flawed=False)

    def renamed(self, frame: bytes) -> bytes:
        """With a name that no message has. Raises NotHere."""
        _, row = self._read(frame)
        written = frame.replace(row.name.encode(), NOBODY.upper().encode())
        if self._dissector.codec.decode(written, self._direction).row is not None:
            raise NotHere("its name does not stand in it as it is")
        return self._spoilt(frame, written, must_be_flawed=False)

    def _whole(self, field: Field, frame: bytes) -> tuple[bytes, Place]:
        """A frame that has a field, and where it stands with all that belongs to it alone."""
        frame, _, row = self._with_field(field, frame)
        place = self._dissector.codec.whole_place(frame, row, field.name)
        if place is None or not place[1]:
            raise NotHere(f"it is not known which bytes are its {field.name}")
        return frame, place

    def _with_field(self, field: Field, frame: bytes) -> tuple[bytes, Decoded, MessageType]:
        """The frame, or, where it lacks an optional field, the same message with one that is made up."""
        decoded, row = self._read(frame)
        if field.name in decoded.fields:
            return frame, decoded, row
        words: tuple[Any, ...] = getattr(field.type, "words", ())
        for made_up in (*words[:1], NOBODY, 1, True):
            with suppress(NotHere, *UNWRITABLE):
                fields = {**decoded.fields, field.name: made_up}
                written = self._dissector.codec.encode(row.name, self._direction, fields)
                again, _ = self._read(written)
                if again.row is row and field.name in again.fields:
                    return written, again, row
        raise NotHere(f"there is no {field.name} in it")

    def _read(self, frame: bytes) -> tuple[Decoded, MessageType]:
        decoded = self._dissector.codec.decode(frame, self._direction)
        if decoded.row is None or not decoded.valid:
            raise NotHere("the message is not sound as it is")
        return decoded, decoded.row

    def _rewritten(self, frame: bytes, fields: Mapping[str, Any]) -> bytes:
        try:
            written = self._dissector.codec.rewrite(frame, self._direction, fields)
        except UNWRITABLE as error:
            raise NotHere(f"such a message cannot be written: {error}") from error
        return self._spoilt(frame, written, must_be_flawed=False)

    def _spoilt(self, frame: bytes, written: bytes, must_be_flawed: bool) -> bytes:
        """What was written, if it says something else than the frame, or not as well."""
        before, after = (self._dissector.codec.decode(each, self._direction) for each in (frame, written))
        # A text that only a dialect allows is wrong by the specification.
        is_dialect = after.row is not before.row and after.row is not None and after.row.deviation is not None
        if must_be_flawed and after.valid and not is_dialect:
            raise NotHere("it is sound all the same")
        says_the_same = after.row is before.row and after.fields_json == before.fields_json
        if says_the_same and after.valid and _codes(after) <= _codes(before):
            raise NotHere("it says the same")
        return written


def _codes(decoded: Decoded) -> set[str]:
    return {flaw.code for flaw in decoded.flaws}


def _is_of_type(field: Field, value: Any) -> bool:
    """Whether a value is one of the field's type, rather than a list of those."""
    try:
        return bool(field.type.decode(field.type.encode(value)) == value)
    except (Mismatch, *UNWRITABLE):
        return False


def _nobodys(value: Any) -> Any:
    """A name that nobody has, of the same kind."""
    return value + _NOBODYS_NUMBER if isinstance(value, int) else f"{NOBODY}{value}"[: max(len(value), 1)]
