"""Inference of the fields of binary messages: the cheapest sequence of types that consumes all of them.

Small numbers leave the high bytes of their fields at zero, and texts follow their length. Each field has a
cost, and unlikely numbers cost more.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from kiebitz.dissectors.drafting.format_choice import FormatChoice, Parsed
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.protocol_file.specification import ByteOrder, Format, Framing

_SAMPLE = 80
"""Number of messages of a kind by which their fields are inferred."""

_MAX_STATES = 4000
_MAX_FIELDS = 24
_MAX_CODES = 64
_SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i16": 2, "i32": 4, "f32": 4, "bool8": 1}


class Layout(msgspec.Struct, frozen=True):
    """The types of the fields of a binary message, and their cost."""

    cost: float
    types: tuple[str, ...]


def struct_format(framing: Framing, contents: Sequence[bytes]) -> FormatChoice:
    """Return the format of binary messages: the type of the code before the fields, and the byte order."""
    orders: list[ByteOrder] = [framing.order] if framing.kind == "length" else ["big", "little"]
    best: tuple[float, str, ByteOrder] | None = None
    for order in orders:
        for name in ("u8", "u16"):
            cost = _code_cost(contents, name, order)
            if cost is not None and (best is None or cost < best[0]):
                best = cost, name, order
    _, name, order = best or (0.0, "u8", orders[0])
    size = _SIZES[name]

    def parse(content: bytes) -> Parsed | None:
        if len(content) < size:
            return None
        return str(int.from_bytes(content[:size], order)), {"": content[size:]}

    return FormatChoice(
        Format(kind="struct", name=name, order=order), parse, is_positional=True, has_codes=True
    )


def _code_cost(contents: Sequence[bytes], name: str, order: ByteOrder) -> float | None:
    """Return the cost of all messages with this kind of code; None if it is none."""
    size = _SIZES[name]
    groups: dict[int, list[bytes]] = defaultdict(list)
    for content in contents:
        if len(content) >= size:
            groups[int.from_bytes(content[:size], order)].append(content[size:])
    if not groups or len(groups) > max(4, min(_MAX_CODES, len(contents) / 3)):
        return None
    # One code for all messages is no name.
    total = 3.0 * len(groups) + (20.0 if len(groups) == 1 else 0.0)
    for bodies in groups.values():
        total += infer_layout(bodies, order).cost
    return total


def infer_layout(bodies: Sequence[bytes], order: ByteOrder) -> Layout:
    """Return the cheapest sequence of types for the bodies of one kind of message."""
    step = -(-len(bodies) // _SAMPLE)
    sample = sorted({*bodies[::step], max(bodies, key=len), min(bodies, key=len)})
    return _Search(sample, order).best((0,) * len(sample), 0)


class _Search:
    def __init__(self, bodies: Sequence[bytes], order: ByteOrder) -> None:
        self._bodies = bodies
        self._order = order
        self._known: dict[tuple[int, ...], Layout] = {}

    def best(self, at: tuple[int, ...], depth: int) -> Layout:
        """Return the cheapest layout from these positions to the ends."""
        rests = [len(body) - start for body, start in zip(self._bodies, at, strict=True)]
        if not any(rests):
            return Layout(0.0, ())
        if at in self._known:
            return self._known[at]
        # What remains can always be bytes.
        found = Layout(6.0 + 0.1 * max(rests), ("bytes",))
        self._known[at] = found
        if depth < _MAX_FIELDS and len(self._known) < _MAX_STATES and min(rests) > 0:
            for cost, kind, following in self._steps(at, rests):
                if cost >= found.cost:
                    continue
                rest = self.best(following, depth + 1)
                if cost + rest.cost < found.cost:
                    found = Layout(cost + rest.cost, (kind, *rest.types))
        elif min(rests) == 0:
            found = Layout(found.cost + 2, found.types)
        self._known[at] = found
        return found

    def _steps(
        self, at: tuple[int, ...], rests: Sequence[int]
    ) -> Iterator[tuple[float, str, tuple[int, ...]]]:
        least = min(rests)
        yield from self._texts(at, rests)
        columns = [
            [body[start + index] for body, start in zip(self._bodies, at, strict=True)]
            for index in range(min(least, 8))
        ]
        for kind in ("f32", "u64", "u32", "u16", "u8"):
            size = _SIZES[kind]
            if size > least:
                continue
            parts = columns[:size] if self._order == "big" else columns[:size][::-1]
            cost, name = self._number_cost(kind, parts)
            yield cost, name, tuple(start + size for start in at)

    def _texts(
        self, at: tuple[int, ...], rests: Sequence[int]
    ) -> Iterator[tuple[float, str, tuple[int, ...]]]:
        for bits in (8, 16, 32):
            size = bits // 8
            if size > min(rests):
                continue
            lengths = [
                int.from_bytes(body[start : start + size], self._order)
                for body, start in zip(self._bodies, at, strict=True)
            ]
            if any(size + length > rest for length, rest in zip(lengths, rests, strict=True)) or not any(
                lengths
            ):
                continue
            values = [
                body[start + size : start + size + length]
                for body, start, length in zip(self._bodies, at, lengths, strict=True)
            ]
            following = tuple(start + size + length for start, length in zip(at, lengths, strict=True))
            full = sum(length > 0 for length in lengths) / len(lengths)
            if all(map(_is_text, values)):
                letters = sum(len(value) >= 2 for value in values) / len(values)
                yield 1.2 + 1.5 * (1 - full) + 2 * (1 - letters), f"text{bits}", following
            elif len({*lengths}) > 1 and full > 0.5:
                yield 3.5, f"bytes{bits}", following
        remaining = [body[start:] for body, start in zip(self._bodies, at, strict=True)]
        if all(map(_is_text, remaining)) and max(rests) >= 2:
            yield 2.2, "text", tuple(map(len, self._bodies))

    def _number_cost(self, kind: str, columns: Sequence[Sequence[int]]) -> tuple[float, str]:
        """Return the cost of a number in the given bytes, the most significant first, and its type."""
        if kind == "u8":
            is_flag = {*columns[0]} == {0, 1}
            return 1.0, "bool8" if is_flag else "u8"
        if kind == "f32":
            return self._float_cost(columns), "f32"
        if {*columns[0]} == {0, 255} and len(columns) < 8:
            return 1.1, f"i{8 * len(columns)}"
        if not any(map(any, columns)):
            # Zero in all messages: as wide as its neighbours, at a guess.
            return 1.4, kind
        return (_u16_cost(columns) if kind == "u16" else _wide_cost(columns)), kind

    def _float_cost(self, columns: Sequence[Sequence[int]]) -> float:
        values = [struct.unpack(">f", bytes(parts))[0] for parts in zip(*columns, strict=True)]
        usual = sum(value == 0 or 1e-3 <= abs(value) <= 1e6 for value in values if math.isfinite(value))
        several = len({*values}) > 1 and any(values)
        return 1.3 if several and usual == len(values) else 9.0


def _u16_cost(columns: Sequence[Sequence[int]]) -> float:
    number, high, low = len(columns[0]), {*columns[0]}, columns[1]
    if high == {0}:
        return 1.05
    if len(high) <= 16 and max(low) - min(low) > 100 and len({*low}) > len(high):
        return 1.3
    is_random = len(high) > 0.6 * number and len({*low}) > 0.6 * number and number >= 6
    return 1.9 if is_random else 2.6


def _wide_cost(columns: Sequence[Sequence[int]]) -> float:
    """Return the cost of a number of four or eight bytes."""
    number, size = len(columns[0]), len(columns)
    zeros = [not any(column) for column in columns]
    second = {*columns[1]}
    if zeros[0]:
        if any(zeros[2:-1]) and not zeros[1]:
            # Rather two numbers, each with a high byte of zero.
            return 2.6
        penalty = 0.0 if zeros[1] or len(second) <= 16 or size == 8 else 0.6
        # Of eight bytes, the upper four are zero in two u32, too.
        return 1.1 + penalty + (0.1 if size == 8 else 0.0)
    is_random = number >= 6 and all(len({*column}) > 0.5 * min(number, 100) for column in columns)
    is_time = size >= 4 and len({*columns[0]}) == 1 and len(second) <= 2 and len({*columns[-1]}) > 2
    return 1.6 if is_random or is_time else 4.5


def _is_text(value: bytes) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return text.isprintable() or all(character.isprintable() or character in "\n\t" for character in text)


def decode(body: bytes, types: Sequence[str], order: ByteOrder) -> dict[str, Any] | None:
    """Return the values of a binary message by position; None if it does not fit."""
    values: dict[str, Any] = {}
    at = 0
    for index, kind in enumerate(types, 1):
        prefix = kind[4:] if kind.startswith("text") else kind[5:] if kind.startswith("bytes") else ""
        if kind in ("text", "bytes"):
            size = len(body) - at
        elif prefix:
            width = int(prefix) // 8
            size = int.from_bytes(body[at : at + width], order)
            at += width
        else:
            size = _SIZES[kind]
        part = body[at : at + size]
        if len(part) < size:
            return None
        at += size
        if kind.startswith("text"):
            try:
                values[str(index)] = part.decode()
            except UnicodeDecodeError:
                return None
        elif kind.startswith("bytes"):
            values[str(index)] = part.hex()
        elif kind == "f32":
            values[str(index)] = struct.unpack(">f" if order == "big" else "<f", part)[0]
        elif kind == "bool8":
            values[str(index)] = bool(part[0])
        else:
            values[str(index)] = int.from_bytes(part, order, signed=kind[0] == "i")
    return values if at == len(body) else None


def layouts(messages: Sequence[Message], order: ByteOrder) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the types by direction and name, and decode the messages' values in place."""
    groups: dict[tuple[str, str], list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.direction, message.name].append(message)
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for kind, own in groups.items():
        bodies = [cast(bytes, message.values.get("", b"")) for message in own]
        sizes = Counter(map(len, bodies))
        types = infer_layout(bodies, order).types
        decoded = [decode(body, types, order) for body in bodies]
        if any(values is None for values in decoded):
            types = ("bytes",) if any(sizes) else ()
            decoded = [decode(body, types, order) for body in bodies]
        found[kind] = types
        for message, values in zip(own, decoded, strict=True):
            message.values = values or {}
    return found
