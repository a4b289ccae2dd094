"""A client's connection with its pending questions; a group and its current hand, as far as known."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kiebitz.dissectors.game.connections import OrderedDoubt
from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.grammar.xml.shapes import ElementType
from kiebitz.dissectors.model import Direction, Event, Message, Stream
from kiebitz.dissectors.protocols.cgml.cards import HAND, SEATS, WITHOUT_TRUMPS, Level, Rules


class ClientConnection(msgspec.Struct, eq=False):
    """A client's connection; `certain` if nothing of it is missing from its beginning on."""

    stream: Stream
    certain: bool = True
    knows_player: bool = False
    """True if the player of its questions is known."""
    unread: OrderedDoubt = msgspec.field(default_factory=OrderedDoubt)
    """The doubt about questions that could not be read."""
    player: int | None = None
    """The player on it, if there is only one."""
    shared: bool = False
    """True if several players use it: then it is unknown who is asked, or answers."""
    group: str | None = None
    """Key of its group in the table's state."""
    logins: list[int] = []
    """The players that have logged in on it; a server of bots logs in several."""
    asked: dict[str, str] = {}
    """The text of each pending question, by its name."""
    left: bool = False

    def asks(self, message: Message, row: ElementType) -> None:
        """Process a message of the server, which may be a question."""
        question = _question_in(message, row)
        if question is not None:
            if question == "newgame":
                # Questions from before the end of a hand are no longer answered.
                self.asked.clear()
            self.asked[question] = message.fields.get(row.name, "") if row.shape.text is not None else ""
            self.knows_player = not self.shared

    def doubt(self) -> None:
        """Note that any questions may have been asked, or answered, now."""
        self.unread.begin()
        self.asked.clear()

    def is_of(self, player: int) -> None:
        """Assign a player to the connection."""
        self.shared = self.shared or self.player not in (None, player)
        self.player = None if self.shared else player
        self.knows_player = self.knows_player and not self.shared

    def answers(self, message: Message, row: ElementType) -> str | None:
        """Remove the question that a message answers, and return its text; None if there is none."""
        question = answered_question(message, row)
        text = self.asked.pop(question, None)
        if text is not None:
            self.unread.answered(question)
        return text


def _question_in(message: Message, row: ElementType) -> str | None:
    if is_question(row):
        return row.name
    if row.name == "dial" and message.fields["from"] == "talon" and message.fields["type"] == "cards":
        return "talon"
    return None


def answered_question(message: Message, row: ElementType) -> str:
    """Return the name of the question that a message answers."""
    return "talon" if message.fields.get("to") == "talon" else row.name


def is_question(row: ElementType) -> bool:
    """Return True if a message is marked as a question."""
    return row.mark is not None and row.mark[1] == "ask"


def is_answer(row: ElementType) -> bool:
    """Return True if a client may send this message only when asked."""
    return bool(row.answers) and row.name != "newgroup"


MAX_HAND_EVENTS = 400
"""Maximum number of events of a hand, which has about a hundred; the rest of an excessive hand is ignored."""


class Trick(msgspec.Struct, eq=False):
    """A complete trick: its cards in the order played, each with its player, None if unknown."""

    number: int
    cards: list[tuple[int | None, str]]
    winner: int


class Hand(RunningGame, eq=False, kw_only=True):
    """One hand, a game in the database; `certain` if nothing of it is in doubt.

    `seats` are the players in the order of play; the leader of the first trick is not always the first.
    """

    number: int
    seats: list[int]
    certain: bool
    dealing: bool = False
    dealt: dict[int, list[str | None]] = msgspec.field(default_factory=dict)
    """The cards dealt to each player; None for each hidden one."""
    events: dict[Hashable, Event] = msgspec.field(default_factory=dict)
    """The events so far, by key, to recognise late copies."""
    known_later: set[Hashable] = msgspec.field(default_factory=set)
    """The server's announcements that were recorded before the player's own message."""
    bids: list[tuple[int, str]] = msgspec.field(default_factory=list)
    awaited: set[int] = msgspec.field(default_factory=set)
    """Players whose bids the server has not announced yet."""
    declarer: int | None = None
    contract: str | None = None
    named: bool = False
    """True if the declarer's choice of trumps was recorded: then the server only repeats it."""
    trump: str | None = None
    second: str | None = None
    level: Level = (1, 1)
    fleks: dict[tuple[Direction, int, str], list[Event]] = msgspec.field(default_factory=dict)
    """By direction, player and level: one event for each message."""
    talon: list[str | None] | None = None
    """The cards that the declarer has taken."""
    discards: list[str | None] | None = None
    table: list[tuple[int, str]] = msgspec.field(default_factory=list)
    waiting: list[list[tuple[int, str]]] = msgspec.field(default_factory=list)
    """Complete tricks that the server has not announced yet."""
    played: dict[str, int] = msgspec.field(default_factory=dict)
    """Every card shown, with its player."""
    laid: dict[str, int] = msgspec.field(default_factory=dict)
    """The cards that were laid down together, with their player."""
    tricks: list[Trick] = msgspec.field(default_factory=list)
    refused: dict[int, tuple[str, list[str]]] = msgspec.field(default_factory=dict)
    """By player: a card played against the rules, and the cards that were allowed."""

    @property
    def rules(self) -> Rules | None:
        """The rules of play, once the game is known."""
        if self.contract is None or (self.trump is None and self.contract not in WITHOUT_TRUMPS):
            return None
        return Rules(self.contract, self.trump)

    def cards_of(self, player: int) -> list[str] | None:
        """Return a player's remaining cards; None if unknown."""
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
        """Return the players in the order of a trick led by this one."""
        if player not in self.seats:
            return [player]
        at = self.seats.index(player)
        return self.seats[at:] + self.seats[:at]

    @property
    def leader(self) -> int | None:
        """The leader of the next trick, if that follows from the last one."""
        return self.tricks[-1].winner if self.tricks else None

    @property
    def has_shown_trumps(self) -> bool:
        """True if a trump was played."""
        return any(card[0] == self.trump for card in self.played)

    def put_hands(self, *players: int) -> None:
        """Update the players' cards in the state: their number, and the known ones."""
        for player in players:
            dealt = len(self.dealt.get(player, ()))
            if not dealt:
                continue
            gone = [*self.played.values()].count(player)
            if player == self.declarer:
                dealt += len(self.talon or ()) - len(self.discards or ())
            key = str(player)
            self.set_state(dealt - gone, "hands", key)
            self.set_state(self.cards_of(player), "private", key, "hand")


class Pause(msgspec.Struct, eq=False):
    """A pause: its player, the stream of the request, and the events of its two ends.

    `announced` is True if the server has announced its beginning to the others.
    """

    stream_id: int | None
    player: int | None
    message: str | None
    event: Event
    announced: bool = False
    over: Event | None = None


class Group(msgspec.Struct, eq=False):
    """Players that play together; `key` is its name in the table's state, `number` the server's own."""

    key: str
    number: int | None
    players: list[int] = []
    accepted: set[int] = set()
    count: int = 0
    """Number of hands played."""
    asked: Event | None = None
    """The question whether to deal a hand, until it is dealt."""
    asked_players: list[int] = []
    hand: Hand | None = None
    money: dict[str, int] = {}
    pauses: list[Pause] = []

    def joins(self, player: int) -> None:
        """Add a member, if there is room."""
        if player not in self.players and len(self.players) < SEATS:
            self.players.append(player)
