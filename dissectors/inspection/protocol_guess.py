"""A guess which protocol a server speaks: a message led to it, what follows confirms it or takes it back.

Other programs have words in common with a game, so one word is no proof. Until several are heard, nobody is
accused of what cannot be read: it is held, and told once the guess is confirmed, or as notes if it was wrong.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Diagnostic, Direction, Stream

PROOF = 5
"""So many different messages that can be read are a proof, whatever else comes."""

ENOUGH = 16
"""After so many messages in which nothing can be read a guess may be taken back."""

MAX_HELD = 64
"""So many accusations that come after the guess are held: if it is not taken back by then, it is right."""

_WEIGHT = 1024
"""Of so many bytes in one frame each counts as a message more: a byte stream may be one long frame."""

_LOOKED_AT = 64 << 10
_MAX_STREAMS = 256


class Guess:
    """What speaks for the protocol of one server, and what against it."""

    def __init__(self, dissector: Dissector) -> None:
        self.dissector = dissector
        self.names: set[tuple[Direction, str]] = set()
        """The messages that can be read."""
        self._sound = 0
        self._foreign = 0
        self._slips = 0
        self.is_doubtful = False
        """Whether something came that may be another program's."""
        self.held: list[Diagnostic] = []
        """Who is to blame if the guess is right."""
        self._held_since = 0
        self.streams: dict[int, Stream] = {}
        """The latest streams that were read by this guess."""

    def take(
        self, stream: Stream, direction: Direction, decoded: Decoded, frame: Frame, counts: bool
    ) -> None:
        """What a frame says; one that came before the guess does not count against it."""
        if stream.id not in self.streams:
            self.streams[stream.id] = stream
            if len(self.streams) > _MAX_STREAMS:
                del self.streams[next(iter(self.streams))]
        if decoded.row is not None:
            if decoded.valid:
                self._sound += 1
                self.names.add((direction, decoded.row.name))
            else:
                self._slips += counts
                self.is_doubtful = True
            return
        weight = frame.size // _WEIGHT if frame.cut == "end" else self._weight(direction, decoded, frame)
        if weight:
            self._foreign += weight * counts
            self.is_doubtful = True

    def hold(self, flaws: list[Diagnostic], counts: bool) -> None:
        """Keep what may be another program's."""
        self.held += flaws
        self._held_since += len(flaws) * counts

    def _weight(self, direction: Direction, decoded: Decoded, frame: Frame) -> int:
        """For how many messages of another program a frame counts in which no message can be made out."""
        if frame.cut == "gap" or (decoded.flaws and all(flaw.severity == "note" for flaw in decoded.flaws)):
            return 0
        if frame.size <= _LOOKED_AT and self.dissector.recognise(frame.data, direction) is not None:
            return 0
        return 1 + frame.size // _WEIGHT

    @property
    def is_proven(self) -> bool:
        """Whether it is right, whatever comes, or nothing else can be waited for."""
        return len(self.names) >= PROOF or self._held_since >= MAX_HELD

    @property
    def is_unlikely(self) -> bool:
        """Whether more speaks against it than for it."""
        return self._against > min(self._sound, ENOUGH) * len(self.names)

    @property
    def is_disproved(self) -> bool:
        """Whether it need not wait any longer to be taken back."""
        return self._against >= ENOUGH and self.is_unlikely

    @property
    def _against(self) -> int:
        """How much speaks against it; a few slips are a beginner's."""
        return self._foreign + max(0, self._slips - ENOUGH)

    @property
    def sentence(self) -> str:
        """What is told when it is taken back."""
        words = ", ".join(sorted({name for _, name in self.names})) or "nothing"
        title = self.dissector.grammar.title
        return f"this is not {title} after all: {words} could be read, the rest is another program's"


def as_notes(held: list[Diagnostic]) -> list[Diagnostic]:
    """What was held, as it is told if the guess was wrong: nobody is to blame."""
    return [msgspec.structs.replace(flaw, severity="note", blame="unknown") for flaw in held]
