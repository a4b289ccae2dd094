"""Knobeln: the dissector."""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.delimited_codec import DelimitedCodec
from kiebitz.dissectors.grammar.framing import DatagramFramer
from kiebitz_knobeln.grammar import GRAMMAR
from kiebitz_knobeln.table import KnobelnTable

KNOBELN = Dissector(
    grammar=GRAMMAR,
    transport="udp",
    codec=DelimitedCodec(GRAMMAR, "Grundlagen"),
    framer=DatagramFramer,
    table=KnobelnTable,
    default_ports={5000},
)
