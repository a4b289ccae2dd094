"""The kinds of identifiers in CGML's messages, events and state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKind

PLAYER = IdentifierKind("player", of_player=True, global_=True)
NAME = IdentifierKind("name", of_player=True, null_values=("",))
GROUP = IdentifierKind("group")
URL = IdentifierKind("url", of_server=True)
ADDRESS = IdentifierKind("address")
