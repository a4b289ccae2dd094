"""Noughts and crosses: the dissector."""

from __future__ import annotations

from kiebitz.protocol import Counts, DelimitedCodec, Dissector, Identity, LineFramer, Presentation, actions
from kiebitz_noughts.grammar import GRAMMAR
from kiebitz_noughts.table import NoughtsTable
from kiebitz_noughts.view import view_of


class NoughtsPresentation(Presentation):
    """Statistics and pictures of noughts and crosses."""

    view = staticmethod(view_of)

    statistics = (
        Counts(key="squares", title="Squares taken, games won", reads=actions(marked="squares", won="games")),
    )


NOUGHTS = Dissector(
    grammar=GRAMMAR,
    transport="tcp",
    codec=DelimitedCodec(GRAMMAR, "Lines", line_end="\r\n"),
    framer=LineFramer,
    table=NoughtsTable,
    default_ports={3333},
    presentation=NoughtsPresentation(GRAMMAR),
    identity=Identity(GRAMMAR, login_messages=("HELLO",), logout_messages=("BYE",)),
)
