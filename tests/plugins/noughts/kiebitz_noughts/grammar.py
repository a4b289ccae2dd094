"""The grammar of noughts and crosses; clauses name headings of its specification (Lines, Players, Game).

A message is a line in UTF-8: its name, then its fields, with a blank between them.
"""

from __future__ import annotations

from kiebitz.protocol import EventKind, Field, Grammar, IdentifierKind, MessageType, Rule, Text, Word

PLAYER = IdentifierKind("player", of_player=True)
NAME = Field("name", Text(PLAYER), "player")
SQUARE = Field("square", Word(*"123456789", title="a square, 1 to 9"), "square")
WHY = Field("why", Word("taken", "turn", "full"), "reason")
BOTH = (Field("x", Text(PLAYER), "who begins"), Field("o", Text(PLAYER), "who is second"))
ROWS = (
    # Players: HELLO name
    MessageType("HELLO", "c2s", (NAME,), "asks to play", clause="Players"),
    MessageType("WELCOME", "s2c", (), "is taken in", clause="Players", answers=("HELLO",)),
    MessageType("BYE", "c2s", (), "goes", clause="Players"),
    MessageType("PUT", "c2s", (SQUARE,), "wants a square", clause="Game"),
    MessageType("REFUSED", "s2c", (WHY,), "cannot have it", clause="Game", answers=("PUT", "HELLO")),
    MessageType("START", "s2c", BOTH, "a game begins", clause="Game", broadcast=True),
    MessageType("MARK", "s2c", (NAME, SQUARE), "a player has a square", clause="Game", broadcast=True),
    MessageType("WON", "s2c", (NAME,), "a player has three in a row", clause="Game", broadcast=True),
    MessageType("DRAW", "s2c", (), "nobody can win", clause="Game", broadcast=True),
)
EVENTS = (
    EventKind("joined", ("name",), "{name} joins", reported_by=("WELCOME",), identifies=True),
    EventKind("left", ("name",), "{name} leaves", reported_by=("BYE",)),
    EventKind("started", ("x", "o"), "{x} plays {o}"),
    EventKind("marked", ("name", "square"), "{name} takes square {square}"),
    EventKind("won", ("name",), "{name} wins"),
    EventKind("drawn", (), "the game is drawn"),
)
RULES = (
    Rule("out-of-turn", "MARK", "{player} has a square, and it is {turn}'s turn", clause="Game"),
    Rule("square-taken", "MARK", "the square is {holder}'s already", clause="Game"),
)
IDENTIFIERS = dict.fromkeys(("actor", "name", "x", "o", "turn", "squares", "players"), PLAYER)
GRAMMAR = Grammar(
    "noughts",
    "Noughts and crosses",
    rows=ROWS,
    events=EVENTS,
    rules=RULES,
    data_identifiers=IDENTIFIERS,
    state_identifiers=IDENTIFIERS,
)
