"""What can be done with any message: sent as it is, in pieces, twice, by somebody else, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import Role, Situation
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.probing import actions as acts
from kiebitz.dissectors.probing.actions import Acts

_LATE = 2.0
"""A late answer comes after so many times the time in which it is waited for."""


class Form(msgspec.Struct, frozen=True):
    """Something that can be done with any message."""

    kind: str
    sentence: str
    make: Callable[[Situation], Acts]
    uses: int = 1
    harmless: bool = False


_IN_A_STREAM = (
    Form("bytewise", "byte by byte", acts.bytewise, harmless=True),
    Form("in-two", "in two pieces, a second apart", acts.in_two, harmless=True),
    Form("slowly", "a byte a second, at first", acts.slowly, harmless=True),
    Form("joined", "in one piece with the next message", acts.joined, 2, harmless=True),
    Form("cut/silence", "half of it, and then nothing", acts.half_then()),
    Form("cut/half-close", "half of it, and then no more is sent", acts.half_then(acts.HalfClose())),
    Form("cut/close", "half of it, and then the connection is closed", acts.half_then(acts.Close())),
    Form("cut/reset", "half of it, and then the connection is reset", acts.half_then(acts.Reset())),
    Form("twice", "twice", acts.twice),
    Form("early", "the message after it comes first", acts.early, 2),
)
_IN_DATAGRAMS = (
    Form("lost", "it is lost", acts.never),
    Form("doubled", "the datagram comes twice", acts.twice),
    Form("overtaken", "the next datagram comes first", acts.overtaken, 2),
    Form("early", "the answer after it comes first", acts.early, 2),
)
_FROM_OTHER = Form("from-other", "another player sends it", acts.by("other"))
_FROM_STRANGER = Form("from-stranger", "somebody sends it who has said nothing else", acts.by("stranger"))


def forms_of(row: MessageType, dissector: Dissector, role: Role) -> Sequence[Form]:
    """What can be done with a message to a program of a role."""
    forms = [Form("whole", "as it is", acts.whole, harmless=True)]
    forms += _IN_A_STREAM if dissector.transport == "tcp" else _IN_DATAGRAMS
    patience = dissector.conformance.timeouts.get(row.name)
    if row.answers and dissector.transport == "tcp":
        forms.append(Form("never", "it is not sent", acts.never))
    if row.answers and patience is not None:
        forms.append(Form("late", f"{_LATE * patience:g} s too late", acts.after(_LATE * patience)))
    if role == "server":
        forms.append(_FROM_OTHER)
    # To a client over TCP nobody can send but its server.
    if role == "server" or dissector.transport == "udp":
        forms.append(_FROM_STRANGER)
    return forms
