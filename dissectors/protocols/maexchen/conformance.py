"""Spellings of Mäxchen for `kiebitz probe`, and ways to break its rules."""

from __future__ import annotations

import re

from kiebitz.dissectors.conformance.expectations import NotApplicable, RuleViolation, Situation
from kiebitz.dissectors.grammar.field_type import Fields


def with_surplus(frame: bytes) -> bytes:
    """Add a field."""
    return frame + b";Kiebitz"


def with_lower_die_first(frame: bytes) -> bytes:
    """Write the first dice with the lower die first."""
    return re.sub(rb";([1-6]),([1-6])(?=;|$)", rb";\2,\1", frame, count=1)


def with_blanks_in_dice(frame: bytes) -> bytes:
    """Write the first dice with blanks around them."""
    return re.sub(rb";([1-6]),([1-6])(?=;|$)", rb"; \1 , \2 ", frame, count=1)


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


VIOLATIONS = (
    RuleViolation("invalid-name", "REGISTER", "server", lambda fields, at: {**fields, "name": "a b,c:d"}),
    RuleViolation(
        "wrong-answer", "ANNOUNCE", "server", lambda fields, at: {"token": fields["token"]}, sends="SEE"
    ),
    RuleViolation("wrong-verdict", "PLAYER LOST", "client", _other_loser),
    RuleViolation("wrong-score", "SCORE", "client", _other_scores),
    RuleViolation("other-dice/shown", "ACTUAL DICE", "client", _other_dice),
    RuleViolation("other-dice/announced", "ANNOUNCED", "client", _other_dice),
)
