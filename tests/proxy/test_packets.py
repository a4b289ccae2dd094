"""Packets: each link layer, IP with all its headers, fragments, and whatever is broken."""

from __future__ import annotations

import itertools
import random
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable

import pytest
from command import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import every, times

from kiebitz.proxy.capture import fragments
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import Datagram, PacketDecoder, Segment, endpoints

CAPTURES = ROOT / "captures"
SOURCE4, TARGET4 = socket.inet_aton("192.0.2.1"), socket.inet_aton("198.51.100.7")
SOURCE6 = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
TARGET6 = socket.inet_pton(socket.AF_INET6, "fe80::2")
PAYLOAD = "ROLL;Mäxchen".encode()
UDP = struct.pack(">HHHH", 50000, 9000, 8 + len(PAYLOAD), 0xBEEF) + PAYLOAD
FLOW4 = SOURCE4 + TARGET4 + UDP[:4]
FLOW6 = SOURCE6 + TARGET6 + UDP[:4]
NUMBER = 7
"""The identification of all packets but whole ones of IPv6."""


def ipv4(
    content: bytes, protocol: int = 17, flags: int = 0, options: bytes = b"", total: int | None = None
) -> bytes:
    if total is None:
        total = 20 + len(options) + len(content)
    start = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, total, NUMBER, flags, 64, protocol, 0)
    return start + SOURCE4 + TARGET4 + options + content


def ipv6(content: bytes, header: int = 17, length: int | None = None) -> bytes:
    length = len(content) if length is None else length
    return struct.pack(">IHBB", 6 << 28, length, header, 64) + SOURCE6 + TARGET6 + content


def ethernet(packet: bytes, ethertype: int | None = None, tags: bytes = b"") -> bytes:
    if ethertype is None:
        ethertype = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return bytes(12) + tags + struct.pack(">H", ethertype) + packet


def fragment4(start: int, more: bool, content: bytes, protocol: int = 17) -> bytes:
    return ipv4(content, protocol, start // 8 | (0x2000 if more else 0))


def fragment6(start: int, more: bool, content: bytes, header: int = 17) -> bytes:
    return ipv6(struct.pack(">BBHI", header, 0, start | more, NUMBER) + content, 44)


def tcp(
    payload: bytes = PAYLOAD, flags: int = 0x18, options: bytes = b"", offset: int | None = None
) -> bytes:
    offset = 5 + len(options) // 4 if offset is None else offset
    header = struct.pack(">IIHHHH", 0xFFFFFFFE, 7, offset << 12 | flags, 500, 0xBEEF, 0)
    return UDP[:4] + header + options + payload


def decode(
    linktype: int, data: bytes, wirelen: int | None = None
) -> tuple[Datagram | Segment | None, dict[str, int]]:
    decoder = PacketDecoder()
    datagram = decoder.decode(linktype, data, wirelen or len(data), 0)
    decoder.close()
    return datagram, dict(decoder.ignored + decoder.unread + decoder.malformed)


V4, V6 = ipv4(UDP), ipv6(UDP)
WHOLE = [
    ("ethernet", 1, ethernet(V4)),
    ("ethernet, IPv6", 1, ethernet(V6)),
    ("ethernet padded", 1, ethernet(V4) + bytes(18)),
    ("ethernet padded, IPv6", 1, ethernet(V6) + b"trailer"),
    ("802.1Q", 1, ethernet(V4, tags=b"\x81\x00\x00\x05")),
    ("QinQ", 1, ethernet(V6, tags=b"\x88\xa8\x00\x05\x81\x00\x00\x06")),
    ("null, little-endian", 0, b"\x02\0\0\0" + V4),
    ("null, big-endian", 0, b"\0\0\0\x02" + V4),
    ("null, macOS", 0, b"\x1e\0\0\0" + V6),
    ("null, FreeBSD, big-endian", 0, b"\0\0\0\x1c" + V6),
    ("loop", 108, b"\0\0\0\x18" + V6),
    *((f"raw {number}", number, packet) for number in (101, 12, 14, 228, 229) for packet in (V4, V6)),
    ("cooked", 113, bytes(14) + b"\x08\x00" + V4),
    ("cooked with tag", 113, bytes(14) + b"\x81\x00\x00\x01\x86\xdd" + V6),
    ("cooked 2", 276, b"\x86\xdd" + bytes(18) + V6),
    ("IPv4 options", 1, ethernet(ipv4(UDP, options=b"\x01" * 40))),
    ("don't fragment", 1, ethernet(ipv4(UDP, flags=0x4000))),
    ("IPv4 total length 0", 1, ethernet(ipv4(UDP, total=0))),
    ("IPv4 longer than UDP", 1, ethernet(ipv4(UDP + b"rest"))),
    ("IPv4 longer than the packet", 1, ethernet(ipv4(UDP, total=200))),
    ("IPv6 longer than the packet", 1, ethernet(ipv6(UDP, length=200))),
    ("authentication header", 1, ethernet(ipv4(b"\x11\x04" + bytes(22) + UDP, 51))),
    ("hop-by-hop", 1, ethernet(ipv6(b"\x11\x00" + bytes(6) + UDP, 0))),
    (
        "hop-by-hop, routing, destination, AH",
        1,
        ethernet(
            ipv6(
                b"\x2b\x00"
                + bytes(6)
                + b"\x3c\x02"
                + bytes(22)
                + b"\x33\x01"
                + bytes(14)
                # AH counts in units of 4, minus 2.
                + b"\x11\x04"
                + bytes(22)
                + UDP,
                0,
            )
        ),
    ),
    ("atomic fragment", 1, ethernet(fragment6(0, False, UDP))),
    ("IPv6 length 0", 1, ethernet(ipv6(UDP, length=0))),
    ("IPv6, UDP length 0", 1, ethernet(ipv6(UDP[:4] + b"\0\0" + UDP[6:]))),
]


@pytest.mark.parametrize(("linktype", "data"), [case[1:] for case in WHOLE], ids=[case[0] for case in WHOLE])
def test_one_datagram(linktype: int, data: bytes) -> None:
    datagram, counts = decode(linktype, data)
    assert counts == {}
    assert isinstance(datagram, tuple)
    assert datagram[:3] in ((FLOW4, PAYLOAD, 0), (FLOW6, PAYLOAD, 0))
    trailer = len(data) - data.index(PAYLOAD) - len(PAYLOAD)
    # The same cut by a snap length: as long as the UDP header is there, it is known how much is missing.
    for cut in range(1, len(data)):
        short, counts = decode(linktype, data[:-cut], len(data))
        missing = max(cut - trailer, 0)
        if missing > len(PAYLOAD):
            assert short is None
            assert sum(counts.values()) == 1
        elif data[-trailer:][:4] != b"rest" or not trailer:
            assert short == (datagram[0], PAYLOAD[: len(PAYLOAD) - missing], missing, datagram[3])


@pytest.mark.parametrize("packet", [V4, V6, ipv4(tcp(), 6), ipv6(tcp(), 6)], ids=["4", "6", "TCP", "TCP, 6"])
def test_original_length_that_is_wrong(packet: bytes) -> None:
    """A program that cuts packets may state the kept length: the IP header has the original one."""
    frame = ethernet(packet)
    for cut in range(1, len(PAYLOAD)):
        right = decode(1, frame[:-cut], len(frame))
        assert right[0] is not None
        for stated in (len(frame) - cut, len(frame) - cut - 1, 1):
            assert decode(1, frame[:-cut], stated) == right


@pytest.mark.parametrize(
    ("packet", "identification"),
    [(V4, NUMBER), (ipv4(UDP, options=b"\x01" * 4), NUMBER), (V6, 0), (fragment6(0, False, UDP), NUMBER)],
    ids=["IPv4", "IPv4 options", "IPv6", "atomic fragment"],
)
def test_identification(packet: bytes, identification: int) -> None:
    for linktype, data in ((1, ethernet(packet)), (101, packet)):
        datagram, _ = decode(linktype, data)
        assert isinstance(datagram, tuple)
        assert datagram[3] == identification


def test_endpoints() -> None:
    assert endpoints(FLOW4) == ("192.0.2.1:50000", "198.51.100.7:9000")
    assert endpoints(FLOW6) == ("[2001:db8::1]:50000", "[fe80::2]:9000")


def test_empty_datagram() -> None:
    assert decode(1, ethernet(ipv4(UDP[:4] + b"\0\x08\0\0"))) == ((FLOW4, b"", 0, NUMBER), {})


NOP = b"\x01"
SCALE = b"\x03\x03\x07"
SEGMENTS: list[tuple[str, bytes, tuple[int, bytes, int | None]]] = [
    # What: a TCP segment; its flags, its payload, its window scale.
    ("data", tcp(), (0x18, PAYLOAD, None)),
    ("an ACK", tcp(b"", 0x10), (0x10, b"", None)),
    ("options", tcp(options=NOP * 12), (0x18, PAYLOAD, None)),
    ("nothing but options", tcp(b"", 0x10, NOP * 40), (0x10, b"", None)),
    ("reserved bits and flags", tcp(flags=0xFF0 & ~0x02), (0xF0, PAYLOAD, None)),
    ("SYN", tcp(b"", 0x02), (0x02, b"", None)),
    ("SYN with data", tcp(flags=0x02, options=NOP + SCALE), (0x02, PAYLOAD, 7)),
    ("a scale too large", tcp(b"", 0x12, b"\x02\x04\xff\xd7\x03\x03\x0f\x00"), (0x12, b"", 14)),
    ("a scale behind the end", tcp(b"", 0x02, b"\0" + SCALE), (0x02, b"", None)),
    ("options that do not end", tcp(b"", 0x02, NOP * 2 + b"\x03\x03"), (0x02, b"", None)),
    ("options of no length", tcp(b"", 0x02, b"\x08\0" + SCALE[:2]), (0x02, b"", None)),
    ("an option without length", tcp(b"", 0x02, NOP * 3 + b"\x08"), (0x02, b"", None)),
]


@pytest.mark.parametrize(
    ("content", "expected"), [case[1:] for case in SEGMENTS], ids=[case[0] for case in SEGMENTS]
)
def test_one_segment(content: bytes, expected: tuple[int, bytes, int | None]) -> None:
    flags, payload, scale = expected
    header = len(content) - len(payload)
    for form, flow, lower in (
        ("ethernet", FLOW4, ethernet(ipv4(content, 6))),
        ("padded", FLOW4, ethernet(ipv4(content, 6)) + bytes(6)),
        ("IPv4 options", FLOW4, ethernet(ipv4(content, 6, options=NOP * 4))),
        ("total length 0", FLOW4, ethernet(ipv4(content, 6, total=0))),
        ("IPv6", FLOW6, ethernet(ipv6(content, 6))),
        ("atomic fragment", FLOW6, ethernet(fragment6(0, False, content, 6))),
    ):
        segment, counts = decode(1, lower)
        assert counts == {}
        assert segment == Segment(flow, payload, 0, 0xFFFFFFFE, 7, flags, 500, scale), form
        # The same cut by a snap length: what is missing is known as long as the header's first part is there.
        padding = 6 if form == "padded" else 0
        for cut in range(1, len(content) + padding):
            short, counts = decode(1, lower[:-cut], len(lower))
            left = len(content) - max(cut - padding, 0)
            if left < 20:
                assert (short, counts) == (None, {"TCP header cut short": 1})
            else:
                assert isinstance(short, Segment)
                assert short.payload == payload[: max(left - header, 0)]
                assert short.missing == len(payload) - len(short.payload)


@pytest.mark.parametrize(
    ("content", "cut", "text"),
    [
        (b"", 0, ""),
        (b"go away\r\n\0", 0, "go away"),
        (b"go away", 3, "go a…"),
        (b"gr\xc3\xbc\xdf \x1b[31m", 0, "gr\xfc\ufffd \x1b[31m"),
        (b"x" * 201, 0, "x" * 200 + "…"),
    ],
)
def test_bytes_of_a_rst_are_a_text_beside_the_stream(content: bytes, cut: int, text: str) -> None:
    """RFC 9293, 3.5.3."""
    lower = ethernet(ipv4(tcp(content, 0x14), 6))
    segment, _ = decode(1, lower[: len(lower) - cut], len(lower))
    assert segment == Segment(FLOW4, b"", 0, 0xFFFFFFFE, 7, 0x14, 500, None, text)


def test_fragments_of_a_segment_and_of_a_datagram_with_one_number() -> None:
    """RFC 791, 3.2: the protocol is part of a packet's identity."""
    segment, datagram = tcp(b"x" * 44), UDP + bytes(36)
    decoder = PacketDecoder()
    found = [
        decoder.decode(101, fragment4(start, start == 0, whole[start : start + 40], protocol), 60, 0)
        for start in (40, 0)
        for whole, protocol in ((segment, 6), (datagram, 17))
    ]
    assert found[:2] == [None, None]
    assert isinstance(found[2], Segment)
    assert found[2].payload == b"x" * 44
    assert found[3] == (FLOW4, PAYLOAD, 0, NUMBER)


QUOTED = b"\x03\x03" + bytes(6) + V4
NOTHING = [
    ("impossible TCP header", 1, ethernet(ipv4(bytes(20), 6))),
    ("impossible TCP header", 1, ethernet(ipv6(bytes(20), 6))),
    ("impossible TCP header", 1, ethernet(ipv4(bytes(19), 6))),
    ("impossible TCP header", 1, ethernet(ipv4(tcp(b"", offset=6), 6))),
    ("impossible TCP header", 1, ethernet(ipv4(tcp(b"", offset=4), 6))),
    ("ICMP", 1, ethernet(ipv4(QUOTED, 1))),
    ("ICMPv6", 1, ethernet(ipv6(QUOTED, 58))),
    ("no payload", 1, ethernet(ipv6(b"", 59, 0))),
    ("IP protocol 99", 1, ethernet(ipv4(UDP, 99))),
    ("impossible TCP header", 1, ethernet(fragment6(0, False, bytes(24), 6))),
    ("incomplete fragments", 1, ethernet(ipv4(bytes(24), 6, 0x2000))),
    ("ARP", 1, ethernet(bytes(28), 0x0806)),
    ("not IP", 101, b"\x50"),
    ("not IP", 101, b""),
    ("address family 7", 0, b"\x07\0\0\0" + V4),
    ("link type 189 (USB_LINUX)", 189, V4),
    ("link header cut short", 1, bytes(13)),
    ("link header cut short", 1, bytes(12) + b"\x81\0\0"),
    ("link header cut short", 0, bytes(3)),
    ("IP header cut short", 1, ethernet(V4[:19])),
    ("IP header cut short", 1, ethernet(V6[:39])),
    ("impossible IP header", 1, ethernet(V4, 0x86DD) + bytes(20)),
    ("impossible IP header", 1, ethernet(V6, 0x0800)),
    ("impossible IP header", 1, ethernet(b"\x44" + V4[1:])),
    ("impossible IP header", 1, ethernet(ipv4(UDP, total=19))),
    ("impossible IPv6 extension header", 1, ethernet(ipv6(b"\x11\xff" + bytes(20), 0))),
    ("impossible IPv6 extension header", 1, ethernet(ipv6(b"\x11", 60))),
    ("impossible UDP length", 1, ethernet(ipv4(UDP[:7]))),
    ("impossible UDP length", 1, ethernet(ipv4(UDP[:4] + b"\0\x07" + UDP[6:]))),
    ("impossible UDP length", 1, ethernet(ipv4(UDP[:4] + b"\0\0" + UDP[6:]))),
    ("impossible UDP length", 1, ethernet(ipv4(UDP[:4] + b"\xff\xff" + UDP[6:]))),
    ("impossible fragment", 1, ethernet(fragment4(8, True, bytes(9)))),
    ("impossible fragment", 1, ethernet(fragment4(8, True, b""))),
    ("impossible fragment", 1, ethernet(fragment4(65528, False, bytes(8)))),
    ("impossible fragment", 1, ethernet(fragment6(65528, False, bytes(8)))),
]


@pytest.mark.parametrize(("reason", "linktype", "data"), NOTHING)
def test_no_datagram(reason: str, linktype: int, data: bytes) -> None:
    assert decode(linktype, data) == (None, {reason: 1})


LONG = UDP[:4] + struct.pack(">HH", 8 + 900, 0) + random.Random(2).randbytes(900)


@given(st.data(), st.booleans())
@settings(max_examples=times(200), deadline=None)
def test_fragments_in_any_order(data: st.DataObject, version6: bool) -> None:
    """However a datagram is cut, with pieces twice and overlapping, it is the same datagram."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(LONG) // 8), max_size=20)))
    edges = [0, *(cut * 8 for cut in cuts), len(LONG)]
    ranges = list(itertools.pairwise(edges))
    for _ in range(data.draw(st.integers(0, 3))):
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(edges) - 1)] * 2)))
        if first < last:
            ranges.append((edges[first], edges[last]))
    build = fragment6 if version6 else fragment4
    packets = [
        build(start, end < len(LONG), LONG[start:end]) for start, end in data.draw(st.permutations(ranges))
    ]
    decoder = PacketDecoder()
    found = [decoder.decode(101, packet, len(packet), 0) for packet in packets]
    flow = FLOW6 if version6 else FLOW4
    # One of them may be the whole datagram, which then comes twice.
    assert set(found) - {None} == {(flow, LONG[8:], 0, NUMBER)}
    decoder.close()
    assert not decoder.malformed


def test_fragments_of_an_extension_header() -> None:
    content = b"\x11\x00" + bytes(6) + LONG
    decoder = PacketDecoder()
    packets = [fragment6(400, False, content[400:], 99), fragment6(0, True, content[:400], 60)]
    assert [decoder.decode(101, packet, len(packet), 0) for packet in packets] == [
        None,
        (FLOW6, LONG[8:], 0, NUMBER),
    ]


def test_a_fragment_inside_fragments_is_refused() -> None:
    inner = struct.pack(">BBHI", 17, 0, 8, 9) + LONG
    decoder = PacketDecoder()
    for packet in (fragment6(0, True, inner[:400], 44), fragment6(400, False, inner[400:], 44)):
        assert decoder.decode(101, packet, len(packet), 0) is None
    assert decoder.malformed == {"impossible fragment": 1}


def test_fragments_cut_by_the_snap_length() -> None:
    """Data after the first hole in the datagram is missing, even if it was captured."""
    decoder = PacketDecoder()
    packets = [fragment4(0, True, LONG[:400]), fragment4(400, False, LONG[400:])]
    assert decoder.decode(101, packets[1], len(packets[1]), 0) is None
    found = decoder.decode(101, packets[0][:220], len(packets[0]), 0)
    assert found == (FLOW4, LONG[8:200], 708, NUMBER)


@pytest.mark.parametrize("build", [fragment4, fragment6])
@pytest.mark.parametrize("order", [(0, 0, 1, 1), (0, 1, 0, 1), (1, 1, 0, 0), (1, 0, 0, 1)])
def test_fragments_captured_twice(build: Callable[[int, bool, bytes], bytes], order: tuple[int, ...]) -> None:
    pieces = build(0, True, LONG[:400]), build(400, False, LONG[400:])
    decoder, found = feed([(number * 1_000_000, pieces[piece]) for number, piece in enumerate(order)])
    assert len([datagram for datagram in found if datagram is not None]) == 1
    assert not decoder.malformed
    # The number may be used again.
    later = [(number * 60_000_000_000 + piece, pieces[piece]) for number in range(2) for piece in (0, 1)]
    decoder, found = feed(later)
    assert len([datagram for datagram in found if datagram is not None]) == 2


@pytest.mark.parametrize("build", [fragment4, fragment6])
@pytest.mark.parametrize(
    "order", ["Aa Bb", "aA bB", "Aa bB", "AAaa BBbb", "AaAa BbBb", "Aa Bb Aa", "Aa AaBb"]
)
def test_fragments_of_two_datagrams_with_one_identification(
    build: Callable[[int, bool, bytes], bytes], order: str
) -> None:
    """The second datagram follows at once; in some cases fragments are captured twice."""
    other = LONG[:8] + LONG[8:].swapcase()
    assert other[:400] != LONG[:400]
    pieces = {}
    for name, content in (("a", LONG), ("b", other)):
        pieces[name.upper()], pieces[name] = build(0, True, content[:400]), build(400, False, content[400:])
    decoder, found = feed([(number, pieces[name]) for number, name in enumerate(order.replace(" ", ""))])
    datagrams = [sent[1] for sent in found if isinstance(sent, tuple)]
    assert datagrams[:2] == [LONG[8:], other[8:]]
    assert not decoder.malformed


def feed(packets: list[tuple[int, bytes]]) -> tuple[PacketDecoder, list[Datagram | Segment | None]]:
    decoder = PacketDecoder()
    found = [decoder.decode(101, packet, len(packet), ts_ns) for ts_ns, packet in packets]
    decoder.close()
    return decoder, found


@pytest.mark.parametrize(
    ("packets", "reason"),
    [
        # The same place twice, with other bytes.
        ([fragment4(0, True, LONG[:400]), fragment4(200, False, b"x" * 400)], "contradicting fragments"),
        ([fragment4(8, True, LONG[:80]), fragment4(0, True, b"x" * 160)], "contradicting fragments"),
        # Two ends, and a piece behind the end.
        ([fragment4(400, False, LONG[:8]), fragment4(400, False, LONG[:16])], "contradicting fragments"),
        ([fragment4(400, False, LONG[:8]), fragment4(800, True, LONG[:8])], "contradicting fragments"),
    ],
)
def test_fragments_that_contradict_each_other(packets: list[bytes], reason: str) -> None:
    rest = [fragment4(0, True, LONG[:400]), fragment4(400, False, LONG[400:])]
    decoder, found = feed([(0, packet) for packet in packets + rest])
    assert decoder.malformed == {reason: 1}
    assert found == [None] * 4


def test_fragments_wait_for_30_seconds() -> None:
    first, last = fragment4(0, True, LONG[:400]), fragment4(400, False, LONG[400:])
    decoder, found = feed([(0, first), (30_000_000_000, last)])
    assert found == [None, (FLOW4, LONG[8:], 0, NUMBER)]
    assert not decoder.malformed
    decoder, found = feed([(0, first), (30_000_000_001, last)])
    assert found == [None, None]
    assert decoder.malformed == {"incomplete fragments": 2}


@pytest.mark.parametrize("size", [8, 1400])
def test_fragments_are_bounded(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "MAX_PACKETS", 100)
    monkeypatch.setattr(fragments, "MAX_BYTES", 100_000)
    malformed = PacketDecoder().malformed
    assembly = fragments.FragmentReassembler(malformed)
    for number in range(1000):
        assembly.add(number % 300, 0, number * 8 % 60_000, True, size, bytes(size), 17)
        assert len(assembly) <= 100
    assembly.close()
    assert len(assembly) == 0
    assert malformed["incomplete fragments"] > 200
    assert assembly._cost == 0


WHOLE_SEGMENTS = [(name, 1, ethernet(ipv4(content, 6))) for name, content, _ in SEGMENTS]
LINKTYPES = st.sampled_from([0, 1, 12, 14, 101, 108, 113, 228, 229, 276, -1, 65535])


@given(st.lists(st.tuples(LINKTYPES, st.binary(max_size=120), st.integers(0, 1 << 32))))
def test_any_bytes(packets: list[tuple[int, bytes, int]]) -> None:
    decoder = PacketDecoder()
    for number, (linktype, data, wirelen) in enumerate(packets):
        decoder.decode(linktype, data, wirelen, number)
    decoder.close()


@given(
    st.sampled_from(WHOLE + WHOLE_SEGMENTS),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=6),
)
@settings(max_examples=times(500))
def test_any_flipped_bytes(case: tuple[str, int, bytes], changes: list[tuple[int, int]]) -> None:
    changed = bytearray(case[2])
    for place, value in changes:
        changed[place % len(changed)] = value
    datagram, _ = decode(case[1], bytes(changed))
    if datagram is not None:
        if isinstance(datagram, Segment):
            datagram = (datagram.flow, datagram.payload, datagram.missing, 0)
        flow, payload, missing, _ = datagram
        assert len(flow) in (12, 36)
        assert len(payload) <= len(changed)
        assert missing >= 0


@pytest.mark.full
@pytest.mark.parametrize("name", every(2, ["maexchen-head-tiny.pcap", "maexchen-head-odd.pcap"]))
def test_sample_captures_are_read_like_tshark_reads_them(name: str) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    fields = ["ip.src", "udp.srcport", "ip.dst", "udp.dstport", "udp.payload"]
    arguments = [argument for field in fields for argument in ("-e", field)]
    told = subprocess.run(
        [tshark, "-r", str(CAPTURES / name), "-Y", "udp && !icmp", "-T", "fields", *arguments],
        capture_output=True,
        check=True,
        text=True,
    )
    expected = [line.split("\t") for line in told.stdout.splitlines()]
    found = []
    decoder = PacketDecoder()
    with open_capture(str(CAPTURES / name)) as capture:
        for ts_ns, linktype, data, wirelen in capture:
            datagram = decoder.decode(linktype, data, wirelen, ts_ns)
            if isinstance(datagram, tuple):
                source, target = endpoints(datagram[0])
                found.append([*source.split(":"), *target.split(":"), datagram[1].hex()])
    assert found == expected
    assert not decoder.malformed
