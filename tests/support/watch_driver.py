"""Drives the application of `kiebitz watch` without a terminal: types, clicks, reads the screen as text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any

from command import CAPTURES
from imported_databases import database_of
from textual.pilot import Pilot
from walks import Walk

from kiebitz.cli.options.session import open_session
from kiebitz.cli.tui.app import WatchApp
from kiebitz.cli.tui.listing import Listing
from kiebitz.cli.tui.lists import LogTail
from kiebitz.cli.tui.navigation import Navigator
from kiebitz.cli.tui.playback_speed import PlaybackSpeed
from kiebitz.cli.tui.run import create_navigator
from kiebitz.services.alteration.control_client import ControlClient
from kiebitz.storage.read.conditions import compile_optional_filter

PATIENCE_S = 8.0

_NAMES = {
    " ": "space",
    ",": "comma",
    "/": "slash",
    "=": "equals_sign",
    '"': "quotation_mark",
    "?": "question_mark",
}
"""Textual's names of keys that are no letters."""

_PACE = "speed", "max_gap_s", "every_s"
"""Options of a walk that are a `PlaybackSpeed`."""


class Sight:
    """The running application."""

    def __init__(self, pilot: Pilot[Any], app: WatchApp) -> None:
        self.pilot = pilot
        self.app = app

    @property
    def viewer(self) -> Navigator:
        return self.app.viewer

    @property
    def place(self) -> int:
        """Return which event of the course one is at, from 1."""
        course = self.viewer.course
        assert course is not None
        return course.place + 1

    @property
    def lines(self) -> list[str]:
        """The screen's lines, without colours."""
        strips = self.app.screen._compositor.render_strips(self.app.size)
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        """Return the same in one."""
        return "\n".join(self.lines)

    def shows(self, text: str) -> bool:
        """Return True if a text is on the screen, perhaps with line ends between its words."""
        return text in self.text or text in " ".join(self.text.split())

    @property
    def status(self) -> str:
        """Return the lines above the keys that say how it goes."""
        region = self.app.query_one("#status").region
        return "\n".join(self.lines[region.y : region.bottom])

    def rows(self, pane: str) -> list[str]:
        """Return all rows of a pane, whether they are in sight or not."""
        rows = self.app.query_one(f"#{pane}", Listing).rows
        return [line.plain for line in rows.lines(0, len(rows))]

    async def settle(self) -> None:
        """Wait until nothing more comes of what was done."""
        await self.pilot.pause()
        await self.until(lambda: not self.viewer.is_searching, "the end of the search")
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Type keys, by Textual's names."""
        await self.pilot.press(*keys)
        await self.settle()

    async def write(self, text: str) -> None:
        """Type a text."""
        await self.press(*(_NAMES.get(letter, letter) for letter in text))

    async def at(self, place: int) -> None:
        """Be at an event, counted from 1."""
        self.viewer.move_to(place - 1)
        self.app.show()
        await self.settle()

    async def click(self, target: str, column: str, row: str, times: int = 1) -> None:
        """Click into a part of the screen, or below the line with a text; column -1 is the last one."""
        if target.startswith("#"):
            region = self.app.query_one(target).region
            x, y, width = region.x, region.y, region.width
        else:
            (y,) = (number for number, line in enumerate(self.lines) if target in line)
            x, width = 0, self.app.size.width
        await self.pilot.click(offset=(x + int(column) % width, y + int(row)), times=times)
        await self.settle()

    async def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for something that takes its time."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not true():
                    await self.pilot.pause(0.01)
        except TimeoutError:
            raise AssertionError(f"{what} did not come:\n{self.text}") from None


def watch(
    session: str,
    script: Callable[[Sight], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
    *,
    player: str | None = None,
    wanted: str | None = None,
    game: int | None = None,
    pace: PlaybackSpeed | None = None,
    said: LogTail | None = None,
    hands: ControlClient | None = None,
) -> WatchApp:
    """Run the application on a capture or a database, with the script alongside."""
    path = session if "/" in session and Path(session).parent != CAPTURES else database_of(Path(session).name)
    timeline = open_session(path)
    viewer = create_navigator(
        timeline, path, player, compile_optional_filter(wanted), game, pace or PlaybackSpeed()
    )
    app = WatchApp(viewer, said, hands)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            sight = Sight(pilot, app)
            await sight.settle()
            await script(sight)

    try:
        asyncio.run(run())
    finally:
        timeline.connection.close()
    return app


def take(
    walk: Walk, more: Mapping[str, Callable[..., Any]] | None = None, *, session: str = "", **options: Any
) -> None:
    """Take the steps of a walk, of another session if given; `more` are deeds outside the application."""

    async def script(sight: Sight) -> None:
        deeds: dict[str, Callable[..., Any]] = {
            "at": lambda place: sight.at(int(place)),
            "click": sight.click,
            "doubleclick": lambda target, column, row: sight.click(target, column, row, 2),
            "type": sight.write,
            "wait": lambda seconds: sight.pilot.pause(float(seconds)),
            **(more or {}),
        }
        for step in walk.steps:
            done = step.deed(deeds)
            if isawaitable(done):
                await done
            elif done is None:
                await sight.press(*step.keys)
            for text in step.there:
                await sight.until(lambda text=text: sight.shows(text), f"{text} after {step.line}")  # type: ignore[misc]
            for text in step.gone:
                await sight.until(lambda text=text: not sight.shows(text), f"not {text} after {step.line}")  # type: ignore[misc]

    given = walk.options
    columns, _, rows = given.get("size", "80x24").partition("x")
    watch(
        session or walk.session,
        script,
        (int(columns), int(rows)),
        player=given.get("as"),
        wanted=given.get("filter"),
        game=int(given["game"]) if "game" in given else None,
        pace=PlaybackSpeed(**{name: float(given[name]) for name in _PACE if name in given}),
        **options,
    )
