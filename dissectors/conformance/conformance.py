"""The conformance part of a protocol: what `kiebitz probe` needs to test its programs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.conformance.expectations import NO_EXPECTATIONS, Expectations

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import BotFactory, SimulatedServerFactory


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """Expected reactions, bots and timeouts of a protocol.

    Attributes:
        expectations: Expected reactions to invalid messages, and ways to break the rules.
        bot: Factory for simulated clients; without it, only a recorded game leads to a case's state.
        simulated_server: Factory for simulated servers.
        seats: Number of bots at a table.
        timeouts: Time in seconds that the other side waits for a message, or for an answer to it. Only what
            the specification says, or what all servers do.
    """

    expectations: Expectations = NO_EXPECTATIONS
    bot: BotFactory | None = None
    simulated_server: SimulatedServerFactory | None = None
    seats: int = 2
    timeouts: Mapping[str, float] = MappingProxyType({})
