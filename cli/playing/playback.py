"""A replay in the terminal: who sets the pace, and where it is shown."""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from kiebitz.cli.onlooker import RECENT, Onlooker
from kiebitz.cli.terminal.console import show_line
from kiebitz.cli.terminal.keyboard import Keyboard, is_quit
from kiebitz.cli.terminal.screen import (
    AnyConsole,
    Console,
    ConsoleOptions,
    Live,
    RenderableType,
    RenderResult,
    Segment,
    Text,
)
from kiebitz.dissectors.records import Event
from kiebitz.storage.moments import Step
from kiebitz.storage.timeline import GameRow, Timeline

_FRAME_S = 1 / 30
"""Events that come closer together than this are not all drawn."""

_NAP_S = 1.0

LINES_KEPT = 100
"""Events that are kept to be shown below the table."""


class Timing(AbstractContextManager["Timing"]):
    """What decides when the next event is shown; entered for as long as the replay lasts.

    Where there is a `keyboard`, it is listened to meanwhile.
    """

    def __init__(self, keyboard: Keyboard | None = None) -> None:
        self._keyboard = keyboard

    def __enter__(self) -> Self:
        if self._keyboard is not None:
            self._keyboard.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._keyboard is not None:
            self._keyboard.__exit__(*failure)

    @abstractmethod
    def pause_s(self, step: Step) -> float:
        """How long this step would be seen, in seconds, if it were drawn now."""

    @abstractmethod
    def wait(self, step: Step) -> bool:
        """Wait until the next step is due; False ends the replay."""


class Pace(Timing):
    """The recorded pace, times `speed`; 0 waits for nothing. With a keyboard, q ends.

    Each moment is reckoned from the first, so that the time it takes to draw adds up to nothing.
    """

    def __init__(self, speed: float, keyboard: Keyboard | None = None) -> None:
        super().__init__(keyboard)
        self._speed = speed
        self._origin: tuple[int, float] | None = None

    def pause_s(self, step: Step) -> float:
        if step.next_ns is None or self._speed == 0:
            return 0.0
        now = time.monotonic() - (self._keyboard.stopped_s if self._keyboard is not None else 0.0)
        if self._origin is None:
            self._origin = (step.event.ts_ns, now)
        first_ns, started = self._origin
        return (step.next_ns - first_ns) / 1e9 / self._speed - (now - started)

    def wait(self, step: Step) -> bool:
        while True:
            left = max(self.pause_s(step), 0.0)
            if self._keyboard is None:
                time.sleep(min(left, _NAP_S))
            else:
                key = self._keyboard.key(min(left, _NAP_S))
                if key is not None:
                    if is_quit(key):
                        return False
                    continue
            if left <= _NAP_S:
                return True


class Lines(Timing):
    """Step by step, without a keyboard: each line of stdin goes on, a q or the end of stdin ends."""

    def pause_s(self, step: Step) -> float:
        return _FRAME_S

    def wait(self, step: Step) -> bool:
        if step.next_ns is None:
            return True
        line = sys.stdin.readline()
        return line != "" and line.strip().lower() != "q"


class Keys(Timing):
    """Step by step: Enter or the space bar goes on, q ends."""

    def __init__(self, keyboard: Keyboard) -> None:
        super().__init__(keyboard)
        self._keys = keyboard

    def pause_s(self, step: Step) -> float:
        return _FRAME_S

    def wait(self, step: Step) -> bool:
        if step.next_ns is None:
            return True
        while True:
            key = self._keys.key(None)
            if key in (b"\r", b"\n", b" "):
                return True
            if is_quit(key):
                return False


class Stage(AbstractContextManager["Stage"]):
    """Where a replay is shown: it remembers the latest events, and draws their table at the end."""

    def __init__(self, timeline: Timeline, onlooker: Onlooker, game: GameRow | None) -> None:
        self._timeline = timeline
        self._onlooker = onlooker
        self._game = game.id if game is not None else None
        self._recent: dict[int, deque[Event]] = {}
        self.console = Console()

    def __exit__(self, *_: object) -> None:
        """Nothing is to be undone."""

    def leave(self) -> None:
        """Give the terminal back for a while."""

    def come_back(self) -> None:
        """Go on as before."""

    def take(self, step: Step) -> None:
        """The next event."""
        event = step.event
        recent = self._recent.get(event.table_id)
        if recent is None:
            earlier = self._timeline.recent(event.table_id, event.seq - 1, RECENT)
            recent = self._recent[event.table_id] = deque(earlier, RECENT)
        recent.append(event)

    def draw(self, step: Step) -> None:
        """Show the table as it is after the latest event, where that can be seen."""

    def finish(self, step: Step) -> None:
        """Leave the table as it is after the last event."""
        self.console.print(self.picture(step))

    def picture(self, step: Step) -> RenderableType:
        """The table of a step."""
        table_id = step.event.table_id
        return self._onlooker.picture(table_id, step.state, self._recent[table_id], self._game)

    def svg(self, step: Step) -> bytes:
        """The same as SVG."""
        table_id = step.event.table_id
        return self._onlooker.svg(table_id, step.state, self._recent[table_id], self._game)

    def line(self, event: Event) -> str:
        """An event on one line, its time first."""
        start = f"{self._onlooker.seconds(event):12.6f}  {self._onlooker.where(event)}"
        return start + self._onlooker.sentence(event)


class Paper(Stage):
    """Output that is no terminal: a line for each event."""

    def take(self, step: Step) -> None:
        super().take(step)
        show_line(self.line(step.event))


class Screen(Stage):
    """The whole terminal: the table, the latest events below it, and how the replay goes."""

    def __init__(self, timeline: Timeline, onlooker: Onlooker, game: GameRow | None, how: str) -> None:
        super().__init__(timeline, onlooker, game)
        self._how = how
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._live = Live(console=self.console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def leave(self) -> None:
        self._live.stop()

    def come_back(self) -> None:
        self._live.start(refresh=True)

    def take(self, step: Step) -> None:
        super().take(step)
        self._lines.append(self.line(step.event))

    def draw(self, step: Step) -> None:
        self._live.update(_Frame(self.picture(step), self._lines, self._how), refresh=True)

    def finish(self, step: Step) -> None:
        super().finish(step)
        self.console.print(Text(self.line(step.event)), soft_wrap=True)


class _Frame:
    """One screenful: the picture, as many of the latest events as there is room for, and the last line."""

    def __init__(self, picture: RenderableType, lines: Sequence[str], how: str) -> None:
        self._picture = picture
        self._lines = lines
        self._how = how

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.size.height
        picture = console.render_lines(self._picture, options.reset_height(), pad=False)
        picture = picture[: max(0, height - 2)]
        for row in picture:
            yield from row
            yield Segment.line()
        room = height - len(picture) - 1
        shown = list(self._lines)[-room:] if room > 0 else []
        for line in shown:
            style = "" if line is shown[-1] else "dim"
            yield Text(line, style, no_wrap=True, overflow="ellipsis")
        yield from [Text()] * (room - len(shown))
        yield Text(self._how, "reverse", no_wrap=True, overflow="ellipsis", end="")


def play(steps: Iterable[Step], stage: Stage, timing: Timing) -> Step | None:
    """Show the steps, each when it is due; gives the last one shown, None if there is none.

    Steps that follow each other faster than anybody can see are not all drawn.
    """
    last: Step | None = None
    drawn = 0.0
    with timing:
        with stage:
            for step in steps:
                last = step
                stage.take(step)
                if timing.pause_s(step) >= _FRAME_S or time.monotonic() - drawn >= _FRAME_S:
                    stage.draw(step)
                    drawn = time.monotonic()
                # After the last one nothing more is asked for: that would take its state away.
                if not timing.wait(step) or step.next_ns is None:
                    break
        if last is not None:
            stage.finish(last)
    return last
