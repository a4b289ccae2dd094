"""How a peer writes: what is said to it is written likewise, as far as it shows how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kiebitz.dissectors.conformance.expectations import NotHere, Spelling
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing.actions import line_end, other_line_ends
from kiebitz.dissectors.probing.message_reader import Heard

_ENOUGH = 5
"""So many messages of a name show how it is written."""


class Manner:
    """Learns from what is heard. Of a spelling that every peer must read nothing is learnt: it is not
    needed."""

    def __init__(self, dissector: Dissector) -> None:
        self._dissector = dissector
        self._is_used: dict[str, bool] = {}
        self._has_other_ends = False
        self._heard: Counter[str] = Counter()

    def heard(self, message: Heard) -> None:
        """The peer has written this."""
        frame, row = message.frame, message.row
        if self._heard[row.name] >= _ENOUGH:
            return
        self._heard[row.name] += 1
        with suppress(*UNWRITABLE):
            plain = self._dissector.codec.encode(row.name, row.direction, message.fields)
            for spelling in self._dissector.conformance.reactions.spellings:
                if spelling.level == "open" and spelling.frame(plain) != plain:
                    # Who writes so already has nothing more to be spelt so.
                    self._is_used[spelling.word] = spelling.frame(frame) == frame
            with suppress(NotHere):
                ends = line_end(frame), line_end(plain)
                self._has_other_ends = ends[0] != ends[1] and ends[0] == other_line_ends(ends[1])

    def written(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        """A message as this peer would write it. Raises ValueError where no row has these fields."""
        frame = self._dissector.codec.encode(name, direction, fields)
        for spelling in self._dissector.conformance.reactions.spellings:
            if self._is_used.get(spelling.word):
                frame = self._spelt(spelling, frame, direction)
        return other_line_ends(frame) if self._has_other_ends else frame

    def _spelt(self, spelling: Spelling, frame: bytes, direction: Direction) -> bytes:
        """The frame in a spelling, if it says the same then."""
        with suppress(*UNWRITABLE):
            written = spelling.frame(frame)
            before, after = (self._dissector.codec.decode(each, direction) for each in (frame, written))
            if after.valid and after.fields_json == before.fields_json and after.row is before.row:
                return written
        return frame
