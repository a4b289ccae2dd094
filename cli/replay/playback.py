"""A replay into a pipe: its pace and its output."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable

from kiebitz.cli.spectator.view import RECENT, SpectatorView
from kiebitz.cli.terminal.console import show_line
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.model import Event, Game
from kiebitz.storage.read.seek import Step
from kiebitz.storage.read.timeline import Timeline


class Pacing(ABC):
    """The pace of a replay."""

    @abstractmethod
    def wait(self, step: Step) -> bool:
        """Wait until the next step is due; return False to end the replay."""


class RecordedPace(Pacing):
    """The recorded pace, times `speed`; 0 never waits.

    Each time is computed from the first, so that rendering times do not add up.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._origin: tuple[int, float] | None = None

    def wait(self, step: Step) -> bool:
        if step.next_ns is None or self._speed == 0:
            return True
        now = time.monotonic()
        if self._origin is None:
            self._origin = (step.event.ts_ns, now)
        first_ns, started = self._origin
        time.sleep(max((step.next_ns - first_ns) / 1e9 / self._speed - (now - started), 0.0))
        return True


class LinePace(Pacing):
    """Single steps: each line of stdin advances, a q or the end of stdin ends the replay."""

    def wait(self, step: Step) -> bool:
        if step.next_ns is None:
            return True
        line = "" if sys.stdin is None else sys.stdin.readline()
        return line != "" and line.strip().lower() != "q"


class PipeOutput:
    """Output that only moves forward: a line for each event, then the table."""

    def __init__(self, timeline: Timeline, spectator_view: SpectatorView, game: Game | None) -> None:
        self._timeline = timeline
        self._onlooker = spectator_view
        self._game = game.id if game is not None else None
        self._recent: dict[int, deque[Event]] = {}

    def take(self, step: Step) -> None:
        """Write the next event."""
        event = step.event
        recent = self._recent.get(event.table_id)
        if recent is None:
            earlier = self._timeline.recent(event.table_id, event.seq - 1, RECENT)
            recent = self._recent[event.table_id] = deque(earlier, RECENT)
        recent.append(event)
        show_line(self._onlooker.line(event))

    def finish(self, step: Step) -> None:
        """Render the table as it is after the last event."""
        events = self._recent[step.event.table_id]
        Console().print(self._onlooker.picture(step.event.table_id, step.state, events, self._game))

    def svg(self, step: Step) -> bytes:
        """Return the table after the last event as SVG."""
        table_id = step.event.table_id
        return self._onlooker.svg(table_id, step.state, self._recent[table_id], self._game)


def play(steps: Iterable[Step], paper: PipeOutput, timing: Pacing) -> Step | None:
    """Write the steps, each when it is due; return the last one, None if there is none."""
    last: Step | None = None
    for step in steps:
        last = step
        paper.take(step)
        # No further step is requested after the last one: that would discard its state.
        if not timing.wait(step) or step.next_ns is None:
            break
    if last is not None:
        paper.finish(last)
    return last
