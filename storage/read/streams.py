"""A session's streams by the ids of their rows, those that begin while one reads on among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kiebitz.dissectors.model import Stream
from kiebitz.storage.read.timeline import Timeline

StreamOf = Callable[[int], Stream]
"""Gives the stream of a row, by its id."""


def stream_by_id(timeline: Timeline) -> StreamOf:
    """A function that gives a stream; each is read when it is asked for first."""

    @cache
    def stream(row_id: int) -> Stream:
        query = "SELECT id, transport, client, server, opened_ns, protocol FROM streams WHERE id = ?"
        return Stream(*timeline.connection.execute(query, (row_id,)).fetchone())

    return stream
