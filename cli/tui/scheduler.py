"""Periodic tasks of the application: following the recording, searching, playback.

Each takes a few milliseconds at a time, so that keys are handled in between.
"""

from __future__ import annotations

import asyncio
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.css.query import NoMatches
from textual.timer import Timer

from kiebitz.cli.status import FAILED
from kiebitz.cli.terminal.console import has_keyboard
from kiebitz.cli.tui.lists import LogTail
from kiebitz.cli.tui.navigation import Navigator

if TYPE_CHECKING:
    from kiebitz.cli.tui.app import WatchApp

_POLL_S = 0.04
"""Interval in seconds between two looks for new events: under 50 ms after a commit, for 1 % of a core."""

_MIN_UPDATE_S = 0.035
"""Minimum interval in seconds between two updates; drawing takes up to half of it."""

_IDLE_POLL_S = 0.25
"""Interval in seconds between two looks if nothing is recorded."""


_HANGUP_CHECK_S = 1.0
"""Interval in seconds between two checks that the terminal exists."""

_SEARCH_S = 0.01
_SHOW_FOUND_S = 0.25
"""Time in seconds to search before keys are handled, and between two updates with the results."""

_MIN_EVENT_S = 0.01
"""Minimum time in seconds to show an event during playback."""


class Scheduler:
    """The application's periodic tasks; `said` is the output of the recording process."""

    def __init__(self, app: WatchApp, viewer: Navigator, said: LogTail | None) -> None:
        self._app = app
        self._viewer = viewer
        self._said = said
        self._timer: Timer | None = None
        self._has_come = False
        self._shown_s = 0.0
        self._searches = False
        self._status: object = None
        self._heard_s = 0.0
        self._keyboard: select.poll | None = None
        if has_keyboard():
            self._keyboard = select.poll()
            self._keyboard.register(0, 0)

    async def follow(self) -> None:
        """Poll for new events and output until the application ends."""
        # When the application ends, its widgets are gone.
        with suppress(NoMatches):
            while True:
                if self._has_hung_up():
                    self._app.exit(128 + signal.SIGHUP)
                self._look()
                self._app.tick()
                is_live = self._viewer.followed.is_live or self._said is not None
                await asyncio.sleep(_POLL_S if is_live else _IDLE_POLL_S)

    def play(self) -> None:
        """Schedule the next event of the playback."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        with self._app.reporting_errors():
            due_s = self._viewer.due_s()
            if due_s is not None:
                # Textual skips a one-shot timer that is late; an interval timer is not skipped.
                self._timer = self._app.set_interval(max(due_s, _MIN_EVENT_S), self._play_next)

    def _play_next(self) -> None:
        with self._app.reporting_errors():
            self._viewer.play_next()
        self.play()
        self._app.show()

    def _has_hung_up(self) -> bool:
        """Return True if the terminal is gone. A process outside its session gets no SIGHUP."""
        now = time.monotonic()
        if self._keyboard is None or now - self._heard_s < _HANGUP_CHECK_S:
            return False
        self._heard_s = now
        return any(event & select.POLLHUP for _, event in self._keyboard.poll(0))

    def _look(self) -> None:
        with self._app.reporting_errors():
            self._has_come |= self._viewer.tick()
            now = time.monotonic()
            if not self._has_come:
                followed = self._viewer.followed
                status = followed.trouble, followed.ending, self._viewer.is_searching
                if status != self._status:
                    self._status = status
                    self._app.show_status()
            elif now - self._shown_s >= _MIN_UPDATE_S:
                self._has_come = False
                self._shown_s = now
                self._app.show_new_events()
        if self._viewer.is_searching and not self._searches:
            self._app.run_worker(self._search())
        if self._said is not None and self._said.read():
            self._app.show_recorder_output()
        if self._said is not None and self._said.is_orphaned:
            # The shell reads from the terminal again, and would take every other key.
            self._app.exit(FAILED)

    async def _search(self) -> None:
        """Search in short steps, so that keys are handled in between."""
        self._searches = True
        shown_s = time.monotonic()
        with suppress(NoMatches):
            while self._viewer.is_searching:
                with self._app.reporting_errors():
                    self._viewer.search(_SEARCH_S)
                if time.monotonic() - shown_s > _SHOW_FOUND_S:
                    self._app.show()
                    shown_s = time.monotonic()
                await asyncio.sleep(0.001)
            self._searches = False
            self._app.show()
