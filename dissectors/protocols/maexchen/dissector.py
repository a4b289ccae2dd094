"""Mäxchen as the inspector sees it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.framing import DatagramFramer
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.maexchen.codec import MaexchenCodec
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.protocols.maexchen.queries import QUERIES
from kiebitz.dissectors.protocols.maexchen.questions import ANSWER_WINDOW_NS
from kiebitz.dissectors.protocols.maexchen.table import MaexchenTable
from kiebitz.dissectors.protocols.maexchen.words import dice_words, reason_words

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import BotFactory, SimulatedServerFactory
    from kiebitz.dissectors.conformance.expectations import Conformance
    from kiebitz.dissectors.game.view import Scene, View
    from kiebitz.dissectors.statistics import Statistic


class Maexchen(Dissector):
    """The dice game of bluffing."""

    grammar = GRAMMAR
    queries = QUERIES
    transport = "udp"
    default_ports = frozenset({9000})
    # The server refuses a name that another IP address has.
    identity = "address"
    introductions = frozenset({"REGISTER", "REGISTER_SPECTATOR"})
    # The questions and their answers: the server's clock runs from its question on.
    patience = MappingProxyType(
        dict.fromkeys(
            ("ROUND STARTING", "JOIN", "YOUR TURN", "ROLL", "SEE", "ROLLED", "ANNOUNCE"),
            ANSWER_WINDOW_NS / 1e9,
        )
    )
    codec = MaexchenCodec()
    framer_class = DatagramFramer
    table_class = MaexchenTable

    phrases = MappingProxyType({"dice": dice_words, "reason": reason_words})

    def template(self, event: Event) -> str:
        if event.kind == "rejected" and event.data.get("reason") is None:
            return "{name} is refused"
        return super().template(event)

    def view(self, scene: Scene) -> View:
        from kiebitz.dissectors.protocols.maexchen.view import view_of

        return view_of(scene)

    @property
    def reactions(self) -> Conformance:
        from kiebitz.dissectors.protocols.maexchen.conformance import CONFORMANCE

        return CONFORMANCE

    @property
    def player(self) -> BotFactory:
        from kiebitz.dissectors.protocols.maexchen.bot import MaexchenBot

        return MaexchenBot

    @property
    def host(self) -> SimulatedServerFactory:
        from kiebitz.dissectors.protocols.maexchen.simulated_server import MaexchenServer

        return MaexchenServer

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        from kiebitz.dissectors.protocols.maexchen.statistics import STATISTICS

        return STATISTICS

    def scores(self, state: State) -> dict[str, int]:
        return dict(state.get("scores", {}))


MAEXCHEN = Maexchen()
