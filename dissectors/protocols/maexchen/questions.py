"""Questions and answers: the server asks with a token, the client answers with it (Ablauf einer Spielrunde).

Each conversation has a `Seat`. It keeps the questions that the server asked on it, so that an answer's token
can be told to be right, late, used, another player's, or made up.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Message, Stream

QuestionKind = Literal["join", "turn", "announce"]

ASKED_BY: dict[QuestionKind, str] = {
    "join": "ROUND STARTING",
    "turn": "YOUR TURN",
    "announce": "ROLLED",
}

ANSWERED_BY: dict[QuestionKind, str] = {"join": "JOIN", "turn": "ROLL or SEE", "announce": "ANNOUNCE"}

ANSWER_WINDOW_NS = 250_000_000
"""How long servers wait for an answer; no clause says so, all revisions do."""

QUESTIONS_KEPT = 32
TOKENS_KEPT = 8192


class Question(msgspec.Struct, eq=False):
    """One question. `answer` is the message that answered it; `tried` that something flawed came instead."""

    kind: QuestionKind
    asked: Message
    game_id: int
    answer: Message | None = None
    tried: bool = False
    over: bool = False


class Seat(msgspec.Struct, eq=False):
    """One conversation with the server: who sits there, what he was asked, what he is still to be told."""

    stream: Stream
    names: list[str] = msgspec.field(default_factory=list)
    registering: deque[tuple[Message, MessageType]] = msgspec.field(
        default_factory=lambda: deque(maxlen=QUESTIONS_KEPT)
    )
    """Registrations that the server has not answered yet, oldest first."""
    nameless: bool = False
    """Whether a registration without a name was sent; old servers take it for one as `undefined`."""
    questions: dict[str, Question] = msgspec.field(default_factory=dict)
    """The latest, by their tokens, oldest first."""
    open: dict[QuestionKind, Question] = msgspec.field(default_factory=dict)
    addressed: bool = False
    """Whether the server has sent anything here."""
    gone: bool = False
    """Whether the server has said that it knows nobody here any more."""
    refused: bool = False
    """Whether the latest registration was refused."""

    @property
    def name(self) -> str | None:
        """The player here, None where it is unknown or there are several."""
        return self.names[0] if len(self.names) == 1 else None

    def ask(self, token: str, question: Question) -> None:
        """The server asks."""
        self.questions[token] = question
        self.open[question.kind] = question
        if len(self.questions) > QUESTIONS_KEPT:
            del self.questions[next(iter(self.questions))]

    def fumbled(self) -> None:
        """Something unreadable or refused came: whatever is open was at least tried."""
        for question in self.open.values():
            question.tried = True


def first_difference(given: str, right: str) -> int:
    """Byte offset of the first byte in which a token differs from the right one."""
    return next(
        (
            at
            for at, pair in enumerate(zip(given.encode(), right.encode(), strict=False))
            if pair[0] != pair[1]
        ),
        min(len(given.encode()), len(right.encode())),
    )
