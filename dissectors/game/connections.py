"""The connections of a table's clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kiebitz.dissectors.model import Stream

Connection = TypeVar("Connection")


class Connections(dict[int, Connection]):
    """The records of a table about its clients' connections, by the ids of their streams."""

    def __init__(self, create: Callable[[Stream], Connection]) -> None:
        super().__init__()
        self._create = create

    def of(self, stream: Stream) -> Connection:
        """Return the connection of a stream; create it if needed."""
        found = self.get(stream.id)
        if found is None:
            found = self[stream.id] = self._create(stream)
        return found
