"""Link types and tunnels: each gives what Ethernet gives, and packets that are not read are counted."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from command import ROOT, kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from link_wrappers import (
    CHECK,
    FRAMES,
    TUNNELS,
    V4_ONLY,
    Wrap,
    aggregated,
    be,
    ethernet,
    framed,
    geneve,
    gre,
    gtp,
    ip4,
    length_framed,
    pktap,
    ppi,
    ppp,
    pppoe,
    radiotap,
    snap,
    udp,
    vxlan,
    wireless,
)
from strength import a_few, every, times

from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.layers import layer_names
from kiebitz.proxy.capture.link_layers import LINK_TYPES
from kiebitz.proxy.capture.packets import Datagram, PacketDecoder, Segment, endpoints
from kiebitz.services.importing.packets import import_capture
from kiebitz.storage.database.schema import MEMORY

CAPTURES = ROOT / "captures"
PORTS = struct.pack(">HH", 50_000, 9_000)
TEXT = b"ROLL;a message that is not short"
DATAGRAM = PORTS + struct.pack(">HH", 8 + len(TEXT), 0) + TEXT
SEGMENT = PORTS + struct.pack(">IIHHHH", 1000, 2000, 0x5018, 500, 0, 0) + TEXT
ADDRESSES6 = bytes.fromhex("20010db8000000000000000000000003" + "20010db8000000000000000000000004")


def inner4(protocol: int, content: bytes) -> bytes:
    """Return an IPv4 packet whose addresses are none of a tunnel's ends."""
    packet = ip4(protocol, content)
    # The checksum stays right: the addresses are swapped halves of each other's networks.
    return packet[:12] + packet[14:16] + packet[12:14] + packet[18:20] + packet[16:18] + packet[20:]


def inner6(protocol: int, content: bytes) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(content), protocol, 64) + ADDRESSES6 + content


PACKETS = {
    "UDP": inner4(17, DATAGRAM),
    "TCP": inner4(6, SEGMENT),
    "UDP, IPv6": inner6(17, DATAGRAM),
    "TCP, IPv6": inner6(6, SEGMENT),
}


def decoded(
    linktype: int, data: bytes, wirelen: int | None = None
) -> tuple[list[Datagram | Segment], PacketDecoder]:
    decoder = PacketDecoder()
    found = []
    sent = decoder.decode(linktype, data, wirelen or len(data), 0)
    while sent is not None:
        found.append(sent)
        sent = decoder.rest.pop(0) if decoder.rest else None
    decoder.close()
    return found, decoder


def wrapped_packets() -> list[tuple[str, str]]:
    return [
        (name, packet) for name in FRAMES for packet in PACKETS if "IPv6" not in packet or name not in V4_ONLY
    ]


@pytest.mark.full(but=10)
@pytest.mark.parametrize("name", every(3, FRAMES))
def test_a_wrapped_packet_is_read_as_in_ethernet(name: str) -> None:
    linktype, wrap = FRAMES[name]
    for kind, packet in PACKETS.items():
        if "IPv6" in kind and name in V4_ONLY:
            continue
        plain, _ = decoded(1, ethernet(packet))
        assert len(plain) == 1
        frame = wrap(packet)
        found, decoder = decoded(linktype, frame)
        assert found == plain, (kind, decoder.ignored, decoder.unread, decoder.malformed)
        assert not decoder.ignored + decoder.unread + decoder.malformed
        # Cut by a snap length: the captured part, with the rest missing, or counted once.
        start = frame.rindex(TEXT)
        for length in range(len(frame)):
            short, decoder = decoded(linktype, frame[:length], len(frame))
            if length >= start:
                (sent,) = short
                payload, missing = (sent.payload, sent.missing) if isinstance(sent, Segment) else sent[1:3]
                assert payload == TEXT[: length - start]
                assert len(payload) + missing == len(TEXT)
            elif short == []:
                assert (decoder.ignored + decoder.unread + decoder.malformed).total() == 1


def test_frames_of_an_aggregate_are_all_read() -> None:
    packets = [inner4(17, PORTS + struct.pack(">HH", 8 + size, 0) + bytes(size)) for size in (5, 6, 7, 8)]
    plain = [decoded(1, ethernet(packet))[0][0] for packet in packets]
    found, decoder = decoded(105, aggregated(*packets[:2], *packets[2:]))
    assert found == plain
    assert not decoder.ignored
    found, _ = decoded(127, radiotap(aggregated(*packets) + CHECK, flags=0x10))
    assert found == plain
    # One frame that is cut short does not take the others with it.
    whole = aggregated(*packets)
    assert decoded(105, whole[:-30], len(whole))[0][:3] == plain[:3]


def test_game_in_any_wrapping_is_the_same_game(tmp_path: Path) -> None:
    """Messages, events and streams of a recorded game do not depend on what its packets were in."""
    with open_capture(str(CAPTURES / "maexchen-head-tiny.pcap")) as capture:
        packets = [(ts_ns, data[14:]) for ts_ns, _, data, _ in capture]

    def rows(linktype: int, wrap: Wrap) -> list[object]:
        path = tmp_path / "wrapped.pcap"
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 0, linktype))
            for ts_ns, packet in packets:
                frame = wrap(packet)
                size = len(frame)
                file.write(struct.pack("<IIII", *divmod(ts_ns, 1_000_000_000), size, size) + frame)
        recording, lacks = import_capture(str(path), MEMORY, {}, lambda _done, _all: None)
        assert lacks is None
        with recording.recorder.connection as connection:
            found: list[object] = []
            for columns, table in (
                ("client, server, protocol, opened_ns", "streams"),
                ("stream_id, direction, ts_ns, offset, data", "chunks"),
                ("stream_id, direction, name, fields", "messages"),
                ("kind, actor, data", "events"),
                ("code, text", "diagnostics"),
            ):
                found.append(connection.execute(f"SELECT {columns} FROM {table}").fetchall())
        connection.close()
        return found

    plain = rows(1, ethernet)
    assert len(plain[2]) > 50  # type: ignore[arg-type]  # a list
    quick = ["radiotap, check sequence", "PPPoE", "PKTAP, Ethernet", "VXLAN", "ERSPAN II"]
    for (name,) in [row.values for row in a_few(FRAMES, quick)]:
        assert rows(*FRAMES[name]) == plain, name


@pytest.mark.parametrize("kind", PACKETS)
@pytest.mark.parametrize(
    ("name", "linktype", "wrap", "missing"),
    [
        # Where the frame states its own length, the capture has all of it.
        ("PPPoE, padded", 1, lambda p: framed(0x8864, pppoe(p) + bytes(10)), 0),
        ("802.3 with a length, padded", 1, lambda p: length_framed(snap(p)) + bytes(4), 0),
        # Otherwise the capture may have cut the frame, and states the captured length as the original one.
        ("Ethernet", 1, ethernet, 6),
        ("PPPoE", 1, lambda p: framed(0x8864, pppoe(p)), 6),
    ],
)
def test_an_ip_header_that_states_more_than_its_frame_has(
    name: str, linktype: int, wrap: Wrap, missing: int, kind: str
) -> None:
    packet = bytearray(PACKETS[kind])
    place, length = (2, len(packet)) if packet[0] >> 4 == 4 else (4, len(packet) - 40)
    packet[place : place + 2] = be(length + 6)
    (plain,), _ = decoded(1, ethernet(PACKETS[kind]))
    (sent,), decoder = decoded(linktype, wrap(bytes(packet)))
    assert not decoder.malformed, name
    if isinstance(sent, Segment):
        assert isinstance(plain, Segment)
        assert (sent.payload, sent.missing) == (plain.payload, missing)
    else:
        # A UDP header has a length of its own.
        assert sent == plain


UNREAD: list[tuple[str, int, bytes]] = [
    ("link type 189 (USB_LINUX)", 189, PACKETS["UDP"]),
    ("link type 226 (IPNET)", 226, PACKETS["UDP"]),
    ("link type 149 (USER2)", 149, PACKETS["UDP"]),
    ("link type 4711", 4711, PACKETS["UDP"]),
    ("link type 195 (IEEE802_15_4_WITHFCS)", 258, pktap(195, bytes(40))),
    ("encrypted 802.11 data", 105, wireless(PACKETS["UDP"], 0x41)),
    ("802.11 fragments", 105, wireless(PACKETS["UDP"], 0x05)),
    ("encrypted MACsec", 1, framed(0x88E5, b"\x0c" + bytes(60))),
    ("EtherType 0x4305", 1, framed(0x4305, bytes(60))),
    ("IP protocol 50 (ESP)", 1, ethernet(ip4(50, bytes(60)))),
    ("IP protocol 115 (L2TPv3)", 1, ethernet(ip4(115, bytes(60)))),
    ("PPP protocol 0x00fd", 9, b"\xff\x03\x00\xfd" + bytes(40)),
    ("address family 7", 0, b"\7\0\0\0" + PACKETS["UDP"]),
    ("MPLS content that is not IP", 1, framed(0x8847, b"\0\1\1\x40" + bytes(60))),
    ("EtherType 0x1234", 1, ethernet(gre(0, 0x1234, b"", bytes(60)))),
]
ORDINARY: list[tuple[str, int, bytes]] = [
    ("ARP", 1, framed(0x0806, bytes(46))),
    ("LLDP", 1, framed(0x88CC, bytes(46))),
    ("EAPOL", 1, framed(0x888E, bytes(46))),
    ("PPPoE discovery", 1, framed(0x8863, bytes(46))),
    ("PPPoE discovery", 51, b"\x11\x09" + bytes(40)),
    ("802.2", 1, length_framed(b"\x42\x42\x03" + bytes(35))),
    ("SNAP", 1, length_framed(b"\xaa\xaa\x03\0\0\x0c\x20\0" + bytes(40))),
    ("ICMP", 1, ethernet(ip4(1, bytes(40)))),
    ("IGMP", 1, ethernet(ip4(2, bytes(40)))),
    ("SCTP", 1, ethernet(ip4(132, bytes(40)))),
    ("PPP control", 9, b"\xff\x03\xc0\x21" + bytes(40)),
    ("802.11 management", 105, b"\x80\0" + bytes(60)),
    ("802.11 control", 105, b"\xd4\0" + bytes(8)),
    ("802.11 data", 105, b"\x48\1" + bytes(22)),
    ("GRE acknowledgment", 1, ethernet(gre(0x2081, 0x880B, bytes(8), b""))),
    ("GRE control", 1, ethernet(gre(0, 0, b"", b""))),
    ("not IP", 101, b"\x50" + bytes(40)),
]
MALFORMED: list[tuple[str, int, bytes]] = [
    ("802.11 frame that was received with errors", 127, radiotap(wireless(PACKETS["UDP"]), flags=0x40)),
    ("impossible radiotap header", 127, b"\1\0\x08\0" + bytes(40)),
    ("impossible radiotap header", 127, b"\0\0\x07\0" + bytes(40)),
    ("impossible 802.11 header", 105, b"\x09\1" + bytes(60)),
    ("impossible Prism header", 119, bytes(200)),
    ("impossible AVS header", 163, bytes(200)),
    ("impossible PKTAP header", 258, bytes(200)),
    ("a link type inside itself", 258, pktap(258, pktap(1, ethernet(PACKETS["UDP"])))),
    ("a link type inside itself", 192, ppi(192, ppi(1, ethernet(PACKETS["UDP"])))),
    ("impossible PPPoE header", 51, b"\x21\0\0\1\0\x20" + ppp(PACKETS["UDP"])),
    ("impossible GRE header", 1, ethernet(gre(7, 0x0800, b"", PACKETS["UDP"]))),
    ("GRE header cut short", 1, ethernet(gre(0xB000, 0x0800, b"", b""))),
    ("impossible ERSPAN header", 1, ethernet(gre(0x1000, 0x88BE, bytes(4), bytes(60)))),
    ("impossible EtherIP header", 1, ethernet(ip4(97, bytes(60)))),
    ("impossible NSH header", 1, framed(0x894F, bytes(60))),
    ("link header cut short", 219, b"\0\1\0\x40" * 5),
]


@pytest.mark.parametrize(("what", "linktype", "data"), UNREAD + ORDINARY + MALFORMED)
def test_skipped_data_is_counted_by_kind(what: str, linktype: int, data: bytes) -> None:
    found, decoder = decoded(linktype, data)
    assert found == []
    counters = {"unread": decoder.unread, "ignored": decoder.ignored, "malformed": decoder.malformed}
    row = (what, linktype, data)
    expected = "unread" if row in UNREAD else "ignored" if row in ORDINARY else "malformed"
    assert {name: dict(counter) for name, counter in counters.items() if counter} == {expected: {what: 1}}


PACKET = PACKETS["UDP"]
WRONG = PACKET[:10] + b"\0\1" + PACKET[12:]
"""A packet with a wrong header checksum."""

NO_TUNNELS: dict[str, bytes] = {
    "text to VXLAN's port": udp(4789, b"JOIN;carl;and more than a header"),
    "text to Geneve's port": udp(6081, b"JOIN;carl;and more than a header"),
    "text to GTP's port": udp(2152, b"JOIN;carl;and more than a header"),
    "text to L2TP's port": udp(1701, b"JOIN;carl;and more than a header"),
    "nothing": udp(4789, b""),
    "VXLAN without its flag": vxlan(PACKET, head="0000000000002a00"),
    "VXLAN with reserved flags, wrong checksum": vxlan(WRONG, head="4800000000002a00"),
    "VXLAN with reserved bytes, wrong checksum": vxlan(WRONG, head="0800010000002a00"),
    "VXLAN with a reserved end, wrong checksum": vxlan(WRONG, head="0800000000002a01"),
    "text to the port of GRE": udp(4754, b"JOIN;carl;and more than a header"),
    "GRE in UDP with a routing flag": udp(4754, b"\x40\0\x08\0" + bytes(8) + PACKET),
    "GRE in UDP of another version": udp(4754, b"\0\1\x08\0" + PACKET),
    "VXLAN before something else": udp(4789, bytes.fromhex("0800000000002a00") + bytes(60)),
    "VXLAN before an IP packet that is too long": udp(
        4789, bytes.fromhex("0800000000002a00") + ethernet(PACKET)[:-4]
    ),
    "VXLAN-GPE before nothing known": vxlan(PACKET, 4790, "0c00000900002a00"),
    "Geneve of another version": udp(6081, b"\x40\0\x65\x58\0\0\x2a\0" + ethernet(PACKET)),
    "Geneve with reserved bits": geneve(0x6558, ethernet(PACKET), flags=1),
    "Geneve with the wrong IP": geneve(0x86DD, PACKET),
    "GTP of another version": gtp(PACKET, flags=0x50),
    "GTP with another length": udp(2152, b"\x30\xff\0\1" + bytes(4) + PACKET),
    "GTP, extension of no length": gtp(PACKET, b"\0\0\0\x85\0\0\0\0", 0x34),
    "L2TP control": udp(1701, b"\xc8\x02\0\x0c" + bytes(8)),
    "L2TP with other PPP": udp(1701, b"\0\2\0\1\0\2\xff\3\xc0\x21" + bytes(20)),
}


@pytest.mark.parametrize("name", NO_TUNNELS)
def test_a_port_alone_is_no_tunnel(name: str) -> None:
    packet = NO_TUNNELS[name]
    found, decoder = decoded(1, ethernet(packet))
    assert found == [(packet[12:24], packet[28:], 0, 9)]
    assert not decoder.ignored + decoder.unread + decoder.malformed


@pytest.mark.parametrize("name", TUNNELS)
def test_nesting_is_bounded(name: str) -> None:
    packet = PACKET
    sent: list[Datagram | Segment] = []
    levels = 0
    while len(packet) < 60_000:
        inner, packet = packet, TUNNELS[name](packet)
        before, (sent, decoder) = sent, decoded(101, packet)
        if not sent:
            break
        assert before in ([], sent)
        levels += 1
    assert 2 <= levels <= 16
    assert decoder.malformed == {"more than 16 layers": 1}
    assert inner


def test_fragments_of_a_tunnel_are_put_together() -> None:
    whole = gre(0, 0x0800, b"", PACKET)
    content = whole[20:]
    decoder = PacketDecoder()
    first = whole[:2] + struct.pack(">H", 60) + whole[4:6] + b"\x20\0" + whole[8:20] + content[:40]
    last = whole[:2] + struct.pack(">H", len(whole) - 40) + whole[4:6] + b"\0\5" + whole[8:20] + content[40:]
    assert decoder.decode(101, first, len(first), 0) is None
    assert decoder.decode(101, last, len(last), 0) == decoded(101, PACKET)[0][0]


def test_each_link_type_that_is_read_has_a_name_and_a_test() -> None:
    assert set(LINK_TYPES) <= {*layer_names("link types"), 12, 14}
    untested = set(LINK_TYPES) - {linktype for linktype, _ in FRAMES.values()}
    # Raw IP and its other numbers are in test_packets.py; these are the same reader as one that is tested.
    assert untested <= {8, 12, 14, 101, 206, 228, 229, 240, 281, 282, 285}


@pytest.mark.full
@pytest.mark.parametrize("kind", every(4, PACKETS))
def test_wrapped_packets_are_read_as_tshark_reads_them(kind: str, tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    names = [name for name in FRAMES if name not in TSHARK_DIFFERS]
    if "IPv6" in kind:
        names = [name for name in names if name not in V4_ONLY]
    linktypes = sorted({FRAMES[name][0] for name in names})
    body = b"\x4d\x3c\x2b\x1a\1\0\0\0" + b"\xff" * 8
    data = struct.pack("<II", 0x0A0D0D0A, 28) + body + struct.pack("<I", 28)
    for linktype in linktypes:
        data += struct.pack("<IIHHII", 1, 20, linktype, 0, 0, 20)
    for name in names:
        linktype, wrap = FRAMES[name]
        frame = wrap(PACKETS[kind])
        size = 32 + len(frame) + -len(frame) % 4
        head = struct.pack("<IIIIIII", 6, size, linktypes.index(linktype), 0, 0, len(frame), len(frame))
        data += head + frame + bytes(-len(frame) % 4) + struct.pack("<I", size)
    path = tmp_path / "wrapped.pcapng"
    path.write_bytes(data)
    version, protocol = ("ipv6" if "IPv6" in kind else "ip"), kind[:3].lower()
    fields = [
        f"{version}.src",
        f"{protocol}.srcport",
        f"{version}.dst",
        f"{protocol}.dstport",
        f"{protocol}.payload",
    ]
    arguments = [argument for field in fields for argument in ("-e", field)]
    ports = ["-d", "udp.port==8472,vxlan"]
    told = subprocess.run(
        [tshark, "-n", "-r", str(path), *ports, "-T", "fields", "-E", "occurrence=l", *arguments],
        capture_output=True,
        check=True,
        text=True,
    )
    seen = dict(zip(names, (line.split("\t") for line in told.stdout.splitlines()), strict=True))
    (sent,), _ = decoded(1, ethernet(PACKETS[kind]))
    source, target = endpoints(sent.flow if isinstance(sent, Segment) else sent[0])
    expected = [*source.rsplit(":", 1), *target.rsplit(":", 1), TEXT.hex()]
    expected = [text.strip("[]") for text in expected]
    assert {name: row for name, row in seen.items() if row != expected} == {}


TSHARK_DIFFERS = {
    "null": "knows the families of BSD, not that of Linux",
    "WCCP": "takes the content for IPv4",
    "MPLS, Ethernet": "looks whether the manufacturers of the addresses are known",
    "MPLS, Ethernet, control word": "likewise",
    "FabricPath": "takes the last four bytes for a check sequence",
    "GRE, Aruba, A-MSDU": "reads no aggregate there",
    "ATM, classical": "expects IP alone",
    "netfilter log, big-endian": "takes the byte order of the file",
    **dict.fromkeys(
        ["PPP of pppd", "Cisco HDLC with direction", "MPLS without Ethernet", "DSA"], "has no such link type"
    ),
}
"""Wrappings that tshark reads in another way, and the way."""


@given(st.sampled_from(sorted(LINK_TYPES)), st.binary(max_size=200), st.integers(0, 1 << 32))
@settings(max_examples=times(3000, 100), deadline=None)
def test_any_bytes_of_any_link_type(linktype: int, data: bytes, wirelen: int) -> None:
    check_any(linktype, data, wirelen)


@given(
    st.sampled_from(sorted(FRAMES)),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6),
    st.integers(0, 200),
)
@settings(max_examples=times(3000, 60), deadline=None)
def test_any_flipped_bytes_of_any_wrapping(name: str, changes: list[tuple[int, int]], cut: int) -> None:
    linktype, wrap = FRAMES[name]
    data = bytearray(wrap(PACKET))
    for place, value in changes:
        data[place % len(data)] = value
    check_any(linktype, bytes(data[: max(len(data) - cut, 0)]), len(data))


def check_any(linktype: int, data: bytes, wirelen: int) -> None:
    found, decoder = decoded(linktype, data, wirelen)
    for sent in found:
        flow, payload, missing = (
            (sent.flow, sent.payload, sent.missing) if isinstance(sent, Segment) else sent[:3]
        )
        assert len(flow) in (12, 36)
        assert len(payload) <= len(data)
        assert missing >= 0
    # A packet is read, waits for its other fragments, or is counted.
    counted = (decoder.ignored + decoder.unread + decoder.malformed).total()
    assert len(found) + counted <= max(1, len(data) // 14)
    assert found or counted


def test_the_command_reports_unread_data(tmp_path: Path) -> None:
    path = tmp_path / "mixed.pcapng"
    section = struct.pack("<II", 0x0A0D0D0A, 28) + b"\x4d\x3c\x2b\x1a\1\0\0\0" + b"\xff" * 8
    data = section + struct.pack("<I", 28)
    for linktype in (1, 127, 189):
        data += struct.pack("<IIHHII", 1, 20, linktype, 0, 0, 20)
    rows = [
        (0, ethernet(PACKET)),
        (1, radiotap(wireless(PACKET, 0x41))),
        *[(2, bytes(40))] * 12,
        *[(3, ethernet(PACKET))] * 2,
        (0, framed(0x0806, bytes(46))),
    ]
    for number, frame in rows:
        size = 32 + len(frame) + -len(frame) % 4
        head = struct.pack("<IIIIIII", 6, size, number, 0, 0, len(frame), len(frame))
        data += head + frame + bytes(-len(frame) % 4) + struct.pack("<I", size)
    path.write_bytes(data)
    done = kiebitz("import", str(path), "-w", str(tmp_path / "game.db"))
    assert done.status == 0
    assert done.err.splitlines()[1:] == [
        f"kiebitz: {path}: 12 packets of link type 189 (USB_LINUX) were not read",
        f"kiebitz: {path}: 1 packet of encrypted 802.11 data was not read",
        f"kiebitz: {path}: 2 packets were left out: interface not described",
    ]
    assert "packets, 1 stream" in done.err.splitlines()[0]
    # So does a command that reads the capture itself.
    done = kiebitz("messages", str(path))
    assert "12 packets of link type 189 (USB_LINUX) were not read" in done.err
