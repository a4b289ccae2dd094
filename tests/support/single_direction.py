"""Bytes in one direction of one stream, and what an inspector finds in them."""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Findings, Gap, Ids, Stream


def inspect(
    dissector: Dissector, direction: Direction, *items: bytes | int | None, reason: str | None = None
) -> Findings:
    """Inspect bytes and gaps, of known or unknown length, of a protocol, and the stream's end."""
    stream = Stream(1, dissector.transport, "127.0.0.1:5", "127.0.0.1:1000", 0)
    inspector = Inspector([dissector], Ids(), {(dissector.transport, 1000): dissector})
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


def is_one_frame(dissector: Dissector, direction: Direction, data: bytes) -> bool:
    """Return whether a framer takes these bytes, and nothing else, for a frame."""
    framer = dissector.framer(direction)
    return [frame.data for frame in (*framer.feed(0, data), *framer.eof())] == [data]
