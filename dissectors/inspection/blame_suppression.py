"""Nobody is blamed for what Kiebitz did: how flaws are judged once a message has been altered as it passed.

A flaw in bytes that Kiebitz has written is its own. Whatever the altered message has led to is no accusation
either: what peers say out of turn or against the rules is a note, until the games are over which may have
been touched, and another one has begun. How they spell their own messages remains their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.model import Action, Altered, Direction, Findings, Game, Stream

WRITTEN: frozenset[Action] = frozenset({"change", "insert", "double"})
"""After these, what was passed on is no peer's writing."""

_MAX_PASSED_ON = 1024
"""So many stretches of altered bytes are remembered, all streams together."""

_MAX_GAMES = 1024

_NO_ACCUSATION = " (after Kiebitz has altered a message)"
_LED_TO = ("sequence", "rule", "state")

Server = tuple[str, str]
"""Transport and address."""

Tables = Callable[[], Mapping[Server, GameContext]]
"""Gives the contexts of all tables there are, by server."""


class Aftermath:
    """What was altered at one server, and until when that may show there."""

    def __init__(self) -> None:
        self._since_ns = 0
        self._games: dict[int, Game] = {}
        """Those that may have been touched: on at the alteration, or begun since, unless they are over."""
        self._has_ended = False
        """Whether one of them is over."""
        self._clean_ns: int | None = 0
        """From when on nothing shows any more; None while it may."""

    @property
    def is_open(self) -> bool:
        """Whether it may still show."""
        return self._clean_ns is None

    def altered(self, ts_ns: int, games: dict[int, Game]) -> None:
        """A message was altered while these games were on; without any, it may be about the next one."""
        self._since_ns = ts_ns
        self._clean_ns = None
        self._has_ended = False
        self._games = dict(games)

    def began(self, game: Game) -> None:
        """A game has begun, perhaps, or an older one is told of again."""
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

    def shows_at(self, ts_ns: int) -> bool:
        """Whether what a peer did at a moment may have come of it."""
        return self._clean_ns is None or ts_ns < self._clean_ns


class PassedOn:
    """Where the bytes are that were passed on with an alteration: the latest of all streams."""

    def __init__(self) -> None:
        self._stretches: dict[tuple[int, Direction], deque[tuple[int, int, Action]]] = {}
        self._order: deque[tuple[int, Direction]] = deque()

    def add(self, item: Altered) -> None:
        """Remember what is passed on with an alteration."""
        if not item.length:
            return
        way = (item.stream.id, item.direction)
        self._stretches.setdefault(way, deque()).append((item.offset, item.offset + item.length, item.action))
        self._order.append(way)
        if len(self._order) > _MAX_PASSED_ON:
            oldest = self._order.popleft()
            stretches = self._stretches[oldest]
            stretches.popleft()
            if not stretches:
                del self._stretches[oldest]

    def action(self, stream: Stream, direction: Direction, offset: int, length: int = 1) -> Action | None:
        """What was done to what is there; something without `length` may also stand right behind it."""
        for start, end, action in self._stretches.get((stream.id, direction), ()):
            if start <= offset < end or (not length and offset == end):
                return action
        return None


class OwnDoing:
    """All that Kiebitz has altered in a session, and what became of it in its `findings`."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._aftermaths: dict[Server, Aftermath] = {}
        self._passed_on = PassedOn()
        self._flaws = self._games = 0
        """So many of the findings are judged."""

    def action(self, stream: Stream, direction: Direction, offset: int) -> Action | None:
        """What was done to the message that begins there; None if nothing was."""
        return self._passed_on.action(stream, direction, offset)

    def altered(self, item: Altered, here: Server, tables: Tables) -> None:
        """A message was altered at a server."""
        # All that was found before is judged as ever.
        self.judge(tables)
        self._passed_on.add(item)
        contexts = tables()
        protocol = contexts[here].info.protocol
        for server, context in contexts.items():
            # What one server says may be about another.
            if context.info.protocol == protocol:
                aftermath = self._aftermaths.setdefault(server, Aftermath())
                if server == here or not aftermath.is_open:
                    aftermath.altered(item.ts_ns, context.games_on)

    def met(self, server: Server, protocol: str, tables: Tables) -> None:
        """A server was recognised: what was altered at others of its protocol may be about it."""
        contexts = tables() if self._aftermaths else {}
        for other, aftermath in self._aftermaths.items():
            if aftermath.is_open and other in contexts and contexts[other].info.protocol == protocol:
                self._aftermaths.setdefault(server, Aftermath()).altered(0, {})
                return

    def forget(self, server: Server, tables: Tables) -> None:
        """Nothing more comes from a server."""
        if server in self._aftermaths:
            self.judge(tables)
            del self._aftermaths[server]

    def drained(self, tables: Tables) -> None:
        """The findings are about to be given away."""
        if self._aftermaths:
            self.judge(tables)
        self._flaws = self._games = 0

    def judge(self, tables: Tables) -> None:
        """Make notes of the flaws, found since the last time, that come of what Kiebitz did."""
        flaws, games = self._findings.diagnostics, self._findings.games
        if self._games < len(games):
            servers = {context.info.id: server for server, context in tables().items()}
            for game in games[self._games :]:
                aftermath = self._aftermaths.get(servers.get(game.table_id, ("", "")))
                if aftermath is not None:
                    aftermath.began(game)
        for place in range(self._flaws, len(flaws)):
            flaw = flaws[place]
            if flaw.severity == "note" or flaw.group == "network":
                continue
            aftermath = self._aftermaths.get((flaw.stream.transport, flaw.stream.server))
            if self._passed_on.action(flaw.stream, flaw.direction, flaw.offset, flaw.length) in WRITTEN:
                flaws[place] = msgspec.structs.replace(flaw, severity="note", blame="kiebitz")
            elif flaw.group in _LED_TO and aftermath is not None and aftermath.shows_at(flaw.ts_ns):
                text = f"{flaw.text}{_NO_ACCUSATION}"
                flaws[place] = msgspec.structs.replace(flaw, severity="note", text=text)
        self._flaws, self._games = len(flaws), len(games)
