from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest
from cases import Case
from catan_broken import ANY, BREAKS_OFF, HAND, IN_PARTS, Broken, of_the_table
from catan_cases import SOUND
from catan_talk import conversation
from conversation import Conversation, violations
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


def shortly(case: Broken) -> str:
    return f"{case.direction} {case.sent.data[:80].decode(errors='backslashreplace')!r}"


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


@pytest.mark.parametrize("case", every(10, [*HAND, *of_the_table()]), ids=shortly)
def test_a_diagnostic_is_reported_once_and_at_the_right_byte(case: Broken) -> None:
    heard = hear(case.replaced, case.sent.data)
    (violation,) = heard.violations
    assert (violation.code, *heard.place(violation)) == (case.code, *case.place)
    assert (violation.direction, violation.blame) == (case.direction, blame_of(case.direction))
    assert (violation.severity, violation.group) == (case.severity, "malformed")
    assert case.says in violation.text
    assert violation.expected is not None
    assert violation.expected.startswith(case.expected)
    assert_all_others_are_read(heard, case.replaced, len(case.sent.data))


@pytest.mark.parametrize(("direction", "text", "expected"), IN_PARTS)
def test_partial_diagnostics_consume_no_other_message(
    direction: Direction, text: str, expected: list[tuple[str, int, int]]
) -> None:
    data = text.encode()
    heard = hear(ANY[direction], data)
    assert [(violation.code, *heard.place(violation)) for violation in heard.violations] == expected
    assert {violation.severity for violation in heard.violations} == {"error"}
    assert_all_others_are_read(heard, ANY[direction], len(data))


# Messages that break off.

BROKEN_OFF = list({(case.direction, case.name): case for case in SOUND if len(case.data) < 90}.values())


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
        assert violation.text == BREAKS_OFF
        assert violation.expected
        assert [(message.name, message.length) for message in found.messages] == [
            ("unreadable", len(kept)),
            (next_name, len(next_one)),
        ]
