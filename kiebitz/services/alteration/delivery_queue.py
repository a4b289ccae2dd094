"""What is on its way through the relay: messages and bytes in the order in which they are to be passed on."""

from __future__ import annotations

from collections import deque
from typing import get_args

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.memo import FrameCache
from kiebitz.dissectors.model import Action, Direction, Message, Stream
from kiebitz.proxy.alterer import Mark
from kiebitz.services.alteration.framing import Framing

_GRAVEST: tuple[Action, ...] = get_args(Action)


class Copy(msgspec.Struct, eq=False):
    """One message, or bytes that nobody can read, as it will be passed on.

    `message` is what it says by now, None if that is not known. `rule` is the number of the next rule that
    looks at it. It is passed on at `due_ns`, and takes `takes_ns` for that. Of the copies that come of
    something that was sent, one at most `is_original`. `deeds` are what was done to it, each with its rule.
    """

    direction: Direction
    data: bytes
    message: Message | None
    due_ns: int
    rule: int = 0
    takes_ns: int = 0
    is_original: bool = False
    is_dropped: bool = False
    resets: bool = False
    may_be_passed: bool = False
    """Whether what came later may be passed on before it."""
    comes_behind: bool = False
    """Whether it is passed on as soon as something that came later has been."""
    deeds: list[tuple[Action, str]] = msgspec.field(default_factory=list)


class Slot(msgspec.Struct, eq=False):
    """What was sent at once, with its place in the order, and the copies that are passed on instead.

    As long as any of them `waits` for somebody's answer, all of it waits. With `ends` nothing was sent, but
    the end of the direction.
    """

    sent_ns: int
    original: bytes
    message: Message | None
    copies: list[Copy] = msgspec.field(default_factory=list)
    waits: int = 0
    ends: bool = False
    is_cut: bool = False
    """Whether its last message goes on in what came behind it."""

    def mark(self, copy: Copy) -> Mark | None:
        """That a copy is not what was sent; None if it is, at its place and in its time."""
        if not copy.deeds:
            return None
        action = min((action for action, _ in copy.deeds), key=_GRAVEST.index)
        rule = "; ".join(dict.fromkeys(rule for _, rule in copy.deeds))
        if not copy.is_original:
            return Mark(action, rule, None, None, None, None)
        said = self.message
        return Mark(
            action,
            rule,
            self.sent_ns,
            self.original,
            said.name if said is not None else None,
            said.fields_json if said is not None else None,
        )


class Way(msgspec.Struct, eq=False):
    """One direction of a stream: what waits in it, in order, and how many bytes that are.

    Nothing can be passed on before `free_ns`. `head` are its first bytes, until its protocol is known.
    `loose` is what others may be passed on before. `counts` says for each rule how many of its messages have
    met it.
    """

    stream: Stream
    direction: Direction
    place: str
    """Names it, in the same way in each run."""
    framing: Framing | None = None
    head: bytearray = msgspec.field(default_factory=bytearray)
    slots: deque[Slot] = msgspec.field(default_factory=deque)
    loose: list[tuple[Slot, Copy]] = msgspec.field(default_factory=list)
    bytes: int = 0
    free_ns: int = 0
    is_inside: bool = False
    """Whether the beginning of a message has been passed on, and not its end."""
    has_ended: bool = False
    """Whether its end has been passed on."""
    unfinished: tuple[int, int] | None = None
    """Where in the stream bytes begin that wait for the rest of their message, and since when they do."""
    unfinished_bytes: int = 0
    passed: int = 0
    """How many bytes have been passed on."""
    counts: dict[int, int] = msgspec.field(default_factory=dict)


class Server(msgspec.Struct, eq=False):
    """A server, and what it speaks once that is known; `latest` has the last message of each name, `memo`
    what frames say that came lately.

    `tried` counts how often it was looked for in vain; `streams` are those that are open.
    """

    dissector: Dissector | None = None
    is_no_game: bool = False
    tried: int = 0
    memo: dict[Direction, FrameCache] = msgspec.field(
        default_factory=lambda: {"c2s": FrameCache(), "s2c": FrameCache()}
    )
    streams: list[Stream] = msgspec.field(default_factory=list)
    latest: dict[tuple[Direction, str], bytes] = msgspec.field(default_factory=dict)


class Passage(msgspec.Struct, eq=False):
    """A stream that passes, its server, and its two directions."""

    stream: Stream
    server: Server
    ways: dict[Direction, Way]
    is_reset: bool = False
    """Whether its connection was reset, by ourselves."""
