"""A dissector that ignores all messages but broadcasts: its events follow from what all clients were told."""

from __future__ import annotations

from copy import copy

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction, Findings, Ids, Message, Stream, TableInfo


def broadcasts_only(dissector: Dissector) -> Dissector:
    """Return a dissector whose tables handle broadcasts only."""

    def table(info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        hidden = Findings()
        whole = dissector.table(info, Ids(), hidden)
        return _BroadcastTable(dissector.table(info, ids, findings), whole, hidden)

    limited = copy(dissector)
    limited.table = table
    return limited


class _BroadcastTable(GameTable):
    """A table that passes broadcasts on to another one.

    The end or the loss of one client's connection is not told to the others. Of several games at once, a
    table of the `whole` traffic knows which client plays which; nothing else of it is used.
    """

    def __init__(self, table: GameTable, whole: GameTable, hidden: Findings) -> None:
        super().__init__(table.context)
        self._table = table
        self._whole = whole if table.share_rooms(whole) else None
        self._hidden = hidden

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        if row.broadcast and message.direction == "s2c":
            self._table.message(message, row, valid, frame)
        if self._whole is not None:
            self._whole.message(msgspec.structs.replace(message), row, valid, frame)
            for part in msgspec.structs.astuple(self._hidden):
                part.clear()

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        return

    def undecided(self) -> int | None:
        return self._table.undecided()
