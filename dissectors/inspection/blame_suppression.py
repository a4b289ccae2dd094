"""Suppression of blame for Kiebitz's own alterations of messages.

A violation in bytes that Kiebitz has written is its own. The consequences of an altered message blame no peer
either: messages out of turn or against the rules are notes, until the games that may be affected are over and
another one has begun. The spelling of their own messages remains the peers' responsibility.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from kiebitz.dissectors.dissector import ServerAddress
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.model import Action, Altered, Direction, Findings, Game, Stream

REWRITING_ACTIONS: frozenset[Action] = frozenset({"change", "insert", "double"})
"""The actions after which the forwarded bytes are not the peer's."""

_MAX_RANGES = 1024
"""Maximum number of remembered ranges of altered bytes, all streams together."""

_MAX_GAMES = 1024

_AFTER_ALTERATION = " (after Kiebitz has altered a message)"
_CONSEQUENCE_GROUPS = ("sequence", "rule", "state")

Tables = Callable[[], Mapping[ServerAddress, GameContext]]
"""Returns the contexts of all tables, by server."""


class AffectedPeriod:
    """The period in which alterations at one server may have consequences."""

    def __init__(self) -> None:
        self._since_ns = 0
        self._games: dict[int, Game] = {}
        """The games that may be affected: running at the alteration, or begun since, unless they are over."""
        self._has_ended = False
        """True if one of them is over."""
        self._clean_ns: int | None = 0
        """Time from which there are no more consequences; None while there may be."""

    @property
    def is_open(self) -> bool:
        """True if there may still be consequences."""
        return self._clean_ns is None

    def altered(self, ts_ns: int, games: dict[int, Game]) -> None:
        """Note an alteration during these games; without any, it may affect the next one."""
        self._since_ns = ts_ns
        self._clean_ns = None
        self._has_ended = False
        self._games = dict(games)

    def game_seen(self, game: Game) -> None:
        """Note a game, which may have just begun or be reported again."""
        if self._clean_ns is not None or game.started_ns < self._since_ns or game.id in self._games:
            return
        for other in [*self._games.values()]:
            if other.ended_ns is not None and other.ended_ns <= game.started_ns:
                self._has_ended = True
                del self._games[other.id]
        if self._has_ended and not self._games:
            self._clean_ns = game.started_ns
            return
        self._games[game.id] = game
        if len(self._games) > _MAX_GAMES:
            del self._games[next(iter(self._games))]

    def affects(self, ts_ns: int) -> bool:
        """Return True if a peer's action at this time may be a consequence."""
        return self._clean_ns is None or ts_ns < self._clean_ns


class AlteredRanges:
    """The ranges of bytes that were forwarded with an alteration: the latest of all streams."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[int, Direction], deque[tuple[int, int, Action]]] = {}
        self._order: deque[tuple[int, Direction]] = deque()

    def add(self, item: Altered) -> None:
        """Remember the bytes forwarded with an alteration."""
        if not item.length:
            return
        key = (item.stream.id, item.direction)
        self._ranges.setdefault(key, deque()).append((item.offset, item.offset + item.length, item.action))
        self._order.append(key)
        if len(self._order) > _MAX_RANGES:
            oldest = self._order.popleft()
            ranges = self._ranges[oldest]
            ranges.popleft()
            if not ranges:
                del self._ranges[oldest]

    def action(self, stream: Stream, direction: Direction, offset: int, length: int = 1) -> Action | None:
        """Return the alteration of a range, or None; a range of `length` 0 also matches right after one."""
        for start, end, action in self._ranges.get((stream.id, direction), ()):
            if start <= offset < end or (not length and offset == end):
                return action
        return None


class AlterationImpact:
    """The effect of a session's alterations on its `findings`; `address_of` returns a server's address."""

    def __init__(self, findings: Findings, address_of: Callable[[Stream], ServerAddress]) -> None:
        self._findings = findings
        self._address_of = address_of
        self._aftermaths: dict[ServerAddress, AffectedPeriod] = {}
        self._altered_ranges = AlteredRanges()
        self._violations = self._games = 0
        """Number of findings judged so far."""

    def action(self, stream: Stream, direction: Direction, offset: int) -> Action | None:
        """Return the alteration of the message that begins at an offset; None if there was none."""
        return self._altered_ranges.action(stream, direction, offset)

    def altered(self, item: Altered, here: ServerAddress, tables: Tables) -> None:
        """Note the alteration of a message at a server."""
        # Earlier findings are judged without it.
        self.judge(tables)
        self._altered_ranges.add(item)
        contexts = tables()
        protocol = contexts[here].info.protocol
        for server, context in contexts.items():
            # A message of one server may concern another.
            if context.info.protocol == protocol:
                aftermath = self._aftermaths.setdefault(server, AffectedPeriod())
                if server == here or not aftermath.is_open:
                    aftermath.altered(item.ts_ns, context.games_on)

    def server_recognised(self, server: ServerAddress, protocol: str, tables: Tables) -> None:
        """Note a recognised server: alterations at other servers of its protocol may concern it."""
        contexts = tables() if self._aftermaths else {}
        for other, aftermath in self._aftermaths.items():
            if aftermath.is_open and other in contexts and contexts[other].info.protocol == protocol:
                self._aftermaths.setdefault(server, AffectedPeriod()).altered(0, {})
                return

    def forget(self, server: ServerAddress, tables: Tables) -> None:
        """Forget a server that sends nothing more."""
        if server in self._aftermaths:
            self.judge(tables)
            del self._aftermaths[server]

    def before_drain(self, tables: Tables) -> None:
        """Judge the findings before they are handed over."""
        if self._aftermaths:
            self.judge(tables)
        self._violations = self._games = 0

    def judge(self, tables: Tables) -> None:
        """Turn the new diagnostics that Kiebitz's alterations may have caused into notes."""
        diagnostics, games = self._findings.diagnostics, self._findings.games
        if self._games < len(games):
            servers = {context.info.id: server for server, context in tables().items()}
            for game in games[self._games :]:
                server = servers.get(game.table_id)
                if server is not None and server in self._aftermaths:
                    self._aftermaths[server].game_seen(game)
        for index in range(self._violations, len(diagnostics)):
            diagnostic = diagnostics[index]
            if diagnostic.severity == "note" or diagnostic.group == "network":
                continue
            aftermath = self._aftermaths.get(self._address_of(diagnostic.stream))
            if (
                self._altered_ranges.action(
                    diagnostic.stream, diagnostic.direction, diagnostic.offset, diagnostic.length
                )
                in REWRITING_ACTIONS
            ):
                diagnostics[index] = msgspec.structs.replace(diagnostic, severity="note", blame="kiebitz")
            elif (
                diagnostic.group in _CONSEQUENCE_GROUPS
                and aftermath is not None
                and aftermath.affects(diagnostic.ts_ns)
            ):
                text = f"{diagnostic.text}{_AFTER_ALTERATION}"
                diagnostics[index] = msgspec.structs.replace(diagnostic, severity="note", text=text)
        self._violations, self._games = len(diagnostics), len(games)
