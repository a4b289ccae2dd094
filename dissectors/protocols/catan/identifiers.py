"""The kinds of identifiers in Catan's messages, events and state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKind

NIEMAND = -1
"""Winner's number of a game without a winner."""

PLAYER = IdentifierKind("player", of_player=True, null_values=(NIEMAND,))
NAME = IdentifierKind("name", of_player=True)
TRADE = IdentifierKind("trade")
