"""What is told of a case that was tried, in a record: for programs as it is, and for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.cli.probing.drawn import drawn_bytes, drawn_message
from kiebitz.dissectors.probing.cases import Case
from kiebitz.dissectors.probing.demands import ANY_REACTION, HEARS, Role
from kiebitz.storage.in_full import InFull, MessageInFull
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import messages

# Where cases are only listed, nothing that tries them is needed.
if TYPE_CHECKING:
    from kiebitz.cli.probing.trying import Attempt

MOST_MESSAGES = 24
"""So many messages of a case are told."""

_MOST_DRAWN = 8
"""So many of them are drawn in full, beside those with a flaw: more make a report that no telephone opens."""

_MOST_HEX = 4096
"""So many of a message's bytes are told."""

_MOST_SENT = 64
"""So many pieces of what a case sends are told one by one; a message that comes byte by byte has many."""

NOT_TRIED = "NOT TRIED"
"""Stands for a verdict where a case's place was not reached, or is in no recorded game."""

ANY_MESSAGE = "any message"

WORDS = ("FAILED", "NON-STRICT", "INFORMATIONAL", "OK", NOT_TRIED)
"""The verdicts, what matters most first."""


class Demanded(msgspec.Struct, frozen=True):
    """What the specification says of a case."""

    level: str
    right: tuple[str, ...]
    clause: str | None
    quote: str | None


class Told(msgspec.Struct, frozen=True):
    """A message of a case: its number in the session, which way it went, and its first bytes in hex.

    `drawn` is the message in full, as the report has it; blank if there are many before it.
    """

    id: int
    time: float
    direction: str
    name: str
    fields: dict[str, Any]
    hex: str
    drawn: str


class Sent(msgspec.Struct, frozen=True):
    """Bytes that the case has sent, the first of them in hex, and who has: itself, another, a stranger."""

    by: str
    hex: str
    length: int


class Result(msgspec.Struct, frozen=True):
    """A case and what came of it.

    `verdict` is one of `WORDS`, `why` says why in a clause. `message` is what the case sends, None if that
    may be any. Of what was `sent`, `unread` draws what became none of the `messages`; these are those from
    the acts on, all players' among them. `session` is where it was recorded, None if it was not
    kept. `output` is what the program under test wrote, if Kiebitz has started it. `command` tries
    the case again.
    """

    case: str
    role: Role
    kind: str
    message: str | None
    field: str | None
    sentence: str
    demand: Demanded
    verdict: str
    why: str
    reactions: tuple[str, ...]
    sent: tuple[Sent, ...]
    unread: str
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

    @property
    def group(self) -> str:
        """What it is summed up with."""
        return group_of(self.case, self.message)

    def as_json(self) -> dict[str, Any]:
        """The record for programs: what is drawn is for the report."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        del told["unread"]
        for message in told["messages"]:
            del message["drawn"]
        return told


def group_of(case: str, message: str | None) -> str:
    """What a case is listed and summed up with: its message as the case's name has it, or `ANY_MESSAGE`."""
    return ANY_MESSAGE if message is None else case.split("/")[1]


def demanded(case: Case) -> Demanded:
    """What the specification says of a case."""
    demand = case.demand
    return Demanded(demand.level, tuple(demand.right), demand.clause, demand.quote)


def result_of(
    attempt: Attempt, timeline: Timeline, session: str | None, output: str | None, command: str
) -> Result:
    """What is told of a case that was tried, and recorded in a session."""
    case, verdict = attempt.case, attempt.verdict
    shown, left_out = _shown(timeline, attempt) if verdict is not None else ([], 0)
    ours = [(each.message.stream, each.data) for each in shown if each.message.direction == HEARS[case.role]]
    unread = no_message(((each.by, each.data) for each in attempt.sent), ours)
    return Result(
        case.name,
        case.role,
        case.kind,
        case.message,
        case.field,
        case.sentence,
        demanded(case),
        NOT_TRIED if verdict is None else verdict.word,
        (attempt.why_not or "its place is not reached") if verdict is None else verdict.why,
        () if verdict is None else tuple(verdict.reactions),
        tuple(_sent(attempt)),
        drawn_bytes(unread[:_MOST_HEX], "no message was read in it") if unread else "",
        tuple(_message(each, place < _MOST_DRAWN or bool(each.flaws)) for place, each in enumerate(shown)),
        left_out,
        session,
        round(attempt.seconds, 3),
        output,
        command,
    )


def _shown(timeline: Timeline, attempt: Attempt) -> tuple[list[MessageInFull], int]:
    """The first messages from the acts on, and how many there are beyond them."""
    numbers = [row.id for row in messages(timeline, "m.ts_ns >= ?", [attempt.begun_ns])]
    in_full = InFull(timeline)
    shown = [in_full.message(number) for number in numbers[:MOST_MESSAGES]]
    return [each for each in shown if each is not None], max(len(numbers) - MOST_MESSAGES, 0)


def _message(shown: MessageInFull, is_drawn: bool) -> Told:
    message = shown.message
    return Told(
        message.id,
        message.time,
        message.direction,
        message.name,
        message.fields,
        shown.data[:_MOST_HEX].hex(),
        drawn_message(shown) if is_drawn else "",
    )


def _sent(attempt: Attempt) -> Iterator[Sent]:
    """The bytes of the acts; of many pieces the last has all that is left."""
    pieces = [(each.by, each.data) for each in attempt.sent]
    rest = pieces[_MOST_SENT:]
    if rest:
        pieces = [*pieces[:_MOST_SENT], (rest[0][0], b"".join(data for _, data in rest))]
    for by, data in pieces:
        yield Sent(by, data[:_MOST_HEX].hex(), len(data))


def no_message(sent: Iterable[tuple[str, bytes]], ours: Iterable[tuple[int, bytes]]) -> bytes:
    """The bytes that no message was read in, as of half a message.

    `sent` has by whom what was sent, `ours` the messages of our side: their streams and their bytes. Who has
    sent something has said nothing on that stream before.
    """
    streams: dict[int, list[bytes]] = {}
    for stream, data in ours:
        streams.setdefault(stream, []).append(data)
    whole = {said for messages in streams.values() for said in accumulate(messages)}
    by_whom: dict[str, bytes] = {}
    for by, data in sent:
        by_whom[by] = by_whom.get(by, b"") + data
    return b"".join(data for data in by_whom.values() if data not in whole)


def right_words(result: Result) -> str:
    """What the specification says of it, in words."""
    demand = result.demand
    if demand.right == ANY_REACTION:
        return f"{demand.level}: any reaction is right, as long as it lives on"
    return f"{demand.level}: {' or '.join(demand.right)}"


def counted(count: Counter[str]) -> Iterator[tuple[str, int]]:
    """How many there are of each verdict that was given, what matters most first."""
    for word in WORDS:
        if count[word]:
            yield word, count[word]


def in_words(count: Counter[str]) -> str:
    """The same in a line."""
    return ", ".join(f"{number:,} {word}" for word, number in counted(count)) or "no case was tried"
