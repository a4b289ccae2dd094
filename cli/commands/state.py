"""`kiebitz state`: show the tables of a session at a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from kiebitz.cli.options.messages import game_option, moment_option, player_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import json_option, svg_option
from kiebitz.cli.options.session import open_session_as, session_argument
from kiebitz.cli.terminal.console import write_json_array
from kiebitz.services.output_files import opened
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.seek import END, Position, TablePosition, game_at, state_of_game, tables_at
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility
from kiebitz.storage.session.session import Session

# It loads Rich, without which help and errors come sooner.
if TYPE_CHECKING:
    from kiebitz.cli.spectator.view import SpectatorView


@click.command()
@session_argument
@protocol_option
@game_option
@moment_option("--at", "moment", "12.5s into the session, after #EVENT, or end (the default).")
@player_option
@json_option("Print one JSON array of tables with their states.")
@svg_option("Write the picture to this SVG file instead.")
def state(
    session: str,
    number: int | None,
    moment: Position | None,
    player: str | None,
    as_json: bool,
    svg: str | None,
) -> None:
    """Show the state of the game at any moment, combined from the messages of all players.

    A game that has ended is shown in its final state, and each of several games at once. Most shells
    treat a # at the start of a word as a comment: write --at=#7 or --at '#7'.

    \b
    Example:
      kiebitz state game.db
      kiebitz state game.db --game 3 --as alice
      kiebitz state game.db --at 12.5s --json
      kiebitz state game.db --at 12.5s --svg slide.svg
    """
    from kiebitz.cli.spectator.view import RECENT, SpectatorView

    if as_json and svg is not None:
        raise click.UsageError("--json and --svg exclude each other")
    timeline = open_session_as(session, player)
    at = moment or END
    if as_json:
        found = Session(timeline).state(at, player, number)
        write_json_array(
            {
                "table": one.id,
                "protocol": one.protocol,
                "server": one.server,
                "game": number,
                "event": one.event,
                "time": one.time,
                "state": one.state,
            }
            for one in found
        )
        return
    tables = tables_at(timeline, at) if number is None else [game_at(timeline, number, at)]
    visibility = Visibility(timeline)
    spectator_view = SpectatorView(timeline, player, visibility)
    known = visibility.tables_of(player)
    tables = [found for found in tables if found.table.id in known]
    game = timeline.numbers.row_id_if_any("games", number)
    if tables and svg is not None:
        if len(tables) > 1:
            warn(f"showing the first of {len(tables)} tables; select another with --game")
        first = tables[0]
        events = timeline.recent(first.table.id, first.seq, RECENT)
        with opened(svg, session) as file:
            file.write(spectator_view.svg(first.table.id, first.state, events, game))
    elif tables:
        _draw(timeline, tables, spectator_view, game)
    else:
        warn(
            "no game recognised in this session"
            if player is None or not timeline.tables()
            else f"{player} has no connection to this table"
        )


def _draw(
    timeline: Timeline, tables: Sequence[TablePosition], spectator_view: SpectatorView, game: int | None
) -> None:
    from kiebitz.cli.spectator.view import RECENT
    from kiebitz.cli.terminal.screen import Console, Text

    console = Console()
    shown = [each for found in tables for each in _games_of(timeline, found, spectator_view, game)]
    for place, (found, number) in enumerate(shown):
        if place:
            console.print()
        events = timeline.recent(found.table.id, found.seq, RECENT, number if game is None else None)
        console.print(spectator_view.picture(found.table.id, found.state, events, number))
        console.show(Text(spectator_view.latest(events), "dim"))


def _games_of(
    timeline: Timeline, found: TablePosition, spectator_view: SpectatorView, game: int | None
) -> Iterator[tuple[TablePosition, int | None]]:
    """Yield a table for each of several games at once, with the row id of the game."""
    games = spectator_view.games(found.table.id, found.seq, found.state) if game is None else {}
    if not games:
        yield found, game
    for number in map(int, games):
        row_id = timeline.numbers.row_id_if_any("games", number)
        assert row_id is not None, "the game is in the state"
        state = state_of_game(Visibility(timeline), None, found.table.id, row_id, found.seq, found.state)
        yield msgspec.structs.replace(found, state=state), row_id
