"""Items and rows on their way from one process to the other: column by column, marshalled.

An object for each item or row would have to be taken apart and put together again on the way, which costs
more than what is done with it. Both processes are the same Python, so both marshal alike.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.model import Chunk, Item, Stream
from kiebitz.storage.recording.rows import Rows


def packed_rows(rows: Rows) -> bytes:
    """All rows; `unpacked_rows` gives them back."""
    return marshal.dumps({table: found.columns for table, found in rows.items() if found})


def unpacked_rows(data: bytes) -> dict[str, Sequence[Iterable[Any]]]:
    """Table -> the columns of its rows."""
    tables: dict[str, Sequence[Iterable[Any]]] = marshal.loads(data)
    return tables


def packed_items(items: Sequence[Item]) -> bytes:
    """Items in their order; those that are no chunks, which are few, each as it is, with its place."""
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


def unpacked_items(data: bytes, streams: dict[int, Stream]) -> list[Item]:
    """The items again. One that is of a stream in `streams` is of that very one; new ones are put there."""
    rest, (numbers, *values) = marshal.loads(data)
    its_streams, others = pickle.loads(rest)
    for number, stream in its_streams.items():
        streams.setdefault(number, stream)
    items: list[Item] = [*map(Chunk, map(streams.__getitem__, numbers), *values)]
    for place, item in others:
        item.stream = streams.setdefault(item.stream.id, item.stream)
        items.insert(place, item)
    return items
