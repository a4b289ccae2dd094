"""The listings of a corpus: those of one session, with the capture that a row is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kiebitz.cli.checking.rows import COLUMNS as FLAW_COLUMNS
from kiebitz.cli.checking.rows import Told, flaw_row
from kiebitz.cli.listings.events import COLUMNS as EVENT_COLUMNS
from kiebitz.cli.listings.events import event_row
from kiebitz.cli.listings.games import COLUMNS as GAME_COLUMNS
from kiebitz.cli.listings.games import game_row
from kiebitz.cli.listings.messages import COLUMNS as MESSAGE_COLUMNS
from kiebitz.cli.listings.messages import message_row
from kiebitz.cli.listings.sessions import COLUMNS as SESSION_COLUMNS
from kiebitz.cli.listings.sessions import session_row
from kiebitz.cli.terminal.output import Form, show
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import Column, Row, address, batches, number
from kiebitz.storage.corpus import reading
from kiebitz.storage.corpus.engine import Answer, Engine
from kiebitz.storage.corpus.reading import FlawInCorpus, FlawsOfCode, Origin
from kiebitz.storage.corpus.runs import Missing

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_ORIGIN = (
    Column("capture"),
    # Of a long path the end tells most.
    address("source", "capture"),
)

MISSING = "missing"
"""Stands for a flaw's code where a capture is not in the corpus."""


def list_sessions(engine: Engine, form: Form | None) -> None:
    """Show the sessions, one of each capture, and called by its name."""
    columns = [
        structs.replace(column, title="") if column.key in ("id", "name", "kind", "note") else column
        for column in SESSION_COLUMNS
    ]
    rows = ((origin, session_row(row, counts)) for origin, row, counts in reading.sessions(engine))
    _show(columns, rows, form, "there are no captures in this corpus")


def list_games(engine: Engine, form: Form | None) -> None:
    """Show the games."""
    rows = ((origin, game_row(game)) for origin, game in reading.games(engine))
    _show(GAME_COLUMNS, rows, form, "there are no games in this corpus")


def list_events(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """Show the events that a filter lets through."""
    rows = ((origin, event_row(event)) for origin, event in reading.events(engine, wanted))
    _show(EVENT_COLUMNS, rows, form, "no events match" if wanted else "there are no events in this corpus")


def list_messages(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """Show the messages that a filter lets through."""
    rows = (
        (origin, message_row(said.message, said.flaws, said.sent))
        for origin, said in reading.messages(engine, wanted)
    )
    nothing = "no messages match" if wanted else "there are no messages in this corpus"
    _show(MESSAGE_COLUMNS, rows, form, nothing)


def list_flaws(engine: Engine, missing: Iterable[Missing], wanted: Filter | None, form: Form) -> None:
    """Show, to programs, what is missing and then each flaw that a filter lets through."""
    rows = chain(
        ((Origin("", one.source), _missing_row(one)) for one in missing),
        ((origin, flaw_row(found.flaw, _told(found))) for origin, found in reading.flaws(engine, wanted)),
    )
    _show(FLAW_COLUMNS, rows, form, "no diagnostics match" if wanted else "nothing is wrong")


def sum_up_flaws(flaws: Iterable[FlawsOfCode]) -> None:
    """Show, to people, how often each flaw came, and where the first is."""
    show(_SUMMARY, batches(flaws), None, "nothing is wrong")


def show_answer(answer: Answer, form: Form | None) -> None:
    """Show what somebody's query gives."""
    columns = [Column(name, name, right=False, least=8) for name in answer.names]
    rows = ([_plain(value) for value in row] for row in answer.rows)
    show(columns, batches(rows), form, "the answer has no rows")


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
    columns: Sequence[Column], rows: Iterable[tuple[Origin, Row]], form: Form | None, nothing: str
) -> None:
    """Show rows, each with its capture in front."""
    show([*_ORIGIN, *columns], batches((*origin, *row) for origin, row in rows), form, nothing)


def _missing_row(missing: Missing) -> Row:
    known = {"severity": "error", "code": MISSING, "text": missing.reason}
    return [known.get(column.key) for column in FLAW_COLUMNS]


def _told(found: FlawInCorpus) -> Told:
    flaw = found.flaw
    return Told(
        found.seconds,
        flaw.stream_id,
        (found.client, found.server),
        found.marked,
        found.lines,
        (found.resumed_offset, found.resumed_message),
        flaw.message_id,
        flaw.event_id,
        found.player,
        None,
    )


def _plain(value: Any) -> Any:
    """A value of the engine's as JSON has it; a text where JSON has no such value."""
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
