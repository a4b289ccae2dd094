"""A way to a case's place at a server: simple players sit down at its table, and play."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.conformance.bots import Player
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import port_of
from kiebitz.dissectors.probing.baseline import Habits
from kiebitz.dissectors.probing.routes import Address, Place
from kiebitz.dissectors.probing.simulated_route import Goal, Line, PlayedWay
from kiebitz.dissectors.replay.replay_peer import Action, Call, Hang, Reaction
from kiebitz.dissectors.replay.script import Role

_NEXT_S = 0.05
"""Where a server says nothing to one player, the next one comes after this time."""


class _Seat(msgspec.Struct, eq=False):
    """One of our players; the connection is None before it calls, and after it has gone."""

    player: Player
    role: Role
    connection: int | None = None
    has_called: bool = False


class PlayersWay(PlayedWay):
    """A place is one where others are there, too."""

    def __init__(
        self,
        dissector: Dissector,
        players: Sequence[Player],
        stranger: Player,
        address: Address,
        goal: Goal,
        habits: Habits,
        clock: Callable[[], float],
    ) -> None:
        """The `stranger` comes when the case is over, to see whether a new client gets in."""
        super().__init__(dissector, "c2s", goal, habits, clock)
        self._address = address
        self._seats = [_Seat(player, self._role(number, address)) for number, player in enumerate(players)]
        self._stranger = stranger
        self._newcomer = self._role(len(players), address)
        self._newcomer_at: int | None = None
        self._called_at = 0.0
        self.servers = self._places = {self.door: address}

    @property
    def door(self) -> Role:
        return self._seats[0].role

    def opening(self) -> tuple[bytes, ...]:
        self._stranger.connected(self._clock())
        step = self._stranger.next(self._clock())
        frame = self._written(step) if isinstance(step, play.Say) else None
        return () if frame is None else (frame,)

    # What is to be done.

    def _moves(self) -> Iterator[Action | Place]:
        for seat in self._seats:
            if seat.connection is None or self._is_mute(seat.connection):
                continue
            step = seat.player.next(self._clock(), self._aim_of(seat))
            if isinstance(step, play.Say | play.Call | play.Hang):
                yield from self._do(seat, seat.connection, step)
        waiting = next((seat for seat in self._seats if not seat.has_called), None)
        if waiting is not None and self._may_call():
            waiting.has_called = True
            self._called_at = self._clock()
            yield Call(waiting.role, 0, True)

    def _aim_of(self, seat: _Seat) -> play.Aim | None:
        aim = self._goal.aim
        if aim is None or self._has_acted:
            return None
        # The others are to come in as players do.
        is_for_all = aim.name not in self._dissector.identity.login_messages
        return aim if is_for_all or seat is self._seats[-1] else None

    def _may_call(self) -> bool:
        """Whether the next player may come: whoever is there has been heard, or has nothing to wait for."""
        is_quiet = self._clock() >= self._called_at + _NEXT_S
        return is_quiet or all(line.said is not None and line.heard for line in self._lines.values())

    def _do(self, seat: _Seat, connection: int, step: play.Act) -> Iterator[Action | Place]:
        seat.player.did(step)
        if self._is_skipped(step):
            # What comes after it is due.
            yield from self._moves()
            return
        if isinstance(step, play.Say):
            yield from self._say(seat, connection, step)
            return
        self._leave(seat)
        yield Hang(connection, 0, True)
        if isinstance(step, play.Call):
            # Nothing is sent to another machine than the one that was given.
            try:
                address = self._address[0], port_of(step.url)
            except ValueError:
                self.lost = f"the server sends its players to {step.url}, which is no address"
                return
            seat.role = self._role(seat.role.number, address)
            self._places[seat.role] = address
            yield Call(seat.role, 0, True)

    def _say(self, seat: _Seat, connection: int, said: play.Say) -> Iterator[Action | Place]:
        sent = self._said(said, connection)
        if sent is None:
            return
        # A server need not know yet with whom it speaks.
        is_first = self._goal.aim is not None and self._goal.aim.name is None
        is_first = is_first and not self._lines[connection].has_begun
        if is_first or not (self._is_met(said) and self._is_company()):
            yield sent
        elif not self._goal.early:
            yield self._place(sent, seat.player.upcoming(self._clock()), seat.role)
        else:
            yield sent
            yield Call(self._newcomer, 0, True)
            if self._newcomer_at is not None:
                place = self._place(sent, None, self._newcomer)
                yield msgspec.structs.replace(
                    place, connection=self._newcomer_at, following=None, waits=False, others=(*self._lines,)
                )

    def _is_company(self) -> bool:
        """Whether there are others enough: all, where a server may wait for all before it answers."""
        aim = self._goal.aim
        needs_all = aim is None or aim.name is None or aim.name in self._dissector.identity.login_messages
        here = sum(seat.connection is not None for seat in self._seats)
        return here >= (len(self._seats) if needs_all else min(2, len(self._seats)))

    def _until(self) -> float:
        steps = [seat.player.next(self._clock()) for seat in self._seats if seat.connection is not None]
        times = [step.until for step in steps if isinstance(step, play.Wait) and step.until is not None]
        if not all(seat.has_called for seat in self._seats):
            times.append(self._called_at + _NEXT_S)
        return min(times, default=self._clock() + 1)

    @property
    def has_played(self) -> bool:
        return all(seat.player.games for seat in self._seats)

    def _have_enough(self) -> bool:
        return all(seat.has_called for seat in self._seats) and all(
            seat.connection is None or seat.player.had_enough for seat in self._seats
        )

    # What the server does.

    def moved(self, server: Role, address: str) -> None:
        """Servers are played by the peer."""

    def accepted(self, connection: int, server: Role) -> None:
        """Nobody comes to a client."""

    def connected(self, connection: int, role: Role) -> None:
        if self._begun is None:
            self._begun = self._clock()
        if role is self._newcomer:
            self._newcomer_at = connection
            return
        seat = self._seats[role.number]
        seat.connection = connection
        self._lines[connection] = Line(self._dissector, "s2c")
        seat.player.connected(self._clock())

    def ended(self, connection: int, how: str) -> Reaction:
        seat = self._seat_at(connection)
        # Who is to call elsewhere may well be hung up on.
        if seat is not None and not isinstance(seat.player.next(self._clock()), play.Call):
            self._leave(seat)
            if not self._has_acted and self._goal.aim is not None:
                self.lost = f"the server {how}"
        return Reaction()

    def _leave(self, seat: _Seat) -> None:
        if seat.connection is not None:
            self._lines.pop(seat.connection, None)
        seat.connection = None

    def _seat_at(self, connection: int) -> _Seat | None:
        return next((seat for seat in self._seats if seat.connection == connection), None)

    def _called(self, connection: int) -> str | None:
        seat = self._seat_at(connection)
        return None if seat is None else seat.player.name

    def _hear(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        seat = self._seat_at(connection)
        if seat is not None:
            seat.player.hear(name, fields, self._clock())
