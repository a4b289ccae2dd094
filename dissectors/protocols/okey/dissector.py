"""Okey as the inspector sees it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.dissector import Dissector, Likeness
from kiebitz.dissectors.grammar.grammar import Follows
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.protocols.okey.codec import OkeyCodec
from kiebitz.dissectors.protocols.okey.framer import OkeyFramer
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR
from kiebitz.dissectors.protocols.okey.queries import QUERIES
from kiebitz.dissectors.protocols.okey.table import OkeyTable
from kiebitz.dissectors.protocols.okey.tiles import SEATS
from kiebitz.dissectors.protocols.okey.words import deck_words, exchange_words, stack_words, tile_words

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import BotFactory, SimulatedServerFactory
    from kiebitz.dissectors.conformance.expectations import Conformance
    from kiebitz.dissectors.game.view import Scene, View
    from kiebitz.dissectors.statistics import Statistic

_SILENCE_S = 15.0
"""So long nothing may come before the connection is ended (Ping); real servers never do."""

_LEAVES = {
    "LEFT": "{name} leaves the lobby",
    "LLOB": "{name} leaves the lobby",
    "LOGO": "{name} logs out",
}
"""By the message that tells it, the sentence about somebody who leaves."""

_ANYBODYS = frozenset(("PING", "+PING", "NAME", "STAT", "LEFT"))
"""Other protocols over lines have messages of these names, too."""


class Okey(Dissector):
    """Four players who draw and put tiles."""

    grammar = GRAMMAR
    queries = QUERIES
    transport = "tcp"
    # The specification fixes none: it is recognised by what is said.
    default_ports = frozenset()
    introductions = frozenset({"LOGI"})
    # What waits keeps all behind it from coming, pings among them.
    patience = MappingProxyType(dict.fromkeys((row.name for row in GRAMMAR.rows), _SILENCE_S))
    codec = OkeyCodec()
    framer_class = OkeyFramer
    table_class = OkeyTable
    seats = 4
    turn = "status"

    def view(self, scene: Scene) -> View:
        from kiebitz.dissectors.protocols.okey.view import view_of

        return view_of(scene)

    @property
    def reactions(self) -> Conformance:
        from kiebitz.dissectors.protocols.okey.conformance import CONFORMANCE

        return CONFORMANCE

    @property
    def player(self) -> BotFactory:
        from kiebitz.dissectors.protocols.okey.bot import OkeyBot

        return OkeyBot

    @property
    def host(self) -> SimulatedServerFactory:
        from kiebitz.dissectors.protocols.okey.simulated_server import OkeyServer

        return OkeyServer

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        from kiebitz.dissectors.protocols.okey.statistics import STATISTICS

        return STATISTICS

    def follows(self, event: Event) -> Follows | None:
        # A put that is not valid is told to nobody else, whatever comes next.
        return None if event.data.get("valid") is False else super().follows(event)

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        framer = self.framer(direction)
        lines = [
            self.decode(frame.data, direction)
            for frame in framer.feed(0, data)
            if frame.cut is None and self.codec.names_message(frame.data, direction)
        ]
        sound = [line.row.name for line in lines if line.sound and line.row is not None]
        if any(name not in _ANYBODYS for name in sound):
            return "certain"
        return "similar" if any(line.row is not None for line in lines) else None

    phrases = MappingProxyType(
        {
            "tile": tile_words,
            "deck": deck_words,
            "exchange": exchange_words,
            "stack": stack_words,
        }
    )

    def template(self, event: Event) -> str:
        data = event.data
        match event.kind:
            case "dealt" if data.get("deck") is None:
                return "{name} gets their tiles at seat {seat}"
            case "returned" if data.get("deck") is None:
                return "{name} is back at seat {seat}"
            case "cheated" if data.get("deck") is None:
                return "{name} takes a winning deck"
            case "drew":
                tile = "a tile" if data.get("tile") is None else "{tile}"
                return f"{{name}} draws {tile}" + ("" if data.get("stack") is None else " from {stack}")
            case "put":
                tile = "a tile" if data.get("tile") is None else "{tile}"
                may = "is not allowed to put" if data.get("valid") is False else "puts"
                return f"{{name}} {may} {tile}"
            case "status" if data.get("exchange") == [None] * SEATS:
                return "it is {name}'s turn; the exchange stacks are empty"
            case "left":
                return _LEAVES.get(str(data.get("reason")), super().template(event))
        return super().template(event)

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


OKEY = Okey()
