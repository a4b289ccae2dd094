"""A replay into a pipe: who sets the pace, and what is written."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable

from kiebitz.cli.spectator.view import RECENT, Onlooker
from kiebitz.cli.terminal.console import show_line
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.model import Event, Game
from kiebitz.storage.read.seek import Step
from kiebitz.storage.read.timeline import Timeline


class Timing(ABC):
    """What decides when the next event is shown."""

    @abstractmethod
    def wait(self, step: Step) -> bool:
        """Wait until the next step is due; False ends the replay."""


class Recorded(Timing):
    """The recorded pace, times `speed`; 0 waits for nothing.

    Each moment is reckoned from the first, so that the time it takes to draw adds up to nothing.
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


class Lines(Timing):
    """Step by step: each line of stdin goes on, a q or the end of stdin ends."""

    def wait(self, step: Step) -> bool:
        if step.next_ns is None:
            return True
        line = "" if sys.stdin is None else sys.stdin.readline()
        return line != "" and line.strip().lower() != "q"


class Paper:
    """Output on which nobody turns back: a line for each event, then the table."""

    def __init__(self, timeline: Timeline, onlooker: Onlooker, game: Game | None) -> None:
        self._timeline = timeline
        self._onlooker = onlooker
        self._game = game.id if game is not None else None
        self._recent: dict[int, deque[Event]] = {}

    def take(self, step: Step) -> None:
        """The next event."""
        event = step.event
        recent = self._recent.get(event.table_id)
        if recent is None:
            earlier = self._timeline.recent(event.table_id, event.seq - 1, RECENT)
            recent = self._recent[event.table_id] = deque(earlier, RECENT)
        recent.append(event)
        show_line(self._onlooker.line(event))

    def finish(self, step: Step) -> None:
        """Draw the table as it is after the last event."""
        events = self._recent[step.event.table_id]
        Console().print(self._onlooker.picture(step.event.table_id, step.state, events, self._game))

    def svg(self, step: Step) -> bytes:
        """The same as SVG."""
        table_id = step.event.table_id
        return self._onlooker.svg(table_id, step.state, self._recent[table_id], self._game)


def play(steps: Iterable[Step], paper: Paper, timing: Timing) -> Step | None:
    """Write the steps, each when it is due; gives the last one, None if there is none."""
    last: Step | None = None
    for step in steps:
        last = step
        paper.take(step)
        # After the last one nothing more is asked for: that would take its state away.
        if not timing.wait(step) or step.next_ns is None:
            break
    if last is not None:
        paper.finish(last)
    return last
