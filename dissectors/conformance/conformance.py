"""The conformance part of a protocol: what `kiebitz probe` needs to test its programs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.conformance.expectations import NO_REACTIONS, Reactions

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import HostMaker, PlayerMaker


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """Expected reactions, bots and timeouts of a protocol.

    Attributes:
        reactions: Reactions that the specification expects to invalid messages, and ways to break its rules.
        player: Factory for simulated clients; without it, only a recorded game leads to a case's state.
        host: Factory for simulated servers.
        seats: Number of bots at a table.
        timeouts: Time in seconds that the other side waits for a message, or for an answer to it. Only what
            the specification says, or what all servers do.
    """

    reactions: Reactions = NO_REACTIONS
    player: PlayerMaker | None = None
    host: HostMaker | None = None
    seats: int = 2
    timeouts: Mapping[str, float] = MappingProxyType({})
