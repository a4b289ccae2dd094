"""`kiebitz replay`: a recorded session again, in the terminal or to a live peer."""

from __future__ import annotations

import math
from collections.abc import Mapping

import click
from click.core import ParameterSource

from kiebitz.cli.options.moments import game_option, moment_option, player_option
from kiebitz.cli.options.outputs import BESIDE_OUTPUT, DATABASE, svg_option
from kiebitz.cli.options.recording import max_size_option
from kiebitz.cli.options.session import open_session, session_argument
from kiebitz.cli.plugins import tell_missing
from kiebitz.cli.replay.playback import LinePace, PipeOutput, RecordedPace, play
from kiebitz.cli.spectator.view import Onlooker
from kiebitz.cli.terminal.console import is_terminal
from kiebitz.cli.terminal.keyboard import has_keyboard
from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.cli.tui.playback_speed import PlaybackSpeed
from kiebitz.cli.tui.run import create_navigator, run
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.replay.replay_peer import DivergencePolicy
from kiebitz.services.output_files import opened
from kiebitz.services.sessions import split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.players import check_player
from kiebitz.storage.read.seek import END, Moment, MomentError, Steps, find_game, first_event, last_event
from kiebitz.storage.read.timeline import Timeline

_IN_TERMINAL = {
    "step": "--step",
    "svg": "--svg",
    "player": "--as",
    "number": "--game",
    "begin": "--from",
    "end": "--to",
}
_TO_PEER = {
    "alone": "--player",
    "policy": "--on-divergence",
    "patience": "--patience",
    "database": "-w",
    "max_size": "--max-size",
    "quiet": "-q",
}
"""Options that go with one of the two only, by the names of their parameters."""


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter("write 2 for twice as fast, 0 for as fast as possible", ctx, param)
    return value


@click.command()
@session_argument
@game_option
@click.option(
    "--speed",
    type=float,
    metavar="FACTOR",
    callback=_finite,
    help="So many times as fast as it was; 0 is as fast as possible. In the terminal it is 1 unless you say "
    "otherwise, to a live peer 0: as fast as that peer.",
)
@click.option("--step", is_flag=True, help="Wait for Enter or the space bar before each event; q ends.")
@moment_option("--from", "begin", "Begin here: 12.5s into the session, or with #EVENT.")
@moment_option("--to", "end", "End here: 12.5s into the session, after #EVENT, or end, the default.")
@player_option
@svg_option("Write the last picture to this file, too, for slides.", BESIDE_OUTPUT)
@click.option(
    "--serve",
    multiple=True,
    metavar="ADDR",
    help="Play the server to clients that connect to ADDR, as in 127.0.0.1:9000. Of several servers that is "
    "the one with the lowest port, and the others' ports are as far from it as recorded; or say "
    "RECORDED=ADDR for each, as in 7002=127.0.0.1:9002.",
)
@click.option(
    "--connect",
    multiple=True,
    metavar="ADDR",
    help="Play the clients to a server at ADDR; RECORDED=ADDR as with --serve.",
)
@click.option("--player", "alone", metavar="NAME", help="With --connect: play this client only.")
@click.option(
    "--on-divergence",
    "policy",
    type=click.Choice(["stop", "skip", "wait"]),
    help="When the live peer does something else than recorded, or nothing in time: stop there (the "
    "default), skip what was recorded, or let it pass and wait for what was recorded.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long the live peer may take; 30 unless you say otherwise. For the first client there is no "
    "limit.",
)
@click.option(
    "-w",
    "database",
    type=DATABASE,
    metavar="DB",
    help="Record what happens with a live peer into this database.",
)
@max_size_option
@click.option("-q", "quiet", is_flag=True, help="Show nothing of what happens with a live peer.")
@click.pass_context
def replay(
    ctx: click.Context,
    session: str,
    number: int | None,
    speed: float | None,
    step: bool,
    begin: Moment | None,
    end: Moment | None,
    player: str | None,
    svg: str | None,
    serve: tuple[str, ...],
    connect: tuple[str, ...],
    alone: str | None,
    policy: DivergencePolicy | None,
    patience: float | None,
    database: str | None,
    max_size: int | None,
    quiet: bool,
) -> int | None:
    """Play a session again: in the terminal, or one side of it to a live peer.

    On a terminal it plays as kiebitz watch does, with the same keys: q ends it. With --speed 0, and where
    stdout is no terminal, each event is a line, and the table is drawn at the end. With --step and no
    keyboard, each line of stdin is a step.

    To a live peer it is the recorded messages, each when all has come that came before it in the record.
    Tokens, numbers, names and what else a live game has of its own are put in place of the recorded ones.
    Exit status 3 if the peer did something else than recorded.

    \b
    Example:
      kiebitz replay game.db --speed 4
      kiebitz replay game.db --game 3 --step
      kiebitz replay game.db --from 12.5s --to 20s --as alice
      kiebitz replay game.db --speed 0 --svg slide.svg
      kiebitz replay game.db --serve 127.0.0.1:9000
      kiebitz replay game.db --connect 127.0.0.1:9000 --player alice -w today.db
    """
    if serve and connect:
        raise click.UsageError(
            "--serve and --connect do not go together: play one side, or start two replays"
        )
    if not serve and not connect:
        _refuse(ctx, _TO_PEER, "is for a live peer: add --serve ADDR or --connect ADDR")
        timeline = open_session(session)
        tell_missing(timeline)
        _in_terminal(
            session, timeline, number, 1.0 if speed is None else speed, step, begin, end, player, svg
        )
        return None
    _refuse(ctx, _IN_TERMINAL, "is for the terminal, and not with --serve or --connect")
    if serve and alone is not None:
        raise click.UsageError("--player goes with --connect: a server is played to all its clients")
    from kiebitz.cli.replay.live import LiveReplay

    live = LiveReplay(
        open_session(session),
        session,
        "s2c" if serve else "c2s",
        serve or connect,
        player=alone,
        policy=policy or "stop",
        speed=speed or 0.0,
        patience_s=patience or 30.0,
        database=database,
        max_size=max_size,
        quiet=quiet,
    )
    return live.run()


def _refuse(ctx: click.Context, flags: Mapping[str, str], why: str) -> None:
    """Raise UsageError if one of these flags, by the names of their parameters, was given."""
    for parameter, flag in flags.items():
        if ctx.get_parameter_source(parameter) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{flag} {why}")


def _in_terminal(
    session: str,
    timeline: Timeline,
    number: int | None,
    speed: float,
    step: bool,
    begin: Moment | None,
    end: Moment | None,
    player: str | None,
    svg: str | None,
) -> None:
    if player is not None:
        check_player(timeline, player)
    game = find_game(timeline, number) if number is not None else None
    first, last = _bounds(timeline, game, begin, end)
    if is_terminal() and has_keyboard() and speed:
        _watched(session, timeline, number, (first, last), player, PlaybackSpeed(speed), step, svg)
        return
    onlooker = Onlooker(timeline, player)
    steps = Steps(timeline, onlooker.may_see, game).between(first, last)
    paper = PipeOutput(timeline, onlooker, game)
    shown = play(steps, paper, LinePace() if step else RecordedPace(speed))
    if shown is None:
        warn("nothing happens there")
    elif svg is not None:
        with opened(svg, session) as file:
            file.write(paper.svg(shown))


def _watched(
    session: str,
    timeline: Timeline,
    number: int | None,
    between: tuple[int, int],
    player: str | None,
    pace: PlaybackSpeed,
    step: bool,
    svg: str | None,
) -> None:
    """Play it on the terminal, where one can move in it; the last picture stays when somebody quits."""
    path, _ = split_number(session)
    viewer = create_navigator(timeline, path, player, None, number, pace, between)
    if viewer.event is None:
        warn("nothing happens there")
        return
    viewer.begin()
    viewer.plays = not step
    viewer.steps = step
    status = run(viewer)
    if status:
        raise click.exceptions.Exit(status)
    console = Console()
    console.print(viewer.picture())
    console.print(Text(viewer.line()), soft_wrap=True)
    if svg is not None:
        with opened(svg, session) as file:
            file.write(viewer.svg())


def _bounds(
    timeline: Timeline, game: Game | None, begin: Moment | None, end: Moment | None
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
        number = timeline.numbers.number("games", game.id)
        raise MomentError(f"nothing of game {number} was recorded")
    return max(first, span[0].id), min(last, span[1].id)
