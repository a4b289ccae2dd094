"""What the addresses under `api/` answer, as it stands in JSON.

The OpenAPI document is made of these types (`openapi.py`), and the page and the file are made for them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.cli.render.svg.svg_canvas import Placed
from kiebitz.dissectors.model import Action, Blame, Direction, Group, Severity
from kiebitz.storage.session.session import Message as MessageRecord
from kiebitz.storage.session.session import Stream


class Answer(msgspec.Struct, frozen=True):
    """What all of them are."""


class SessionInfo(Answer, frozen=True):
    """A session; times are ISO 8601 UTC. `lacks` names losses of its capture.

    On a player's link `source` is null.
    """

    number: int
    name: str
    source: str | None
    started: str | None
    ended: str | None
    live: bool
    lacks: str | None


class Sessions(Answer, frozen=True):
    """The sessions that are served. `player` is the one whom this key shows, None for everybody."""

    version: str
    player: str | None
    sessions: list[SessionInfo]


class TableInfo(Answer, frozen=True):
    """A game table, at `server`, which people know as `place`; its events are `first` + 1 to `last`."""

    table: int
    protocol: str
    title: str
    server: str
    place: str
    first: int
    last: int


class Tables(Answer, frozen=True):
    """The tables of a session, and who can be looked over the shoulder of."""

    tables: list[TableInfo]
    players: list[str]


class GameMark(Answer, frozen=True):
    """Where a game begins, and how it ended if that may be known."""

    game: int
    label: str
    seq: int
    result: str | None


class FlawMark(Answer, frozen=True):
    """An error or a warning, and the event at which it stands."""

    seq: int
    severity: Severity
    id: int


class Scores(Answer, frozen=True):
    """Who had how much: after which event, and for each name how much; null where nobody knows."""

    title: str
    names: list[str]
    steps: list[tuple[int, list[int | None]]]


class Course(Answer, frozen=True):
    """A table from its first event to its last; `times` are a sample of the events with their seconds."""

    first: int
    last: int
    times: list[tuple[int, float]]
    games: list[GameMark]
    flaws: list[FlawMark]
    scores: Scores | None


class Event(Answer, frozen=True):
    """Something that happened; `time` is in seconds since the session began."""

    seq: int
    number: int
    id: int
    table: int
    game: int | None
    time: float
    ts_ns: int
    kind: str
    actor: str | None
    sentence: str
    data: dict[str, Any]
    altered: Action | None


class Events(Answer, frozen=True):
    """Events in their order; whether nothing that is wanted comes before, or after."""

    events: list[Event]
    is_first: bool
    is_last: bool


class StateAt(Answer, frozen=True):
    """A table after event `seq`, which is number `event` of the session; before the first both are absent."""

    table: int
    seq: int
    event: int | None
    time: float | None
    state: dict[str, Any]


class Places(Answer, frozen=True):
    """A drawing: each piece is the name of a fragment, and where that stands."""

    width: int
    height: int
    pieces: tuple[Placed, ...]


class Picture(Answer, frozen=True, omit_defaults=True):
    """A table after event `seq` as a drawing, for a wide and for a tall place, and in words.

    `fragments` are those that the picture pushed before did not have; elsewhere they are asked for.
    """

    table: int
    seq: int
    title: str
    latest: str
    words: tuple[str, ...]
    wide: Places
    tall: Places
    fragments: dict[str, str] | None = None


class Fragments(Answer, frozen=True):
    """Fragments by name, each an SVG element."""

    fragments: dict[str, str]


class Message(MessageRecord, frozen=True):
    """A message; `words` are its fields on a line, `flaw` the gravest thing that is wrong with it."""

    words: str
    flaw: Severity | None


class Messages(Answer, frozen=True):
    """Messages in their order; whether nothing that is wanted comes before, or after."""

    messages: list[Message]
    is_first: bool
    is_last: bool


class Diagnostic(Answer, frozen=True):
    """Something that is wrong, or worth a note; `seq` is the event of the table asked for where it stands."""

    id: int
    time: float
    severity: Severity
    group: Group
    code: str
    text: str
    blame: Blame
    suggestion: str | None
    stream: int
    direction: Direction
    client: str
    player: str | None
    offset: int
    length: int
    expected: str | None
    clause: str | None
    message: int | None
    name: str | None
    event: int | None
    seq: int | None


class Diagnostics(Answer, frozen=True):
    """Diagnostics in their order; whether nothing that is wanted comes before, or after."""

    diagnostics: list[Diagnostic]
    is_first: bool
    is_last: bool


class Streams(Answer, frozen=True):
    """The streams of a session."""

    streams: list[Stream]


class Completion(Answer, frozen=True, rename={"start": "from"}):
    """Names that may stand at the end of a text, from that character on."""

    start: int
    words: list[str]


class FilterCheck(Answer, frozen=True, omit_defaults=True):
    """What is wrong with a filter and where; nothing if it is one.

    To ask is no failure while somebody still writes: a browser would call that one.
    """

    error: str | None = None
    position: int | None = None
    length: int | None = None


class Refusal(Answer, frozen=True, omit_defaults=True):
    """Why a question has no answer; the place in the filter's text if that is what is wrong.

    Of values that do not fit, `slips` says by field why.
    """

    error: str
    position: int | None = None
    length: int | None = None
    slips: dict[str, str] | None = None


class HeldValue(Answer, frozen=True):
    """A value that can be edited, as it is written."""

    field: str
    value: str


class HeldMessage(Answer, frozen=True):
    """A message that a relay holds: from and to whom, what it says, and what of it can be edited.

    It has waited `waited` seconds, by `rule`; who waits for it does so for `bears` seconds, if that is known,
    and `patience` says it in words. `answers` are the names of messages that its sender can be sent.
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
    """What a relay holds, oldest first, and how many more; if it `holds` at all, and if one may act on it."""

    holds: bool
    may_act: bool
    messages: list[HeldMessage]
    more: int


class Done(Answer, frozen=True):
    """What was done, and to which message, None for all."""

    do: str
    number: int | None


class Waiting(Answer, frozen=True):
    """How many messages a relay holds; None where it can hold none."""

    count: int | None


class Push(Answer, frozen=True, omit_defaults=True):
    """What happened at a table, and how it looks then."""

    table: int
    events: list[Event]
    picture: Picture | None = None


class Growth(Answer, frozen=True):
    """The newest message, by its number in the session, and the newest diagnostic, by its id."""

    messages: int
    diagnostics: int


class Status(Answer, frozen=True):
    """Whether the session is being recorded, what keeps it from being read, and how its recording ended."""

    live: bool
    trouble: str | None
    ending: str | None
