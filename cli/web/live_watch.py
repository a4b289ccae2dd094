"""Alarms of live tables: errors, lost servers, clients that have left, and for whom a game waits.

An alarm names the program, the time since when, and what to do. After the end of a game there are none, as
players then leave, and servers may stop.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from itertools import islice

import msgspec

from kiebitz.cli.render.views import view_of
from kiebitz.cli.web.reader import Reader
from kiebitz.dissectors.game.view import Seat
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Direction, Game, Stream, TableInfo
from kiebitz.proxy.relay.modes import Reverse, parse_mode
from kiebitz.proxy.system.ports_in_use import is_in_use
from kiebitz.services.wording import in_series
from kiebitz.storage.read.timeline import STREAM_COLUMNS

PATIENCE_S = 20
"""Time in seconds without a message in a game after which the page says for whom it waits."""

_RECENT_S = 60
"""Time in seconds for which an error, or a lost server without a game, is an alarm."""

_MAX_ALERTS = 3
"""Maximum number of alarms of a table."""

_MAX_NEW_ERRORS = 200
"""Maximum number of errors read at each refresh; older ones are counted only."""

_MAX_MESSAGES_READ = 20_000
"""Maximum number of messages read at the first refresh, to learn when each connection was last used."""

_MAX_STREAMS = 2000
"""Maximum number of connections of a session that are watched, the latest."""

MAX_TEXT = 160
"""Maximum number of characters of a sentence or a name."""

_SECOND_NS = 1_000_000_000

_LOST = ("refused", "port-unreachable", "timeout", "host-unreachable", "network-unreachable")
"""Codes of the relay's faults for a peer that cannot be reached."""


_NO_LISTENER = "no program listens on that port"


class _Problem(msgspec.Struct, frozen=True):
    """An error at a table: the sentence of its alarm, its stream, and the row id of its game, if known."""

    ts_ns: int
    sentence: str
    stream: int
    game: int | None


class _Loss(msgspec.Struct):
    """A peer that cannot be reached: since when, the latest attempt, and the relay's reason."""

    since_ns: int
    latest_ns: int
    reason: str


class TableWatch(msgspec.Struct, frozen=True):
    """State of a live table for the page: its alarms, and the player for whom its game waits."""

    alerts: list[str]
    waiting: str | None = None


class LiveWatch:
    """Everything that is known about the diagnostics and the traffic of a session, read incrementally."""

    def __init__(self, viewer: str | None = None) -> None:
        self.viewer = viewer
        """The view that is shown; in one other than the full view (None), errors do not count."""
        self.errors = 0
        self.warnings = 0
        self._diagnostics = 0
        self._messages: int | None = None
        self._problems: dict[tuple[str, str | None], list[_Problem]] = {}
        self._used_ns: dict[int, dict[Direction, int]] = {}
        self._losses: dict[int, _Loss] = {}
        """Clients that cannot be reached, by stream."""
        self._lost_servers: dict[str, _Loss] = {}
        self._connections: Sequence[Stream] = ()

    def update(self, reader: Reader, is_live: bool) -> None:
        """Read new rows; only a live session's traffic is watched. Raises sqlite3.Error."""
        if is_live:
            self._read_traffic(reader)
        self._read_diagnostics(reader)

    def lost_servers(self, now_ns: int, tables: Collection[TableInfo]) -> list[str]:
        """Return the alarms for servers without a table."""
        known = {table.server for table in tables}
        return [
            _lost_server(server, loss)
            for server, loss in self._lost_servers.items()
            if server not in known and _is_recent(loss.latest_ns, now_ns)
        ]

    def table(
        self, reader: Reader, table: TableInfo, game: Game | None, now_ns: int, one_of: bool = False
    ) -> TableWatch:
        """Return what to show about a table with its latest game, or about one that is `one_of` several."""
        is_running = game is not None and not is_over(game)
        key = table.server, table.protocol
        problems = [one for one in self._problems.get(key, ()) if _is_recent(one.ts_ns, now_ns)]
        self._problems[key] = problems
        others: set[int] = set()
        seats: Sequence[Seat] | None = None
        if one_of and game is not None:
            seats, streams = _seats(reader, table, self.viewer, game.id), _streams_by_player(reader)
            seated = {seat.name for seat in seats}
            others = {stream for name, own in streams.items() if name not in seated for stream in own}
            problems = [
                one
                for one in problems
                if one.game == game.id or (one.game is None and one.stream not in others)
            ]
        alerts = [one.sentence for one in reversed(problems)]
        loss = self._lost_servers.get(table.server)
        if loss is not None and (is_running or _is_recent(loss.latest_ns, now_ns)):
            return _watch([_lost_server(table.server, loss), *alerts])
        if not is_running:
            return _watch(alerts)
        here = [one for one in self._connections if one.server == table.server and one.id not in others]
        silent_ns = now_ns - max(map(self._used, here), default=now_ns)
        is_silent = silent_ns >= PATIENCE_S * _SECOND_NS
        if not is_silent and all(self._gone_ns(one) is None for one in here):
            return _watch(alerts)
        if here and _is_stopped(reader.timeline.session.source, here[0]):
            since_ns = max((self._used_ns.get(one.id, {}).get("s2c", 0) for one in here), default=0)
            return _watch([_lost_server(table.server, _Loss(since_ns, now_ns, _NO_LISTENER)), *alerts])
        if seats is None:
            seats, streams = _seats(reader, table, self.viewer), _streams_by_player(reader)
        gone = self._gone_players(streams, here, [seat.name for seat in seats])
        if gone and len(gone) > 1 and all(self._gone_ns(one) is not None for one in here):
            since = _clock(max(gone.values()))
            return _watch(
                [f"all connections have ended, since {since}: is the server still running?", *alerts]
            )
        alerts = [
            *(
                f"{name}'s client is gone, since {_clock(ts_ns)}: start it again"
                for name, ts_ns in gone.items()
            ),
            *alerts,
        ]
        if not is_silent:
            return _watch(alerts)
        waiting = self._waiting(streams, here, [seat.name for seat in seats if seat.state == "turn"], gone)
        return _watch(alerts, f"{waiting}, {_duration(silent_ns)}" if waiting is not None else None)

    def _waiting(
        self,
        streams: Mapping[str, Sequence[int]],
        here: Sequence[Stream],
        turn: Sequence[str],
        gone: Collection[str],
    ) -> str | None:
        """Return for whom a silent game waits; None if the alarms say it."""
        slow = []
        for name in turn:
            known = [self._used_ns.get(stream, {}) for stream in streams.get(name, ())]
            sent_ns = max((each.get("c2s", 0) for each in known), default=0)
            if sent_ns > max((each.get("s2c", 0) for each in known), default=0):
                return f"waiting for the server's answer to {name}"
            if name not in gone:
                slow.append(name)
        if slow:
            return f"waiting for {in_series(slow)}"
        if turn or all(one.closed_ns is not None for one in here):
            return None
        used = self._used_ns.get(max(here, key=self._used).id, {})
        return (
            "waiting for the server" if used.get("c2s", 0) > used.get("s2c", 0) else "waiting for the players"
        )

    def _gone_players(
        self, streams: Mapping[str, Sequence[int]], here: Sequence[Stream], seated: Collection[str]
    ) -> dict[str, int]:
        """Return the seated players without an open connection, and since when."""
        gone_ns = {one.id: self._gone_ns(one) for one in here}
        found = {}
        for name, own in streams.items():
            ends = [gone_ns[stream] for stream in own if stream in gone_ns]
            times = [ts_ns for ts_ns in ends if ts_ns is not None]
            if name in seated and ends and len(times) == len(ends):
                found[shortened(name, MAX_TEXT)] = max(times)
        return found

    def _gone_ns(self, connection: Stream) -> int | None:
        """Return since when a client is gone; None if it is not."""
        loss = self._losses.get(connection.id)
        if connection.closed_ns is None and loss is not None:
            return loss.since_ns
        return connection.closed_ns

    def _used(self, connection: Stream) -> int:
        return max(self._used_ns.get(connection.id, {}).values(), default=connection.opened_ns)

    def _read_traffic(self, reader: Reader) -> None:
        """Note the connections, and when each was last used in each direction."""
        timeline = reader.timeline
        upto = timeline.last_id("messages")
        after = max(upto - _MAX_MESSAGES_READ, 0) if self._messages is None else self._messages
        used = timeline.connection.execute(
            "SELECT stream_id, direction, max(ts_ns) FROM messages WHERE id > ? AND id <= ?"
            " GROUP BY stream_id, direction",
            (after, upto),
        )
        for stream, direction, ts_ns in used:
            self._used_ns.setdefault(stream, {})[direction] = ts_ns
        self._messages = upto
        rows = timeline.connection.execute(
            f"SELECT {STREAM_COLUMNS} FROM streams AS s WHERE session_id = ? ORDER BY id DESC LIMIT ?",
            (timeline.session.id, _MAX_STREAMS),
        )
        self._connections = [Stream(*row) for row in rows]

    def _read_diagnostics(self, reader: Reader) -> None:
        """Count new errors and warnings, note the latest errors of each table, and lost peers."""
        timeline = reader.timeline
        upto = timeline.last_id("diagnostics")
        if upto > self._diagnostics:
            span = (self._diagnostics, upto, timeline.session.id)
            counted = timeline.connection.execute(
                "SELECT d.severity, count(*) FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
                " WHERE d.id > ? AND d.id <= ? AND s.session_id = ? GROUP BY d.severity",
                span,
            )
            counts = dict(counted.fetchall())
            if self.viewer is None:
                self.errors += counts.get("error", 0)
                self.warnings += counts.get("warning", 0)
                self._note_problems(reader, upto)
            self._note_losses(timeline.connection, span)
            self._diagnostics = upto
        self._drop_found_again()

    def _note_problems(self, reader: Reader, upto: int) -> None:
        latest = []
        found = reader.rows(None).diagnostics(None, None, upto + 1, severities=("error",))
        for row in islice(found, _MAX_NEW_ERRORS):
            if row.id <= self._diagnostics:
                break
            stream = row.stream
            who = stream.player or stream.client if row.blame == "client" else row.blame or stream.client
            sentence = shortened(f"{who}: {row.text}", MAX_TEXT)
            problem = _Problem(row.ts_ns, sentence, stream.id, row.game_id)
            latest.append(((stream.server, stream.protocol), problem))
        for key, problem in reversed(latest):
            known = self._problems.setdefault(key, [])
            others = [one for one in known if (one.sentence, one.game) != (problem.sentence, problem.game)]
            known[:] = [*others[-_MAX_ALERTS:], problem]

    def _note_losses(self, connection: sqlite3.Connection, span: tuple[int, int, int]) -> None:
        codes = ", ".join("?" * len(_LOST))
        rows = connection.execute(
            "SELECT d.stream_id, d.direction, d.ts_ns, d.text, s.server FROM diagnostics AS d"
            " JOIN streams AS s ON s.id = d.stream_id"
            " WHERE d.id > ? AND d.id <= ? AND s.session_id = ? AND d.grp = 'network'"
            f" AND d.code IN ({codes}) ORDER BY d.id",
            (*span, *_LOST),
        )
        for stream, direction, ts_ns, reason, server in rows:
            if direction == "c2s":
                known = self._lost_servers.setdefault(server, _Loss(ts_ns, ts_ns, reason))
            else:
                known = self._losses.setdefault(stream, _Loss(ts_ns, ts_ns, reason))
            known.latest_ns, known.reason = ts_ns, reason

    def _drop_found_again(self) -> None:
        """Drop the losses of peers that have sent something since, or accepted a connection."""
        heard_ns: dict[str, int] = {}
        for one in self._connections:
            heard = self._used_ns.get(one.id, {}).get("s2c", 0)
            if one.transport == "tcp" and one.closed_ns is None:
                heard = max(heard, one.opened_ns)
            heard_ns[one.server] = max(heard_ns.get(one.server, 0), heard)
        self._lost_servers = {
            server: loss
            for server, loss in self._lost_servers.items()
            if loss.latest_ns >= heard_ns.get(server, 0)
        }
        self._losses = {
            stream: loss
            for stream, loss in self._losses.items()
            if loss.latest_ns >= self._used_ns.get(stream, {}).get("c2s", 0)
        }


def is_over(game: Game) -> bool:
    """Return True if a game has been played to its end; a lost connection is none."""
    return game.ended_ns is not None and not (game.result and "aborted" in game.result)


def _seats(reader: Reader, table: TableInfo, viewer: str | None, game: int | None = None) -> Sequence[Seat]:
    """Return the seats of a table's running game, or of a game with a row id."""
    timeline = reader.timeline
    seq = timeline.last_seq(table.id)
    spectator_view = reader.spectator_view(viewer)
    state, events = spectator_view.moment(table.id, seq, timeline.state_at(table.id, seq), game)
    view = view_of(table.protocol, spectator_view.scene(table.id, state, events, game))
    return view.seats if view is not None else ()


def _streams_by_player(reader: Reader) -> Mapping[str, list[int]]:
    """Return the streams of each player by the player's latest name."""
    found: dict[str, list[int]] = {}
    for player in reader.visibility.players():
        for claim in player.claims:
            found.setdefault(claim.name, []).append(claim.stream)
    return found


def _is_stopped(source: str, connection: Stream) -> bool:
    """Return True if no program listens at the server's port, which is on this machine, as is its relay."""
    host, _, port = connection.server.rpartition(":")
    transport = connection.transport
    for spec in source.split():
        with suppress(ValueError):
            mode = parse_mode(spec)
            if isinstance(mode, Reverse) and (mode.transport, mode.port) == (transport, int(port)):
                # The relay may be in another container, where this address is another machine.
                is_here = ip_address(host.strip("[]")).is_loopback and is_in_use(transport, mode.listen_port)
                return bool(is_here) and is_in_use(transport, mode.port) is False
    return False


def _watch(alerts: Sequence[str], waiting: str | None = None) -> TableWatch:
    return TableWatch(list(dict.fromkeys(alerts))[:_MAX_ALERTS], waiting)


def _lost_server(server: str, loss: _Loss) -> str:
    since = _clock(loss.since_ns)
    if loss.reason == _NO_LISTENER:
        return f"server {server}: {loss.reason}, since {since}: start the server"
    return f"server {server}: {loss.reason}, since {since}: is it the right address?"


def _is_recent(ts_ns: int, now_ns: int) -> bool:
    return ts_ns >= now_ns - _RECENT_S * _SECOND_NS


def _clock(ts_ns: int) -> str:
    return time.strftime("%H:%M", time.localtime(ts_ns / _SECOND_NS))


def _duration(ns: int) -> str:
    """Return a duration in tens of seconds, or in minutes, so that its text rarely changes."""
    seconds = ns // _SECOND_NS
    return f"{seconds // 10 * 10} s" if seconds < 120 else f"{seconds // 60} min"
