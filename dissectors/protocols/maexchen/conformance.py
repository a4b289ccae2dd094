"""Mäxchen's expected reactions to unusual messages, and ways to break its rules."""

from __future__ import annotations

import re

from kiebitz.dissectors.conformance.conformance import Conformance
from kiebitz.dissectors.conformance.expectations import (
    Expectation,
    Expectations,
    Fields,
    NotApplicable,
    Refusal,
    RuleViolation,
    Situation,
    Spelling,
)
from kiebitz.dissectors.protocols.maexchen.bot import MaexchenBot
from kiebitz.dissectors.protocols.maexchen.questions import ANSWER_WINDOW_NS
from kiebitz.dissectors.protocols.maexchen.simulated_server import MaexchenServer

_JOINING, _PLAY = "Anmelden", "Ablauf einer Spielrunde"
_IN_TIME = (
    "Wann immer ein Spieler nicht rechtzeitig antwortet oder etwas völlig falsch macht: "
    "- server->clients: PLAYER LOST;name;reason"
)
_KNOWN = (
    "Falls name neu ist, oder die registrierung unter demselben namen zuletzt von derselben IP kam: "
    "… server->client: REGISTERED - Ansonsten: server->client: REJECTED"
)
_LOST = (Refusal("PLAYER LOST"),)

EXPECTATIONS = (
    # A rejected client has nothing more to send.
    Expectation("REJECTED/whole", "client", "must", ("answers", "ignores", "closes"), _JOINING, _KNOWN),
    # Anmelden. A client at the same address may take a name over; then the other's game is over.
    Expectation("REGISTER/doubled", "server", "must", ("answers",), _JOINING, _KNOWN),
    Expectation(
        "REGISTER/name/others-player REGISTER/from-other",
        "server",
        "must",
        ("answers", "refuses"),
        _JOINING,
        _KNOWN,
        (Refusal("REJECTED"),),
        spares_others=False,
    ),
    Expectation(
        "REGISTER/name/outside-ascii",
        "server",
        "should",
        ("answers",),
        "Grundlagen",
        "Kommunikation zeilenweise per UDP (utf8-kodierte Strings)",
    ),
    # An extra field that readers ignore does not make the answer wrong.
    Expectation(
        "*/token/doubled",
        "server",
        "open",
        ("answers", "refuses"),
        _PLAY,
        refusals=_LOST,
    ),
    # An answer that is missing, or has another token than the question, is not in time.
    Expectation(
        "ROLL/lost SEE/lost ANNOUNCE/lost ROLL/late SEE/late ANNOUNCE/late"
        " ROLL/cut SEE/cut ANNOUNCE/cut ROLL/token/* SEE/token/* ANNOUNCE/token/*",
        "server",
        "must",
        ("refuses",),
        _PLAY,
        _IN_TIME,
        _LOST,
    ),
    # It is unclear if impossible dice are "völlig falsch".
    Expectation(
        "ANNOUNCE/dice/* ANNOUNCE/rule/wrong-answer",
        "server",
        "should",
        ("refuses",),
        _PLAY,
        _IN_TIME,
        _LOST,
    ),
)


def _surplus(frame: bytes) -> bytes:
    return frame + b";Kiebitz"


def _lower_die_first(frame: bytes) -> bytes:
    return re.sub(rb";([1-6]),([1-6])(?=;|$)", rb";\2,\1", frame, count=1)


def _blanks_in_dice(frame: bytes) -> bytes:
    return re.sub(rb";([1-6]),([1-6])(?=;|$)", rb"; \1 , \2 ", frame, count=1)


_WITH_DICE = "ANNOUNCE ROLLED ANNOUNCED ACTUAL_DICE"

SPELLINGS = (
    Spelling("surplus-field", "with an extra field, which real servers ignore", _surplus),
    Spelling("lower-die-first", "with the lower die first", _lower_die_first, messages=_WITH_DICE),
    Spelling("blanks-in-dice", "with blanks around the dice", _blanks_in_dice, messages=_WITH_DICE),
)


def _another(names: list[str], taken: str) -> str:
    for name in names:
        if name != taken:
            return name
    raise NotApplicable("there is no other player")


def _players(at: Situation) -> list[str]:
    return [*at.state["players"]]


def _other_loser(fields: Fields, at: Situation) -> Fields:
    return {**fields, "names": [_another(_players(at), fields["names"][0])]}


def _other_scores(fields: Fields, at: Situation) -> Fields:
    return {"scores": {name: points + 100 for name, points in fields["scores"].items()}}


def _other_dice(fields: Fields, at: Situation) -> Fields:
    return {**fields, "dice": "4,1" if fields["dice"] != "4,1" else "5,1"}


RULE_VIOLATIONS = (
    RuleViolation("invalid-name", "REGISTER", "server", lambda fields, at: {**fields, "name": "a b,c:d"}),
    RuleViolation(
        "wrong-answer", "ANNOUNCE", "server", lambda fields, at: {"token": fields["token"]}, sends="SEE"
    ),
    RuleViolation("wrong-verdict", "PLAYER LOST", "client", _other_loser),
    RuleViolation("wrong-score", "SCORE", "client", _other_scores),
    RuleViolation("other-dice/shown", "ACTUAL DICE", "client", _other_dice),
    RuleViolation("other-dice/announced", "ANNOUNCED", "client", _other_dice),
)

CONFORMANCE = Conformance(
    expectations=Expectations(
        EXPECTATIONS,
        SPELLINGS,
        RULE_VIOLATIONS,
        broken_by={
            "name-taken": "REGISTER/name/others-player",
            "not-registered": " ".join(
                f"{name}/from-stranger" for name in ("JOIN", "ROLL", "SEE", "ANNOUNCE")
            ),
            "not-registered/unseen": "JOIN/first ROLL/first SEE/first ANNOUNCE/first",
            "used-token": "JOIN/doubled ROLL/doubled SEE/doubled ANNOUNCE/doubled",
            "foreign-token": "*/token/others-token",
            "wrong-token": "*/token/nobodys-token",
            "unasked": "*/early",
            "late": "*/late",
            "no-answer": "JOIN/lost ROLL/lost SEE/lost ANNOUNCE/lost",
            "out-of-turn": "YOUR_TURN/lost",
            "wrong-verdict/alone": "PLAYER_LOST/rule/wrong-verdict",
            "wrong-score/alone": "SCORE/rule/wrong-score",
            "other-dice/shown/alone": "ACTUAL_DICE/rule/other-dice/shown",
            "other-dice/announced/alone": "ANNOUNCED/rule/other-dice/announced",
        },
        unreachable={
            "answer-ignored": "it concerns a server's treatment of an answer that came in time",
            "loss-unexplained": "it is no violation: messages are missing",
            "restarted": "a server's restart breaks it, not a message",
        },
    ),
    bot=MaexchenBot,
    simulated_server=MaexchenServer,
    # The questions and their answers: the server's clock starts with its question.
    timeouts=dict.fromkeys(
        ("ROUND STARTING", "JOIN", "YOUR TURN", "ROLL", "SEE", "ROLLED", "ANNOUNCE"), ANSWER_WINDOW_NS / 1e9
    ),
)
