"""What is counted of a corpus, as charts or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kiebitz.cli.render.text.charts import charts_for_stdout
from kiebitz.cli.terminal.console import show_lines, write_json
from kiebitz.cli.terminal.screen import counting
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted
from kiebitz.storage.corpus import statistics
from kiebitz.storage.corpus.engine import Engine
from kiebitz.storage.corpus.statistics import ProtocolStatistics
from kiebitz.storage.read.event_text import game_title

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


def show_statistics(engine: Engine, wanted: Filter | None, as_json: bool) -> None:
    """Show what is counted of what meets a filter, protocol by protocol. Raises CorpusError."""
    ((events,),) = engine.rows("SELECT count(*) FROM events")
    with counting("stats", "events") as on_progress:
        found = statistics.counted(engine, wanted, lambda done: on_progress(done, events))
    if as_json:
        write_json({"protocols": msgspec.to_builtins(found)})
    elif not found:
        warn("nothing was counted: " + ("nothing meets this filter" if wanted else "there is no game here"))
    else:
        charts = charts_for_stdout()
        for place, of_protocol in enumerate(found):
            show_lines([[""]] if place else [])
            show_lines(charts.charts(_heading(of_protocol), of_protocol.statistics))


def _heading(of_protocol: ProtocolStatistics) -> str:
    """Which protocol it is, and how much counts of it."""
    counts = {
        "capture": of_protocol.captures,
        "game": of_protocol.games,
        "message": of_protocol.messages,
        "event": of_protocol.events,
    }
    told = ", ".join(counted(count, what) for what, count in counts.items())
    return f"{game_title(of_protocol.protocol)}: {told}"
