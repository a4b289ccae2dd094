"""What is told of a case that was tried, in a record: for programs as it is, and for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.dissectors.probing.cases import Case
from kiebitz.dissectors.probing.demands import HEARS
from kiebitz.dissectors.records import OPPOSITE
from kiebitz.storage.in_full import InFull, MessageInFull
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import messages

# Where cases are only listed, nothing that tries them is needed.
if TYPE_CHECKING:
    from kiebitz.cli.probing.trying import Attempt

MOST_MESSAGES = 24
"""So many messages of a case are told."""

_MOST_HEX = 4096
"""So many of a message's bytes are told."""

_COLUMNS = 100

_MOST_LINES = 80
"""So many lines of one message in full are kept."""

NOT_TRIED = "NOT TRIED"
"""Stands for a verdict where a case's place was not reached, or is in no recorded game."""

WORDS = ("FAILED", "NON-STRICT", "INFORMATIONAL", "OK", NOT_TRIED)
"""The verdicts, what matters most first."""


class Demanded(msgspec.Struct, frozen=True):
    """What the specification says of a case."""

    level: str
    right: tuple[str, ...]
    clause: str | None
    quote: str | None


class Told(msgspec.Struct, frozen=True):
    """A message of a case: its number in the session, which way it went, and its first bytes in hex."""

    id: int
    time: float
    direction: str
    name: str
    fields: dict[str, Any]
    hex: str
    lines: tuple[str, ...]


class Result(msgspec.Struct, frozen=True):
    """A case and what came of it.

    `verdict` is one of `WORDS`, `why` says why in a clause. `session` is where it was recorded, None if it
    was not kept. `output` is what the program under test wrote, if Kiebitz has started it. `command` tries
    the case again.
    """

    case: str
    role: str
    kind: str
    sentence: str
    demand: Demanded
    verdict: str
    why: str
    reactions: tuple[str, ...]
    messages: tuple[Told, ...]
    left_out: int
    session: str | None
    seconds: float
    output: str | None
    command: str

    @property
    def is_failed(self) -> bool:
        """Whether the program does what it must not do."""
        return self.verdict == "FAILED"

    def as_json(self) -> dict[str, Any]:
        """The record for programs: the lines of messages in full are for people."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        for message in told["messages"]:
            del message["lines"]
        return told


def demanded(case: Case) -> Demanded:
    """What the specification says of a case."""
    demand = case.demand
    return Demanded(demand.level, tuple(demand.right), demand.clause, demand.quote)


def result_of(
    attempt: Attempt, timeline: Timeline, session: str | None, output: str | None, command: str
) -> Result:
    """What is told of a case that was tried, and recorded in a session."""
    case, verdict = attempt.case, attempt.verdict
    told, left_out = _told(timeline, attempt) if verdict is not None else ((), 0)
    return Result(
        case.name,
        case.role,
        case.kind,
        case.sentence,
        demanded(case),
        NOT_TRIED if verdict is None else verdict.word,
        (attempt.why_not or "its place is not reached") if verdict is None else verdict.why,
        () if verdict is None else tuple(verdict.reactions),
        told,
        left_out,
        session,
        round(attempt.seconds, 3),
        output,
        command,
    )


def untried(case: Case, why: str, command: str) -> Result:
    """What is told of a case to whose place no way leads."""
    about = (case.name, case.role, case.kind, case.sentence, demanded(case))
    return Result(*about, NOT_TRIED, why, (), (), 0, None, 0.0, None, command)


def _told(timeline: Timeline, attempt: Attempt) -> tuple[tuple[Told, ...], int]:
    """The first messages from the acts on, and how many there are beyond them."""
    case, verdict = attempt.case, attempt.verdict
    if case.is_in_play:
        if verdict is None or verdict.word != "FAILED":
            return (), 0
        # What is wrong is told, and not the whole game.
        flawed = "m.id IN (SELECT message_id FROM diagnostics WHERE severity = 'error')"
        condition = f"{flawed} AND m.direction = ?" + (" AND m.name = ?" if case.says is not None else "")
        says = [OPPOSITE[HEARS[case.role]], *([case.says] if case.says is not None else [])]
        rows = messages(timeline, condition, says)
    else:
        rows = messages(timeline, "m.ts_ns >= ?", [attempt.begun_ns])
    numbers = [row.id for row in rows]
    in_full = InFull(timeline)
    shown = (in_full.message(number) for number in numbers[:MOST_MESSAGES])
    told = tuple(_message(each) for each in shown if each is not None)
    return told, max(len(numbers) - MOST_MESSAGES, 0)


def _message(shown: MessageInFull) -> Told:
    message = shown.message
    lines = [line.plain for line in message_lines(shown, _COLUMNS)]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} lines more"]
    return Told(
        message.id,
        message.time,
        message.direction,
        message.name,
        message.fields,
        shown.data[:_MOST_HEX].hex(),
        tuple(lines),
    )


def counted(results: Iterable[Result]) -> Iterator[tuple[str, int]]:
    """How many there are of each verdict that was given."""
    count = Counter(result.verdict for result in results)
    for word in WORDS:
        if count[word]:
            yield word, count[word]


def in_words(results: Iterable[Result]) -> str:
    """The same in a line."""
    return ", ".join(f"{count} {word}" for word, count in counted(results)) or "no case was tried"
