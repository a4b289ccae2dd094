"""What is told of a case that was tried, in a record: for programs as it is, and for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.conformance.expectations import ANY_REACTION, HEARS, Role
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.probing.case import Case
from kiebitz.storage.read.message_queries import messages, streams
from kiebitz.storage.read.recorded_bytes import ChunkRow, chunks
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.message_detail import InFull, MessageInFull

# Where cases are only listed, nothing that tries them is needed.
if TYPE_CHECKING:
    from kiebitz.services.probing.case_runner import Attempt

MOST_MESSAGES = 24
"""So many messages of a case are told."""

_MOST_DRAWN = 8
"""So many of them are drawn in full, beside those with a flaw: more make a report that no telephone opens."""

_MOST_HEX = 4096
"""So many of a message's bytes are told."""

_MOST_SENT = 64
"""So many pieces of what was sent are told."""

NOT_TRIED = "NOT TRIED"
"""Stands for a verdict where a case's place was not reached, or is in no recorded game."""

ANY_MESSAGE = "any message"

IN_PLAY = "in play"
"""Stands for a message where nothing odd is sent."""

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
    """Bytes that went to the program in one piece: the stream, when, and the first of them in hex."""

    stream: int
    time: float
    hex: str
    length: int


class Result(msgspec.Struct, frozen=True):
    """A case and what came of it.

    `verdict` is one of `WORDS`, `why` says why in a clause. `message` is what the case sends, None if that
    may be any; it is summed up with its `group`. `sent` and `messages` are what was said from the acts on, by
    all players, or in play what is wrong; `unread` are the bytes that became no message. `session` is where
    it was recorded, None if it was not kept. `output` is what the program under test wrote, if Kiebitz has
    started it. `command` tries the case again.
    """

    case: str
    role: Role
    kind: str
    group: str
    message: str | None
    field: str | None
    sentence: str
    demand: Demanded
    verdict: str
    why: str
    reactions: tuple[str, ...]
    sent: tuple[Sent, ...]
    unread: bytes
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
        """The record for programs: what is drawn is for the report."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        del told["unread"], told["group"]
        for message in told["messages"]:
            del message["drawn"]
        return told


def group_of(case: Case) -> str:
    """What a case is listed and summed up with: its message as its name has it, or what stands for one."""
    if case.is_in_play:
        return IN_PLAY
    return ANY_MESSAGE if case.of is None else case.name.split("/")[1]


def demanded(case: Case) -> Demanded:
    """What the specification says of a case."""
    demand = case.demand
    return Demanded(demand.level, tuple(demand.right), demand.clause, demand.quote)


Renderer = Callable[[MessageInFull], str]
"""Renders a message for the report; the markup is kept in the result."""


def result_of(
    attempt: Attempt,
    timeline: Timeline,
    session: str | None,
    output: str | None,
    command: str,
    render: Renderer,
) -> Result:
    """Return the result of a case that was tried and recorded in a session."""
    case, verdict = attempt.case, attempt.verdict
    rows: list[Message] = []
    sent: list[ChunkRow] = []
    if verdict is not None and not case.is_in_play:
        rows = [*messages(timeline, "m.ts_ns >= ?", [attempt.begun_ns])]
        sent = _sent(timeline, attempt)
    # Of what was said in play only what is wrong is told, and not the whole game.
    numbers = attempt.wrong if case.is_in_play else [row.id for row in rows]
    in_full = InFull(timeline)
    shown = [in_full.message(number) for number in numbers[:MOST_MESSAGES]]
    unread = no_message(
        ((chunk.stream_id, chunk.offset, chunk.data or b"") for chunk in sent),
        ((row.stream.id, row.offset, row.length) for row in rows if row.direction == HEARS[case.role]),
    )
    return Result(
        case.name,
        case.role,
        case.kind,
        group_of(case),
        case.message,
        case.field,
        case.sentence,
        demanded(case),
        NOT_TRIED if verdict is None else verdict.word,
        (attempt.why_not or "its place is not reached") if verdict is None else verdict.why,
        () if verdict is None else tuple(verdict.reactions),
        tuple(_piece(chunk, timeline) for chunk in sent[:_MOST_SENT]),
        unread[:_MOST_HEX],
        tuple(_message(each, place, render) for place, each in enumerate(shown) if each is not None),
        max(len(numbers) - MOST_MESSAGES, 0),
        session,
        round(attempt.seconds, 3),
        output,
        command,
    )


def untried(case: Case, why: str, command: str) -> Result:
    """What is told of a case to whose place no way leads."""
    about = (case.name, case.role, case.kind, group_of(case), case.message, case.field, case.sentence)
    return Result(*about, demanded(case), NOT_TRIED, why, (), (), b"", (), 0, None, 0.0, None, command)


def _message(shown: MessageInFull, place: int, render: Renderer) -> Told:
    message = shown.message
    is_drawn = place < _MOST_DRAWN or bool(shown.flaws)
    return Told(
        message.id,
        message.time,
        message.direction,
        message.name,
        message.fields,
        shown.data[:_MOST_HEX].hex(),
        render(shown) if is_drawn else "",
    )


def _piece(chunk: ChunkRow, timeline: Timeline) -> Sent:
    data = chunk.data or b""
    return Sent(chunk.stream_id, timeline.seconds(chunk.ts_ns), data[:_MOST_HEX].hex(), len(data))


def _sent(timeline: Timeline, attempt: Attempt) -> list[ChunkRow]:
    """What we have sent from the acts on, in the pieces in which it went."""
    ours = HEARS[attempt.case.role]
    found = [
        chunk
        for stream in streams(timeline)
        for chunk in chunks(timeline.connection, stream.id)
        if chunk.direction == ours and chunk.ts_ns >= attempt.begun_ns
    ]
    return sorted(found, key=lambda chunk: chunk.id)


def no_message(sent: Iterable[tuple[int, int, bytes]], read: Iterable[tuple[int, int, int]]) -> bytes:
    """Of the bytes that were sent those in which no message was read.

    Each piece that was `sent` has its stream, its offset there and its bytes, each message its stream, its
    offset and its length.
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


def right_words(result: Result) -> str:
    """What the specification says of it, in words."""
    demand = result.demand
    if demand.right == ANY_REACTION:
        return f"{demand.level}: any reaction is right, as long as it lives on"
    return f"{demand.level}: {' or '.join(demand.right)}"


def key_of(verdict: str) -> str:
    """A verdict as options, the style sheet of the report and its addresses have it: `not-tried`."""
    return verdict.lower().replace(" ", "-")


def by_verdict(count: Counter[str]) -> Iterator[tuple[str, int]]:
    """How many there are of each verdict that was given, what matters most first."""
    for word in WORDS:
        if count[word]:
            yield word, count[word]


def in_words(count: Counter[str]) -> str:
    """The same in a line."""
    return ", ".join(f"{number:,} {word}" for word, number in by_verdict(count)) or "no case was tried"
