"""The ASGI application: routes, error responses, and the served sessions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from kiebitz.cli.render.svg.theme import page_style
from kiebitz.cli.web import records
from kiebitz.cli.web.access import Access, Keys, Reach
from kiebitz.cli.web.admission import LIVE_PATH, Admission, Limits
from kiebitz.cli.web.event_stream import Feed
from kiebitz.cli.web.held_api import (
    HandsRefusalError,
    SlowRequestError,
    TooMuchError,
    act,
    deed_of,
    held_record,
    refuse,
)
from kiebitz.cli.web.json_response import JsonAnswer
from kiebitz.cli.web.openapi import openapi
from kiebitz.cli.web.page import MEDIA, page_files
from kiebitz.cli.web.query_executor import Desk, Kind, TookTooLongError
from kiebitz.cli.web.reader import UNREADABLE, NotThereError, Reader, Served, judged
from kiebitz.cli.web.request_params import (
    MOST_DIGITS,
    Asked,
    BadQuestionError,
    ForbiddenError,
    Parameter,
    is_number,
)
from kiebitz.cli.web.routes import ADDRESSES, HELD, LIVE, SESSIONS, Address, session_info
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import FilterError
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.faults import fault
from kiebitz.services.standard_streams import warn

LIMIT_S = 5.0
"""Time limit of a query, in seconds."""

_SMALLEST = 1000
"""Minimum size of compressed answers, in bytes."""

_COMPRESSION = 3
"""Level of gzip, which blocks the event loop: level 9 takes 20 times as long to save a quarter more."""

_PLAYER_QUESTIONS = 2
"""Maximum number of queries of a kind that one player's key has running or queued at once."""

_SHOWN = 60
_EVENT_STREAM = "text/event-stream"

Found = TypeVar("Found")


class Server:
    """The server of some sessions; `app` is its ASGI application."""

    def __init__(
        self,
        sessions: Sequence[Served],
        keys: Keys,
        hosts: Collection[str],
        is_open: bool,
        limits: Limits,
        is_read_only: bool = False,
    ) -> None:
        self._is_read_only = is_read_only
        self._sessions = {served.number: served for served in sessions}
        self._desk = Desk(LIMIT_S)
        self._turns: WeakValueDictionary[tuple[str, Kind], asyncio.Semaphore] = WeakValueDictionary()
        self.feeds = {served.number: Feed(served, self._desk) for served in sessions}
        routes = [
            Route("/api/sessions", self._tell_sessions),
            Route(LIVE_PATH, self._tell_live),
            Route("/api/held", self._tell_held, methods=["GET"]),
            Route("/api/held", self._act, methods=["POST"]),
            Route("/api/openapi.json", _tell_openapi),
            *(Route(address.path, self._answering(address)) for address in ADDRESSES),
            Route("/theme.css", _theme),
            Route("/{name:path}", _file),
        ]
        starlette = Starlette(
            routes=routes,
            middleware=[Middleware(GZipMiddleware, minimum_size=_SMALLEST, compresslevel=_COMPRESSION)],
            exception_handlers=dict.fromkeys((HTTPException, *_STATUS), _refuse) | {Exception: _fail},
            lifespan=self._running,
        )
        self.app: ASGIApp = Access(Admission(starlette, limits), keys, hosts, is_open)

    def end(self) -> None:
        """End all event streams."""
        for feed in self.feeds.values():
            feed.stop()

    async def seats(self) -> list[Reach]:
        """Return the permissions of the links of all players with a connection, sorted by name."""
        found = [await self._desk.ask(served, Reader.seats) for served in self._sessions.values()]
        return sorted(chain.from_iterable(found), key=lambda reach: (reach.player or "", reach.session))

    @asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        # Accept no page before it is known which sessions are live: it would not follow them.
        await asyncio.gather(*(feed.start() for feed in self.feeds.values()))
        try:
            yield
        finally:
            self.end()
            self._desk.close()

    def _answering(self, address: Address) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            asked = _asked(request, address.known, _numbers(request))
            kind: Kind = "slow" if address.may_take_long else "quick"
            async with self._turn(asked.reach.player, kind):
                found = await self._ask(self._served(asked), partial(_answer, address, asked), kind)
            if isinstance(address.answer, str):
                return Response(found, media_type=address.answer)
            return JsonAnswer(found)

        return answer

    def _turn(self, player: str | None, kind: Kind) -> AbstractAsyncContextManager[object]:
        """Return a context in which a request may run, so that one player's requests do not delay all others.

        The full key is not limited.
        """
        if player is None:
            return nullcontext()
        turn = self._turns.get((player, kind))
        if turn is None:
            turn = self._turns[player, kind] = asyncio.Semaphore(_PLAYER_QUESTIONS)
        return turn

    async def _ask(self, served: Served, question: Callable[[Reader], Found], kind: Kind = "quick") -> Found:
        """Run a query. Raises StorageError also if the session's database is damaged."""
        try:
            return await self._desk.ask(served, question, kind)
        except Exception as error:
            if isinstance(error, tuple(_STATUS)):
                raise
            raise await asyncio.to_thread(judged, served, error) from error

    def _served(self, asked: Asked) -> Served:
        number = asked.number("session")
        number = (asked.reach.session or 1) if number is None else number
        served = self._sessions.get(number)
        if served is None:
            raise NotThereError(f"there is no session {number} here; there are {len(self._sessions)}")
        return served

    async def _tell_sessions(self, request: Request) -> Response:
        asked = _asked(request, _by_name(SESSIONS), {})
        infos = [
            await self._ask(served, self._info(served, asked.reach))
            for served in self._sessions.values()
            if asked.reach.player is None or asked.reach.session == served.number
        ]
        return JsonAnswer(records.Sessions(kiebitz_version(), asked.reach.player, infos))

    def _info(self, served: Served, reach: Reach) -> Callable[[Reader], records.SessionInfo]:
        live = self.feeds[served.number].status.live
        return lambda reader: session_info(served, reader, live, reader.label(reach))

    async def _tell_live(self, request: Request) -> Response:
        asked = _asked(request, _by_name(LIVE), {})
        served = self._served(asked)
        await self._ask(served, partial(_check, asked), "news")
        if request.method == "HEAD":
            return Response(media_type=_EVENT_STREAM)
        above = asked.number("after")
        known = request.headers.get("last-event-id", "")
        if is_number(known) and len(known) < MOST_DIGITS:
            upto: int | None = int(known)
        else:
            upto = None if above is None else 0
        told = asked.reach if asked.reach.player is not None else asked.player, asked.number("table")
        return StreamingResponse(
            self._relay(served, self.feeds[served.number].listen(told, upto, above or 0)),
            media_type=_EVENT_STREAM,
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def _tell_held(self, request: Request) -> Response:
        asked = _asked(request, _by_name(HELD), {})
        held = self.feeds[self._served(asked).number].hands.held
        shown = held if asked.reach.player is None else None
        return JsonAnswer(await asyncio.to_thread(held_record, shown, not self._is_read_only))

    async def _act(self, request: Request) -> Response:
        asked = _asked(request, _by_name(HELD), {})
        refuse(request.headers, asked.reach, self._is_read_only)
        hands = self.feeds[self._served(asked).number].hands
        deed = await deed_of(request)
        await act(hands, deed)
        return JsonAnswer(records.Done(deed.do, deed.number))

    async def _relay(self, served: Served, told: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """Yield an event stream, and end it if reading the session fails."""
        try:
            async with aclosing(told):
                async for text in told:
                    yield text
        except (KiebitzError, sqlite3.Error):
            # The browser will reconnect.
            pass
        except Exception as error:
            why = await asyncio.to_thread(judged, served, error)
            if why is error:
                warn(fault(error))


def _asked(request: Request, known: dict[str, Parameter], numbers: dict[str, int]) -> Asked:
    return Asked(dict(request.query_params), known, request.scope["reach"], numbers)


def _by_name(parameters: Sequence[Parameter]) -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in parameters}


def _numbers(request: Request) -> dict[str, int]:
    """Return the numbers in a path. Raises NotThereError for other values."""
    for name, value in request.path_params.items():
        if not is_number(value):
            raise NotThereError(f"there is no {name} {value[:_SHOWN]}")
    return {name: int(value) for name, value in request.path_params.items()}


def _answer(address: Address, asked: Asked, reader: Reader) -> Any:
    _meet(asked, reader)
    return address.ask(reader, asked)


def _meet(asked: Asked, reader: Reader) -> None:
    """Determine the player whose view is requested. Raises NotThereError."""
    if asked.reach.player is not None:
        asked.player = reader.label(asked.reach)
    elif asked.player is not None:
        reader.meet(asked.player)


def _check(asked: Asked, reader: Reader) -> None:
    """Raise NotThereError if an event stream is requested for an unknown player or table."""
    _meet(asked, reader)
    table = asked.number("table")
    if table is not None:
        reader.table(table, asked.limit)


async def _tell_openapi(request: Request) -> Response:
    return JsonAnswer(openapi())


async def _theme(request: Request) -> Response:
    return Response(page_style(), media_type="text/css")


async def _file(request: Request) -> Response:
    """Return one of the page's files; there are no folders."""
    name = request.path_params["name"] or "index.html"
    content = page_files().get(name)
    if content is None:
        raise NotThereError(f"there is nothing at /{name[:_SHOWN]}")
    media = MEDIA[name[name.rindex(".") :]]
    return Response(content, media_type=media, headers={"cache-control": "no-cache"})


# Errors.

_STATUS: dict[type[Exception], int] = {
    BadQuestionError: 400,
    FilterError: 400,
    ForbiddenError: 403,
    NotThereError: 404,
    SlowRequestError: 408,
    HandsRefusalError: 409,
    TooMuchError: 413,
    KiebitzError: 503,
    sqlite3.Error: 503,
}


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        refusal = records.Refusal(f"{error.detail}: use GET")
        return JsonAnswer(refusal, error.status_code, error.headers)
    status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    if isinstance(error, FilterError):
        return JsonAnswer(records.Refusal(str(error), error.position, error.length), status)
    slips = error.slips if isinstance(error, HandsRefusalError) else None
    is_failure = status == _STATUS[KiebitzError] and not isinstance(error, TookTooLongError)
    sentence = _for(request, str(error)) if is_failure else str(error)
    return JsonAnswer(records.Refusal(sentence, slips=slips or None), status)


async def _fail(request: Request, raised: Exception) -> Response:
    """Return the response to an unexpected exception."""
    sentence = fault(raised)
    warn(sentence)
    return JsonAnswer(records.Refusal(_for(request, sentence)), 500)


def _for(request: Request, sentence: str) -> str:
    """Return an error message as the client may see it."""
    reach = request.scope.get("reach")
    return sentence if reach is None or reach.player is None else UNREADABLE
