"""One case, tried on a live server: the way to its place, its acts there, and what comes of them.

All of it is recorded as one session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kiebitz.dissectors.conformance.expectations import HEARS, NotHere
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.actions import Act, By, Close, HalfClose, Pause, Reset, Send
from kiebitz.dissectors.probing.case import Case, as_name
from kiebitz.dissectors.probing.routes import Place, Way
from kiebitz.dissectors.probing.verdict import Said, Seen, Verdict, judged
from kiebitz.proxy.peers.connections import RESET, UNREACHABLE, PeerError
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.probing.connection_setup import Conditions, Stage
from kiebitz.services.probing.program import Program
from kiebitz.storage.recording.recorder import Recorder

_LINGER_S = 0.05
"""After the last answer so long is waited for an end."""

_DYING_S = 1.0
"""So long a program may take to end once it serves nobody any more."""

_UNREAD_S = 2.0
"""So long a peer may leave unread what is sent."""


class Attempt(msgspec.Struct, frozen=True):
    """What came of a case: the verdict, or `why_not` it could not be tried.

    Its messages are those of its session from `begun_ns` on; if it is in play, only those that are `wrong`,
    by their numbers.
    """

    case: Case
    verdict: Verdict | None
    why_not: str | None
    seen: Seen | None
    begun_ns: int
    seconds: float
    is_heard: bool
    """Whether the peer has said anything at all."""
    never: bool = False
    """Whether the case's message never came up."""
    wrong: Sequence[int] = ()


class Trial(Stage):
    """Tries a case once."""

    def __init__(
        self, case: Case, way: Way, conditions: Conditions, recorder: Recorder, program: Program | None
    ) -> None:
        super().__init__(way, conditions, recorder, program)
        self._case = case
        self._senders: set[By] = set()
        self._used: dict[By, int] = {}
        """By whom the acts were done, and on which connections."""
        self._gone: set[int] = set()
        """Connections that we have ended."""
        self._said: tuple[Said, ...] | None = None
        """What the peer had said by the time that it was clear how it reacts."""
        self._is_unread = False
        self._begun_ns = 0

    async def run(self, limit_s: float) -> Attempt:
        """Go there, in that many seconds at the most, do it, and watch.

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
                self._way.lost = "its place was not reached in time"
            except PeerError as error:
                # A program that is ours to start is started again.
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

    # The way there.

    async def _reach(self) -> tuple[Place | None, tuple[Act, ...]]:
        """Go to the first place where the case can be tried. Raises NotHere if there is none."""
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
        """Raise NotHere if there is nobody who would do these acts."""
        senders = {act.by for act in acts if not isinstance(act, Pause)}
        if "other" in senders and not place.others:
            raise NotHere("no other player is there")
        if "stranger" in senders and self._case.role == "client":
            raise NotHere("to a client only its server speaks here")

    # The acts, and what comes of them.

    async def _try(self, place: Place, acts: tuple[Act, ...]) -> Seen:
        await self._settle(place)
        self._begun_ns = now_ns()
        self._witness.begin()
        self._used["self"] = place.connection
        # An answer may come while the acts are done.
        self._way.acted(self._case.uses)
        for act in acts:
            await self._do(act, place)
        await self._watch(place)
        return await self._seen(place)

    async def _settle(self, place: Place) -> None:
        """Hear what is still on its way: it is no answer. A datagram's answer may have little time."""
        if place.role.transport == "tcp":
            await self._actor.hear_until(time.monotonic() + _LINGER_S)

    async def _do(self, act: Act, place: Place) -> None:
        if isinstance(act, Pause):
            await self._actor.hear_until(time.monotonic() + act.seconds)
            return
        connection = await self._connection(act.by, place)
        match act:
            case Send():
                await self._send(act, connection)
                return
            case HalfClose():
                self._peers.half_close(connection)
            case Close():
                self._gone.add(connection)
                await self._peers.hang_up(connection)
            case Reset():
                self._gone.add(connection)
                self._peers.reset(connection)
        self._has_hung_up = self._has_hung_up or act.by == "self"

    async def _send(self, act: Send, connection: int) -> None:
        if act.by == "self" and "stranger" in self._senders:
            # To what a stranger has begun there is no answer.
            self._way.forget()
        self._senders.add(act.by)
        if not self._peers.send(connection, act.data) and not self._is_unread:
            try:
                await self._peers.drain(connection, _UNREAD_S)
            except PeerError:
                # A peer may stop to read; it is seen below what it does then.
                self._is_unread = True

    async def _connection(self, by: By, place: Place) -> int:
        if by not in self._used:
            self._used[by] = place.others[0] if by == "other" else await self._call(place.role)
        return self._used[by]

    async def _watch(self, place: Place) -> None:
        """Go on as recorded, and hear what comes, until it is clear how the peer reacts."""
        due = time.monotonic() + self._wait_s()
        self._listening.is_enough = lambda: self._is_clear(place)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s()):
                await self._actor.play()
        await self._actor.hear_until(due, self._listening.is_enough)
        await self._actor.hear_until(time.monotonic() + _LINGER_S)

    @property
    def _replies(self) -> tuple[Said, ...]:
        """What the peer has said, since the acts began, to those who did them."""
        return self._witness.said(*self._used.values())

    def _wait_s(self) -> float:
        """How long an answer is waited for. Where none is sent, the specification may say so."""
        name = self._case.message
        patience = (
            self._conditions.dissector.conformance.timeouts.get(name or "", 0.0) if not self._senders else 0.0
        )
        return max(self._conditions.wait_s, 2 * patience)

    def _is_clear(self, place: Place) -> bool:
        """Whether nothing more is to be waited for."""
        # Of two that were sent the first is answered in any case.
        is_second_due = self._case.kind == "twice" and "answers" not in self._case.demand.right
        is_as_usual = self._is_as_usual(place) and not self._is_untold(place) and not is_second_due
        is_answered = is_as_usual or self._is_refused()
        if is_answered and self._said is None:
            # A refusal that comes later is one of something else.
            self._said = self._replies
        return is_answered or self._ending() is not None or self._died() is not None

    def _is_as_usual(self, place: Place) -> bool:
        answer = self._case.demand.answer
        if answer and not any(said.message in answer for said in self._replies):
            return False
        # Who has sent it is answered, though it was to be another.
        senders = [self._used[by] for by in self._senders - {"self"} if not self._is_company(by)]
        if self._way.is_as_usual or any(map(self._way.has_gone_on, senders)):
            return True
        expected = place.expected
        if expected is None:
            return False
        said = self._witness.decode(expected.data)
        # Who is called otherwise is spoken of otherwise; dice, cards and moves may be others than recorded.
        is_loose = self._renames() or self._case.harmless
        if is_loose and any(each.message == said.message for each in self._witness.said(place.connection)):
            return True
        return any(self._witness.has_said(said, connection) for connection in senders)

    def _is_untold(self, place: Place) -> bool:
        """Whether the others are to be told of it, and are not."""
        name = self._case.demand.others_hear
        innocent = self._innocent(place)
        if name is None or not innocent:
            return False
        told = [said for said in self._witness.said(*innocent) if said.message == name]
        own = [said for said in self._witness.said(place.connection) if said.message == name]
        # Others may be told such a thing of somebody else.
        return not any(said in told for said in own) if own else not told

    def _innocent(self, place: Place) -> list[int]:
        """The connections of those who are there and have done nothing."""
        used = self._used.values()
        return [other for other in place.others if other not in used and not self._way.has_left(other)]

    @property
    def _spoilt(self) -> set[IdentifierKind]:
        """What the field names that the case spoils."""
        fields = () if self._case.of is None else self._case.of.fields
        spoilt = (field for field in fields if field.name == self._case.field)
        return {handle for field in spoilt for handle in field.type.identifiers()}

    def _renames(self) -> bool:
        """Whether the case changes what a player is called."""
        return any(handle.of_player for handle in self._spoilt)

    def _is_told_wrong(self) -> bool:
        """Whether a client is told something wrong: what it says then follows from that."""
        names = self._case.field is not None or "/rule/" in self._case.name
        return self._case.role == "client" and names

    def _known_flawed(self) -> set[str]:
        """The messages of which nothing is held against it: those that are wrong in any case, and those in
        which it says a name again that the case has spoilt."""
        spoilt = self._spoilt
        return {*self._conditions.habits.flawed} | {
            said.name
            for said in self._conditions.dissector.grammar.rows
            if said.direction == OPPOSITE[HEARS[self._case.role]]
            and any(spoilt & {*field.type.identifiers()} for field in said.fields)
        }

    def _is_refused(self) -> bool:
        return any(
            refusal.is_said_in(each.message, each.fields)
            for each in self._replies
            for refusal in self._case.demand.refusals
        )

    def _is_company(self, by: By) -> bool:
        """Whether a stranger is only there, while our player speaks."""
        return by == "stranger" and "self" in self._senders

    def _ending(self) -> str | None:
        """How the peer has ended a connection by which the acts were done."""
        asked = [on for by, on in self._used.items() if not self._is_company(by)]
        still_ours = (connection for connection in asked if connection not in self._gone)
        ends = (self._listening.ends.get(connection) for connection in still_ours)
        return next((how for how in ends if how is not None), None)

    async def _seen(self, place: Place) -> Seen:
        how = self._ending()
        said = self._said if self._said is not None else self._replies
        flawed = () if self._is_told_wrong() else self._witness.flawed(self._known_flawed())
        # Where nothing more is to come it is right to say nothing more.
        is_through = place.is_last and self._case.harmless
        is_as_usual = self._is_as_usual(place) or is_through
        answer, is_untold = self._answer(), self._is_untold(place)
        others_go_on, leaves_waiting = self._others_go_on(place), self._leaves_waiting(place)
        # A newcomer is made room for: what comes then is no answer. A client lets nobody in.
        lets_in = await self._newcomer(place) if self._case.role == "server" else None
        is_leaving = how is not None if self._case.role == "client" else lets_in is False
        died = await self._died_by_now() if is_leaving else self._died()
        # That nobody is there any more is no ending of a connection, and after a game a client may leave.
        has_left = self._case.role == "client" and self._way.has_played
        is_gone = has_left or (how is not None and how.startswith(UNREACHABLE))
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
        """Whether the program did not go on by then also where nothing odd was done."""
        habits = self._conditions.habits
        if place.expected is None or habits.parted_at is None:
            return not habits.takes_part
        return place.expected.number >= habits.parted_at

    def _answer(self) -> str | None:
        """A message that was said and answers the case's by the grammar."""
        row = self._case.of
        answers = self._conditions.habits.answers_to(row) if row is not None else ()
        return next((each.message for each in self._replies if each.message in answers), None)

    async def _died_by_now(self) -> str | None:
        """How the program has ended; one that has just closed all its sockets may not be gone yet."""
        end = time.monotonic() + _DYING_S
        while self._died() is None and self._program is not None and time.monotonic() < end:
            await asyncio.sleep(_LINGER_S)
        return self._died()

    def _others_go_on(self, place: Place) -> bool | None:
        """Whether those who have done nothing are still served; None where there is nobody, or nothing."""
        innocent = self._innocent(place)
        if any(other in self._listening.ends for other in innocent):
            return False
        return True if any(self._witness.said(other) for other in innocent) else None

    def _leaves_waiting(self, place: Place) -> bool:
        """Whether others have waited for one who is gone, and are told nothing."""
        row, about = self._case.of, self._conditions.dissector
        innocent = self._innocent(place)
        if not self._has_hung_up or not innocent or row is None or self._case.role == "client":
            return False
        beats = {each.name for each in about.grammar.rows if each.heartbeat}
        told = (said for said in self._witness.said(*innocent) if said.message not in beats)
        is_waited_for = as_name(row.name) in about.conformance.reactions.waits_for.split()
        return is_waited_for and next(told, None) is None

    async def _newcomer(self, place: Place) -> bool | None:
        """Whether a new client gets in; None where it is accepted, but the server says nothing to it."""
        ours = {place.connection, *place.others, *self._used.values()}
        # Datagrams have no end, and what comes late is recorded, too.
        if self._is_unread and place.role.transport == "tcp":
            for connection in ours:
                self._peers.reset(connection)
        if self._conditions.habits.greets:
            # It says something to newcomers while others are there: that is to be so still.
            return bool(await self._is_greeted())
        if not self._is_unread and place.role.transport == "tcp":
            await asyncio.gather(*map(self._peers.hang_up, ours))
        is_greeted = await self._is_greeted()
        # Over TCP a server may well wait for more players before it says anything.
        return is_greeted or (False if place.role.transport == "udp" or is_greeted is None else None)
