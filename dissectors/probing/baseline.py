"""The usual behaviour of a target: its next messages after each of ours, learnt in an undisturbed game.

It distinguishes a reaction to a mutation from regular play, even where the grammar names no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.conformance.expectations import NotApplicable, Spelling
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import UNWRITABLE, Fields
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing.actions import line_end_of, swap_line_ends


class ReceivedMessage(msgspec.Struct, frozen=True):
    """A valid message: its bytes, row and fields."""

    frame: bytes
    row: MessageType
    fields: dict[str, Any]


class MessageReader:
    """A reader for one direction of a connection, from its beginning."""

    def __init__(self, dissector: Dissector, direction: Direction) -> None:
        self._dissector = dissector
        self._direction: Direction = direction
        self._framer = dissector.framer(direction)
        self._received = 0

    def read(self, data: bytes) -> list[ReceivedMessage]:
        """Return the valid messages that these bytes complete; invalid ones are omitted."""
        frames = [*self._framer.feed(self._received, data), *self._framer.settle()]
        self._received += len(data)
        found = []
        for frame in frames:
            decoded = self._dissector.codec.decode(frame.data, self._direction)
            if decoded.row is not None and decoded.valid:
                found.append(ReceivedMessage(frame.data, decoded.row, decoded.fields))
        return found


_MIN_SAMPLES = 5
"""Number of messages of a name that suffice to learn its spelling."""


class SpellingStyle:
    """The spelling style of a target, learnt until `is_complete`.

    Only optional spellings are learnt: those that every peer must read are not needed.
    """

    def __init__(self, dissector: Dissector) -> None:
        self._dissector = dissector
        self._is_used: dict[str, bool] = {}
        self._has_other_ends = False
        self._heard: Counter[str] = Counter()
        self.is_complete = False

    def learn(self, message: ReceivedMessage) -> None:
        """Learn from a message of the target."""
        frame, row = message.frame, message.row
        if self.is_complete or self._heard[row.name] >= _MIN_SAMPLES:
            return
        self._heard[row.name] += 1
        with suppress(*UNWRITABLE):
            plain = self._dissector.codec.encode(row.name, row.direction, message.fields)
            for spelling in self._dissector.conformance.expectations.spellings:
                if spelling.level == "open" and spelling.frame(plain) != plain:
                    # A message that is already in this spelling does not change.
                    self._is_used[spelling.word] = spelling.frame(frame) == frame
            with suppress(NotApplicable):
                ends = line_end_of(frame), line_end_of(plain)
                self._has_other_ends = ends[0] != ends[1] and ends[0] == swap_line_ends(ends[1])

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        """Encode a message as this target would. Raises ValueError if no row has these fields."""
        frame = self._dissector.codec.encode(name, direction, fields)
        for spelling in self._dissector.conformance.expectations.spellings:
            if self._is_used.get(spelling.word):
                frame = self._respell(spelling, frame, direction)
        return swap_line_ends(frame) if self._has_other_ends else frame

    def _respell(self, spelling: Spelling, frame: bytes, direction: Direction) -> bytes:
        """Return the frame in a spelling, or unchanged if that would alter its content."""
        with suppress(*UNWRITABLE):
            written = spelling.frame(frame)
            before, after = (self._dissector.codec.decode(each, direction) for each in (frame, written))
            if after.valid and after.fields_json == before.fields_json and after.row is before.row:
                return written
        return frame


NEXT_WAITS = "in the undisturbed game the next message always waits for the target"
NEXT_UNKNOWN = "in the undisturbed game it was sent only once, so the message after it is not known"

_ENOUGH_SENT = 3
"""Number of times to have sent a message before it is known if the next one waits for the target."""


class _Pace(msgspec.Struct):
    """Counts for one of our messages.

    Attributes:
        sent: Number of times it was sent.
        waiting: Number of times our next message waited for the target.
        again: Number of times it had been sent before on the same connection.
    """

    sent: int = 0
    waiting: int = 0
    again: int = 0


class Baseline:
    """The usual behaviour of one target."""

    def __init__(self, dissector: Dissector, direction: Direction) -> None:
        """Create an empty baseline of a target that sends in the direction `direction`."""
        self._grammar = dissector.grammar
        self._login_messages = dissector.identity.login_messages
        self._answers: dict[str, set[str]] = {}
        for row in self._grammar.rows:
            for asked in row.answers if row.direction == direction else ():
                self._answers.setdefault(asked, set()).add(row.name)
        self._always: dict[str, dict[str, bool]] = {}
        """By our message: the messages that followed every time before our next one, and whether each named
        us."""
        self._first: dict[str, set[str]] = {}
        """By our message: the messages that followed first."""
        self._paces: dict[str, _Pace] = {}
        self.greets = False
        """True if it sends a message to a new client while a game is running."""
        self.takes_part = True
        """True if it sends more in a game than its introduction."""
        self.diverged_at: int | None = None
        """The number of the recorded line at which it departed from the record; None if it never did."""
        self.greeting_messages: frozenset[str] = frozenset()
        """The messages that it sends to a new client before that has sent any."""
        self.answers_newcomers = False
        """True if it answers the first messages of a new client."""
        self.invalid_messages: frozenset[str] = frozenset()
        """The names of its messages that violate the grammar in undisturbed games, too."""
        self.style = SpellingStyle(dissector)
        self.is_complete = False
        """True after the undisturbed game: then all cases are judged by the same observations."""
        self._delays_s: Mapping[str, float] = {}
        self._offered: frozenset[str] | None = None

    def complete(self, delays_s: Mapping[str, float], offered: frozenset[str] | None) -> None:
        """End the learning; later calls have no effect.

        Args:
            delays_s: By our message: the longest time in seconds until the target's next message on the same
                connection.
            offered: The names of all messages that our simulated peers could have sent; None if a recorded
                game was followed.
        """
        if not self.is_complete:
            self.is_complete = self.style.is_complete = True
            self._delays_s, self._offered = delays_s, offered

    def longest_delay_s(self, sent: str | None) -> float | None:
        """Return the longest time in seconds until the target's answer to a message.

        If that was not answered in the undisturbed game, or is None, return the longest one of messages with
        the same answers, or else of all; None if nothing was answered.
        """
        if sent is not None and sent in self._delays_s:
            return self._delays_s[sent]
        answers = self._answers.get(sent or "", set())
        alike = [
            delay_s for name, delay_s in self._delays_s.items() if answers & self._answers.get(name, set())
        ]
        return max(alike or self._delays_s.values(), default=None)

    def is_spoken(self, sent: MessageType) -> bool:
        """Return False if only a dialect has this message, and nothing led to it in the undisturbed game."""
        if self._offered is None or sent.name in self._offered:
            return True
        alike = (
            row for row in self._grammar.rows if (row.name, row.direction) == (sent.name, sent.direction)
        )
        return any(row.deviation is None for row in alike)

    def learn(self, sent: str, received: Sequence[tuple[str, bool]]) -> None:
        """Record the messages received on a connection after one of ours and before our next one.

        Args:
            sent: The name of our message.
            received: The received messages' names, each with whether it named our player.
        """
        if self.is_complete:
            return
        names: dict[str, bool] = {}
        for name, names_speaker in received:
            names[name] = names.get(name, False) or names_speaker
        known = self._always.setdefault(sent, names)
        self._always[sent] = {name: known[name] and names[name] for name in known if name in names}
        self._first.setdefault(sent, set()).update(name for name, _ in received[:1])

    def learn_pace(self, sent: str, waits: bool, is_again: bool) -> None:
        """Record if our next message waits for the target, and if this one was sent there before."""
        if not self.is_complete:
            pace = self._paces.setdefault(sent, _Pace())
            pace.sent += 1
            pace.waiting += waits
            pace.again += is_again

    def why_no_next(self, sent: MessageType, waits: bool) -> str | None:
        """Return why no next message can be sent before a message of ours; None if one may.

        Args:
            sent: The message.
            waits: True if the next one should wait for the target, False if it need not.
        """
        pace = self._paces.get(sent.name, _Pace())
        is_login = sent.name in self._login_messages
        if pace.sent < (1 if is_login else _ENOUGH_SENT):
            return None
        if waits:
            return NEXT_UNKNOWN if is_login and not pace.again else None
        if self._grammar.free_heartbeats(sent.direction):
            return None
        return NEXT_WAITS if pace.waiting == pace.sent else None

    def answers_to(self, sent: MessageType) -> Collection[str]:
        """Return the names of the target's messages that answer a message by the grammar."""
        return self._answers.get(sent.name, ())

    def own_answers_to(self, sent: MessageType) -> Collection[str]:
        """Return the names of the target's messages that answer a message and, by the grammar, no other."""
        return [
            name
            for name in self.answers_to(sent)
            if all(row.answers == (sent.name,) for row in self._grammar.rows if row.name == name)
        ]

    def is_answered(self, sent: MessageType) -> bool:
        """Return True if the grammar names an answer to the message."""
        return sent.name in self._answers

    def follows(self, sent: MessageType, reply: str, names_speaker: bool) -> bool:
        """Return True if a reply is the usual one to a message, or if nothing is known about that message."""
        if sent.direction == "s2c" and self._grammar.is_shared(sent.direction, sent.name):
            return True
        if sent.name in self._answers:
            return reply in self._answers[sent.name]
        always, first = self._always.get(sent.name, {}), self._first.get(sent.name, set())
        # A message that follows at once and every time is the most significant.
        significant = first & always.keys() or always.keys() or first
        if not significant:
            return True
        return reply in significant and (names_speaker or not always.get(reply))
