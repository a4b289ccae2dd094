"""Delivery variants of any message: unchanged, in pieces, twice, from another sender, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import Situation, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.probing import actions as actions
from kiebitz.dissectors.probing.actions import CaseActions

_LATE_FACTOR = 2.0
"""A late answer is sent after this multiple of its timeout."""


class DeliveryVariant(msgspec.Struct, frozen=True):
    """A way to deliver a message."""

    kind: str
    sentence: str
    make: Callable[[Situation], CaseActions]
    uses: int = 1
    harmless: bool = False


_STREAM_VARIANTS = (
    DeliveryVariant("bytewise", "byte by byte", actions.send_bytewise, harmless=True),
    DeliveryVariant("in-two", "in two pieces, a second apart", actions.send_in_two, harmless=True),
    DeliveryVariant("slowly", "a byte a second, at first", actions.send_slowly, harmless=True),
    DeliveryVariant("joined", "in one piece with the next message", actions.send_joined, 2, harmless=True),
    DeliveryVariant("cut/silence", "half of it, then nothing", actions.send_half_then()),
    DeliveryVariant(
        "cut/half-close", "half of it, then a half-close", actions.send_half_then(actions.HalfClose())
    ),
    DeliveryVariant(
        "cut/close", "half of it, then the connection is closed", actions.send_half_then(actions.Close())
    ),
    DeliveryVariant(
        "cut/reset", "half of it, then the connection is reset", actions.send_half_then(actions.Reset())
    ),
    DeliveryVariant("twice", "twice", actions.send_twice),
    DeliveryVariant("early", "the message after it comes first", actions.send_next_first, 2),
)
_DATAGRAM_VARIANTS = (
    DeliveryVariant("lost", "it is lost", actions.send_nothing),
    DeliveryVariant("doubled", "the datagram comes twice", actions.send_twice),
    DeliveryVariant("overtaken", "the next datagram comes first", actions.send_overtaken, 2),
    DeliveryVariant("early", "the answer after it comes first", actions.send_next_first, 2),
)
_FROM_OTHER = DeliveryVariant("from-other", "another player sends it", actions.send_by("other"))
_FROM_STRANGER = DeliveryVariant(
    "from-stranger", "a new client sends it without any other message", actions.send_by("stranger")
)


def delivery_variants_of(
    row: MessageType, dissector: Dissector, role: TargetRole
) -> Sequence[DeliveryVariant]:
    """Return the delivery variants of a message sent to a program of a role."""
    forms = [DeliveryVariant("whole", "as it is", actions.send_whole, harmless=True)]
    forms += _STREAM_VARIANTS if dissector.transport == "tcp" else _DATAGRAM_VARIANTS
    patience = dissector.conformance.timeouts.get(row.name)
    if row.answers and dissector.transport == "tcp":
        forms.append(DeliveryVariant("never", "it is not sent", actions.send_nothing))
    if row.answers and patience is not None:
        forms.append(
            DeliveryVariant(
                "late", f"{_LATE_FACTOR * patience:g} s too late", actions.send_after(_LATE_FACTOR * patience)
            )
        )
    if role == "server":
        forms.append(_FROM_OTHER)
    # Over TCP only its server can send to a client.
    if role == "server" or dissector.transport == "udp":
        forms.append(_FROM_STRANGER)
    return forms
