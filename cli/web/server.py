"""The ASGI application: routes, error responses, and the served sessions."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from itertools import chain, count
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from kiebitz.cli.render.svg.theme import page_style
from kiebitz.cli.web import records
from kiebitz.cli.web.access import Access, JsonResponse, Keys
from kiebitz.cli.web.admission import (
    Admission,
    BusyError,
    Holder,
    Limits,
    address_group,
)
from kiebitz.cli.web.delayed_copy import DelayedCopy
from kiebitz.cli.web.event_stream import EventStream
from kiebitz.cli.web.grants import SPECTATOR, Grant
from kiebitz.cli.web.held_api import (
    Deed,
    HeldActionError,
    MarkDeed,
    RequestTooLargeError,
    SlowRequestError,
    act,
    check_may_act,
    decode_body,
    held_record,
)
from kiebitz.cli.web.home import HomePage
from kiebitz.cli.web.openapi import (
    ACT,
    DOCUMENT,
    EVENT_STREAM,
    HELD,
    HOME,
    HOME_LIVE,
    LIVE,
    MARK,
    OPEN,
    SESSIONS,
    openapi,
)
from kiebitz.cli.web.opened_files import MAX_BYTES, OpenedFiles
from kiebitz.cli.web.page import MEDIA, page_files
from kiebitz.cli.web.query_executor import Kind, QueryExecutor, QueryTimeoutError
from kiebitz.cli.web.reader import UNREADABLE, NotThereError, Reader, ServedSession, explain_error
from kiebitz.cli.web.request_params import (
    MAX_DIGITS,
    ApiRequest,
    BadRequestError,
    ForbiddenError,
    is_number,
)
from kiebitz.cli.web.routes import (
    ENDPOINTS,
    MAX_SHOWN,
    STATUS,
    Endpoint,
    Operation,
    answered,
    path_numbers,
    refusal,
    resolve_player,
    session_info,
)
from kiebitz.cli.web.session_folders import SessionFolders
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.model import PUBLIC
from kiebitz.dissectors.registry import using_copies
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.standard_streams import warn
from kiebitz.storage.session.marks import MarkError, marks, set_mark

if TYPE_CHECKING:
    from kiebitz.services.reloading import Dissected

QUERY_LIMIT_S = 5.0
"""Time limit of a query, in seconds."""

_MIN_COMPRESSED_BYTES = 1000
"""Minimum size of compressed answers, in bytes."""

_COMPRESSION = 3
"""Level of gzip, which blocks the event loop: level 9 takes 20 times as long to save a quarter more."""

_WATCH_EVERY_S = 2.0
"""Time in seconds between two looks at the watched folders."""

_FOUND_START_S = 1.0
"""Time in seconds that the start waits for sessions of watched folders with protocol files; see `_add`."""

_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

Found = TypeVar("Found")
Handler = Callable[[Request, ApiRequest], Awaitable[Response]]


class Server:
    """The server of some sessions; `app` is its ASGI application."""

    def __init__(
        self,
        sessions: Sequence[ServedSession],
        keys: Keys,
        hosts: Collection[str],
        is_open: bool,
        limits: Limits,
        is_read_only: bool = False,
        folders: SessionFolders | None = None,
        delay_s: float | None = None,
    ) -> None:
        self._is_read_only = is_read_only
        self._delay_s = delay_s
        self._folders = folders
        self._given = sessions
        self._sessions: dict[int, ServedSession] = {}
        """The sessions that are ready, by number."""
        self._numbers = count(len(sessions) + 1)
        self._starting: set[asyncio.Task[None]] = set()
        self._late_sessions: dict[int, ServedSession] = {}
        """Delayed copies of live sessions, for spectators; other sessions are the same for all."""
        self._late_streams: dict[int, EventStream] = {}
        self._copies: list[tuple[DelayedCopy, TemporaryDirectory[str]]] = []
        self._opened = OpenedFiles()
        self._executor = QueryExecutor(QUERY_LIMIT_S)
        self.event_streams = {served.number: EventStream(served, self._executor) for served in sessions}
        self._homes = {
            (grant.is_late, viewer): HomePage(
                partial(self._visible_sessions, grant),
                partial(self._event_stream, grant),
                self._ask,
                is_watching=folders is not None,
                delay_s=(delay_s or 0.0) if grant.is_late else 0.0,
                viewer=viewer,
            )
            for grant, viewer in ((Grant(), None), (Grant(), PUBLIC), (SPECTATOR, PUBLIC))
        }
        handlers: dict[Operation, Handler] = {
            SESSIONS: self._list_sessions,
            HOME: self._summarize_all,
            HOME_LIVE: self._stream_home,
            LIVE: self._stream_events,
            HELD: self._list_held,
            ACT: self._act,
            MARK: self._mark,
            OPEN: self._open,
            **{endpoint: partial(self._answer, endpoint) for endpoint in ENDPOINTS},
        }
        routes = [
            *(self._route(operation, handle) for operation, handle in handlers.items()),
            Route(DOCUMENT.path, lambda request: JsonResponse(openapi())),
            Route("/theme.css", lambda request: Response(page_style(), media_type="text/css")),
            Route("/{name:path}", _file),
        ]
        starlette = Starlette(
            routes=routes,
            middleware=[
                Middleware(GZipMiddleware, minimum_size=_MIN_COMPRESSED_BYTES, compresslevel=_COMPRESSION)
            ],
            exception_handlers=dict.fromkeys((HTTPException, *_STATUS), _refuse) | {Exception: _fail},
            lifespan=self._running,
        )
        self.app: ASGIApp = Access(
            Admission(starlette, limits), keys, hosts, is_open, is_late=delay_s is not None
        )

    def replace_sessions(self, dissected: Sequence[Dissected]) -> None:
        """Show sessions that were dissected again, in the order in which they were given; in any thread."""
        for served, found in zip(self._given, dissected, strict=True):
            served.replace(found.database, found.session_id, found.lacks)
            self.event_streams[served.number].dissected(None)

    def report_problem(self, lines: Sequence[str]) -> None:
        """Show why sessions cannot be dissected again; in any thread."""
        for stream in list(self.event_streams.values()):
            stream.dissected("\n".join(lines))

    def end(self) -> None:
        """End all event streams and queries."""
        for feed in (*self.event_streams.values(), *self._late_streams.values()):
            feed.stop()
        for home in self._homes.values():
            home.end()
        self._executor.close()

    async def player_grants(self) -> list[Grant]:
        """Return the permissions of the links of all players with a connection, sorted by name."""
        found = []
        for served in [one for one in self._sessions.values() if not one.is_opened]:
            # One session that cannot be read does not hide the others' links.
            with suppress(KiebitzError, sqlite3.Error):
                found.append(await self._executor.ask(served, Reader.player_grants))
        return sorted(chain.from_iterable(found), key=lambda grant: (grant.player or "", grant.session))

    @asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        # Accept no page before it is known which sessions are live: it would not follow them.
        slow = [served for served in self._given if served.is_found and served.copies]
        later = [self._add_later(served) for served in slow]
        await asyncio.gather(*(self._add(served) for served in self._given if served not in slow))
        if later:
            await asyncio.wait(later, timeout=_FOUND_START_S)
        watching = asyncio.create_task(self._watch(self._folders)) if self._folders is not None else None
        try:
            yield
        finally:
            for task in (*self._starting, *([watching] if watching is not None else [])):
                task.cancel()
            self.end()
            for copy, folder in self._copies:
                await asyncio.to_thread(copy.close)
                folder.cleanup()
            self._opened.close()

    async def _add(self, served: ServedSession) -> None:
        """Serve a session as soon as its event stream has begun. Raises StorageError, sqlite3.Error."""
        await self.event_streams[served.number].start()
        await self._delay(served)
        self._sessions[served.number] = served

    def _add_later(self, served: ServedSession) -> asyncio.Task[None]:
        """Return the task that adds a session which may be slow to load: it may be a stranger's."""

        async def add() -> None:
            try:
                await self._add(served)
            except (KiebitzError, sqlite3.Error) as error:
                warn(f"{served.name} is not served: {error}")

        task = asyncio.create_task(add())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return task

    async def _delay(self, served: ServedSession) -> None:
        """Make the delayed copy of a live session, if spectators are shown one."""
        if self._delay_s is None or not self.event_streams[served.number].status.live:
            return
        folder = TemporaryDirectory(prefix="kiebitz-")
        try:
            copy = await asyncio.to_thread(
                DelayedCopy, served.path, served.session_id, folder.name, self._delay_s
            )
        except BaseException:
            folder.cleanup()
            raise
        self._copies.append((copy, folder))
        late = ServedSession(served.number, copy.path, served.session_id, served.name, copies=served.copies)
        stream = EventStream(late, self._executor)
        await stream.start()
        self._late_sessions[served.number], self._late_streams[served.number] = late, stream

    def _visible_sessions(self, grant: Grant) -> list[ServedSession]:
        """Return the sessions that a key may see, for spectators their delayed copies."""
        late = self._late_sessions if grant.is_late else {}
        return [
            late.get(number, served)
            for number, served in sorted(self._sessions.items())
            if (grant.owner is None or grant.session == number) and _may_see(grant, served)
        ]

    def _event_stream(self, grant: Grant, served: ServedSession) -> EventStream:
        late = self._late_streams.get(served.number) if grant.is_late else None
        return late or self.event_streams[served.number]

    async def _watch(self, folders: SessionFolders) -> None:
        """Serve the sessions that appear in the folders."""
        while True:
            await asyncio.sleep(_WATCH_EVERY_S)
            served = {(one.path, one.session_id) for one in self._sessions.values()}
            for path, session_id in await asyncio.to_thread(folders.look, served):
                name = f"{os.path.basename(path)}:{session_id}"
                self._add_later(self._new_session(path, session_id, name))

    def _new_session(self, path: str, session_id: int, name: str, is_opened: bool = False) -> ServedSession:
        """Return a session that appeared after the start, which may be a stranger's; `_add` serves it."""
        added = ServedSession(next(self._numbers), path, session_id, name, is_found=True, is_opened=is_opened)
        self.event_streams[added.number] = EventStream(added, self._executor)
        return added

    def _route(self, operation: Operation, handle: Handler) -> Route:
        async def answer(request: Request) -> Response:
            grant, numbers = request.scope["grant"], path_numbers(request.path_params)
            params = ApiRequest(dict(request.query_params), operation.known, grant, numbers)
            if operation.body:
                media = operation.body if isinstance(operation.body, str) else "application/json"
                check_may_act(request.headers, grant, self._is_read_only, operation.deed, media)
            return await handle(request, params)

        return Route(operation.path, answer, methods=["POST" if operation.body else "GET"])

    async def _answer(self, endpoint: Endpoint, request: Request, params: ApiRequest) -> Response:
        kind: Kind = "slow" if endpoint.may_take_long else "quick"
        question = partial(answered, endpoint, params)
        found = await self._ask(self._served(params), question, kind, _client(request))
        if isinstance(endpoint.answer, str):
            return Response(found, media_type=endpoint.answer)
        return JsonResponse(found)

    async def _ask(
        self,
        served: ServedSession,
        question: Callable[[Reader], Found],
        kind: Kind = "quick",
        client: Holder | None = None,
    ) -> Found:
        """Run a query. Raises StorageError also if the session's database is damaged."""
        try:
            return await self._executor.ask(served, question, kind, client)
        except Exception as error:
            if isinstance(error, tuple(_STATUS)):
                raise
            raise await asyncio.to_thread(explain_error, served, error) from error

    def _served(self, params: ApiRequest) -> ServedSession:
        number = params.number("session")
        number = (params.grant.session or 1) if number is None else number
        served = self._sessions.get(number)
        if params.grant.is_late:
            served = self._late_sessions.get(number, served)
        if served is None or not _may_see(params.grant, served):
            raise NotThereError(f"there is no session {number} here; there are {len(self._sessions)}")
        return served

    async def _list_sessions(self, request: Request, params: ApiRequest) -> Response:
        shown = self._visible_sessions(params.grant)
        infos = []
        client = _client(request)
        asked = (self._ask(served, self._info(served, params.grant), "quick", client) for served in shown)
        for found in await asyncio.gather(*asked, return_exceptions=True):
            if not isinstance(found, BaseException):
                infos.append(found)
            # One session that cannot be read does not hide the others.
            elif len(shown) == 1 or not isinstance(found, (KiebitzError, sqlite3.Error)):
                raise found
        has_home = params.grant.owner is None and (len(shown) > 1 or self._folders is not None)
        delay_s = self._delay_s if params.grant.is_late else None
        can_open = params.grant.player is None and not self._is_read_only
        return JsonResponse(
            records.Sessions(
                kiebitz_version(),
                params.grant.player,
                infos,
                has_home,
                delay_s,
                MAX_BYTES if can_open else 0,
            )
        )

    def _home(self, params: ApiRequest) -> HomePage:
        """Return the home page for a key and a view. Raises ForbiddenError for a player's."""
        if params.grant.owner is not None:
            raise ForbiddenError(f"this link shows only the view of {params.grant.player}")
        if params.player not in (None, PUBLIC):
            raise BadRequestError(f"all sessions together are shown in the full view or as {PUBLIC}")
        return self._homes[params.grant.is_late, params.player]

    async def _stream_home(self, request: Request, params: ApiRequest) -> Response:
        home = self._home(params)
        if request.method == "HEAD":
            return Response(media_type=EVENT_STREAM)
        return StreamingResponse(home.subscribe(), media_type=EVENT_STREAM, headers=_STREAM_HEADERS)

    async def _summarize_all(self, request: Request, params: ApiRequest) -> Response:
        text, digest = await self._home(params).summary()
        headers = {"etag": f'"{digest}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type="application/json", headers=headers)

    def _info(self, served: ServedSession, grant: Grant) -> Callable[[Reader], records.SessionInfo]:
        live = self._event_stream(grant, served).status.live
        return lambda reader: session_info(reader, live, reader.label(grant))

    async def _stream_events(self, request: Request, params: ApiRequest) -> Response:
        served = self._served(params)
        await self._ask(served, partial(_check_subscription, params), "news")
        if request.method == "HEAD":
            return Response(media_type=EVENT_STREAM)
        above = params.number("after")
        known = request.headers.get("last-event-id", "")
        if is_number(known) and len(known) < MAX_DIGITS:
            upto: int | None = int(known)
        else:
            upto = None if above is None else 0
        audience = params.grant if params.grant.player is not None else params.player, params.number("table")
        return StreamingResponse(
            self._relay(
                served,
                self._event_stream(params.grant, served).subscribe(audience, upto, above or 0),
            ),
            media_type=EVENT_STREAM,
            headers=_STREAM_HEADERS,
        )

    async def _list_held(self, request: Request, params: ApiRequest) -> Response:
        served = self._served(params)
        held = self._event_stream(params.grant, served).held_control.held
        shown = held if params.grant.player is None else None
        with using_copies(served.copies):
            return JsonResponse(await asyncio.to_thread(held_record, shown, not self._is_read_only))

    async def _act(self, request: Request, params: ApiRequest) -> Response:
        served = self._served(params)
        deed = await decode_body(request, Deed)
        with using_copies(served.copies):
            await act(self.event_streams[served.number].held_control, deed)
        return JsonResponse(records.Done(deed.do, deed.number))

    async def _mark(self, request: Request, params: ApiRequest) -> Response:
        served = self._served(params)
        deed = await decode_body(request, MarkDeed)

        def mark(reader: Reader) -> records.Marks:
            set_mark(served.path, reader.timeline, deed.kind, deed.number, deed.note)
            return records.Marks(marks(reader.timeline))

        return JsonResponse(await self._ask(served, mark))

    async def _open(self, request: Request, params: ApiRequest) -> Response:
        """Open a file that the user has dropped on the page or chosen there."""
        announced = request.headers.get("content-length", "")
        size = int(announced) if is_number(announced) else 0
        found = await self._opened.open(params.text("name") or "", size, request.stream())
        if isinstance(found, list):
            return JsonResponse(records.Opened(None, found))
        path, sessions = found
        name = os.path.basename(request.query_params["name"])
        numbered = [f"{name}:{number}" if len(sessions) > 1 else name for number in sessions]
        added = [
            self._new_session(path, number, shown, is_opened=True)
            for number, shown in zip(sessions, numbered, strict=True)
        ]
        for served in added:
            await self._add(served)
        return JsonResponse(records.Opened(added[0].number, []))

    async def _relay(
        self, served: ServedSession, audience: AsyncGenerator[bytes, None]
    ) -> AsyncIterator[bytes]:
        """Yield an event stream, and end it if reading the session fails."""
        try:
            async with aclosing(audience):
                async for text in audience:
                    yield text
        except (KiebitzError, sqlite3.Error):
            # The browser will reconnect.
            pass
        except Exception as error:
            why = await asyncio.to_thread(explain_error, served, error)
            if why is error:
                warn(fault(error))


def _client(request: Request) -> Holder:
    """Return who waits for an answer: a player's link at any address, or an address with the full link."""
    player: str | None = request.scope["grant"].owner
    if player is not None or request.client is None:
        return Holder(player, "")
    return Holder(None, address_group(request.client.host))


def _may_see(grant: Grant, served: ServedSession) -> bool:
    """Return True unless a session is of an opened file and the key is not the full link's."""
    return grant.player is None or not served.is_opened


def _check_subscription(params: ApiRequest, reader: Reader) -> None:
    """Raise NotThereError if an event stream is requested for an unknown player or table."""
    resolve_player(params, reader)
    table = params.number("table")
    if table is not None:
        reader.table(table, params.limit)


async def _file(request: Request) -> Response:
    """Return one of the page's files; there are no folders."""
    name = request.path_params["name"] or "index.html"
    content = page_files().get(name)
    if content is None:
        raise NotThereError(f"there is nothing at /{name[:MAX_SHOWN]}")
    media = MEDIA[name[name.rindex(".") :]]
    return Response(content, media_type=media, headers={"cache-control": "no-cache"})


# Errors.

_STATUS: dict[type[Exception], int] = {
    BusyError: 503,
    # The answer is not read.
    ClientDisconnect: 400,
    SlowRequestError: 408,
    HeldActionError: 409,
    MarkError: 409,
    RequestTooLargeError: 413,
    **STATUS,
}


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        found = records.Refusal(f"{error.detail}: use GET")
        return JsonResponse(found, error.status_code, error.headers)
    if isinstance(error, BusyError):
        return error.response()
    status, found = refusal(error, _STATUS)
    if isinstance(error, HeldActionError):
        found = records.Refusal(found.error, slips=error.slips or None)
    elif status == _STATUS[KiebitzError] and not isinstance(error, QueryTimeoutError):
        found = records.Refusal(_message_for(request, found.error))
    return JsonResponse(found, status)


async def _fail(request: Request, raised: Exception) -> Response:
    """Return the response to an unexpected exception."""
    sentence = fault(raised)
    warn(sentence)
    return JsonResponse(records.Refusal(_message_for(request, sentence)), 500)


def _message_for(request: Request, sentence: str) -> str:
    """Return an error message as the client may see it."""
    grant = request.scope.get("grant")
    return sentence if grant is None or grant.player is None else UNREADABLE
