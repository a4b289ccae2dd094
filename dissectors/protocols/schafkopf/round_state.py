"""One round as far as it is known, and one conversation of it: the memory that the table's judgement rests
on."""

from __future__ import annotations

from typing import Literal

import msgspec

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.model import Game, Stream
from kiebitz.dissectors.protocols.schafkopf.play import Play

Question = Literal["NAME", "ERSTE3", "SPIELSTDU", "KONTRA", "HOCHZEIT", "KARTE", "MODEL"]
"""What a client is asked for, by the message that answers it."""

Phase = Literal["dealing", "bidding", "playing", "over"]
PHASES: tuple[Phase, ...] = ("dealing", "bidding", "playing", "over")


class Round(msgspec.Struct, eq=False):
    """A round. `names` are the players by seat; what is not known yet is None."""

    game: Game
    number: int
    names: list[str] | None
    play: Play
    phase: Phase = "dealing"
    taken: dict[int, int] = msgspec.field(default_factory=dict)
    """Which stream (id) is at which seat."""
    dealt: dict[int, list[str]] = msgspec.field(default_factory=dict)
    """The hands that were seen, before the first card."""
    knocks: dict[int, str] = msgspec.field(default_factory=dict)
    bids: dict[int, str] = msgspec.field(default_factory=dict)
    kontras: dict[int, str] = msgspec.field(default_factory=dict)
    given: dict[int, str] = msgspec.field(default_factory=dict)
    """The cards that were given away for a Hochzeit."""
    player: int | None = None
    partner: int | None = None
    hochzeit: bool = False
    """Whether somebody has proposed one."""
    told: dict[str, tuple[object, int]] = msgspec.field(default_factory=dict)
    """What was told once to everybody, by message name, and the number of the event."""
    ended: bool = False
    left: bool = False
    """Whether it is no longer part of the table's state."""
    contested: bool = False
    """Whether the server has insisted on cards that contradict what was known: then nobody is accused."""
    objections: set[str] = msgspec.field(default_factory=set)
    """What was said against the server's cards: it shows the same to several clients, and again."""
    refused: set[tuple[int, str]] = msgspec.field(default_factory=set)
    """Cards that a client has laid against the rules, by seat: played only if the server takes them."""
    renounced: dict[tuple[int, str], int] = msgspec.field(default_factory=dict)
    """Which seat did not follow which suit, and in which trick."""

    @property
    def key(self) -> str:
        """The round's name in the table's state."""
        return str(self.game.id)

    @property
    def mode(self) -> str | None:
        """The Modus that is played."""
        return self.play.mode.name if self.play.mode is not None else None

    def who(self, seat: int | None) -> str | None:
        """A player's name, with the seat where two have the same."""
        if seat is None:
            return None
        if self.names is None:
            return f"seat {seat}"
        name = self.names[seat]
        return label(name) if self.names.count(name) == 1 else f"{label(name)} (seat {seat})"

    def hand(self, seat: int) -> list[str] | None:
        """The cards that a seat still has, if they are known."""
        dealt = self.dealt.get(seat)
        if dealt is None:
            return None
        gone = {played.card for played in self.play.cards() if played.seat == seat}
        return [card for card in dealt if card not in gone]


class Conversation(msgspec.Struct, eq=False):
    """One client's connection: his name, his seat in which round, and what he has been asked."""

    stream: Stream
    name: str | None = None
    round: Round | None = None
    seat: int | None = None
    whole: bool = True
    """Whether nothing is missing since the last question."""
    sure: bool = True
    """Whether nothing is missing since the round began: else this may be the next one."""
    synced: bool = True
    """Whether nothing is missing since the server has shown the cards."""
    asked: Question | None = None
    answered: Question | None = None
    """The last question that was answered, for what is said once too often."""
    id: int | None = None
    """A seat that was told for a round which has no other sign yet."""
    dran: int | None = None
    step: int = 0
    """How far the server is in the order of a round."""
    tricks: int = 0
    """How many tricks this client has been shown."""
    lead_due: bool = False
    """Whether a trick is over, and the server has not said yet whose turn it is."""
    account: int | None = None
    settled: Round | None = None
    """The round that is over and whose account has not been told."""
    doubted: bool = False
    """Whether the last snapshot contradicted what was known."""
    hand_doubted: bool = False
    """Whether the hand in it did."""
    left: bool = False
