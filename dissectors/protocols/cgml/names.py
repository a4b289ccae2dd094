"""What the players of a CGML server are called, who are told of by their ids."""

from __future__ import annotations

from collections import Counter

from kiebitz.dissectors.game.state import State


def player_names(state: State) -> dict[str, str]:
    """By id what the players are called; who has another's name has his id behind it."""
    unnamed = {player: f"player {player}" for player in state.get("players", {})}
    return unnamed | known_names(state)


def known_names(state: State) -> dict[str, str]:
    """Return the names of the players who have one, by id; who shares a name has the id behind it."""
    told = {player: about.get("name") for player, about in state.get("players", {}).items()}
    names = {player: name for player, name in told.items() if name}
    shared = Counter(names.values())
    return {player: f"{name} {player}" if shared[name] > 1 else name for player, name in names.items()}


def called(player: int | None, names: dict[str, str]) -> str:
    """What a player is called, also one of whom only the id was told."""
    return "?" if player is None else names.get(str(player), f"player {player}")
