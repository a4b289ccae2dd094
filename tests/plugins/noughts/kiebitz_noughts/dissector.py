"""Noughts and crosses as the inspector sees it."""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.delimited_codec import DelimitedCodec
from kiebitz.dissectors.grammar.framing import LineFramer
from kiebitz.dissectors.statistics import Counts, actions
from kiebitz_noughts.grammar import GRAMMAR
from kiebitz_noughts.table import NoughtsTable
from kiebitz_noughts.view import view_of


class Noughts(Dissector):
    """The example of a protocol over TCP: a message is a line, as clause Lines has it."""

    grammar = GRAMMAR
    transport = "tcp"
    default_ports = frozenset({3333})
    introductions = frozenset({"HELLO"})
    codec = DelimitedCodec(GRAMMAR, "Lines", line_end="\r\n")
    framer_class = LineFramer
    table_class = NoughtsTable
    view = staticmethod(view_of)
    statistics = (
        Counts(key="squares", title="Squares taken, games won", reads=actions(marked="squares", won="games")),
    )


NOUGHTS = Noughts()
