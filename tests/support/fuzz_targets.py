"""Fuzz targets, with limits of time and memory."""

from __future__ import annotations

import io
import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from dice_file import DICE
from mutated_captures import spoilt_gzip, spoilt_packets, spoilt_pcap, spoilt_pcapng, spoilt_zstd
from mutated_traffic import Spoilt
from mutation import Choices, mutate

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.table import LimitError
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.inspection.isolation import GAME_ENDED
from kiebitz.dissectors.model import Chunk, Direction, End, Ids, Item, Stream
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.protocol_file.reading.trial import Unsampled, samples_of
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.dissectors.testing import check_accounted, check_consistent, check_in_order, check_no_faults
from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import SegmentReorderer
from kiebitz.proxy.flows.udp import UdpFlows
from kiebitz.storage.recording.rows import empty_rows, gather

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
        check_no_faults(found)
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
    check_no_faults(found)
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


def read_with_file(data: bytes) -> None:
    """Read a mutated protocol file, and mutated messages with it, unless the file has mistakes."""
    choices = Choices(data)
    text = choices.of(PROTOCOL_FILES).encode()
    for _ in range(choices.below(6)):
        text = mutate(text, choices, [file.encode() for file in PROTOCOL_FILES])
    try:
        specification = read_specification(text.decode("utf-8", "replace"))
        dissector = dissector_from(specification)
    except (ProtocolFileError, LimitError):
        return
    items = [*_mutated_messages(dissector, choices)]
    inspector = Inspector([dissector], Ids(), {(dissector.transport, 4711): dissector})
    for item in items:
        inspector.feed(item)
    inspector.finish()
    found = inspector.drain()
    check_no_faults(found)
    # Everything found can be stored.
    gather(found, 1, {}, empty_rows())
    if not any(diagnostic.code == GAME_ENDED for diagnostic in found.diagnostics):
        check_accounted(items, found)


def _mutated_messages(dissector: FileDissector, choices: Choices) -> Iterator[Item]:
    """Yield chunks with mutated samples of a protocol's messages, from two clients and the server."""
    random = Random(choices.below(1000))
    frames: list[tuple[Direction, bytes]] = []
    for message, row in zip(dissector.specification.messages, dissector.grammar.rows, strict=False):
        with suppress(Unsampled, ValueError):
            for fields in samples_of(message, dissector.specification.format.kind, random, 2):
                frame = dissector.codec.encode(row.name, row.direction, fields)
                frames.append((row.direction, dissector.to_wire(frame, row.direction)))
    if not frames:
        frames.append(("c2s", b"JOIN alice\n"))
    streams = [
        Stream(number, dissector.transport, f"127.0.0.1:{40_000 + number}", "127.0.0.1:4711", 0)
        for number in (1, 2)
    ]
    offsets: dict[tuple[int, Direction], int] = {}
    for now_ns in range(1, 12 + choices.below(20)):
        stream = choices.of(streams)
        direction, sent = choices.of(frames)
        if choices.one_in(3):
            sent = mutate(sent, choices, [other for _, other in frames])
        at = offsets.get((stream.id, direction), 0)
        offsets[stream.id, direction] = at + len(sent)
        yield Chunk(stream, direction, now_ns, at, sent)
    for stream in streams:
        yield End(stream, 100, "closed")


_ROOT = Path(__file__).parents[2]
PROTOCOL_FILES = [
    DICE,
    *(path.read_text() for path in sorted((_ROOT / "tests" / "data" / "protocol_files").glob("*.toml"))),
    *(
        (_ROOT / "docs" / "examples" / name).read_text()
        for name in ("roborally.toml", "pytest-project/guess.toml")
    ),
]
"""Files that are mutated."""

READERS: dict[str, Target] = {
    "protocol files": read_with_file,
    "packets": lambda data: read_packets(spoilt_packets(Choices(data))),
    "pcap": lambda data: read_capture(spoilt_pcap(Choices(data))),
    "pcapng": lambda data: read_capture(spoilt_pcapng(Choices(data))),
    "gzip": lambda data: read_capture(spoilt_gzip(Choices(data))),
    "zstd": lambda data: read_capture(spoilt_zstd(Choices(data))),
}
TARGETS = {dissector.protocol: dissector_target(dissector) for dissector in BUILT_IN} | READERS
