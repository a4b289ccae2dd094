"""A vocabulary for the visible parts of a table: plain structs that the text and SVG renderers draw.

A protocol derives its `View` from a `Scene` (`Dissector.view`). All texts are as received from the network;
the renderers escape them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event


class Scene(msgspec.Struct, frozen=True):
    """A table at a position: its state as the viewer knows it, and the latest events, oldest first.

    `names` are all players of the session in a fixed order, which determines their colours. The `viewer` is
    the player whose seat comes first.
    """

    state: State
    events: Sequence[Event] = ()
    names: Sequence[str] = ()
    viewer: str | None = None

    def game(self) -> tuple[str, dict[str, Any]]:
        """Return the number and the state of the game to draw, both empty if no game is on.

        It is the game of the latest event, or else the newest.
        """
        games = self.state.get("games", {})
        if not games:
            return "", {}
        latest = (str(event.game_id) for event in reversed(self.events) if str(event.game_id) in games)
        number = next(latest, max(games, key=int))
        return number, games[number]


# Words and pieces.

Tone = Literal["", "strong", "good", "bad", "faint"]


class Span(msgspec.Struct, frozen=True):
    """Words with a tone."""

    text: str
    tone: Tone = ""


class Name(msgspec.Struct, frozen=True):
    """A player's name, which has the player's colour."""

    name: str


Sign = Literal["acorn", "leaf", "heart", "bell"]
SIGNS: tuple[Sign, ...] = ("acorn", "leaf", "heart", "bell")


class Suit(msgspec.Struct, frozen=True):
    """A suit of the German pack: its sign, its name in the game's language, its letter in ASCII."""

    sign: Sign
    name: str
    letter: str


class Card(msgspec.Struct, frozen=True):
    """A playing card: `value` in words, in a `brief` word for narrow cards, and in one or two `letters`."""

    suit: Suit
    value: str
    letters: str
    brief: str = ""

    @property
    def words(self) -> str:
        """The card's suit and value in words."""
        return f"{self.suit.name} {self.value}"


class Tile(msgspec.Struct, frozen=True):
    """A tile of Okey: a number in a colour; number 0 is the joker."""

    number: int
    colour: Literal["RED", "BLUE", "YELLOW", "BLACK"]

    @property
    def words(self) -> str:
        """The tile's colour and number in words."""
        return f"{self.colour.lower()} {self.number}" if self.number else "joker"


class Token(msgspec.Struct, frozen=True):
    """Any other piece, which shows a word or a letter; it has the colour of its `owner`, a player."""

    words: str
    owner: str = ""


Piece = Card | Tile | Token
Element = str | Span | Name | Suit | Piece | tuple[Piece, ...]
Line = tuple[Element, ...]


class Deck(msgspec.Struct, frozen=True):
    """The cards of a game: its four suits, and whether played cards show their values in words."""

    suits: tuple[Suit, ...]
    in_words: bool = False
    longest: int = 2
    """Maximum number of letters of a played card's value."""


# Parts of a table.


class Dice(msgspec.Struct, frozen=True):
    """Dice with a cup: `faces` are pips, or any other values that a server has sent.

    The roll does not exist ("none"), no viewer knows it ("hidden"), only the roller does ("secret"), or all
    do
    ("open").
    """

    faces: tuple[int | str, ...] = ()
    roll: Literal["none", "hidden", "secret", "open"] = "none"


class Pile(msgspec.Struct, frozen=True):
    """A stack: its visible `pieces`, and the number of hidden ones (None: some).

    Without both it is empty or unknown. `fresh` is True if a piece was just added.
    """

    label: Line
    pieces: tuple[Piece, ...] = ()
    hidden: int | None = 0
    is_known: bool = True
    fresh: bool = False

    @property
    def words(self) -> str:
        """The stack's visible pieces, or its size, in words."""
        if not self.is_known:
            return "not known"
        if self.pieces:
            return ", ".join(piece.words for piece in self.pieces)
        if self.hidden is None:
            return "some are left"
        return f"{self.hidden} hidden" if self.hidden else "empty"


class Edge(msgspec.Struct, frozen=True):
    """A line above or left of the cell in column `x` and row `y`, such as a wall; `owner` is a player."""

    x: int
    y: int
    side: Literal["above", "left"]
    owner: str = ""


class Grid(msgspec.Struct, frozen=True):
    """A board of rows of cells, empty or with a token; `fresh` is the cell just used.

    Cells are squares, with `edges` between them, or hexagons, whose second, fourth, … row is shifted to the
    right by half of one. `owner` is the player whose board it is; those of other players are `beside` it.
    """

    rows: tuple[tuple[Token | None, ...], ...]
    fresh: tuple[int, int] | None = None
    edges: tuple[Edge, ...] = ()
    is_hex: bool = False
    owner: str = ""
    beside: tuple[Grid, ...] = ()

    @property
    def all_boards(self) -> tuple[Grid, ...]:
        """The board and those beside it."""
        return self, *self.beside

    @property
    def tokens(self) -> list[Token]:
        """The tokens on this board, row by row."""
        return [token for row in self.rows for token in row if token is not None]


class Hand(msgspec.Struct, frozen=True):
    """Pieces that a player holds, and the number of hidden ones (None: not known).

    A `rack` has slots in two rows, some of them empty. `drawn` is the slot of the piece just drawn.
    """

    pieces: tuple[Piece | None, ...] = ()
    hidden: int | None = 0
    is_rack: bool = False
    drawn: int | None = None


class Call(msgspec.Struct, frozen=True):
    """A player's announcement: words, with dice if it is a roll."""

    name: str
    words: str
    dice: tuple[int | str, ...] = ()
    verb: str = "says"
    tone: Tone = ""


class Figure(msgspec.Struct, frozen=True):
    """A number with its name, such as `account 1000`; `brief` is the text for narrow views."""

    words: str
    brief: str = ""


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """A player at the table.

    `lies` is the player's card in the trick, `fresh` if it was just played, `takes` if it wins the trick.
    `pile`
    is the stack from which the player draws.
    """

    name: str
    state: Literal["", "turn", "lost", "joined", "won"] = ""
    marks: tuple[Span, ...] = ()
    says: Call | None = None
    figures: tuple[Figure, ...] = ()
    hand: Hand | None = None
    lies: Card | None = None
    fresh: bool = False
    takes: bool = False
    pile: Pile | None = None


class Contract(msgspec.Struct, frozen=True):
    """The kind of the current game: its parts, its additional announcements, and its doubling level."""

    parts: tuple[Line, ...]
    additions: tuple[Line, ...] = ()
    level: str = ""
    suit: Suit | None = None


class Fact(msgspec.Struct, frozen=True):
    """A heading with items, such as a trick with its cards."""

    title: Line
    items: tuple[Line, ...] = ()


class Group(msgspec.Struct, frozen=True):
    """Players who are not at the table, each a name with a label, which may be empty."""

    title: str
    members: tuple[tuple[str, str], ...]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A viewer's view of a table.

    Seats are in clockwise order; if players have hands, the first is at the bottom. Without a game, `idle` is
    the
    text to show instead. `names` gives each player a colour.
    """

    names: Sequence[str] = ()
    title: tuple[str, ...] = ()
    idle: str = ""
    seats: tuple[Seat, ...] = ()
    story: tuple[Line, ...] = ()
    deck: Deck | None = None
    contract: Contract | None = None
    dice: Dice | None = None
    piles: tuple[Pile, ...] = ()
    calls: tuple[Call, ...] = ()
    grid: Grid | None = None
    facts: tuple[Fact, ...] = ()
    unknown: str = ""
    groups: tuple[Group, ...] = ()


def latest(events: Sequence[Event], *kinds: str) -> Event | None:
    """Return the latest event of some kinds, None if there is none."""
    return next((event for event in reversed(events) if event.kind in kinds), None)


def not_known(parts: Iterable[str]) -> str:
    """Return the sentence about unknown parts; empty if there are none."""
    words = ", ".join(parts)
    return f"not known: {words}" if words else ""


def counted(count: int | str, thing: str) -> str:
    """Return `1 point`, `2 points`, `? points`."""
    return f"{count} {thing}" if str(count) == "1" else f"{count} {thing}s"
