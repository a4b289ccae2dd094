"""The listings of a corpus: those of one session, with the capture that a row is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.cli.listings import DIAGNOSTICS, EVENTS, GAMES, MESSAGES, SESSIONS
from kiebitz.cli.terminal.output import Form, show
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import Column, address, batches, behind, number
from kiebitz.storage.corpus import reading
from kiebitz.storage.corpus.engine import Answer, Engine
from kiebitz.storage.corpus.reading import FlawsOfCode, Origin
from kiebitz.storage.corpus.runs import Missing
from kiebitz.storage.session.session import ListedDiagnostic

if TYPE_CHECKING:
    from kiebitz.storage.filters import Filter

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
        msgspec.structs.replace(column, title="") if column.key in ("id", "name", "kind", "note") else column
        for column in SESSIONS
    ]
    _show(columns, reading.sessions(engine), form, "there are no captures in this corpus")


def list_games(engine: Engine, form: Form | None) -> None:
    """Show the games."""
    _show(GAMES, reading.games(engine), form, "there are no games in this corpus")


def list_events(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """Show the events that a filter lets through."""
    nothing = "no events match" if wanted else "there are no events in this corpus"
    _show(EVENTS, reading.events(engine, wanted), form, nothing)


def list_messages(engine: Engine, wanted: Filter | None, form: Form | None) -> None:
    """Show the messages that a filter lets through."""
    nothing = "no messages match" if wanted else "there are no messages in this corpus"
    _show(MESSAGES, reading.messages(engine, wanted), form, nothing)


def list_flaws(engine: Engine, missing: Iterable[Missing], wanted: Filter | None, form: Form) -> None:
    """Show, to programs, what is missing and then each flaw that a filter lets through."""
    lacks = ((Origin("", one.source), _missing_flaw(one)) for one in missing)
    nothing = "no diagnostics match" if wanted else "nothing is wrong"
    _show(DIAGNOSTICS, chain(lacks, reading.flaws(engine, wanted)), form, nothing)


def sum_up_flaws(flaws: Iterable[FlawsOfCode]) -> None:
    """Show, to people, how often each flaw came, and where the first is."""
    show(_SUMMARY, batches(flaws), None, "nothing is wrong")


def show_answer(answer: Answer, form: Form | None) -> None:
    """Show what somebody's query gives."""
    columns = [
        Column(name, name, least=8, of=partial(_cell, place)) for place, name in enumerate(answer.names)
    ]
    show(columns, batches(answer.rows), form, "the answer has no rows")


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
    columns: Sequence[Column], records: Iterable[tuple[Origin, Any]], form: Form | None, nothing: str
) -> None:
    """Show records, each with its capture in front."""
    show(behind(_ORIGIN, columns), batches(records), form, nothing)


def _missing_flaw(missing: Missing) -> ListedDiagnostic:
    known: dict[str, Any] = dict.fromkeys(ListedDiagnostic.__struct_fields__)
    return ListedDiagnostic(**known | {"severity": "error", "code": MISSING, "text": missing.reason})


def _cell(place: int, row: Sequence[Any]) -> Any:
    return _plain(row[place])


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
