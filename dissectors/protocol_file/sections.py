"""The tables of a protocol file that its specification keeps as they are written."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, field

from kiebitz.dissectors.conformance.expectations import RequirementLevel
from kiebitz.dissectors.model import Direction, Severity

GridShape = Literal["square", "hex"]
StatisticForm = Literal["counts", "shares", "histogram", "course", "durations"]
STATISTIC_FORMS: tuple[StatisticForm, ...] = get_args(StatisticForm)


def values(words: str) -> Meta:
    """Name the values of a type for error messages."""
    return Meta(extra={"is": words})


def one_or_several(words: str) -> Meta:
    """Name the values of a list, whose only item may be written without brackets."""
    return Meta(extra={"is": words, "single": True}, extra_json_schema={"single": True})


Names = Annotated[tuple[str, ...], one_or_several("a name or a list of names")]
Seconds = Annotated[float, Meta(gt=0, le=3600), values("a number of seconds")]
_SIZE = "a number from 1 to 60, or a path of the state"
Size = Annotated[Annotated[int, Meta(ge=1, le=60)] | str, values(_SIZE)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""


class NamedTable(Table, frozen=True):
    """A table in a section; `key` is its name there, and no key of its own."""

    key: str = ""


class RoomSpec(Table, kw_only=True, frozen=True):
    """Rules for the game, of several, to which a message belongs.

    Attributes:
        id: Field with the id of the game.
        joins: Messages with which a client enters a game; by default, the server's with an id.
        leaves: Messages with which a client leaves it.
        of: Field with the player who enters; by default, it is the receiver.
    """

    id: str
    joins: Names = ()
    leaves: Names = ()
    of: str = ""


class ReferenceSpec(Table, kw_only=True, frozen=True):
    """Fields by which an answer names its request.

    Attributes:
        by: Field of an answer that repeats a value of its request, or several.
        of: Fields of the request with these values; by default, of the same names.
    """

    by: Names
    of: Names = ()


class IdentitySpec(Table, frozen=True):
    """The messages and fields that identify players.

    Attributes:
        login: Messages in which a client gives its name.
        introduces: The same as login.
        given: Messages in which the server gives a connection its id.
        named: Messages with both an id and a name.
        left: Messages that report that the player in them has left.
        id: Name of the field with a player's id.
        name: Name of the field with a player's name.
        same_player: What a client that comes back has in common with the player of its name.
        ports: Names of the players at the ports of a server, in the order of port.
    """

    login: Names = ()
    introduces: Names = ()
    given: Names = ()
    named: Names = ()
    left: Names = ()
    id: str = ""
    name: str = ""
    same_player: Literal["connection", "address"] = "connection"
    ports: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=40)], ...], values("a list of names of players")
    ] = ()

    @property
    def logins(self) -> tuple[str, ...]:
        """The messages in which a client gives its name."""
        return (*self.login, *self.introduces)


_DIRECTIONS: dict[str | None, Direction | None] = {"server": "s2c", "client": "c2s", None: None}


class Selection(NamedTable, kw_only=True, frozen=True):
    """The messages that an event or a rule is about.

    Attributes:
        on: A message, or a list of messages.
        from_: The sender, if both send messages of this name.
        let: Names, and expressions for their values, which the others may use.
        when: Condition, such as 'pips > 3 && who == turn'.
    """

    on: Names
    from_: Literal["server", "client"] | None = field(name="from", default=None)
    let: Annotated[dict[str, str], values('a table, such as { box = "boxes[line]" }')] = {}
    when: str = ""

    @property
    def direction(self) -> Direction | None:
        """The direction of the messages; None for both."""
        return _DIRECTIONS[self.from_]

    def selects(self, name: str, direction: Direction) -> bool:
        """Return True if it is about messages of this name and direction."""
        return name in self.on and self.direction in (None, direction)


class EventSpec(Selection, frozen=True):
    """A kind of event: what happens in a game, and how the state changes.

    Attributes:
        say: Sentence with names in braces, such as '{who} rolls {pips}'.
        put: Changes of the state: paths with names in braces, and expressions for the new values.
        actor: Expression for the name of the player who acts.
        opens: True if a game begins.
        ends: True if the game ends.
        joins: True if the actor takes part in the game from here on.
        cancels: True if the game ends without having been played.
        timeout: True if a player loses only because an answer is missing.
        label: Sentence for the label of the game that begins.
        result: Expressions for the result of the game that ends.
        secret: True if only the actor knows of it.
        turn: True if it is the actor's turn from here on.
        silent: True if it only changes the state, and is not listed.
    """

    say: str = ""
    put: Annotated[dict[str, Any], values('a table, such as { "players.{who}.points" = "points" }')] = {}
    actor: str = ""
    opens: bool = False
    ends: bool = False
    joins: bool = False
    cancels: bool = False
    timeout: bool = False
    label: str = ""
    result: Annotated[dict[str, Any], values('a table, such as { winner = "name" }')] = {}
    secret: bool = False
    turn: bool = False
    silent: bool = False

    @property
    def closes(self) -> bool:
        """True if the game ends, played or not."""
        return self.ends or self.cancels


class RuleSpec(Selection, kw_only=True, frozen=True):
    """A rule of the game: it is violated if `when` is true and `unless` is false.

    If a value in them is unknown, nothing is reported.

    Attributes:
        unless: Condition that must hold.
        say: Sentence for the violation; {known} is the other side of the comparison.
        expected: Sentence about what is expected.
        clause: Clause of the specification, with names of clauses in braces.
        severity: Severity of a violation.
    """

    unless: str = ""
    say: str
    expected: str = ""
    clause: str = ""
    severity: Severity = "error"


class EdgesSpec(Table, frozen=True):
    """Lines between the cells of a board, each a player or any other value.

    Attributes:
        above: State path of an object from 'x,y' to a line above this cell.
        left: State path of an object from 'x,y' to a line left of this cell.
    """

    above: str = ""
    left: str = ""


class GridSpec(Table, frozen=True):
    """A rectangular board.

    Attributes:
        cells: State path of a list of rows, a list of cells, or an object from 'x,y'.
        columns: True if cells is a list of columns instead.
        runs: True if a number is that many empty cells, as in chess's FEN.
        cell: Path of the word within a cell that is an object or a list.
        symbols: Words of cells, and their signs.
        tokens: State path of an object from players to objects with coordinates.
        x: Name of the column in a token.
        y: Name of the row in a token.
        width: Number of columns, or its state path.
        height: Number of rows, or its state path.
        first: Number of the first column and row.
        edges: Lines between cells, such as walls.
        shape: Shape of the cells; in hex, each second row is shifted by half a cell.
    """

    cells: str = ""
    columns: bool = False
    runs: bool = False
    cell: str = ""
    symbols: Annotated[dict[str, str], values("a table from words to signs")] = {}
    tokens: str = ""
    x: str = "x"
    y: str = "y"
    width: Annotated[Size | None, values(_SIZE)] = None
    height: Annotated[Size | None, values(_SIZE)] = None
    first: Annotated[int, Meta(ge=-100, le=100), values("a whole number")] = 0
    edges: EdgesSpec | None = None
    shape: GridShape = "square"


class BoardSpec(Table, frozen=True):
    """The picture of a table. All paths lead through the state; `{player}` is each player.

    Attributes:
        title: Sentence above the picture.
        text: Sentences below the picture.
        players: State path of an object whose keys are the players.
        turn: State path of the name of the player whose turn it is.
        scores: State path of the score of {player}.
        unit: Unit of the scores.
        figures: Words, and state paths of further numbers of {player}.
        hand: State path of a list, or of a number of hidden pieces, of {player}.
        dice: State path of a list of faces, or of a number.
        piles: Labels, and state paths of lists or of numbers of hidden pieces.
        grid: The board.
    """

    title: str = ""
    text: Annotated[tuple[str, ...], one_or_several("a text or a list")] = ()
    players: str = "players"
    turn: str = ""
    scores: str = ""
    unit: str = "points"
    figures: Annotated[dict[str, str], values("a table from words to paths")] = {}
    hand: str = ""
    dice: str = ""
    piles: Annotated[dict[str, str], values("a table from labels to paths")] = {}
    grid: GridSpec | None = None


class StatisticSpec(NamedTable, frozen=True):
    """A statistic: one of counts, shares, histogram, course and durations names its events.

    In the file of a package, that may be a reader in Python such as `okey.statistics:Wins` instead.

    Attributes:
        title: Title; by default, the key.
        counts: Events to count: for each player, or of each kind.
        shares: Events of two words, of which the first one's share is shown.
        histogram: Events with values to count, such as dice.
        course: Events to show over time.
        durations: Events with which a duration begins or ends.
        when: Condition on the values of the event, such as 'pips > 3'.
        line: Expression for the player or players; or expressions, and the column of each.
        by: Expression for the column, or for the value of a histogram.
        split: Text between several values in one, such as ','.
        words: The values to count, or a table from these to other words, in this order.
        of: Name of the lines, or of the values of a histogram in the plural.
        amount: Expression for a number that is added, or that a course shows.
        unit: Unit of a course.
        chance: Values of a histogram, and how often each is expected in proportion to the others.
        begins: Condition for the events with which a duration begins.
    """

    title: str = ""
    counts: Names = ()
    shares: Names = ()
    histogram: Names = ()
    course: Names = ()
    durations: Names = ()
    when: str = ""
    line: Annotated[
        str | list[str] | dict[str, str], values("a text, a list, or a table from expressions to columns")
    ] = []
    by: str = ""
    split: str = ""
    words: Annotated[list[str] | dict[str, str], values("a list, or a table from values to words")] = []
    of: str = "player"
    amount: str = ""
    unit: str = "times"
    chance: Annotated[
        dict[str, Annotated[int, Meta(ge=1, le=10**6), values("a whole number from 1 to 1000000")]],
        values("a table from values to whole numbers"),
    ] = {}
    begins: str = ""

    @property
    def form(self) -> StatisticForm:
        """The key that names its events."""
        return next((form for form in STATISTIC_FORMS if getattr(self, form)), "counts")

    @property
    def on(self) -> tuple[str, ...]:
        """Kinds of its events."""
        found: tuple[str, ...] = getattr(self, self.form)
        return found

    @property
    def lines(self) -> dict[str, str | None]:
        """Expressions for the lines, each with its column; by default, the actor's line."""
        if isinstance(self.line, dict):
            return {**self.line}
        return dict.fromkeys([self.line] if isinstance(self.line, str) else self.line)

    @property
    def word_of(self) -> dict[str, str]:
        """Words for values; if there are some, no other values are counted."""
        return self.words if isinstance(self.words, dict) else {word: word for word in self.words}


class SpellingSpec(NamedTable, kw_only=True, frozen=True):
    """Another spelling of messages, made by a function in Python.

    Attributes:
        say: The spelling in words, such as 'on one line'.
        frame: The function that respells a message, such as 'okey.probe:quoted'.
        level: Level of the requirement to accept it.
        clause: Clause of the specification.
        quote: Words of the clause, or the name of a quote in braces.
        messages: Patterns for the messages that have such parts.
    """

    say: str
    frame: str
    level: RequirementLevel = "open"
    clause: str = ""
    quote: str = ""
    messages: str = "*"


class ProbeSpec(Table, frozen=True):
    """The section `[probe]`: facts about the protocol for the test cases.

    Attributes:
        seats: Number of players at a table.
        silence: Maximum silence of a connection in seconds.
        timeouts: Patterns of messages, and the seconds that the other side waits for them.
        awaited: The messages that all other clients wait for.
        spares_others: True if the others play on when a player leaves.
        broken_by: Rules, and the cases that break them.
        unreachable: Rules that no case breaks, and the reasons.
        bot: The class of a simulated client, only in packages.
        simulated_server: The class of a simulated server, only in packages.
        violations: The ways to break rules, only in packages.
        spellings: Other spellings, only in packages.
    """

    seats: Annotated[int, Meta(ge=1, le=16), values("a number from 1 to 16")] = 2
    silence: Seconds | None = None
    timeouts: Annotated[dict[str, Seconds], values("a table from messages to seconds")] = {}
    awaited: Names = ()
    spares_others: bool = True
    broken_by: Annotated[dict[str, str], values("a table from rules to cases")] = {}
    unreachable: Annotated[dict[str, str], values("a table from rules to reasons")] = {}
    bot: str = ""
    simulated_server: str = ""
    violations: str = ""
    spellings: dict[str, SpellingSpec] = {}
