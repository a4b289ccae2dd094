"""The turns of a round: who rolls, announces and wants to see; and the checks of the clients' answers.

The content of missing messages is inferred where possible. An answer's token may be right, late, used, of
another question, of another player, or unknown. An unknown one is reported only for a client whose question
was seen, or whom the server never answers: the capture may have begun during the game.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.game.broadcast_dedup import broadcast_key, text_key
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.maexchen import registration
from kiebitz.dissectors.protocols.maexchen.context import MaexchenContext
from kiebitz.dissectors.protocols.maexchen.dice import MIA
from kiebitz.dissectors.protocols.maexchen.round_state import (
    ANSWER_WINDOW_NS,
    ANSWERED_BY,
    ASKED_BY,
    MAX_WAIT_NS,
    TOKENS_KEPT,
    Announcement,
    ClientConnection,
    Question,
    QuestionKind,
    Round,
    first_difference,
)

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


def judge_unsure(context: MaexchenContext, ts_ns: int, wait_ns: int = MAX_WAIT_NS) -> None:
    """Judge answers that have waited long enough."""
    waiting: list[tuple[Message, ClientConnection]] = []
    for message, connection in context.unsure:
        if ts_ns - message.ts_ns < wait_ns:
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
        if _may_answer_before(context, connection, kind, message.ts_ns):
            return
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


def _may_answer_before(
    context: MaexchenContext, connection: ClientConnection, kind: QuestionKind, ts_ns: int
) -> bool:
    """Return True if an answer may be a late one, to a question before the open one that was not captured."""
    if connection.middle_ns is not None and ts_ns - connection.middle_ns <= MAX_WAIT_NS:
        return True
    before = context.previous
    if kind != "join" or before is None or before.game.started_ns <= connection.stream.opened_ns:
        return False
    return ts_ns - before.game.started_ns <= MAX_WAIT_NS and all(
        question.game_id != before.game.id for question in connection.questions.values()
    )


def _late(context: MaexchenContext, message: Message, question: Question) -> None:
    took_ms = (message.ts_ns - question.asked.ts_ns) // 1_000_000
    context.report_violation(message, "late", took=took_ms, question=question.asked.name)


def your_turn(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle the server's question to the player whose turn it is."""
    played = context.playing(message)
    name = connection.name
    inferred = name is None and not connection.names
    if inferred:
        name = played.due
        if name is not None:
            registration.assign(context, connection, name)
    _set_turn(played, name, inferred)
    context.emit_of(message, "turn", name, {"name": name}, played.game)
    asked(context, connection, "turn", message, played.game.id)


def takes_turn(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle `ROLL` or `SEE`."""
    answered(context, connection, "turn", message)


def announces(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle a client's announcement."""
    answered(context, connection, "announce", message)


def _infer(
    context: MaexchenContext, message: Message, played: Round, kind: str, name: str, broadcast: str
) -> None:
    """Emit an event without a message, and log it for copies of a later one of this name."""
    data = {"name": name}
    event = context.emit(kind, message.ts_ns, name, data, played.game)
    context.log.expect(broadcast_key(broadcast, to_json(data)), event)


def _set_turn(played: Round, name: str | None, inferred: bool = False) -> None:
    if played.phase == "started":
        if played.due is not None and name is not None and name != played.due:
            played.doubt("announced")
        played.turn = name
        played.set_state(name, "turn")
        played.mark_inferred("turn", inferred and name is not None)


def player_rolls(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle the server's message that a player rolls."""
    _acts(context, message, "rolls", _rolls)


def _rolls(played: Round, name: str | None, inferred: bool = False) -> None:
    _set_turn(played, name, inferred)
    played.rolling = name
    played.rolled.clear()
    played.set_state(None, "private")
    played.set_state(name, "rolling")
    played.mark_inferred("rolling", inferred)


def _infer_roll(context: MaexchenContext, message: Message, played: Round, name: str | None) -> None:
    """Infer who rolls: the oldest servers do not announce it, with others the datagram may be lost."""
    if played.rolling != name and name is not None:
        _rolls(played, name, inferred=True)
        _infer(context, message, played, "rolls", name, "PLAYER ROLLS")


def rolled(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle the result of a roll, which only the roller receives."""
    played = context.playing(message)
    name = connection.name or played.rolling or played.turn
    dice: str = message.fields["dice"]
    _infer_roll(context, message, played, name)
    if name is not None:
        if not connection.names:
            registration.assign(context, connection, name)
        played.rolled[name] = dice
        played.set_state(dice, "private", name, "dice")
    context.emit_of(message, "rolled", name, {"name": name, "dice": dice}, played.game)
    asked(context, connection, "announce", message, played.game.id)


def announced(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle the server's message that a player announces dice."""
    name: str = message.fields["name"]
    dice: str = message.fields["dice"]
    played = context.playing(message)
    if played.rolling != name:
        _check_order(context, message, played, name)
        _infer_roll(context, message, played, name)
    played.before, played.last = played.last, Announcement(name, dice)
    played.rolling = None
    played.set_state(None, "rolling")
    played.mark_inferred("rolling", False)
    # Mäxchen is uncovered at once; after any other announcement it is the next player's turn.
    _set_turn(played, played.due if dice != MIA else None, inferred=True)
    played.set_known("announced", {"name": name, "dice": dice})
    if name in played.rolled:
        played.set_state(played.rolled[name] != dice, "private", name, "bluff")
    context.emit_broadcast(message, "announced", name, {"name": name, "dice": dice}, played)
    _check_announcement(context, message, name, dice)


def player_wants_to_see(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle the server's message that a player wants to see."""
    _acts(context, message, "wants_to_see", _sees)


def _acts(context: MaexchenContext, message: Message, kind: str, act: Callable[[Round, str], None]) -> None:
    """Emit the event that the named player does something, after `act` has changed the round."""
    name: str = message.fields["name"]
    played = context.playing(message)
    _check_order(context, message, played, name)
    act(played, name)
    context.emit_broadcast(message, kind, name, {"name": name}, played)
    registration.assign_by_turn(context, name)


def _sees(played: Round, name: str, inferred: bool = False) -> None:
    _set_turn(played, name, inferred)
    played.seer = name
    played.set_state(name, "seer")
    played.mark_inferred("seer", inferred)


def infer_see(context: MaexchenContext, message: Message, played: Round) -> None:
    """Infer who wants to see, if the server did not announce it, or that datagram was lost.

    The oldest servers do not announce it. A valid SEE shows it. Otherwise, unless Mäxchen is announced,
    dice are
    uncovered only for the next player.
    """
    if played.seer is not None or (played.last is not None and played.last.dice == MIA):
        return
    name = _who_sees(context, played)
    if name is None and message.name == "ACTUAL DICE":
        name = played.due
    if name is not None:
        _sees(played, name, inferred=True)
        _infer(context, message, played, "wants_to_see", name, "PLAYER WANTS TO SEE")


def _who_sees(context: MaexchenContext, played: Round) -> str | None:
    """Return the player whose SEE the server has not yet handled."""
    for connection in context.connections.values():
        question = connection.open.get("turn")
        if (
            question is not None
            and question.game_id == played.game.id
            and not question.over
            and question.answer is not None
            and question.answer.name == "SEE"
        ):
            return connection.name
    return None


def actual_dice(context: MaexchenContext, message: Message, connection: ClientConnection) -> None:
    """Handle the dice that the server uncovers."""
    dice: str = message.fields["dice"]
    played = context.playing(message)
    infer_see(context, message, played)
    played.actual = dice
    played.set_state(dice, "actual")
    context.emit_broadcast(message, "actual_dice", None, {"dice": dice}, played)
    name = played.last.name if played.last is not None else None
    if played.certain and name is not None and played.rolled.get(name, dice) != dice:
        rolled = played.rolled[name]
        context.report_server_violation(message, "other-dice/shown", player=name, rolled=rolled, dice=dice)


# Checks.


def _check_order(context: MaexchenContext, message: Message, played: Round, name: str) -> None:
    due = played.rolling if played.rolling is not None and played.certain else played.due
    if played.phase == "started" and due is not None and name != due:
        context.report_violation(message, "out-of-turn", player=due)
        played.doubt("announced")


def _check_announcement(context: MaexchenContext, message: Message, name: str, dice: str) -> None:
    """Check that the server broadcasts the player's announcement unchanged."""
    connection = registration.connection_of(context, name)
    question = connection.open.get("announce") if connection is not None else None
    if question is None or question.over:
        return
    question.over = True
    # The server may have accepted a message that Kiebitz rejects.
    if question.answer is not None and question.certain and question.answer.fields["dice"] != dice:
        announced = question.answer.fields["dice"]
        context.report_server_violation(
            message, "other-dice/announced", player=name, announced=announced, dice=dice
        )
