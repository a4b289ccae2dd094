"""Records of the API's JSON responses.

The OpenAPI document is generated from them (`openapi.py`). The page and the exported file rely on them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.cli.render.svg.svg_canvas import Placed
from kiebitz.dissectors.model import Action, Direction, Severity
from kiebitz.storage.session.marks import Mark
from kiebitz.storage.session.session import Diagnostic as DiagnosticRecord
from kiebitz.storage.session.session import Event, Stream
from kiebitz.storage.session.session import Message as MessageRecord


class Answer(msgspec.Struct, frozen=True):
    """Base class of all responses."""


class SessionInfo(Answer, frozen=True):
    """A session; times are ISO 8601 UTC. `lacks` names losses of its capture.

    `name` is the database with the number, `label` the name that a user gave the session, null if none did.
    In a player's view `source` is null. `dissection` counts how often the session was dissected again, null
    if it never is.
    """

    number: int
    name: str
    label: str | None
    source: str | None
    started: str | None
    ended: str | None
    live: bool
    lacks: str | None
    dissection: int | None


class Sessions(Answer, frozen=True):
    """The served sessions. `player` is the player whose view the key shows, null for the full view.

    `home` is true if the page has a home page: for several sessions, and for watched folders. `delay` is by
    how many seconds the key shows live sessions late, null for the full view and a player's own. `opens` is
    the maximum size in bytes of a file to open, 0 if none can be opened.
    """

    version: str
    player: str | None
    sessions: list[SessionInfo]
    home: bool
    delay: float | None
    opens: int


class Opened(Answer, frozen=True):
    """An opened file: the number of its first session, or the names of all protocols opened so far."""

    session: int | None
    protocols: list[str]


class TableInfo(Answer, frozen=True):
    """A game table at `server`, shown as `place`; its events are numbered `first` + 1 to `last`.

    `moves` are the kinds of events in a list of turns, of which the first begins one.
    """

    table: int
    protocol: str
    title: str
    server: str
    place: str
    first: int
    last: int
    moves: tuple[str, ...]


class Tables(Answer, frozen=True):
    """The tables of a session, and the players whose views are available."""

    tables: list[TableInfo]
    players: list[str]


class HomeTable(Answer, frozen=True):
    """A table on the home page: the event to draw it after, and its latest event as a sentence.

    A live table has `alerts`, and says for whom its game waits. `result` is that of its last game, as a
    sentence, if no game has begun since. Of a table with several games at once, each is one, with the number
    of its `game` and its label.
    """

    table: TableInfo
    at: int
    latest: str
    alerts: list[str]
    waiting: str | None
    result: str | None
    game: int | None = None
    label: str = ""


class HomeSession(Answer, frozen=True):
    """A session on the home page; the first of its players and tables, and how many there are in all.

    `alerts` are about servers without a table. `started_s` is the start in Unix time, `seconds` the length.
    `result` is that of the last game with one. `trouble` says why the session cannot be read; the other
    fields are empty then.
    """

    session: SessionInfo
    started_s: float = 0.0
    seconds: float | None = None
    players: list[str] = []
    players_in_all: int = 0
    games: int = 0
    result: str | None = None
    errors: int = 0
    warnings: int = 0
    alerts: list[str] = []
    tables: list[HomeTable] = []
    tables_in_all: int = 0
    trouble: str | None = None


class Home(Answer, frozen=True):
    """All served sessions: live ones first, by name, then the newest. With `watching`, new ones may appear.

    A browser should load a table's board at most once in `board_every_s` seconds: longer, the more browsers
    and live tables there are.
    """

    version: str
    watching: bool
    board_every_s: float
    sessions: list[HomeSession]


class HomeNews(Answer, frozen=True):
    """Sessions that are new or have changed; `board_every_s` is that of `Home`."""

    board_every_s: float
    sessions: list[HomeSession]


class GameMark(Answer, frozen=True):
    """The first event of a game, and its result if the viewer may know it."""

    game: int
    label: str
    seq: int
    result: str | None


class DiagnosticMark(Answer, frozen=True):
    """An error or a warning, and the event at which it was found."""

    seq: int
    severity: Severity
    id: int


class Scores(Answer, frozen=True):
    """Scores over time: event number and the score of each name, null if unknown."""

    title: str
    names: list[str]
    steps: list[tuple[int, list[int | None]]]


class TimelineOverview(Answer, frozen=True, rename={"diagnostics": "flaws"}):
    """The timeline of a table; `times` are a sample of its events with their times in seconds.

    `errors` and `warnings` are the numbers of all; `flaws` are a sample if there are many.
    """

    first: int
    last: int
    times: list[tuple[int, float]]
    games: list[GameMark]
    diagnostics: list[DiagnosticMark]
    errors: int
    warnings: int
    scores: Scores | None


class Events(Answer, frozen=True):
    """A window of events; whether it includes the first and the last match."""

    events: list[Event]
    is_first: bool
    is_last: bool


class StateAt(Answer, frozen=True):
    """A table's state after event `seq`, which is number `event` of the session; null before the first."""

    table: int
    seq: int
    event: int | None
    time: float | None
    state: dict[str, Any]


class Places(Answer, frozen=True):
    """A drawing: the names and positions of its fragments."""

    width: int
    height: int
    pieces: tuple[Placed, ...]


class Picture(Answer, frozen=True, omit_defaults=True):
    """A table after event `seq`: a wide and a tall drawing, and a description in words.

    `closing` says how a game ended if since then players have only left. `fragments` are those that the
    picture pushed before did not have; otherwise they must be requested. `games` has the labels of several
    games at once, by number.
    """

    table: int
    seq: int
    title: str
    latest: str
    words: tuple[str, ...]
    wide: Places
    tall: Places
    closing: str | None = None
    fragments: dict[str, str] | None = None
    games: dict[str, str] = {}


class Fragments(Answer, frozen=True):
    """SVG fragments by name."""

    fragments: dict[str, str]


class Message(MessageRecord, frozen=True, rename={"severity": "flaw"}):
    """A message; `words` are its fields on one line, `flaw` is the severity of its gravest diagnostic."""

    words: str
    severity: Severity | None


class Messages(Answer, frozen=True):
    """A window of messages; whether it includes the first and the last match."""

    messages: list[Message]
    is_first: bool
    is_last: bool


class Diagnostic(DiagnosticRecord, frozen=True):
    """A diagnostic; `seq` is the number of the requested table's event at which it was found."""

    client: str
    player: str | None
    suggestion: str | None
    seq: int | None


class DroppedMessage(Answer, frozen=True):
    """A message that Kiebitz did not forward, because of `rule`; `words` are its fields on one line."""

    id: int
    time: float
    stream: int
    direction: Direction
    client: str
    player: str | None
    name: str
    words: str
    action: Action
    rule: str


class Sequence(Answer, frozen=True):
    """A window of messages, as in `Messages`, with all that a sequence diagram shows between them.

    A filter applies to `messages` and `dropped`; `events` and `diagnostics` are then those of the messages.
    """

    messages: list[Message]
    events: list[Event]
    diagnostics: list[Diagnostic]
    dropped: list[DroppedMessage]
    is_first: bool
    is_last: bool


class Diagnostics(Answer, frozen=True):
    """A window of diagnostics; whether it includes the first and the last match."""

    diagnostics: list[Diagnostic]
    is_first: bool
    is_last: bool


class Streams(Answer, frozen=True):
    """The streams of a session."""

    streams: list[Stream]


class Marks(Answer, frozen=True):
    """The marks of a session, by time; none in a player's view."""

    marks: list[Mark]


class StatisticTable(Answer, frozen=True):
    """A statistic as a table with numbers and words; `says` is its result in a sentence, if it has one."""

    title: str
    says: str
    columns: list[str]
    rows: list[list[int | float | str]]


class Statistics(Answer, frozen=True):
    """The statistics of a table, limited to the events that pass a filter; none in a player's view."""

    statistics: list[StatisticTable]


class Completion(Answer, frozen=True, rename={"start": "from"}):
    """Completions of a text, which replace it from a character on."""

    start: int
    words: list[str]


class Matches(Answer, frozen=True):
    """The numbers of a table's rows that pass a filter; without `is_complete`, there may be more."""

    events: int
    messages: int
    diagnostics: int
    is_complete: bool


class FilterCheck(Answer, frozen=True, omit_defaults=True):
    """The error in a filter and its position; empty if the filter is valid.

    An invalid filter is no HTTP error here, as browsers would log one for each key typed.
    """

    error: str | None = None
    position: int | None = None
    length: int | None = None


class Refusal(Answer, frozen=True, omit_defaults=True):
    """An error message; the position of an error in a filter.

    `slips` are the messages about invalid values, by field.
    """

    error: str
    position: int | None = None
    length: int | None = None
    slips: dict[str, str] | None = None


class HeldValue(Answer, frozen=True):
    """An editable value as text."""

    field: str
    value: str


class HeldMessage(Answer, frozen=True):
    """A message held by a relay.

    It has waited `waited` seconds, because of `rule`. Its receiver waits for `bears` seconds, if known, and
    `patience` says it in words. `answers` are the names of messages that can be sent to its sender.
    """

    number: int
    stream: int
    direction: Direction
    sender: str
    receiver: str
    protocol: str
    name: str
    words: str
    values: list[HeldValue]
    waited: float
    bears: float | None
    patience: str
    rule: str
    answers: list[str]


class Held(Answer, frozen=True):
    """The held messages, oldest first, and the number of further ones.

    `holds` is true if a relay can hold messages, `may_act` if the page may act on them.
    """

    holds: bool
    may_act: bool
    messages: list[HeldMessage]
    more: int


class Done(Answer, frozen=True):
    """The action carried out, and its message (null: all)."""

    do: str
    number: int | None


class Waiting(Answer, frozen=True):
    """The number of held messages; null if none can be held."""

    count: int | None


class Push(Answer, frozen=True, omit_defaults=True):
    """New events of a table, and its picture after them."""

    table: int
    events: list[Event]
    picture: Picture | None = None


class Growth(Answer, frozen=True):
    """The newest message, by its number in the session, and the newest diagnostic, by its id.

    The latter is null in a player's view.
    """

    messages: int
    diagnostics: int | None


class Dissection(Answer, frozen=True):
    """The number of new dissections of the session, and the error that prevents the next one, as lines."""

    dissection: int
    problem: str | None


class Status(Answer, frozen=True):
    """The state of a session: being recorded or not, a reading problem, and the end of its recording."""

    live: bool
    trouble: str | None
    ending: str | None
