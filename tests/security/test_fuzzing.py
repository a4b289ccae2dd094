"""Fuzzing: recorded traffic with something spoilt, by the thousand, through all that reads it.

Nothing may raise, hang or get lost. `make test-all` gives each target `INPUTS` inputs, `make test` a few,
`make fuzz` as many as its campaign states. An input that failed once is a case of its own where its part is
tested.
`fuzz_by_coverage.py` looks for more by hand.
"""

from __future__ import annotations

import io
import itertools
import random
import signal
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mutated import Choices
from mutated_captures import spoilt_gzip, spoilt_packets, spoilt_pcap, spoilt_pcapng, spoilt_zstd
from mutated_traffic import Spoilt, servers_of
from strength import times

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Ids, Item
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.dissectors.testing import check_accounted, check_in_order, check_sound
from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.tcp import TcpConversations
from kiebitz.proxy.flows.tcp_order import TcpOrder
from kiebitz.proxy.flows.udp import UdpConversations

INPUTS = 2_000
"""Inputs of one target in one test."""

DISSECTOR_CAMPAIGN = 200_000
READER_CAMPAIGN = 100_000

GROWTH_INPUTS = 250
GROWTH_BYTES = 500_000
"""What that many inputs may leave in memory, once as many have gone before."""

PATIENCE_S = 60
"""No input takes a hundredth of that on a machine at rest; what takes longer hangs."""

Target = Callable[[bytes], object]


@contextmanager
def watched() -> Iterator[None]:
    """Fail what goes on for too long, instead of waiting for it."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"this input took longer than {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    # The test's own ceiling goes on afterwards, a little later.
    ceiling_s, _ = signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, ceiling_s)
        signal.signal(signal.SIGALRM, before)


def dissector_target(dissector: Dissector) -> Target:
    """Conversations in a protocol, of several clients at once, by way of framer, grammar and table."""

    def dissect(data: bytes) -> None:
        spoilt = Spoilt(dissector, Choices(data))
        inspector = Inspector(BUILT_IN, Ids(), spoilt.forced)
        for item in spoilt.items:
            inspector.feed(item)
        inspector.finish()
        found = inspector.drain()
        if spoilt.forced:
            check_accounted(spoilt.items, found)
            check_sound(dissector, found)

    return dissect


def read_packets(packets: Iterable[RawPacket]) -> None:
    """From packets to findings: fragments, datagrams, TCP's reassembly, recognition."""
    decoder = PacketDecoder()
    udp_items: list[Item] = []
    tcp_items: list[Item] = []
    udp = UdpConversations(itertools.count(1_000_000), lambda *_: None, frozenset({9000}))
    tcp = TcpOrder(TcpConversations(itertools.count(1), lambda *_: None, frozenset({7001, 8080})))
    inspector = Inspector(BUILT_IN, Ids())
    last_ns = 0
    for ts_ns, linktype, data, wirelen in packets:
        sent = decoder.decode(linktype, data, wirelen, ts_ns)
        if isinstance(sent, Segment):
            tcp.feed(sent, ts_ns, tcp_items)
        elif sent is not None:
            udp.feed(sent, ts_ns, udp_items)
        last_ns = ts_ns
    decoder.close()
    udp.close(last_ns, udp_items)
    tcp.close(last_ns, tcp_items)
    check_in_order(udp_items)
    check_in_order(tcp_items)
    for item in (*udp_items, *tcp_items):
        inspector.feed(item)
    inspector.finish()
    found = inspector.drain()
    for items in (udp_items, tcp_items):
        known = [item for item in items if item.stream.protocol is not None]
        if known:
            check_accounted(known, found)


def read_capture(data: bytes) -> None:
    """A capture file as it is imported. What is no capture says so."""
    try:
        capture = open_capture(io.BytesIO(data))
    except CaptureError:
        return
    read_packets(capture)


READERS: dict[str, Target] = {
    "packets": lambda data: read_packets(spoilt_packets(Choices(data))),
    "pcap": lambda data: read_capture(spoilt_pcap(Choices(data))),
    "pcapng": lambda data: read_capture(spoilt_pcapng(Choices(data))),
    "gzip": lambda data: read_capture(spoilt_gzip(Choices(data))),
    "zstd": lambda data: read_capture(spoilt_zstd(Choices(data))),
}

TARGETS = {dissector.protocol: dissector_target(dissector) for dissector in BUILT_IN} | READERS

each_target = pytest.mark.parametrize("name", TARGETS)


def campaign(target: Target, number: int, inputs: int) -> None:
    """So many inputs; each number gives others, and the same again."""

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


@each_target
def test_nothing_breaks(name: str) -> None:
    campaign(TARGETS[name], 0, times(INPUTS, quick=50))


@pytest.mark.soak
@each_target
def test_nothing_breaks_in_a_long_campaign(name: str) -> None:
    inputs = READER_CAMPAIGN if name in READERS else DISSECTOR_CAMPAIGN
    for number in range(1, inputs // INPUTS + 1):
        campaign(TARGETS[name], number, INPUTS)


@pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
def test_nothing_grows(dissector: Dissector, monkeypatch: pytest.MonkeyPatch) -> None:
    """One inspector gets all inputs, each on new streams; of what is over, little is left."""
    # What fills up late, and is bounded, fills up early.
    monkeypatch.setattr("kiebitz.dissectors.inspection.memo.MAX_FRAMES", 16)
    monkeypatch.setattr("kiebitz.dissectors.protocols.maexchen.answers.TOKENS_KEPT", 64)
    inputs = times(GROWTH_INPUTS, quick=10)
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
