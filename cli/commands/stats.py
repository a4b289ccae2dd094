"""`kiebitz stats`: statistics of a session as charts, JSON or SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.messages import game_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import json_option, svg_option
from kiebitz.cli.options.session import open_session_as, session_argument
from kiebitz.cli.terminal.console import show_lines, write_json
from kiebitz.services.output_files import opened
from kiebitz.services.standard_streams import warn
from kiebitz.storage.session.session import Session

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter
    from kiebitz.dissectors.statistics.results import TableStatistics

_LONG = 20_000
"""Number of events from which a progress bar is shown."""


@click.command()
@session_argument
@filter_option
@protocol_option
@game_option
@json_option("Print one JSON object with all values.")
@svg_option("Write the charts to this SVG file instead.")
def stats(session: str, wanted: Filter | None, number: int | None, as_json: bool, svg: str | None) -> None:
    """Show statistics: dice against chance, bluffs, tricks, points over time, response times.

    The statistics depend on the game. A filter selects the events to count: -Y 'player == \"alice\"' counts
    alice's dice. Whether dice are fair is only tested with enough rolls.

    \b
    Example:
      kiebitz stats game.db
      kiebitz stats game.db --game 3
      kiebitz stats game.db -Y 'time < 60' --json
      kiebitz stats game.db --svg slide.svg
    """
    if as_json and svg is not None:
        raise click.UsageError("--json and --svg exclude each other")
    counted = Session(open_session_as(session))
    tables = _statistics(counted, wanted, number)
    if as_json:
        write_json({"session": counted.name, "game": number, "tables": msgspec.to_builtins(tables)})
    elif not tables:
        warn("no statistics: " + ("nothing matches the filter" if wanted else "this session has no game"))
    elif svg is not None:
        from kiebitz.cli.render.svg.charts import document_of

        busiest = max(tables, key=lambda table: table.events)
        if len(tables) > 1:
            warn(f"showing the table with the most events of {len(tables)}; select another with --game")
        with opened(svg, session) as file:
            file.write(document_of(busiest, counted.name))
    else:
        from kiebitz.cli.render.text.charts import charts_for_stdout

        charts = charts_for_stdout()
        for place, table in enumerate(tables):
            show_lines([[""]] if place else [])
            show_lines(charts.lines(table))


def _statistics(session: Session, wanted: Filter | None, number: int | None) -> list[TableStatistics]:
    events = session.timeline.count("events")
    if events < _LONG or number is not None:
        return session.statistics(wanted, number)
    # Slow to import.
    from kiebitz.cli.terminal.screen import counting

    with counting("stats", "events") as on_progress:
        return session.statistics(wanted, None, lambda done: on_progress(done, events))
