"""What one role of a script waits for: its peer's recorded lines, and which of them a live message is.

A live message is the next expected line, or, up to the next line of ours, one of those after it: the order in
which a peer says things unasked is its own. A line that was given up is known should it come late.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import UNREADABLE, Decoded, unreadable
from kiebitz.dissectors.replay.binding import Bindings
from kiebitz.dissectors.replay.mismatch_text import contrast, quoted
from kiebitz.dissectors.replay.script import Line, Role

_LOOK_AHEAD = 64
"""So many expected lines are looked at when a message comes that is not the next."""

_GIVEN_UP = 64
"""So many lines that did not come are remembered."""


class Heard(msgspec.Struct, frozen=True):
    """A live message: what it says, and where it stands in its direction of the connection."""

    decoded: Decoded
    data: bytes
    offset: int
    length: int


class Cues:
    """The lines that are to be heard in one role."""

    def __init__(self, role: Role, dissector: Dissector, bindings: Bindings) -> None:
        self.role = role
        self.dissector = dissector
        self._bindings = bindings
        self._expected: OrderedDict[int, Line] = OrderedDict()
        """The lines that have not come, by their numbers."""
        self._given_up: deque[Line] = deque(maxlen=_GIVEN_UP)
        self._lost = 0
        """Lines that are not whole in the capture: what they said is not known."""
        self._decoded: dict[int, Decoded] = {}

    def expect(self, line: Line) -> None:
        """The next line that is to be heard."""
        if line.whole:
            self._expected[line.number] = line
        else:
            self._lost += 1

    @property
    def next(self) -> Line | None:
        """The first line that has not come."""
        return next(iter(self._expected.values()), None)

    def awaits(self, line: Line) -> bool:
        """Whether a line is yet to come."""
        return line.number in self._expected

    def take(self, heard: Heard, upto: int | None) -> bool:
        """Whether a live message is one that is expected; then it has come.

        Of those after the next one only lines up to the number `upto` come into question.
        """
        for place, line in enumerate(self._next_ones()):
            if place and upto is not None and line.number > upto:
                break
            if self._fits(line, heard):
                self._came(line)
                return True
        for line in self._given_up:
            if self._fits(line, heard):
                self._given_up.remove(line)
                return True
        if self._lost and not self._is_like_next(heard):
            # It may be what the capture has lost.
            self._lost -= 1
            return True
        return False

    def is_first(self, heard: Heard) -> bool:
        """Whether a live message is the first line, said by whom the record has."""
        return self.next is not None and self._fits(self.next, heard, anew=False)

    def could_be_first(self, heard: Heard) -> bool:
        """Whether a live message is the first line, be it said by somebody else."""
        return self.next is not None and self._fits(self.next, heard)

    def stand_in(self, heard: Heard) -> None:
        """Take a live message that is none of those that can come now for one of them.

        That is a later line, if it is one, and those before it are given up; else the next.
        """
        lines = self._next_ones()
        for place, line in enumerate(lines):
            if self._fits(line, heard):
                for passed_over in lines[:place]:
                    self.give_up(passed_over)
                self._came(line)
                return
        if lines:
            one, other = self._decode(lines[0]), heard.decoded
            if one.row is not None and one.row is other.row:
                self._bindings.take(self.dissector, one.row, one.fields, other.fields, self.role.number)
            self.give_up(lines[0])

    def give_up(self, line: Line) -> None:
        """Wait no longer for a line."""
        self._came(line)
        self._given_up.append(line)

    def give_all_up(self) -> None:
        """Nothing more will come."""
        self._expected.clear()

    def recorded(self, line: Line) -> str:
        """A line in words."""
        return f"{quoted(self._decode(line))} (#{line.number})"

    def surprise(self, heard: Heard) -> str:
        """A live message that is not expected, and what is, in words."""
        line = self.next
        if line is None:
            return f"{quoted(heard.decoded)}, where the record has nothing more from it"
        recorded, live = self._decode(line), heard.decoded
        expected = recorded.fields
        if live.row is not None and recorded.row is live.row:
            role = self.role.number
            expected = self._bindings.expected(self.dissector, live.row, expected, live.fields, role)
        return f"{contrast(live, recorded, expected)} (#{line.number})"

    def _next_ones(self) -> list[Line]:
        """The next lines, as far as is looked ahead."""
        return list(islice(self._expected.values(), _LOOK_AHEAD))

    def _came(self, line: Line) -> None:
        del self._expected[line.number]
        self._decoded.pop(line.number, None)

    def _fits(self, line: Line, heard: Heard, anew: bool = True) -> bool:
        """Whether a live message says what a line says; names are bound then, and may be new if `anew`."""
        recorded, live = self._decode(line), heard.decoded
        if recorded.row is None or live.row is None:
            # Of what is too long only the beginning is kept.
            return len(line.data) == heard.length and line.data.startswith(heard.data)
        if recorded.row is not live.row or recorded.valid != live.valid:
            return False
        match = self._bindings.fits if anew else self._bindings.is_same
        return match(self.dissector, live.row, recorded.fields, live.fields, self.role.number)

    def _is_like_next(self, heard: Heard) -> bool:
        row = heard.decoded.row
        return self.next is not None and row is not None and row.name == self.next.name

    def _decode(self, line: Line) -> Decoded:
        found = self._decoded.get(line.number)
        if found is None:
            is_read = line.name != UNREADABLE
            found = self.dissector.codec.decode(line.data, line.direction) if is_read else unreadable()
            self._decoded[line.number] = found
        return found
