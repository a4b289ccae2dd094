"""The actions of a test case: sending bytes, pausing, and closing connections.

Nothing is executed here: a case gives a list of actions, and its runner carries them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from kiebitz.dissectors.conformance.expectations import NotHere, Situation

By = Literal["self", "other", "stranger"]
"""The connection to use: the injection point's, another player's, or a new one that has sent nothing."""

ENDLESS = 1 << 18
"""Size in bytes of the line that has no end."""

_PIECE = 1 << 14
"""Size in bytes of the pieces in which that line is sent."""

_CUT_MOST = 256
"""Maximum number of bytes sent singly; the rest of the message follows in one piece."""

_SLOW = 4
"""Number of bytes that are sent one second apart."""

_BESIDE_S = 0.3
"""Seconds between the first half of a newcomer's message and the message itself."""

_APART_S = 0.002
"""Seconds between two bytes, so that each arrives in a segment of its own."""


class Send(msgspec.Struct, frozen=True):
    """Send bytes: a piece of a stream, or a datagram."""

    data: bytes
    sender: By = "self"


class Pause(msgspec.Struct, frozen=True):
    """Do nothing for a number of seconds."""

    seconds: float


class HalfClose(msgspec.Struct, frozen=True):
    """Shut down a connection for sending, but keep receiving."""

    sender: By = "self"


class Close(msgspec.Struct, frozen=True):
    """Close a connection."""

    sender: By = "self"


class Reset(msgspec.Struct, frozen=True):
    """Abort a connection (RST), as if its machine were gone."""

    sender: By = "self"


Act = Send | Pause | HalfClose | Close | Reset
Acts = tuple[Act, ...]


def whole(at: Situation) -> Acts:
    """Send the message unchanged."""
    return (Send(at.frame),)


def bytewise(at: Situation) -> Acts:
    """Send the message byte by byte."""
    acts: list[Act] = []
    for start in range(min(len(at.frame), _CUT_MOST)):
        acts += Send(at.frame[start : start + 1]), Pause(_APART_S)
    rest = at.frame[_CUT_MOST:]
    return (*acts, Send(rest)) if rest else tuple(acts)


def joined(at: Situation) -> Acts:
    """Send the message and the next one in one piece. Raises NotHere if the next one waits for the target."""
    return (Send(at.frame + _following(at, waits=False)),)


def slowly(at: Situation) -> Acts:
    """Send the first few bytes one second apart, then the rest."""
    acts: list[Act] = []
    for start in range(min(len(at.frame) - 1, _SLOW)):
        acts += Send(at.frame[start : start + 1]), Pause(1)
    return (*acts, Send(at.frame[min(len(at.frame) - 1, _SLOW) :]))


def in_two(at: Situation) -> Acts:
    """Send the message in two pieces, one second apart."""
    return (Send(half(at)), Pause(1), Send(at.frame[len(half(at)) :]))


def twice(at: Situation) -> Acts:
    """Send the message twice in a row."""
    return (Send(at.frame), Send(at.frame))


def never(at: Situation) -> Acts:
    """Send nothing in the message's place."""
    return ()


def overtaken(at: Situation) -> Acts:
    """Send the next message before this one, as datagrams may arrive.

    Raises NotHere if the next one waits for the target.
    """
    return (Send(_following(at, waits=False)), Send(at.frame))


def early(at: Situation) -> Acts:
    """Send the next message before this one, although it should wait for the target."""
    return (Send(_following(at, waits=True)), Send(at.frame))


def after(seconds: float) -> Callable[[Situation], Acts]:
    """Return the action of sending the message after a delay."""
    return lambda at: (Pause(seconds), Send(at.frame))


def by(connection: By) -> Callable[[Situation], Acts]:
    """Return the action of sending the message on another connection than its own."""
    return lambda at: (Send(at.frame, connection),)


def padded(size: int) -> Callable[[bytes], bytes]:
    """Return a function that pads a message to a size in bytes."""
    return lambda frame: frame + b"x" * (size - len(frame))


def half_then(*end: Act) -> Callable[[Situation], Acts]:
    """Return the actions of sending half of the message, and then these."""
    return lambda at: (Send(half(at)), *end)


def beside_half(at: Situation) -> Acts:
    """Send the message unchanged while a newcomer's own message is unfinished."""
    return (Send(half(at), "stranger"), Pause(_BESIDE_S), Send(at.frame))


def endless(at: Situation) -> Acts:
    """Send a message that begins and does not end."""
    data = at.frame[:2] + b"x" * (ENDLESS - 2)
    return tuple(Send(data[start : start + _PIECE]) for start in range(0, ENDLESS, _PIECE))


def instead(written: Callable[[bytes], bytes]) -> Callable[[Situation], Acts]:
    """Return the action of sending bytes derived from the message in its place."""
    return lambda at: (Send(written(at.frame)),)


def made(written: Callable[[Situation], bytes]) -> Callable[[Situation], Acts]:
    """Return the action of sending bytes derived from the whole situation."""
    return lambda at: (Send(written(at)),)


def only(*done: Act) -> Callable[[Situation], Acts]:
    """Return fixed actions, whatever the situation."""
    return lambda at: done


def half(at: Situation) -> bytes:
    """Return the first half of a message, which is never all of it."""
    if len(at.frame) < 2:
        raise NotHere("the message is too short to halve")
    return at.frame[: len(at.frame) // 2]


def line_end(frame: bytes) -> bytes:
    """Return the line end of a message without the message. Raises NotHere if it has none."""
    end = frame[len(frame.rstrip(b"\r\n")) :]
    if not end:
        raise NotHere("the message has no line end")
    return end


def other_line_ends(frame: bytes) -> bytes:
    """Replace CR LF by LF, or LF by CR LF."""
    if b"\r\n" in frame:
        return frame.replace(b"\r\n", b"\n")
    return frame.replace(b"\n", b"\r\n")


def _following(at: Situation, waits: bool) -> bytes:
    if at.following is None:
        raise NotHere("no message follows it")
    if at.waits != waits:
        raise NotHere(
            "the next message " + ("waits for the target" if at.waits else "does not wait for the target")
        )
    return at.following
