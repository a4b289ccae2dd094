"""The Knobeln table: who plays, and what each player has rolled last."""

from __future__ import annotations

from kiebitz.protocol import Event, Findings, Ids, Message, MessageType, SimpleTable, Stream, TableInfo, label


class KnobelnTable(SimpleTable):
    """The table of one Knobeln server."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings)
        self._asking: dict[int, str] = {}
        """Requested names by stream, until the server accepts them."""

    def handle(self, message: Message, row: MessageType) -> Event | None:
        match row.name:
            case "HALLO":
                self._asking[message.stream.id] = label(message.fields["name"])
            case "WILLKOMMEN" if message.stream.id in self._asking:
                name = self._asking.pop(message.stream.id)
                self.context.set_state({}, "players", name)
                return self.context.emit_of(message, "joined", name, {"name": name})
            case "WURF":
                name, zahl = label(message.fields["name"]), message.fields["zahl"]
                self.context.set_state(zahl, "rolls", name)
                return self.context.emit_of(message, "rolled", name, {"name": name, "zahl": zahl})
        return None

    def disconnected(self, stream: Stream, ts_ns: int) -> None:
        self._asking.pop(stream.id, None)
