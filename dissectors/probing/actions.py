"""The actions of a test case: sending bytes, pausing, and closing connections.

Nothing is executed here: a case gives a list of actions, and its runner carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from kiebitz.dissectors.conformance.expectations import NotApplicable, Situation, TargetRole, UnsuitableMoment
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType

Sender = Literal["self", "other", "stranger"]
"""The connection to use: the injection point's, another player's, or a new one that has sent nothing."""

ENDLESS_SIZE = 1 << 18
"""Size in bytes of the line that has no end."""

_PIECE_SIZE = 1 << 14
"""Size in bytes of the pieces in which that line is sent."""

_MAX_SINGLE_BYTES = 256
"""Maximum number of bytes sent singly; the rest of the message follows in one piece."""

_SLOW_BYTES = 4
"""Number of bytes that are sent one second apart."""

_HALF_DELAY_S = 0.3
"""Seconds between the first half of a newcomer's message and the message itself."""

_BYTE_DELAY_S = 0.002
"""Seconds between two bytes, so that each arrives in a segment of its own."""


class Send(msgspec.Struct, frozen=True):
    """Send a frame, which something may have to carry, or if `is_wire`, bytes as they are."""

    data: bytes
    sender: Sender = "self"
    is_wire: bool = False


class Pause(msgspec.Struct, frozen=True):
    """Do nothing for a number of seconds."""

    seconds: float


class HalfClose(msgspec.Struct, frozen=True):
    """Shut down a connection for sending, but keep receiving."""

    sender: Sender = "self"


class Close(msgspec.Struct, frozen=True):
    """Close a connection."""

    sender: Sender = "self"


class Reset(msgspec.Struct, frozen=True):
    """Abort a connection (RST), as if its machine were gone."""

    sender: Sender = "self"


CaseAction = Send | Pause | HalfClose | Close | Reset
CaseActions = tuple[CaseAction, ...]
Make = Callable[[Situation], CaseActions]
"""Function that returns the actions for an injection point."""


def send_whole(at: Situation) -> CaseActions:
    """Send the message unchanged."""
    return (Send(at.frame),)


def send_bytewise(at: Situation) -> CaseActions:
    """Send the message byte by byte."""
    actions: list[CaseAction] = []
    for start in range(min(len(at.wire), _MAX_SINGLE_BYTES)):
        actions += _piece(at.wire[start : start + 1]), Pause(_BYTE_DELAY_S)
    rest = at.wire[_MAX_SINGLE_BYTES:]
    return (*actions, _piece(rest)) if rest else tuple(actions)


def send_slowly(at: Situation) -> CaseActions:
    """Send the first few bytes one second apart, then the rest."""
    actions: list[CaseAction] = []
    for start in range(min(len(at.wire) - 1, _SLOW_BYTES)):
        actions += _piece(at.wire[start : start + 1]), Pause(1)
    return (*actions, _piece(at.wire[min(len(at.wire) - 1, _SLOW_BYTES) :]))


def send_in_two(at: Situation) -> CaseActions:
    """Send the message in two pieces, one second apart."""
    return (_piece(first_half(at)), Pause(1), _piece(at.wire[len(first_half(at)) :]))


def send_during_half(at: Situation) -> CaseActions:
    """Send the message unchanged while a newcomer's own message is unfinished."""
    return (_piece(first_half(at), "stranger"), Pause(_HALF_DELAY_S), Send(at.frame))


def send_endless(at: Situation) -> CaseActions:
    """Send a message that begins and does not end."""
    # What carries it would need more bytes than these.
    data = at.wrap(at.frame[:2] + b"x" * (ENDLESS_SIZE - 2))[:ENDLESS_SIZE]
    return tuple(_piece(data[start : start + _PIECE_SIZE]) for start in range(0, ENDLESS_SIZE, _PIECE_SIZE))


def replace_with(rewrite: Callable[[bytes], bytes]) -> Make:
    """Return the action of sending bytes derived from the message in its place."""
    return lambda at: (Send(rewrite(at.frame)),)


def build_from(rewrite: Callable[[Situation], bytes]) -> Make:
    """Return the action of sending bytes derived from the whole situation."""
    return lambda at: (Send(rewrite(at)),)


def fixed_actions(*done: CaseAction) -> Make:
    """Return fixed actions, whatever the situation."""
    return lambda at: done


def first_half(at: Situation) -> bytes:
    """Return the first half of a message, which is never all of it."""
    if len(at.wire) < 2:
        raise NotApplicable("the message is too short to halve")
    return at.wire[: len(at.wire) // 2]


def _piece(data: bytes, sender: Sender = "self") -> Send:
    return Send(data, sender, is_wire=True)


def line_end_of(frame: bytes) -> bytes:
    """Return the line end of a message without the message. Raises NotApplicable if it has none."""
    end = frame[len(frame.rstrip(b"\r\n")) :]
    if not end:
        raise NotApplicable("the message has no line end")
    return end


def swap_line_ends(frame: bytes) -> bytes:
    """Replace CR LF by LF, or LF by CR LF."""
    if b"\r\n" in frame:
        return frame.replace(b"\r\n", b"\n")
    return frame.replace(b"\n", b"\r\n")


def _following(at: Situation, waits: bool) -> bytes:
    if not waits and (at.waits or at.following is None) and at.heartbeat is not None:
        return at.heartbeat
    if at.following is None:
        raise UnsuitableMoment("no message follows it")
    if at.waits != waits:
        raise UnsuitableMoment(
            "the next message " + ("waits for the target" if at.waits else "does not wait for the target")
        )
    return at.following


_LATE_FACTOR = 2.0
"""A late answer is sent after this multiple of its timeout."""


class DeliveryVariant(msgspec.Struct, frozen=True):
    """A way to deliver a message."""

    kind: str
    sentence: str
    make: Make
    uses: int = 1
    harmless: bool = False


def _twice(at: Situation) -> CaseActions:
    return (Send(at.frame), Send(at.frame))


def _joined(at: Situation) -> CaseActions:
    return (_piece(at.wire + at.wrap(_following(at, waits=False))),)


def _after_next(waits: bool) -> Make:
    """Return the action of sending the next message before this one."""
    return lambda at: (Send(_following(at, waits)), Send(at.frame))


def _by(connection: Sender) -> Make:
    """Return the action of sending the message on another connection than its own."""
    return lambda at: (Send(at.frame, connection),)


def _half_then(*end: CaseAction) -> Make:
    """Return the actions of sending half of the message, and then these."""
    return lambda at: (_piece(first_half(at)), *end)


_STREAM_VARIANTS = (
    DeliveryVariant("bytewise", "byte by byte", send_bytewise, harmless=True),
    DeliveryVariant("in-two", "in two pieces, a second apart", send_in_two, harmless=True),
    DeliveryVariant("slowly", "a byte a second, at first", send_slowly, harmless=True),
    DeliveryVariant("joined", "in one piece with the next message", _joined, 2, harmless=True),
    DeliveryVariant("cut/silence", "half of it, then nothing", _half_then()),
    DeliveryVariant("cut/half-close", "half of it, then a half-close", _half_then(HalfClose())),
    DeliveryVariant("cut/close", "half of it, then the connection is closed", _half_then(Close())),
    DeliveryVariant("cut/reset", "half of it, then the connection is reset", _half_then(Reset())),
    DeliveryVariant("twice", "twice", _twice),
    DeliveryVariant("early", "the message after it comes first", _after_next(waits=True), 2),
)
_DATAGRAM_VARIANTS = (
    DeliveryVariant("lost", "it is lost", fixed_actions()),
    DeliveryVariant("doubled", "the datagram comes twice", _twice),
    DeliveryVariant("overtaken", "the next datagram comes first", _after_next(waits=False), 2),
    DeliveryVariant("early", "the answer after it comes first", _after_next(waits=True), 2),
)
_FROM_OTHER = DeliveryVariant("from-other", "another player sends it", _by("other"))
_FROM_STRANGER = DeliveryVariant(
    "from-stranger", "a new client sends it without any other message", _by("stranger")
)


def delivery_variants_of(
    row: MessageType, dissector: Dissector, role: TargetRole
) -> Sequence[DeliveryVariant]:
    """Return the delivery variants of a message sent to a program of a role."""
    forms = [DeliveryVariant("whole", "as it is", send_whole, harmless=True)]
    forms += _STREAM_VARIANTS if dissector.transport == "tcp" else _DATAGRAM_VARIANTS
    patience = dissector.conformance.timeouts.get(row.name)
    if row.answers and dissector.transport == "tcp":
        forms.append(DeliveryVariant("never", "it is not sent", fixed_actions()))
    if row.answers and patience is not None:
        delay = _LATE_FACTOR * patience
        forms.append(
            DeliveryVariant("late", f"{delay:g} s too late", lambda at: (Pause(delay), Send(at.frame)))
        )
    if role == "server":
        forms.append(_FROM_OTHER)
    # Over TCP only its server can send to a client.
    if role == "server" or dissector.transport == "udp":
        forms.append(_FROM_STRANGER)
    return forms
