"""How a recording is shown while it goes on: line by line, as a table on the terminal, or in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from typing import Any

import click

from kiebitz.cli.tui.companion import Beside, watch_option
from kiebitz.cli.web.companion import PageBeside, serve_option
from kiebitz.services.recording.stop_conditions import Ending
from kiebitz.storage.recording.recorder import Recorder

Companion = Beside | PageBeside
Command = Callable[..., Any]


def showing_options(command: Command) -> Command:
    """Give a command that records `wanted`, a filter's text, `quiet`, `is_watched` and `place`."""
    options = (
        click.option(
            "-Y", "wanted", metavar="FILTER", help="Show only what meets this filter; all is recorded."
        ),
        click.option("-q", "quiet", is_flag=True, help="Show nothing of what happens."),
        watch_option,
        serve_option,
    )
    return reduce(lambda made, option: option(made), reversed(options), command)


@contextmanager
def companions(is_watched: bool, place: tuple[str, int] | None) -> Iterator[Sequence[Companion]]:
    """Those that are asked for, until the recording is over. Raises UsageError without a terminal for one."""
    found: list[Companion] = []
    if place is not None:
        found.append(PageBeside(place))
    if is_watched:
        found.append(Beside())
    with ExitStack() as stack:
        for one in found:
            stack.enter_context(one)
        yield found


def show_beside(beside: Sequence[Companion], recorder: Recorder, end: Ending) -> None:
    """Show what is recorded from here on, if it is to be shown; somebody who quits ends the recording."""
    for one in beside:
        one.start(f"{recorder.path}:{recorder.session_id}", end.come)


def leave_beside(beside: Sequence[Companion], end: Ending) -> None:
    """Where a signal has ended it, the picture ends, too; else that stays until somebody quits."""
    if end.was_signal:
        for one in beside:
            one.stop()
