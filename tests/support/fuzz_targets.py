"""Fuzz targets, with limits of time and memory."""

from __future__ import annotations

import io
import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from mutated_captures import spoilt_gzip, spoilt_packets, spoilt_pcap, spoilt_pcapng, spoilt_zstd
from mutated_traffic import Spoilt
from mutation import Choices

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Ids, Item
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.dissectors.testing import check_accounted, check_consistent, check_in_order
from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import SegmentReorderer
from kiebitz.proxy.flows.udp import UdpFlows

PATIENCE_S = 60
"""No input takes a hundredth of that on a machine at rest; what takes longer hangs."""
Target = Callable[[bytes], object]


@contextmanager
def watched() -> Iterator[None]:
    """Fail if the block takes too long."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"this input took longer than {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    # Restart the test's own timeout afterwards.
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
            check_consistent(dissector, found)

    return dissect


def read_packets(packets: Iterable[RawPacket]) -> None:
    """Run the whole path from packets to findings."""
    decoder = PacketDecoder()
    udp_items: list[Item] = []
    tcp_items: list[Item] = []
    udp = UdpFlows(itertools.count(1_000_000), lambda *_: None, frozenset({9000}))
    tcp = SegmentReorderer(TcpFlows(itertools.count(1), lambda *_: None, frozenset({7001, 8080})))
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
    """Import a capture file, or check the error that it is none."""
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
