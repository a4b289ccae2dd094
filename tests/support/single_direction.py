"""Bytes in one direction of one stream, and what an inspector finds in them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Findings, Gap, Ids, Stream


def inspect(
    dissector: Dissector, direction: Direction, *items: bytes | int | None, reason: str | None = None
) -> Findings:
    """Inspect bytes and gaps, of known or unknown length, of a protocol over TCP, and the stream's end."""
    stream = Stream(1, "tcp", "127.0.0.1:5", "127.0.0.1:1000", 0)
    inspector = Inspector([dissector], Ids(), {("tcp", 1000): dissector})
    offset = 0
    for item in items:
        if isinstance(item, bytes):
            inspector.feed(Chunk(stream, direction, 1, offset, item))
            offset += len(item)
        else:
            inspector.feed(Gap(stream, direction, 1, offset, item))
            offset += item or 0
    if reason is not None:
        inspector.feed(End(stream, 2, reason))
    inspector.finish()
    return inspector.drain()


def frames(
    dissector: Dissector, direction: Direction, pieces: Iterable[bytes | None], start: int = 0
) -> list[Frame]:
    """Return the frames of a stream in these pieces, from an offset on; None is a gap of 7 bytes."""
    framer = dissector.framer(direction)
    found: list[Frame] = []
    for piece in pieces:
        found += framer.gap(start, 7) if piece is None else framer.feed(start, piece)
        start += 7 if piece is None else len(piece)
    return [*found, *framer.eof()]


def split(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Return data cut at these places."""
    cuts = sorted({0, len(data), *(place for place in places if place < len(data))})
    return [data[start:end] for start, end in pairwise(cuts)]


def single(data: bytes) -> list[bytes]:
    """Return data cut into bytes."""
    return [bytes([byte]) for byte in data]


def is_one_frame(dissector: Dissector, direction: Direction, data: bytes) -> bool:
    """Return whether a framer takes these bytes, and nothing else, for a frame."""
    return [frame.data for frame in frames(dissector, direction, [data])] == [data]
