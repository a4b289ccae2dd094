"""`kiebitz replay`: a recorded session again, in the terminal."""

from __future__ import annotations

import math
import sys

import click

from cli.files import opened, svg_option
from cli.moment_options import game_option, moment_option, moments_explained, player_option
from cli.onlooker import Onlooker
from cli.playback import Keys, Lines, Pace, Paper, Screen, Stage, Timing, play
from cli.players import check_player
from cli.plugins import tell_missing
from cli.sessions import open_session, session_argument
from storage.moments import END, Moment, MomentError, Steps, find_game, first_event, last_event
from storage.timeline import GameRow, Timeline


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise click.BadParameter("write 2 for twice as fast, 0 for as fast as possible", ctx, param)
    return value


@click.command()
@session_argument
@game_option
@click.option(
    "--speed",
    type=float,
    default=1.0,
    metavar="FACTOR",
    callback=_finite,
    help="So many times as fast as it was; 0 is as fast as possible.",
)
@click.option("--step", is_flag=True, help="Wait for Enter or the space bar before each event; q ends.")
@moment_option("--from", "begin", "Begin here: 12.5s into the session, or with #EVENT.")
@moment_option("--to", "end", "End here: 12.5s into the session, after #EVENT, or end, the default.")
@player_option
@svg_option("Write the last picture to this file, too, for slides.")
def replay(
    session: str,
    number: int | None,
    speed: float,
    step: bool,
    begin: Moment | None,
    end: Moment | None,
    player: str | None,
    svg: str | None,
) -> None:
    """Play a session again in the terminal: the table, and below it what happens.

    Where stdout is no terminal, each event is a line, and the table is drawn at the end. With --step and no
    keyboard, each line of stdin is a step.

    \b
    Example:
      kiebitz replay game.db --speed 4
      kiebitz replay game.db --game 3 --step
      kiebitz replay game.db --from 12.5s --to 20s --as alice
      kiebitz replay game.db --speed 0 --svg slide.svg
    """
    timeline = open_session(session)
    tell_missing(timeline)
    if player is not None:
        check_player(timeline, player)
    with moments_explained():
        game = find_game(timeline, number) if number is not None else None
        first, last = _bounds(timeline, game, begin, end)
    onlooker = Onlooker(timeline, player)
    steps = Steps(timeline, onlooker.may_see, game).between(first, last)
    if sys.stdout.isatty():
        stage: Stage = Screen(timeline, onlooker, game, _how(speed, step))
    else:
        stage = Paper(timeline, onlooker, game)
    timing: Timing = Pace(speed)
    if step:
        timing = Keys() if sys.stdin.isatty() else Lines()
    shown = play(steps, stage, timing)
    if shown is None:
        click.echo("kiebitz: nothing happens there", err=True)
    elif svg is not None:
        with opened(svg) as file:
            file.write(stage.svg(shown))


def _how(speed: float, step: bool) -> str:
    if step:
        return "Enter: the next event   q: quit"
    return f"{f'{speed:g} x the recorded speed' if speed else 'as fast as possible'}   Ctrl-C: quit"


def _bounds(
    timeline: Timeline, game: GameRow | None, begin: Moment | None, end: Moment | None
) -> tuple[int, int]:
    """The ids of the first and the last event to play; those of the game, if one is named.

    Raises MomentError.
    """
    first = first_event(timeline, begin) if begin is not None else 0
    last = last_event(timeline, end or END)
    if game is None:
        return first, last
    span = timeline.span(game.id)
    if span is None:
        raise MomentError(f"nothing of game {game.id} was recorded")
    return max(first, span[0].id), min(last, span[1].id)
