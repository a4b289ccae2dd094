"""CGML as the inspector sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.cgml.codec import decode, encode, truncated
from kiebitz.dissectors.cgml.framer import CgmlFramer
from kiebitz.dissectors.cgml.grammar import GRAMMAR, ElementType
from kiebitz.dissectors.cgml.respelling import respelt
from kiebitz.dissectors.cgml.table import CgmlTable
from kiebitz.dissectors.cgml.values import renamed
from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.framing import Framer
from kiebitz.dissectors.grammar import Decoded, MessageType, Rename
from kiebitz.dissectors.records import Direction, Event, Findings, TableInfo
from kiebitz.dissectors.table import GameTable, Ids


class Cgml(Dissector):
    """Mariáš for three, with a server that brings players together and one that deals."""

    grammar = GRAMMAR
    transport = "tcp"
    default_ports = frozenset((7001, 7002, 7003))
    introductions = frozenset({"connect", "newgroup", "newgame"})

    def framer(self, direction: Direction) -> Framer:
        return CgmlFramer(direction)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return decode(frame, direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return truncated(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return encode(name, direction, fields)

    def respelt(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        assert isinstance(row, ElementType)
        return respelt(frame, row, before, fields)

    def renamed(self, row: MessageType, fields: Mapping[str, Any], rename: Rename) -> dict[str, Any]:
        assert isinstance(row, ElementType)
        return renamed(row.shape, fields, rename)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        if b"<" not in data:
            return None
        framer = CgmlFramer(direction)
        frames = [*framer.feed(0, data), *framer.eof()]
        return likeness(
            [decode(frame.data, direction) for frame in frames if frame.data and frame.cut is None]
        )

    def notation(self, row: MessageType) -> str | None:
        if isinstance(row, ElementType) and row.mark is not None:
            return f'<{row.name} {row.mark[0]}="{row.mark[1]}">'
        return f"<{row.name}>"

    def row_of(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> MessageType | None:
        for row in self.grammar.rows_named(direction, name):
            assert isinstance(row, ElementType)
            if row.mark is None or fields.get(row.mark[0]) == row.mark[1]:
                return row
        return None

    def describe(self, event: Event) -> str:
        if event.kind == "trump" and event.data["trump"] is None:
            # There are none, which is no question.
            return f"{event.data['player']} plays {event.data['game']}, without trumps"
        if event.kind == "trump" and event.data["second"] is not None:
            return f"{super().describe(event)}, second colour {event.data['second']}"
        if event.kind == "connected" and event.data.get("role") == "server":
            return f"the game server {self.words(event.data.get('url'))} logs in"
        return super().describe(event)

    def table(self, info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        return CgmlTable(info, ids, findings)


CGML = Cgml()
