"""Knobeln as the inspector sees it."""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.delimited_codec import DelimitedCodec
from kiebitz.dissectors.grammar.framing import DatagramFramer
from kiebitz_knobeln.grammar import GRAMMAR
from kiebitz_knobeln.table import KnobelnTable


class Knobeln(Dissector):
    """The example of a protocol over UDP: a message is a datagram, as clause Grundlagen has it."""

    grammar = GRAMMAR
    transport = "udp"
    default_ports = frozenset({5000})
    codec = DelimitedCodec(GRAMMAR, "Grundlagen")
    framer_class = DatagramFramer
    table_class = KnobelnTable


KNOBELN = Knobeln()
