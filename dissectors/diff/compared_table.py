"""A compared table, with its normalized events."""

from __future__ import annotations

from array import array
from collections.abc import Collection

import msgspec

from kiebitz.dissectors.diff.normalize import Normalizer
from kiebitz.dissectors.model import TableInfo

OUTSIDE_GAMES = 0
"""Game id of events outside any game."""


class ComparedTable(msgspec.Struct, eq=False):
    """A table and its events in order: their ids, normalized events and games.

    `ranks` has the number of the session's events before each.
    """

    row: TableInfo
    normalizer: Normalizer
    ids: array[int] = msgspec.field(default_factory=lambda: array("q"))
    normalized: array[int] = msgspec.field(default_factory=lambda: array("q"))
    games: array[int] = msgspec.field(default_factory=lambda: array("q"))
    ranks: array[int] = msgspec.field(default_factory=lambda: array("q"))

    def rank(self, place: int) -> int:
        """Return the number of the session's events before an index, which may be past the end."""
        if place < len(self.ranks):
            return self.ranks[place]
        return self.ranks[-1] + 1 if self.ranks else 0

    def active_players(self) -> set[int]:
        """Return the players that occur in its events."""
        normalized, player_of = self.normalizer.events, self.normalizer.roster.player_of
        parts = (part for number in set(self.normalized) for part in normalized[number].parts)
        player_numbers = {
            stay for part in parts for stay in (*part.players, *(who for one in part.keyed for who, _ in one))
        }
        return {player_of[stay] for stay in player_numbers}

    def endings(self) -> list[int]:
        """Return the indexes of the events that only report the end of a connection."""
        normalized = self.normalizer.events
        return [place for place, number in enumerate(self.normalized) if normalized[number].is_ending]

    def strands(self, without: Collection[int]) -> dict[int, list[int]]:
        """Return the indexes of all other events by game, in the order in which the games begin."""
        found: dict[int, list[int]] = {}
        for place, game in enumerate(self.games):
            if place not in without:
                found.setdefault(game, []).append(place)
        return found
