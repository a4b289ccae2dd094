"""`kiebitz watch`: show the table in the terminal, live or recorded, with a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.messages import game_option, player_option
from kiebitz.cli.options.protocol_files import files_to_reload, protocol_option, reload_option
from kiebitz.cli.options.session import open_session_as, session_argument
from kiebitz.cli.tui.playback_speed import MAX_GAP_S, PlaybackSpeed
from kiebitz.cli.tui.run import check_terminal, create_navigator, run
from kiebitz.services.sessions import split_number
from kiebitz.storage.read.players import check_player
from kiebitz.storage.read.seek import find_game

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

max_gap_option = click.option(
    "--max-gap",
    type=click.FloatRange(min=0),
    default=MAX_GAP_S,
    show_default=True,
    metavar="SECONDS",
    help="Longest pause between two events during playback.",
)
pace_option = click.option(
    "--pace",
    "every",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Show each event for this time during playback, whatever its recorded time.",
)


@click.command()
@session_argument
@game_option
@player_option
@filter_option
@protocol_option
@max_gap_option
@pace_option
@reload_option
def watch(
    session: str,
    number: int | None,
    player: str | None,
    wanted: Filter | None,
    max_gap: float,
    every: float | None,
    reloads: bool,
) -> int:
    """Watch a table: picture, timeline and messages.

    A session that is being recorded is followed; any other opens where its first game begins. The bottom
    line lists the main keys, ? all of them.

    \b
    Example:
      kiebitz watch game.db
      kiebitz watch game.db --game 3 --as alice
      kiebitz watch lesson.pcapng --pace 1
      kiebitz watch lesson.pcapng -P uno.toml --reload
    """
    files = files_to_reload(reloads, (session,))
    check_terminal("kiebitz events lists the events, kiebitz replay writes to a pipe")
    path, _ = split_number(session)
    timeline = open_session_as(session)
    if player is not None and timeline.session.ended_ns is not None:
        check_player(timeline, player)
    if number is not None:
        find_game(timeline, number)
    pace = PlaybackSpeed(1.0, max_gap, every)
    return run(create_navigator(timeline, path, player, wanted, number, pace), files, session)
