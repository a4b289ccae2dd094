"""A test case: where it is injected, its actions, and what the specification expects.

A case's name is `PROTOCOL/MESSAGE/FIELD/KIND` or a shorter form: `schafkopf/KARTE/wert/unknown`,
`schafkopf/KARTE/twice`, `schafkopf/endless`. Names are unique within a role; `_` replaces a blank. If a
message has one field only, the name of a case about a part of that field omits the field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

import msgspec

from kiebitz.dissectors.conformance.bots import TargetMessage
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, Expectation, Situation, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import UNWRITABLE, Fields
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType
from kiebitz.dissectors.probing import actions
from kiebitz.dissectors.probing.actions import CaseActions


class Case(msgspec.Struct, frozen=True, eq=False):
    """A test case for a program.

    It is injected at a message of the row `of`, or at any message if that is None. With `at_start` it is
    injected at the very start of a conversation, before any other message. Its actions replace `uses`
    messages of the record: 0 if the message itself is still to be sent, 2 if they include the next one. After
    a `harmless` case the conversation continues as recorded.

    A case that `is_in_play` injects nothing: a regular game is played, and the program's own messages are
    checked; only those named `checked_message` if that is given.
    """

    name: str
    role: TargetRole
    kind: str
    sentence: str
    expectation: Expectation
    make: Callable[[Situation], CaseActions]
    of: MessageType | None = None
    field: str | None = None
    uses: int = 1
    at_start: bool = False
    harmless: bool = False
    is_in_play: bool = False
    checked_message: str | None = None

    @property
    def message(self) -> str | None:
        """The name of the message that is replaced; None for any."""
        return None if self.of is None else self.of.name

    @property
    def next_waits(self) -> bool | None:
        """True if its actions include a next message that should wait for the target.

        False if they include one that need not wait, None if they include none.
        """
        return self.kind == "early" if self.uses > 1 else None

    @property
    def is_cut(self) -> bool:
        """True if its actions end in the middle of a message."""
        return self.kind.startswith("cut/") or self.kind == "endless"

    def fits(self, decoded: Decoded) -> bool:
        """Return True if the case can be injected at a well-formed recorded message."""
        if not decoded.valid or decoded.row is None:
            return False
        if self.of is None:
            return True
        # A dialect's message is made from the specification's.
        return decoded.row is self.of or (self.kind == "dialect" and is_same_message(decoded.row, self.of))

    def target_message(self, dissector: Dissector) -> TargetMessage:
        """Return the message that a bot or simulated server has to lead to."""
        name, direction = self.message, INPUT_DIRECTION[self.role]
        if name is None:
            return TargetMessage(None)

        def fits(fields: Fields) -> bool:
            # The other side may have a message of this name, too.
            with suppress(*UNWRITABLE):
                return self.fits(
                    dissector.codec.decode(dissector.codec.encode(name, direction, fields), direction)
                )
            return False

        return TargetMessage(name, fits)

    def actions(self, at: Situation) -> CaseActions:
        """Return the actions for an injection point. Raises NotApplicable if the case does not suit it."""
        return self.make(at)


def select_cases(cases: Iterable[Case], patterns: Sequence[str]) -> list[Case]:
    """Return the cases whose names match one of the patterns, or all cases if there is no pattern.

    `*` matches anything, slashes included. The beginning of a name, up to a slash, selects every case below
    it.
    """
    return [case for case in cases if not patterns or any(_matches(case.name, each) for each in patterns)]


def to_case_name(text: str) -> str:
    """Return a text in the form that case names use."""
    return text.replace(" ", "_")


def is_same_message(one: MessageType, other: MessageType) -> bool:
    """Return True if two rows describe the same message: same name and direction."""
    return (one.name, one.direction) == (other.name, other.direction)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")


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
