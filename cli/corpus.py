"""Listings and statistics of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.cli.listings import DIAGNOSTICS, EVENTS, GAMES, MESSAGES, SESSIONS
from kiebitz.cli.terminal.console import COLOURS, Styled, show_line, show_lines, write_json
from kiebitz.cli.terminal.table import Column, Form, address, batches, behind, hiding, number, show
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted, in_words
from kiebitz.storage.corpus import records, statistics
from kiebitz.storage.corpus.engine import Engine, QueryResult
from kiebitz.storage.corpus.records import CaptureOrigin
from kiebitz.storage.corpus.runs import MissingCapture, missing
from kiebitz.storage.corpus.statistics import ProtocolStatistics
from kiebitz.storage.read.event_text import game_title
from kiebitz.storage.session.listing_records import ListedDiagnostic

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_ORIGIN = (
    Column("capture"),
    # Cut at the start if too long.
    address("source", "capture"),
)

MISSING = "missing"
"""Diagnostic code of a capture that could not be read."""


def list_sessions(engine: Engine, form: Form | None) -> None:
    """List the sessions, one per capture."""
    columns = hiding(SESSIONS, lambda column: column.key in ("id", "name", "kind", "note", "lacks"))
    _show(columns, records.sessions(engine), form, "no captures in this corpus")


_LISTINGS: dict[str, tuple[Sequence[Column], Callable[..., Iterable[tuple[CaptureOrigin, Any]]]]] = {
    "games": (GAMES, records.games),
    "events": (EVENTS, records.events),
    "messages": (MESSAGES, records.messages),
}


def list_records(engine: Engine, what: str, form: Form | None, *wanted: Filter | None) -> None:
    """List the games, or the matching events or messages."""
    columns, read = _LISTINGS[what]
    nothing = f"no matching {what}" if any(wanted) else f"no {what} in this corpus"
    _show(columns, read(engine, *wanted), form, nothing)


def check_corpus(engine: Engine, wanted: Filter | None, form: Form | None) -> bool:
    """Show missing captures and matching diagnostics, in a table counted by code.

    Return True if no captures are missing and there are no errors. Raises CorpusError.
    """
    lacks = missing(engine.corpus)
    diagnostics = [*records.diagnostics_by_code(engine, wanted)]
    count: Counter[str] = Counter()
    for diagnostic in diagnostics:
        count[diagnostic.severity] += diagnostic.times
    if form is not None:
        known = ((CaptureOrigin("", one.source), _missing_capture(one)) for one in lacks)
        nothing = "no matching diagnostics" if wanted else "no diagnostics"
        _show(DIAGNOSTICS, chain(known, records.diagnostics(engine, wanted)), form, nothing)
    else:
        for one in lacks:
            show_line(Styled("missing", COLOURS["error"], bold=True), f": {one.reason}")
        if diagnostics:
            show(_SUMMARY, batches(diagnostics), None, "no diagnostics")
        there = counted(engine.captures(), "capture")
        show_line(f"{there}, {len(lacks) or 'none'} missing; {in_words(count)}")
    return not lacks and not count["error"]


def show_statistics(engine: Engine, wanted: Filter | None, as_json: bool) -> None:
    """Show the statistics of matching events, by protocol. Raises CorpusError."""
    ((events,),) = engine.rows("SELECT count(*) FROM events")
    # Slow to import; listings do without.
    from kiebitz.cli.render.text.charts import charts_for_stdout
    from kiebitz.cli.terminal.screen import counting

    with counting("stats", "events") as on_progress:
        found = statistics.corpus_statistics(engine, wanted, lambda done: on_progress(done, events))
    if as_json:
        write_json({"protocols": msgspec.to_builtins(found)})
    elif not found:
        warn("no statistics: " + ("nothing matches the filter" if wanted else "this corpus has no game"))
    else:
        charts = charts_for_stdout()
        for place, of_protocol in enumerate(found):
            show_lines([[""]] if place else [])
            show_lines(charts.charts(_heading(of_protocol), of_protocol.statistics))


def _heading(of_protocol: ProtocolStatistics) -> str:
    counts = {
        "capture": of_protocol.captures,
        "game": of_protocol.games,
        "message": of_protocol.messages,
        "event": of_protocol.events,
    }
    told = ", ".join(counted(count, what) for what, count in counts.items())
    return f"{game_title(of_protocol.protocol)}: {told}"


def show_answer(answer: QueryResult, form: Form | None) -> None:
    """Show the result of an SQL query."""
    columns = [Column(name, name, least=8, of=itemgetter(place)) for place, name in enumerate(answer.names)]
    rows = ([*map(_plain, row)] for row in answer.rows)
    show(columns, batches(rows), form, "the result has no rows")


_SUMMARY = (
    number("times", "count"),
    Column("severity", "severity", stays=True, colour=COLOURS.get),
    Column("code", "code", least=12, stays=True),
    Column("protocol", "protocol"),
    Column("blame", "blame", stays=True),
    number("captures", "captures"),
    address("source", "first in"),
    number("message", "message"),
)


def _show(
    columns: Sequence[Column], records: Iterable[tuple[CaptureOrigin, Any]], form: Form | None, nothing: str
) -> None:
    show(behind(_ORIGIN, columns), batches(records), form, nothing)


def _missing_capture(missing: MissingCapture) -> ListedDiagnostic:
    known: dict[str, Any] = dict.fromkeys(ListedDiagnostic.__struct_fields__)
    return ListedDiagnostic(**known | {"severity": "error", "code": MISSING, "text": missing.reason})


def _plain(value: Any) -> Any:
    """Convert a value from DuckDB to a JSON value, or to text if there is none."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)
