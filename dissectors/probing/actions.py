"""What is done at a case's place: bytes that are sent, waited with, and ends of connections.

Nothing is done here: a case gives a list of acts, and whoever runs it carries them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from kiebitz.dissectors.conformance.expectations import NotHere, Situation

By = Literal["self", "other", "stranger"]
"""By which connection: the one that the place is on, another player's, or a new one that has said nothing."""

ENDLESS = 1 << 18
"""A line without end has so many bytes, and no more."""

_PIECE = 1 << 14
"""It is sent in pieces of so many."""

_CUT_MOST = 256
"""Of a message that is sent byte by byte so many come alone; the others follow at once."""

_SLOW = 4
"""So many bytes come a second apart."""

_BESIDE_S = 0.3
"""So long before a message half of a newcomer's has come."""

_APART_S = 0.002
"""So long lies between two bytes, for each to come in a segment of its own."""


class Send(msgspec.Struct, frozen=True):
    """Send bytes: a piece of a stream, or a datagram."""

    data: bytes
    by: By = "self"


class Pause(msgspec.Struct, frozen=True):
    """Do nothing for so long."""

    seconds: float


class HalfClose(msgspec.Struct, frozen=True):
    """Send nothing more on a connection, and still hear what comes."""

    by: By = "self"


class Close(msgspec.Struct, frozen=True):
    """End a connection."""

    by: By = "self"


class Reset(msgspec.Struct, frozen=True):
    """End a connection as if its machine were gone (RST)."""

    by: By = "self"


Act = Send | Pause | HalfClose | Close | Reset
Acts = tuple[Act, ...]


def whole(at: Situation) -> Acts:
    """The message as it is."""
    return (Send(at.frame),)


def bytewise(at: Situation) -> Acts:
    """Byte by byte."""
    acts: list[Act] = []
    for start in range(min(len(at.frame), _CUT_MOST)):
        acts += Send(at.frame[start : start + 1]), Pause(_APART_S)
    rest = at.frame[_CUT_MOST:]
    return (*acts, Send(rest)) if rest else tuple(acts)


def joined(at: Situation) -> Acts:
    """With the next message in one piece, where that waits for nothing."""
    return (Send(at.frame + _following(at, waits=False)),)


def slowly(at: Situation) -> Acts:
    """A byte a second, as far as that can be waited for."""
    acts: list[Act] = []
    for start in range(min(len(at.frame) - 1, _SLOW)):
        acts += Send(at.frame[start : start + 1]), Pause(1)
    return (*acts, Send(at.frame[min(len(at.frame) - 1, _SLOW) :]))


def in_two(at: Situation) -> Acts:
    """In two pieces, with a second between."""
    return (Send(half(at)), Pause(1), Send(at.frame[len(half(at)) :]))


def twice(at: Situation) -> Acts:
    """The same again at once."""
    return (Send(at.frame), Send(at.frame))


def never(at: Situation) -> Acts:
    """Nothing in its place."""
    return ()


def overtaken(at: Situation) -> Acts:
    """The next message before this one, where that waits for nothing: so datagrams may come."""
    return (Send(_following(at, waits=False)), Send(at.frame))


def early(at: Situation) -> Acts:
    """The next message before this one, although it is to wait for the peer."""
    return (Send(_following(at, waits=True)), Send(at.frame))


def after(seconds: float) -> Callable[[Situation], Acts]:
    """The message so late."""
    return lambda at: (Pause(seconds), Send(at.frame))


def by(connection: By) -> Callable[[Situation], Acts]:
    """The message on another connection than its own."""
    return lambda at: (Send(at.frame, connection),)


def padded(size: int) -> Callable[[bytes], bytes]:
    """The message with so much behind it that it has this size."""
    return lambda frame: frame + b"x" * (size - len(frame))


def half_then(*end: Act) -> Callable[[Situation], Acts]:
    """Half of the message, and then this."""
    return lambda at: (Send(half(at)), *end)


def beside_half(at: Situation) -> Acts:
    """The message as it is, while a newcomer's own is unfinished."""
    return (Send(half(at), "stranger"), Pause(_BESIDE_S), Send(at.frame))


def endless(at: Situation) -> Acts:
    """A message that begins and does not end."""
    data = at.frame[:2] + b"x" * (ENDLESS - 2)
    return tuple(Send(data[start : start + _PIECE]) for start in range(0, ENDLESS, _PIECE))


def instead(written: Callable[[bytes], bytes]) -> Callable[[Situation], Acts]:
    """Other bytes in place of the message, made of its own."""
    return lambda at: (Send(written(at.frame)),)


def made(written: Callable[[Situation], bytes]) -> Callable[[Situation], Acts]:
    """The same, made of the whole situation."""
    return lambda at: (Send(written(at)),)


def only(*done: Act) -> Callable[[Situation], Acts]:
    """Always the same."""
    return lambda at: done


def half(at: Situation) -> bytes:
    """The first half of a message, which is never all of it."""
    if len(at.frame) < 2:
        raise NotHere("the message has no two halves")
    return at.frame[: len(at.frame) // 2]


def line_end(frame: bytes) -> bytes:
    """What ends the message, without it."""
    end = frame[len(frame.rstrip(b"\r\n")) :]
    if not end:
        raise NotHere("the message ends with no line end")
    return end


def other_line_ends(frame: bytes) -> bytes:
    """LF in place of CR LF, or the other way round."""
    if b"\r\n" in frame:
        return frame.replace(b"\r\n", b"\n")
    return frame.replace(b"\n", b"\r\n")


def _following(at: Situation, waits: bool) -> bytes:
    if at.following is None:
        raise NotHere("nothing is to be sent after it")
    if at.waits != waits:
        raise NotHere(
            "what is to be sent next " + ("waits for the peer" if at.waits else "waits for nothing")
        )
    return at.following
