"""A group and the hand that it plays, as far as they are known: what the table's judgement rests on."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Direction, Event, Game
from kiebitz.dissectors.protocols.cgml.cards import HAND, SEATS, WITHOUT_TRUMPS, Rules

MAX_TOLD = 400
"""A hand has some hundred things that are told at the most; of one that has more, the rest is passed over."""

Level = tuple[int, int]
"""How often the game is doubled, and the game against."""


def level_of(text: str) -> Level:
    """The level in a text such as `2` or `2:1`; what is not told has not been doubled."""
    game, _, against = text.partition(":")
    return int(game), int(against or 1)


class Trick(msgspec.Struct, eq=False):
    """A trick that is over: its cards in the order played, each with its player, if he is known."""

    number: int
    cards: list[tuple[int | None, str]]
    winner: int


class Hand(msgspec.Struct, eq=False):
    """One hand, a game of the database. `whole` says that it was seen from its beginning.

    `seats` are the players in the order in which they play, the leader of the first trick not always first.
    """

    game: Game
    number: int
    seats: list[int]
    whole: bool
    dealing: bool = False
    dealt: dict[int, list[str | None]] = msgspec.field(default_factory=dict)
    """By player the cards that he was dealt; None for each that nobody was shown."""
    told: dict[Hashable, Event] = msgspec.field(default_factory=dict)
    """What was told, for copies that come late."""
    foretold: set[Hashable] = msgspec.field(default_factory=set)
    """What the server has told of a player before they were heard to say it."""
    bids: list[tuple[int, str]] = msgspec.field(default_factory=list)
    awaited: set[int] = msgspec.field(default_factory=set)
    """Whose bids the server has not told yet."""
    declarer: int | None = None
    contract: str | None = None
    named: bool = False
    """Whether the declarer was heard to name trumps: then the server only repeats it."""
    trump: str | None = None
    second: str | None = None
    level: Level = (1, 1)
    fleks: dict[tuple[Direction, int, str], list[Event]] = msgspec.field(default_factory=dict)
    """By who has told it (the client or the server), player and level, each time that he has said so."""
    talon: list[str | None] | None = None
    """What the declarer has taken."""
    discards: list[str | None] | None = None
    table: list[tuple[int, str]] = msgspec.field(default_factory=list)
    waiting: list[list[tuple[int, str]]] = msgspec.field(default_factory=list)
    """Tricks that are complete, and that the server has not told yet."""
    played: dict[str, int] = msgspec.field(default_factory=dict)
    """Every card that was shown, with its player."""
    laid: dict[str, int] = msgspec.field(default_factory=dict)
    """The cards that were laid down together, with their player."""
    tricks: list[Trick] = msgspec.field(default_factory=list)
    refused: dict[int, tuple[str, list[str]]] = msgspec.field(default_factory=dict)
    """By player a card that he has played against the rules, and those that he could have played."""
    ended: bool = False
    state: State = msgspec.field(default_factory=dict)
    """Its part of the table's state, as long as it is not over."""
    place: tuple[str, str] = ("", "")
    """Where in the state that stands."""

    @property
    def rules(self) -> Rules | None:
        """What counts, once the game is known."""
        if self.contract is None or (self.trump is None and self.contract not in WITHOUT_TRUMPS):
            return None
        return Rules(self.contract, self.trump)

    def cards_of(self, player: int) -> list[str] | None:
        """The cards that a player still has; None if that is not known."""
        dealt = self.dealt.get(player)
        if dealt is None or len(dealt) != HAND or self.dealing:
            return None
        played = self.played
        if player != self.declarer:
            if None in dealt:
                return None
            return [card for card in dealt if card is not None and card not in played]
        if self.talon is None and self.discards is not None:
            return None
        held, gone = [*dealt, *(self.talon or ())], self.discards or ()
        if None in held or None in gone:
            return None
        return [card for card in held if card is not None and card not in gone and card not in played]

    def order_from(self, player: int) -> list[int]:
        """The players in the order of a trick that this one leads."""
        if player not in self.seats:
            return [player]
        at = self.seats.index(player)
        return self.seats[at:] + self.seats[:at]

    @property
    def leader(self) -> int | None:
        """Who leads the next trick, if that follows from the last one."""
        return self.tricks[-1].winner if self.tricks else None

    @property
    def has_shown_trumps(self) -> bool:
        """Whether a trump was played."""
        return any(card[0] == self.trump for card in self.played)


class Pause(msgspec.Struct, eq=False):
    """A pause: who wants it, on which stream, and the events of its two ends.

    The server tells the others: `told` says whether it has told them of its beginning.
    """

    stream_id: int | None
    player: int | None
    message: str | None
    event: Event
    told: bool = False
    over: Event | None = None


class Group(msgspec.Struct, eq=False):
    """Players who play with each other. `key` is its name in the table's state, `number` the server's own."""

    key: str
    number: int | None
    players: list[int] = msgspec.field(default_factory=list)
    accepted: set[int] = msgspec.field(default_factory=set)
    count: int = 0
    """How many hands were played."""
    asked: Event | None = None
    """The question whether a hand may be dealt, until it is."""
    asked_players: list[int] = msgspec.field(default_factory=list)
    hand: Hand | None = None
    money: dict[str, int] = msgspec.field(default_factory=dict)
    pauses: list[Pause] = msgspec.field(default_factory=list)

    def joins(self, player: int) -> None:
        """Another member, if there is room."""
        if player not in self.players and len(self.players) < SEATS:
            self.players.append(player)
