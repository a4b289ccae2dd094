"""Fuzzing: recorded traffic with something spoilt, by the thousand, through all that reads it.

Nothing may raise, hang or get lost. `make test-all` gives each target `INPUTS` inputs, `make test` a few,
`make fuzz` as many as its campaign states. An input that failed once is a case of its own where its part is
tested.
`fuzz_by_coverage.py` looks for more by hand.
"""

from __future__ import annotations

import random
import tracemalloc

import pytest
from fuzz_targets import READERS, TARGETS, Target, watched
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mutated_traffic import Spoilt, servers_of
from mutation import Choices
from strength import every, times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Ids
from kiebitz.dissectors.registry import BUILT_IN

INPUTS = 2_000
"""Inputs of one target in one test."""

DISSECTOR_CAMPAIGN = 200_000
READER_CAMPAIGN = 100_000

GROWTH_INPUTS = 250
GROWTH_BYTES = 500_000


each_target = pytest.mark.parametrize("name", TARGETS)


def campaign(target: Target, number: int, inputs: int) -> None:
    @seed(number)
    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(st.binary(min_size=40, max_size=600))
    def once(data: bytes) -> None:
        with watched():
            target(data)

    once()


FAILED_ONCE = {
    # A full table before the first trick, taken back, and then the next player's turn.
    "schafkopf": (
        "18000003000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000010100000101000000000000010100000101000001070000010a0100000000000001025518"
    )
    + "00" * 6
}
"""Inputs, in hexadecimal, that have no case where their part is: they need several connections."""


@pytest.mark.parametrize("name", FAILED_ONCE)
def test_inputs_that_failed_once(name: str) -> None:
    TARGETS[name](bytes.fromhex(FAILED_ONCE[name]))


@pytest.mark.full(but=2)
@each_target
def test_nothing_breaks(name: str) -> None:
    campaign(TARGETS[name], 0, times(INPUTS, quick=8))


@pytest.mark.soak
@each_target
def test_nothing_breaks_in_a_long_campaign(name: str) -> None:
    inputs = READER_CAMPAIGN if name in READERS else DISSECTOR_CAMPAIGN
    for number in range(1, inputs // INPUTS + 1):
        campaign(TARGETS[name], number, INPUTS)


@pytest.mark.full
@pytest.mark.parametrize("dissector", every(4, BUILT_IN), ids=lambda dissector: dissector.protocol)
def test_nothing_grows(dissector: Dissector, monkeypatch: pytest.MonkeyPatch) -> None:
    """One inspector reads all inputs, each on new streams; little state of finished streams is left."""
    # What fills up late, and is bounded, fills up early.
    monkeypatch.setattr("kiebitz.dissectors.inspection.memo.MAX_FRAMES", 16)
    monkeypatch.setattr("kiebitz.dissectors.protocols.maexchen.turns.TOKENS_KEPT", 64)
    inputs = times(GROWTH_INPUTS, quick=4)
    draws = random.Random(1)
    servers = servers_of(dissector)
    inspector = Inspector(BUILT_IN, Ids(), dict.fromkeys(servers, dissector))
    last_stream = 0
    held: list[int] = []
    tracemalloc.start()
    try:
        for number in range(3 * inputs):
            spoilt = Spoilt(dissector, Choices(draws.randbytes(300)), last_stream + 1, ended=True)
            last_stream = spoilt.last_stream
            for item in spoilt.items:
                inspector.feed(item)
            inspector.drain()
            if number % inputs == inputs - 1:
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[2] - held[1] < GROWTH_BYTES
