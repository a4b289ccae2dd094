"""Mäxchen as the inspector sees it."""

from __future__ import annotations

from types import MappingProxyType

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.framing import DatagramFramer
from kiebitz.dissectors.maexchen.codec import MaexchenCodec
from kiebitz.dissectors.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.maexchen.host import MaexchenHost
from kiebitz.dissectors.maexchen.player import MaexchenPlayer
from kiebitz.dissectors.maexchen.questions import ANSWER_WINDOW_NS
from kiebitz.dissectors.maexchen.reactions import REACTIONS
from kiebitz.dissectors.maexchen.table import MaexchenTable
from kiebitz.dissectors.state import State


class Maexchen(Dissector):
    """The dice game of bluffing."""

    grammar = GRAMMAR
    transport = "udp"
    default_ports = frozenset({9000})
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
    reactions = REACTIONS
    player = MaexchenPlayer
    host = MaexchenHost

    def scores(self, state: State) -> dict[str, int]:
        return dict(state.get("scores", {}))


MAEXCHEN = Maexchen()
