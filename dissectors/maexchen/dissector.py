"""Mäxchen as the inspector sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.dissector import Dissector, Likeness
from kiebitz.dissectors.framing import DatagramFramer, Framer
from kiebitz.dissectors.grammar import Decoded, MessageType
from kiebitz.dissectors.maexchen.codec import decode, encode, respelt, shape
from kiebitz.dissectors.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.maexchen.table import MaexchenTable
from kiebitz.dissectors.records import Direction, Findings, TableInfo
from kiebitz.dissectors.table import GameTable, Ids


class Maexchen(Dissector):
    """The dice game of bluffing."""

    grammar = GRAMMAR
    transport = "udp"
    default_ports = frozenset({9000})
    introductions = frozenset({"REGISTER", "REGISTER_SPECTATOR"})

    def framer(self, direction: Direction) -> Framer:
        return DatagramFramer()

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return decode(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return encode(name, direction, fields)

    def respelt(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        return respelt(frame, row, before, fields)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        if decode(data, direction).sound:
            return "certain"
        name = data[:64].partition(b";")[0].decode("utf-8", "replace")
        return "similar" if GRAMMAR.nearest(name, direction) is not None else None

    def notation(self, row: MessageType) -> str:
        return shape(row)

    def table(self, info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        return MaexchenTable(info, ids, findings)


MAEXCHEN = Maexchen()
