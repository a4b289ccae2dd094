"""`kiebitz replay`: replay a recorded session in the terminal or to a live peer."""

from __future__ import annotations

import math

import click
import msgspec
from click.core import ParameterSource

from kiebitz.cli.options.messages import game_option, moment_option, player_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.recording import max_size_option
from kiebitz.cli.options.records import BESIDE_OUTPUT, DATABASE, RenamedOption, as_records, svg_option
from kiebitz.cli.options.session import open_session, open_session_as, session_argument
from kiebitz.cli.terminal.console import has_keyboard, is_terminal
from kiebitz.cli.tui.playback_speed import PlaybackSpeed
from kiebitz.cli.tui.run import create_navigator, run
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.replay.replay_peer import DivergencePolicy
from kiebitz.services.output_files import opened
from kiebitz.services.sessions import split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.seek import END, Position, PositionError, find_game, first_event, last_event
from kiebitz.storage.read.timeline import Timeline


class _InTerminal(msgspec.Struct, frozen=True):
    """Options for a replay in the terminal."""

    step: bool
    svg: str | None
    player: str | None
    begin: Position | None
    end: Position | None


class _ToPeer(msgspec.Struct, frozen=True):
    """Options for a replay to a live peer."""

    alone: str | None
    policy: DivergencePolicy | None
    timeout_s: float | None
    database: str | None
    max_size: int | None
    quiet: bool


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter(
            "must be 0 or more: 2 is twice as fast, 0 is as fast as possible", ctx, param
        )
    return value


@click.command()
@session_argument
@protocol_option
@game_option
@click.option(
    "--speed",
    type=float,
    metavar="FACTOR",
    callback=_finite,
    help="Multiple of the recorded speed; 0 is as fast as possible. Default: 1 in the terminal, 0 "
    "to a live peer.",
)
@click.option("--step", is_flag=True, help="Wait for Enter or the space bar before each event; q quits.")
@moment_option("--from", "begin", "Start at this moment: 12.5s into the session, or #EVENT.")
@moment_option(
    "--to", "end", "Stop at this moment: 12.5s into the session, after #EVENT, or end (the default)."
)
@player_option
@svg_option("Also write the last picture to this SVG file.", BESIDE_OUTPUT)
@click.option(
    "--serve",
    multiple=True,
    metavar="ADDR",
    help="Play the server to clients that connect to ADDR, as in 127.0.0.1:9000. With several "
    "servers, ADDR is for the lowest port and the others keep their distance from it; or "
    "give RECORDED=ADDR for each, as in 7002=127.0.0.1:9002.",
)
@click.option(
    "--connect",
    multiple=True,
    metavar="ADDR",
    help="Play the clients to a server at ADDR; RECORDED=ADDR as for --serve.",
)
@click.option("--player", "alone", metavar="NAME", help="With --connect: play only this client.")
@click.option(
    "--on-divergence",
    "policy",
    type=click.Choice(["stop", "skip", "wait", "adapt"]),
    help="If the live peer deviates from the recording or does not answer in time: stop (the "
    "default with --serve), skip the recorded message, wait for it and ignore others, or adapt (the default "
    "with --connect): accept the server's dice, cards and order, and send the recorded answers when it asks.",
)
@click.option(
    "--timeout",
    "timeout_s",
    cls=RenamedOption,
    former="--patience",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time to wait for what the recording has next; with --on-divergence wait, too. Default: 30. There "
    "is no limit for the first client.",
)
@click.option(
    "-w",
    "database",
    type=DATABASE,
    metavar="DB",
    help="Record the traffic with a live peer into this database.",
)
@max_size_option
@click.option("-q", "quiet", is_flag=True, help="With a live peer: print no events.")
@click.pass_context
@as_records(terminal=_InTerminal, peer=_ToPeer)
def replay(
    ctx: click.Context,
    session: str,
    number: int | None,
    speed: float | None,
    serve: tuple[str, ...],
    connect: tuple[str, ...],
    terminal: _InTerminal,
    peer: _ToPeer,
) -> int | None:
    """Replay a session in the terminal, or one side of it to a live peer.

    In a terminal it plays as in kiebitz watch, with the same keys; q quits. With --speed 0, or if stdout is
    not a terminal, each event is printed on a line and the table at the end. With --step and no keyboard,
    each line of stdin is a step.

    With --game, a live peer gets one game, after the earlier messages that introduce its players.

    A live peer receives the recorded messages, each as soon as everything that preceded it in the recording
    has arrived. Tokens, numbers, names and other values specific to the live game replace the recorded ones.
    The exit status is 3 if the peer deviated from the recording.

    \b
    Example:
      kiebitz replay game.db --speed 4
      kiebitz replay game.db --game 3 --step
      kiebitz replay game.db --from 12.5s --to 20s --as alice
      kiebitz replay game.db --speed 0 --svg slide.svg
      kiebitz replay game.db --serve 127.0.0.1:9000
      kiebitz replay game.db --game 3 --serve 127.0.0.1:9000
      kiebitz replay game.db --connect 127.0.0.1:9000 --player alice -w today.db
    """
    if serve and connect:
        raise click.UsageError(
            "--serve and --connect exclude each other: play one side, or start two replays"
        )
    if not serve and not connect:
        _refuse(ctx, _ToPeer, "requires a live peer: add --serve ADDR or --connect ADDR")
        timeline = open_session_as(session, terminal.player)
        _play(session, timeline, number, 1.0 if speed is None else speed, terminal)
        return None
    _refuse(ctx, _InTerminal, "is only for the terminal: it excludes --serve and --connect")
    if serve and peer.policy == "adapt":
        raise click.UsageError("--on-divergence adapt requires --connect: clients do not decide a game")
    if serve and peer.alone is not None:
        raise click.UsageError("--player requires --connect: with --serve, all clients are served")
    from kiebitz.cli.replay.live import LiveReplay
    from kiebitz.storage.derived.derived_session import extract_part
    from kiebitz.storage.derived.selection import PartRequest, select

    timeline = open_session(session)
    if number is not None:
        timeline = extract_part(timeline, select(timeline, PartRequest(number)))
        ctx.call_on_close(timeline.connection.close)
    live = LiveReplay(
        timeline,
        session,
        "s2c" if serve else "c2s",
        serve or connect,
        player=peer.alone,
        policy=peer.policy or ("stop" if serve else "adapt"),
        speed=speed or 0.0,
        patience_s=peer.timeout_s or 30.0,
        database=peer.database,
        max_size=peer.max_size,
        quiet=peer.quiet,
    )
    return live.run()


def _refuse(ctx: click.Context, options: type[msgspec.Struct], why: str) -> None:
    """Raise UsageError if one of these options was given."""
    flags = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    for name in options.__struct_fields__:
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{flags[name]} {why}")


def _play(session: str, timeline: Timeline, number: int | None, speed: float, terminal: _InTerminal) -> None:
    """Play with the keys of a terminal, and print the last picture on exit; without them into a pipe."""
    # They load Rich, without which help and errors come sooner.
    from kiebitz.cli.replay.playback import PipeOutput, RecordedPace, play, wait_for_line
    from kiebitz.cli.spectator.view import SpectatorView
    from kiebitz.cli.terminal.screen import Console, Text

    game = find_game(timeline, number) if number is not None else None
    first, last = _bounds(timeline, game, terminal.begin, terminal.end)
    if is_terminal() and has_keyboard() and speed:
        path, _ = split_number(session)
        pace = PlaybackSpeed(speed)
        viewer = create_navigator(timeline, path, terminal.player, None, number, pace, (first, last))
        if viewer.event is None:
            warn("nothing happens there")
            return
        viewer.begin()
        viewer.plays = not terminal.step
        viewer.steps = terminal.step
        status = run(viewer)
        if status:
            raise click.exceptions.Exit(status)
        console = Console()
        console.print(viewer.picture())
        console.print(Text(viewer.line()), soft_wrap=True)
        if terminal.svg is not None:
            with opened(terminal.svg, session) as file:
                file.write(viewer.svg())
        return
    spectator_view = SpectatorView(timeline, terminal.player)
    condition, parameters = "e.id BETWEEN ? AND ?", [first, last]
    if game is not None:
        condition, parameters = f"{condition} AND +e.game_id = ?", [*parameters, game.id]
    events = filter(spectator_view.may_see, timeline.events(condition, parameters))
    paper = PipeOutput(timeline, spectator_view, game)
    shown = play(events, paper, wait_for_line if terminal.step else RecordedPace(speed).wait)
    if shown is None:
        warn("nothing happens there")
    elif terminal.svg is not None:
        with opened(terminal.svg, session) as file:
            file.write(paper.svg(shown))


def _bounds(
    timeline: Timeline, game: Game | None, begin: Position | None, end: Position | None
) -> tuple[int, int]:
    """Return the ids of the first and last event to play, within `game`. Raises PositionError."""
    first = first_event(timeline, begin) if begin is not None else 0
    last = last_event(timeline, end or END)
    if game is None:
        return first, last
    span = timeline.span(game.id)
    if span is None:
        number = timeline.numbers.number("games", game.id)
        raise PositionError(f"game {number} has no recorded events")
    return max(first, span[0].id), min(last, span[1].id)
