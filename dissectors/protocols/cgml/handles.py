"""What CGML's values name, in messages, events and the state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Handle

PLAYER = Handle("player", of_player=True, lasting=True)
NAME = Handle("name", of_player=True, nobody=("",))
GROUP = Handle("group")
URL = Handle("url", of_server=True)
ADDRESS = Handle("address")
