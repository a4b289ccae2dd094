"""Schafkopf as the inspector sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.framing import Framer
from kiebitz.dissectors.grammar import Decoded, MessageType
from kiebitz.dissectors.records import Direction, Findings, TableInfo
from kiebitz.dissectors.schafkopf.codec import decode, encode, respelt, truncated
from kiebitz.dissectors.schafkopf.framer import SchafkopfFramer
from kiebitz.dissectors.schafkopf.grammar import GRAMMAR, kinds, notation
from kiebitz.dissectors.schafkopf.table import SchafkopfTable
from kiebitz.dissectors.table import GameTable, Ids


class Schafkopf(Dissector):
    """The Bavarian card game, with the short pack."""

    grammar = GRAMMAR
    transport = "tcp"
    default_ports = frozenset({35555})
    introductions = frozenset({"NAME"})

    def framer(self, direction: Direction) -> Framer:
        return SchafkopfFramer(direction)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return decode(frame, direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return truncated(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return encode(name, direction, fields)

    def respelt(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        return respelt(frame, row, before, fields)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = SchafkopfFramer(direction)
        frames = [frame for frame in framer.feed(0, data) if frame.cut is None]
        decoded = [decode(frame.data, direction) for frame in frames]
        if (how_sure := likeness(decoded)) is not None:
            return how_sure
        lines = {line.rstrip(b"\r") for line in data[:1024].split(b"\n")[:-1]}
        return "similar" if any(f"!{name}".encode() in lines for name in GRAMMAR.names(direction)) else None

    def notation(self, row: MessageType) -> str:
        return notation(row)

    @property
    def productions(self) -> tuple[str, ...]:
        found: dict[str, str] = {}
        for row in GRAMMAR.rows:
            for kind in kinds(row):
                for each in (kind, kind.part, *kind.terminals):
                    symbol, equals, _ = each.title.partition(" = ")
                    # A dialect may have one more for the same symbol; the first is the specification's.
                    if equals and symbol.isalpha():
                        found.setdefault(symbol, each.title)
        return tuple(found.values())

    def table(self, info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        return SchafkopfTable(info, ids, findings)


SCHAFKOPF = Schafkopf()
