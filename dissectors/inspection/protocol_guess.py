"""A guess at a server's protocol: one message leads to it, later ones confirm or disprove it.

Other programs share words with a game, so one word is no proof. Until there are several, errors about
unreadable frames are held; they are reported once the guess is confirmed, or as notes if it was wrong.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Diagnostic, Direction, Stream

PROOF_MESSAGES = 5
"""Number of different readable messages that prove a guess, whatever else comes."""

ENOUGH_MESSAGES = 16
"""Number of unreadable messages after which a guess may be withdrawn."""

MAX_HELD = 64
"""Maximum number of held errors since the guess; a guess not withdrawn by then is right."""

_BYTES_PER_MESSAGE = 1024
"""Number of bytes in one frame that count as one more message: a byte stream may be one long frame."""

_MAX_EXAMINED = 64 << 10
_MAX_STREAMS = 256


class ProtocolGuess:
    """The evidence for and against the protocol of one server."""

    def __init__(self, dissector: Dissector) -> None:
        self.dissector = dissector
        self.names: set[tuple[Direction, str]] = set()
        """The readable messages."""
        self._sound = 0
        self._foreign = 0
        self._slips = 0
        self.is_doubtful = False
        """True if there was input that may be another program's."""
        self.held: list[Diagnostic] = []
        """The errors to report if the guess is right."""
        self._held_since = 0
        self.streams: dict[int, Stream] = {}
        """The latest streams that were read by this guess."""

    def take(
        self, stream: Stream, direction: Direction, decoded: Decoded, frame: Frame, counts: bool
    ) -> None:
        """Weigh a frame; one from before the guess does not count against it."""
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
        weight = (
            frame.size // _BYTES_PER_MESSAGE
            if frame.cut == "end"
            else self._weight(direction, decoded, frame)
        )
        if weight:
            self._foreign += weight * counts
            self.is_doubtful = True

    def hold(self, diagnostics: list[Diagnostic], counts: bool) -> None:
        """Hold errors that may be about another program's messages."""
        self.held += diagnostics
        self._held_since += len(diagnostics) * counts

    def _weight(self, direction: Direction, decoded: Decoded, frame: Frame) -> int:
        """Return the number of another program's messages that an unreadable frame counts as."""
        if frame.cut == "gap" or (
            decoded.violations and all(violation.severity == "note" for violation in decoded.violations)
        ):
            return 0
        if frame.size <= _MAX_EXAMINED and self.dissector.recognise(frame.data, direction) is not None:
            return 0
        return 1 + frame.size // _BYTES_PER_MESSAGE

    @property
    def is_proven(self) -> bool:
        """True if the guess is right whatever comes, or no more evidence can be expected."""
        return len(self.names) >= PROOF_MESSAGES or self._held_since >= MAX_HELD

    @property
    def is_unlikely(self) -> bool:
        """True if there is more evidence against it than for it."""
        return self._against > min(self._sound, ENOUGH_MESSAGES) * len(self.names)

    @property
    def is_disproved(self) -> bool:
        """True if it can be withdrawn without waiting any longer."""
        return self._against >= ENOUGH_MESSAGES and self.is_unlikely

    @property
    def _against(self) -> int:
        """The evidence against it; a few malformed messages may be a beginner's mistakes."""
        return self._foreign + max(0, self._slips - ENOUGH_MESSAGES)

    @property
    def sentence(self) -> str:
        """The text of the note about its withdrawal."""
        words = ", ".join(sorted({name for _, name in self.names})) or "nothing"
        title = self.dissector.grammar.title
        return f"this is not {title} after all: {words} could be read, the rest is another program's"


def as_notes(held: list[Diagnostic]) -> list[Diagnostic]:
    """Return held errors as notes that blame no peer, for a wrong guess."""
    return [msgspec.structs.replace(diagnostic, severity="note", blame="unknown") for diagnostic in held]
