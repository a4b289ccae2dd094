"""A running game of a table, with its part of the table's state."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Game


class RunningGame(msgspec.Struct, eq=False):
    """A game and its part of the state; a protocol's games derive from it.

    `GameContext.set_in_game` and its other methods change the part. The list `unknown` in it names what is
    not known of the game.
    """

    game: Game
    place: tuple[str, str]
    """Path of its part in the state."""
    state: State
    """Its part of the state."""
    ended: bool = False
    has_left: bool = False
    """True if its part was removed from the state."""
