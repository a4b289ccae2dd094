"""Encoding of items and rows for another process: column by column, with marshal.

Pickling an object per item or row costs more than its processing. Both processes run the same Python, so
they share the marshal format.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.model import Chunk, Item, Stream
from kiebitz.storage.recording.rows import Rows


def encode_rows(rows: Rows) -> bytes:
    """Encode all rows."""
    return marshal.dumps({table: found.columns for table, found in rows.items() if found})


def decode_rows(data: bytes) -> dict[str, Sequence[Iterable[Any]]]:
    """Decode the columns of the rows by table."""
    tables: dict[str, Sequence[Iterable[Any]]] = marshal.loads(data)
    return tables


def encode_items(items: Sequence[Item]) -> bytes:
    """Encode items in order: chunks in columns, the few others as they are, with their positions."""
    chunks = [item for item in items if isinstance(item, Chunk)]
    others = [(place, item) for place, item in enumerate(items) if not isinstance(item, Chunk)]
    streams = {chunk.stream.id: chunk.stream for chunk in chunks}
    columns = (
        [chunk.stream.id for chunk in chunks],
        [chunk.direction for chunk in chunks],
        [chunk.ts_ns for chunk in chunks],
        [chunk.offset for chunk in chunks],
        [chunk.data for chunk in chunks],
        [chunk.missing for chunk in chunks],
    )
    return marshal.dumps((pickle.dumps((streams, others)), columns))


def decode_items(data: bytes, streams: dict[int, Stream]) -> list[Item]:
    """Decode items; they refer to the stream objects in `streams`, to which new ones are added."""
    rest, (numbers, *values) = marshal.loads(data)
    its_streams, others = pickle.loads(rest)
    for number, stream in its_streams.items():
        streams.setdefault(number, stream)
    items: list[Item] = [*map(Chunk, map(streams.__getitem__, numbers), *values)]
    for place, item in others:
        item.stream = streams.setdefault(item.stream.id, item.stream)
        items.insert(place, item)
    return items
