"""A replay into a pipe: its pace and its output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.cli.terminal.console import show_line
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event, Game
from kiebitz.storage.read.timeline import Timeline


class RecordedPace:
    """The recorded pace, times `speed`; 0 never waits.

    Each time is computed from the first, so that rendering times do not add up.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._origin: tuple[int, float] | None = None

    def wait(self, ts_ns: int, next_ns: int) -> bool:
        """Wait after an event until the next one is due (times in ns); return True: the replay continues."""
        if self._speed == 0:
            return True
        now = time.monotonic()
        if self._origin is None:
            self._origin = (ts_ns, now)
        first_ns, started = self._origin
        time.sleep(max((next_ns - first_ns) / 1e9 / self._speed - (now - started), 0.0))
        return True


def wait_for_line(_ts_ns: int, _next_ns: int) -> bool:
    """Wait for a line of stdin; return False, which ends the replay, for a q or the end of stdin."""
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


def play(events: Iterator[Event], paper: PipeOutput, wait: Callable[[int, int], bool]) -> Event | None:
    """Write the events, each when `wait` returns True; return the last one, None if there is none."""
    last, following = None, next(events, None)
    while following is not None:
        last, following = following, next(events, None)
        paper.take(last)
        if following is not None and not wait(last.ts_ns, following.ts_ns):
            break
    if last is not None:
        paper.finish(last)
    return last
