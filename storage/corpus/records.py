"""The records of a corpus, capture by capture in order of time, in the form that a session yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Blame, Severity
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.storage.corpus.engine import Engine
from kiebitz.storage.corpus.layout import CorpusError
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.read.event_text import seconds_between
from kiebitz.storage.read.message_queries import MessageDiagnostic
from kiebitz.storage.read.timeline import CountedSession
from kiebitz.storage.session.listing_records import ListedDiagnostic, ListedMessage
from kiebitz.storage.session.session import Event, Game

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter, Target


class CaptureOrigin(NamedTuple):
    """The capture of a record: its id in the corpus, and the path of its file."""

    capture: str
    source: str


_NOT_OURS = (msgspec.MsgspecError, TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""Exceptions raised by values that are not in the form in which Kiebitz writes them."""

P = ParamSpec("P")
T = TypeVar("T")


def report_damage(
    read: Callable[Concatenate[Engine, P], Iterator[T]],
) -> Callable[Concatenate[Engine, P], Iterator[T]]:
    """Make a function that reads a corpus raise CorpusError for rows that Kiebitz cannot have written."""

    @wraps(read)
    def reading(engine: Engine, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from read(engine, *args, **kwargs)
        except _NOT_OURS as error:
            if isinstance(error, KiebitzError):
                raise
            raise CorpusError(
                f"{engine.corpus.path}: this corpus is damaged: Kiebitz never writes such a row ({error})"
            ) from error

    return reading


_ORIGIN = "x.capture, x.source"
_OF_STREAM = "JOIN streams AS s ON s.capture = {0}.capture AND s.id = {0}.stream_id"
_OF_SESSION = "JOIN sessions AS x ON x.capture = {0}.capture"
_IN_ORDER = "ORDER BY x.started_ns, x.capture"


@report_damage
def sessions(engine: Engine) -> Iterator[tuple[CaptureOrigin, CountedSession]]:
    """Yield the session of each capture with its numbers of streams, messages, games and errors.

    Raises CorpusError, as all functions of this module.
    """
    counted = [
        f"(SELECT count(*) FROM {table} AS c WHERE c.capture = x.capture{also})"
        for table, also in (
            ("streams", ""),
            ("messages", ""),
            ("games", ""),
            ("diagnostics", " AND c.severity = 'error'"),
        )
    ]
    names = [*TABLES["sessions"], "lacks", "streams", "messages", "games", "errors"]
    own = ", ".join(f"x.{name}" for name in names[:-4])
    for capture, *values in engine.rows(
        f"SELECT x.capture, {own}, {', '.join(counted)} FROM sessions AS x {_IN_ORDER}"
    ):
        row = dict(zip(names, values, strict=True))
        yield CaptureOrigin(capture, row["source"]), CountedSession.from_columns(row)


@report_damage
def games(engine: Engine) -> Iterator[tuple[CaptureOrigin, Game]]:
    """Yield the games."""
    rows = engine.rows(
        f"SELECT {_ORIGIN}, x.started_ns, g.id, g.protocol, t.server, g.label, g.started_ns, g.ended_ns,"
        " g.result, g.named_result FROM games AS g"
        " JOIN tables AS t ON t.capture = g.capture AND t.id = g.table_id"
        f" {_OF_SESSION.format('g')} {_IN_ORDER}, g.id"
    )
    for capture, source, began, number, protocol, server, label, started, ended, result, named in rows:
        yield (
            CaptureOrigin(capture, source),
            Game(
                number,
                number,
                protocol,
                server,
                label,
                (started - began) / 1e9,
                None if ended is None else (ended - began) / 1e9,
                seconds_between(started, ended),
                _decoded(result),
                _decoded(named),
            ),
        )


@report_damage
def events(engine: Engine, wanted: Filter | None) -> Iterator[tuple[CaptureOrigin, Event]]:
    """Yield the events that pass a filter."""
    condition, parameters = sql_condition(wanted, "events")
    rows = engine.rows(
        f"SELECT {_ORIGIN}, e.data, e.seq, e.id, e.id, (e.ts_ns - x.started_ns) / 1e9, e.ts_ns, e.table_id,"
        " t.server, e.game_id, e.kind, e.actor, e.sentence FROM events AS e"
        " JOIN tables AS t ON t.capture = e.capture AND t.id = e.table_id"
        f" {_OF_SESSION.format('e')} WHERE {condition} {_IN_ORDER}, e.id",
        parameters,
    )
    for capture, source, data, seq, *row in rows:
        fields = msgspec.json.decode(data, type=dict[str, Any])
        yield CaptureOrigin(capture, source), Event(*[*row, fields, seq, None])


@report_damage
def messages(engine: Engine, wanted: Filter | None) -> Iterator[tuple[CaptureOrigin, ListedMessage]]:
    """Yield the messages that pass a filter."""
    condition, parameters = sql_condition(wanted, "messages")
    rows = engine.rows(
        f"SELECT {_ORIGIN}, m.protocol, m.fields, m.sent, f.diagnostics, m.id, m.id,"
        " (m.ts_ns - x.started_ns) / 1e9, m.ts_ns, m.stream_id, m.direction, s.client, s.player, s.server,"
        " m.name, m.offset, m.length, m.game_id, m.event_id FROM messages AS m"
        f" {_OF_STREAM.format('m')} {_OF_SESSION.format('m')} LEFT JOIN"
        " (SELECT capture, message_id, list({'id': id, 'severity': severity, 'code': code, 'text': text}"
        " ORDER BY id) AS diagnostics FROM diagnostics WHERE message_id IS NOT NULL GROUP BY ALL) AS f"
        f" ON f.capture = m.capture AND f.message_id = m.id WHERE {condition} {_IN_ORDER}, m.id",
        parameters,
    )
    for capture, source, protocol, told, sent, diagnostics, *row in rows:
        *head, direction, client, player, server, name, offset, length, game, event = row
        fields = msgspec.json.decode(told, type=dict[str, Any])
        dissector = dissector_of(protocol)
        gloss = None if dissector is None else dissector.presentation.gloss(name, direction, fields)
        known = [MessageDiagnostic(**diagnostic) for diagnostic in diagnostics or ()]
        said = [name, gloss, fields, offset, length, game, event]
        message = ListedMessage(*[*head, direction, client, player, server, *said, None, known, sent])
        yield CaptureOrigin(capture, source), message


@report_damage
def diagnostics(engine: Engine, wanted: Filter | None) -> Iterator[tuple[CaptureOrigin, ListedDiagnostic]]:
    """Yield the diagnostics that pass a filter."""
    condition, parameters = sql_condition(wanted, "diagnostics")
    rows = engine.rows(
        f"SELECT {_ORIGIN}, d.lines, d.resumed_offset, d.resumed_message, d.id,"
        " (d.ts_ns - x.started_ns) / 1e9, d.ts_ns, d.severity, d.grp, d.code, d.text, d.blame, d.stream_id,"
        " d.direction, d.offset, d.length, d.expected, d.clause, d.message_id, about.name, about.event_id,"
        " s.client, s.player, s.server, about.offset, d.marked FROM diagnostics AS d"
        f" {_OF_STREAM.format('d')} {_OF_SESSION.format('d')}"
        " LEFT JOIN messages AS about ON about.capture = d.capture AND about.id = d.message_id"
        f" WHERE {condition} {_IN_ORDER}, d.ts_ns, d.id",
        parameters,
    )
    for capture, source, lines, offset, message, *row in rows:
        told = msgspec.json.decode(lines, type=list[dict[str, Any]])
        yield CaptureOrigin(capture, source), ListedDiagnostic(*[*row, told, offset, message, None])


class CodeSummary(NamedTuple):
    """Summary of one diagnostic code in a corpus: count, captures, and first occurrence."""

    times: int
    severity: Severity
    code: str
    protocol: str | None
    blame: Blame | None
    captures: int
    source: str
    message: int | None


def diagnostics_by_code(engine: Engine, wanted: Filter | None) -> Iterator[CodeSummary]:
    """Yield a summary of the diagnostics that pass a filter: most severe first, then most frequent."""
    condition, parameters = sql_condition(wanted, "diagnostics")
    first = "arg_min({}, (x.started_ns, x.capture, d.ts_ns, d.id))"
    rows = engine.rows(
        # As in the listings, a note blames no side.
        "SELECT count(*) AS times, d.severity, d.code, d.protocol,"
        " CASE WHEN d.severity != 'note' THEN d.blame END AS blamed, count(DISTINCT d.capture),"
        f" {first.format('x.source')}, nullif({first.format('coalesce(d.message_id, 0)')}, 0)"
        f" FROM diagnostics AS d {_OF_SESSION.format('d')} WHERE {condition}"
        " GROUP BY d.severity, d.code, d.protocol, blamed"
        " ORDER BY list_position(['error', 'warning', 'note'], d.severity), times DESC, d.code, d.protocol,"
        " blamed",
        parameters,
    )
    return map(CodeSummary._make, rows)


def sql_condition(wanted: Filter | None, target: Target) -> tuple[str, list[Any]]:
    """Return a filter as an SQL condition with parameters; without a filter, an always true one."""
    if wanted is None:
        return "TRUE", []
    from kiebitz.storage.filters.sql import DUCKDB, to_sql

    condition, parameters = to_sql(wanted, target, FROM_ONE, DUCKDB)
    return condition, [*parameters]


def _decoded(text: str | None) -> dict[str, Any] | None:
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])
