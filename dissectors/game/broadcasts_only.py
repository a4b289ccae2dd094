"""A dissector that ignores all messages but broadcasts: its events follow from what all clients were told."""

from __future__ import annotations

from copy import copy

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo


def broadcasts_only(dissector: Dissector) -> Dissector:
    """Return a dissector whose tables handle broadcasts only."""

    def table(info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        return _BroadcastTable(dissector.table(info, ids, findings))

    limited = copy(dissector)
    limited.table = table
    return limited


class _BroadcastTable(GameTable):
    """A table that passes broadcasts on to another one.

    The end or the loss of one client's connection is not told to the others.
    """

    def __init__(self, table: GameTable) -> None:
        super().__init__(table.context)
        self._table = table

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        if row.broadcast and message.direction == "s2c":
            self._table.message(message, row, valid, frame)

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        return

    def undecided(self) -> int | None:
        return self._table.undecided()
