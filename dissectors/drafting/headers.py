"""Inference of headers and sizes: the lengths of frames come out even with the bytes and the turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from math import gcd

import msgspec

from kiebitz.dissectors.drafting.traffic import Segment
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

_WANTED = 0.9
_LEAST_FRAMES = 3
_MAX_FRAMES = 5000
"""Number of frames by which a header is described."""


class Header(msgspec.Struct, frozen=True):
    """Bytes `before` a length of `size` bytes, which counts the bytes after it, and `inclusive` ones."""

    before: int
    size: int
    order: ByteOrder
    inclusive: Inclusive
    fit: float = 0.0

    def ends(self, data: bytes) -> Iterator[int]:
        """Yield the end of each frame; stop at a length that is impossible."""
        at, fixed = 0, self.before + self.size
        more = fixed - {"": 0, "length": self.size, "header": fixed}[self.inclusive]
        while at + fixed <= len(data):
            length = int.from_bytes(data[at + self.before : at + fixed], self.order) + more
            if length < fixed or at + length > len(data):
                return
            at += length
            yield at


def find_header(segments: Sequence[Segment]) -> Header | None:
    """Return the header whose lengths lead to nearly all turns and to the end of the bytes."""
    found: list[tuple[float, int, int, Header]] = []
    for header in _candidates():
        fit, frames = _fit(segments, header)
        if fit >= _WANTED and frames >= _LEAST_FRAMES:
            rank = round(fit, 2), header.size - header.before, -len(header.inclusive)
            found.append((*rank, msgspec.structs.replace(header, fit=fit)))
    return max(found, key=lambda each: each[:3])[3] if found else None


def _candidates() -> Iterator[Header]:
    orders: tuple[ByteOrder, ...] = ("big", "little")
    counted: tuple[Inclusive, ...] = ("", "header", "length")
    for before in range(_MAX_BEFORE + 1):
        for size in (8, 4, 2, 1):
            for order in orders[: 1 if size == 1 else 2]:
                for inclusive in counted[: 3 if before else 2]:
                    yield Header(before, size, order, inclusive)


def framing_of(header: Header, segments: Iterable[Segment]) -> Framing:
    """Return the framing of a header: constants, what stands for the name, and numbers before the length."""
    frames = _first_frames(header, segments)
    kind: IntegerKind = f"u{8 * header.size}"  # type: ignore[assignment]  # of literals
    order: ByteOrder = header.order
    if not header.before:
        inclusive: Inclusive = "length" if header.inclusive else ""
        return Framing(kind="length", prefix=kind, order=order, inclusive=inclusive)
    parts = [*_parts_before([frame[: header.before] for frame in frames], order)]
    length = HeaderPart(FieldSpec(LENGTH, BinaryType(kind), kind))
    return Framing(kind="length", header=(*parts, length), order=order, inclusive=header.inclusive)


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
        is_wide = len(rest) in (2, 4) and all(values == {0} for values in zeros[: len(rest) - 1])
        size = len(rest) if is_wide else 1
        name = NAME if at == fixed and len(rest[0 if order == "little" else size - 1]) <= _MAX_NAMES else ""
        kind: IntegerKind = f"u{8 * size}"  # type: ignore[assignment]  # of literals
        yield HeaderPart(FieldSpec(name or f"header{at + 1}", BinaryType(kind), kind))
        at += size


def _fit(segments: Sequence[Segment], header: Header) -> tuple[float, int]:
    """Return the share of turns at which frames end, times the share of bytes in frames, and their number."""
    hits = turns = frames = covered = size = 0
    for segment in segments:
        ends = {*header.ends(segment.data)}
        hits += len(ends.intersection(segment.turns))
        turns += len(segment.turns)
        frames += len(ends)
        covered += max(ends, default=0)
        size += len(segment.data)
    return hits / max(1, turns) * covered / max(1, size), frames


def described(header: Header, segments: Iterable[Segment]) -> str:
    """Return the header in words: a byte with 7 values, then 4 bytes that equal the remaining length."""
    frames = _first_frames(header, segments)
    parts = []
    if header.before:
        values = len({frame[: header.before] for frame in frames})
        parts.append(f"{_bytes(header.before)} with {values} value{'s' if values != 1 else ''}")
    what = {
        "": "the remaining length",
        "length": "the remaining length with their own",
        "header": "the whole length",
    }[header.inclusive]
    order = f", {header.order}-endian" if header.size > 1 else ""
    is_one = "s" if header.size == 1 else ""
    parts.append(f"{_bytes(header.size)} that equal{is_one} {what}{order}")
    return ", then ".join(parts)


def _first_frames(header: Header, segments: Iterable[Segment]) -> list[bytes]:
    """Return the first frames of the segments."""
    return [*islice((frame for segment in segments for frame in _frames(header, segment.data)), _MAX_FRAMES)]


def _frames(header: Header, data: bytes) -> Iterator[bytes]:
    start = 0
    for end in header.ends(data):
        yield data[start:end]
        start = end


def _bytes(number: int) -> str:
    return "a byte" if number == 1 else f"{number} bytes"


def common_size(segments: Iterable[Segment]) -> int:
    """Return the greatest size of which each turn has a whole number; 1 if there is none."""
    sizes = [
        turn - start
        for segment in segments
        for start, turn in zip((0, *segment.turns), segment.turns, strict=False)
    ]
    return reduce(gcd, sizes, 0) if len(sizes) >= _LEAST_FRAMES else 1
