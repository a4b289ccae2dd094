"""A target's spelling style, learnt from its messages and used in those sent to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kiebitz.dissectors.conformance.expectations import NotApplicable, Spelling
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import UNWRITABLE
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing.actions import line_end_of, swap_line_ends
from kiebitz.dissectors.probing.message_reader import ReceivedMessage

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

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
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
