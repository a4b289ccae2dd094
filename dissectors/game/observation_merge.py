"""Merging of the players' partial copies of a server message into one observation.

A server sends each player the same message with that player's cards open and all others hidden. An
observation keeps the copy that reveals most. If it still hides something, it waits for a short time for the
copy that may reveal it, and later ones wait behind it. So each observation is passed on once, complete and
in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import LATEST_COPY_NS, BroadcastLog
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Event, Message

MAX_WAITING = 256
"""Maximum number of waiting observations."""

MAX_BYTES = 4 << 20
"""Maximum size of the waiting messages in bytes."""

MAX_KEPT_LENGTH = 64 << 10
"""Maximum size in bytes of a message whose bytes are kept, to locate violations in it; real ones are
shorter."""


class Observation(msgspec.Struct, eq=False):
    """A server message to several players, with all its copies.

    `message` is the copy that reveals most, `frame` its bytes, empty if it is too long to keep. `awaits` are
    the streams on which a more revealing copy may arrive.
    """

    row: MessageType
    message: Message
    frame: bytes
    ts_ns: int
    messages: list[Message]
    awaits: set[int] = set()
    event: Event | None = None
    game_id: int | None = None
    logged: _LoggedObservation | None = None

    @property
    def name(self) -> str:
        """Name of the message."""
        return self.row.name

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the message."""
        return self.message.fields


class PartialView:
    """The content of a copy: `public` is the same in all copies; `open` is None in copies that hide it.

    Equal values can be copies of one message. One that may be sent `to_one` client only is no copy of an
    earlier message to another client.
    """

    __slots__ = ("open", "public", "to_one")

    def __init__(self, public: Hashable, open: Any, to_one: bool = False) -> None:
        self.public = public
        self.open = open
        self.to_one = to_one

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PartialView)
            and self.public == other.public
            and (self.open is None or other.open is None or self.open == other.open)
        )

    def __hash__(self) -> int:
        return hash(self.public)


class ObservationMerger:
    """Merges copies into observations and passes these in order to `take`.

    `may_reveal` returns the streams on which a copy may arrive that hides nothing. `overtaken_ns` is the
    longest time in ns by which a later message of the same stream may overtake a copy.
    """

    def __init__(
        self,
        take: Callable[[Observation], None],
        may_reveal: Callable[[Observation], set[int]],
        overtaken_ns: int,
    ) -> None:
        self._take = take
        self._may_reveal = may_reveal
        self._log: BroadcastLog[_LoggedObservation] = BroadcastLog(doubled=False, overtaken_ns=overtaken_ns)
        self._waiting: deque[Observation] = deque()
        self._bytes = 0
        """Size of the waiting messages in bytes."""

    def add(
        self,
        message: Message,
        row: MessageType,
        frame: bytes,
        to_all: Hashable = None,
        is_answer: bool = False,
    ) -> None:
        """Add the next message; with `to_all`, it is a copy of the message with an equal key.

        An answer to this client may have no other copies.
        """
        if len(frame) > MAX_KEPT_LENGTH:
            frame = b""
        if self._waiting:
            self._settle(message.ts_ns)
        if to_all is None:
            self._add_new(Observation(row, message, frame, message.ts_ns, [message]))
        else:
            self._hear_copy(message, row, frame, to_all, is_answer)

    def _add_new(self, observation: Observation) -> None:
        """Pass on a new observation, unless it has to wait."""
        if self._waiting or observation.awaits:
            self._waiting.append(observation)
            self._bytes += observation.message.length
            self._settle(observation.ts_ns)
        else:
            self._emit(observation)

    def _hear_copy(
        self, message: Message, row: MessageType, frame: bytes, version: Hashable, is_answer: bool
    ) -> None:
        stream_id = message.stream.id
        may_be_late = not (isinstance(version, PartialView) and version.to_one)
        logged = self._log.match_copy(stream_id, version, message.ts_ns, may_be_late)
        if logged is None:
            observation = Observation(row, message, frame, message.ts_ns, [message])
            observation.logged = _LoggedObservation(version, message.ts_ns, observation)
            self._log.add(stream_id, version, observation.logged, to_one=is_answer or not may_be_late)
            if isinstance(version, PartialView) and version.open is None:
                observation.awaits = self._may_reveal(observation) - {stream_id}
            self._add_new(observation)
            return
        waiting = logged.observation
        if waiting is None:
            message.event_id, message.game_id = logged.event_id, logged.game_id
            return
        observation = waiting
        observation.messages.append(message)
        self._bytes += message.length
        observation.awaits.discard(stream_id)
        before = logged.version
        if (
            isinstance(version, PartialView)
            and isinstance(before, PartialView)
            and before.open is None
            and version.open is not None
        ):
            before.open = version.open
            observation.message, observation.frame = message, frame
            observation.awaits.clear()
        self._settle(message.ts_ns)

    def has(self, version: Hashable, message: Message) -> bool:
        """Return True if this would be a copy of a message to others since its stream began."""
        stream = message.stream
        return self._log.has(stream.id, version, message.ts_ns, stream.opened_ns)

    def expect_no_more(self, stream_id: int) -> None:
        """Expect no more copies on a stream, which has ended or has a gap."""
        for observation in self._waiting:
            observation.awaits.discard(stream_id)
        self._settle(None)

    def forget(self, stream_id: int) -> None:
        """Handle the end of a stream."""
        self.expect_no_more(stream_id)
        self._log.forget(stream_id)

    def clear(self) -> None:
        """Drop all messages: no client is left that could receive copies."""
        self._log.clear()

    def finish(self) -> None:
        """Pass on all waiting observations."""
        for observation in self._waiting:
            observation.awaits.clear()
        self._settle(None)

    def first_waiting(self) -> int | None:
        """Return the id of the first message that still waits."""
        return self._waiting[0].messages[0].id if self._waiting else None

    def _settle(self, now_ns: int | None) -> None:
        waiting = self._waiting
        while waiting:
            observation = waiting[0]
            if (
                observation.awaits
                and len(waiting) <= MAX_WAITING
                and self._bytes <= MAX_BYTES
                and (now_ns is None or now_ns - observation.ts_ns < LATEST_COPY_NS)
            ):
                return
            waiting.popleft()
            self._emit(observation)
            for message in observation.messages:
                self._bytes -= message.length

    def _emit(self, observation: Observation) -> None:
        """Pass on an observation, then set the event of its messages."""
        self._take(observation)
        event_id = observation.event.id if observation.event is not None else None
        game_id = observation.game_id
        for message in observation.messages:
            message.event_id, message.game_id = event_id, game_id
        logged = observation.logged
        if logged is not None:
            # The log outlives the observation, and must not keep its bytes.
            logged.observation, logged.event_id, logged.game_id = None, event_id, game_id


class _LoggedObservation(msgspec.Struct, eq=False):
    """An observation in the log: its most revealing content and, once it is passed on, its event and game."""

    version: Hashable
    ts_ns: int
    observation: Observation | None
    event_id: int | None = None
    game_id: int | None = None
