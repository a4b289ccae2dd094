"""Lines of one connection, put together to messages: a message may be a line, a block or a Paket."""

from __future__ import annotations

from peers.program import LONGEST, TooLong

MODEL_LINES = 30
MOST_LINES = 64


class Frames:
    """A message on each line."""

    def __init__(self) -> None:
        self._open = b""

    def line(self, line: bytes) -> bytes | None:
        """Return a message that this line completes; None if there is none. Raises TooLong."""
        return line + b"\n"

    def _add(self, line: bytes) -> None:
        self._open += line + b"\n"
        if len(self._open) > LONGEST:
            raise TooLong

    def _whole(self) -> bytes:
        whole, self._open = self._open, b""
        return whole


class Blocks(Frames):
    """Messages of CGML: lines with an empty one behind them."""

    def line(self, line: bytes) -> bytes | None:
        is_end = not line.strip()
        if not is_end or self._open:
            self._add(line)
        return self._whole() if is_end and self._open else None


class Pakete(Frames):
    """Pakete of Schafkopf: lines up to `!END`, or a MODEL's; text between two Pakete is skipped."""

    def line(self, line: bytes) -> bytes | None:
        if not self._open and not line.startswith(b"!"):
            return None
        self._add(line)
        count = self._open.count(b"\n")
        is_model = self._open.startswith(b"!MODEL\n")
        is_end = count == MODEL_LINES if is_model else line == b"!END" or count > MOST_LINES
        return self._whole() if is_end else None
