"""The home page: all sessions with their tables, results and alarms, live ones first.

Each session is summarized once for all browsers, soon after it has grown. Finished sessions are read once.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from kiebitz.cli.listings import result_sentence, result_words
from kiebitz.cli.web import records
from kiebitz.cli.web.event_stream import HEARTBEAT, EventStream, frame
from kiebitz.cli.web.live_watch import MAX_TEXT, LiveWatch, TableWatch, is_over
from kiebitz.cli.web.query_executor import Kind
from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.cli.web.routes import session_info, table_infos
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Game
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.players import named_result

_PAUSE_S = 0.1
"""Minimum time in seconds between two summaries of a session."""

_REFRESH_S = 2.0
"""Maximum age in seconds of a live session's summary: its alarms contain durations."""

_LOOK_S = 1.0
"""Interval in seconds at which subscribers get new sessions."""

_HEARTBEAT_S = 15.0
"""Interval in seconds of the keep-alive."""

_BOARD_EVERY_S = 0.25
"""Minimum time in seconds between two boards of a table that a browser loads."""

_MAX_BOARDS_S = 100
"""Number of boards per second that all browsers together should load: each takes two milliseconds."""

_RECENT = 20
"""Maximum number of events that are searched for the latest visible one."""

_MAX_TABLES = 40

_SHOWN_S = 60
"""Time in seconds for which a game that has ended is shown beside those that are on."""

_MAX_PLAYERS = 12

_RETRY_S = 10.0
"""Time in seconds after which a session that could not be read is tried again."""

_PATIENCE_S = 2.0
"""Time in seconds that a summary waits for the sessions' own summaries."""

_FOR_EVER = float("inf")

_NUMBER = re.compile("[0-9]{1,12}")
_MAX_DIGITS = 12

_SLOW = "this session is still being read"

_SECOND_NS = 1_000_000_000

Ask = Callable[[ServedSession, Callable[[Reader], records.HomeSession], Kind], Awaitable[records.HomeSession]]
"""Runs a query of a session."""


class _Found(msgspec.Struct, frozen=True):
    """The summary of a session at a place, as JSON, too; it is not made again before a time."""

    session: records.HomeSession
    place: object
    until_s: float
    json: bytes


class HomePage:
    """The summaries of the served sessions. Call its methods in the event loop.

    Args:
        sessions: Returns the sessions now served.
        stream: Returns the event stream of a session.
        ask: Runs a query; one at a time for each session.
        is_watching: True if new sessions may appear.
        delay_s: Age in seconds of what the sessions show.
        viewer: The view that is shown: `PUBLIC`, or None for everything.
    """

    def __init__(
        self,
        sessions: Callable[[], Collection[ServedSession]],
        stream: Callable[[ServedSession], EventStream],
        ask: Ask,
        is_watching: bool,
        delay_s: float = 0.0,
        viewer: str | None = None,
    ) -> None:
        self._sessions = sessions
        self._stream = stream
        self._ask = ask
        self._is_watching = is_watching
        self._delay_s = delay_s
        self._viewer = viewer
        self._watches: dict[int, tuple[object, LiveWatch]] = {}
        self._reading: dict[int, asyncio.Task[_Found]] = {}
        self._latest: dict[int, _Found] = {}
        self._subscribers = 0
        self._is_over = False
        self._changed = asyncio.Event()
        self._followers: dict[int, asyncio.Task[None]] = {}

    async def summary(self) -> tuple[bytes, str]:
        """Return the summary of all sessions as JSON (`records.Home`), and its digest."""
        sessions = list(self._sessions())
        reading = [self._read(served) for served in sessions]
        if reading:
            await asyncio.wait(reading, timeout=_PATIENCE_S)
        found = [self._latest.get(served.number) or self._note(served, _SLOW) for served in sessions]
        found.sort(key=lambda one: _rank(one.session))
        home = msgspec.structs.asdict(
            records.Home(kiebitz_version(), self._is_watching, self._board_every_s(), [])
        ) | {"sessions": [msgspec.Raw(one.json) for one in found]}
        text = msgspec.json.encode(home)
        return text, hashlib.sha256(text).hexdigest()[:32]

    async def subscribe(self) -> AsyncGenerator[bytes, None]:
        """Yield the summary of all sessions, then those of sessions that change, as server-sent events."""
        self._subscribers += 1
        try:
            self._follow_all()
            known = {number: one.json for number, one in self._latest.items()}
            text, _ = await self.summary()
            yield frame(msgspec.Raw(text), "home")
            sent_s = time.monotonic()
            while not self._is_over:
                changed = self._changed
                self._follow_all()
                news = {
                    number: one.json for number, one in self._latest.items() if known.get(number) != one.json
                }
                if news:
                    known |= news
                    sessions = [msgspec.Raw(text) for text in news.values()]
                    yield frame({"board_every_s": self._board_every_s(), "sessions": sessions}, "sessions")
                    sent_s = time.monotonic()
                elif time.monotonic() - sent_s >= _HEARTBEAT_S:
                    yield HEARTBEAT
                    sent_s = time.monotonic()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await changed.wait()
        finally:
            self._subscribers -= 1
            if not self._subscribers:
                for task in self._followers.values():
                    task.cancel()
                self._followers.clear()

    def end(self) -> None:
        """End all subscriptions."""
        self._is_over = True
        self._publish()

    def _publish(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _follow_all(self) -> None:
        for served in self._sessions():
            if served.number not in self._followers:
                self._followers[served.number] = asyncio.create_task(self._follow(served))

    async def _follow(self, served: ServedSession) -> None:
        """Summarize a session whenever it grows."""
        stream = self._stream(served)
        stream.watchers += 1
        try:
            while True:
                change = stream.change
                # Others may wait for the same task.
                found = await asyncio.shield(self._read(served))
                await asyncio.sleep(_PAUSE_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if found.until_s == _FOR_EVER else _REFRESH_S):
                        await change.wait()
        finally:
            stream.watchers -= 1

    def _read(self, served: ServedSession) -> asyncio.Task[_Found]:
        """Return the task that summarizes a session, which then is in `_latest`."""
        task = self._reading.get(served.number)
        if task is None:
            task = self._reading[served.number] = asyncio.create_task(self._summarized(served))
            task.add_done_callback(lambda _: self._reading.pop(served.number, None))
        return task

    def _note(self, served: ServedSession, trouble: str, until_s: float = 0.0) -> _Found:
        info = records.SessionInfo(
            number=served.number,
            name=served.name,
            label=None,
            source=None,
            started=None,
            ended=None,
            live=self._stream(served).status.live,
            lacks=served.lacks,
            dissection=served.dissection,
        )
        return _found(served, records.HomeSession(info, trouble=shortened(trouble, MAX_TEXT)), until_s)

    def _board_every_s(self) -> float:
        """Return the interval at which all browsers together load `_MAX_BOARDS_S` boards per second."""
        live = sum(len(one.session.tables) for one in self._latest.values() if one.session.session.live)
        return max(_BOARD_EVERY_S, round(self._subscribers * live / _MAX_BOARDS_S, 2))

    async def _summarized(self, served: ServedSession) -> _Found:
        place = _place(served)
        known = self._latest.get(served.number)
        if known is not None and known.place == place and time.monotonic() < known.until_s:
            return known
        live = self._stream(served).status.live
        watched, watch = self._watches.get(served.number, (None, LiveWatch(self._viewer)))
        if watched != place:
            watch = LiveWatch(self._viewer)
        self._watches[served.number] = place, watch
        now_ns = time.time_ns() - int(self._delay_s * _SECOND_NS)
        try:
            session = await self._ask(
                served, partial(_summarize, live, watch, now_ns), "news" if live else "slow"
            )
        except Exception as error:
            if not isinstance(error, (KiebitzError, sqlite3.Error)):
                warn(fault(error))
            # The query may go on in its thread.
            del self._watches[served.number]
            found = self._note(served, str(error), time.monotonic() + _RETRY_S)
        else:
            is_over = not live and session.session.ended is not None
            found = _found(served, session, _FOR_EVER if is_over else time.monotonic() + _PAUSE_S / 2)
            if is_over:
                del self._watches[served.number]
        self._latest[served.number] = found
        if known is None or known.json != found.json:
            self._publish()
        return found


def _found(served: ServedSession, session: records.HomeSession, until_s: float) -> _Found:
    return _Found(session, _place(served), until_s, msgspec.json.encode(session))


def _place(served: ServedSession) -> object:
    return served.path, served.session_id, served.dissection


def _rank(found: records.HomeSession) -> tuple[bool, float, str, int]:
    """Return the sort key: live sessions first, by name, then the others, the newest first."""
    info = found.session
    if info.live:
        return False, 0.0, _NUMBER.sub(lambda digits: digits[0].zfill(_MAX_DIGITS), info.name), info.number
    return True, -found.started_s, "", info.number


def _summarize(live: bool, watch: LiveWatch, now_ns: int, reader: Reader) -> records.HomeSession:
    timeline, viewer = reader.timeline, watch.viewer
    watch.update(reader, live)
    infos = table_infos(reader)
    tables = [table for info in infos[:_MAX_TABLES] for table in _tables(reader, info, live, watch, now_ns)]
    started_ns = timeline.session.started_ns
    latest_ns = max(
        (event.ts_ns for info in infos for event in timeline.recent(info.table, info.last, 1)), default=None
    )
    ended_ns = timeline.session.ended_ns if not live else latest_ns
    last = timeline.last_game(with_result=True)
    players = reader.players()
    return records.HomeSession(
        session_info(reader, live, viewer),
        started_ns / _SECOND_NS if started_ns is not None else 0.0,
        (ended_ns - started_ns) / _SECOND_NS if ended_ns is not None and started_ns is not None else None,
        [shortened(name, MAX_TEXT) for name in players[:_MAX_PLAYERS]],
        len(players),
        timeline.count("games"),
        _result(reader, last, viewer, result_words) if last is not None else None,
        watch.errors,
        watch.warnings,
        watch.lost_servers(now_ns, reader.tables()) if live else [],
        tables,
        len(infos),
    )


def _result(
    reader: Reader, game: Game, viewer: str | None, words_of: Callable[[dict[str, Any]], str]
) -> str | None:
    """Return a game's result in words; in the public view, the sentence of the event that ended it.

    The stored result may contain what the players do not know.
    """
    named = named_result(reader.timeline, game)
    dissector = dissector_of(game.protocol)
    if viewer is None or not named or dissector is None:
        return shortened(words_of(named), MAX_TEXT) if viewer is None and named else None
    span = reader.timeline.span(game.id)
    recent = reader.timeline.recent(game.table_id, span[1].seq, _RECENT) if span is not None else []
    ends = {kind.kind for kind in dissector.grammar.events.values() if kind.ends}
    closing = next((e for e in reversed(recent) if e.game_id == game.id and e.kind in ends), None)
    if closing is None or not reader.spectator_view(viewer).may_see(closing):
        return None
    sentence = reader.spectator_view(viewer).sentence(closing)
    winner = result_sentence({"winner": named["winner"]}) if named.get("winner") else ""
    # In a protocol file, a winner who is not in the sentence may be a secret.
    is_told = dissector.identity.sees_own_dissection or winner.partition(" win")[0] in sentence
    return shortened(sentence if is_told else f"{sentence}; {winner}", MAX_TEXT)


def _tables(
    reader: Reader, info: records.TableInfo, live: bool, watch: LiveWatch, now_ns: int
) -> Iterator[records.HomeTable]:
    """Yield a live table's games, if there are several at once, or else the table.

    A game that has ended is one of them for a while.
    """
    timeline = reader.timeline
    since_ns = now_ns - _SHOWN_S * _SECOND_NS
    games = timeline.games_since(info.table, since_ns, _MAX_TABLES) if live else []
    if not any(
        one.ended_ns is None or one.ended_ns > following.started_ns for one, following in pairwise(games)
    ):
        yield _table(reader, info, timeline.last_game(info.table), live, watch, now_ns)
        return
    view = reader.spectator_view(watch.viewer)
    for game in games:
        table = _table(reader, info, game, live, watch, now_ns, one_of=True)
        span = timeline.span(game.id)
        at = span[1].seq if span is not None else info.last
        latest = view.latest(timeline.recent(info.table, at, _RECENT, game.id))
        yield msgspec.structs.replace(
            table,
            at=at,
            latest=shortened(latest, MAX_TEXT),
            result=table.result if game.ended_ns is not None else None,
            game=timeline.numbers.number("games", game.id),
            label=shortened(view.label(game), MAX_TEXT),
        )


def _table(
    reader: Reader,
    info: records.TableInfo,
    game: Game | None,
    live: bool,
    watch: LiveWatch,
    now_ns: int,
    one_of: bool = False,
) -> records.HomeTable:
    """Return a table as it is now, or at the end of its last game: after it, players leave."""
    timeline = reader.timeline
    at, result = info.last, None
    if game is not None and (is_over(game) or not live):
        span = timeline.span(game.id)
        at = span[1].seq if span is not None else at
        result = _result(reader, game, watch.viewer, result_sentence)
    latest = reader.spectator_view(watch.viewer).latest(timeline.recent(info.table, at, _RECENT))
    found = watch.table(reader, reader.table(info.table), game, now_ns, one_of) if live else TableWatch([])
    return records.HomeTable(info, at, shortened(latest, MAX_TEXT), found.alerts, found.waiting, result)
