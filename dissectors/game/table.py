"""Game tables: the part of a protocol that turns messages into events.

A table reports events, state and violations to its context. It uses no clock, only the times of the messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, EventLog, broadcast_key
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.grammar.grammar import MessageType, Rule
from kiebitz.dissectors.model import Direction, Event, Findings, Ids, Message, Stream, TableInfo


class LimitError(KiebitzError):
    """A table has exceeded a limit, which the text names. It ends its game."""


class GameTable(ABC):
    """The table of one server, with full control over copies of broadcasts."""

    def __init__(self, context: GameContext) -> None:
        self.context = context

    @abstractmethod
    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        """Handle the next message, whose bytes are `frame`; `valid` is True if it conforms to its row.

        Sets its event and game, at once or while it is `undecided`. `doubt` is called after an invalid one.
        """

    @abstractmethod
    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        """Handle content that may have been any message, or several: the receiver may have understood it.

        It is an unreadable or invalid message, or a gap (`is_gap`), where bytes are missing. Until the state
        is certain again, the receiver is blamed for nothing that such a message could explain.
        """

    def share_rooms(self, whole: GameTable) -> bool:
        """Take from another table which client plays which game; False if there is one game at a time."""
        return False

    def closed(self, stream: Stream, ts_ns: int) -> None:
        """Handle the end of a stream of this table."""
        return

    def unreachable(self, stream: Stream) -> None:
        """Handle a client whose server port is closed."""
        return

    def undecided(self) -> int | None:
        """Return the id of the first message whose event is not set yet; later messages wait for it."""
        return None

    def finish(self, ts_ns: int) -> None:
        """Report the violations that were deferred until more messages arrive."""
        return


class SimpleTable(GameTable):
    """A table whose messages cause at most one event each; it merges copies of broadcasts.

    Only the first copy of a message type with `broadcast=True` is handled; the others get its event. After
    a message that could not be read, no violation of a rule is reported until another game begins.
    """

    rules: Mapping[str, Rule] = MappingProxyType({})
    """Rules of the grammar by key; those of the package's protocol file if that names the table."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(GameContext(info, ids, findings, self.rules))
        self._log: EventLog | None = None

    @abstractmethod
    def handle(self, message: Message, row: MessageType) -> Event | None:
        """Handle the next valid message; return the event that it causes."""

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        self.context.certain = False

    def disconnected(self, stream: Stream, ts_ns: int) -> None:
        """Handle the end of a stream of this table."""
        return

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        if not valid:
            return
        if self._log is None:
            # Networks may duplicate and reorder datagrams.
            is_udp = message.stream.transport == "udp"
            self._log = EventLog(doubled=is_udp, overtaken_ns=REORDERED_NS if is_udp else 0)
        key = broadcast_key(row.name, message.fields_json) if row.broadcast else None
        if key is not None and self._log.is_copy(message, key):
            return
        event = self.handle(message, row)
        if event is not None:
            message.event_id, message.game_id = event.id, event.game_id
            if key is not None:
                self._log.add(message.stream.id, key, event)

    def closed(self, stream: Stream, ts_ns: int) -> None:
        if self._log is not None:
            self._log.forget(stream.id)
        self.disconnected(stream, ts_ns)


MakeTable = Callable[[TableInfo, Ids, Findings], GameTable]


def is_part_of(reference: str, package: str) -> bool:
    """Return True if a reference is `PACKAGE.MODULE:NAME`, so that it does not lead out of the package."""
    module, _, name = reference.partition(":")
    parts = (*module.split("."), name)
    return parts[0] == package.rpartition(".")[2] and len(parts) > 2 and all(map(str.isidentifier, parts))


def python_part(reference: str, package: str) -> Any:
    """Return an object of a package, such as `okey.table:OkeyTable` of a package `okey`."""
    assert is_part_of(reference, package), f"{reference} is no part of {package}"
    return resolve_name(f"{package.rpartition('.')[0]}.{reference}".removeprefix("."))
