"""The names of the players of a CGML server, in which messages refer to them by id."""

from __future__ import annotations

from collections import Counter

from kiebitz.dissectors.game.state import State


def player_names(state: State) -> dict[str, str]:
    """Return the players' names by id, with texts such as `player 7` for unknown ones."""
    unnamed = {player: f"player {player}" for player in state.get("players", {})}
    return unnamed | known_names(state)


def known_names(state: State) -> dict[str, str]:
    """Return the known names of players by id; a name used twice is followed by the id."""
    told = {player: about.get("name") for player, about in state.get("players", {}).items()}
    names = {player: name for player, name in told.items() if name}
    shared = Counter(names.values())
    return {player: f"{name} {player}" if shared[name] > 1 else name for player, name in names.items()}


def player_name(player: int | None, names: dict[str, str]) -> str:
    """Return a player's name, or a text with the id if the name is unknown."""
    return "?" if player is None else names.get(str(player), f"player {player}")
