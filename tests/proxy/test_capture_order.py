"""Files out of order, clocks that are set, RSTs without effect, two captures merged: the same messages."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_reordering import Packets, by_time, imported, packets_of, write_packets
from snapshots import DATA
from strength import a_few, times
from tcp_segments import MILLISECOND, SECOND, FromFile, Sent, conversation, fed, handshake, live, sent, told

from kiebitz.dissectors.model import Chunk, End, Item
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows import packet_flows
from kiebitz.proxy.flows.packet_flows import LOOKAHEAD, PacketFlows, PacketReorderer
from kiebitz.proxy.flows.tcp_order import RESET_TIMEOUT_NS
from kiebitz.proxy.flows.udp import UdpFlows

DISORDER = DATA / "disorder"
HOUR, YEAR = 3600 * SECOND, 365 * 86_400 * SECOND


def is_first_way(packet: RawPacket) -> bool:
    return packet[2][34:36] < packet[2][36:38]


def one_way_after_the_other(packets: Packets, first: bool = True) -> Packets:
    return sorted(packets, key=lambda packet: is_first_way(packet) is not first)


def in_blocks(packets: Packets) -> Packets:
    full: list[tuple[int, RawPacket]] = []
    for way in (True, False):
        block = [packet for packet in packets if is_first_way(packet) is way]
        full += [(number // 7, packet) for number, packet in enumerate(block)]
    return [packet for _, packet in sorted(full, key=itemgetter(0))]


def later(packets: Packets, by_ns: int, jitter_ns: int = 1) -> Packets:
    """Return the packets with times by another clock, and up to `jitter_ns` after that."""
    chance = random.Random(by_ns)
    return [(packet[0] + by_ns + chance.randrange(jitter_ns), *packet[1:]) for packet in packets]


def clock_set(packets: Packets, by_ns: int, at: float = 0.5) -> Packets:
    place = int(len(packets) * at)
    return packets[:place] + later(packets[place:], by_ns)


def set_and_set_back(packets: Packets, by_ns: int) -> Packets:
    return clock_set(clock_set(packets, by_ns, 0.3), -by_ns, 0.6)


DISORDERS: dict[str, Callable[[Packets], Packets]] = {
    "one way after the other": one_way_after_the_other,
    "the other way first": lambda packets: one_way_after_the_other(packets, first=False),
    "in blocks": in_blocks,
    "5 s ahead": lambda packets: clock_set(packets, 5 * SECOND),
    "5 s back": lambda packets: clock_set(packets, -5 * SECOND),
    "3 h ahead": lambda packets: clock_set(packets, 3 * HOUR),
    "3 h back": lambda packets: clock_set(packets, -3 * HOUR),
    "20 years ahead": lambda packets: clock_set(packets, 20 * YEAR),
    "8 years back": lambda packets: clock_set(packets, -8 * YEAR),
    "ahead and back": lambda packets: set_and_set_back(packets, 7 * HOUR),
    "back and ahead": lambda packets: set_and_set_back(packets, -7 * HOUR),
}
GAMES = {
    "tcp": DISORDER / "one-direction-after-the-other.pcap",
    "udp": CAPTURES / "maexchen-head-tiny.pcap",
}


def found(packets: Packets, folder: Path) -> tuple[list[Any], list[Any], int]:
    """Return the messages and streams of a file, and how many of its packets are out of order."""
    recording, query = imported(packets, folder)
    messages = query("SELECT stream_id, direction, name, fields, offset FROM messages")
    return messages, query("SELECT id, client, server, close_reason FROM streams"), recording.late


@pytest.mark.full(but=5)
@pytest.mark.parametrize("disorder", DISORDERS.values(), ids=DISORDERS)
@pytest.mark.parametrize("game", GAMES)
def test_disorder_changes_nothing(game: str, disorder: Callable[[Packets], Packets], tmp_path: Path) -> None:
    packets = by_time(packets_of(GAMES[game]))
    messages, streams, late = found(packets, tmp_path)
    assert late == 0
    after = found(disorder(packets), tmp_path)
    assert after[:2] == (messages, streams)
    # That UDP goes back in the same flow proves nothing.
    goes_back = "back" in next(name for name, other in DISORDERS.items() if other is disorder)
    assert (after[2] > 0) == (game == "udp" and goes_back)


@pytest.mark.full
def test_unsortable_data_is_reported(tmp_path: Path) -> None:
    packets = talk(3 * LOOKAHEAD, 23, counted, 1000)
    write_packets(tmp_path / "long.pcap", sorted(packets, key=lambda packet: packet[2][12:16]))
    run = kiebitz("import", str(tmp_path / "long.pcap"), "-w", str(tmp_path / "x.db"))
    assert run.status == 0
    assert "packets go back by over a second" in run.err
    assert "reordercap" in run.err


def test_the_queue_is_bounded() -> None:
    order = PacketReorderer()
    batch: list[packet_flows.Sent]
    number = given = 0
    for size in (100, 100, 1 << 20):
        for _ in range(10):
            batch = [(number + place, (b"flow", b"%d" % place, 0, 0)) for place in range(1000)]
            number += 1000
            given += len(order.add(batch, 1000 * size))
            assert number - given <= (LOOKAHEAD if size == 100 else LOOKAHEAD // 2)
    assert len(order.close()) == number - given


def items_of(segments: list[Sent], in_order: bool = False) -> list[Item]:
    """Return the items of segments from a file, up to the end of its connections."""
    return fed(live(RESET_TIMEOUT_NS) if in_order else FromFile(), segments, segments[-1][0])


def said(items: list[Item]) -> dict[str, bytes]:
    whole = {"c2s": b"", "s2c": b""}
    for item in items:
        if isinstance(item, Chunk):
            whole[item.direction] += item.data
    return whole


@given(st.integers(1, 40), st.randoms(use_true_random=False))
@settings(max_examples=times(200), deadline=None)
def test_any_permutation_of_a_file(lines: int, chance: random.Random) -> None:
    # Different times, so that they give the order.
    segments = [(place * MILLISECOND, segment) for place, (_, segment) in enumerate(conversation(lines))]
    mixed = list(segments)
    chance.shuffle(mixed)
    assert said(items_of(mixed)) == said(items_of(segments, in_order=True))


def with_resets(segments: list[Sent], resets: list[tuple[int, str, str]]) -> list[Sent]:
    """Return the segments with RSTs after some of them, whose sequence number the receiver expects."""
    mixed: list[Sent] = []
    follows = {"c": (0, 0), "s": (0, 0)}
    for place, (ts_ns, segment) in enumerate(segments):
        mixed.append((ts_ns, segment))
        who = "c" if segment.flow == segments[0][1].flow else "s"
        end = segment.seq + len(segment.payload) + bool(segment.flags & 3)
        follows[who] = end % (1 << 32), segment.ack
        for after, sender, flags in resets:
            if after == place:
                seq, ack = follows[sender]
                flow = segments[0 if sender == "c" else 1][1].flow
                bits = 4 | 16 * ("A" in flags)
                mixed.append((ts_ns + 1000, Segment(flow, b"", 0, seq, ack * ("A" in flags), bits, 0)))
    return mixed


@pytest.mark.parametrize("pause_ms", [1, 300, 4000])
@pytest.mark.parametrize(
    "resets",
    [
        [(6, "s", "RA")],
        [(6, "c", "R")],
        [(3, "c", "RA"), (3, "s", "RA")],
        [(6, "s", "R"), (6, "s", "R"), (6, "s", "R")],
        [(4, "s", "RA"), (9, "c", "R")],
    ],
)
def test_an_ignored_rst_ends_nothing(resets: list[tuple[int, str, str]], pause_ms: int) -> None:
    segments = conversation(12, pause_ms)
    assert told(items_of(with_resets(segments, resets))) == told(items_of(segments))


def test_acknowledgments_refute_a_rst_as_well() -> None:
    """A listening client's acknowledgments come seconds later; then nothing is sent for long."""
    segments = handshake()
    for number, ms in enumerate((1, 2, 1500, 1501, 3000, 90_000, 90_001)):
        segments.append(sent(ms, "s", "PA", b"card", at=4 * number))
        segments.append(sent(ms + 0.5, "c", "A", ack=4 * number + 4))
    expected = told(items_of(segments))
    for flags in ("R", "RA"):
        assert told(items_of(with_resets(segments, [(6, "c", flags)]))) == expected


PLACES = st.lists(
    st.tuples(st.integers(2, 20), st.sampled_from("cs"), st.sampled_from(["R", "RA"])), max_size=4
)


@given(st.integers(8, 30), PLACES, st.sampled_from([1, 50, 900, 6000, 20_000]))
@settings(max_examples=times(300), deadline=None)
def test_a_rst_loses_no_bytes_that_continue(
    lines: int, resets: list[tuple[int, str, str]], pause_ms: int
) -> None:
    # The end without FINs: a RST behind the last bytes is obeyed.
    segments = conversation(lines, pause_ms)[:-3]
    assert said(items_of(with_resets(segments, resets), in_order=True)) == said(items_of(segments))


def datagram(ts_ns: int, to_server: bool, identification: int, payload: bytes, fragment: int) -> RawPacket:
    """Return a UDP datagram between 10.0.0.1 and 10.0.0.9 in raw IPv4; `fragment` has DF."""
    ends = [(b"\x0a\0\0\x01", 50_000), (b"\x0a\0\0\x09", 9000)]
    (source, source_port), (destination, port) = ends if to_server else ends[::-1]
    total = 28 + len(payload)
    header = struct.pack(">BBHHHBBH", 0x45, 0, total, identification, fragment, 64, 17, 0)
    udp = struct.pack(">HHHH", source_port, port, 8 + len(payload), 0)
    return ts_ns, 101, header + source + destination + udp + payload, total


Identify = Callable[[int], int]
DF = 0x4000


def talk(count: int, step_ms: int, identify: Identify, words: int, fragment: int = DF) -> Packets:
    """Datagrams by turns with one of several payloads; `identify` gives the n-th its identification."""
    return [
        datagram(
            SECOND + number * step_ms * MILLISECOND,
            number % 2 == 0,
            identify(number),
            b"word %d" % (number % words),
            fragment,
        )
        for number in range(count)
    ]


def payloads(packets: Packets, folder: Path) -> list[tuple[str, bytes]]:
    return imported(packets, folder)[1]("SELECT direction, data FROM chunks")


def counted(number: int) -> int:
    return 60_000 + number & 0xFFFF or 1


@pytest.mark.full(but=1)
@pytest.mark.parametrize("skew_ms", a_few([51, 120, 1234, 9000], [51, 9000]))
@pytest.mark.parametrize(
    "identify", [counted, lambda number: number * 40_503 % 65_521 + 1], ids=["counted", "random"]
)
@pytest.mark.parametrize("words", a_few([2, 1000], [2]))
def test_two_captures_with_other_clocks(skew_ms: int, identify: Identify, words: int, tmp_path: Path) -> None:
    packets = talk(60, 23, identify, words)
    copies = later(packets, skew_ms * MILLISECOND, 2 * MILLISECOND)
    once = payloads(packets, tmp_path)
    assert len(once) == 60
    assert payloads(by_time(packets + copies), tmp_path) == once
    # One file appended to the other.
    assert payloads(packets + copies, tmp_path) == once


@given(st.integers(8, 200), st.integers(5, 400), st.integers(51, 9900))
@settings(max_examples=times(100), deadline=None)
def test_a_capture_and_its_skewed_copy_are_one(count: int, step_ms: int, skew_ms: int) -> None:
    decode = PacketDecoder().decode
    packets = talk(count, step_ms, counted, 5)
    merged = by_time(packets + later(packets, skew_ms * MILLISECOND, MILLISECOND))
    decoded: list[packet_flows.Sent] = []
    for ts_ns, linktype, data, wirelen in merged:
        received = decode(linktype, data, wirelen, ts_ns)
        assert isinstance(received, tuple)
        decoded.append((ts_ns, received))
    order = PacketReorderer()
    assert order.add(list(decoded), 0) == []
    assert order.close() == decoded
    (skew_ns,) = order.skews_ns
    assert 0 <= skew_ns - skew_ms * MILLISECOND < MILLISECOND
    udp = UdpFlows(itertools.count(1), lambda *_: None, frozenset())
    udp.expect_copies(skew_ns)
    items: list[Item] = []
    for ts_ns, received in decoded:
        assert isinstance(received, tuple)
        udp.feed(received, ts_ns, items)
    assert sum(isinstance(item, Chunk) for item in items) == count


@pytest.mark.full(but=5)
@pytest.mark.parametrize("step_ms", a_few([60, 100, 1000, 2500], [100, 1000]))
@pytest.mark.parametrize("words", a_few([1, 2, 6], [2]))
@pytest.mark.parametrize("fragment", [0, DF], ids=["may be fragmented", "DF"])
@pytest.mark.parametrize(
    "identify",
    [
        lambda number: 1,
        lambda number: 0,
        counted,
        lambda number: 1 + number % 2,
        lambda number: 1 + number % 4,
    ],
    ids=["constant", "none", "counted", "two by turns", "four by turns"],
)
def test_retransmissions_are_no_copies(
    identify: Identify, fragment: int, words: int, step_ms: int, tmp_path: Path
) -> None:
    assert len(payloads(talk(40, step_ms, identify, words, fragment), tmp_path)) == 40


def test_a_constant_identification_proves_nothing(tmp_path: Path) -> None:
    """Two alternating payloads, within the time in which copies come."""
    assert len(payloads(talk(40, 10, lambda number: 1, 4), tmp_path)) == 40


# Live packets, whose source also reports how long nothing has come.


def live_flows(items: list[Item]) -> PacketFlows:
    """Return the streams of a live source with a server at port 8090."""
    return PacketFlows(
        itertools.count(1), lambda *_: None, lambda _: frozenset({8090}), items.extend, from_file=False
    )


def received(items: list[Item]) -> list[tuple[int, str, bytes]]:
    """Return the streams' bytes and ends, without times."""
    return [
        (item.stream.id, item.direction, bytes(item.data))
        if isinstance(item, Chunk)
        else (item.stream.id, item.reason, b"")
        for item in items
        if isinstance(item, Chunk | End)
    ]


@pytest.mark.parametrize("silence_s", [5, 30, 600])
@pytest.mark.parametrize("is_old", [False, True], ids=["live", "an old capture through a pipe"])
def test_silence_ends_no_connection(silence_s: int, is_old: bool) -> None:
    """A connection is idle after two hours, not while players think; behind a pipe the time may step back."""
    packets = packets_of(CAPTURES / "okey-seed-game-win.pcap.gz")
    undisturbed: list[Item] = []
    flows = live_flows(undisturbed)
    flows.take(packets)
    flows.end()
    items: list[Item] = []
    flows = live_flows(items)
    half = len(packets) // 2
    flows.take(packets[:half])
    for waited_ns in range(0, silence_s * SECOND, SECOND // 20):
        flows.take([])
        flows.expire(packets[half - 1][0] + waited_ns)
    late_ns = 0 if is_old else silence_s * SECOND
    flows.take((ts_ns + late_ns, link, data, size) for ts_ns, link, data, size in packets[half:])
    flows.end()
    assert received(items) == received(undisturbed)
