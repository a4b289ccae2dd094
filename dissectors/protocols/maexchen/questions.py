"""The questions of the server, and their answers with the same token (Ablauf einer Spielrunde).

A `ClientConnection` keeps the server's questions to a client. So an answer's token can be classified: right,
late, used, another player's, or invented.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Message, Stream

QuestionKind = Literal["join", "turn", "announce"]

ASKED_BY: dict[QuestionKind, str] = {"join": "ROUND STARTING", "turn": "YOUR TURN", "announce": "ROLLED"}

ANSWERED_BY: dict[QuestionKind, str] = {"join": "JOIN", "turn": "ROLL or SEE", "announce": "ANNOUNCE"}

ANSWER_WINDOW_NS = 250_000_000
"""Timeout of servers for an answer; it is in no clause, but in all revisions."""

MAX_WAIT_NS = 2_000_000_000
"""Longest time an answer to an unseen question waits for any sign that the server knows this client."""

QUESTIONS_KEPT = 32
TOKENS_KEPT = 8192


class Question(msgspec.Struct, eq=False):
    """A question with its valid `answer`, not `certain` if an unread message may have been the answer."""

    kind: QuestionKind
    asked: Message
    game_id: int
    answer: Message | None = None
    certain: bool = True
    over: bool = False


class ClientConnection(msgspec.Struct, eq=False):
    """A client's connection: its players, and the questions to them."""

    stream: Stream
    names: list[str] = msgspec.field(default_factory=list)
    registering: deque[tuple[Message, MessageType]] = msgspec.field(
        default_factory=lambda: deque(maxlen=QUESTIONS_KEPT)
    )
    """Registrations without a reply yet, oldest first."""
    nameless: bool = False
    """True if a registration without a name was sent; old servers take the name as `undefined`."""
    questions: dict[str, Question] = msgspec.field(default_factory=dict)
    """The latest questions by their tokens, oldest first."""
    open: dict[QuestionKind, Question] = msgspec.field(default_factory=dict)
    unread_ns: int | None = None
    """Time of the server's latest message that may have been a question, but could not be read."""
    addressed: bool = False
    """True if the server has sent anything here."""
    gone: bool = False
    """True if the server has unregistered all players here."""
    refused: bool = False
    """True if the latest registration was rejected."""

    @property
    def name(self) -> str | None:
        """The player, None if unknown or if there are several."""
        return self.names[0] if len(self.names) == 1 else None

    def ask(self, token: str, question: Question) -> None:
        """Add a question."""
        self.questions[token] = question
        self.open[question.kind] = question
        if len(self.questions) > QUESTIONS_KEPT:
            del self.questions[next(iter(self.questions))]

    def doubt_answers(self) -> None:
        """Note that the open questions may have been answered by a message that could not be read."""
        for question in self.open.values():
            question.certain = False

    def doubt_questions(self, ts_ns: int) -> None:
        """Note that a message that could not be read may have been a question."""
        self.unread_ns = ts_ns

    def may_be_asked(self, ts_ns: int) -> bool:
        """Return True if an answer may be that to an unread question."""
        return self.unread_ns is not None and ts_ns - self.unread_ns <= MAX_WAIT_NS


def first_difference(given: str, right: str) -> int:
    """Return the offset of the first byte in which a token differs from the right one."""
    return next(
        (
            at
            for at, pair in enumerate(zip(given.encode(), right.encode(), strict=False))
            if pair[0] != pair[1]
        ),
        min(len(given.encode()), len(right.encode())),
    )
