"""One thing that can be asked of a program: its place, its acts, and what the specification says of it.

A case's name is `PROTOCOL/MESSAGE/FIELD/KIND`, or less: `schafkopf/KARTE/wert/unknown`,
`schafkopf/KARTE/twice`, `schafkopf/endless`. Names are unique for a role; `_` stands for a blank. Of a
message with one field the name leaves that out where a part of it is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

import msgspec

from kiebitz.dissectors.conformance.bots import Aim, Fields
from kiebitz.dissectors.conformance.expectations import HEARS, Demand, Role, Situation
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType
from kiebitz.dissectors.probing.actions import Acts


class Case(msgspec.Struct, frozen=True, eq=False):
    """One thing to be asked of a program.

    Its place is a message of the row `of`, any message if that is None; at the very start of a conversation
    if it is `at_start`, before anything else is said. Its acts take the place of `uses` messages of the
    record: 0 if the message itself is still to be sent, 2 if the next one is among them. After a `harmless`
    one the conversation goes on as recorded.

    In a case that `is_in_play` nothing odd is done: a game is played, and what the program says is looked at;
    of the message that it `says`, if one is named.
    """

    name: str
    role: Role
    kind: str
    sentence: str
    demand: Demand
    make: Callable[[Situation], Acts]
    of: MessageType | None = None
    field: str | None = None
    uses: int = 1
    at_start: bool = False
    harmless: bool = False
    is_in_play: bool = False
    says: str | None = None

    @property
    def message(self) -> str | None:
        """The name of the message that is sent, None if it may be any."""
        return None if self.of is None else self.of.name

    @property
    def is_cut(self) -> bool:
        """Whether its acts end in the middle of a message."""
        return self.kind.startswith("cut/") or self.kind == "endless"

    def fits(self, decoded: Decoded) -> bool:
        """Whether a well-formed message of the record is its place."""
        if not decoded.valid or decoded.row is None:
            return False
        if self.of is None:
            return True
        # A dialect's message is made of the specification's.
        return decoded.row is self.of or (self.kind == "dialect" and is_same_message(decoded.row, self.of))

    def aim(self, dissector: Dissector) -> Aim:
        """What a simple player or host has to aim at, to get to its place."""
        name, direction = self.message, HEARS[self.role]
        if name is None:
            return Aim(None)

        def fits(fields: Fields) -> bool:
            # The other side may have a message of this name, too.
            with suppress(*UNWRITABLE):
                return self.fits(
                    dissector.codec.decode(dissector.codec.encode(name, direction, fields), direction)
                )
            return False

        return Aim(name, fits)

    def acts(self, at: Situation) -> Acts:
        """What is to be done at a place. Raises NotHere where the message there is not made for it."""
        return self.make(at)


def picked(cases: Iterable[Case], patterns: Sequence[str]) -> list[Case]:
    """The cases whose names fit one of these patterns, in which `*` stands for anything, slashes too. The
    beginning of a name, up to a slash, picks all below it. Without a pattern all are picked."""
    return [case for case in cases if not patterns or any(_fits(case.name, each) for each in patterns)]


def as_name(text: str) -> str:
    """A text as it stands in a case's name."""
    return text.replace(" ", "_")


def is_same_message(one: MessageType, other: MessageType) -> bool:
    return (one.name, one.direction) == (other.name, other.direction)


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")
