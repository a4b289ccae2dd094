"""Okey as the inspector sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.dissector import Dissector, Likeness
from kiebitz.dissectors.framing import Framer
from kiebitz.dissectors.grammar import Decoded, Follows, MessageType
from kiebitz.dissectors.okey.codec import decode, encode, respelt, shape, truncated
from kiebitz.dissectors.okey.framer import OkeyFramer
from kiebitz.dissectors.okey.grammar import GRAMMAR
from kiebitz.dissectors.okey.table import OkeyTable
from kiebitz.dissectors.records import Direction, Event, Findings, TableInfo
from kiebitz.dissectors.table import GameTable, Ids

_ANYBODYS = frozenset(("PING", "+PING", "NAME", "STAT", "LEFT"))
"""Other protocols over lines have messages of these names, too."""


class Okey(Dissector):
    """Four players who draw and put tiles."""

    grammar = GRAMMAR
    transport = "tcp"
    # The specification fixes none: it is recognised by what is said.
    default_ports = frozenset()
    introductions = frozenset({"LOGI"})

    def framer(self, direction: Direction) -> Framer:
        return OkeyFramer(direction)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return decode(frame, direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return truncated(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return encode(name, direction, fields)

    def follows(self, event: Event) -> Follows | None:
        # A put that is not valid is told to nobody else, whatever comes next.
        return None if event.data.get("valid") is False else super().follows(event)

    def respelt(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        return respelt(frame, row, before, fields)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = OkeyFramer(direction)
        lines = [decode(frame.data, direction) for frame in framer.feed(0, data) if frame.cut is None]
        sound = [line.row.name for line in lines if line.sound and line.row is not None]
        if any(name not in _ANYBODYS for name in sound):
            return "certain"
        return "similar" if any(line.row is not None for line in lines) else None

    def notation(self, row: MessageType) -> str:
        return shape(row)

    def words(self, value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            # An empty place on a rack is no unknown value.
            return (
                " ".join("–" if part is None else super(Okey, self).words(part) for part in value)
                or "nothing"
            )
        return super().words(value)

    def table(self, info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        return OkeyTable(info, ids, findings)


OKEY = Okey()
