"""The API's endpoints (path, parameters, handler of each), and the refusals of requests.

The server's routes and the OpenAPI document are generated from this table.

Refusals of API requests: the status and the record of each error, however the answer is sent.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec

from kiebitz.cli.configuration.file import named
from kiebitz.cli.render.svg.svg_canvas import Shape
from kiebitz.cli.render.svg.theme import document
from kiebitz.cli.web import records
from kiebitz.cli.web.lists import (
    DIAGNOSTIC_ORDERS,
    EVENT_ORDERS,
    MESSAGE_ORDERS,
    count_matches,
    diagnostics,
    events,
    filter_values,
    message_at,
    messages,
    stream_list,
    table_statistics,
)
from kiebitz.cli.web.reader import NotThereError, Reader, RenderedTable, render_table
from kiebitz.cli.web.request_params import (
    ApiRequest,
    BadRequestError,
    ForbiddenError,
    Parameter,
    RowRange,
    is_number,
)
from kiebitz.cli.web.sequence import sequence
from kiebitz.cli.web.timeline_overview import timeline_overview
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import FilterError
from kiebitz.dissectors.model import PUBLIC, Severity, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.sessions import given_name
from kiebitz.storage.read.conditions import complete_filter
from kiebitz.storage.read.event_text import game_title, iso_time
from kiebitz.storage.read.seen_rows import NO_SUCH_MESSAGE
from kiebitz.storage.session.marks import marks
from kiebitz.storage.session.message_detail import MessageDetail

_MAX_COMPLETIONS = 200

MAX_SHOWN = 60
"""Maximum number of characters that a refusal quotes."""

_SESSION = Parameter("session", "number", "number of a served session, from 1; default: the first")
_KEY = Parameter("key", "text", "the key of the printed link, if one is required")
AS = Parameter(
    "as", "text", f"a player's name: only what that player could know; {PUBLIC}: what all may know"
)
_FILTER = Parameter("filter", "text", "a display filter")
_AT = Parameter("at", "number", "after this event of the table, counted from 1; default: the last")
_UP_TO = Parameter("at", "number", "up to this event of the table")
_LIMIT = Parameter("limit", "number", "maximum number of rows")
_AFTER = Parameter("after", "number", "rows after this number")
_BEFORE = Parameter("before", "number", "rows before this number, the nearest")
_AROUND = Parameter("around", "number", "rows on both sides of this number")
_SORT = Parameter(
    "sort", "text", "the column to sort by, descending with a minus before it; after is then a number of rows"
)
_TABLE = Parameter("table", "number", "only this table")
_SEAT = Parameter("seat", "text", "the player at the first seat, in a view that is not a player's")
_GAME = Parameter("game", "number", "only this game of the table")


class Operation(msgspec.Struct, frozen=True):
    """An operation of the API: path, summary, type of the response, and parameters.

    `answer` is the type of the JSON, or a media type. Path parameters are numbers in braces. `deed` is the
    verb and object of a POST, and `body` the type of its JSON or its media type.
    """

    path: str
    about: str
    answer: type | str
    parameters: tuple[Parameter, ...] = ()
    of_session: bool = True
    deed: str = ""
    body: type | str = ""

    @property
    def known(self) -> dict[str, Parameter]:
        """All parameters by name."""
        more = (_SESSION, _KEY) if self.of_session else (_KEY,)
        return {parameter.name: parameter for parameter in (*self.parameters, *more)}


class Endpoint(Operation, frozen=True, kw_only=True):
    """An operation that reads one session, with its handler, which runs in a thread."""

    ask: Callable[[Reader, ApiRequest], Any]
    may_take_long: bool = False


def session_info(reader: Reader, live: bool, player: str | None = None) -> records.SessionInfo:
    """Return the description of a session; players do not see its source."""
    served, row = reader.served, reader.timeline.session
    return records.SessionInfo(
        served.number,
        served.name,
        given_name(row),
        row.source if player is None else None,
        _iso(row.started_ns),
        _iso(row.ended_ns),
        live,
        served.lacks or row.lacks,
        served.dissection,
    )


def table_infos(reader: Reader, player: str | None = None) -> list[records.TableInfo]:
    """Return the tables of a session visible to a player."""
    timeline = reader.timeline
    return [
        records.TableInfo(
            row.id,
            row.protocol,
            game_title(row.protocol),
            row.server,
            named(row.server),
            timeline.first_seq(row.id),
            timeline.last_seq(row.id),
            dissector.presentation.moves if (dissector := dissector_of(row.protocol)) is not None else (),
        )
        for row in reader.tables(player)
    ]


def _iso(ns: int | None) -> str | None:
    return None if ns is None else iso_time(ns)


def _tables(reader: Reader, request: ApiRequest) -> records.Tables:
    grant = request.grant
    players = reader.players() if grant.player is None else [grant.owner] if grant.owner is not None else []
    return records.Tables(table_infos(reader, request.limit), players)


def _table(reader: Reader, request: ApiRequest) -> TableInfo:
    return reader.table(request.needed("table"), request.limit)


def _at(reader: Reader, request: ApiRequest, table: TableInfo) -> int:
    """Return the requested event number of a table."""
    timeline = reader.timeline
    last, at = timeline.last_seq(table.id), request.number("at")
    if at is None:
        return last
    if not timeline.first_seq(table.id) <= at <= last:
        raise NotThereError(f"there is no event {at} at table {table.id}; the last one is {last}")
    return at


def _course(reader: Reader, request: ApiRequest) -> records.TimelineOverview:
    return timeline_overview(reader, _table(reader, request), request.player)


def _events(reader: Reader, request: ApiRequest) -> records.Events:
    place = request.place(200, EVENT_ORDERS)
    return events(reader, _table(reader, request), request.rows(reader), place)


def _state(reader: Reader, request: ApiRequest) -> records.StateAt:
    table = _table(reader, request)
    seq = _at(reader, request, table)
    state = reader.visibility.state(request.player, table.id, seq)
    numbers = reader.timeline.numbers
    event = next(reader.timeline.events_between(table.id, seq - 1, seq), None)
    return records.StateAt(
        table.id,
        seq,
        numbers.number("events", event.id) if event is not None else None,
        reader.timeline.seconds(event.ts_ns) if event is not None else None,
        numbers.state(state),
    )


def _picture(reader: Reader, request: ApiRequest) -> records.Picture:
    return _drawn(reader, request).picture


def _drawn(reader: Reader, request: ApiRequest) -> RenderedTable:
    table = _table(reader, request)
    at = _at(reader, request, table)
    return render_table(reader, table, at, request.player, request.number("game"), request.text("seat"))


def _fragments(reader: Reader, request: ApiRequest) -> records.Fragments:
    return records.Fragments(_drawn(reader, request).fragments(request.names()))


def _svg(reader: Reader, request: ApiRequest) -> bytes:
    drawn = _drawn(reader, request)
    drawing = drawn.drawings[cast(Shape, request.text("shape") or "wide")]
    if request.number("bare"):
        return document(drawing)
    return document(drawing, drawn.picture.title, drawn.picture.latest)


def _messages(reader: Reader, request: ApiRequest) -> records.Messages:
    number = request.number("table")
    table = reader.table(number, request.limit) if number is not None else None
    return messages(reader, table, request.rows(reader), _message_range(reader, request, table))


def _sequence(reader: Reader, request: ApiRequest) -> records.Sequence:
    table = _table(reader, request)
    return sequence(reader, table, request.rows(reader), _message_range(reader, request, table))


def _message_range(reader: Reader, request: ApiRequest, table: TableInfo | None) -> RowRange:
    """Return the requested messages, which may be those up to an event of a table."""
    place = request.place(100, MESSAGE_ORDERS)
    if request.number("at") is None:
        return place
    if table is None:
        raise BadRequestError("at goes with table")
    upto = message_at(reader, table, _at(reader, request, table))
    return RowRange(place.limit, before=(upto or 0) + 1)


def _message(reader: Reader, request: ApiRequest) -> MessageDetail:
    number = request.needed("message")
    message_id = reader.timeline.numbers.row_id("messages", number)
    found = reader.in_full.message(message_id, request.player)
    if found is None:
        if request.player == PUBLIC:
            raise NotThereError(NO_SUCH_MESSAGE)
        whose = "" if request.player is None else f" of {request.player}'s"
        raise NotThereError(f"there is no message {number}{whose} in this session")
    return found


def _diagnostics(reader: Reader, request: ApiRequest) -> records.Diagnostics:
    number = request.number("table")
    table = reader.table(number, request.limit) if number is not None else None
    least = cast(Severity, request.text("severity") or "note")
    place = request.place(100, DIAGNOSTIC_ORDERS)
    return diagnostics(reader, table, request.rows(reader), place, least)


def _streams(reader: Reader, request: ApiRequest) -> records.Streams:
    return stream_list(reader, request.player)


def _complete(reader: Reader, request: ApiRequest) -> records.Completion:
    values = partial(filter_values, reader, request.player)
    before, names = complete_filter(request.text("text") or "", values)
    return records.Completion(len(before), names[:_MAX_COMPLETIONS])


def _matches(reader: Reader, request: ApiRequest) -> records.Matches:
    return count_matches(reader.timeline, _table(reader, request), request.rows(reader))


def _marks(reader: Reader, request: ApiRequest) -> records.Marks:
    # Notes may say what a player does not know.
    return records.Marks(marks(reader.timeline) if request.player is None else [])


def _statistics(reader: Reader, request: ApiRequest) -> records.Statistics:
    table = _table(reader, request)
    if request.player is not None:
        # They count what the player does not know, too.
        return records.Statistics([])
    return table_statistics(reader.timeline, table, request.wanted())


def _check_filter(reader: Reader, request: ApiRequest) -> records.FilterCheck:
    try:
        request.wanted()
    except FilterError as error:
        return records.FilterCheck(str(error), error.position, error.length)
    return records.FilterCheck()


_ROW_RANGE = (_LIMIT, _AFTER, _BEFORE)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("/api/tables", "the game tables of a session, and its players", records.Tables, ask=_tables),
    Endpoint(
        "/api/tables/{table}/timeline",
        "the timeline of a table: sampled times, games, diagnostics, scores",
        records.TimelineOverview,
        (AS,),
        ask=_course,
        may_take_long=True,
    ),
    Endpoint(
        "/api/tables/{table}/events",
        "events of a table; by default the last ones",
        records.Events,
        (*_ROW_RANGE, _AROUND, _SORT, _FILTER, Parameter("game", "number", "only this game's events"), AS),
        ask=_events,
        may_take_long=True,
    ),
    Endpoint(
        "/api/tables/{table}/matches",
        "how many events, messages and diagnostics pass a filter",
        records.Matches,
        (_FILTER, AS),
        ask=_matches,
        may_take_long=True,
    ),
    Endpoint(
        "/api/tables/{table}/state",
        "the state of a table after an event",
        records.StateAt,
        (_AT, AS),
        ask=_state,
    ),
    Endpoint(
        "/api/tables/{table}/picture",
        "the picture of a table after an event: positions of fragments",
        records.Picture,
        (_AT, _GAME, _SEAT, AS),
        ask=_picture,
    ),
    Endpoint(
        "/api/tables/{table}/fragments",
        "the fragments of that picture",
        records.Fragments,
        (
            _AT,
            _GAME,
            _SEAT,
            Parameter("names", "names", "their names, separated by commas; default: all"),
            AS,
        ),
        ask=_fragments,
    ),
    Endpoint(
        "/api/tables/{table}/picture.svg",
        "that picture as an SVG document",
        "image/svg+xml",
        (
            _AT,
            _GAME,
            _SEAT,
            Parameter("shape", "shape", "wide or tall"),
            Parameter("bare", "number", "1 omits the title and the latest event"),
            AS,
        ),
        ask=_svg,
    ),
    Endpoint(
        "/api/tables/{table}/sequence",
        "messages of a table with the events between them, for a sequence diagram; by default the last ones",
        records.Sequence,
        (_UP_TO, *_ROW_RANGE, _FILTER, AS),
        ask=_sequence,
        may_take_long=True,
    ),
    Endpoint(
        "/api/messages",
        "messages; by default the last ones",
        records.Messages,
        (_TABLE, _UP_TO, *_ROW_RANGE, _SORT, _FILTER, AS),
        ask=_messages,
        may_take_long=True,
    ),
    Endpoint("/api/messages/{message}", "a message in detail", MessageDetail, (AS,), ask=_message),
    Endpoint(
        "/api/diagnostics",
        "diagnostics; by default the last ones",
        records.Diagnostics,
        (_TABLE, Parameter("severity", "severity", "minimum severity"), *_ROW_RANGE, _SORT, _FILTER, AS),
        ask=_diagnostics,
        may_take_long=True,
    ),
    Endpoint(
        "/api/marks", "the marked messages and events, with their notes", records.Marks, (AS,), ask=_marks
    ),
    Endpoint(
        "/api/tables/{table}/statistics",
        "the statistics of a table",
        records.Statistics,
        (_FILTER, AS),
        ask=_statistics,
        may_take_long=True,
    ),
    Endpoint("/api/streams", "the connections", records.Streams, (AS,), ask=_streams),
    Endpoint(
        "/api/complete",
        "completions of a filter",
        records.Completion,
        (Parameter("text", "text", "the filter so far", is_needed=True),),
        ask=_complete,
    ),
    Endpoint(
        "/api/check-filter",
        "whether a text is a valid filter",
        records.FilterCheck,
        (_FILTER,),
        ask=_check_filter,
    ),
)
"""Operations that read one session; `openapi.py` has the server's own."""


STATUS: dict[type[Exception], int] = {
    BadRequestError: 400,
    FilterError: 400,
    ForbiddenError: 403,
    NotThereError: 404,
    KiebitzError: 503,
    sqlite3.Error: 503,
}


def answered(endpoint: Endpoint, params: ApiRequest, reader: Reader) -> Any:
    """Return the response to a request."""
    resolve_player(params, reader)
    return endpoint.ask(reader, params)


def resolve_player(params: ApiRequest, reader: Reader) -> None:
    """Determine the player whose view is requested. Raises NotThereError."""
    if params.grant.player is not None:
        params.player = reader.label(params.grant)
    elif params.player is not None:
        reader.check_player_known(params.player)


def path_numbers(params: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers in a path. Raises NotThereError for other values."""
    for name, value in params.items():
        if not is_number(value):
            raise NotThereError(f"there is no {name} {value[:MAX_SHOWN]}")
    return {name: int(value) for name, value in params.items()}


def refusal(
    error: Exception, statuses: Mapping[type[Exception], int] = STATUS
) -> tuple[int, records.Refusal]:
    """Return the status and the record of an error of one of these kinds."""
    status = next(code for kind, code in statuses.items() if isinstance(error, kind))
    if isinstance(error, FilterError):
        return status, records.Refusal(str(error), error.position, error.length)
    return status, records.Refusal(str(error))
