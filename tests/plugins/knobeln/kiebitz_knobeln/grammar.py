"""The grammar of Knobeln. The clauses name the headings of its specification (Grundlagen, Anmelden, Spiel).

A message is one datagram in UTF-8: its name, then its fields, with a blank between them.
"""

from __future__ import annotations

from kiebitz.protocol import EventKind, Field, Grammar, IdentifierKind, MessageType, Number, Text

PLAYER = IdentifierKind("player", of_player=True)
NAME = Field("name", Text(PLAYER), "player")
ROWS = (
    # Anmelden: HALLO name
    MessageType("HALLO", "c2s", (NAME,), "asks to play", clause="Anmelden"),
    MessageType("WILLKOMMEN", "s2c", (), "is taken in", clause="Anmelden", answers=("HALLO",)),
    # Spiel: WURF name zahl
    MessageType(
        "WURF",
        "s2c",
        (NAME, Field("zahl", Number(), "pips")),
        "somebody rolls",
        clause="Spiel",
        broadcast=True,
    ),
)
EVENTS = (
    EventKind("joined", ("name",), "{name} joins", reported_by=("WILLKOMMEN",), identifies=True),
    EventKind("rolled", ("name", "zahl"), "{name} rolls {zahl}"),
)
GRAMMAR = Grammar(
    "knobeln",
    "Knobeln",
    rows=ROWS,
    events=EVENTS,
    data_identifiers={"actor": PLAYER, "name": PLAYER},
    state_identifiers={"players": PLAYER, "rolls": PLAYER},
)
