from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest
from catan_talk import conversation
from conversation import Conversation, violations
from message_cases import Case, cases, groups
from snapshots import unmarked
from strength import every

from kiebitz.dissectors.grammar.grammar import blame_of
from kiebitz.dissectors.model import (
    DIRECTIONS,
    Diagnostic,
    Direction,
    Findings,
    Message,
)
from kiebitz.dissectors.protocols.catan.dissector import CATAN

WITH_ERRORS = [title for title in groups(CATAN) if title in ("malformed", "unknown") or "broken" in title]
MALFORMED = cases(CATAN, *WITH_ERRORS)


class InParts(NamedTuple):
    """Bytes that are framed otherwise than one message; a code for each mark, and a part of its text."""

    direction: Direction
    sent: str
    code: str
    text: str


NO_MESSAGE = "is not the beginning of a message"
TOO_LONG = "bytes without an end"
IN_PARTS = [
    InParts(
        "c2s", '{⟨⟩{"Spieler":{"Name":"Anna","Farbe":"Orange"}}␊', "broken-json", "the message ends too early"
    ),
    InParts("c2s", '{"Spieler":{"Name":"Anna"}}⟨}⟩␊', "no-object", NO_MESSAGE),
    InParts("c2s", '{"Spieler":{"Name":"Anna"}}⟨,⟩␊', "no-object", NO_MESSAGE),
    InParts("c2s", '⟨{"Chatnachricht senden":{"Nachricht":"⟦x×1050000⟧"}}␊⟩', "too-long", TOO_LONG),
    InParts("c2s", "⟨⟦x×1050000⟧␊⟩", "too-long", TOO_LONG),
    InParts("s2c", '⟨{"⟦x×1050000⟧":{}}␊⟩', "too-long", TOO_LONG),
    InParts("s2c", '⟨{"OK":{⟦ ×1050000⟧}}␊⟩', "too-long", TOO_LONG),
    InParts("c2s", '⟨{"Bauen":{"Typ":"Dorf","Ort":[⟦{"x":0,"y":0},×80000⟧{}]}}␊⟩', "too-long", TOO_LONG),
    InParts("s2c", '⟨[⟩{"OK":{}}⟨,⟩{"OK":{}}⟨]⟩␊', "no-object no-object no-object", NO_MESSAGE),
    InParts(
        "c2s",
        '{␊  "Spieler": {␊    "Name": "Anna"␊    ⟨"⟩Farbe": "Orange"␊  ⟨}⟩␊⟨}⟩␊',
        "broken-json no-object no-object",
        "",
    ),
    InParts("c2s", "⟨{␀}␀␊⟩⟨␀⟩", "utf-16 no-object", ""),
    InParts("c2s", "⟨Würfeln⟩␊⟨Zug beenden⟩␊", "no-object no-object", NO_MESSAGE),
]


class Heard(NamedTuple):
    """The findings of a conversation; the malformed bytes begin at `start`."""

    found: Findings
    start: int

    def messages(self, direction: Direction) -> list[Message]:
        return [message for message in self.found.messages if message.direction == direction]

    @property
    def violations(self) -> list[Diagnostic]:
        return violations(self.found)

    def place(self, violation: Diagnostic) -> tuple[int, int]:
        return violation.offset - self.start, violation.length


def hear(number: int | None = None, data: bytes = b"") -> Heard:
    """Return the whole conversation, with these bytes in place of one of its messages."""
    wire = Conversation(CATAN, 1000)
    start = 0
    for step_number, step in enumerate(conversation()):
        if step_number == number:
            start = wire.offset("a", step.direction)
        wire.say("a", step.direction, data if step_number == number else step.data)
    return Heard(wire.close(), start)


@cache
def unchanged() -> Heard:
    return hear()


def replaced(direction: Direction, data: bytes) -> int:
    """Return the message of the conversation to replace: the first of the same name, else a harmless one."""
    steps = [(number, step) for number, step in enumerate(conversation()) if step.direction == direction]
    alike = [number for number, step in steps if data.startswith(f'{{"{step.name}"'.encode())]
    harmless = [number for number, step in steps if step.name in ("Chatnachricht senden", "OK")]
    return [*alike, harmless[-1]][0]


def told(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.name, message.fields_json) for message in messages]


def assert_all_others_are_read(heard: Heard, number: int, size: int) -> None:
    direction = conversation()[number].direction
    before = sum(step.direction == direction for step in conversation()[:number])
    for side in DIRECTIONS:
        expected, messages = told(unchanged().messages(side)), heard.messages(side)
        if side != direction:
            assert told(messages) == expected
            continue
        ahead = [message for message in messages if message.offset < heard.start]
        behind = [message for message in messages if message.offset >= heard.start + size]
        assert told(ahead) == expected[:before]
        assert told(behind) == expected[before + 1 :]
        # What was sent is all in messages.
        instead = messages[before : len(messages) - len(behind)]
        assert sum(message.length for message in instead) == size


def test_the_conversation_is_sound() -> None:
    assert unchanged().found.diagnostics == []
    assert [message.name for message in unchanged().found.messages] == [step.name for step in conversation()]


@pytest.mark.parametrize(
    "case", every(10, MALFORMED), ids=lambda case: f"{case.direction} {case.data[:80]!r}"
)
def test_a_diagnostic_is_reported_once_and_at_the_right_byte(case: Case) -> None:
    number = replaced(case.direction, case.data)
    heard = hear(number, case.data)
    (violation,) = heard.violations
    assert ((violation.code, *heard.place(violation)),) == case.diagnostics
    assert (violation.direction, violation.blame) == (case.direction, blame_of(case.direction))
    assert (violation.severity, violation.group) == (case.severity, "malformed")
    (alone,) = CATAN.codec.decode(case.data, case.direction).violations
    assert (violation.text, violation.expected) == (alone.text, alone.expected)
    assert_all_others_are_read(heard, number, len(case.data))


@pytest.mark.parametrize("case", every(4, IN_PARTS), ids=lambda case: case.sent[:40])
def test_partial_diagnostics_consume_no_other_message(case: InParts) -> None:
    data, places = unmarked(case.sent)
    number = replaced(case.direction, data)
    heard = hear(number, data)
    expected = [(code, *place) for code, place in zip(case.code.split(), places, strict=True)]
    assert [(violation.code, *heard.place(violation)) for violation in heard.violations] == expected
    assert {violation.severity for violation in heard.violations} == {"error"}
    assert all(case.text in violation.text and violation.expected for violation in heard.violations)
    assert_all_others_are_read(heard, number, len(data))


# Messages that break off.

BROKEN_OFF = list(
    {(case.direction, case.name): case for case in cases(CATAN, "sound") if len(case.data) < 90}.values()
)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("reason", ["closed", "reset", "end"])
@pytest.mark.parametrize("case", every(10, BROKEN_OFF), ids=lambda case: f"{case.direction} {case.name}")
def test_a_stream_that_ends_in_a_message(case: Case, reason: str) -> None:
    """The side that ends the stream is blamed; no side if only the capture ends."""
    first = b'{"Hallo":{"Version":"x","Protokoll":"1.0"}}\n'
    before = len(first)
    for cut in range(1, len(case.data)):
        wire = Conversation(CATAN, 1000)
        wire.say("a", "s2c", first)
        wire.say("a", "c2s", first)
        wire.say("a", case.direction, case.data[:cut])
        found = wire.close(reason)
        message = found.messages[-1]
        assert (message.offset, message.length) == (before, cut)
        violations = [violation for violation in found.diagnostics if violation.offset >= before]
        if reason == "end":
            assert violations == []
            continue
        (violation,) = violations
        assert (violation.direction, violation.blame) == (case.direction, blame_of(case.direction))
        assert (violation.offset, violation.length) == (before + cut, 0)
        if cut == len(case.data) - 1:
            # All but the line feed is there.
            assert (message.name, message.fields) == (case.name, case.fields)
            assert (violation.code, violation.severity) == ("no-line-feed", "note")
        else:
            assert message.name == "unreadable"
            assert (violation.code, violation.severity) == ("truncated", "error")
            assert violation.text == "the stream ends in the middle of a message"
            assert violation.expected


CLEAR = {"c2s": '{"Zug beenden":{}}\n', "s2c": '{"OK":{}}\n'}
UNCLEAR = {"c2s": '{"Spieler":{"Name":"Anna"}}\n', "s2c": '{"Monopol":{"Spieler":1,"Rohstoff":"Holz"}}\n'}


def a_value_comes(data: bytes, cut: int) -> bool:
    return data[cut - 1] in b":[" or (data[cut - 1] in b"," and data[cut] not in b'"')


@pytest.mark.full(but=4)
@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("following", [CLEAR, UNCLEAR])
@pytest.mark.parametrize("case", every(10, BROKEN_OFF), ids=lambda case: f"{case.direction} {case.name}")
def test_a_message_that_breaks_off_before_the_next_one(
    case: Case, following: dict[Direction, str], between: str
) -> None:
    """The diagnostic is at the break, and the next message is read.

    The exception is where a value would come next, and the next message can be one.
    """
    next_one = following[case.direction].encode()
    next_name = next_one.decode().split('"')[1]
    for cut in range(1, len(case.data) - 1):
        kept = case.data[:cut] + between.encode()
        wire = Conversation(CATAN, 1000)
        wire.say("a", case.direction, kept + next_one)
        found = wire.close()
        (violation,) = (violation for violation in found.diagnostics if violation.severity != "note")
        if following is UNCLEAR and a_value_comes(case.data, cut):
            assert violation.code == "truncated"
            continue
        assert (violation.code, violation.offset, violation.length) == ("broken-json", cut, 0)
        assert violation.text == "the message ends too early"
        assert violation.expected
        assert [(message.name, message.length) for message in found.messages] == [
            ("unreadable", len(kept)),
            (next_name, len(next_one)),
        ]
