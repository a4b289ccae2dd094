"""The API's endpoints: path, parameters and handler of each.

The server's routes and the OpenAPI document are generated from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from kiebitz.cli.configuration.naming import named
from kiebitz.cli.render.svg.document import document
from kiebitz.cli.render.svg.svg_canvas import Shape
from kiebitz.cli.web import records
from kiebitz.cli.web.lists import diagnostics, events, message_at, messages, stream_list
from kiebitz.cli.web.pagination import Place
from kiebitz.cli.web.picture_cache import drawn_at
from kiebitz.cli.web.reader import NotThereError, Reader, Served
from kiebitz.cli.web.request_params import Asked, BadQuestionError, Parameter
from kiebitz.cli.web.timeline_overview import course
from kiebitz.dissectors.filters import FilterError
from kiebitz.dissectors.model import Severity, TableInfo
from kiebitz.storage.read.conditions import names_at_end
from kiebitz.storage.read.event_text import game_title
from kiebitz.storage.read.times import iso_time
from kiebitz.storage.session.message_detail import MessageInFull

_MOST_WORDS = 200

_SESSION = Parameter("session", "number", "number of a served session, from 1; default: the first")
_KEY = Parameter("key", "text", "the key of the printed link, if one is required")
_AS = Parameter("as", "text", "a player's name: only what that player could know")
_FILTER = Parameter("filter", "text", "a display filter")
_AT = Parameter("at", "number", "after this event of the table, counted from 1; default: the last")
_LIMIT = Parameter("limit", "number", "maximum number of rows")
_AFTER = Parameter("after", "number", "rows after this number")
_BEFORE = Parameter("before", "number", "rows before this number, the nearest")
_AROUND = Parameter("around", "number", "rows on both sides of this number")
_TABLE = Parameter("table", "number", "only this table")


class Address(msgspec.Struct, frozen=True):
    """An endpoint: path, summary, type of the response, and handler, which runs in a thread.

    `answer` is the type of the JSON, or a media type. Path parameters are numbers in braces.
    """

    path: str
    about: str
    answer: type | str
    ask: Callable[[Reader, Asked], Any]
    parameters: tuple[Parameter, ...] = ()
    may_take_long: bool = False

    @property
    def known(self) -> dict[str, Parameter]:
        """All parameters by name."""
        return {parameter.name: parameter for parameter in (*self.parameters, _SESSION, _KEY)}


def session_info(
    served: Served, reader: Reader, live: bool, player: str | None = None
) -> records.SessionInfo:
    """Return the description of a session; players do not see its source."""
    row = reader.timeline.session
    return records.SessionInfo(
        served.number,
        served.name,
        row.source if player is None else None,
        _iso(row.started_ns),
        _iso(row.ended_ns),
        live,
        served.lacks,
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
        )
        for row in reader.tables(player)
    ]


def _iso(ns: int | None) -> str | None:
    return None if ns is None else iso_time(ns)


def _tables(reader: Reader, asked: Asked) -> records.Tables:
    players = reader.players() if asked.reach.player is None else [asked.reach.player]
    return records.Tables(table_infos(reader, asked.limit), players)


def _table(reader: Reader, asked: Asked) -> TableInfo:
    return reader.table(asked.needed("table"), asked.limit)


def _at(reader: Reader, asked: Asked, table: TableInfo) -> int:
    """Return the requested event number of a table."""
    timeline = reader.timeline
    last, at = timeline.last_seq(table.id), asked.number("at")
    if at is None:
        return last
    if not timeline.first_seq(table.id) <= at <= last:
        raise NotThereError(f"there is no event {at} at table {table.id}; the last one is {last}")
    return at


def _course(reader: Reader, asked: Asked) -> records.Course:
    return course(reader, _table(reader, asked), asked.player)


def _events(reader: Reader, asked: Asked) -> records.Events:
    return events(reader, _table(reader, asked), asked.view(), asked.place(200))


def _state(reader: Reader, asked: Asked) -> records.StateAt:
    table = _table(reader, asked)
    seq = _at(reader, asked, table)
    state = reader.state(table.id, seq, asked.player)
    numbers = reader.timeline.numbers
    event = next(reader.timeline.events_between(table.id, seq - 1, seq), None)
    return records.StateAt(
        table.id,
        seq,
        numbers.number("events", event.id) if event is not None else None,
        reader.timeline.seconds(event.ts_ns) if event is not None else None,
        numbers.state(state),
    )


def _picture(reader: Reader, asked: Asked) -> records.Picture:
    table = _table(reader, asked)
    return drawn_at(reader, table, _at(reader, asked, table), asked.player).picture


def _fragments(reader: Reader, asked: Asked) -> records.Fragments:
    table = _table(reader, asked)
    drawn = drawn_at(reader, table, _at(reader, asked, table), asked.player)
    return records.Fragments(drawn.fragments(asked.names()))


def _svg(reader: Reader, asked: Asked) -> bytes:
    table = _table(reader, asked)
    drawn = drawn_at(reader, table, _at(reader, asked, table), asked.player)
    drawing = drawn.drawings[cast(Shape, asked.text("shape") or "wide")]
    return document(drawing, drawn.picture.title, drawn.picture.latest)


def _messages(reader: Reader, asked: Asked) -> records.Messages:
    number = asked.number("table")
    table = reader.table(number, asked.limit) if number is not None else None
    place = asked.place(100)
    if asked.number("at") is not None:
        if table is None:
            raise BadQuestionError("at goes with table")
        upto = message_at(reader, table, _at(reader, asked, table))
        place = Place(place.limit, before=(upto or 0) + 1)
    return messages(reader, table, asked.view(), place)


def _message(reader: Reader, asked: Asked) -> MessageInFull:
    number = asked.needed("message")
    message_id = reader.timeline.numbers.row_id("messages", number)
    found = reader.in_full.message(message_id, asked.player)
    if found is None:
        whose = "" if asked.player is None else f" of {asked.player}'s"
        raise NotThereError(f"there is no message {number}{whose} in this session")
    return found


def _diagnostics(reader: Reader, asked: Asked) -> records.Diagnostics:
    number = asked.number("table")
    table = reader.table(number, asked.limit) if number is not None else None
    least = cast(Severity, asked.text("severity") or "note")
    return diagnostics(reader, table, asked.view(), asked.place(100), least)


def _streams(reader: Reader, asked: Asked) -> records.Streams:
    return stream_list(reader, asked.player)


def _complete(reader: Reader, asked: Asked) -> records.Completion:
    before, names = names_at_end(asked.text("text") or "")
    return records.Completion(len(before), names[:_MOST_WORDS])


def _check_filter(reader: Reader, asked: Asked) -> records.FilterCheck:
    try:
        asked.wanted()
    except FilterError as error:
        return records.FilterCheck(str(error), error.position, error.length)
    return records.FilterCheck()


_PLACE = (_LIMIT, _AFTER, _BEFORE)

ADDRESSES: tuple[Address, ...] = (
    Address("/api/tables", "the game tables of a session, and its players", records.Tables, _tables),
    Address(
        "/api/tables/{table}/timeline",
        "the timeline of a table: sampled times, games, diagnostics, scores",
        records.Course,
        _course,
        (_AS,),
        may_take_long=True,
    ),
    Address(
        "/api/tables/{table}/events",
        "events of a table; by default the last ones",
        records.Events,
        _events,
        (*_PLACE, _AROUND, _FILTER, Parameter("game", "number", "only this game's events"), _AS),
        may_take_long=True,
    ),
    Address(
        "/api/tables/{table}/state",
        "the state of a table after an event",
        records.StateAt,
        _state,
        (_AT, _AS),
    ),
    Address(
        "/api/tables/{table}/picture",
        "the picture of a table after an event: positions of fragments",
        records.Picture,
        _picture,
        (_AT, _AS),
    ),
    Address(
        "/api/tables/{table}/fragments",
        "the fragments of that picture",
        records.Fragments,
        _fragments,
        (_AT, Parameter("names", "names", "their names, separated by commas; default: all"), _AS),
    ),
    Address(
        "/api/tables/{table}/picture.svg",
        "that picture as an SVG document",
        "image/svg+xml",
        _svg,
        (_AT, Parameter("shape", "shape", "wide or tall"), _AS),
    ),
    Address(
        "/api/messages",
        "messages; by default the last ones",
        records.Messages,
        _messages,
        (_TABLE, Parameter("at", "number", "up to this event of the table"), *_PLACE, _FILTER, _AS),
        may_take_long=True,
    ),
    Address("/api/messages/{message}", "a message in detail", MessageInFull, _message, (_AS,)),
    Address(
        "/api/diagnostics",
        "diagnostics; by default the last ones",
        records.Diagnostics,
        _diagnostics,
        (_TABLE, Parameter("severity", "severity", "minimum severity"), *_PLACE, _FILTER, _AS),
        may_take_long=True,
    ),
    Address("/api/streams", "the connections", records.Streams, _streams, (_AS,)),
    Address(
        "/api/complete",
        "completions of a filter",
        records.Completion,
        _complete,
        (Parameter("text", "text", "the filter so far", is_needed=True),),
    ),
    Address(
        "/api/check-filter",
        "whether a text is a valid filter",
        records.FilterCheck,
        _check_filter,
        (_FILTER,),
    ),
)
"""Endpoints that read one session; `server` has those for all sessions, updates and held messages."""

LIVE = (
    Parameter("after", "number", "also send events after this one of each table"),
    Parameter("table", "number", "only updates of this table"),
    _AS,
    _SESSION,
    _KEY,
)
SESSIONS = (_KEY,)
HELD = (_SESSION, _KEY)
