"""The context of the Mäxchen table and of its parts: its rounds, the connections, and the points.

Over UDP any message may be missing or late. This module assigns messages to rounds; no violations are
reported for incomplete rounds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any

from kiebitz.dissectors.game.broadcast_dedup import REORDERED_NS, EventLog
from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.model import Findings, Ids, Message, TableInfo
from kiebitz.dissectors.protocols.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.protocols.maexchen.round_state import ClientConnection, Round

ALONE = "alone"
"""Suffix of the key of a rule for a single captured connection, which may lack messages."""

_MAX_DELAY_NS = 5_000_000
"""Longest delay of a round's messages after its end; some servers begin the next one soon after."""


def _new_log() -> EventLog:
    return EventLog(doubled=True, overtaken_ns=REORDERED_NS)


class MaexchenContext(GameContext):
    """The rounds, the connections and the points, without the meaning of messages."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings, GRAMMAR.rules)
        self.log = _new_log()
        self.connections = Connections(ClientConnection)
        self.current: Round | None = None
        self.unscored: Round | None = None
        """A finished round whose points are not announced yet, while the next one is already starting."""
        self.previous: Round | None = None
        self.points = Points()
        self.last_number: int | None = None
        self.token_owners: OrderedDict[Hashable, ClientConnection] = OrderedDict()
        """The connections to which tokens were sent, oldest first."""
        self.unsure: list[tuple[Message, ClientConnection]] = []
        """Answers to unseen questions, judged later by `judge_unsure`."""
        self.server_speaks = False
        """True if the server has sent anything."""
        self.owners: dict[str, ClientConnection] = {}
        """The connection of each player, by name."""
        self.absent: OrderedDict[str, None] = OrderedDict()
        """Players without an open connection, the most recently seen last."""
        self.with_commas: set[str] = set()
        """Names that contain commas."""
        self.gone: OrderedDict[str, None] = OrderedDict()
        """Players who are no longer registered; servers still list them with the points."""
        self.port_was_closed = False
        """True if the server's port was closed, and the server has sent nothing since."""
        self.spoke_ns = 0
        """Time of the server's latest message to a registered client."""
        self.registered_ns = self.scored_ns = -REORDERED_NS
        """Times of the latest registration, and of the latest announced points."""
        self._started_ns = 0
        """Time of the latest start of a round."""

    def begin(self, message: Message, number: int | None, *missing: str) -> Round:
        """Open a round; `missing` are the parts of its state that will stay unknown."""
        if self.current is not None:
            self.leave(self.current, message.ts_ns)
        label = f"round {number}" if number is not None else "round"
        played = self.current = Round(*self.open_part(label, message.ts_ns), number=number)
        played.certain = not missing
        played.set_state("starting", "phase")
        if number is not None:
            played.set_state(number, "round")
        if missing:
            played.set_state(sorted(missing), "unknown")
        return played

    def leave(self, played: Round, ts_ns: int) -> None:
        """End a round, as another one begins or the points are announced."""
        played.end(ts_ns)
        if played.over_ns is None:
            played.over_ns = ts_ns
        played.remove()
        if not played.scored and played.phase in ("lost", "canceled"):
            self.unscored = played
        if not played.scored and played.phase == "started":
            # Its loss was not seen, so the points are unknown.
            self.points.forget()
        if self.current is played:
            self.current = None
        self.previous = played

    def forget(self, ts_ns: int) -> None:
        """Drop all rounds and broadcasts of a server that has been gone since this time."""
        if self.current is not None:
            self.leave(self.current, ts_ns)
        self.unscored = self.previous = None
        self.log = _new_log()

    def playing(self, message: Message) -> Round:
        """Return the round of a message of play; an unknown one if its beginning was not seen."""
        played = self.current
        if played is not None and played.phase == "started":
            return played
        before = self.previous
        if before is not None and self._just_over(before, message.ts_ns):
            # Servers wait for players before they start the next round: this was overtaken by SCORE.
            before.certain = False
            return before
        if played is not None and played.phase == "starting":
            played.doubt("players")
            played.started_ns = message.ts_ns
            return self._start_unseen(played)
        if played is not None and self._just_over(played, message.ts_ns):
            played.certain = False
            return played
        return self._start_unseen(self.begin(message, None, "players", "round", "announced"))

    def _start_unseen(self, played: Round) -> Round:
        """Continue a round whose ROUND STARTED was not seen, so that its players' points are unknown."""
        played.phase = "started"
        played.set_state("started", "phase")
        self.points.forget()
        return played

    @staticmethod
    def _just_over(played: Round, ts_ns: int) -> bool:
        """Return True if messages of a finished round may still arrive; for longer if its loss is missing."""
        patience_ns = REORDERED_NS if played.game.result is None else _MAX_DELAY_NS
        return played.over_ns is not None and ts_ns - played.over_ns < patience_ns

    @staticmethod
    def overtaken(played: Round, ts_ns: int) -> bool:
        """Return True if a round seems to have started only because its first turn overtook ROUND STARTED."""
        return (
            played.phase == "started" and played.players is None and ts_ns - played.started_ns < REORDERED_NS
        )

    def count_start(self, played: Round) -> None:
        """Count a point for each player (protocol page: points)."""
        last = self.last_number
        if last is not None and played.number not in (None, last + 1):
            # Rounds are missing from the capture, or were canceled before any client was informed.
            self.points.forget()
        self.last_number = played.number
        self._started_ns = played.started_ns
        self.points.started(played.players or ())

    def number_decreased(self, number: int | None, ts_ns: int) -> bool:
        """Return True if a starting round has a lower number than the last one, and was not overtaken."""
        last = self.last_number
        return (
            last is not None
            and number is not None
            and number < last
            and ts_ns - self._started_ns >= REORDERED_NS
        )

    def report_server_violation(self, message: Message, key: str, **values: Any) -> None:
        """Report a violation by the server, or a datagram missing from the capture.

        With several captured conversations, a datagram is hardly missing from all of them; with a single one
        it may be.
        """
        heard = sum(connection.addressed and not connection.gone for connection in self.connections.values())
        self.report_violation(message, key if heard > 1 else f"{key}/{ALONE}", **values)


Account = dict[str, int]


class Points:
    """The expected points of a table's players, by name, computed from the captured rounds.

    A restarted server knows no players: it sends only to those who have registered since, and counts from 0.
    After a registration, until the server sends to anyone else, it is unclear whether it was restarted. So
    two accounts are kept then, and points are wrong only if they are wrong in both.
    """

    def __init__(self) -> None:
        self._due: Account | None = None
        """The expected points; None if unknown."""
        self._if_restarted: Account | None = None
        """The expected points of a restarted server; None unless a restart is possible."""
        self.announced: Account | None = None
        """The latest announced points."""
        self.newcomers: set[int] = set()
        """The streams that have registered since the server may have been restarted."""

    def registered(self, stream: int) -> None:
        """Note a registration: the server may have been restarted just before."""
        if self._if_restarted is None:
            self._if_restarted = {}
            self.newcomers.clear()
        self.newcomers.add(stream)

    def spoken_to(self, stream: int) -> None:
        """Note that the server sent to a client that must be registered."""
        if self._if_restarted is not None and stream not in self.newcomers:
            self._if_restarted = None

    def started(self, players: Iterable[str]) -> None:
        """Add a point for each player of a round."""
        self._add(players, 1)

    def lost(self, names: Iterable[str]) -> None:
        """Subtract a point from each loser of a round."""
        self._add(names, -1)

    def _add(self, names: Iterable[str], points: int) -> None:
        for name in names:
            for account in (self._due, self._if_restarted):
                if account is not None:
                    account[name] = account.get(name, 0) + points

    def forget(self) -> None:
        """Forget the points until the next announcement, as a part of a round was not seen."""
        self._due = self._if_restarted = None

    def restart(self) -> None:
        """Forget the points of a server that was restarted."""
        self.forget()
        self.announced = None

    def announce(self, scores: Account) -> None:
        """Set the points that the server announces."""
        self._due, self._if_restarted = dict(scores), None
        self.announced = dict(scores)

    def is_repeat(self, scores: Account) -> bool:
        """Return True if these are the latest announced points, or those of the present moment."""
        return scores in (self.announced, self._due)

    @property
    def possible_newcomers(self) -> set[int] | None:
        """The only streams that a restarted server knows; None if unknown."""
        return self.newcomers if self._if_restarted is not None else None

    def shows_restart(self, scores: Account) -> bool:
        """Return True if only a restarted server can have these points."""
        return (
            self._if_restarted is not None
            and not _differences(scores, self._if_restarted)
            and bool(self.wrong(scores))
        )

    def wrong(self, scores: Account) -> list[str]:
        """Return the differences from the expected points, a clause for each player."""
        return _differences(scores, self._due) if self._due is not None else []


def _differences(scores: Account, due: Account) -> list[str]:
    return [
        f"{name} has {scores.get(name, 0)} points and should have {due.get(name, 0)}"
        for name in sorted({*scores, *due})
        if scores.get(name, 0) != due.get(name, 0)
    ]
