"""What everybody's conversations tell together: one *fact* for each thing told, however many copies say it.

A server tells each player the same in a version of his own: his own cards open, the others' hidden. A fact
keeps the version that says the most. One that hides something waits, for a short time, for the copy of
whoever may see it; whatever comes after it waits behind it. So a fact is taken once, whole, and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import LATEST_COPY_NS, BroadcastLog
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Event, Message

MOST_WAITING = 256
"""So many facts wait at the most."""

MOST_BYTES = 4 << 20
"""So many bytes of messages wait at the most."""

LONGEST_KEPT = 64 << 10
"""Bytes of longer messages are not kept to point at a place in them; no real one is as long."""


class Fact(msgspec.Struct, eq=False):
    """Something that was told: the version of it that says the most, and all messages that tell it.

    `frame` are the bytes of `message`, whose fields are `fields`; none, if they are too many to be kept.
    `awaits` are the streams on which a version may yet come that says more.
    """

    row: MessageType
    message: Message
    frame: bytes
    ts_ns: int
    messages: list[Message]
    awaits: set[int] = msgspec.field(default_factory=set)
    event: Event | None = None
    game_id: int | None = None
    told: _Told | None = None

    @property
    def name(self) -> str:
        """The message's name."""
        return self.row.name

    @property
    def fields(self) -> dict[str, Any]:
        """What it says."""
        return self.message.fields


class Version:
    """What a copy says: `public` is the same in all copies, `open` what some of them hide, None there.

    Two versions are equal if they can be copies of one fact. What may be said `to_one` alone is no copy of
    what another was told some time before.
    """

    __slots__ = ("open", "public", "to_one")

    def __init__(self, public: Hashable, open: Any, to_one: bool = False) -> None:
        self.public = public
        self.open = open
        self.to_one = to_one

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Version)
            and self.public == other.public
            and (self.open is None or other.open is None or self.open == other.open)
        )

    def __hash__(self) -> int:
        return hash(self.public)


class Hearing:
    """Puts facts together and hands them over in order, each to `take`.

    `may_reveal` says on which streams a version of a fact may come that hides nothing; `overtaken_ns` is how
    far back a copy may have been overtaken by a later one on its own stream.
    """

    def __init__(
        self,
        take: Callable[[Fact], None],
        may_reveal: Callable[[Fact], set[int]],
        overtaken_ns: int,
    ) -> None:
        self._take = take
        self._may_reveal = may_reveal
        self._log: BroadcastLog[_Told] = BroadcastLog(doubled=False, overtaken_ns=overtaken_ns)
        self._waiting: deque[Fact] = deque()
        self._bytes = 0
        """How many bytes the waiting messages have."""

    def hear(self, message: Message, row: MessageType, frame: bytes, to_all: Hashable = None) -> None:
        """Take the next message; one that is `to_all` is a copy of whatever has the same version."""
        if len(frame) > LONGEST_KEPT:
            frame = b""
        if self._waiting:
            self._settle(message.ts_ns)
        if to_all is None:
            self._news(Fact(row, message, frame, message.ts_ns, [message]))
        else:
            self._hear_copy(message, row, frame, to_all)

    def _news(self, fact: Fact) -> None:
        """Take what was told first, unless it has to wait."""
        if self._waiting or fact.awaits:
            self._waiting.append(fact)
            self._bytes += fact.message.length
            self._settle(fact.ts_ns)
        else:
            self._taken(fact)

    def _hear_copy(self, message: Message, row: MessageType, frame: bytes, version: Hashable) -> None:
        stream_id = message.stream.id
        may_be_late = not (isinstance(version, Version) and version.to_one)
        told = self._log.witness(stream_id, version, message.ts_ns, may_be_late)
        if told is None:
            fact = Fact(row, message, frame, message.ts_ns, [message])
            fact.told = _Told(version, message.ts_ns, fact)
            self._log.add(stream_id, version, fact.told)
            if isinstance(version, Version) and version.open is None:
                fact.awaits = self._may_reveal(fact) - {stream_id}
            self._news(fact)
            return
        waiting = told.fact
        if waiting is None:
            message.event_id, message.game_id = told.event_id, told.game_id
            return
        fact = waiting
        fact.messages.append(message)
        self._bytes += message.length
        fact.awaits.discard(stream_id)
        before = told.version
        if (
            isinstance(version, Version)
            and isinstance(before, Version)
            and before.open is None
            and version.open is not None
        ):
            before.open = version.open
            fact.message, fact.frame = message, frame
            fact.awaits.clear()
        self._settle(message.ts_ns)

    def has(self, version: Hashable, message: Message) -> bool:
        """Whether this would be a copy of something that others were told since its stream began."""
        stream = message.stream
        return self._log.has(stream.id, version, message.ts_ns, stream.opened_ns)

    def silence(self, stream_id: int) -> None:
        """Nothing more can be expected of a stream: it is over, or something of it is missing."""
        for fact in self._waiting:
            fact.awaits.discard(stream_id)
        self._settle(None)

    def forget(self, stream_id: int) -> None:
        """A stream is over."""
        self.silence(stream_id)
        self._log.forget(stream_id)

    def clear(self) -> None:
        """Nobody is there any more who could hear copies of what was told."""
        self._log.clear()

    def finish(self) -> None:
        """Nothing more comes at all."""
        for fact in self._waiting:
            fact.awaits.clear()
        self._settle(None)

    def first_waiting(self) -> int | None:
        """The id of the first message that still waits."""
        return self._waiting[0].messages[0].id if self._waiting else None

    def _settle(self, now_ns: int | None) -> None:
        waiting = self._waiting
        while waiting:
            fact = waiting[0]
            if (
                fact.awaits
                and len(waiting) <= MOST_WAITING
                and self._bytes <= MOST_BYTES
                and (now_ns is None or now_ns - fact.ts_ns < LATEST_COPY_NS)
            ):
                return
            waiting.popleft()
            self._taken(fact)
            for message in fact.messages:
                self._bytes -= message.length

    def _taken(self, fact: Fact) -> None:
        """Take a fact; then it is known which event its messages tell of."""
        self._take(fact)
        event_id = fact.event.id if fact.event is not None else None
        game_id = fact.game_id
        for message in fact.messages:
            message.event_id, message.game_id = event_id, game_id
        told = fact.told
        if told is not None:
            # The log outlives the fact, and must not keep its bytes.
            told.fact, told.event_id, told.game_id = None, event_id, game_id


class _Told(msgspec.Struct, eq=False):
    """What the log keeps of a fact: the version that says most and, once it is taken, its event and game."""

    version: Hashable
    ts_ns: int
    fact: Fact | None
    event_id: int | None = None
    game_id: int | None = None
