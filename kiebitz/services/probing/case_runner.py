"""The run of one test case on a live target: the route to its injection point, its actions, and the reaction.

Everything is recorded as one session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, NotApplicable, UnsuitableMoment
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.actions import CaseAction, Close, HalfClose, Pause, Reset, Send, Sender
from kiebitz.dissectors.probing.case import Case, to_case_name
from kiebitz.dissectors.probing.routes import InjectionPoint, Route
from kiebitz.dissectors.probing.verdict import ObservedBehaviour, ProgramMessage, Verdict, judge
from kiebitz.dissectors.replay.script import StreamRole
from kiebitz.proxy.peers.connections import RESET, UNREACHABLE, PeerError
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.probing.connection_setup import ProbeSetup, TargetSession
from kiebitz.storage.recording.recorder import Recorder

_LINGER_S = {"tcp": 0.05, "udp": 0.02}
"""Seconds to wait after the last answer for another one, and over TCP for the end of the connection."""

_MIN_WAIT_S = 0.15
"""Minimum timeout in seconds for the answer of a target that usually answers at once."""

_DELAY_FACTOR = 2.0
"""Ratio of that timeout to the longest delay of an answer in the undisturbed game."""

_SLOW_S = 0.1
"""Delay of an answer in seconds from which the target waits for other players, or for a timeout."""

_DYING_S = 1.0
"""Maximum number of seconds for a program to exit after it stopped serving."""

_GREETING_S = 0.3
"""Number of seconds in which a server answers the opening of what carries the messages."""

_UNREAD_S = 2.0
"""Maximum number of seconds for which a target may leave sent data unread."""


class CaseOutcome(msgspec.Struct, frozen=True):
    """The outcome of a case: its verdict, or the reason `why_not` it could not be tried.

    Its messages are those of its session from `begun_ns` on; for a case in play, only the `wrong` ones, by
    number.
    """

    case: Case
    verdict: Verdict | None
    why_not: str | None
    observed: ObservedBehaviour | None
    begun_ns: int
    seconds: float
    is_responsive: bool
    """True if the target has sent anything at all."""
    never_came_up: bool = False
    """True if the case's message never came up."""
    diverged_at: int | None = None
    """Number of the recorded line at which the target departed from the record before the case, if it did."""
    unsuitable_points: int = 0
    """Number of points where the message came up, but the case could not be injected."""
    is_moment_unsuitable: bool = False
    """True if only the messages due at these points stood in the way."""
    wrong: Sequence[int] = ()


class CaseRun(TargetSession):
    """One attempt at a case.

    One that `is_patient` always waits as long as `ProbeSetup.wait_s`. Others expect a target that answered
    sooner in the undisturbed game to do so here.
    """

    def __init__(
        self, case: Case, route: Route, setup: ProbeSetup, recorder: Recorder, is_patient: bool
    ) -> None:
        super().__init__(route, setup, recorder)
        self._case = case
        self._is_patient = is_patient
        self._senders: set[Sender] = set()
        self._used: dict[Sender, int] = {}
        """The connections used by the actions, by sender."""
        self._closed: set[int] = set()
        """Connections that we have closed."""
        self._replies_until_clear: tuple[ProgramMessage, ...] | None = None
        """The target's messages up to the point where its reaction was clear."""
        self._is_unread = False
        self._unsuitable_points = 0
        self._is_moment_unsuitable = False
        self._begun_ns = 0

    async def run(self, limit_s: float) -> CaseOutcome:
        """Reach the injection point within `limit_s` seconds, execute the actions, and observe.

        Raises PeerError, ProgramError, RelayError and StorageError.
        """
        started = time.monotonic()
        observed: ObservedBehaviour | None = None
        async with self._recorded():
            try:
                async with asyncio.timeout(limit_s):
                    await self._open()
                    point, actions = await self._reach()
                if point is not None:
                    observed = await self._execute(point, actions)
            except NotApplicable as reason:
                self._route.lost = str(reason)
            except TimeoutError:
                self._route.lost = "its injection point was not reached in time"
            except PeerError as error:
                # A program that Kiebitz starts is restarted.
                if self._program is None:
                    raise
                self._route.lost = str(error)
        return CaseOutcome(
            self._case,
            None if observed is None else judge(self._case, observed),
            self._route.lost if observed is None else None,
            observed,
            self._begun_ns,
            time.monotonic() - started,
            self.is_responsive,
            self._route.never_came_up,
            self._route.diverged_at if observed is None else None,
            self._unsuitable_points,
            self._is_moment_unsuitable,
        )

    # The route.

    async def _reach(self) -> tuple[InjectionPoint | None, tuple[CaseAction, ...]]:
        """Go to the first point where the case can be injected. Raises NotApplicable if there is none."""
        reason: NotApplicable | None = None
        while True:
            await self._driver.play()
            point = self._route.point
            if point is None:
                if reason is not None:
                    raise reason
                return None, ()
            self._gather()
            try:
                actions = self._case.actions(self._observer.situation(point))
                self._check(actions, point)
            except NotApplicable as error:
                reason = error
                self._unsuitable_points += 1
                self._is_moment_unsuitable = isinstance(error, UnsuitableMoment)
                if self._case.at_start:
                    raise
                self._route.skip_point()
            else:
                return point, actions

    def _check(self, actions: tuple[CaseAction, ...], point: InjectionPoint) -> None:
        """Raise NotApplicable if the sender of an action is missing."""
        senders = {action.sender for action in actions if not isinstance(action, Pause)}
        if "other" in senders and not point.others:
            raise NotApplicable("no other player is connected")
        if "stranger" in senders and self._case.role == "client":
            raise NotApplicable("over TCP only its server can send to a client")

    def _names_in(self, actions: tuple[CaseAction, ...]) -> Iterator[str]:
        """Yield the players' names in the messages that a player of the case sends."""
        about = self._setup.dissector
        direction = INPUT_DIRECTION[self._case.role]
        for action in actions:
            if isinstance(action, Send) and action.sender == "self":
                read = about.codec.decode(action.data, direction)
                if read.row is not None:
                    yield from read.row.player_names(read.fields)

    # The actions and their consequences.

    async def _execute(self, point: InjectionPoint, actions: tuple[CaseAction, ...]) -> ObservedBehaviour:
        # What is still in transit is no answer.
        await self._settle(point)
        self._begun_ns = now_ns()
        self._observer.start_collecting()
        self._used["self"] = point.connection
        # An answer may arrive while the actions are executed.
        self._route.confirm_actions(self._case.uses, frozenset(self._names_in(actions)))
        left = sum(len(each.data) for each in actions if isinstance(each, Send) and each.sender == "self")
        for action in actions:
            if isinstance(action, Send) and action.sender == "self":
                left -= len(action.data)
                if left or self._case.is_cut:
                    self._monitor.unfinished.add(point.connection)
            await self._carry_out(action, point)
            if not left and not self._case.is_cut:
                for reply in self._monitor.release_replies():
                    self._peers.send(reply.connection, reply.to_send)
        await self._watch(point)
        return await self._observe(point)

    async def _settle(self, point: InjectionPoint) -> None:
        """Receive what is still in transit; over TCP only, as datagrams may be urgent."""
        if point.role.transport == "tcp":
            await self._driver.receive_until(self._clock() + _LINGER_S["tcp"])

    async def _carry_out(self, action: CaseAction, point: InjectionPoint) -> None:
        if isinstance(action, Pause):
            await self._driver.receive_until(self._clock() + action.seconds)
            return
        sender = action.sender
        if sender not in self._used:
            self._used[sender] = point.others[0] if sender == "other" else await self._greeted(point.role)
        connection = self._used[sender]
        match action:
            case Send():
                await self._send(action, connection)
                return
            case HalfClose():
                self._peers.half_close(connection)
            case Close():
                self._closed.add(connection)
                await self._peers.hang_up(connection)
            case Reset():
                self._closed.add(connection)
                self._peers.reset(connection)
        self._has_hung_up = self._has_hung_up or action.sender == "self"
        # Otherwise the verdict depends on whether the target notices this before the others' next messages.
        await self._settle(point)

    async def _send(self, action: Send, connection: int) -> None:
        if action.sender == "self" and "stranger" in self._senders:
            # The target cannot answer an unfinished message of a new connection.
            self._route.discard_answers()
        self._senders.add(action.sender)
        data = action.data
        if not action.is_wire:
            data = self._setup.dissector.to_wire(data, self._peers.sent_direction)
        if not self._peers.send(connection, data) and not self._is_unread:
            try:
                await self._peers.drain(connection, _UNREAD_S)
            except PeerError:
                # A target may stop reading; its reaction is observed below.
                self._is_unread = True

    async def _greeted(self, role: StreamRole) -> int:
        """Return a new connection on which a first message may be sent."""
        connection = await self._connect_to(role)
        carried = self._setup.dissector.encapsulation
        if carried is not None:
            self._peers.send(connection, carried.opening(self._peers.sent_direction))
            await self._driver.receive_until(self._clock() + _GREETING_S)
        return connection

    async def _watch(self, point: InjectionPoint) -> None:
        """Continue the route and receive messages until the target's reaction is clear."""
        due = self._clock() + self._wait_s()
        # The actions may have taken long, and only now the target knows all of them.
        self._route.discard_passing_over()
        self._monitor.is_enough = lambda: self._is_clear(point)
        with suppress(TimeoutError):
            async with self._timeout(self._wait_s()):
                await self._driver.play()
        await self._driver.receive_until(due, self._monitor.is_enough)
        await self._driver.receive_until(self._clock() + _LINGER_S[point.role.transport])

    @property
    def _replies(self) -> tuple[ProgramMessage, ...]:
        """The target's messages since the actions began, on the connections they used."""
        return self._observer.received(*self._used.values())

    def _wait_s(self) -> float:
        """Return the timeout for an answer in seconds.

        Where a reaction is demanded, it may come when the timeout that the specification names is over.
        """
        name = self._case.message
        specified_s = 2 * self._setup.dissector.conformance.timeouts.get(name or "", 0.0)
        if not self._senders and self._case.uses:
            return max(self._setup.wait_s, specified_s)
        delay_s = self._setup.baseline.longest_delay_s(name)
        if self._is_patient or delay_s is None:
            return self._setup.wait_s
        usual_s = _MIN_WAIT_S + _DELAY_FACTOR * delay_s
        is_demanded = self._case.expectation.level != "open"
        return min(self._setup.wait_s, max(usual_s, specified_s) if is_demanded else usual_s)

    def _is_clear(self, point: InjectionPoint) -> bool:
        """Return True if nothing more needs to be awaited."""
        # Of two messages sent, the first is answered in any case.
        is_second_due = self._case.kind == "twice" and "answers" not in self._case.expectation.right
        continued_normally = (
            self._continued_normally(point) and not self._is_missing_at_others(point) and not is_second_due
        )
        is_answered = continued_normally or any(
            refusal.matches(each.message, each.fields)
            for each in self._replies
            for refusal in self._case.expectation.refusals
        )
        if is_answered and self._replies_until_clear is None:
            # A later refusal is about another message.
            self._replies_until_clear = self._replies
        return (
            is_answered or self._is_passed_over() or self._how_ended() is not None or self._died() is not None
        )

    def _is_passed_over(self) -> bool:
        """Return True if the target has gone on without our player, where its answers take long.

        Where they come at once, the same message may have been on its way to another player.
        """
        delay_s = self._setup.baseline.longest_delay_s(self._case.message)
        is_slow = delay_s is not None and delay_s >= _SLOW_S
        return is_slow and not self._is_patient and self._route.is_passed_over

    def _continued_normally(self, point: InjectionPoint) -> bool:
        answer = self._case.expectation.answer
        if answer and not any(message.message in answer for message in self._replies):
            return False
        # The actual sender is answered, even if another one should have sent the message.
        senders = [
            self._used[sender] for sender in self._senders - {"self"} if not self._only_accompanies(sender)
        ]
        if self._route.continued_normally or any(map(self._route.continued_normally_on, senders)):
            return True
        expected = point.expected
        if expected is None:
            return False
        message = self._observer.decode(expected.data)
        # With another player name messages differ; dice, cards and moves may differ from the record, too.
        is_loose = any(handle.of_player for handle in self._mutated_kinds) or self._case.harmless
        if is_loose and any(
            each.message == message.message for each in self._observer.received(point.connection)
        ):
            return True
        if self._case.harmless and self._case.of is not None:
            # Another answer than the recorded one, as after other dice.
            own_answers = self._setup.baseline.own_answers_to(self._case.of)
            if any(each.message in own_answers for each in self._replies):
                return True
        return any(self._observer.has_sent(message, connection) for connection in senders)

    def _is_missing_at_others(self, point: InjectionPoint) -> bool:
        """Return True if the other clients should have received a message about it, and did not."""
        name = self._case.expectation.others_receive
        uninvolved = self._uninvolved(point)
        if name is None or not uninvolved:
            return False
        others_messages = [
            message for message in self._observer.received(*uninvolved) if message.message == name
        ]
        own = [message for message in self._observer.received(point.connection) if message.message == name]
        # Others may receive such a message about another player.
        return not any(message in others_messages for message in own) if own else not others_messages

    def _uninvolved(self, point: InjectionPoint) -> list[int]:
        """Return the connected players' connections that no action used."""
        used = self._used.values()
        return [
            other for other in point.others if other not in used and not self._route.is_finished_on(other)
        ]

    @property
    def _mutated_kinds(self) -> set[IdentifierKind]:
        """The kinds of identifiers in the field that the case mutates."""
        fields = () if self._case.of is None else self._case.of.fields
        mutated_kinds = (field for field in fields if field.name == self._case.field)
        return {handle for field in mutated_kinds for handle in field.type.identifiers()}

    def _ignored_messages(self) -> set[str]:
        """Return the names of messages whose violations do not count.

        Those are the messages that are wrong in undisturbed games, too, and those that may repeat an
        identifier that the case has mutated.
        """
        mutated_kinds = self._mutated_kinds
        return {*self._setup.baseline.invalid_messages} | {
            message.name
            for message in self._setup.dissector.grammar.rows
            if message.direction == OPPOSITE[INPUT_DIRECTION[self._case.role]]
            and any(mutated_kinds & {*field.type.identifiers()} for field in message.fields)
        }

    def _only_accompanies(self, sender: Sender) -> bool:
        """Return True if a new connection only accompanies our player's message."""
        return sender == "stranger" and "self" in self._senders

    def _how_ended(self) -> str | None:
        """Return how the target ended a connection that the actions used; None if it did not."""
        asked = [on for sender, on in self._used.items() if not self._only_accompanies(sender)]
        still_ours = (connection for connection in asked if connection not in self._closed)
        ends = (self._monitor.ends.get(connection) for connection in still_ours)
        return next((how for how in ends if how is not None), None)

    async def _observe(self, point: InjectionPoint) -> ObservedBehaviour:
        how = self._how_ended()
        message = self._replies_until_clear if self._replies_until_clear is not None else self._replies
        violations = self._observer.violations_except(self._ignored_messages())
        # At the end of the record, silence is right.
        is_at_end = point.is_last and self._case.harmless
        continued_normally = self._continued_normally(point) or is_at_end
        row = self._case.of
        answers = self._setup.baseline.answers_to(row) if row is not None else ()
        answer, is_missing_at_others = (
            next((each.message for each in self._replies if each.message in answers), None),
            self._is_missing_at_others(point),
        )
        others_go_on, leaves_waiting = self._others_go_on(point), self._leaves_waiting(point)
        # Our connections are closed for a newcomer: messages from then on are no answer. A client accepts
        # no connections.
        lets_in = await self._accepts_newcomer(point) if self._case.role == "server" else None
        is_leaving = how is not None if self._case.role == "client" else lets_in is False
        died = await self._died_within_grace() if is_leaving else self._died()
        # A missing listener is no end of a connection, and after a game a client may leave.
        is_finished_on = self._case.role == "client" and self._route.has_finished_game
        is_gone = is_finished_on or (how is not None and how.startswith(UNREACHABLE))
        return ObservedBehaviour(
            continued_normally,
            message,
            violations,
            None if how is None or is_gone else "reset" if how == RESET else "closed",
            died,
            lets_in,
            others_go_on,
            self._is_beyond(point),
            answer,
            leaves_waiting,
            is_missing_at_others,
        )

    def _is_beyond(self, point: InjectionPoint) -> bool:
        """Return True if the program had stopped by this point in the undisturbed game, too."""
        baseline = self._setup.baseline
        if point.expected is None or baseline.diverged_at is None:
            return not baseline.takes_part
        return point.expected.number >= baseline.diverged_at

    async def _died_within_grace(self) -> str | None:
        """Return how the program ended; one that has just closed all its sockets gets some time to exit."""
        end = self._clock() + _DYING_S
        while self._died() is None and self._program is not None and self._clock() < end:
            await asyncio.sleep(_LINGER_S["tcp"])
        return self._died()

    def _others_go_on(self, point: InjectionPoint) -> bool | None:
        """Return True if the uninvolved players are still served; None without such players or messages."""
        uninvolved = self._uninvolved(point)
        if any(other in self._monitor.ends for other in uninvolved):
            return False
        return True if any(self._observer.received(other) for other in uninvolved) else None

    def _leaves_waiting(self, point: InjectionPoint) -> bool:
        """Return True if other players waited for one that has left, and receive nothing about it."""
        row, about = self._case.of, self._setup.dissector
        uninvolved = self._uninvolved(point)
        if not self._has_hung_up or not uninvolved or row is None or self._case.role == "client":
            return False
        beats = {each.name for each in about.grammar.rows if each.heartbeat}
        others_messages = (
            message for message in self._observer.received(*uninvolved) if message.message not in beats
        )
        is_waited_for = to_case_name(row.name) in about.conformance.expectations.awaited_messages.split()
        return is_waited_for and next(others_messages, None) is None

    async def _accepts_newcomer(self, point: InjectionPoint) -> bool | None:
        """Return True if a new client is accepted; None if it can connect, but the server sends nothing."""
        ours = {point.connection, *point.others, *self._used.values()}
        # Datagrams have no end, and late ones are recorded, too.
        if self._is_unread and point.role.transport == "tcp":
            for connection in ours:
                self._peers.reset(connection)
        if self._setup.baseline.greets:
            # It usually sends newcomers a message while others are connected, and must still do so.
            return bool(await self._is_greeting())
        if not self._is_unread and point.role.transport == "tcp":
            await asyncio.gather(*map(self._peers.hang_up, ours))
        is_greeted = await self._is_greeting()
        # Over TCP a server may wait for more players before it sends anything.
        return is_greeted or (False if point.role.transport == "udp" or is_greeted is None else None)
