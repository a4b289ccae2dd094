"""Start of the application on the terminal, and the output after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from kiebitz.cli.terminal.console import has_keyboard, is_terminal
from kiebitz.cli.tui.playback_speed import PlaybackSpeed
from kiebitz.services.sessions import is_in_memory
from kiebitz.services.standard_streams import is_stderr_terminal, print_error_line, warn
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.cli.tui.navigation import Navigator
    from kiebitz.dissectors.filters import Filter


RECORDER_OUTPUT = "KIEBITZ_RECORDER_SAYS"
"""Environment variable with the descriptor to which the recording process writes its output."""


_NOT_FOR_TEXTUAL = ("COLUMNS", "LINES", "TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM")
"""Variables that Textual uses unchecked: terminal size, a module to load, a key of rich's table."""


def check_terminal(instead: str, may_read_elsewhere: bool = False) -> None:
    """Raise UsageError unless there is a terminal for output and keys; `instead` is the advice in it.

    If stdin is a pipe, keys may be read from the controlling terminal.
    """
    # Textual writes to stderr.
    if not (
        is_terminal() and is_stderr_terminal() and (has_keyboard() or (may_read_elsewhere and _has_tty()))
    ):
        raise click.UsageError(f"this needs a terminal for keys, output and errors: {instead}")


def _has_tty() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


def create_navigator(
    timeline: Timeline,
    path: str,
    player: str | None,
    wanted: Filter | None,
    game: int | None,
    pace: PlaybackSpeed,
    between: tuple[int, int] | None = None,
) -> Navigator:
    """Return the navigator of a session in the file at `path`, or of a capture read from it.

    Args:
        timeline: The session.
        path: Its database, or the capture.
        player: Whose view is shown; None for everything.
        wanted: A display filter.
        game: Number of a game in the session.
        pace: The playback speed.
        between: Ids of the first and the last event to show.
    """
    for name in _NOT_FOR_TEXTUAL:
        os.environ.pop(name, None)
    from kiebitz.cli.spectator.followed_session import FollowedSession
    from kiebitz.cli.tui.navigation import Navigator
    from kiebitz.cli.tui.strip_rendering import has_letters

    game_id = timeline.numbers.row_id_if_any("games", game)
    followed = FollowedSession(
        timeline, None if is_in_memory(timeline) else path, player, wanted, game_id, between
    )
    return Navigator(followed, pace, has_letters("←→"))


def run(viewer: Navigator, files: Sequence[str] = (), source: str = "") -> int:
    """Run the application until the user quits, and return the exit status.

    Whenever one of the protocol `files` is saved, the session is dissected again from its `source`.
    """
    from kiebitz.cli.tui.app import WatchApp
    from kiebitz.cli.tui.lists import LogTail
    from kiebitz.services.alteration.control_client import ControlClient

    followed = viewer.followed
    hands = ControlClient(lambda: followed.place) if followed.is_live else None
    descriptor = os.environ.get(RECORDER_OUTPUT, "")
    said = LogTail(int(descriptor)) if descriptor.isdecimal() else None
    app = WatchApp(viewer, said, hands)
    with ExitStack() as stack:
        if files:
            from kiebitz.services.reloading import Reloader

            put = app.reloads.put
            reloader = Reloader(files, [source], lambda found: put(found[0]), put)
            stack.callback(reloader.close)
            reloader.start()
        status = app.run()
    if said is not None and said.is_orphaned:
        warn("the recording process is gone; its output:")
        while said.read():
            pass
        for line in said.lines:
            print_error_line(line)
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0 if status is None else status
