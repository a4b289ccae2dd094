"""Checks of the clients' answers: tokens and deadlines, compared with the server's questions.

A token may be right, late, used, of another question, of another player, or unknown. An unknown one is
reported only for a client whose question was seen, or whom the server never answers: the capture may have
begun during the game.
"""

from __future__ import annotations

from kiebitz.dissectors.game.broadcast_dedup import text_key
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.questions import (
    ANSWER_WINDOW_NS,
    ANSWERED_BY,
    ASKED_BY,
    MAX_WAIT_NS,
    TOKENS_KEPT,
    ClientConnection,
    Question,
    QuestionKind,
    first_difference,
)
from kiebitz.dissectors.protocols.maexchen.round_state import Round

UNSURE_KEPT = 256


def asked(
    context: MaexchenContext, connection: ClientConnection, kind: QuestionKind, message: Message, game_id: int
) -> None:
    """Note a question to a connection."""
    token = message.fields["token"]
    connection.ask(token, Question(kind, message, game_id))
    context.token_owners[text_key(token)] = connection
    if len(context.token_owners) > TOKENS_KEPT:
        context.token_owners.popitem(last=False)


def addressed(context: MaexchenContext, connection: ClientConnection) -> None:
    """Note that the server knows the client of a connection, as it sent something there."""
    context.server_speaks = True
    connection.addressed = True
    if context.unsure:
        context.unsure = [unsure for unsure in context.unsure if unsure[1] is not connection]


def answered(
    context: MaexchenContext, connection: ClientConnection, kind: QuestionKind, message: Message
) -> Question | None:
    """Return the question that a message answers correctly; otherwise report the violation."""
    token = message.fields["token"]
    question = connection.questions.get(token)
    if question is None:
        _unknown_token(context, connection, kind, message, token)
        connection.doubt_answers()
    elif question.kind != kind:
        asked, answer = ASKED_BY[question.kind], ANSWERED_BY[question.kind]
        context.report_violation(message, "wrong-answer", name=message.name, question=asked, answer=answer)
        question.certain = False
    elif question.answer is not None:
        context.report_violation(message, "used-token", answer=question.answer.name)
    elif question.over:
        _late(context, message, question)
    else:
        question.answer = message
        message.game_id = question.game_id
        return question
    return None


def missed(
    context: MaexchenContext, connection: ClientConnection, kind: QuestionKind, verdict: Message
) -> None:
    """Check the server's verdict that a connection did not answer in time."""
    question = connection.open.get(kind)
    if question is None or question.over:
        return
    asked = question.asked
    if question.answer is not None:
        took_ns = question.answer.ts_ns - asked.ts_ns
        if took_ns >= ANSWER_WINDOW_NS * 4 // 5:
            _late(context, question.answer, question)
        else:
            took, answer = took_ns // 1_000_000, question.answer.name
            context.report_violation(verdict, "answer-ignored", answer=answer, took=took, question=asked.name)
    elif question.certain:
        context.report_violation(asked, "no-answer", question=asked.name, answer=ANSWERED_BY[kind])


def close(context: MaexchenContext, kind: QuestionKind, played: Round) -> None:
    """Close the questions of this kind: the server continues, and further answers are late."""
    for connection in context.connections.values():
        question = connection.open.get(kind)
        if question is not None and question.game_id == played.game.id:
            question.over = True


def judge_unsure(context: MaexchenContext, ts_ns: int | None) -> None:
    """Judge answers that have waited long enough, or all of them if `ts_ns` is None."""
    waiting: list[tuple[Message, ClientConnection]] = []
    for message, connection in context.unsure:
        if ts_ns is not None and ts_ns - message.ts_ns < MAX_WAIT_NS:
            waiting.append((message, connection))
        # A client that was seen to register may have been answered outside the capture.
        elif context.server_speaks and not connection.registering:
            context.report_violation(message, "not-registered/unseen")
    context.unsure = waiting


def _unknown_token(
    context: MaexchenContext, connection: ClientConnection, kind: QuestionKind, message: Message, token: str
) -> None:
    owner = context.token_owners.get(text_key(token))
    open_question = connection.open.get(kind)
    if owner is not None and owner is not connection:
        whose = f"{owner.name}'s" if owner.name is not None else "another player's"
        context.report_violation(message, "foreign-token", whose=whose)
    elif connection.may_be_asked(message.ts_ns):
        return
    elif open_question is not None and not open_question.over and open_question.answer is None:
        right = open_question.asked.fields["token"]
        same = first_difference(token, right)
        length = len(token.encode())
        # The token is last, unless there are extra fields, which only the shorter messages get.
        start = message.length - length if kind == "announce" else len(message.name) + 1
        at, question = (start + same, length - same), ASKED_BY[kind]
        context.report_violation(
            message, "wrong-token", at=at, question=question, name=message.name, token=right
        )
    elif connection.refused and not connection.names:
        context.report_violation(message, "not-registered")
    elif not connection.addressed and len(context.unsure) < UNSURE_KEPT:
        context.unsure.append((message, connection))
    elif connection.questions:
        context.report_violation(message, "unasked", question=ASKED_BY[kind])


def _late(context: MaexchenContext, message: Message, question: Question) -> None:
    took_ms = (message.ts_ns - question.asked.ts_ns) // 1_000_000
    context.report_violation(message, "late", took=took_ms, question=question.asked.name)
