"""Control runs: the same setup as a test case, without anything unusual."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.conformance.expectations import Expectation
from kiebitz.dissectors.probing import actions
from kiebitz.dissectors.probing.case import Case


def control_of(case: Case) -> Case | None:
    """Return the control of a case: the message is sent unchanged, or nothing besides the regular game.

    A target that fails its control does not fail because of the case. Returns None if the case itself is a
    regular game or an unchanged message.
    """
    if case.is_in_play or case.kind == "whole":
        return None
    is_replaced = case.of is not None and not case.at_start
    # What is right for a harmless variant is right for the unchanged message.
    expectation = (
        case.expectation if case.harmless else Expectation(case.name, case.role, "open", ("answers",), None)
    )
    return msgspec.structs.replace(
        case,
        name=f"{case.name} (control)",
        kind="whole",
        sentence="the same without anything unusual",
        expectation=expectation,
        make=actions.send_whole if is_replaced else actions.fixed_actions(),
        uses=1 if is_replaced else 0,
        harmless=True,
    )
