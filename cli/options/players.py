"""Which players a session knows, for `--as PLAYER`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from difflib import get_close_matches

from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.storage.hearers import Hearers
from kiebitz.storage.schema import StorageError
from kiebitz.storage.timeline import Timeline

_LISTED = 8
"""How many names a sentence gives at the most."""


def check_player(timeline: Timeline, player: str) -> None:
    """Raise StorageError, with the nearest names, unless `player` acts in the session or is known in it."""
    known = known_players(timeline)
    if player not in known:
        raise no_such_player(player, known)


def known_players(timeline: Timeline) -> set[str]:
    """Everybody who acts in the session, or is there at its end."""
    known = timeline.actors() | {*Hearers(timeline).labels()}
    for table in timeline.tables():
        known |= timeline.state_at(table.id, sys.maxsize).get("players", {}).keys()
    return known


def no_such_player(player: str, known: Collection[str]) -> StorageError:
    """The error for a player whom a session does not have; it says who there is."""
    actors = sorted(known)
    near = get_close_matches(player, actors, n=3)
    if near:
        hint = did_you_mean(*near)
    elif actors:
        more = "" if len(actors) <= _LISTED else f" and {len(actors) - _LISTED} more"
        hint = f"there are {', '.join(actors[:_LISTED])}{more}"
    else:
        hint = "nobody acts in it"
    return StorageError(f"there is no player {player} in this session; {hint}")
