"""CGML's messages: framing, decoding and encoding, driven by the table of cases and the grammar's rows."""

from __future__ import annotations

import pytest
from cgml_play import message
from message_cases import Case, cases
from single_direction import inspect

from kiebitz.dissectors.protocols.cgml.dissector import CGML

CASES = cases(CGML)


def shortly(case: Case) -> str:
    return f"{case.direction} {case.data[:60]!r}"


# Decoding and encoding.


@pytest.mark.parametrize("case", cases(CGML, "loose"), ids=shortly)
def test_deviations_are_notes_reported_once_per_direction(case: Case) -> None:
    violations = CGML.codec.decode(case.data, case.direction).violations
    assert {violation.severity for violation in violations} <= {"note"}
    twice = inspect(CGML, case.direction, case.data, case.data)
    assert [violation.code for violation in twice.diagnostics] == [code for code, _, _ in case.diagnostics]
    assert len(twice.messages) == 2


@pytest.mark.parametrize("at", range(3, 60, 3))
def test_after_a_gap_reading_continues_with_the_next_message(at: int) -> None:
    trick = '<result><round number="1"><card>R07</card></round></result>'
    rest = message(trick)[at:]
    ask = message('<licite type="ask">G</licite>')
    found = inspect(CGML, "s2c", 100, rest, ask, None, ask)
    assert [message.name for message in found.messages if message.name != "unreadable"] == [
        "licite",
        "licite",
    ]
    assert {violation.severity for violation in found.diagnostics} <= {"note", "warning"}
