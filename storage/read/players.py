"""The players of a session, and the results of games with names for numbers."""

from __future__ import annotations

import sys
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.sentences import named
from kiebitz.dissectors.model import PUBLIC, Game
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility

_MAX_LISTED = 8
"""Maximum names listed in a sentence."""


def check_player(timeline: Timeline, player: str) -> None:
    """Raise StorageError, with the nearest names, unless `player` acts in the session or is known in it.

    `PUBLIC` is always a view.
    """
    if player == PUBLIC:
        return
    known = known_players(timeline)
    if player not in known:
        raise no_such_player(player, known)


def known_players(timeline: Timeline) -> set[str]:
    """Return all players that act in the session, or are present at its end."""
    known = timeline.actors() | {*Visibility(timeline).labels()}
    for table in timeline.tables():
        known |= timeline.state_at(table.id, sys.maxsize).get("players", {}).keys()
    return known


def no_such_player(player: str, known: Collection[str]) -> StorageError:
    """Return the error for an unknown player, with similar or all names."""
    actors = sorted(known)
    near = get_close_matches(player, actors, n=3)
    if near:
        hint = did_you_mean(*near)
    elif actors:
        more = "" if len(actors) <= _MAX_LISTED else f" and {len(actors) - _MAX_LISTED} more"
        hint = f"its players are {', '.join(actors[:_MAX_LISTED])}{more}"
    else:
        hint = "no player acts in it"
    return StorageError(f"there is no player {player} in this session; {hint}")


def named_result(timeline: Timeline, game: Game) -> dict[str, Any] | None:
    """Return a game's result with players' names for their numbers, as far as known to the table then."""
    result = game.result
    dissector = dissector_of(game.protocol)
    if not result or dissector is None:
        return result
    handles: IdentifierKinds = {**dissector.grammar.state_identifiers, **dissector.grammar.data_identifiers}
    # Most games identify players by name, and need no state.
    if not any(_has_number(value, handles.get(key)) for key, value in result.items()):
        return result
    span = timeline.span(game.id)
    if span is None:
        return result
    state = timeline.state_at(game.table_id, span[1].seq)
    part = state.get("games", {}).get(str(game.id), {})
    names = _names(state.get("players")) | _names(part.get("players"))

    def name_of(number: int | str) -> int | str:
        return names.get(str(number), number)

    return {key: named(value, handles.get(key), name_of) for key, value in result.items()}


def _has_number(value: Any, handle: IdentifierKind | KeysOf | None) -> bool:
    if isinstance(handle, KeysOf):
        return handle.kind.of_player and isinstance(value, dict) and any(map(str.isdecimal, value))
    parts = value if isinstance(value, list) else [value]
    return handle is not None and handle.of_player and any(isinstance(part, int) for part in parts)


def _names(players: Any) -> dict[str, str]:
    """Return the names of a state's players by their numbers; many states identify them by name anyway."""
    if not isinstance(players, dict):
        return {}
    known = {number: player.get("name") for number, player in players.items() if isinstance(player, dict)}
    return {number: name for number, name in known.items() if isinstance(name, str) and name}
