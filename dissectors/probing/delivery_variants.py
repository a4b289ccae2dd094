"""Delivery variants of any message: unchanged, in pieces, twice, from another sender, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import Situation, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.probing import actions
from kiebitz.dissectors.probing.actions import (
    CaseAction,
    CaseActions,
    Close,
    HalfClose,
    Pause,
    Reset,
    Send,
    Sender,
    first_half,
    fixed_actions,
    following,
    piece,
)

Make = Callable[[Situation], CaseActions]

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
    return (piece(at.wire + at.wrap(following(at, waits=False))),)


def _after_next(waits: bool) -> Make:
    """Return the action of sending the next message before this one."""
    return lambda at: (Send(following(at, waits)), Send(at.frame))


def _by(connection: Sender) -> Make:
    """Return the action of sending the message on another connection than its own."""
    return lambda at: (Send(at.frame, connection),)


def _half_then(*end: CaseAction) -> Make:
    """Return the actions of sending half of the message, and then these."""
    return lambda at: (piece(first_half(at)), *end)


_STREAM_VARIANTS = (
    DeliveryVariant("bytewise", "byte by byte", actions.send_bytewise, harmless=True),
    DeliveryVariant("in-two", "in two pieces, a second apart", actions.send_in_two, harmless=True),
    DeliveryVariant("slowly", "a byte a second, at first", actions.send_slowly, harmless=True),
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
    forms = [DeliveryVariant("whole", "as it is", actions.send_whole, harmless=True)]
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
