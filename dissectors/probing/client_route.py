"""A route to an injection point at a server: bots join its table and play."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.conformance.bots import Bot
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import port_of
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.routes import Address, InjectionPoint
from kiebitz.dissectors.probing.simulated_route import RouteGoal, SimulatedConnection, SimulatedRoute
from kiebitz.dissectors.replay.replay_peer import CloseConnection, InputResult, OpenConnection, PeerAction
from kiebitz.dissectors.replay.script import StreamRole

_NEXT_BOT_S = 0.25
"""Seconds without any message until the next bot connects if the server does not answer the last one."""


class _Seat(msgspec.Struct, eq=False):
    """A bot; its connection is None before it connects and after it has left."""

    player: Bot
    role: StreamRole
    connection: int | None = None
    has_called: bool = False


class ClientRoute(SimulatedRoute):
    """A route played by bots against a server; injection points need other players at the table."""

    def __init__(
        self,
        dissector: Dissector,
        players: Sequence[Bot],
        stranger: Bot,
        address: Address,
        goal: RouteGoal,
        baseline: Baseline,
        clock: Callable[[], float],
    ) -> None:
        """Create a route.

        Args:
            dissector: The protocol.
            players: The bots that play.
            stranger: A bot that connects after the case, to check that new clients are still accepted.
            address: The server's address.
            goal: The injection point to reach.
            baseline: The baseline that the route extends.
            clock: Returns the current time in seconds.
        """
        super().__init__(dissector, "c2s", goal, baseline, clock)
        self._address = address
        self._seats = [_Seat(player, self._role(number, address)) for number, player in enumerate(players)]
        self._stranger = stranger
        self._newcomer = self._role(len(players), address)
        self._newcomer_at: int | None = None
        self._logged_out: set[int] = set()
        """The connections on which a bot has logged out."""
        self._called_at = 0.0
        self.servers = self._places = {self.newcomer_role: address}

    @property
    def newcomer_role(self) -> StreamRole:
        return self._seats[0].role

    def opening_messages(self) -> tuple[bytes, ...]:
        self._stranger.connected(self._clock())
        step = self._stranger.next(self._clock())
        frame = self._encode(step) if isinstance(step, play.SendMessage) else None
        return () if frame is None else (frame,)

    # Actions.

    def _next_actions(self) -> Iterator[PeerAction | InjectionPoint]:
        has_acted = False
        for seat in self._seats:
            if seat.connection is None or self._is_mute(seat.connection):
                continue
            step = seat.player.next(self._clock(), self._target_for(seat))
            if isinstance(step, play.SendMessage | play.Reconnect | play.Disconnect):
                has_acted = True
                yield from self._carry_out(seat, seat.connection, step)
        waiting = next((seat for seat in self._seats if not seat.has_called), None)
        # One after the other, so that every run has the same order.
        if waiting is not None and not has_acted and self._may_connect():
            waiting.has_called = True
            self._called_at = self._clock()
            yield OpenConnection(waiting.role, 0, True)

    def _target_for(self, seat: _Seat) -> play.TargetMessage | None:
        target_message = self._goal.target_message
        if target_message is None or self._has_acted:
            return None
        # The other bots are to join as regular players do.
        is_for_all = target_message.name not in self._dissector.identity.login_messages
        return target_message if is_for_all or seat is self._seats[-1] else None

    def _may_connect(self) -> bool:
        """Return True if the next bot may connect: all connected ones have their answers or need not wait."""
        is_quiet = self._clock() >= max(self._called_at, self._sent_at, self._heard_at) + _NEXT_BOT_S
        return is_quiet or all(
            line.last_sent is not None and (line.received or line.was_answered) and not line.unanswered
            for line in self._lines.values()
        )

    def _carry_out(
        self, seat: _Seat, connection: int, step: play.BotAction
    ) -> Iterator[PeerAction | InjectionPoint]:
        seat.player.confirm(step)
        if self._is_skipped(step):
            # The step after it is due.
            yield from self._next_actions()
            return
        if isinstance(step, play.SendMessage):
            yield from self._send(seat, connection, step)
            return
        self._leave(seat)
        yield CloseConnection(connection, 0, True)
        if isinstance(step, play.Reconnect):
            # Nothing is sent to another machine than the one the user named.
            try:
                address = self._address[0], port_of(step.url)
            except ValueError:
                self.lost = f"the server redirects players to {step.url}, which is not a valid address"
                return
            seat.role = self._role(seat.role.number, address)
            self._places[seat.role] = address
            yield OpenConnection(seat.role, 0, True)

    def _send(
        self, seat: _Seat, connection: int, message: play.SendMessage
    ) -> Iterator[PeerAction | InjectionPoint]:
        sent = self._to_send(message, connection)
        if sent is None:
            return
        upcoming = seat.player.upcoming(self._clock())
        self._learn_pace(message, connection, upcoming)
        if message.name in self._dissector.identity.logout_messages:
            self._logged_out.add(connection)
        # A server cannot know yet which client this is.
        is_first = self._goal.target_message is not None and self._goal.target_message.name is None
        is_first = is_first and not self._lines[connection].has_begun
        if is_first or not (self._is_target(message) and self._enough_connected()):
            yield sent
        elif not self._goal.early:
            yield self._point_at(sent, upcoming, seat.role)
        else:
            yield sent
            yield OpenConnection(self._newcomer, 0, True)
            if self._newcomer_at is not None:
                point = self._point_at(sent, None, self._newcomer)
                yield msgspec.structs.replace(
                    point, connection=self._newcomer_at, following=None, waits=False, others=(*self._lines,)
                )

    def _enough_connected(self) -> bool:
        """Return True if enough other bots are connected.

        All are needed if a server may wait for all before it answers.
        """
        target_message = self._goal.target_message
        needs_all = (
            target_message is None
            or target_message.name is None
            or target_message.name in self._dissector.identity.login_messages
        )
        here = sum(seat.connection is not None for seat in self._seats)
        return here >= (len(self._seats) if needs_all else min(2, len(self._seats)))

    def _wait_until(self) -> float:
        steps = [seat.player.next(self._clock()) for seat in self._seats if seat.connection is not None]
        times = [step.until for step in steps if isinstance(step, play.Wait) and step.until is not None]
        if not all(seat.has_called for seat in self._seats):
            times.append(max(self._called_at, self._sent_at, self._heard_at) + _NEXT_BOT_S)
        return min(times, default=self._clock() + 1)

    @property
    def offered(self) -> frozenset[str]:
        return frozenset().union(*(seat.player.offered for seat in self._seats))

    @property
    def has_finished_game(self) -> bool:
        return all(seat.player.games for seat in self._seats)

    def is_finished_on(self, connection: int) -> bool:
        return connection in self._logged_out

    def _all_finished(self) -> bool:
        return all(seat.has_called for seat in self._seats) and all(
            seat.connection is None or seat.player.is_finished for seat in self._seats
        )

    # Input from the server.

    def server_moved(self, server: StreamRole, address: str) -> None:
        """Ignore the call: the target plays the servers."""

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        """Ignore the call: no peer connects to a client."""

    def connected(self, connection: int, role: StreamRole) -> None:
        if self._begun is None:
            self._begun = self._clock()
        if role is self._newcomer:
            self._newcomer_at = connection
            return
        seat = self._seats[role.number]
        seat.connection = connection
        self._lines[connection] = SimulatedConnection(self._dissector, "s2c")
        seat.player.connected(self._clock())

    def connection_ended(self, connection: int, how: str) -> InputResult:
        seat = self._seat_at(connection)
        # A bot that is to connect elsewhere may be disconnected first.
        if seat is not None and not isinstance(seat.player.next(self._clock()), play.Reconnect):
            self._leave(seat)
            if not self._has_acted and self._goal.target_message is not None:
                self.lost = f"the server {how}"
        return InputResult()

    def _leave(self, seat: _Seat) -> None:
        if seat.connection is not None:
            self._lines.pop(seat.connection, None)
        seat.connection = None

    def _seat_at(self, connection: int) -> _Seat | None:
        return next((seat for seat in self._seats if seat.connection == connection), None)

    def _player_name(self, connection: int) -> str | None:
        seat = self._seat_at(connection)
        return None if seat is None else seat.player.name

    def _receive(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        seat = self._seat_at(connection)
        if seat is not None:
            seat.player.receive(name, fields, self._clock())
