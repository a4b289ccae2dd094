"""Mäxchen as the inspector sees it."""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.framing import DatagramFramer
from kiebitz.dissectors.maexchen.codec import MaexchenCodec
from kiebitz.dissectors.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.maexchen.table import MaexchenTable
from kiebitz.dissectors.state import State


class Maexchen(Dissector):
    """The dice game of bluffing."""

    grammar = GRAMMAR
    transport = "udp"
    default_ports = frozenset({9000})
    introductions = frozenset({"REGISTER", "REGISTER_SPECTATOR"})
    codec = MaexchenCodec()
    framer_class = DatagramFramer
    table_class = MaexchenTable

    def scores(self, state: State) -> dict[str, int]:
        return dict(state.get("scores", {}))


MAEXCHEN = Maexchen()
