"""The home page: all sessions with their tables, results, problems and alerts, live ones first.

All browsers share one summary, which is refreshed at most once per second. Finished sessions are read once.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice

import msgspec

from kiebitz.cli.listings import result_words
from kiebitz.cli.web import records
from kiebitz.cli.web.lists import seen_diagnostics
from kiebitz.cli.web.reader import Reader, ServedSession, View
from kiebitz.cli.web.routes import session_info, table_infos
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.storage.read.results import named_result

_REFRESH_S = 1.0
"""Minimum age in seconds of a summary before it is refreshed."""

SILENCE_S = 60
"""Time in seconds without a message after which a table with an open connection is reported."""

_ALERT_S = 60
"""Time in seconds for which an error is an alert."""

_MAX_BOARDS_S = 100
"""Number of boards per second that all browsers together should load: each takes two milliseconds."""

_BROWSERS_S = 10
_MAX_REQUESTS = 5000

_MAX_TABLES = 40
_MAX_PLAYERS = 12
_MAX_ALERTS = 3
"""Maximum number of alerts of a table."""

_MAX_NEW_ERRORS = 200
"""Maximum number of errors read at each refresh; older ones are counted only."""

_MAX_MESSAGES_READ = 20_000
"""Maximum number of messages read at the first refresh, to learn when each connection was last used."""

_MAX_TEXT = 160
"""Maximum number of characters of a sentence or a name."""

_RETRY_S = 10.0
"""Time in seconds after which a session that could not be read is tried again."""

_PATIENCE_S = 2.0
"""Time in seconds that a summary waits for the sessions' own summaries."""

_SLOW = "this session is still being read"

_SECOND_NS = 1_000_000_000

Ask = Callable[[ServedSession, Callable[[Reader], records.HomeSession]], Awaitable[records.HomeSession]]
"""Runs a query of a session."""


class _Problem(msgspec.Struct, frozen=True):
    """An error at a table, with the sentence of its alert."""

    ts_ns: int
    sentence: str


class _Progress(msgspec.Struct):
    """What is known about a session's diagnostics and messages up to certain ids, so that it is read once.

    `problems` are the latest errors by (server, protocol), `used_ns` the times of streams' last messages.
    """

    place: tuple[str, int, int | None]
    diagnostics: int = 0
    messages: int | None = None
    errors: int = 0
    warnings: int = 0
    problems: dict[tuple[str, str | None], list[_Problem]] = msgspec.field(default_factory=dict)
    used_ns: dict[int, int] = msgspec.field(default_factory=dict)


class HomePage:
    """The shared summary of the served sessions. Call `summary` in the event loop.

    Args:
        sessions: Returns the sessions now served.
        is_live: Returns whether a session is being recorded.
        ask: Runs a query; one at a time for each session.
        is_watching: True if new sessions may appear.
    """

    def __init__(
        self,
        sessions: Callable[[], Collection[ServedSession]],
        is_live: Callable[[ServedSession], bool],
        ask: Ask,
        is_watching: bool,
    ) -> None:
        self._sessions = sessions
        self._is_live = is_live
        self._ask = ask
        self._is_watching = is_watching
        self._progress: dict[int, _Progress] = {}
        self._kept: dict[int, tuple[object, float, records.HomeSession]] = {}
        """Sessions that are not read again before a time, unless their database is another one."""
        self._reading: dict[int, asyncio.Task[records.HomeSession]] = {}
        self._latest: dict[int, records.HomeSession] = {}
        self._refreshing = asyncio.Lock()
        self._refreshed_s = float("-inf")
        self._asked_s: deque[float] = deque(maxlen=_MAX_REQUESTS)
        """The times of the last requests, by which browsers are counted."""
        self._summary = b"", ""

    async def summary(self) -> tuple[bytes, str]:
        """Return the summary as JSON (`records.Home`), and its digest."""
        self._asked_s.append(time.monotonic())
        async with self._refreshing:
            if time.monotonic() - self._refreshed_s >= _REFRESH_S:
                found = await self._found(list(self._sessions()))
                found.sort(key=_rank)
                live = sum(len(one.tables) for one in found if one.session.live)
                home = records.Home(kiebitz_version(), self._is_watching, self._board_every_s(live), found)
                text = msgspec.json.encode(home)
                self._summary = text, hashlib.sha256(text).hexdigest()[:32]
                self._refreshed_s = time.monotonic()
        return self._summary

    async def _found(self, sessions: Sequence[ServedSession]) -> list[records.HomeSession]:
        """Return the summaries of sessions; for one that takes long the latest, or a note."""
        for served in sessions:
            if served.number not in self._reading:
                self._reading[served.number] = asyncio.create_task(self._session(served))
        if self._reading:
            await asyncio.wait(self._reading.values(), timeout=_PATIENCE_S)
        for served in sessions:
            if self._reading[served.number].done():
                self._latest[served.number] = self._reading.pop(served.number).result()
        return [self._latest.get(served.number) or self._note(served, _SLOW) for served in sessions]

    def _note(self, served: ServedSession, trouble: str) -> records.HomeSession:
        info = records.SessionInfo(
            served.number,
            served.name,
            None,
            None,
            None,
            None,
            self._is_live(served),
            served.lacks,
            served.dissection,
        )
        return records.HomeSession(info, trouble=shortened(trouble, _MAX_TEXT))

    def _board_every_s(self, live_tables: int) -> int:
        """Return the interval at which all browsers together load `_MAX_BOARDS_S` boards per second."""
        since_s = time.monotonic() - _BROWSERS_S
        while self._asked_s and self._asked_s[0] < since_s:
            self._asked_s.popleft()
        browsers = len(self._asked_s) * records.HOME_EVERY_S / _BROWSERS_S
        return max(records.HOME_EVERY_S, round(browsers * live_tables / _MAX_BOARDS_S))

    async def _session(self, served: ServedSession) -> records.HomeSession:
        place = served.path, served.session_id, served.dissection
        known = self._kept.get(served.number)
        if known is not None and known[0] == place and time.monotonic() < known[1]:
            return known[2]
        live = self._is_live(served)
        progress = self._progress.get(served.number)
        if progress is None or progress.place != place:
            progress = self._progress[served.number] = _Progress(place)
        try:
            found = await self._ask(served, partial(_summarize, served, live, progress))
        except (KiebitzError, sqlite3.Error) as error:
            found = self._note(served, str(error))
            # The query may go on in its thread.
            del self._progress[served.number]
            self._kept[served.number] = place, time.monotonic() + _RETRY_S, found
            return found
        if not live and found.session.ended is not None:
            self._kept[served.number] = place, float("inf"), found
            del self._progress[served.number]
        return found


def _rank(found: records.HomeSession) -> tuple[bool, bool, float, int]:
    """Return the sort key: live sessions first, of those the ones with alerts, then the newest."""
    info = found.session
    alerts = any(table.alerts for table in found.tables)
    return not info.live, not alerts, -found.started_s, info.number


def _summarize(served: ServedSession, live: bool, progress: _Progress, reader: Reader) -> records.HomeSession:
    timeline = reader.timeline
    _read_diagnostics(reader, progress)
    silent_s = _silences(reader, progress) if live else {}
    since_ns = time.time_ns() - _ALERT_S * _SECOND_NS
    tables = []
    infos = table_infos(reader)
    for info in infos[:_MAX_TABLES]:
        key = info.server, info.protocol
        alerts = []
        if live:
            problems = [one for one in progress.problems.get(key, ()) if one.ts_ns >= since_ns]
            progress.problems[key] = problems
            alerts = list(dict.fromkeys(one.sentence for one in reversed(problems)))[:_MAX_ALERTS]
            if silent_s.get(key, 0) >= SILENCE_S:
                alerts.append(f"nothing for {_duration(silent_s[key])}")
        events = timeline.recent(info.table, info.last, 1)
        latest = shortened(reader.spectator_view(None).latest(events), _MAX_TEXT)
        at = info.last if live else _end_of_last_game(reader, info)
        tables.append(records.HomeTable(info, at, latest, alerts))
    started_ns = timeline.session.started_ns
    latest_ns = max(
        (event.ts_ns for info in infos for event in timeline.recent(info.table, info.last, 1)), default=None
    )
    ended_ns = timeline.session.ended_ns if not live else latest_ns
    games = timeline.games()
    players = reader.players()
    return records.HomeSession(
        session_info(served, reader, live),
        started_ns / _SECOND_NS if started_ns is not None else 0.0,
        (ended_ns - started_ns) / _SECOND_NS if ended_ns is not None and started_ns is not None else None,
        [shortened(name, _MAX_TEXT) for name in players[:_MAX_PLAYERS]],
        len(players),
        len(games),
        _result(reader),
        progress.errors,
        progress.warnings,
        tables,
        len(infos),
    )


def _end_of_last_game(reader: Reader, info: records.TableInfo) -> int:
    """Return the last event of a table's last game: after it, players leave."""
    games = [game for game in reader.timeline.games() if game.table_id == info.table]
    span = reader.timeline.span(games[-1].id) if games else None
    return span[1].seq if span is not None else info.last


def _result(reader: Reader) -> str | None:
    """Return the result of the last game that has one."""
    timeline = reader.timeline
    game = next((game for game in reversed(timeline.games()) if game.result), None)
    result = named_result(timeline, game) if game is not None else None
    return shortened(result_words(result), _MAX_TEXT) if result else None


def _read_diagnostics(reader: Reader, progress: _Progress) -> None:
    """Count the new errors and warnings, and note the latest errors of each table."""
    timeline = reader.timeline
    upto = timeline.last_id("diagnostics")
    if upto == progress.diagnostics:
        return
    counted = timeline.connection.execute(
        "SELECT d.severity, count(*) FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
        " WHERE d.id > ? AND d.id <= ? AND s.session_id = ? GROUP BY d.severity",
        (progress.diagnostics, upto, timeline.session.id),
    )
    counts = dict(counted.fetchall())
    latest = []
    for row in islice(seen_diagnostics(reader, None, View(), "error", None, upto + 1), _MAX_NEW_ERRORS):
        if row.id <= progress.diagnostics:
            break
        stream = row.stream
        who = (
            reader.names.get(stream.id, stream.client)
            if row.blame == "client"
            else row.blame or stream.client
        )
        sentence = shortened(f"{who}: {row.text}", _MAX_TEXT)
        latest.append(((stream.server, stream.protocol), _Problem(row.ts_ns, sentence)))
    for key, problem in reversed(latest):
        progress.problems.setdefault(key, []).append(problem)
    progress.errors += counts.get("error", 0)
    progress.warnings += counts.get("warning", 0)
    progress.diagnostics = upto


def _silences(reader: Reader, progress: _Progress) -> dict[tuple[str, str | None], float]:
    """Return for how many seconds each table with an open connection has had no message."""
    timeline = reader.timeline
    upto = timeline.last_id("messages")
    after = max(upto - _MAX_MESSAGES_READ, 0) if progress.messages is None else progress.messages
    used = timeline.connection.execute(
        "SELECT stream_id, max(ts_ns) FROM messages WHERE id > ? AND id <= ? GROUP BY stream_id",
        (after, upto),
    )
    progress.used_ns.update(used.fetchall())
    progress.messages = upto
    latest_ns: dict[tuple[str, str | None], int] = {}
    for stream, server, protocol, opened_ns in _open_streams(reader):
        key = server, protocol
        latest_ns[key] = max(latest_ns.get(key, 0), progress.used_ns.get(stream, opened_ns))
    now_ns = time.time_ns()
    return {key: (now_ns - ts_ns) / _SECOND_NS for key, ts_ns in latest_ns.items()}


def _open_streams(reader: Reader) -> Iterator[tuple[int, str, str | None, int]]:
    timeline = reader.timeline
    yield from timeline.connection.execute(
        "SELECT id, server, protocol, opened_ns FROM streams WHERE session_id = ? AND closed_ns IS NULL",
        (timeline.session.id,),
    )


def _duration(seconds: float) -> str:
    """Return a duration in tens of seconds, or in minutes, so that its text rarely changes."""
    return f"{int(seconds // 10) * 10} s" if seconds < 120 else f"{int(seconds // 60)} min"
