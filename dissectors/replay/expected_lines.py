"""The peer's recorded lines that one role of a script waits for, and their matching with live messages.

A live message matches the next expected line or, up to our own next line, one of those after it: the order of
unsolicited messages is the peer's choice. A line that was given up is still recognised if it comes late.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import UNREADABLE, Decoded, shortened, to_json, unreadable
from kiebitz.dissectors.replay.binding import Bindings
from kiebitz.dissectors.replay.script import RecordedLine, StreamRole

_MAX_VALUE_LENGTH = 80
"""Maximum length of a quoted value in characters."""

_MAX_FIELDS = 4
"""Maximum number of differing fields to name."""


def quote_message(decoded: Decoded) -> str:
    """Return a message's name and fields, shortened."""
    if decoded.row is None:
        return f"a message that is {UNREADABLE}"
    name = decoded.row.name
    return f"{name} {shortened(decoded.fields_json, _MAX_VALUE_LENGTH)}" if decoded.fields else name


def describe_difference(live: Decoded, recorded: Decoded, expected: Mapping[str, Any]) -> str:
    """Describe how a live message differs from a recorded one.

    `expected` are the recorded message's fields with the live identifiers.
    """
    if live.row is None or live.row is not recorded.row:
        return f"{quote_message(live)}, where the record has {quote_message(recorded)}"
    names = [name for name in {**expected, **live.fields} if expected.get(name) != live.fields.get(name)]
    if not names:
        return f"{quote_message(live)}, where the record has the same, but one of the two is malformed"
    parts = [
        f"{name} {_value(live.fields, name)} for {_value(expected, name)}" for name in names[:_MAX_FIELDS]
    ]
    more = f" and {len(names) - _MAX_FIELDS} more" if len(names) > _MAX_FIELDS else ""
    return f"{live.row.name} with {', '.join(parts)}{more}"


def _value(fields: Fields, name: str) -> str:
    return shortened(to_json(fields[name]), _MAX_VALUE_LENGTH) if name in fields else "nothing"


_LOOK_AHEAD = 64
"""Maximum number of expected lines to search for a message that is not the next one."""

_MAX_GIVEN_UP = 64
"""Maximum number of remembered lines that did not arrive."""


class LiveMessage(msgspec.Struct, frozen=True):
    """A live message with its position in its direction of the connection."""

    decoded: Decoded
    data: bytes
    offset: int
    length: int


class ExpectedLines:
    """The expected lines of one role."""

    def __init__(self, role: StreamRole, dissector: Dissector, bindings: Bindings) -> None:
        self.role = role
        self.dissector = dissector
        self._bindings = bindings
        self._expected: OrderedDict[int, RecordedLine] = OrderedDict()
        """The lines that have not arrived, by number."""
        self._given_up: deque[RecordedLine] = deque(maxlen=_MAX_GIVEN_UP)
        self._lost = 0
        """Number of lines that are incomplete in the capture, so that their content is unknown."""
        self._decoded: dict[int, Decoded] = {}

    def expect(self, line: RecordedLine) -> None:
        """Append a line."""
        if line.whole:
            self._expected[line.number] = line
        else:
            self._lost += 1

    @property
    def next(self) -> RecordedLine | None:
        """The first line that has not arrived."""
        return next(iter(self._expected.values()), None)

    def awaits(self, line: RecordedLine) -> bool:
        """Return True if a line has not arrived yet."""
        return line.number in self._expected

    def take(self, message: LiveMessage, upto: int | None) -> bool:
        """Match a live message with an expected line, which has then arrived; return whether there is one.

        Of the lines after the next one, only those up to the number `upto` are considered.
        """
        for place, line in enumerate(self._upcoming()):
            if place and upto is not None and line.number > upto:
                break
            if self._fits(line, message):
                self._arrived(line)
                return True
        for line in self._given_up:
            if self._fits(line, message):
                self._given_up.remove(line)
                return True
        if self._lost and not self._is_like_next(message):
            # It may be the line that the capture has lost.
            self._lost -= 1
            return True
        return False

    def is_first(self, message: LiveMessage) -> bool:
        """Return True if a live message is the first line and comes from the same player."""
        return self.next is not None and self._fits(self.next, message, may_rename=False)

    def could_be_first(self, message: LiveMessage) -> bool:
        """Return True if a live message is the first line, whichever player sent it."""
        return self.next is not None and self._fits(self.next, message)

    def substitute(self, message: LiveMessage) -> None:
        """Use an unexpected live message in place of an expected line.

        That is a later line that it matches, and the lines before it are given up; else it is the next line.
        """
        lines = self._upcoming()
        for place, line in enumerate(lines):
            if self._fits(line, message):
                for passed_over in lines[:place]:
                    self.give_up(passed_over)
                self._arrived(line)
                return
        if lines:
            one, other = self._decode(lines[0]), message.decoded
            if one.row is not None and one.row is other.row:
                self._bindings.take(self.dissector, one.row, one.fields, other.fields, self.role.number)
            self.give_up(lines[0])

    def adapt(self, message: LiveMessage) -> None:
        """Use an unexpected live message in place of the next expected line of its name, if there is one."""
        live = message.decoded
        for line in self._upcoming():
            recorded = self._decode(line)
            if recorded.row is not None and recorded.row is live.row:
                self._bindings.take(
                    self.dissector, recorded.row, recorded.fields, live.fields, self.role.number
                )
                self._arrived(line)
                return

    def give_up(self, line: RecordedLine) -> None:
        """Stop waiting for a line."""
        self._arrived(line)
        self._given_up.append(line)

    def give_all_up(self) -> None:
        """Stop waiting for all lines."""
        self._expected.clear()

    def describe(self, line: RecordedLine) -> str:
        """Describe a recorded line."""
        return f"{quote_message(self._decode(line))} (#{line.number})"

    def describe_mismatch(self, message: LiveMessage) -> str:
        """Describe an unexpected live message and the line expected instead."""
        line = self.next
        if line is None:
            return f"{quote_message(message.decoded)}, where the record has nothing more from it"
        describe, live = self._decode(line), message.decoded
        expected = describe.fields
        if live.row is not None and describe.row is live.row:
            role = self.role.number
            expected = self._bindings.expected(self.dissector, live.row, expected, live.fields, role)
        return f"{describe_difference(live, describe, expected)} (#{line.number})"

    def _upcoming(self) -> list[RecordedLine]:
        """Return the next lines, up to the search limit."""
        return list(islice(self._expected.values(), _LOOK_AHEAD))

    def _arrived(self, line: RecordedLine) -> None:
        del self._expected[line.number]
        self._decoded.pop(line.number, None)

    def _fits(self, line: RecordedLine, message: LiveMessage, may_rename: bool = True) -> bool:
        """Return True if a live message has a line's content, and bind its identifiers.

        Identifiers may differ from the recorded ones if `may_rename`.
        """
        describe, live = self._decode(line), message.decoded
        if describe.row is None or live.row is None:
            # Of an overlong frame only the beginning is kept.
            return len(line.data) == message.length and line.data.startswith(message.data)
        if describe.row is not live.row or describe.valid != live.valid:
            return False
        match = self._bindings.fits if may_rename else self._bindings.is_same
        return match(self.dissector, live.row, describe.fields, live.fields, self.role.number)

    def _is_like_next(self, message: LiveMessage) -> bool:
        row = message.decoded.row
        return self.next is not None and row is not None and row.name == self.next.name

    def _decode(self, line: RecordedLine) -> Decoded:
        found = self._decoded.get(line.number)
        if found is None:
            is_read = line.name != UNREADABLE
            found = self.dissector.codec.decode(line.data, line.direction) if is_read else unreadable()
            self._decoded[line.number] = found
        return found
