"""The grammar of Knobeln. The clauses name the headings of its specification (Grundlagen, Anmelden, Spiel).

A message is one datagram in UTF-8: its name, then its fields, with a blank between them.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.fields import Number, Text
from kiebitz.dissectors.grammar.grammar import EventKind, Field, Grammar, Handle, MessageType

PLAYER = Handle("player", of_player=True)
NAME = Field("name", Text(PLAYER), "player")
ROWS = (
    # Anmelden: HALLO name
    MessageType("HALLO", "c2s", (NAME,), "asks to play", "Anmelden"),
    MessageType("WILLKOMMEN", "s2c", (), "is taken in", "Anmelden", answers=("HALLO",)),
    # Spiel: WURF name zahl
    MessageType(
        "WURF",
        "s2c",
        (NAME, Field("zahl", Number(), "pips")),
        "somebody rolls",
        "Spiel",
        broadcast=True,
    ),
)
EVENTS = (
    EventKind("joined", ("name",), "{name} joins", own=("WILLKOMMEN",), introduces=True),
    EventKind("rolled", ("name", "zahl"), "{name} rolls {zahl}"),
)
GRAMMAR = Grammar(
    "knobeln",
    "Knobeln",
    ROWS,
    EVENTS,
    data_handles={"actor": PLAYER, "name": PLAYER},
    state_handles={"players": PLAYER, "rolls": PLAYER},
)
