"""The statistics of a table as tables of numbers, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiebitz.cli.render.text.charts import grid_of, rate_words, test_words
from kiebitz.cli.web import records
from kiebitz.dissectors.model import TableInfo
from kiebitz.dissectors.statistics.results import Counts, Durations, Histogram, Rate, Result, Shares
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.statistics.session_statistics import session_statistics

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_Rows = list[list[int | float | str]]


def table_statistics(timeline: Timeline, table: TableInfo, wanted: Filter | None) -> records.Statistics:
    """Return the statistics of a table, limited to the events that pass a filter. Raises sqlite3.Error."""
    found = next((one for one in session_statistics(timeline, wanted) if one.table == table.id), None)
    return records.Statistics([] if found is None else [_table(result) for result in found.statistics])


def _table(result: Result) -> records.StatisticTable:
    says, columns, rows = "", [""], _Rows()
    match result:
        case Histogram():
            columns = [result.of, "number"]
            rows = [[*item] for item in result.counts.items()]
            says = test_words(result.chance) if result.chance is not None else ""
        case Counts():
            grid = grid_of(result)
            columns = [result.of, *(grid.columns or ["number"])]
            rows = [[line, *cells] for line, cells in zip(grid.lines, grid.cells, strict=True)]
        case Shares():
            columns = [result.of, result.part, "of", "%"]
            rows = [
                [line, share.part, share.all, round(100 * share.part / max(share.all, 1))]
                for line, share in result.lines.items()
            ]
        case Durations():
            columns = ["", "number", "mean (s)", "median (s)", "longest (s)"]
            rows = [
                [
                    line,
                    times.count,
                    *(float(f"{one:.3g}") for one in (times.mean, times.median, times.longest)),
                ]
                for line, times in result.lines.items()
            ]
        case Rate():
            says = rate_words(result)
        case _:
            columns = ["", f"last {result.unit}", "lowest", "highest"]
            for line, points in result.lines.items():
                amounts = [amount for _, amount in points]
                rows.append(
                    [line, amounts[-1], min(amounts), max(amounts)] if amounts else [line, "", "", ""]
                )
    return records.StatisticTable(result.title, says, columns, rows)
