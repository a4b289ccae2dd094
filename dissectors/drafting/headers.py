"""Inference of headers: possible places of a length, and the parts of the bytes before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kiebitz.dissectors.protocol_file.specification import (
    LENGTH,
    NAME,
    BinaryType,
    ByteOrder,
    FieldSpec,
    Framing,
    HeaderPart,
    Inclusive,
    IntegerKind,
)

_MAX_BEFORE = 8
"""Maximum number of bytes before a length."""

_MAX_NAMES = 64
"""Maximum number of values of what stands for a message's name."""

_INTEGERS: Mapping[int, IntegerKind] = {8: "u64", 4: "u32", 2: "u16", 1: "u8"}
"""Types of lengths by their sizes in bytes."""

_COUNTED: dict[Inclusive, str] = {
    "": "the remaining length",
    "header": "the whole length",
    "length": "the remaining length with their own",
}


class Length(NamedTuple):
    """A length of `size` bytes after `before` others; it counts the bytes after it, and `inclusive` ones."""

    before: int
    size: int
    order: ByteOrder
    inclusive: Inclusive

    @property
    def rank(self) -> tuple[int, int]:
        """Preference among lengths that fit alike."""
        return self.size - self.before, -len(self.inclusive)

    def framing(self, heads: Sequence[bytes] = ()) -> Framing:
        """Return the framing; the bytes before the length are one field, or the parts that `heads` have."""
        kind = _INTEGERS[self.size]
        if not self.before:
            return Framing(kind="length", prefix=kind, order=self.order, inclusive=self.inclusive)
        before = BinaryType("bytes", self.before)
        parts = [*_parts_before(heads, self.order)] if heads else [HeaderPart(FieldSpec("", before, ""))]
        header = *parts, HeaderPart(FieldSpec(LENGTH, BinaryType(kind), kind))
        return Framing(kind="length", header=header, order=self.order, inclusive=self.inclusive)

    def described(self, heads: Sequence[bytes]) -> str:
        """Return it in words: a byte with 7 values, then 4 bytes that equal the remaining length."""
        parts = []
        if self.before:
            values = len({*heads})
            parts.append(f"{_bytes(self.before)} with {values} value{'s' if values != 1 else ''}")
        order = f", {self.order}-endian" if self.size > 1 else ""
        is_one = "s" if self.size == 1 else ""
        parts.append(f"{_bytes(self.size)} that equal{is_one} {_COUNTED[self.inclusive]}{order}")
        return ", then ".join(parts)


def lengths() -> Iterator[Length]:
    """Yield all lengths that are looked for."""
    orders: tuple[ByteOrder, ...] = ("big", "little")
    for before in range(_MAX_BEFORE + 1):
        for size in _INTEGERS:
            for order in orders[: 1 if size == 1 else 2]:
                for inclusive in _COUNTED:
                    if before or inclusive != "header":
                        yield Length(before, size, order, inclusive)


def _parts_before(heads: Sequence[bytes], order: ByteOrder) -> Iterator[HeaderPart]:
    """Yield the parts before a length."""
    columns = [{*column} for column in zip(*heads, strict=True)]
    fixed = next((at for at, values in enumerate(columns) if len(values) > 1), len(columns))
    # Zeros before a number are its upper bytes.
    while order == "big" and 0 < fixed < len(columns) and columns[fixed - 1] == {0}:
        fixed -= 1
    if fixed:
        yield HeaderPart(constant=heads[0][:fixed])
    at = fixed
    while at < len(columns):
        rest = columns[at:]
        zeros = rest[:-1] if order == "big" else rest[1:]
        is_wide = len(rest) in (2, 4) and all(values == {0} for values in zeros)
        size = len(rest) if is_wide else 1
        name = NAME if at == fixed and len(rest[0 if order == "little" else size - 1]) <= _MAX_NAMES else ""
        kind = _INTEGERS[size]
        yield HeaderPart(FieldSpec(name or f"header{at + 1}", BinaryType(kind), kind))
        at += size


def _bytes(number: int) -> str:
    return "a byte" if number == 1 else f"{number} bytes"
