"""What Catan's values name, in messages, events and the state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Handle

NIEMAND = -1
"""As the winner's number: nobody has won."""

PLAYER = Handle("player", of_player=True, nobody=(NIEMAND,))
NAME = Handle("name", of_player=True)
TRADE = Handle("trade")
