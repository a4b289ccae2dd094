"""The run of one test case on a live target: the route to its injection point, its actions, and the reaction.

Everything is recorded as one session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kiebitz.dissectors.conformance.expectations import HEARS, NotHere
from kiebitz.dissectors.grammar.grammar import Handle
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.actions import Act, By, Close, HalfClose, Pause, Reset, Send
from kiebitz.dissectors.probing.case import Case, as_name
from kiebitz.dissectors.probing.routes import Place, Way
from kiebitz.dissectors.probing.verdict import Said, Seen, Verdict, judged
from kiebitz.proxy.peers.connections import NOBODY_LISTENS, RESET, PeerError
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.probing.connection_setup import Conditions, Stage
from kiebitz.services.probing.program import Program
from kiebitz.storage.recording.recorder import Recorder

_LINGER_S = 0.05
"""Seconds to wait for the end of a connection after the last answer."""

_DYING_S = 1.0
"""Maximum number of seconds for a program to exit after it stopped serving."""

_UNREAD_S = 2.0
"""Maximum number of seconds for which a target may leave sent data unread."""


class Attempt(msgspec.Struct, frozen=True):
    """The outcome of a case: its verdict, or the reason `why_not` it could not be tried.

    Its messages are those of its session from `begun_ns` on; for a case in play, only the `wrong` ones, by
    number.
    """

    case: Case
    verdict: Verdict | None
    why_not: str | None
    seen: Seen | None
    begun_ns: int
    seconds: float
    is_heard: bool
    """True if the target has sent anything at all."""
    never: bool = False
    """True if the case's message never came up."""
    wrong: Sequence[int] = ()


class Trial(Stage):
    """One attempt at a case."""

    def __init__(
        self, case: Case, way: Way, conditions: Conditions, recorder: Recorder, program: Program | None
    ) -> None:
        super().__init__(way, conditions, recorder, program)
        self._case = case
        self._senders: set[By] = set()
        self._used: dict[By, int] = {}
        """The connections used by the actions, by sender."""
        self._gone: set[int] = set()
        """Connections that we have closed."""
        self._said: tuple[Said, ...] | None = None
        """The target's messages up to the point where its reaction was clear."""
        self._is_unread = False
        self._begun_ns = 0

    async def run(self, limit_s: float) -> Attempt:
        """Reach the injection point within `limit_s` seconds, execute the actions, and observe.

        Raises PeerError, ProgramError, RelayError and StorageError.
        """
        started = time.monotonic()
        seen: Seen | None = None
        async with self._recorded():
            try:
                async with asyncio.timeout(limit_s):
                    await self._open()
                    place, acts = await self._reach()
                if place is not None:
                    seen = await self._try(place, acts)
            except NotHere as reason:
                self._way.lost = str(reason)
            except TimeoutError:
                self._way.lost = "its injection point was not reached in time"
            except PeerError as error:
                # A program that Kiebitz starts is restarted.
                if self._program is None:
                    raise
                self._way.lost = str(error)
        return Attempt(
            self._case,
            None if seen is None else judged(self._case, seen),
            self._way.lost if seen is None else None,
            seen,
            self._begun_ns,
            time.monotonic() - started,
            self.is_heard,
            self._way.never,
        )

    # The route.

    async def _reach(self) -> tuple[Place | None, tuple[Act, ...]]:
        """Go to the first point where the case can be injected. Raises NotHere if there is none."""
        reason: NotHere | None = None
        while True:
            await self._actor.play()
            place = self._way.place
            if place is None:
                if reason is not None:
                    raise reason
                return None, ()
            self._gather()
            try:
                acts = self._case.acts(self._witness.situation(place))
                self._check(acts, place)
            except NotHere as error:
                reason = error
                if self._case.at_start:
                    raise
                self._way.pass_by()
            else:
                return place, acts

    def _check(self, acts: tuple[Act, ...], place: Place) -> None:
        """Raise NotHere if the sender of an action is missing."""
        senders = {act.sender for act in acts if not isinstance(act, Pause)}
        if "other" in senders and not place.others:
            raise NotHere("no other player is connected")
        if "stranger" in senders and self._case.role == "client":
            raise NotHere("over TCP only its server can send to a client")

    # The actions and their consequences.

    async def _try(self, place: Place, acts: tuple[Act, ...]) -> Seen:
        await self._settle(place)
        self._begun_ns = now_ns()
        self._witness.begin()
        self._used["self"] = place.connection
        # An answer may arrive while the actions are executed.
        self._way.acted(self._case.uses)
        for act in acts:
            await self._do(act, place)
        await self._watch(place)
        return await self._seen(place)

    async def _settle(self, place: Place) -> None:
        """Receive what is still in transit, which is no answer; over TCP only, as datagrams may be urgent."""
        if place.role.transport == "tcp":
            await self._actor.hear_until(time.monotonic() + _LINGER_S)

    async def _do(self, act: Act, place: Place) -> None:
        if isinstance(act, Pause):
            await self._actor.hear_until(time.monotonic() + act.seconds)
            return
        connection = await self._connection(act.sender, place)
        match act:
            case Send():
                await self._send(act, connection)
                return
            case HalfClose():
                self._peers.half_close(connection)
            case Close():
                self._gone.add(connection)
                await self._peers.hang(connection)
            case Reset():
                self._gone.add(connection)
                self._peers.reset(connection)
        self._has_hung_up = self._has_hung_up or act.sender == "self"

    async def _send(self, act: Send, connection: int) -> None:
        if act.sender == "self" and "stranger" in self._senders:
            # The target cannot answer an unfinished message of a new connection.
            self._way.forget()
        self._senders.add(act.sender)
        if not self._peers.say(connection, act.data) and not self._is_unread:
            try:
                await self._peers.flushed(connection, _UNREAD_S)
            except PeerError:
                # A target may stop reading; its reaction is observed below.
                self._is_unread = True

    async def _connection(self, by: By, place: Place) -> int:
        if by not in self._used:
            self._used[by] = place.others[0] if by == "other" else await self._call(place.role)
        return self._used[by]

    async def _watch(self, place: Place) -> None:
        """Continue the route and receive messages until the target's reaction is clear."""
        due = time.monotonic() + self._wait_s()
        self._listening.is_enough = lambda: self._is_clear(place)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s()):
                await self._actor.play()
        await self._actor.hear_until(due, self._listening.is_enough)
        await self._actor.hear_until(time.monotonic() + _LINGER_S)

    @property
    def _replies(self) -> tuple[Said, ...]:
        """The target's messages since the actions began, on the connections they used."""
        return self._witness.said(*self._used.values())

    def _wait_s(self) -> float:
        """Return the timeout for an answer in seconds; if nothing is sent, the specification may name one."""
        name = self._case.message
        patience = self._conditions.dissector.patience.get(name or "", 0.0) if not self._senders else 0.0
        return max(self._conditions.wait_s, 2 * patience)

    def _is_clear(self, place: Place) -> bool:
        """Return True if nothing more needs to be awaited."""
        # Of two messages sent, the first is answered in any case.
        is_second_due = self._case.kind == "twice" and "answers" not in self._case.demand.right
        is_as_usual = self._is_as_usual(place) and not self._is_untold(place) and not is_second_due
        is_answered = is_as_usual or self._is_refused()
        if is_answered and self._said is None:
            # A later refusal is about another message.
            self._said = self._replies
        return is_answered or self._ending() is not None or self._died() is not None

    def _is_as_usual(self, place: Place) -> bool:
        answer = self._case.demand.answer
        if answer and not any(said.message in answer for said in self._replies):
            return False
        # The actual sender is answered, even if another one should have sent the message.
        senders = [self._used[by] for by in self._senders - {"self"} if not self._is_company(by)]
        if self._way.is_as_usual or any(map(self._way.has_gone_on, senders)):
            return True
        expected = place.expected
        if expected is None:
            return False
        said = self._witness.decode(expected.data)
        # With another player name messages differ; dice, cards and moves may differ from the record, too.
        is_loose = self._renames() or self._case.harmless
        if is_loose and any(each.message == said.message for each in self._witness.said(place.connection)):
            return True
        return any(self._witness.has_said(said, connection) for connection in senders)

    def _is_untold(self, place: Place) -> bool:
        """Return True if the other clients should have received a message about it, and did not."""
        name = self._case.demand.others_hear
        innocent = self._innocent(place)
        if name is None or not innocent:
            return False
        told = [said for said in self._witness.said(*innocent) if said.message == name]
        own = [said for said in self._witness.said(place.connection) if said.message == name]
        # Others may receive such a message about another player.
        return not any(said in told for said in own) if own else not told

    def _innocent(self, place: Place) -> list[int]:
        """Return the connected players' connections that no action used."""
        used = self._used.values()
        return [other for other in place.others if other not in used and not self._way.has_left(other)]

    @property
    def _spoilt(self) -> set[Handle]:
        """The kinds of identifiers in the field that the case mutates."""
        fields = () if self._case.of is None else self._case.of.fields
        spoilt = (field for field in fields if field.name == self._case.field)
        return {handle for field in spoilt for handle in field.type.handles()}

    def _renames(self) -> bool:
        """Return True if the case changes a player's name."""
        return any(handle.of_player for handle in self._spoilt)

    def _is_told_wrong(self) -> bool:
        """Return True if a client receives false information: its later messages follow from that."""
        names = self._case.field is not None or "/rule/" in self._case.name
        return self._case.role == "client" and names

    def _known_flawed(self) -> set[str]:
        """Return the names of messages whose violations do not count.

        Those are the messages that are wrong in undisturbed games, too, and those that may repeat an
        identifier that the case has mutated.
        """
        spoilt = self._spoilt
        return {*self._conditions.habits.flawed} | {
            said.name
            for said in self._conditions.dissector.grammar.rows
            if said.direction == OPPOSITE[HEARS[self._case.role]]
            and any(spoilt & {*field.type.handles()} for field in said.fields)
        }

    def _is_refused(self) -> bool:
        return any(
            refusal.is_said_in(each.message, each.fields)
            for each in self._replies
            for refusal in self._case.demand.refusals
        )

    def _is_company(self, by: By) -> bool:
        """Return True if a new connection only accompanies our player's message."""
        return by == "stranger" and "self" in self._senders

    def _ending(self) -> str | None:
        """Return how the target ended a connection that the actions used; None if it did not."""
        asked = [on for by, on in self._used.items() if not self._is_company(by)]
        still_ours = (connection for connection in asked if connection not in self._gone)
        ends = (self._listening.ends.get(connection) for connection in still_ours)
        return next((how for how in ends if how is not None), None)

    async def _seen(self, place: Place) -> Seen:
        how = self._ending()
        said = self._said if self._said is not None else self._replies
        flawed = () if self._is_told_wrong() else self._witness.flawed(self._known_flawed())
        # At the end of the record, silence is right.
        is_through = place.is_last and self._case.harmless
        is_as_usual = self._is_as_usual(place) or is_through
        answer, is_untold = self._answer(), self._is_untold(place)
        others_go_on, leaves_waiting = self._others_go_on(place), self._leaves_waiting(place)
        # Our connections are closed for a newcomer: messages from then on are no answer. A client accepts
        # nobody.
        lets_in = await self._newcomer(place) if self._case.role == "server" else None
        is_leaving = how is not None if self._case.role == "client" else lets_in is False
        died = await self._died_by_now() if is_leaving else self._died()
        # A missing listener is no end of a connection, and after a game a client may leave.
        has_left = self._case.role == "client" and self._way.has_played
        is_gone = has_left or (how is not None and how.startswith(NOBODY_LISTENS))
        return Seen(
            is_as_usual,
            said,
            flawed,
            None if how is None or is_gone else "reset" if how == RESET else "closed",
            died,
            lets_in,
            others_go_on,
            self._is_beyond(place),
            answer,
            leaves_waiting,
            is_untold,
        )

    def _is_beyond(self, place: Place) -> bool:
        """Return True if the program had stopped by this point in the undisturbed game, too."""
        habits = self._conditions.habits
        if place.expected is None or habits.parted_at is None:
            return not habits.takes_part
        return place.expected.number >= habits.parted_at

    def _answer(self) -> str | None:
        """Return the name of a received message that answers the case's message by the grammar, or None."""
        row = self._case.of
        answers = self._conditions.habits.answers_to(row) if row is not None else ()
        return next((each.message for each in self._replies if each.message in answers), None)

    async def _died_by_now(self) -> str | None:
        """Return how the program ended; one that has just closed all its sockets gets some time to exit."""
        end = time.monotonic() + _DYING_S
        while self._died() is None and self._program is not None and time.monotonic() < end:
            await asyncio.sleep(_LINGER_S)
        return self._died()

    def _others_go_on(self, place: Place) -> bool | None:
        """Return True if the uninvolved players are still served; None without such players or messages."""
        innocent = self._innocent(place)
        if any(other in self._listening.ends for other in innocent):
            return False
        return True if any(self._witness.said(other) for other in innocent) else None

    def _leaves_waiting(self, place: Place) -> bool:
        """Return True if other players waited for one that has left, and receive nothing about it."""
        row, about = self._case.of, self._conditions.dissector
        innocent = self._innocent(place)
        if not self._has_hung_up or not innocent or row is None or self._case.role == "client":
            return False
        beats = {each.name for each in about.grammar.rows if each.heartbeat}
        told = (said for said in self._witness.said(*innocent) if said.message not in beats)
        is_waited_for = as_name(row.name) in about.reactions.waits_for.split()
        return is_waited_for and next(told, None) is None

    async def _newcomer(self, place: Place) -> bool | None:
        """Return True if a new client is accepted; None if it can connect, but the server sends nothing."""
        ours = {place.connection, *place.others, *self._used.values()}
        # Datagrams have no end, and late ones are recorded, too.
        if self._is_unread and place.role.transport == "tcp":
            for connection in ours:
                self._peers.reset(connection)
        if self._conditions.habits.greets:
            # It usually sends newcomers a message while others are connected, and must still do so.
            return bool(await self._is_greeted())
        if not self._is_unread and place.role.transport == "tcp":
            await asyncio.gather(*map(self._peers.hang, ours))
        is_greeted = await self._is_greeted()
        # Over TCP a server may wait for more players before it sends anything.
        return is_greeted or (False if place.role.transport == "udp" or is_greeted is None else None)
