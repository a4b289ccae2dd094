"""Inference of the fields of binary messages: the cheapest sequence of types that consumes all of them.

The types are those of protocol files. Small numbers leave the high bytes of their fields at zero, texts
follow their length or are filled up with zeros, and lists follow the number of their items. Each field has a
cost, and unlikely numbers cost more.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import msgspec

from kiebitz.dissectors.drafting.traffic import FormatChoice, Kind, Message, Parsed
from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.binary_types import Binary, binary_type
from kiebitz.dissectors.protocol_file.reading.notation import NamedTypes, Parser
from kiebitz.dissectors.protocol_file.specification import ByteOrder, Format, Framing

_SAMPLE = 80
"""Number of messages of a kind by which their fields are inferred."""

_MAX_STATES = 2000
_MAX_FIELDS = 24
_MAX_CODES = 64
_SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f32": 4}
_NUMBERS = ("f32", "u64", "u32", "u16", "u8")
_ITEMS = ("u8", "u16", "u32", "text8", "text16")
ITEM_KEYS = ("1", "2", "3")
"""Keys of the fields of an item of a list, of which there are at most so many."""

_UNREAD = ("bytes", "bytes8", "bytes16", "bytes32")
"""Types of fields that may be more than one."""

_OPEN = ("bytes", "rest")
"""Types of fields that do not show where they end."""

_MAX_SQUARE = 15
"""Largest value of a square of a board; larger bytes are numbers."""

_LEAST_SQUARES = 4

_LEAST_SPREAD = 100
"""Difference of the lowest bytes of large numbers."""


class ItemTypes(NamedTuple):
    """The types of the fields of an item of a list, whose number is the field before it."""

    types: tuple[str, ...]

    def notation(self, names: Sequence[str]) -> str:
        """Return the type of the list, to which only the name of the number is to be added."""
        fields = (f"{name}={kind}" for name, kind in zip(names, self.types, strict=False))
        return f"[{self.types[0] if len(self.types) == 1 else '{' + ' '.join(fields) + '}'}]*"


BinaryKind = str | ItemTypes
"""The type of a field, as it is written in a file."""


class Layout(NamedTuple):
    """The cost and the types of the fields of a binary message."""

    cost: float
    types: tuple[BinaryKind, ...]


@lru_cache(maxsize=4096)
def _binary(kind: BinaryKind, order: ByteOrder) -> Binary:
    text = kind if isinstance(kind, str) else f"{kind.notation(ITEM_KEYS)}n"
    return binary_type(Parser(text, NamedTypes()).type(), Format(kind="struct", order=order))


def struct_format(framing: Framing, contents: Sequence[bytes]) -> FormatChoice:
    """Return the format of binary messages: the type of the code before the fields, and the byte order."""
    orders: list[ByteOrder] = [framing.order] if framing.kind == "length" else ["big", "little"]
    best: tuple[float, str, ByteOrder] | None = None
    for order in orders:
        for name in ("u8", "u16", "u32"):
            cost = _code_cost(contents, name, order, framing.kind == "size")
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


def _code_cost(contents: Sequence[bytes], name: str, order: ByteOrder, is_padded: bool) -> float | None:
    """Return the cost of all messages with this kind of code; None if it is none."""
    size = _SIZES[name]
    groups: dict[int, list[bytes]] = defaultdict(list)
    for content in contents:
        if len(content) >= size:
            groups[int.from_bytes(content[:size], order)].append(content[size:])
    is_whole = sum(map(len, groups.values())) >= 0.99 * len(contents)
    if not (groups and is_whole) or len(groups) > max(4, min(_MAX_CODES, len(contents) / 3)):
        return None
    # One code for all messages is no name.
    total = 3.0 * len(groups) + (20.0 if len(groups) == 1 else 0.0)
    return total + sum(infer_layout(each, order, is_padded, has_lists=False).cost for each in groups.values())


def infer_layout(
    bodies: Sequence[bytes], order: ByteOrder, is_padded: bool = False, has_lists: bool = True
) -> Layout:
    """Return the cheapest sequence of types for the bodies of one kind of message, which may have padding."""
    step = -(-len(bodies) // _SAMPLE)
    sample = sorted({*bodies[::step], max(bodies, key=len), min(bodies, key=len)})
    found = _Search(sample, order, is_padded).best((0,) * len(sample), 0)
    if has_lists and any(kind in _UNREAD for kind in found.types):
        found = min(found, _Search(sample, order, is_padded, has_lists).best((0,) * len(sample), 0))
    return found


_Step = tuple[float, tuple[BinaryKind, ...], tuple[int, ...]]
"""The cost and the types of the next fields, and the positions after them."""


class _Search(msgspec.Struct, eq=False):
    _bodies: Sequence[bytes]
    _order: ByteOrder
    _is_padded: bool
    _has_lists: bool = False
    _known: dict[tuple[int, ...], Layout] = {}

    def best(self, at: tuple[int, ...], depth: int) -> Layout:
        """Return the cheapest layout from these positions to the ends."""
        rests = [len(body) - start for body, start in zip(self._bodies, at, strict=True)]
        if not any(rests) or (self._is_padded and self._is_padding(at)):
            return Layout(0.0, ())
        if at in self._known:
            return self._known[at]
        # What remains can always be bytes.
        found = Layout(6.0 + 0.1 * max(rests), ("bytes",))
        self._known[at] = found
        if depth < _MAX_FIELDS and len(self._known) < _MAX_STATES and min(rests) > 0:
            for cost, kinds, following in self._steps(at, rests):
                if cost >= found.cost:
                    continue
                rest = self.best(following, depth + 1)
                if cost + rest.cost < found.cost:
                    found = Layout(cost + rest.cost, (*kinds, *rest.types))
        elif min(rests) == 0:
            found = Layout(found.cost + 2, found.types)
        self._known[at] = found
        return found

    def _steps(self, at: tuple[int, ...], rests: Sequence[int]) -> Iterator[_Step]:
        yield from self._texts(at, rests)
        yield from self._squares(at, rests)
        if self._has_lists:
            yield from self._lists(at)
        for kind in _NUMBERS:
            size = _SIZES[kind]
            if size > min(rests):
                continue
            columns = [*zip(*self._parts(at, size), strict=True)]
            cost, name = _number_cost(kind, columns if self._order == "big" else columns[::-1])
            yield cost, (name,), tuple(start + size for start in at)

    def _is_padding(self, at: tuple[int, ...]) -> bool:
        """Return True if zeros follow, which are no upper bytes of the number before."""
        is_aligned = self._order == "big" or all(start % 4 == 0 for start in at)
        return is_aligned and not any(map(any, self._parts(at)))

    def _parts(self, at: tuple[int, ...], size: int | None = None) -> list[bytes]:
        """Return the bytes at these positions."""
        return [
            body[start : None if size is None else start + size]
            for body, start in zip(self._bodies, at, strict=True)
        ]

    def _unpacked(self, kind: BinaryKind, at: tuple[int, ...]) -> tuple[list[Any], tuple[int, ...]] | None:
        """Return the values of a type at these positions, and their ends; None if one does not fit."""
        binary = _binary(kind, self._order)
        values, ends = [], []
        for body, start in zip(self._bodies, at, strict=True):
            try:
                value, end = binary.unpack(body, start, len(body))
            except Mismatch:
                return None
            values.append(value)
            ends.append(end)
        return values, tuple(ends)

    def _texts(self, at: tuple[int, ...], rests: Sequence[int]) -> Iterator[_Step]:
        for bits in (8, 16, 32):
            found = self._unpacked(f"text{bits}", at)
            if found is not None and any(found[0]) and all(map(_is_text, found[0])):
                values = found[0]
                full = sum(map(bool, values)) / len(values)
                letters = sum(len(value) >= 2 for value in values) / len(values)
                yield 1.2 + 1.5 * (1 - full) + 2 * (1 - letters), (f"text{bits}",), found[1]
            elif (raw := self._unpacked(f"bytes{bits}", at)) is not None:
                sizes = [*map(len, raw[0])]
                if len({*sizes}) > 1 and sum(map(bool, sizes)) > 0.5 * len(sizes):
                    yield 3.5, (f"bytes{bits}",), raw[1]
        remaining = self._parts(at)
        if max(rests) >= 2 and (size := _padded_size(remaining, self._order)):
            yield 1.5, (f"text:{size}",), tuple(start + size for start in at)
        if max(rests) >= 2 and all(_is_text(text) for text in map(_decoded, remaining)):
            yield 2.2, ("rest",), tuple(map(len, self._bodies))

    def _squares(self, at: tuple[int, ...], rests: Sequence[int]) -> Iterator[_Step]:
        """Yield the squares of a board, if all that remains are as many small numbers of a byte each."""
        size = rests[0]
        if size < _LEAST_SQUARES or any(rest != size for rest in rests):
            return
        remaining = self._parts(at)
        used = [index for index, column in enumerate(zip(*remaining, strict=True)) if any(column)]
        if max(map(max, remaining)) > _MAX_SQUARE or len(used) < 3:
            return
        # Numbers of several bytes leave the same ones of each at zero.
        if any(size % width == 0 and len({index % width for index in used}) == 1 for width in (2, 4, 8)):
            return
        yield 2.0, (f"[u8]{size}",), tuple(map(len, self._bodies))

    def _lists(self, at: tuple[int, ...]) -> Iterator[_Step]:
        """Yield lists with the number of their items before them, if that number varies."""
        for kind in ("u8", "u16"):
            counts = self._unpacked(kind, at)
            if counts is None or len({*counts[0]}) < 2 or max(counts[0]) > 255:
                continue
            for number in range(1, len(ITEM_KEYS) + 1):
                for types in itertools.product(_ITEMS, repeat=number):
                    ends = self._ends_of_items(types, counts)
                    if ends is not None:
                        yield 2.5 + 0.5 * number, (kind, ItemTypes(types)), ends

    def _ends_of_items(
        self, types: tuple[str, ...], counts: tuple[list[Any], tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        """Return the positions after lists of so many items; None if an item is no such."""
        binary = _binary(ItemTypes(types), self._order)
        texts: list[str] = []
        ends: list[int] = []
        for body, count, start in zip(self._bodies, *counts, strict=True):
            try:
                items, end = binary.unpack_after(body, start, len(body), {"n": count})
            except Mismatch:
                return None
            ends.append(end)
            for item in items:
                parts = item.values() if isinstance(item, dict) else (item,)
                texts += (part for part in parts if isinstance(part, str))
        if texts and not (all(map(_is_text, texts)) and all(texts)):
            return None
        return tuple(ends)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _is_text(text: str) -> bool:
    return "\ufffd" not in text and (
        text.isprintable() or all(each.isprintable() or each in "\n\t" for each in text)
    )


def _padded_size(rests: Sequence[bytes], order: ByteOrder) -> int:
    """Return the size of a text that is filled up with zeros, 0 if there is none."""
    texts = [rest.partition(b"\0")[0] for rest in rests]
    longest = max(map(len, texts))
    if longest < 3 or not all(_is_text(_decoded(text)) for text in texts):
        return 0
    ends = [len(rest) - len(rest[len(text) :].lstrip(b"\0")) for text, rest in zip(texts, rests, strict=True)]
    limit = min(end if end < len(rest) else len(rest) for end, rest in zip(ends, rests, strict=True))
    if limit == min(map(len, rests)) or order == "little":
        return limit if limit > longest else 0
    # The upper bytes of the next number may be zero: sizes are round.
    return next((size for size in range(limit, max(longest, limit - 4), -1) if size % 4 == 0), 0)


def _number_cost(kind: str, columns: Sequence[Sequence[int]]) -> tuple[float, str]:
    """Return the cost of a number in the given bytes, the most significant first, and its type."""
    if kind == "u8":
        return 1.0, "bool8" if {*columns[0]} == {0, 1} else "u8"
    if kind == "f32":
        return _float_cost(columns), "f32"
    if {*columns[0]} == {0, 255} and len(columns) < 8:
        return 1.1, f"i{8 * len(columns)}"
    if not any(map(any, columns)):
        # Zero in all messages: as wide as its neighbours, at a guess.
        return 1.4, kind
    return (_u16_cost(columns) if kind == "u16" else _wide_cost(columns)), kind


def _float_cost(columns: Sequence[Sequence[int]]) -> float:
    values = [struct.unpack(">f", bytes(parts))[0] for parts in zip(*columns, strict=True)]
    usual = sum(value == 0 or 1e-3 <= abs(value) <= 1e6 for value in values if math.isfinite(value))
    several = len({*values}) > 1 and any(values)
    return 1.3 if several and usual == len(values) else 9.0


def _u16_cost(columns: Sequence[Sequence[int]]) -> float:
    number, high, low = len(columns[0]), {*columns[0]}, columns[1]
    if high == {0}:
        return 1.05
    if len(high) <= 16 and max(low) - min(low) > _LEAST_SPREAD and len({*low}) > len(high):
        return 1.3
    is_random = len(high) > 0.6 * number and len({*low}) > 0.6 * number and number >= 6
    return 1.9 if is_random else 2.6


def _wide_cost(columns: Sequence[Sequence[int]]) -> float:
    """Return the cost of a number of four or eight bytes."""
    number, size = len(columns[0]), len(columns)
    zeros = [not any(column) for column in columns]
    second = {*columns[1]}
    if zeros[0]:
        if False in zeros and any(zeros[zeros.index(False) + 1 : -1]):
            # Rather two numbers, each with a high byte of zero.
            return 0.65 * size
        if not zeros[-1] and False in zeros[:-1] and max(columns[-1]) - min(columns[-1]) <= _LEAST_SPREAD:
            # The lowest byte of large numbers has many values.
            return 0.9 * size
        penalty = 0.0 if zeros[1] or len(second) <= 16 or size == 8 else 0.6
        # Of eight bytes, the upper four are zero in two u32, too.
        return 1.1 + penalty + (0.1 if size == 8 else 0.0)
    is_random = number >= 6 and all(len({*column}) > 0.5 * min(number, 100) for column in columns)
    is_time = size >= 4 and len({*columns[0]}) == 1 and len(second) <= 2 and len({*columns[-1]}) > 2
    return 1.6 if is_random or is_time else 4.5


def _decode(
    data: bytes, at: int, types: Sequence[BinaryKind], order: ByteOrder
) -> tuple[dict[str, Any], int]:
    """Return the values of a binary message by position, and its end; raise Mismatch if it does not fit."""
    values: dict[str, Any] = {}
    for index, kind in enumerate(types, 1):
        number = {"n": values.get(str(index - 1))}
        values[str(index)], at = _binary(kind, order).unpack_after(data, at, len(data), number)
    return values, at


def _decode_all(
    body: bytes, types: Sequence[BinaryKind], order: ByteOrder, is_padded: bool
) -> dict[str, Any]:
    """Return the values of a whole message; raise Mismatch if it does not fit."""
    values, end = _decode(body, 0, types, order)
    if end < len(body) and not is_padded:
        raise Mismatch(end, len(body), "bytes follow", "")
    return values


def find_fields(pieces: Sequence[tuple[Direction, bytes]]) -> Callable[[Direction, bytes], list[int]] | None:
    """Return a function that finds the ends of messages that end with their fields; None if they do not.

    Args:
        pieces: What was sent at once, which is one message nearly always.
    """
    form = struct_format(Framing(kind="fields"), [data for _, data in pieces])
    order, size = form.format.order, _SIZES[form.format.name]
    groups: dict[tuple[Direction, bytes], list[bytes]] = defaultdict(list)
    for direction, data in pieces:
        groups[direction, data[:size]].append(data[size:])
    types = {}
    for kind, bodies in groups.items():
        bodies.sort(key=len)
        # Longer ones may be several messages.
        for few in (bodies, bodies[: -(-3 * len(bodies) // 4)], bodies[: -(-len(bodies) // 2)]):
            types[kind] = infer_layout(few, order).types
            if not any(each in _OPEN for each in types[kind]):
                break
        else:
            return None

    def ends(direction: Direction, data: bytes) -> list[int]:
        found: list[int] = []
        at = 0
        while (known := types.get((direction, data[at : at + size]))) is not None:
            try:
                _, at = _decode(data, at + size, known, order)
            except Mismatch:
                break
            found.append(at)
        return found

    return ends


def layouts(
    messages: Sequence[Message], order: ByteOrder, is_padded: bool
) -> dict[Kind, tuple[BinaryKind, ...]]:
    """Return the types by direction and name, and decode the messages' values in place."""
    groups: dict[Kind, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.kind].append(message)
    bodies = {kind: [cast(bytes, each.values.get("", b"")) for each in own] for kind, own in groups.items()}
    found = {kind: infer_layout(own, order, is_padded) for kind, own in bodies.items()}
    if len({len(body) for own in bodies.values() for body in own}) == 1:
        # Messages of one size may have the same fields.
        common = infer_layout([body for own in bodies.values() for body in own], order, is_padded)
        if common.cost <= max(layout.cost for layout in found.values()):
            found = dict.fromkeys(found, common)
    result: dict[Kind, tuple[BinaryKind, ...]] = {}
    for kind, (_, types) in found.items():
        try:
            values = [_decode_all(body, types, order, is_padded) for body in bodies[kind]]
        except Mismatch:
            # The sample had no such message.
            types, values = ("bytes",), [{"1": body.hex()} for body in bodies[kind]]
        result[kind] = types
        for message, decoded in zip(groups[kind], values, strict=True):
            message.values = decoded
    return result
