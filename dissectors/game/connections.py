"""The connections of a table's clients, and the doubt about what was sent on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

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


class OrderedDoubt(msgspec.Struct, eq=False):
    """Doubt about messages that the other side answers in order: any number of them may be unread.

    Once a message sent after the doubt is answered, all unread ones were answered before it, or never will
    be. The answer may have been that of an unread one of the same name, so only this name stays in doubt.
    """

    is_open: bool = False
    _only: str | None = None
    """The only name that is in doubt, None if any name is."""

    @property
    def certain(self) -> bool:
        """True unless a message of any name may be unread."""
        return not self.is_open or self._only is not None

    def begin(self) -> None:
        """Begin the doubt: any messages may have been sent now."""
        self.is_open, self._only = True, None

    def answered(self, name: str) -> None:
        """Note that a message of this name, sent since the doubt began, may have been answered."""
        self._only = name

    def explains(self, name: str) -> bool:
        """Return True if an answer to a message of this name may be that to an unread one."""
        return self.is_open and self._only in (name, None)
