"""The conformance part of a protocol: what `kiebitz probe` needs to test its programs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kiebitz.dissectors.conformance.bots import HostMaker, PlayerMaker
    from kiebitz.dissectors.conformance.expectations import Reactions


class Conformance:
    """Expected reactions, bots and timeouts of a protocol; a protocol overrides what it has.

    The properties import their modules when they are first used: only `probe` needs them.
    """

    timeouts: Mapping[str, float] = MappingProxyType({})
    """Timeouts in seconds by message: how long the other side waits for it, or for an answer to it.

    Only timeouts of the specification, or of all of its servers."""

    seats = 2
    """Number of bots at a table."""

    @property
    def reactions(self) -> Reactions:
        """Reactions that the specification expects to invalid messages, and ways to break its rules."""
        from kiebitz.dissectors.conformance.expectations import NO_REACTIONS

        return NO_REACTIONS

    @property
    def player(self) -> PlayerMaker | None:
        """Factory for simulated clients; without it, only a recorded game leads to a case's state."""
        return None

    @property
    def host(self) -> HostMaker | None:
        """Factory for simulated servers."""
        return None
