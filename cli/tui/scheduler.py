"""As time goes by: what is recorded is followed, what is looked for is searched, what plays goes on.

All of it takes turns with the keys, a few milliseconds at a time.
"""

from __future__ import annotations

import asyncio
import select
import signal
import time
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from textual.app import App
from textual.css.query import NoMatches
from textual.timer import Timer

from kiebitz.cli.status import FAILED
from kiebitz.cli.terminal.keyboard import has_keyboard
from kiebitz.cli.tui.log_tail import Said
from kiebitz.cli.tui.navigation import Viewer

_LOOK_S = 0.04
"""How often is looked whether anything has come: less than 50 ms after a commit, for 1 % of a core."""

_SHOW_S = 0.035
"""What comes more quickly than this is shown at once: each picture takes up to half of it to draw."""

_GLANCE_S = 0.25
"""How often it is looked where nothing is recorded."""


_HEAR_S = 1.0
"""How often is looked whether the terminal is still there."""

_SEARCH_S = 0.01
_SHOW_FOUND_S = 0.25
"""So long is searched before the keys have their turn, and so often is shown what was found."""

_LEAST_S = 0.01
"""So long an event is shown at least while it plays."""


class Sight(Protocol):
    """What is seen, and shown again when something has changed."""

    def told(self) -> AbstractContextManager[None]:
        """Tells of a database that cannot be read now."""

    def show(self) -> None:
        """Show where one is now."""

    def show_what_came(self) -> None:
        """Show what was recorded since the last time."""

    def show_status(self) -> None:
        """Say how it goes."""

    def show_said(self) -> None:
        """The program that records has said something more."""

    def tick(self) -> None:
        """Show what goes on with time alone."""


class Passing:
    """What the application does by itself; `said` is what the program says that records."""

    def __init__(self, app: App[Any], sight: Sight, viewer: Viewer, said: Said | None) -> None:
        self._app = app
        self._sight = sight
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
        """Look again and again; where nothing is recorded, only whether what failed can be read now."""
        # When it ends, there is nothing any more in which something could be shown.
        with suppress(NoMatches):
            while True:
                if self._has_hung_up():
                    self._app.exit(128 + signal.SIGHUP)
                self._look()
                self._sight.tick()
                is_live = self._viewer.watched.is_live or self._said is not None
                await asyncio.sleep(_LOOK_S if is_live else _GLANCE_S)

    def play(self) -> None:
        """Show the next event when it is due."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        with self._sight.told():
            due_s = self._viewer.due_s()
            if due_s is not None:
                # One that is to ring once, and is late, is left out by Textual.
                self._timer = self._app.set_interval(max(due_s, _LEAST_S), self._play_on)

    def _play_on(self) -> None:
        with self._sight.told():
            self._viewer.play_on()
        self.play()
        self._sight.show()

    def _has_hung_up(self) -> bool:
        """Whether the terminal is gone. Who does not belong to it is told by no signal, and would read on."""
        now = time.monotonic()
        if self._keyboard is None or now - self._heard_s < _HEAR_S:
            return False
        self._heard_s = now
        return any(event & select.POLLHUP for _, event in self._keyboard.poll(0))

    def _look(self) -> None:
        with self._sight.told():
            self._has_come |= self._viewer.tick()
            now = time.monotonic()
            if not self._has_come:
                self._show_changed_status()
            elif now - self._shown_s >= _SHOW_S:
                self._has_come = False
                self._shown_s = now
                self._sight.show_what_came()
        if self._viewer.is_searching and not self._searches:
            self._app.run_worker(self._search())
        if self._said is not None and self._said.read():
            self._sight.show_said()
        if self._said is not None and self._said.is_left_alone:
            # The shell has the terminal again, and would read every other key.
            self._app.exit(FAILED)

    def _show_changed_status(self) -> None:
        watched = self._viewer.watched
        status = watched.trouble, watched.ending, self._viewer.is_searching
        if status != self._status:
            self._status = status
            self._sight.show_status()

    async def _search(self) -> None:
        """Look for what the lists want, a little at a time: a key that is pressed meanwhile comes first."""
        self._searches = True
        shown_s = time.monotonic()
        with suppress(NoMatches):
            while self._viewer.is_searching:
                with self._sight.told():
                    self._viewer.search(_SEARCH_S)
                if time.monotonic() - shown_s > _SHOW_FOUND_S:
                    self._sight.show()
                    shown_s = time.monotonic()
                await asyncio.sleep(0.001)
            self._searches = False
            self._sight.show()
