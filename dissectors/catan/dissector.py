"""Catan as the inspector sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.catan.codec import decode, encode, respelt, truncated
from kiebitz.dissectors.catan.framer import CatanFramer
from kiebitz.dissectors.catan.grammar import GRAMMAR, Nachricht
from kiebitz.dissectors.catan.objects import OBJECTS
from kiebitz.dissectors.catan.table import CatanTable
from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.framing import Framer
from kiebitz.dissectors.grammar import Decoded, MessageType
from kiebitz.dissectors.records import Direction, Findings, TableInfo
from kiebitz.dissectors.table import GameTable, Ids


class Catan(Dissector):
    """The settlers, with the cards of others hidden."""

    grammar = GRAMMAR
    transport = "tcp"
    # The specification fixes none: it is recognised by what is said.
    default_ports = frozenset()
    introductions = frozenset({"Spieler"})

    def framer(self, direction: Direction) -> Framer:
        return CatanFramer(direction)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        return decode(frame, direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        return truncated(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return encode(name, direction, fields)

    def respelt(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        assert isinstance(row, Nachricht)
        return respelt(frame, row, before, fields)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = CatanFramer(direction)
        frames = [*framer.feed(0, data), *framer.eof()]
        return likeness([decode(frame.data, direction) for frame in frames if frame.data])

    @property
    def productions(self) -> tuple[str, ...]:
        # The objects of clause 7, each with what its attributes are.
        return tuple(
            f"{name} = {{{', '.join(f'{field.name}: {field.type.title}' for field in each.fields)}}}"
            for name, each in OBJECTS.items()
        )

    def words(self, value: Any) -> str:
        if isinstance(value, dict):
            if {*value} == {"x", "y"}:
                return f"({value['x']},{value['y']})"
            return ", ".join(f"{part} {key}" for key, part in value.items() if part) or "nothing"
        if isinstance(value, list) and all(isinstance(part, int) for part in value):
            return "+".join(map(str, value))
        if isinstance(value, bool):
            return "yes" if value else "no"
        return super().words(value)

    def table(self, info: TableInfo, ids: Ids, findings: Findings) -> GameTable:
        return CatanTable(info, ids, findings)


CATAN = Catan()
