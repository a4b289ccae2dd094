"""The rules that the table of a Mäxchen server checks."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.grammar.grammar import Rule
from kiebitz.dissectors.protocols.maexchen.questions import ANSWER_WINDOW_NS

MAX_NAME_LENGTH = 20
"""Maximum length in UTF-16 units, as the newest server counts them."""

_WINDOW = f"{ANSWER_WINDOW_NS // 1_000_000} ms"
_NAME = f"1 to {MAX_NAME_LENGTH} characters without blank, comma, semicolon or colon"
_PLAY = "Ablauf einer Spielrunde"
_REGISTERING = "Anmelden"
_REASONS = "Reason-Codes"

_OF_SERVERS = (
    Rule("wrong-verdict", "PLAYER LOST", "{losers} lost for {reason}, but {objection}", clause=_REASONS),
    Rule("wrong-score", "SCORE", "{problem}", clause="SCORE"),
    Rule(
        "other-dice/shown",
        "ACTUAL DICE",
        "the server told {player} a roll of {rolled}, but now shows {dice}",
        group="state",
        clause="ACTUAL DICE",
    ),
    Rule(
        "other-dice/announced",
        "ANNOUNCED",
        "{player} announced {announced}, and here it is {dice}",
        group="state",
        clause="ANNOUNCED",
    ),
)
"""Rules that can only be checked reliably with several captured conversations."""


def alone(key: str) -> str:
    """Return the key of the same rule for a single captured conversation."""
    return f"{key}/alone"


def _unsure(rule: Rule) -> Rule:
    text = f"{rule.text}; or a message is missing from the capture, which holds one conversation only"
    return msgspec.structs.replace(rule, key=alone(rule.key), text=text, severity="warning", blame="unknown")


RULES = (
    # Names.
    Rule(
        "invalid-name",
        "REGISTER",
        "the server refused this name: {problem}",
        _NAME,
        group="malformed",
        clause=_REGISTERING,
    ),
    Rule(
        "name-taken",
        "REGISTER",
        "the server refused this name: another address has it",
        "a name that is free, or that this address had before",
        group="sequence",
        severity="note",
        clause=_REGISTERING,
    ),
    Rule(
        "not-registered",
        None,
        "the server has refused this client's name",
        "REGISTER;name first",
        group="sequence",
        clause=_PLAY,
    ),
    Rule(
        "not-registered/unseen",
        None,
        "the server does not know this client: it was not seen to register and is never answered",
        "REGISTER;name first",
        group="sequence",
        clause=_REGISTERING,
    ),
    # Answers.
    Rule(
        "wrong-answer",
        None,
        "{name} does not answer {question}, whose token this is: {answer} does",
        "{answer};token",
        group="sequence",
        clause=_PLAY,
    ),
    Rule(
        "used-token",
        None,
        "this token was used already, in {answer}",
        "one answer to each question",
        group="sequence",
        clause=_PLAY,
    ),
    Rule(
        "foreign-token",
        None,
        "this token is {whose}",
        "the token that was sent here",
        group="sequence",
        clause=_PLAY,
    ),
    Rule(
        "wrong-token",
        None,
        "this is not the token of {question}",
        "{name} with the token {token}",
        group="sequence",
        clause=_PLAY,
    ),
    # Not an error: over UDP the question itself may be what the capture lacks.
    Rule(
        "unasked",
        None,
        "no {question} with this token was seen",
        "the token of a {question} that is still open",
        group="sequence",
        severity="warning",
        clause=_PLAY,
    ),
    Rule(
        "late",
        None,
        "{took} ms after {question}: too late, the server has continued",
        f"an answer within {_WINDOW}",
        group="sequence",
        severity="warning",
        clause=_PLAY,
    ),
    Rule(
        "no-answer",
        None,
        "{question} was never answered",
        f"{{answer}} within {_WINDOW}",
        group="sequence",
        severity="warning",
        clause=_REASONS,
        blame="client",
    ),
    Rule(
        "answer-ignored",
        None,
        "{answer} with the right token came {took} ms after {question}, "
        "but the server says it did not come in time",
        severity="warning",
        clause=_REASONS,
        blame="unknown",
    ),
    # The server.
    Rule(
        "restarted",
        None,
        "the server was restarted: its rounds and points begin again",
        group="state",
        severity="note",
        clause=None,
        blame="unknown",
        unwritten="a server may be restarted at any time",
    ),
    Rule(
        "out-of-turn",
        None,
        "{player} was next: the server skipped that turn, or it is missing from the capture",
        group="sequence",
        severity="warning",
        clause=_PLAY,
        blame="unknown",
    ),
    *_OF_SERVERS,
    *map(_unsure, _OF_SERVERS),
)
