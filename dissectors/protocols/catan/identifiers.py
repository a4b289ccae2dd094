"""What Catan's values name, in messages, events and the state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKind

NIEMAND = -1
"""As the winner's number: nobody has won."""

PLAYER = IdentifierKind("player", of_player=True, null_values=(NIEMAND,))
NAME = IdentifierKind("name", of_player=True)
TRADE = IdentifierKind("trade")
