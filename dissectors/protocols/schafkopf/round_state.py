"""The known part of one round, on which the table's checks are based, and the clients' connections."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.model import Stream
from kiebitz.dissectors.protocols.schafkopf.cards import NOBODY, SEATS, TO_WIN, TRICKS, Play, Trick

Question = Literal["NAME", "ERSTE3", "SPIELSTDU", "KONTRA", "HOCHZEIT", "KARTE", "MODEL"]
"""A question to a client, named after the message that answers it."""

Phase = Literal["dealing", "bidding", "playing", "over"]
PHASES: tuple[Phase, ...] = ("dealing", "bidding", "playing", "over")


class Round(RunningGame, eq=False, kw_only=True):
    """A round. `names` are the players by seat; unknown values are None."""

    number: int
    names: list[str] | None
    play: Play
    phase: Phase = "dealing"
    taken: dict[int, int] = msgspec.field(default_factory=dict)
    """The stream id of each seat."""
    dealt: dict[int, list[str]] = msgspec.field(default_factory=dict)
    """The known hands, before the first card."""
    knocks: dict[int, str] = msgspec.field(default_factory=dict)
    bids: dict[int, str] = msgspec.field(default_factory=dict)
    kontras: dict[int, str] = msgspec.field(default_factory=dict)
    given: dict[int, str] = msgspec.field(default_factory=dict)
    """The cards that were given away for a Hochzeit."""
    player: int | None = None
    partner: int | None = None
    hochzeit: bool = False
    """True if one was proposed."""
    winners: list[int] | None = None
    """The seats that have won, if the cards confirm the server's SIEGER."""
    broadcasts: dict[str, tuple[dict[str, Any], int]] = msgspec.field(default_factory=dict)
    """The fields of each message that all clients are sent once, by its name, and its event id."""
    best_bids: dict[str, int] = msgspec.field(default_factory=dict)
    """The event id of each best bid."""
    contested: bool = False
    """True if the server repeated cards that contradict what was known: then no violations are reported."""
    objections: set[str] = msgspec.field(default_factory=set)
    """Texts of the violations in the server's cards, as it sends the same to several clients, and
    repeatedly.
    """
    refused: set[tuple[int, str]] = msgspec.field(default_factory=set)
    """Cards, by seat, played against the rules: they count only if the server accepts them."""
    renounced: dict[tuple[int, str], int] = msgspec.field(default_factory=dict)
    """The trick in which a seat did not follow a suit."""

    @property
    def mode(self) -> str | None:
        """The Modus of the game."""
        return self.play.mode.name if self.play.mode is not None else None

    def who(self, seat: int | None) -> str | None:
        """Return a player's name, with the seat if two have the same."""
        if seat is None:
            return None
        if self.names is None:
            return f"seat {seat}"
        name = self.names[seat]
        return label(name) if self.names.count(name) == 1 else f"{label(name)} (seat {seat})"

    def hand(self, seat: int) -> list[str] | None:
        """Return the remaining cards of a seat, if they are known."""
        dealt = self.dealt.get(seat)
        if dealt is None:
            return None
        gone = {played.card for played in self.play.cards() if played.seat == seat}
        return [card for card in dealt if card not in gone]

    def advance(self, phase: Phase) -> None:
        """Advance a round to a phase; a connection that lags behind does not reset it."""
        if PHASES.index(phase) >= PHASES.index(self.phase):
            self.phase = phase
            self.set_state(phase, "phase")

    def put_hand(self, seat: int) -> None:
        """Set the known cards of a hand, visible to its player only."""
        who = self.who(seat)
        hand = self.hand(seat)
        if who is not None:
            self.set_state(hand, "private", who, "hand")

    def put_table(self) -> None:
        """Set the cards on the table by seat, and the current trick."""
        trick = self.play.current
        if not trick.cards and self.play.tricks:
            trick = self.play.tricks[-1]
        self.set_state({str(card.seat): card.card for card in trick.cards}, "table")
        self.set_state(trick.number, "trick")

    def put_tricks(self) -> None:
        """Set the finished tricks, and their points."""
        self.set_state([self.trick(trick) for trick in self.play.tricks], "tricks")
        counted = self.points()
        if counted is not None:
            self.set_state(counted, "points")

    def trick(self, trick: Trick) -> dict[str, Any]:
        """Return a trick as JSON."""
        return {
            "number": trick.number,
            "cards": [card.card for card in trick.cards],
            "seats": [card.seat for card in trick.cards],
            "leader": self.who(trick.leader),
            "winner": self.who(trick.winner),
            "points": trick.points,
        }

    def points(self) -> dict[str, int] | None:
        """Return each player's points so far; None if the play is not completely known."""
        if not self.play.certain or any(trick.winner is None for trick in self.play.tricks):
            return None
        counted = {str(self.who(seat)): 0 for seat in range(SEATS)}
        for trick in self.play.tricks:
            counted[str(self.who(trick.winner))] += trick.points
        return counted


class ClientConnection(msgspec.Struct, eq=False):
    """A client's connection: its name, its round and seat, and its open question."""

    stream: Stream
    name: str | None = None
    round: Round | None = None
    seat: int | None = None
    certain_question: bool = True
    """True if nothing is missing since the last question."""
    certain_round: bool = True
    """True if nothing is missing since the round began; otherwise this may be the next round."""
    certain_cards: bool = True
    """True if nothing is missing since the server has shown the cards."""
    asked: Question | None = None
    answered: Question | None = None
    """The last answered question, to recognise repeated answers."""
    id: int | None = None
    """A seat announced for a round that has not begun otherwise."""
    dran: int | None = None
    step: int = 0
    """The server's position in the order of a round."""
    tricks: int = 0
    """Number of tricks that this client was shown."""
    lead_due: bool = False
    """True if a trick is over, and the server has not yet announced the next turn."""
    account: int | None = None
    settled: Round | None = None
    """The finished round whose account is not announced yet."""
    certain_account: bool = False
    """True if nothing is missing since the account before that round's result."""
    doubted: bool = False
    """True if the last snapshot contradicted what was known."""
    hand_doubted: bool = False
    """True if the hand in it did."""
    left: bool = False


class Objection(NamedTuple):
    """The rule that a SIEGER breaks, and the values of its text."""

    key: str
    values: dict[str, Any]


def verdict(played: Round, codes: tuple[int, int]) -> Objection | None:
    """Compare a SIEGER's two numbers with the cards; return None if they may be right.

    A number is a seat that won, a seat plus 10 that lost, or 4 for none. A round with an unseen trick is
    not checked. After a declined Hochzeit, real servers can be wrong about who plays: that is not reported as
    an error.
    """
    first, second = (code % 10 if code != NOBODY else None for code in codes)
    if first is not None and first == second:
        return Objection("same-seat-twice", {"first": codes[0], "second": codes[1]})
    if played.player is not None and first is not None and first != played.player:
        values = {"named": played.who(first), "player": played.who(played.player), "seat": played.player}
        return Objection("wrong-player/refused" if _is_refused(played) else "wrong-player", values)
    play = played.play
    mode = play.mode
    if mode is None or not _is_known(played):
        return None
    partner = second
    if mode.called is not None:
        partner = next(card.seat for card in play.cards() if card.card == mode.called)
        if second is not None and second != partner:
            named, right = played.who(second), played.who(partner)
            values = {"named": named, "partner": right, "card": mode.called, "seat": partner}
            return Objection("wrong-partner", values)
    party = {played.player, partner}
    taken = [trick for trick in play.tricks if trick.winner in party]
    points = sum(trick.points for trick in taken)
    won = len(taken) == TRICKS if mode.du else points >= TO_WIN
    said = codes[0] < NOBODY
    if won == said:
        return None
    values = {
        "player": played.who(played.player),
        "said": "won" if said else "lost",
        "taken": f"{len(taken)} of {TRICKS} tricks" if mode.du else f"{points} of 120 points",
        "right": "won" if won else "lost",
        "needed": "every trick" if mode.du else f"{TO_WIN} points",
    }
    return Objection("wrong-winner", values)


def is_confirmed(played: Round, named: int) -> bool:
    """Return True if the cards confirm a SIEGER without an objection, which names so many seats."""
    has_partner = played.hochzeit or (played.play.mode is not None and played.play.mode.called is not None)
    return _is_known(played) and named == 1 + has_partner


def _is_known(played: Round) -> bool:
    """Return True if the cards of a round show who has won."""
    play = played.play
    is_known = play.mode is not None and play.over and play.certain
    return is_known and played.player is not None and not _is_refused(played)


def _is_refused(played: Round) -> bool:
    return played.hochzeit and played.mode != "HOCHZEIT"
