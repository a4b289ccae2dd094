"""The Knobeln table: who plays, and what each player has rolled last."""

from __future__ import annotations

from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, EventLog
from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.game.table import GameTable
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Findings, Ids, Message, Stream, TableInfo
from kiebitz_knobeln.grammar import GRAMMAR


class KnobelnTable(GameTable):
    """One Knobeln server. What is missing from the capture is not told; nobody is accused of anything."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(GameContext(info, ids, findings, GRAMMAR.rules))
        self._log = EventLog(doubled=True, overtaken_ns=REORDERED_NS)
        self._asking: dict[int, str] = {}
        """Stream -> the name that was asked for there, until it is taken in."""

    def message(self, message: Message, row: MessageType, valid: bool, frame: bytes) -> None:
        if not valid:
            return
        if row.name == "HALLO":
            self._asking[message.stream.id] = label(message.fields["name"])
        elif row.name == "WILLKOMMEN":
            self._joined(message)
        else:
            self._rolled(message)

    def closed(self, stream: Stream, ts_ns: int) -> None:
        self._asking.pop(stream.id, None)
        self._log.forget(stream.id)

    def _joined(self, message: Message) -> None:
        name = self._asking.pop(message.stream.id, None)
        if name is not None:
            self.context.set_state({}, "players", name)
            self.context.emit_of(message, "joined", name, {"name": name}, None)

    def _rolled(self, message: Message) -> None:
        name, zahl = label(message.fields["name"]), message.fields["zahl"]
        key = ("rolled", name, zahl)
        if not self._log.is_copy(message, key):  # the first copy: news
            self.context.set_state(zahl, "rolls", name)
            event = self.context.emit_of(message, "rolled", name, {"name": name, "zahl": zahl}, None)
            self._log.add(message.stream.id, key, event)
