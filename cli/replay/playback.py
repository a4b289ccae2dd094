"""A replay into a pipe: its pace and its output."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.cli.terminal.console import show_line
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event, Game
from kiebitz.storage.read.timeline import Timeline


class Pacing(ABC):
    """The pace of a replay."""

    @abstractmethod
    def wait(self, ts_ns: int, next_ns: int) -> bool:
        """Wait after an event until the next one is due (times in ns); return False to end the replay."""


class RecordedPace(Pacing):
    """The recorded pace, times `speed`; 0 never waits.

    Each time is computed from the first, so that rendering times do not add up.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._origin: tuple[int, float] | None = None

    def wait(self, ts_ns: int, next_ns: int) -> bool:
        if self._speed == 0:
            return True
        now = time.monotonic()
        if self._origin is None:
            self._origin = (ts_ns, now)
        first_ns, started = self._origin
        time.sleep(max((next_ns - first_ns) / 1e9 / self._speed - (now - started), 0.0))
        return True


class LinePace(Pacing):
    """Single steps: each line of stdin advances, a q or the end of stdin ends the replay."""

    def wait(self, ts_ns: int, next_ns: int) -> bool:
        line = "" if sys.stdin is None else sys.stdin.readline()
        return line != "" and line.strip().lower() != "q"


class PipeOutput:
    """Output that only moves forward: a line for each event, then the table."""

    def __init__(self, timeline: Timeline, spectator_view: SpectatorView, game: Game | None) -> None:
        self._timeline = timeline
        self._onlooker = spectator_view
        self._game = game.id if game is not None else None

    def take(self, event: Event) -> None:
        """Write the next event."""
        show_line(self._onlooker.line(event))

    def finish(self, event: Event) -> None:
        """Render the table as it is after the last event."""
        Console().print(self._onlooker.picture(event.table_id, *self._moment(event), self._game))

    def svg(self, event: Event) -> bytes:
        """Return the table after the last event as SVG."""
        return self._onlooker.svg(event.table_id, *self._moment(event), self._game)

    def _moment(self, event: Event) -> tuple[State, list[Event]]:
        state = self._timeline.state_at(event.table_id, event.seq)
        return self._onlooker.moment(event.table_id, event.seq, state, self._game)


def play(events: Iterator[Event], paper: PipeOutput, timing: Pacing) -> Event | None:
    """Write the events, each when it is due; return the last one, None if there is none."""
    last, following = None, next(events, None)
    while following is not None:
        last, following = following, next(events, None)
        paper.take(last)
        if following is not None and not timing.wait(last.ts_ns, following.ts_ns):
            break
    if last is not None:
        paper.finish(last)
    return last
