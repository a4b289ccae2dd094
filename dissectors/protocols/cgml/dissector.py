"""CGML as the inspector sees it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.dissector import Dissector, Likeness, likeness
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.grammar import MessageType, Rename, Replace
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.protocols.cgml.codec import CgmlCodec
from kiebitz.dissectors.protocols.cgml.framer import CgmlFramer
from kiebitz.dissectors.protocols.cgml.grammar import GRAMMAR, VERSION, ElementType
from kiebitz.dissectors.protocols.cgml.names import player_names
from kiebitz.dissectors.protocols.cgml.queries import QUERIES
from kiebitz.dissectors.protocols.cgml.table import CgmlTable
from kiebitz.dissectors.protocols.cgml.values import Shape, renamed, with_each
from kiebitz.dissectors.protocols.cgml.words import card_words, cards_words, level_words, suit_words

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import BotFactory, SimulatedServerFactory
    from kiebitz.dissectors.conformance.expectations import Conformance
    from kiebitz.dissectors.game.view import Scene, View
    from kiebitz.dissectors.statistics import Statistic


class Cgml(Dissector):
    """Mariáš for three, with a server that brings players together and one that deals."""

    grammar = GRAMMAR
    queries = QUERIES
    transport = "tcp"
    default_ports = frozenset((7001, 7002, 7003))
    # A player is a number that its client bears everywhere, and connects anew for each group.
    identity = "number"
    introductions = frozenset({"connect", "newgroup", "newgame"})
    codec = CgmlCodec()
    framer_class = CgmlFramer
    table_class = CgmlTable
    seats = 3
    counts = "money"

    def view(self, scene: Scene) -> View:
        from kiebitz.dissectors.protocols.cgml.view import view_of

        return view_of(scene)

    @property
    def reactions(self) -> Conformance:
        from kiebitz.dissectors.protocols.cgml.conformance import CONFORMANCE

        return CONFORMANCE

    @property
    def player(self) -> BotFactory:
        from kiebitz.dissectors.protocols.cgml.bot import CgmlBot

        return CgmlBot

    @property
    def host(self) -> SimulatedServerFactory:
        from kiebitz.dissectors.protocols.cgml.simulated_server import CgmlServer

        return CgmlServer

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        from kiebitz.dissectors.protocols.cgml.statistics import STATISTICS

        return STATISTICS

    def scores(self, state: State) -> dict[str, int]:
        players = state.get("players", {})
        return {
            name: money
            for group in state.get("groups", {}).values()
            for number, money in group.get("money", {}).items()
            if (name := players.get(number, {}).get("name"))
        }

    def called(self, actor: str, state: State) -> str:
        return player_names(state).get(actor, actor)

    def renamed(self, row: MessageType, fields: Mapping[str, Any], rename: Rename) -> dict[str, Any]:
        assert isinstance(row, ElementType)
        return renamed(row.shape, fields, rename)

    def anonymized(
        self, row: MessageType, fields: Mapping[str, Any], replace: Replace, rename: Rename
    ) -> dict[str, Any]:
        assert isinstance(row, ElementType)
        shape = Shape((*row.shape.attributes, VERSION), row.shape.text, row.shape.children)
        return with_each(shape, fields, lambda kind, value: kind.anonymized(value, replace, rename))

    def recognise(self, data: bytes, direction: Direction) -> Likeness | None:
        if b"<" not in data:
            return None
        framer = self.framer(direction)
        frames = [*framer.feed(0, data), *framer.eof()]
        return likeness(
            [self.decode(frame.data, direction) for frame in frames if frame.data and frame.cut is None]
        )

    def row_of(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> MessageType | None:
        for row in self.grammar.rows_named(direction, name):
            assert isinstance(row, ElementType)
            if row.mark is None or fields.get(row.mark[0]) == row.mark[1]:
                return row
        return None

    phrases = MappingProxyType(
        {
            "card": card_words,
            "cards": cards_words,
            "should": cards_words,
            "trump": suit_words,
            "second": suit_words,
            "level": lambda level: level_words(level) or "no flek",
        }
    )

    def template(self, event: Event) -> str:
        template, data = super().template(event), event.data
        match event.kind:
            case "connected" if data.get("role") == "server":
                return "the game server {url} logs in"
            case "bid" if data.get("call") == "PASS":
                return "{player} passes"
            case "contract" if data.get("game") == "PASS":
                return "all players pass, {player} last"
            case "trump" if data.get("trump") is None:
                # There are none, which is no question.
                return "{player} plays {game}, without trumps"
            case "trump" if data.get("second") is not None:
                return f"{template}, second colour {{second}}"
            case "renonc" if data.get("card") is None:
                return "{player} revokes"
            case "paused" if data.get("message") is None:
                return "{player} pauses"
        return template


CGML = Cgml()
