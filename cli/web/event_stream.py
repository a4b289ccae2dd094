"""Server-sent events: updates of a session for all connected browsers.

One thread per session polls the database, and encodes each update once for all clients with the same view.
The latest updates are kept. Clients have no queue here, only the number of the last event sent. A client
that is slower than the kept updates gets its events from the database, so slow clients cost nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from kiebitz.cli.web import records
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.lists import event_records
from kiebitz.cli.web.query_executor import QueryExecutor
from kiebitz.cli.web.reader import (
    UNREADABLE,
    NotThereError,
    Reader,
    ServedSession,
    explain_error,
    render_table,
)
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import dissector_of, using_copies
from kiebitz.services.alteration.control_client import ControlClient
from kiebitz.services.sessions import session_at
from kiebitz.services.standard_streams import warn
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.session.follower import Follower

_POLL_S = 0.02
"""Interval in seconds between two looks at the database; costs half a percent of a core."""

_IDLE_POLL_S = 0.25
"""The same without clients."""

_MAX_UPDATES = 64
"""Number of updates kept."""

_MAX_EVENTS = 500
"""Maximum number of events in one update."""

_GROWTH_EVERY_S = 0.5

_COPY_DELAY_NS = 500_000_000
"""Delay in ns of an event for a player whose own copy may still arrive. Most copies arrive earlier."""

_HEARTBEAT_S = 15.0
"""Keep-alive interval in seconds."""

HEARTBEAT = b"event: ping\ndata: {}\n\n"
"""An event, not a comment: scripts do not see comments, and would assume a dead connection."""

Audience = tuple[Grant | str | None, int | None]
"""Clients with the same view: a player's link, a player's name, or None for everything; a table's id, or
None.

A player's link means the current player of its connection, even under another name.
"""


class _Update(msgspec.Struct, frozen=True):
    """An update for clients that know all events up to id `after`; then they know those up to `upto`."""

    after: int
    upto: int
    text: bytes


class _Channel:
    """The latest updates for clients with the same view, and the number of these clients."""

    def __init__(self, upto: int) -> None:
        self.upto = upto
        self.made = upto
        """Id of the last event encoded; it is published a moment later."""
        self.news: deque[_Update] = deque(maxlen=_MAX_UPDATES)
        self.subscribers = 0
        self.drawn: dict[int, set[str]] = {}
        """Fragments of each table's last published picture."""


class EventStream:
    """The updates of one session. Call `start` and `subscribe` in the event loop."""

    def __init__(self, served: ServedSession, executor: QueryExecutor) -> None:
        self._served = served
        self._executor = executor
        self._channels: dict[Audience, _Channel] = {}
        self._guard = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._is_held = False
        """True if events are withheld until a player's copy arrives."""
        self.status = records.Status(False, None, None)
        self.growth = records.Growth(0, 0)
        self.watchers = 0
        """Number of others that wait for `change`."""
        self._problem: str | None = None
        """Why the session cannot be dissected again."""
        self.held_control = ControlClient(self._place)
        """Held messages of the relay that records the session."""
        self._following: asyncio.Task[None] | None = None
        self._told_changes = 0

    async def start(self) -> None:
        """Start polling; return once its protocols are loaded and it is known whether it is live."""
        self._loop = asyncio.get_running_loop()
        self.change = asyncio.Event()
        """Set as soon as the session has changed."""
        self._looked = asyncio.Event()
        self._thread.start()
        await self._looked.wait()
        if self.status.live:
            self._following = asyncio.create_task(self.held_control.run())

    def stop(self) -> None:
        """Stop polling, and end all streams."""
        self._stopped.set()
        if self._following is not None:
            self._following.cancel()
        self._publish(())

    # In any thread.

    def dissected(self, problem: str | None) -> None:
        """Report that the session was dissected again, or why it cannot be."""
        self._problem = problem
        if problem is None:
            with self._guard:
                # Their events are those of the old database.
                self._channels.clear()
        self._wake()

    # In the event loop: one call per client.

    async def subscribe(
        self, audience: Audience, upto: int | None, above: int = 0
    ) -> AsyncGenerator[bytes, None]:
        """Yield the updates for a client that knows all events up to id `upto` (None: all current ones).

        Events numbered up to `above` at their table are left out. Raises StorageError, sqlite3.Error.
        """
        channel = await self._executor.ask(self._served, partial(self._join, audience), "news")
        try:
            reached = channel.upto if upto is None else min(upto, channel.upto)
            status: records.Status | None = None
            growth, grown_s = self._growth_for(audience), 0.0
            changes = 0
            dissection: records.Dissection | None = None
            while not self._stopped.is_set():
                changed = self.change
                if status is not self.status:
                    status = self.status
                    shown = status
                    if isinstance(audience[0], Grant) and status.trouble is not None:
                        # The message about an unreadable file contains its path.
                        shown = msgspec.structs.replace(status, trouble=UNREADABLE)
                    yield frame(shown, "status")
                latest = self._dissection(audience)
                if latest is not None and latest != dissection:
                    dissection = latest
                    yield frame(dissection, "dissection")
                if audience[0] is None and changes != self.held_control.changes:
                    changes = self.held_control.changes
                    held = self.held_control.held
                    yield frame(records.Waiting(None if held is None else len(held)), "held")
                now = self._loop.time()
                grown = self._growth_for(audience)
                if growth != grown and now - grown_s >= _GROWTH_EVERY_S:
                    growth, grown_s = grown, now
                    yield frame(growth, "growth")
                news = channel.news
                if reached < channel.upto and not any(piece.after == reached for piece in news):
                    text, reached = await self._executor.ask(
                        self._served,
                        partial(
                            encode_events,
                            audience=audience,
                            after=reached,
                            upto=channel.upto,
                            above=above,
                            drawn={},
                        ),
                        "news",
                    )
                    yield text
                    continue
                for piece in list(news):
                    if piece.after == reached:
                        reached = piece.upto
                        yield piece.text
                if changed is self.change and reached == channel.upto:
                    wait_s = _GROWTH_EVERY_S if growth != self._growth_for(audience) else _HEARTBEAT_S
                    try:
                        async with asyncio.timeout(wait_s):
                            await changed.wait()
                    except TimeoutError:
                        yield HEARTBEAT
        finally:
            self._leave(audience, channel)

    def _growth_for(self, audience: Audience) -> records.Growth:
        """Return the growth that an audience may know: diagnostics are also those of other connections."""
        if audience[0] is None:
            return self.growth
        return msgspec.structs.replace(self.growth, diagnostics=None)

    def _dissection(self, audience: Audience) -> records.Dissection | None:
        count = self._served.dissection
        if count is None:
            return None
        # A message about a file contains its path.
        return records.Dissection(count, None if isinstance(audience[0], Grant) else self._problem)

    def _join(self, audience: Audience, reader: Reader) -> _Channel:
        with self._guard:
            channel = self._channels.get(audience)
            if channel is None:
                channel = self._channels[audience] = _Channel(reader.timeline.last_event())
            channel.subscribers += 1
            return channel

    def _leave(self, audience: Audience, channel: _Channel) -> None:
        with self._guard:
            channel.subscribers -= 1
            if not channel.subscribers and self._channels.get(audience) is channel:
                del self._channels[audience]

    def _publish(self, news: Iterable[tuple[_Channel, _Update]]) -> None:
        for channel, piece in news:
            channel.news.append(piece)
            channel.upto = piece.upto
        changed, self.change = self.change, asyncio.Event()
        changed.set()

    # In the polling thread.

    def _run(self) -> None:
        try:
            with using_copies(self._served.copies):
                self._poll()
        except Exception as error:
            why = explain_error(self._served, error)
            if why is error and not isinstance(error, (sqlite3.Error, KiebitzError)):
                warn(fault(error))
            self._note(records.Status(False, f"no further updates: {why}", None))
        finally:
            self._note_looked()

    def _poll(self) -> None:
        path = self._served.path
        followed = Follower(session_at(path, self._served.session_id), path)
        reader = Reader(self._served)
        for table in followed.tables():
            dissector_of(table.protocol)
        self._note_status(followed)
        self._note_looked()
        while followed.is_live and not self._stopped.wait(
            _POLL_S if self._channels or self.watchers else _IDLE_POLL_S
        ):
            try:
                if followed.look() or self._is_held:
                    reader.look()
                    self._look(reader)
                    self._follow(followed, reader)
            except (sqlite3.Error, StorageError) as error:
                followed.fails(error)
            self._note_status(followed)
            if self.held_control.changes != self._told_changes:
                self._told_changes = self.held_control.changes
                self._wake()
        if self._is_held:
            self._look(reader, is_last=True)
        reader.close()
        followed.close()

    def _follow(self, followed: Follower, reader: Reader) -> None:
        """Switch all readers to another database if the recording continues there."""
        while not followed.is_live and followed.go_on():
            assert followed.path is not None
            # The last events of the previous database are in no other one.
            self._look(reader, is_last=True)
            self._served.session_id, self._served.path = followed.timeline.session.id, followed.path
            reader.look()
            self._look(reader)

    def _note_status(self, followed: Follower) -> None:
        self._note(records.Status(followed.is_live, followed.trouble, followed.ending))

    def _note_looked(self) -> None:
        # The loop may have ended.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._looked.set)

    def _place(self) -> tuple[str, int] | None:
        """Return path and id of a live session."""
        return (self._served.path, self._served.session_id) if self.status.live else None

    def _note(self, status: records.Status) -> None:
        if status != self.status:
            self.status = status
            self._wake()

    def _wake(self) -> None:
        # The loop may have ended.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._publish, ())

    def _look(self, reader: Reader, is_last: bool = False) -> None:
        """Encode new events for all channels; if `is_last`, do not wait for players' copies."""
        timeline = reader.timeline
        message = timeline.numbers.number("messages", timeline.last_id("messages"))
        growth = records.Growth(message, timeline.last_id("diagnostics"))
        self.growth = growth
        upto = reader.timeline.last_event()
        with self._guard:
            channels = list(self._channels.items())
        news = []
        self._is_held = False
        for audience, channel in channels:
            # The player of a link may be unknown now.
            with suppress(NotThereError):
                decided = upto if is_last else _decided_upto(reader, audience, channel.made, upto)
                self._is_held |= decided < upto
                while channel.made < decided:
                    after = channel.made
                    text, channel.made = encode_events(reader, audience, after, decided, 0, channel.drawn)
                    news.append((channel, _Update(after, channel.made, text)))
        self._loop.call_soon_threadsafe(self._publish, news)


def _decided_upto(reader: Reader, audience: Audience, after: int, upto: int) -> int:
    """Return the id up to which it is known which events to send: a player's copy may still arrive."""
    player = _audience_player(reader, audience)
    if player is None:
        return upto
    young_ns = time.time_ns() - _COPY_DELAY_NS
    for event in reader.timeline.events("e.id > ? AND e.id <= ?", [after, upto]):
        if event.ts_ns > young_ns and reader.visibility.seen(event, player) is None:
            return event.id - 1
    return upto


def encode_events(
    reader: Reader, audience: Audience, after: int, upto: int, above: int, drawn: dict[int, set[str]]
) -> tuple[bytes, int]:
    """Encode events after one id up to another, at most `_MAX_EVENTS`.

    `drawn` has the fragments known for each table; new ones are sent, and added to it.

    Returns:
        The text of the update, and the id of its last event.
    """
    player, table_id = _audience_player(reader, audience), audience[1]
    known = {table.id for table in reader.tables(player)}
    found = list(islice(reader.timeline.events("e.id > ? AND e.id <= ?", [after, upto]), _MAX_EVENTS + 1))
    is_all = len(found) <= _MAX_EVENTS
    if not is_all:
        del found[_MAX_EVENTS:]
        upto = found[-1].id
    by_table: dict[int, list[Event]] = {}
    for event in found:
        if table_id in (None, event.table_id) and event.seq > above and event.table_id in known:
            events = by_table.setdefault(event.table_id, [])
            seen = event if player is None else reader.visibility.seen(event, player)
            if seen is not None:
                events.append(seen)
    pushes = []
    for number, events in by_table.items():
        picture = _picture(reader, number, player, drawn) if is_all else None
        pushes.append(records.Push(number, event_records(reader, events, player), picture))
    # The id is what a reconnecting browser sends, so it comes last; it is valid without data.
    return b"".join(map(frame, pushes)).removesuffix(b"\n") + f"id: {upto}\n\n".encode(), upto


def _audience_player(reader: Reader, audience: Audience) -> str | None:
    """Return the current name of the player whose view is sent. Raises NotThereError."""
    return reader.label(audience[0]) if isinstance(audience[0], Grant) else audience[0]


def _picture(
    reader: Reader, table_id: int, player: str | None, drawn: dict[int, set[str]]
) -> records.Picture:
    """Return a table's current picture with its new fragments."""
    shown = render_table(reader, reader.table(table_id), reader.timeline.last_seq(table_id), player)
    new = shown.fragments(shown.names - drawn.get(table_id, set()))
    drawn[table_id] = shown.names
    return msgspec.structs.replace(shown.picture, fragments=new)


def frame(said: Any, kind: str | None = None) -> bytes:
    """Return a server-sent event of a kind with a record as JSON."""
    name = f"event: {kind}\n" if kind is not None else ""
    return f"{name}data: ".encode() + msgspec.json.encode(said) + b"\n\n"
