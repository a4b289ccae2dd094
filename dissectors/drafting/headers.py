"""Frames whose length is behind other fields, or that all have one size: found by sums that come out even."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from math import gcd
from typing import Literal

import msgspec

from kiebitz.dissectors.drafting.traffic import Segment
from kiebitz.dissectors.protocol_file.specification import ByteOrder

Counted = Literal["rest", "length", "header"]
"""The bytes that a length counts: those after it, these and itself, or the whole frame."""

_MAX_BEFORE = 8
"""Maximum number of bytes before a length."""

_LEAST_FRAMES = 3
_MAX_FRAMES = 5000
"""Number of frames by which a header is described."""


class Header(msgspec.Struct, frozen=True):
    """Bytes `before` a length of `size` bytes that counts the bytes of `counted`."""

    before: int
    size: int
    order: ByteOrder
    counted: Counted
    fit: float

    def ends(self, data: bytes) -> Iterator[int]:
        """Yield the end of each frame; stop at a length that is impossible."""
        at, fixed = 0, self.before + self.size
        more = {"rest": fixed, "length": self.before, "header": 0}[self.counted]
        while at + fixed <= len(data):
            length = int.from_bytes(data[at + self.before : at + fixed], self.order) + more
            if length < fixed or at + length > len(data):
                return
            at += length
            yield at


def find_header(segments: Sequence[Segment]) -> Header | None:
    """Return the header whose lengths lead to nearly all turns and to the end of the bytes."""
    found: list[tuple[float, int, int, Header]] = []
    for before in range(_MAX_BEFORE + 1):
        for size in (4, 2, 1):
            for order in ("big", "little") if size > 1 else ("big",):
                for rank, counted in enumerate(
                    ("rest", "header", "length") if before else ("rest", "header")
                ):
                    header = Header(before, size, order, counted, 0.0)  # type: ignore[arg-type]  # of literals
                    fit, frames = _fit(segments, header)
                    if fit >= 0.9 and frames >= _LEAST_FRAMES:
                        fitting = msgspec.structs.replace(header, fit=fit)
                        found.append((round(fit, 2), size - before, -rank, fitting))
    return max(found, key=lambda each: each[:3])[3] if found else None


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
    frames = [data for segment in segments for data in _frames(header, segment.data)][:_MAX_FRAMES]
    parts = []
    if header.before:
        values = len({frame[: header.before] for frame in frames})
        parts.append(f"{_bytes(header.before)} with {values} value{'s' if values != 1 else ''}")
    what = {
        "rest": "the remaining length",
        "length": "the remaining length with their own",
        "header": "the whole length",
    }[header.counted]
    order = f", {header.order}-endian" if header.size > 1 else ""
    is_one = "s" if header.size == 1 else ""
    parts.append(f"{_bytes(header.size)} that equal{is_one} {what}{order}")
    return ", then ".join(parts)


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
