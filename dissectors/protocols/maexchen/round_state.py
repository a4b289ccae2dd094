"""The known part of a round, the checks of its verdict; the clients' connections and questions.

A `ClientConnection` keeps the server's questions to a client. So an answer's token can be classified: right,
late, used, another player's, or invented (Ablauf einer Spielrunde). Without enough facts there is no verdict
on a loss; its rules are from the specification's Reason-Codes.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Message, Stream
from kiebitz.dissectors.protocols.maexchen.dice import MIA, beats, rank

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
    names: list[str] = []
    registering: deque[tuple[Message, MessageType]] = msgspec.field(
        default_factory=lambda: deque(maxlen=QUESTIONS_KEPT)
    )
    """Registrations without a reply yet, oldest first."""
    nameless: bool = False
    """True if a registration without a name was sent; old servers take the name as `undefined`."""
    questions: dict[str, Question] = {}
    """The latest questions by their tokens, oldest first."""
    open: dict[QuestionKind, Question] = {}
    unread_ns: int | None = None
    """Time of the server's latest message that may have been a question, but could not be read."""
    middle_ns: int | None = None
    """Time of its first message, if that shows that the client had registered before."""
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


Phase = Literal["starting", "started", "lost", "canceled"]


class Announcement(msgspec.Struct, frozen=True):
    """A player's announcement of dice."""

    name: str
    dice: str


class Round(RunningGame, eq=False):
    """A round; no violations are reported unless it is `certain`.

    `rolling` has rolled and not yet announced, `seer` wanted to see; `last` and `before` are the two latest
    announcements. Unknown values are None.
    """

    number: int | None = None
    phase: Phase = "starting"
    players: list[str] | None = None
    turn: str | None = None
    rolling: str | None = None
    rolled: dict[str, str] = msgspec.field(default_factory=dict)
    seer: str | None = None
    last: Announcement | None = None
    before: Announcement | None = None
    actual: str | None = None
    certain: bool = True
    started_ns: int = 0
    over_ns: int | None = None
    inferred: set[str] = msgspec.field(default_factory=set)
    scored: bool = False

    @property
    def due(self) -> str | None:
        """The player who must roll or see next, by the order of play; None if unknown."""
        if not self.players or not self.certain:
            return None
        if self.last is None:
            return self.players[0]
        if self.last.name not in self.players:
            return None
        return self.players[(self.players.index(self.last.name) + 1) % len(self.players)]

    def set_known(self, name: str, value: Any) -> None:
        """Set a part of a round's state, which may have been unknown before."""
        self.set_state(value, name)
        self.mark_known(name)

    def mark_inferred(self, name: str, inferred: bool) -> None:
        """Note in a round's state whether one of its parts is inferred."""
        if inferred != (name in self.inferred):
            self.inferred ^= {name}
            self.set_state(sorted(self.inferred) or None, "inferred")

    def doubt(self, *parts: str) -> None:
        """Mark `parts` of a round as unknown, and the round as incomplete."""
        self.certain = False
        self.mark_unknown(*parts)
        for name in parts:
            self.set_state(None, name)


def objection(losers: list[str], reason: str, played: Round) -> str | None:
    """Return an objection to the server's verdict, a sentence, or None."""
    stranger = next(
        (name for name in losers if played.players is not None and name not in played.players), None
    )
    if stranger is not None:
        return f"{stranger} does not play in this round"
    match reason:
        case "ANNOUNCED_LOSING_DICE":
            return _losing_dice(losers, played)
        case "SEE_FAILED" | "CAUGHT_BLUFFING":
            return _seen(losers, reason, played)
        case "MIA" | "LIED_ABOUT_MIA":
            return _mia(losers, reason, played)
        case "SEE_BEFORE_FIRST_ROLL":
            if played.last is not None:
                return f"{played.last.name} had announced {played.last.dice} before"
            return _wrong_loser(losers, played.seer)
        case "DID_NOT_ANNOUNCE":
            return _wrong_loser(losers, played.rolling)
        case "DID_NOT_TAKE_TURN":
            return _wrong_loser(losers, played.due)
        case _:
            return None


def missing_evidence(reason: str, played: Round) -> str | None:
    """Return what no message has shown of the facts that explain a loss; None if all are known."""
    if reason == "ANNOUNCED_LOSING_DICE":
        return "the announcement" if played.last is None or played.rolling is not None else None
    if reason not in ("SEE_FAILED", "CAUGHT_BLUFFING", "MIA", "LIED_ABOUT_MIA"):
        return None
    if played.last is None:
        return "the announcement"
    return "the dice" if played.actual is None else None


def _wrong_loser(losers: list[str], name: str | None) -> str | None:
    if name is None or losers == [name]:
        return None
    return f"{name} should have lost"


def _losing_dice(losers: list[str], played: Round) -> str | None:
    if played.last is None or played.rolling is not None:
        # The announcement that lost is missing or still on its way.
        return None
    if played.before is None:
        return "it was the first announcement of the round, which any dice may be"
    if beats(played.last.dice, played.before.dice):
        return f"{played.last.dice} beats {played.before.dice}"
    return _wrong_loser(losers, played.last.name)


def _seen(losers: list[str], reason: str, played: Round) -> str | None:
    if played.last is None:
        return None
    claimed, real = rank(played.last.dice), rank(played.actual) if played.actual is not None else None
    if claimed is None or real is None:
        return None
    if reason == "SEE_FAILED" and real < claimed:
        return f"{played.last.name} had {played.actual} and announced {played.last.dice}: it was a bluff"
    if reason == "CAUGHT_BLUFFING" and real >= claimed:
        return f"{played.last.name} had {played.actual} and announced {played.last.dice}: it was no bluff"
    return _wrong_loser(losers, played.seer if reason == "SEE_FAILED" else played.last.name)


def _mia(losers: list[str], reason: str, played: Round) -> str | None:
    if played.last is None or played.rolling is not None:
        return None
    if played.last.dice != MIA:
        return f"{played.last.name} announced {played.last.dice}, not Mäxchen"
    if played.actual is None:
        return None
    if reason == "LIED_ABOUT_MIA":
        if played.actual == MIA:
            return f"{played.last.name} really had Mäxchen"
        return _wrong_loser(losers, played.last.name)
    if played.actual != MIA:
        return f"{played.last.name} had {played.actual}, not Mäxchen"
    if played.players is None:
        return None
    others = [name for name in played.players if name != played.last.name]
    return None if sorted(losers) == sorted(others) else f"{', '.join(others)} should have lost"
