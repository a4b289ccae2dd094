"""The beginnings of messages: headers, and the optional text before a message.

A header has constants, the length of the message, the number or text for its name, and fields. The text, such
as `6@4 `, has fields with characters around them, and a blank or delimiter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.field_type import Fields, FieldType, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import quoted
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.binary_types import (
    MAX_VARINT,
    Binary,
    BinaryNumber,
    BinarySequence,
    BinaryText,
    Varint,
    binary_type,
    name_type,
    read_varint,
)
from kiebitz.dissectors.protocol_file.specification import (
    LENGTH,
    NAME,
    BeforePart,
    BinaryType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    Framing,
    HeaderPart,
    IdentifierType,
    NumberType,
    Specification,
    TextType,
    value_type,
)
from kiebitz.dissectors.protocol_file.text_types import text_type

INVALID = 0
"""Size of the frame of a header that no message has."""

PLAUSIBLE = 1 << 16
"""Maximum length, in bytes, of a frame from which a framer may resume after missing bytes."""

_STRONG = 2
"""Number of constant bytes that other data hardly has by chance."""

_LONGEST = 256
"""Maximum length, in bytes, of a text of a header up to the constant after it."""

_MAX_DIGITS = 9
_FILLS = b" \0"
"""Bytes that fill up a text of a fixed size."""


class Extent(NamedTuple):
    """The offset of a message after its header, and the size of its frame.

    If the header is `INVALID`, its bytes end at `start`.
    """

    start: int
    size: int


class Beginning(NamedTuple):
    """A pattern of the first bytes of messages, their greatest length, and the least number of known ones."""

    pattern: re.Pattern[bytes]
    longest: int
    least: int


class Part(NamedTuple):
    """A part of a header: a constant if it has no name.

    `size` is 0 if that varies: of a number, or of a text up to the constant `until`.
    """

    name: str
    type: FieldType | None
    size: int
    constant: bytes
    until: bytes = b""

    @property
    def longest(self) -> int:
        """The maximum size."""
        return self.size or (_LONGEST if self.until else MAX_VARINT)


class Read(msgspec.Struct):
    """A header: the places of its parts, its fields, what stands for the name, and the first error."""

    places: list[tuple[Part, int, int]]
    fields: dict[str, Any]
    sent: Any = None
    start: int = 0
    error: tuple[str, Mismatch] | None = None


def fixed_size(kind: Binary) -> int | None:
    """Return the number of bytes of all values of a type, 0 of a varint, None if texts have their length."""
    if isinstance(kind, Varint):
        return 0
    if isinstance(kind, BinarySequence):
        return kind.fixed_length
    return kind.size if isinstance(kind, BinaryNumber) else 1


class Header:
    """The bytes before each message, if there are any; `beginning` is that of a direction's messages."""

    def __init__(self, framing: Framing, of: Format, beginning: Beginning | None = None) -> None:
        self._framing = framing
        order = msgspec.structs.replace(of, order=framing.order)
        header = framing.header
        if not header and framing.kind == "length":
            header = (HeaderPart(FieldSpec(LENGTH, BinaryType(framing.prefix), framing.prefix)),)
        fields = [part.field for part in header if part.field is not None]
        is_text = all(is_text_part(field) for field in fields)
        self.parts: Sequence[Part] = [
            Part("", None, len(part.constant), part.constant)
            if part.field is None
            else _part(part.field, order, following.constant, is_text)
            for part, following in with_next(header)
        ]
        self.has_length = any(part.name == LENGTH for part in self.parts)
        known = sum(len(part.constant) for part in self.parts)
        self.is_strong = max(known, beginning.least if beginning is not None else 0) >= _STRONG
        """True if other bytes hardly begin with such a header by chance."""
        self.searches = any(part.constant for part in self.parts)
        """True if after wrong bytes the next header is searched for, instead of where a length would lead."""
        self.fixed_size = framing.size
        self._beginning = beginning

    def extent(self, data: bytes | bytearray, at: int, end: int) -> Extent | None:
        """Return the extent of the frame whose header is at an offset; None if the header is incomplete."""
        begin, length, own = at, 0, 0
        for part in self.parts:
            size = _size(part, data, at, end)
            if size is None:
                return self._incomplete(part, data, at, end)
            if part.constant and data[at : at + size] != part.constant:
                return Extent(at + size, INVALID)
            if part.name == LENGTH:
                number = self._number(part, data, at, at + size)
                if number is None:
                    return Extent(at + size, INVALID)
                length, own = number, size
            at += size
        if not self.has_length:
            return Extent(at, self.fixed_size or end - begin)
        inclusive = self._framing.inclusive
        size = at - begin + length - (own if inclusive == "length" else at - begin if inclusive else 0)
        return Extent(at, size if size >= at - begin else INVALID)

    def measure(self, data: bytes | bytearray) -> Iterator[Extent | None]:
        """Yield None until the header at the beginning of growing data is complete, then its extent."""
        while True:
            yield self.extent(data, 0, len(data))

    def _number(self, part: Part, data: bytes | bytearray, at: int, upto: int) -> int | None:
        """Return the length at an offset; None if a text is no number."""
        if isinstance(part.type, BinaryText):
            digits = bytes(data[at:upto]).strip(_FILLS)
            return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else None
        if part.size:
            return int.from_bytes(data[at:upto], self._framing.order)
        found = read_varint(data, at, upto)
        return found and found[0]

    def plausible(self, data: bytes | bytearray, at: int, end: int) -> Extent | None:
        """Return the extent of what begins like a message, else an invalid one; None if it is incomplete."""
        found = self.extent(data, at, end)
        if found is None or found.size > PLAUSIBLE:
            return found and Extent(found.start, INVALID)
        beginning = self._beginning
        if beginning is not None and found.size:
            if at + min(beginning.longest, found.size) > end:
                return None
            if not beginning.pattern.match(data, at):
                return Extent(found.start, INVALID)
        return found

    def _incomplete(self, part: Part, data: bytes | bytearray, at: int, end: int) -> Extent | None:
        """Return the extent of a part that is never valid; None if it is incomplete."""
        if part.size:
            is_wrong = bool(part.constant) and not part.constant.startswith(data[at:end])
            return Extent(end, INVALID) if is_wrong else None
        ends = (upto for upto in range(at, min(end, at + MAX_VARINT)) if data[upto] < 0x80)
        upto = None if part.until else next(ends, None)
        if upto is not None:
            return Extent(upto + 1, INVALID)
        return Extent(at + part.longest, INVALID) if end - at >= part.longest else None

    def read(self, frame: bytes) -> Read:
        """Return the header of a frame; raise Mismatch if the frame contradicts it."""
        found = self.extent(frame, 0, len(frame))
        places: list[tuple[Part, int, int]] = []
        read = Read(places, {})
        at = 0
        for part in self.parts:
            size = _size(part, frame, at, len(frame))
            upto = at + (part.size or len(frame) + 1 if size is None else size)
            if part.constant and frame[at:upto] != part.constant:
                shown = frame[at:upto].hex(" ")
                problem = f"the header has {shown or 'no bytes'} in place of {part.constant.hex(' ')}"
                raise Mismatch(at, min(upto, len(frame)), problem, part.constant.hex(" "), "bad-header")
            if upto > len(frame):
                break
            if part.name == LENGTH and self._number(part, frame, at, upto) is None:
                problem = f"{quoted(frame[at:upto].decode(errors='replace'))} is no length"
                raise Mismatch(at, upto, problem, "digits", "bad-length")
            places.append((part, at, upto))
            if part.type is not None and part.name != LENGTH:
                self._read_value(read, part, _binary(part), frame, at, upto)
            at = read.start = upto
        if found is None or found.size != len(frame):
            problem = f"the length does not fit these {len(frame)} bytes"
            if not self.has_length:
                problem = "the message ends within its header"
            raise Mismatch(0, len(frame), problem, "the length of the message", "bad-length")
        return read

    def _read_value(self, read: Read, part: Part, kind: Binary, frame: bytes, at: int, upto: int) -> None:
        try:
            value, _ = kind.unpack(frame, at, upto)
        except Mismatch as error:
            read.error = read.error or (part.name, error)
            return
        if part.name == NAME:
            read.sent = value
        else:
            read.fields[part.name] = value

    def write(self, sent: Any, fields: Fields, body: bytes) -> bytes:
        """Return the frame of a message; raise ValueError or LookupError if its header cannot be written."""
        pieces: list[bytes | None] = []
        for part in self.parts:
            if part.type is None:
                pieces.append(part.constant)
            elif part.name == LENGTH:
                pieces.append(None)
            else:
                kind = _binary(part)
                pieces.append(_packed_name(kind, sent) if part.name == NAME else kind.pack(fields[part.name]))
        own = sum(len(piece) for piece in pieces if piece is not None)
        return b"".join(self._length(len(body), own) if piece is None else piece for piece in pieces) + body

    def _length(self, size: int, other: int) -> bytes:
        """Return the bytes of the length; `other` is the size of the rest of the header."""
        kind = next(_binary(part) for part in self.parts if part.name == LENGTH)
        inclusive = self._framing.inclusive
        counted = size + (other if inclusive == "header" else 0)
        for own in range(1, MAX_VARINT + 1):
            packed = _packed_name(kind, counted + (own if inclusive else 0))
            if len(packed) <= own:
                return packed
        raise ValueError("the length does not fit")

    def as_bytes(self, kind: FieldType, text: str) -> bytes:
        """Return a text as it is written in a field; raise ValueError if that is impossible."""
        assert isinstance(kind, Binary)
        return kind.as_bytes(text)

    def wire(self) -> WireType:
        """Return the declarative description of the framing."""
        return {
            "kind": self._framing.kind,
            "header": [
                {"constant": part.constant.hex()}
                if part.type is None
                else {
                    "name": part.name,
                    "size": part.size or None,
                    "until": part.until.hex() or None,
                    "type": part.type.wire_type(),
                }
                for part in self.parts
            ],
            "inclusive": self._framing.inclusive or None,
            "has_length": self.has_length,
            "searches": self.searches,
            "size": self.fixed_size or None,
            "is_strong": self.is_strong,
            "own": len(self._framing.fields),
        }


def _part(field: FieldSpec, of: Format, until: bytes, is_text: bool) -> Part:
    """Return a part of a header that has a name; in a header that `is_text`, blanks fill up a fixed size."""
    spec = field.type
    inner = value_type(spec)
    if isinstance(inner, TextType):
        inner = msgspec.structs.replace(inner, rest=True)
        spec = msgspec.structs.replace(spec, of=inner) if isinstance(spec, IdentifierType) else inner
    kind = binary_type(spec, of)
    if is_text and isinstance(kind, BinaryText):
        kind.fill = b" "
    size = fixed_size(kind)
    return Part(field.name, kind, size or 0, b"", until if size is None else b"")


def with_next(parts: Sequence[HeaderPart]) -> Iterator[tuple[HeaderPart, HeaderPart]]:
    """Yield each part of a header with the one after it, which is empty after the last."""
    return pairwise((*parts, HeaderPart()))


def is_text_part(field: FieldSpec) -> bool:
    """Return True if a part of a header is a text."""
    kind = value_type(field.type)
    return isinstance(kind, TextType) or (isinstance(kind, BinaryType) and kind.kind == "text")


def _size(part: Part, data: bytes | bytearray, at: int, end: int) -> int | None:
    """Return the size of a part at an offset; None if its end is not in the data."""
    if part.size:
        return part.size if at + part.size <= end else None
    if part.until:
        upto = data.find(part.until, at, min(end, at + _LONGEST))
        return upto - at if upto >= 0 else None
    found = read_varint(data, at, end)
    return found and found[1] - at


def _packed_name(kind: Binary, sent: Any) -> bytes:
    """Return the bytes of what stands for the name, or of a length: in a text, a number has leading zeros."""
    if isinstance(kind, BinaryText) and type(sent) is int:
        sent = str(sent).zfill(kind.fixed_length or 1)
    return kind.pack(sent)


def _binary(part: Part) -> Binary:
    assert isinstance(part.type, Binary)
    return part.type


def beginning_of(specification: Specification, direction: Direction) -> Beginning | None:
    """Return what is known of the first bytes of the messages of a direction; None if that is nothing."""
    framing, of = specification.framing, specification.format_of(direction)
    messages = [message for message in specification.messages if message.direction == direction]
    named: dict[str, Any] = {message.name: message.name for message in messages}
    named |= {message.name: message.code for message in messages if message.code is not None}
    pieces: list[bytes] = []
    longest = known = 0
    known_to = 0
    for part in Header(framing, of).parts:
        if part.type is None:
            pieces.append(re.escape(part.constant))
            known += part.size
        elif part.name == NAME:
            pieces.append(_either(_packed(_binary(part), named.values())))
            known += part.size or 1
        else:
            varying = b"[\\s\\S]{0,%d}?" % _LONGEST if part.until else b"[\x80-\xff]{0,9}[\x00-\x7f]"
            pieces.append(b"[\\s\\S]{%d}" % part.size if part.size else varying)
            longest += part.longest
            continue
        longest += part.longest
        known_to = len(pieces)
    names: list[bytes] = []
    if NAMELESS in named:
        # A message may begin with anything.
        return Beginning(re.compile(b"".join(pieces[:known_to])), longest, known) if known_to else None
    kind = name_type(of) if of.kind == "struct" else None
    if kind is not None:
        names = [*_packed(kind, named.values())]
    elif of.kind in ("words", "delimited") and of.name:
        names = [str(sent).encode(of.encoding, "replace") for sent in named.values()]
    if names:
        pieces.append(_either(names))
        known_to = len(pieces)
        longest += max(map(len, names))
        known += min(map(len, names))
    return Beginning(re.compile(b"".join(pieces[:known_to])), longest, known) if known_to else None


def _packed(kind: Binary, values: Iterable[Any]) -> Iterator[bytes]:
    """Yield the bytes of the values that the type has."""
    for value in values:
        with suppress(ValueError):
            yield _packed_name(kind, value)


def _either(texts: Iterable[bytes]) -> bytes:
    return b"(?:%b)" % b"|".join(map(re.escape, sorted({*texts})))


class TextHead:
    """The text before each message of a direction, of which each part may be absent."""

    is_strong = False

    def __init__(self, before: Sequence[BeforePart], of: Format) -> None:
        self._encoding = of.encoding
        self._before = before
        self.parts: Sequence[Part] = [
            Part(each.field.name, text_type(each.field.type, of), 0, b"") for each in before
        ]
        self._gap = of.delimiter if of.kind == "delimited" else " "
        gap = "[ \t]+" if self._gap == " " else re.escape(self._gap)
        self._marks = "".join(each.opening + each.closing for each in before) + self._gap
        groups = (
            f"(?:({re.escape(each.opening)})({_pattern(each.field.type, self._marks)})"
            f"({re.escape(each.closing)}))?"
            for each in before
        )
        self._pattern = re.compile(f"{''.join(groups)}(?:{gap}|(?=[\r\n]|\\Z))".encode(of.encoding))

    def extent(self, data: bytes | bytearray, at: int, end: int) -> Extent:
        """Return the extent of a message, which is all that there is."""
        found = self._pattern.match(data, at)
        return Extent(found.end() if found is not None and found.lastindex else at, end - at)

    def read(self, frame: bytes) -> Read:
        """Return the text before the message of a frame."""
        start = self.extent(frame, 0, len(frame)).start
        places: list[tuple[Part, int, int]] = []
        read = Read(places, {}, start=start)
        found = self._pattern.match(frame) if start else None
        at = 0
        for number, part in enumerate(self.parts if found is not None else ()):
            assert found is not None
            begin, end = found.span(3 * number + 2)
            if begin < 0:
                continue
            if begin > at:
                places.append((_between(frame[at:begin]), at, begin))
            places.append((part, begin, end))
            at = end
            self._read_value(read, part, frame[begin:end], begin)
        if start > at:
            places.append((_between(frame[at:start]), at, start))
        return read

    def _read_value(self, read: Read, part: Part, sent: bytes, begin: int) -> None:
        assert part.type is not None
        try:
            read.fields[part.name] = part.type.decode(sent.decode(self._encoding))
        except UnicodeDecodeError:
            problem = f"the bytes {sent.hex(' ')} are not {self._encoding.upper()}"
            error = Mismatch(0, len(sent), problem, f"{self._encoding.upper()} text", "not-utf-8")
        except Mismatch as mismatch:
            error = mismatch
        else:
            return
        wrong = Mismatch(begin, begin + len(sent), error.problem, error.expected, error.code)
        read.error = read.error or (part.name, wrong)

    def write(self, sent: Any, fields: Fields, body: bytes) -> bytes:
        """Return the frame of a message."""
        texts = [
            f"{each.opening}{part.type.encode(fields[part.name])}{each.closing}"
            for each, part in zip(self._before, self.parts, strict=True)
            if part.name in fields and part.type is not None
        ]
        return f"{''.join(texts)}{self._gap if texts else ''}".encode(self._encoding) + body

    def as_bytes(self, kind: FieldType, text: str) -> bytes:
        """Return a text as it is written in a field."""
        return text.encode(self._encoding, "surrogateescape")

    def wire(self) -> WireType:
        """Return what the description of the framing has in addition."""
        return {
            "before": [
                {
                    "opening": each.opening,
                    "closing": each.closing,
                    "marks": self._marks,
                    "name": part.name,
                    "type": part.type.wire_type() if part.type is not None else None,
                }
                for each, part in zip(self._before, self.parts, strict=True)
            ],
            "gap": None if self._gap == " " else self._gap,
            "own": len(self._before),
        }


def _between(text: bytes) -> Part:
    return Part("", None, len(text), text)


def _pattern(kind: FieldTypeSpec, marks: str) -> str:
    """Return the pattern of a value; no other value has a blank or a character around one."""
    if isinstance(kind, NumberType):
        return r"-?[0-9]+" if kind.whole else r"-?[0-9]+(?:\.[0-9]+)?"
    return rf"[^ \t\r\n{re.escape(marks)}]+"
