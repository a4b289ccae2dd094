"""Knobeln: the dissector."""

from __future__ import annotations

from kiebitz.protocol import DatagramFramer, DelimitedCodec, Dissector
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
