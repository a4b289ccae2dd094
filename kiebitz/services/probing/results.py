"""The result of a test case as a record, and the counts of verdicts by message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.conformance.expectations import ANY_REACTION, INPUT_DIRECTION, TargetRole
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.probing.case import Case
from kiebitz.storage.read.message_queries import messages, streams
from kiebitz.storage.read.recorded_bytes import ChunkRow, chunks
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.message_detail import MessageDetail, MessageDetails

if TYPE_CHECKING:
    from kiebitz.services.probing.case_runner import CaseOutcome


MAX_MESSAGES = 24
"""Maximum number of messages in a result."""

_MAX_RENDERED = 8
"""Maximum number of rendered messages in addition to those with a violation: a larger report does not open on
a phone."""

_MAX_HEX_BYTES = 4096
"""Maximum number of a message's bytes in a result."""

_MAX_SENT_PIECES = 64
"""Maximum number of sent pieces in a result."""

NOT_TRIED = "NOT TRIED"
"""Verdict if a case's injection point was not reached, or is in no recorded game."""

ANY_MESSAGE = "any message"

IN_PLAY = "in play"
"""Message of a case that sends nothing unusual."""

UNSTABLE = "UNSTABLE"
"""Verdict if a failure does not repeat on a target that was started again."""

KNOWN = "KNOWN"
"""Verdict of a failure that is in the baseline file."""

WORDS = ("FAILED", UNSTABLE, KNOWN, "NON-STRICT", "INFORMATIONAL", "OK", NOT_TRIED)
"""The verdicts, most important first."""


IN_FULL = ("FAILED", UNSTABLE, KNOWN, "NON-STRICT")
"""The verdicts whose cases are reported one by one, most important first."""


class StatedExpectation(msgspec.Struct, frozen=True):
    """The specification's expectation for a case."""

    level: str
    right: tuple[str, ...]
    clause: str | None
    quote: str | None


class ReportedMessage(msgspec.Struct, frozen=True):
    """A message of a case: its number in the session, its direction, and its first bytes in hex.

    `drawn` is the message rendered for the report; empty if many messages precede it.
    """

    id: int
    time: float
    direction: str
    name: str
    fields: dict[str, Any]
    hex: str
    drawn: str


class SentPiece(msgspec.Struct, frozen=True):
    """Bytes sent to the program in one piece: the stream, the time, and the first bytes in hex."""

    stream: int
    time: float
    hex: str
    length: int


class Result(msgspec.Struct, frozen=True):
    """A case and its outcome.

    `verdict` is one of `WORDS`, `why` is the reason as a clause. `message` is the message that the case
    sends, None for any; results are summed up by `group`. `sent` and `messages` are the traffic of all
    players since the actions began; for a case in play, the violations. `unread` are the bytes that no
    message was read from. `session` is where it was recorded, None if it was not kept. `output` is the output
    of the program under test, if Kiebitz started it. `command` runs the case again. `other` is the result of
    another run with another verdict, if it is `UNSTABLE`.
    """

    case: str
    role: TargetRole
    kind: str
    group: str
    message: str | None
    field: str | None
    sentence: str
    demand: StatedExpectation
    verdict: str
    why: str
    reactions: tuple[str, ...]
    sent: tuple[SentPiece, ...]
    unread: bytes
    messages: tuple[ReportedMessage, ...]
    left_out: int
    session: str | None
    seconds: float
    output: str | None
    command: str
    other: Result | None = None

    @property
    def is_failed(self) -> bool:
        """True if the program does something that it must not do."""
        return self.verdict == "FAILED"

    def as_json(self) -> dict[str, Any]:
        """Return the record for JSON output, without what is rendered for the report."""
        record: dict[str, Any] = msgspec.to_builtins(self)
        del record["unread"], record["group"]
        for message in record["messages"]:
            del message["drawn"]
        record["other"] = None if self.other is None else self.other.as_json()
        return record


def group_of(case: Case) -> str:
    """Return the group under which a case is listed and summed up: its message's label, or a substitute."""
    if case.is_in_play:
        return IN_PLAY
    return ANY_MESSAGE if case.of is None else case.name.split("/")[1]


Renderer = Callable[[MessageDetail], str]
"""Renders a message for the report; the markup is kept in the result."""


def result_of(
    outcome: CaseOutcome,
    timeline: Timeline,
    output: str | None,
    command: str,
    render: Renderer,
) -> Result:
    """Return the result of a case that was tried and recorded in a session."""
    case, verdict = outcome.case, outcome.verdict
    untried = untried_result(case, why_untried(outcome), command)
    untried = msgspec.structs.replace(untried, seconds=round(outcome.seconds, 3), output=output)
    if verdict is None:
        return untried
    rows: list[Message] = []
    sent: list[ChunkRow] = []
    if not case.is_in_play:
        rows = [*messages(timeline, "m.ts_ns >= ?", [outcome.begun_ns])]
        sent = _sent(timeline, outcome)
    # For a case in play, only the violations are reported, not the whole game.
    numbers = outcome.wrong if case.is_in_play else [row.id for row in rows]
    in_full = MessageDetails(timeline)
    shown = [in_full.message(number) for number in numbers[:MAX_MESSAGES]]
    unread = unread_bytes(
        ((chunk.stream_id, chunk.offset, chunk.data or b"") for chunk in sent),
        (
            (row.stream.id, row.offset, row.length)
            for row in rows
            if row.direction == INPUT_DIRECTION[case.role]
        ),
    )
    return msgspec.structs.replace(
        untried,
        verdict=verdict.word,
        why=verdict.why,
        reactions=tuple(verdict.reactions),
        sent=tuple(_piece(chunk, timeline) for chunk in sent[:_MAX_SENT_PIECES]),
        unread=unread[:_MAX_HEX_BYTES],
        messages=tuple(_message(each, place, render) for place, each in enumerate(shown) if each is not None),
        left_out=max(len(numbers) - MAX_MESSAGES, 0),
    )


def why_untried(outcome: CaseOutcome) -> str:
    """Return why a case could not be tried, and what it would need."""
    case = outcome.case
    if case.is_in_play:
        needed = "a game in which the target sends it: other dice, cards or players may lead to one"
    elif outcome.never_came_up:
        needed = f"a game in which {case.message or 'any message'} comes up, as with --via-session"
    elif outcome.unsuitable_points:
        needed = "a game with such a moment, as with --via-session"
    else:
        needed = "a target that plays up to this message; its output and its first messages may say why not"
    return in_need(outcome.why_not or "its injection point was not reached", needed)


def in_need(why: str, needed: str) -> str:
    """Return why a case was not tried, followed by what it needs."""
    return f"{why}; this needs {needed}"


def unstable_result(one: Result, other: Result) -> Result:
    """Return the result of a case with different verdicts in two runs; `one` is the worse one."""
    why = f"in one run it was {one.verdict}: {one.why}; in another it was {other.verdict}: {other.why}"
    return msgspec.structs.replace(one, verdict=UNSTABLE, why=why, other=other)


def untried_result(case: Case, why: str, command: str) -> Result:
    """Return the result of a case that is not run."""
    about = (case.name, case.role, case.kind, group_of(case), case.message, case.field, case.sentence)
    demand = case.expectation
    stated = StatedExpectation(demand.level, tuple(demand.right), demand.clause, demand.quote)
    return Result(*about, stated, NOT_TRIED, why, (), (), b"", (), 0, None, 0.0, None, command)


def _message(shown: MessageDetail, place: int, render: Renderer) -> ReportedMessage:
    message = shown.message
    is_drawn = place < _MAX_RENDERED or bool(shown.diagnostics)
    return ReportedMessage(
        message.id,
        message.time,
        message.direction,
        message.name,
        message.fields,
        shown.data[:_MAX_HEX_BYTES].hex(),
        render(shown) if is_drawn else "",
    )


def _piece(chunk: ChunkRow, timeline: Timeline) -> SentPiece:
    data = chunk.data or b""
    return SentPiece(chunk.stream_id, timeline.seconds(chunk.ts_ns), data[:_MAX_HEX_BYTES].hex(), len(data))


def _sent(timeline: Timeline, outcome: CaseOutcome) -> list[ChunkRow]:
    """Return what we have sent since the actions began, in the pieces in which it was sent."""
    ours = INPUT_DIRECTION[outcome.case.role]
    found = [
        chunk
        for stream in streams(timeline)
        for chunk in chunks(timeline.connection, stream.id)
        if chunk.direction == ours and chunk.ts_ns >= outcome.begun_ns
    ]
    return sorted(found, key=lambda chunk: chunk.id)


def unread_bytes(sent: Iterable[tuple[int, int, bytes]], read: Iterable[tuple[int, int, int]]) -> bytes:
    """Return the sent bytes that no message was read from.

    Args:
        sent: The stream, offset and bytes of each piece.
        read: The stream, offset and length of each message.
    """
    messages: dict[int, list[tuple[int, int]]] = {}
    for stream, offset, length in read:
        messages.setdefault(stream, []).append((offset, offset + length))
    left = []
    for stream, offset, data in sent:
        at, end = offset, offset + len(data)
        for first, behind in sorted(messages.get(stream, ())):
            left.append(data[at - offset : max(min(first, end), at) - offset])
            at = min(max(at, behind), end)
        left.append(data[at - offset :])
    return b"".join(left)


def expectation_in_words(result: Result) -> str:
    """Describe the specification's expectation."""
    demand = result.demand
    if demand.right == ANY_REACTION:
        return f"{demand.level}: any reaction is right, as long as the program keeps running"
    return f"{demand.level}: {' or '.join(demand.right)}"


def key_of(verdict: str) -> str:
    """Return a verdict as used in options, CSS classes and anchors: `not-tried`."""
    return verdict.lower().replace(" ", "-")


def by_verdict(count: Counter[str]) -> Iterator[tuple[str, int]]:
    """Yield each verdict that occurs and its count, most important first."""
    for word in WORDS:
        if count[word]:
            yield word, count[word]


def counts_in_words(count: Counter[str]) -> str:
    """Return the counts in one line."""
    return ", ".join(f"{number:,} {word}" for word, number in by_verdict(count)) or "no case was tried"


class Totals:
    """Counts of results, grouped by message; `cases` are the planned ones, if known beforehand."""

    def __init__(self, cases: Iterable[Case] = ()) -> None:
        self._all = Counter(group_of(case) for case in cases)
        self._counts: dict[str, Counter[str]] = {group: Counter() for group in self._all}
        self._reasons: dict[str, Counter[str]] = {}

    def add(self, result: Result) -> None:
        """Count a result."""
        self._counts.setdefault(result.group, Counter())[result.verdict] += 1
        if result.verdict == NOT_TRIED:
            self._reasons.setdefault(result.why, Counter())[result.group] += 1

    @property
    def groups(self) -> Sequence[str]:
        """The groups in the order of their first result or case."""
        return [*self._counts]

    def of(self, group: str) -> Counter[str]:
        """Return the number of results of a group by verdict."""
        return self._counts[group]

    def left(self, group: str) -> int:
        """Return the number of cases of a group that are still to be tried."""
        return self._all[group] - self.of(group).total()

    @property
    def total(self) -> Counter[str]:
        """The number of all results by verdict."""
        return sum(self._counts.values(), Counter())

    def reasons(self) -> list[tuple[str, Counter[str]]]:
        """Return the reasons why cases could not be tried, most frequent first, with case counts by group."""
        return sorted(self._reasons.items(), key=lambda each: -each[1].total())


def totals_of(results: Iterable[Result]) -> Totals:
    """Return the counts of complete results."""
    totals = Totals()
    for result in results:
        totals.add(result)
    return totals
