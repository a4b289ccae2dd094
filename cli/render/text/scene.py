"""What a drawing gets to see of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event


class Scene(msgspec.Struct, frozen=True):
    """A table at a moment: its state, and the events that led there, oldest first (the last few will do).

    `names` are all players of the session in an order that stays: it gives each his colour.
    """

    state: State
    events: Sequence[Event] = ()
    names: Sequence[str] = ()

    def game(self) -> tuple[str, dict[str, Any]]:
        """Of several games that are on, the one that is drawn: its number and its part of the state.

        It is the game of the latest event, which stands above and below the picture, or else the newest.
        Without any game both are empty.
        """
        games = self.state.get("games", {})
        if not games:
            return "", {}
        latest = (str(event.game_id) for event in reversed(self.events) if str(event.game_id) in games)
        number = next(latest, max(games, key=int))
        return number, games[number]
