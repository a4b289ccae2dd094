"""The state of one game: a deal in a lobby, its four places, the exchange stacks, and the turn."""

from __future__ import annotations

from collections import Counter

import msgspec

from kiebitz.dissectors.game.running_game import RunningGame
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.okey.tiles import OF_EACH, SEATS, Slots, counted


class Place(msgspec.Struct, eq=False):
    """A player's place. `deck` is None if unknown, and `certain` is True if nothing has contradicted it."""

    name: str | None = None
    deck: Slots | None = None
    certain: bool = False
    count: int | None = None
    """Number of tiles."""
    stream_id: int | None = None
    """The connection of its player, if it is in the capture."""

    def take(self, tile: str, counted: bool = False) -> None:
        """Put a drawn tile in the first empty place; it may be counted already."""
        if self.count is not None and not counted:
            self.count += 1
        if self.deck is not None:
            slots = [*self.deck]
            if None in slots:
                slots[slots.index(None)] = tile
            else:
                slots.append(tile)
            self.deck = slots


def four_places() -> list[Place]:
    """Return empty places for a game's four players."""
    return [Place() for _ in range(SEATS)]


class OkeyGame(RunningGame, eq=False):
    """A game; unknown values are None.

    `alone` is True if no other deal was made in its lobby at the same time, as happens with real servers.
    """

    places: list[Place] = msgspec.field(default_factory=four_places)
    exchange: Slots | None = None
    main_draws: int | None = None
    """Number of tiles drawn from the main stack; None if the deal was not seen."""
    turn: int | None = None
    drawn: bool = False
    """True if the player whose turn it is has drawn, or need not."""
    draw: Event | None = None
    """The draw of this turn."""
    put: str | None = None
    """The tile put in this turn, until the next turn is announced."""
    latest_put: Event | None = None
    alone: bool = True
    cheated: bool = False
    status: Event | None = None
    """The latest event about the exchange stacks."""
    status_stream: int | None = None
    """The stream of its first message."""
    ending: Event | None = None
    """The event that ended it."""

    @property
    def has_not_begun(self) -> bool:
        """True if no tile was put yet, in a game captured from its deal on."""
        return self.turn is None and self.exchange is not None and not any(self.exchange)

    def too_many(self) -> str | None:
        """Return a tile that the known decks and stacks have more often than the pack."""
        if self.cheated or not self.alone:
            return None
        total: Counter[str] = Counter()
        for place in self.places:
            total += counted(place.deck or ()) if place.certain else Counter()
        total += counted(self.exchange or ())
        return next((tile for tile, count in sorted(total.items()) if count > OF_EACH), None)
