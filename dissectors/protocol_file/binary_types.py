"""Field types of protocol files for binary values: numbers, texts and bytes, one after the other."""

from __future__ import annotations

import math
import re
import struct
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from kiebitz.dissectors.grammar.field_type import (
    CONTROL,
    LONG,
    OUTSIDE_ASCII,
    TOO_LONG,
    UNKNOWN_WORD,
    Fields,
    FieldType,
    Mismatch,
    WireType,
    Wrong,
)
from kiebitz.dissectors.grammar.fields import (
    ListText,
    Number,
    ObjectText,
    Text,
    Word,
    beyond_limits,
    limits_title,
    quoted,
)
from kiebitz.dissectors.grammar.grammar import Path, to_json
from kiebitz.dissectors.grammar.tokens import Splitter
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BagType,
    BinaryType,
    BooleanType,
    ByteOrder,
    ChoiceType,
    EitherType,
    FieldTypeSpec,
    Format,
    IdentifierType,
    ListType,
    MapType,
    NumberType,
    ObjectType,
    PythonType,
    TextType,
)
from kiebitz.dissectors.protocol_file.text_types import (
    boolean_text,
    identifier_kind,
    integer_limits,
    matches_names,
)

_CODES = {
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "f32": "f",
    "f64": "d",
}
MAX_VARINT = 10
"""Maximum length of a varint in bytes: those of 64 bits."""

_UNSIGNED = ("u8", "u16", "u32", "u64")
_SIGNED = ("i8", "i16", "i32", "i64")


def layout_of(kind: str, order: ByteOrder) -> struct.Struct:
    """Return the layout of a number of fixed size."""
    return struct.Struct((">" if order == "big" else "<") + _CODES[kind])


def read_varint(data: bytes | bytearray, at: int, end: int) -> tuple[int, int] | None:
    """Return an unsigned LEB128 number at `at` and its end; None if it is incomplete or too long."""
    value = shift = 0
    for position in range(at, min(end, at + MAX_VARINT)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value, position + 1) if value < 2**64 else None
        shift += 7
    return None


def write_varint(value: int) -> bytes:
    """Return the shortest LEB128 form of a number."""
    if not 0 <= value < 2**64:
        raise ValueError(f"{value} does not fit into a varint")
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def binary_type(spec: FieldTypeSpec, of: Format) -> Binary:
    """Return the field type for a type of a protocol file.

    Numbers have the smallest size for their limits, four bytes (eight for fractions) without any. Texts have
    a length prefix of 16 bits, words one of 8 bits.
    """
    match spec:
        case BinaryType(kind, size):
            if kind in ("text", "bytes"):
                return (BinaryText if kind == "text" else BinaryBytes)(size, of)
            if kind == "varint":
                return Varint()
            return BinaryBoolean() if kind == "bool8" else BinaryNumber(kind, of)
        case BooleanType():
            return BinaryBoolean()
        case NumberType():
            return BinaryNumber(_kind_for(spec), of, spec)
        case ChoiceType():
            return _named_numbers(spec, of) if spec.words else _binary_choice(spec.plain, of)
        case TextType(pattern, rest):
            return BinaryText(None if rest else "u16", of, pattern=pattern)
        case AnyType() | EitherType() | BagType() | MapType() | PythonType():
            # Alternatives, bags and maps belong to JSON.
            return BinaryBytes(None, of)
        case IdentifierType(kind, inner):
            value = binary_type(inner, of)
            value.identifier = identifier_kind(kind)
            value.is_free_text = isinstance(value, BinaryText) and value.identifier.of_player
            value.title = f"{value.identifier.title}: {value.title}"
            return value
        case ListType(item):
            return BinaryList(binary_type(item, of), spec.count or spec.most)
        case ObjectType(fields, _):
            return BinaryObject({field.name: binary_type(field.type, of) for field in fields})


def _kind_for(spec: NumberType) -> str:
    if not spec.whole:
        return "f64"
    if spec.minimum is None or spec.maximum is None:
        return "u32" if spec.minimum is not None and spec.minimum >= 0 else "i32"
    for kind in _UNSIGNED if spec.minimum >= 0 else _SIGNED:
        smallest, largest = integer_limits(kind)
        if smallest <= spec.minimum and spec.maximum <= largest:
            return kind
    return "i64"


def _named_numbers(spec: ChoiceType, of: Format) -> NamedNumber:
    numbers = [*map(int, spec.words)]
    kind = spec.of or _kind_for(NumberType(min(numbers), max(numbers)))
    return NamedNumber(kind, of, Word(values=dict(zip(spec.words, spec.values, strict=True))))


def _binary_choice(values: Sequence[str | int], of: Format) -> Binary:
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values):
        limits = NumberType(min(numbers), max(numbers))
        return BinaryNumber(_kind_for(limits), of, limits, frozenset(numbers))
    return BinaryText("u8", of, words=tuple(map(str, values)))


_TEXT_NAME = re.compile(r"text(?::([0-9]+)|(8|16|32|64)|)")


def name_type(of: Format) -> Binary | None:
    """Return the type of what stands for the name: a number for a code, or a text; None if nothing does."""
    if not of.name:
        return None
    text = _TEXT_NAME.fullmatch(of.name)
    if text is not None:
        fixed, bits = text.groups()
        return BinaryText(int(fixed) if fixed else f"u{bits or 8}", of)
    return Varint() if of.name == "varint" else BinaryNumber("u8" if of.name == "first" else of.name, of)


class Binary(FieldType):
    """A type of binary value; its `decode` and `encode` use a text for people, such as `12` or `0a ff`."""

    _text: FieldType = Text()
    """Type of the text for people."""

    @abstractmethod
    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        """Return the value at `at`, and its end; raise Mismatch with byte offsets."""

    def unpack_after(self, data: bytes, at: int, end: int, fields: Fields) -> tuple[Any, int]:
        """Return the value at `at` after these fields, and its end; see `unpack`."""
        return self.unpack(data, at, end)

    @abstractmethod
    def pack(self, value: Any) -> bytes:
        """Return the bytes of a value; raise ValueError if it is not one of the type."""

    def as_bytes(self, text: str) -> bytes:
        """Return the bytes of a text, which may be invalid for the type; raise ValueError if impossible."""
        try:
            return self._bytes_of(text)
        except Mismatch as error:
            raise ValueError(error.problem) from error

    def _bytes_of(self, text: str) -> bytes:
        return self.pack(self._text.decode(text))

    def decode(self, text: str) -> Any:
        try:
            data = self._bytes_of(text)
            return self.unpack(data, 0, len(data))[0]
        except ValueError as error:
            raise Mismatch(0, len(text), str(error), self.title) from error
        except Mismatch as error:
            raise Mismatch(0, len(text), error.problem, self.title, error.code) from error

    def encode(self, value: Any) -> str:
        return self._text.encode(value)

    def inner(self, data: bytes, at: int, end: int) -> Iterator[tuple[Path, Binary, int, int]]:
        """Yield the steps, types and places of the parts of a valid value.

        The value without its length has no step.
        """
        yield from ()

    def _too_short(self, at: int, end: int) -> Mismatch:
        return Mismatch(at, end, "the message ends too early", self.title, "missing-field")


class BinaryNumber(Binary):
    """A number of fixed size; one of `values`, if there are any."""

    def __init__(
        self, kind: str, of: Format, spec: NumberType | None = None, values: frozenset[int] = frozenset()
    ) -> None:
        self._layout = layout_of(kind, of.order)
        self.kind, self.order = kind, of.order
        self.size = self._layout.size
        self.values = values
        self._is_float = kind[0] == "f"
        self._text = Number(limits=NumberType(whole=not self._is_float))
        self._spec = spec
        self.title = kind if spec is None else f"{kind}, {limits_title(spec)}"
        self._limits = (-math.inf, math.inf)
        if spec is not None:
            self._limits = (
                -math.inf if spec.minimum is None else spec.minimum,
                math.inf if spec.maximum is None else spec.maximum,
            )

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        upto = at + self.size
        if upto > end:
            raise self._too_short(at, end)
        value = self.raw(data, at)
        if self._is_float and not math.isfinite(value):
            raise Mismatch(at, upto, f"{value} is not a number", self.title, "bad-number")
        if not self._limits[0] <= value <= self._limits[1] or (self.values and value not in self.values):
            raise Mismatch(at, upto, f"{value} is out of range", self.title, "bad-number")
        return value, upto

    def raw(self, data: bytes | bytearray, at: int) -> Any:
        """Return the number at `at`, of which all bytes are there, without a check."""
        return self._layout.unpack_from(data, at)[0]

    def pack(self, value: Any) -> bytes:
        if type(value) is not int and (type(value) is not float or not self._is_float):
            raise ValueError(f"{value!r} is not a number of this type")
        try:
            return self._layout.pack(value)
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{value!r} does not fit into {self.size} bytes") from error

    def wrong_values(self) -> Iterator[Wrong]:
        for kind, title, value in beyond_limits(self._spec) if self._spec else ():
            try:
                self.pack(value)
            except ValueError:
                continue
            yield Wrong(kind, title, str(value))

    def wire_type(self) -> WireType | None:
        return {
            "kind": "binary_number",
            "whole": not self._is_float,
            "size": self.kind,
            "order": self.order,
            "min": _finite(self._limits[0]),
            "max": _finite(self._limits[1]) or (2**64 - 1 if self.kind == "u64" else None),
            "known": {f"#{value}": True for value in sorted(self.values)} or None,
        }


class NamedNumber(BinaryNumber):
    """A number that stands for a value, such as a word."""

    def __init__(self, kind: str, of: Format, numbers: Word) -> None:
        known = [*map(int, numbers.values)]
        super().__init__(kind, of, NumberType(min(known), max(known)), frozenset(known))
        self._numbers = numbers
        self.words = (*map(self.encode, numbers.values.values()),)
        self._values = dict(zip(self.words, numbers.values.values(), strict=True))
        named = zip(numbers.values, self.words, strict=True)
        self.title = f"{kind}: {', '.join(f'{number} {word}' for number, word in named)}"

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        number, upto = super().unpack(data, at, end)
        return self._numbers.decode(str(number)), upto

    def pack(self, value: Any) -> bytes:
        return super().pack(int(self._numbers.encode(value)))

    def decode(self, text: str) -> Any:
        if text not in self._values:
            raise Mismatch(0, len(text), f"{quoted(text)} is not known here", self.title)
        return self._values[text]

    def encode(self, value: Any) -> str:
        return value if isinstance(value, str) else to_json(value)

    def _bytes_of(self, text: str) -> bytes:
        return (
            self.pack(self._values[text]) if text in self._values else super().pack(self._text.decode(text))
        )

    def wire_type(self) -> WireType | None:
        return {**(super().wire_type() or {}), "names": self._numbers.wire_type()}


class Varint(Binary):
    """An unsigned number in groups of seven bits (LEB128)."""

    title = "varint"
    wrong_texts = ()
    _text = Number(limits=NumberType(0))

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        found = read_varint(data, at, end)
        if found is not None:
            return found
        if end - at < MAX_VARINT and all(byte > 0x7F for byte in data[at:end]):
            raise self._too_short(at, end)
        raise Mismatch(at, min(end, at + MAX_VARINT), "this varint has no end", self.title, "bad-number")

    def pack(self, value: Any) -> bytes:
        if type(value) is not int:
            raise ValueError(f"{value!r} is not a whole number")
        return write_varint(value)

    def wire_type(self) -> WireType | None:
        return {"kind": "binary_varint_number", "whole": True, "min": 0, "max": 2**64 - 1}


class BinaryBoolean(Binary):
    """A byte that is 0 or 1."""

    title = "bool8"
    wrong_texts = (Wrong("out-of-range", "neither 0 nor 1", "2"),)
    _text = boolean_text()

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        if at >= end:
            raise self._too_short(at, end)
        if data[at] > 1:
            raise Mismatch(at, at + 1, f"{data[at]} is neither 0 nor 1", self.title)
        return data[at] == 1, at + 1

    def pack(self, value: Any) -> bytes:
        if type(value) is not bool:
            raise ValueError(f"{value!r} is neither true nor false")
        return bytes([value])

    def _bytes_of(self, text: str) -> bytes:
        return bytes([int(text)]) if text.isdigit() and len(text) < 4 else super()._bytes_of(text)

    def wire_type(self) -> WireType | None:
        return {"kind": "binary_boolean"}


class BinarySequence(Binary):
    """Bytes of a fixed length, with a length prefix, or all that remain."""

    fill = b"\0"

    def __init__(self, size: int | str | None, of: Format) -> None:
        self.fixed_length = size if isinstance(size, int) else None
        self.prefix: Binary | None = None
        if isinstance(size, str):
            self.prefix = Varint() if size == "varint" else BinaryNumber(size, of)

    def bounds(self, data: bytes, at: int, end: int) -> tuple[int, int]:
        """Return the range of the bytes at `at`, without their length."""
        length = self.fixed_length
        if self.prefix is not None:
            length, at = self.prefix.unpack(data, at, end)
        if length is None:
            return at, end
        if length < 0 or length > end - at:
            raise Mismatch(at, end, f"there are {end - at} bytes, not {length}", self.title, "missing-field")
        return at, at + length

    def inner(self, data: bytes, at: int, end: int) -> Iterator[tuple[Path, Binary, int, int]]:
        if self.prefix is not None:
            yield (), self, *self.bounds(data, at, end)

    def wrap(self, data: bytes) -> bytes:
        """Return bytes with their length, or filled up."""
        if self.fixed_length is not None:
            if len(data) > self.fixed_length:
                raise ValueError(f"{len(data)} bytes do not fit into {self.fixed_length}")
            return data.ljust(self.fixed_length, self.fill)
        return data if self.prefix is None else self.prefix.pack(len(data)) + data

    def wire_bounds(self) -> WireType:
        """Return the declarative description of the length."""
        return {"length": self.fixed_length, "prefix": self.prefix and self.prefix.wire_type()}


def _sized_title(noun: str, size: int | str | None) -> str:
    if isinstance(size, int):
        return f"{noun} of {size} bytes"
    return f"{noun} with its length ({size})" if size is not None else f"{noun}: all that remains"


class BinaryText(BinarySequence):
    """A text; a fixed length is filled up with zeros, or with blanks, also before it."""

    is_free_text = True
    wrong_texts: Sequence[Wrong] = (
        CONTROL,
        OUTSIDE_ASCII,
        TOO_LONG._replace(title=f"a text of {LONG} bytes"),
    )

    def __init__(
        self, size: int | str | None, of: Format, words: tuple[str, ...] = (), pattern: str | None = None
    ) -> None:
        super().__init__(size, of)
        self._encoding = of.encoding
        self.words = words
        self.title = f"one of {', '.join(words)}" if words else _sized_title("text", size)
        if pattern is not None:
            self.title += f" like /{pattern}/"
        self._matches = matcher(pattern) if pattern is not None else None
        if self._matches is not None:
            self.is_free_text = matches_names(self._matches)
        if words:
            self.is_free_text = False
            self.wrong_texts = (Wrong("unknown", "an unknown word", UNKNOWN_WORD), *type(self).wrong_texts)

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        start, upto = self.bounds(data, at, end)
        sent = data[start:upto]
        if self.fixed_length is not None:
            sent = self._without_fill(sent)
        try:
            text = sent.decode(self._encoding)
        except UnicodeDecodeError as error:
            wrong = sent[error.start : error.end]
            problem = f"the bytes {wrong.hex(' ')} are not {self._encoding.upper()}"
            raise Mismatch(
                start + error.start, start + error.end, problem, f"{self._encoding.upper()} text", "not-utf-8"
            ) from None
        if self.words and text not in self.words:
            raise Mismatch(start, start + len(sent), f"{quoted(text)} is not known here", self.title)
        if self._matches is not None and not self._matches(text):
            raise Mismatch(start, start + len(sent), f"{quoted(text)} has another form", self.title)
        return text, upto

    def pack(self, value: Any) -> bytes:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a text")
        data = value.encode(self._encoding)
        if self.fixed_length is not None and data != self._without_fill(data):
            raise ValueError("a text of fixed length cannot end with what fills it up")
        return self.wrap(data)

    def _without_fill(self, data: bytes) -> bytes:
        return data.rstrip(b"\0") if self.fill == b"\0" else data.strip(b" \0")

    def _bytes_of(self, text: str) -> bytes:
        return self.wrap(text.encode(self._encoding, "surrogateescape"))

    def wire_type(self) -> WireType | None:
        return {
            "kind": "binary_text",
            **self.wire_bounds(),
            "encoding": self._encoding,
            "filled": self.fill == b" " or None,
            "words": dict.fromkeys(self.words, True) or None,
            **({"limit": "its pattern is not checked"} if self._matches is not None else {}),
        }


class BinaryBytes(BinarySequence):
    """Bytes, as a text of hexadecimal digits."""

    wrong_texts = (TOO_LONG._replace(title=f"{LONG} bytes", text="00" * LONG),)

    def __init__(self, size: int | str | None, of: Format) -> None:
        super().__init__(size, of)
        self.title = _sized_title("bytes", size)

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        start, upto = self.bounds(data, at, end)
        return data[start:upto].hex(), upto

    def pack(self, value: Any) -> bytes:
        data = bytes.fromhex(value)
        if self.fixed_length is not None and len(data) != self.fixed_length:
            raise ValueError(f"{len(data)} bytes are not {self.fixed_length}")
        return self.wrap(data)

    def wire_type(self) -> WireType | None:
        return {"kind": "binary_bytes", **self.wire_bounds()}


class BinaryList(Binary):
    """Values of one type: `count` of them, or the value of the field `count`, or up to the message's end."""

    wrong_texts = ()
    item: Binary

    def __init__(self, item: Binary, count: int | str | None = None) -> None:
        self.item = item
        self.count = count
        self.parts = (item,)
        self._text = ListText(item, Splitter(","))
        self.title = f"list: {item.title}" if count is None else f"list of {count}: {item.title}"

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        return self.unpack_after(data, at, end, {})

    def unpack_after(self, data: bytes, at: int, end: int, fields: Fields) -> tuple[Any, int]:
        count = fields.get(self.count) if isinstance(self.count, str) else self.count
        found: list[Any] = []
        if count is not None and count > end - at:
            problem = f"there are {end - at} bytes for {count} items"
            raise Mismatch(at, end, problem, self.title, "missing-field")
        while at < end if count is None else len(found) < count:
            value, upto = self.item.unpack(data, at, end)
            if upto == at:
                raise Mismatch(at, end, "a list of values without bytes has no end", self.title)
            found.append(value)
            at = upto
        return found, at

    def pack(self, value: Any) -> bytes:
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is not a list")
        if isinstance(self.count, int) and len(value) != self.count:
            raise ValueError(f"{len(value)} items are not {self.count}")
        return b"".join(map(self.item.pack, value))

    def inner(self, data: bytes, at: int, end: int) -> Iterator[tuple[Path, Binary, int, int]]:
        number = 0
        while at < end:
            _, upto = self.item.unpack(data, at, end)
            yield (number,), self.item, at, upto
            at = upto
            number += 1

    def wire_type(self) -> WireType | None:
        return {"kind": "binary_list", "item": self.item.wire_type(), "count": self.count}


class BinaryObject(Binary):
    """Named values, one after the other."""

    wrong_texts = ()

    def __init__(self, fields: dict[str, Binary]) -> None:
        self.fields = self.members = fields
        self.parts = (*fields.values(),)
        self._text = ObjectText(fields, Splitter(":"))
        self.title = f"object: {', '.join(fields)}"

    def unpack(self, data: bytes, at: int, end: int) -> tuple[Any, int]:
        found: dict[str, Any] = {}
        for name, kind in self.fields.items():
            found[name], at = kind.unpack_after(data, at, end, found)
        return found, at

    def pack(self, value: Any) -> bytes:
        if not isinstance(value, dict) or value.keys() != self.fields.keys():
            raise ValueError(f"{value!r} does not have the parts {', '.join(self.fields)}")
        return b"".join(kind.pack(value[name]) for name, kind in self.fields.items())

    def inner(self, data: bytes, at: int, end: int) -> Iterator[tuple[Path, Binary, int, int]]:
        found: dict[str, Any] = {}
        for name, kind in self.fields.items():
            found[name], upto = kind.unpack_after(data, at, end, found)
            yield (name,), kind, at, upto
            at = upto

    def wire_type(self) -> WireType | None:
        return {
            "kind": "binary_object",
            "fields": [{"name": name, "type": kind.wire_type()} for name, kind in self.fields.items()],
        }


def _finite(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None
