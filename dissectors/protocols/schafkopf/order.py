"""The order of messages: a client answers its questions, and the server follows the order of a round.

    ID, MITSPIELER, KONTO → (DRAN, ERSTE3, answer) × 4 → GEKLOPFT → (DRAN, BESTESSPIEL, SPIELSTDU, answer) × 4
    → [DRAN, HOCHZEIT, answer] → SPIELT → (DRAN, MODUS, KONTRA answer) × 4 → KONTRA
    → 24 × (DRAN; SPIEL to the player, UPDATE to the others; the player's MODEL) → ENDE → SIEGER

The specification does not define the order; all real servers follow this one.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Message
from kiebitz.dissectors.protocols.schafkopf.context import SchafkopfContext
from kiebitz.dissectors.protocols.schafkopf.grammar import GRAMMAR, notation
from kiebitz.dissectors.protocols.schafkopf.round_state import ClientConnection, Question, Round

_ANYTIME = ("NAME", "BEENDEN")

_ASKS: dict[str, Question] = {
    "NAME": "NAME",
    "ERSTE3": "ERSTE3",
    "SPIELSTDU": "SPIELSTDU",
    "MODUS": "KONTRA",
    "HOCHZEIT": "HOCHZEIT",
    "SPIEL": "MODEL",
}
"""The answer that a message of the server, or a MODEL's flag, asks for."""

_STEPS = {
    "ID": 0,
    "MITSPIELER": 1,
    "KONTO": 2,
    "STOCK": 2,
    "ERSTE3": 3,
    "GEKLOPFT": 4,
    "BESTESSPIEL": 5,
    "SPIELSTDU": 5,
    "HOCHZEIT": 5,
    "SPIELT": 6,
    "MODUS": 7,
    "KONTRA": 8,
    "SPIEL": 9,
    "UPDATE": 9,
    "ENDE": 10,
    "SIEGER": 11,
}
"""The order of the server's messages in a round. DRAN may be sent at any time."""


def asked(context: SchafkopfContext, message: Message, connection: ClientConnection) -> None:
    """Check the order of a server's message, and note its question."""
    name = _step_name(message)
    step = _STEPS.get(name)
    if step is not None and name != "ID":
        if step < connection.step and not connection.certain_round:
            # The end of one round and the beginning of the next are missing.
            context.enter(connection, None, message.ts_ns)
        elif step < connection.step:
            context.report_violation(message, "out-of-order", name=name, step=_name_of(connection.step))
            if connection.round is not None and connection.round.ended:
                # Nevertheless it belongs to the next round.
                context.enter(connection, None, message.ts_ns)
        # The order continues from here: one misplaced message is one violation.
        connection.step = step
    question = _ASKS.get(name)
    if question is not None:
        connection.asked = question
        connection.answered = None
        connection.certain_question = True


def answered(
    context: SchafkopfContext, message: Message, row: MessageType, connection: ClientConnection
) -> bool:
    """Return False, and report a violation, if a client's message is not the answer to its question."""
    name = message.name
    if name in _ANYTIME:
        if name == connection.asked:
            connection.asked = None
        return True
    wanted = connection.asked
    if name != wanted:
        if context.is_unfinished(message.stream, "s2c"):
            # A question without its end is not a message yet when it is answered.
            connection.certain_question = connection.certain_cards = False
        if connection.certain_question:
            _unasked(context, message, row, connection)
            return False
        # The missing message may have been the question.
        return True
    connection.answered = wanted
    connection.asked = _what_follows(message)
    return True


def _unasked(
    context: SchafkopfContext, message: Message, row: MessageType, connection: ClientConnection
) -> None:
    wanted = connection.asked
    name = message.name
    if wanted is not None:
        answer = notation(GRAMMAR.rows_named("c2s", wanted)[0])
        context.report_violation(message, "wrong-answer", clause=row.clause, name=name, wanted=answer)
    elif name == "MODEL" and connection.dran not in (None, connection.seat):
        whose = _who(connection.round, connection.dran)
        context.report_violation(message, "out-of-turn", clause=row.clause, whose=whose)
    else:
        key = "answered-twice" if connection.answered == name else "unasked"
        context.report_violation(message, key, clause=row.clause, name=name)


def _what_follows(message: Message) -> Question | None:
    """Return the next answer: the card of a Hochzeit is sent in a message of its own."""
    if message.name == "SPIELSTDU" and message.fields["modus"] == "HOCHZEIT":
        return "KARTE"
    if message.name == "HOCHZEIT" and message.fields["nimmt"] == "JA" and "karte" not in message.fields:
        return "KARTE"
    return None


def _step_name(message: Message) -> str:
    return str(message.fields["flag"]) if message.name == "MODEL" else message.name


def _name_of(step: int) -> str:
    return next(name for name, number in _STEPS.items() if number == step)


def _who(played: Round | None, seat: int | None) -> str | None:
    return played.who(seat) if played is not None else f"seat {seat}"
