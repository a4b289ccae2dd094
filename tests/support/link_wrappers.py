"""Link layers and tunnels around an IP packet, as their specifications have them: each is one function."""

from __future__ import annotations

import struct
from collections.abc import Callable

Wrap = Callable[[bytes], bytes]
"""Puts an IP packet into something."""

MACS = bytes.fromhex("020000000001020000000002")
OUTER4 = bytes([203, 0, 113, 1, 203, 0, 113, 2])
OUTER6 = bytes.fromhex("20010db8000000000000000000000001" + "20010db8000000000000000000000002")
SNAP = b"\xaa\xaa\x03\0\0\0"


def be(number: int) -> bytes:
    """Return a number as two bytes in network byte order."""
    return struct.pack(">H", number)


def ethertype(packet: bytes) -> bytes:
    """Return the EtherType of an IP packet."""
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def ethernet(packet: bytes, tags: bytes = b"") -> bytes:
    return MACS + tags + ethertype(packet) + packet


def framed(kind: int, content: bytes) -> bytes:
    """Return an Ethernet frame of any EtherType."""
    return MACS + be(kind) + content


def length_framed(content: bytes) -> bytes:
    """Return an IEEE 802.3 frame, which has its length instead of an EtherType, padded."""
    return MACS + be(len(content)) + content + bytes(max(46 - len(content), 0))


def snap(packet: bytes) -> bytes:
    return SNAP + ethertype(packet) + packet


def ppp(packet: bytes) -> bytes:
    return (b"\x00\x21" if packet[0] >> 4 == 4 else b"\x00\x57") + packet


def short_ppp(packet: bytes) -> bytes:
    return ppp(packet)[1:]


def pppoe(packet: bytes) -> bytes:
    return b"\x11\x00\x12\x34" + be(len(ppp(packet))) + ppp(packet)


def ip4(protocol: int, content: bytes) -> bytes:
    """Return an IPv4 packet, with a correct checksum, between two addresses of the tunnel's ends."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 9, 0x4000, 64, protocol, 0) + OUTER4
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return head[:10] + be(checksum) + head[12:] + content


def ip6(protocol: int, content: bytes) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(content), protocol, 64) + OUTER6 + content


def udp(port: int, content: bytes) -> bytes:
    return ip4(17, struct.pack(">HHHH", 40_000, port, 8 + len(content), 0) + content)


def gre(flags: int, kind: int, fields: bytes, content: bytes) -> bytes:
    return ip4(47, be(flags) + be(kind) + fields + content)


def pptp(packet: bytes, has_ack: bool) -> bytes:
    content = b"\xff\x03" + ppp(packet)
    fields = be(len(content)) + be(7) + bytes(4) + (bytes(4) if has_ack else b"")
    return gre(0x3081 if has_ack else 0x3001, 0x880B, fields, content)


def wireless(
    packet: bytes,
    flags: int = 0x01,
    subtype: int = 0,
    fourth: bytes = b"",
    control: bytes = b"",
    padding: bytes = b"",
) -> bytes:
    """Return a data frame of IEEE 802.11."""
    header = bytes([0x08 | subtype << 4, flags]) + bytes(2) + MACS + bytes(6) + b"\x10\x00" + fourth + control
    return header + padding + snap(packet)


def aggregated(*packets: bytes) -> bytes:
    """Return an 802.11 frame that has several, padded to a multiple of four bytes but for the last."""
    content = b""
    for packet in packets:
        content += bytes(-len(content) % 4) + MACS + be(len(snap(packet))) + snap(packet)
    return wireless(b"\x45", 0x02, 8, control=b"\x80\x00")[:26] + content


def radiotap(frame: bytes, *, flags: int | None = None, time: bool = False, words: int = 1) -> bytes:
    """Return a radiotap header, with a time stamp or flags in it, before a frame of 802.11."""
    present = (1 if time else 0) | (2 if flags is not None else 0)
    masks = [present | (1 << 31 if words > 1 else 0)] + [
        1 << 31 if number < words - 2 else 0 for number in range(words - 1)
    ]
    fields = struct.pack(f"<{words}I", *masks)
    if time:
        fields += bytes(-(4 + len(fields)) % 8) + bytes(8)
    if flags is not None:
        fields += bytes([flags])
    return struct.pack("<BBH", 0, 0, 4 + len(fields)) + fields + frame


def ppi(linktype: int, frame: bytes, fields: bytes = b"") -> bytes:
    return struct.pack("<BBHI", 0, 0, 8 + len(fields), linktype) + fields + frame


def pktap(linktype: int, frame: bytes, trailer: bytes = b"") -> bytes:
    head = struct.pack("<III24sIIII", 108, 1, linktype, b"en0", 0, 2, 14, len(trailer))
    return head.ljust(108, b"\0") + frame + trailer


def nflog(packet: bytes, order: str = "<") -> bytes:
    """Return the attributes of a netfilter log: a packet header, a prefix, and the packet."""
    attributes = b""
    for kind, value in ((1, bytes(4)), (10, b"to\0"), (9, packet)):
        attributes += bytes(-len(attributes) % 4) + struct.pack(order + "HH", 4 + len(value), kind) + value
    return b"\x02\x00\x00\x01" + attributes


def vxlan(packet: bytes, port: int = 4789, head: str = "0800000000002a00") -> bytes:
    return udp(port, bytes.fromhex(head) + ethernet(packet))


def geneve(kind: int, content: bytes, options: bytes = b"", flags: int = 0) -> bytes:
    head = bytes([len(options) // 4, flags]) + be(kind) + b"\0\0\x2a\0"
    return udp(6081, head + options + content)


def gtp(packet: bytes, optional: bytes = b"", flags: int = 0x30) -> bytes:
    return udp(2152, bytes([flags, 0xFF]) + be(len(optional) + len(packet)) + bytes(4) + optional + packet)


CHECK = b"\xde\xad\xbe\xef"
"""A frame check sequence: it is not verified."""

V4_ONLY = frozenset({"802.2 SAP of IP", "PPI, IPv4"})
"""Wrappings that cannot have IPv6."""

LINKS: dict[str, tuple[int, Wrap]] = {
    "null": (0, lambda p: (b"\x02\0\0\0" if p[0] >> 4 == 4 else b"\x0a\0\0\0") + p),
    "null, other byte order": (0, lambda p: (b"\0\0\0\x02" if p[0] >> 4 == 4 else b"\0\0\0\x1c") + p),
    "null, macOS": (0, lambda p: (b"\x02\0\0\0" if p[0] >> 4 == 4 else b"\x1e\0\0\0") + p),
    "loop": (108, lambda p: (b"\0\0\0\x02" if p[0] >> 4 == 4 else b"\0\0\0\x18") + p),
    "802.1Q": (1, lambda p: ethernet(p, b"\x81\0\0\5")),
    "802.1ad": (1, lambda p: ethernet(p, b"\x88\xa8\0\5\x81\0\0\6")),
    "QinQ": (1, lambda p: ethernet(p, b"\x91\0\0\5\x81\0\0\6")),
    "802.1ah": (1, lambda p: framed(0x88E7, bytes(4) + ethernet(p))),
    "FabricPath": (1, lambda p: framed(0x8903, b"\0\x20" + ethernet(p))),
    "VN-Tag": (1, lambda p: framed(0x8926, bytes(4) + ethertype(p) + p)),
    "802.1BR": (1, lambda p: framed(0x893F, bytes(6) + ethertype(p) + p)),
    "HSR": (1, lambda p: framed(0x892F, bytes(4) + ethertype(p) + p)),
    "Cisco metadata": (1, lambda p: framed(0x8909, b"\1\1\0\1\0\2" + ethertype(p) + p)),
    "NSH": (1, lambda p: framed(0x894F, b"\x0f\xc2\2" + (b"\1" if p[0] >> 4 == 4 else b"\2") + bytes(4) + p)),
    "MACsec": (1, lambda p: framed(0x88E5, b"\0\0\0\0\0\1" + ethertype(p) + p + bytes(16))),
    "MACsec, channel": (
        1,
        lambda p: framed(0x88E5, b"\x20\0\0\0\0\1" + bytes(8) + ethertype(p) + p + bytes(16)),
    ),
    "InfiniBand": (242, lambda p: bytes(40) + ethertype(p) + b"\0\0" + p),
    "SNAP": (1, lambda p: length_framed(snap(p))),
    "SNAP, tagged": (1, lambda p: MACS + b"\x81\0\0\5" + length_framed(snap(p))[12:]),
    "SNAP of 802.1H": (1, lambda p: length_framed(b"\xaa\xaa\x03\0\0\xf8" + ethertype(p) + p)),
    "802.2 SAP of IP": (1, lambda p: length_framed(b"\x06\x06\x03" + p)),
    "PPPoE": (1, lambda p: framed(0x8864, pppoe(p) + bytes(10))),
    "PPPoE, tagged": (1, lambda p: MACS + b"\x81\0\0\5" + framed(0x8864, pppoe(p))[12:]),
    "MPLS": (1, lambda p: framed(0x8847, b"\x00\x01\x00\x40\x00\x02\x01\x40" + p)),
    "MPLS, upstream": (1, lambda p: framed(0x8848, b"\x00\x01\x01\x40" + p)),
    "MPLS, Ethernet": (1, lambda p: framed(0x8847, b"\x00\x01\x01\x40" + ethernet(p))),
    "MPLS, Ethernet, control word": (
        1,
        lambda p: framed(0x8847, b"\x00\x01\x01\x40" + bytes(4) + ethernet(p)),
    ),
    "token ring": (6, lambda p: b"\x10\x40" + MACS + snap(p)),
    "token ring, routed": (
        6,
        lambda p: b"\x10\x40" + MACS[:6] + bytes([MACS[6] | 0x80]) + MACS[7:] + b"\x06\x10abcd" + snap(p),
    ),
    "FDDI": (10, lambda p: b"\x50" + MACS + snap(p)),
    "PPP": (9, ppp),
    "PPP, framed": (9, lambda p: b"\xff\x03" + ppp(p)),
    "PPP, compressed": (9, short_ppp),
    "PPP, HDLC": (50, lambda p: b"\xff\x03" + ppp(p)),
    "PPP, Cisco HDLC": (50, lambda p: b"\x0f\x00" + ethertype(p) + p),
    "PPPoE without Ethernet": (51, pppoe),
    "PPP of pppd": (166, lambda p: b"\x01\x03" + ppp(p)),
    "PPP with direction": (204, lambda p: b"\x00\xff\x03" + ppp(p)),
    "Cisco HDLC": (104, lambda p: b"\x8f\x00" + ethertype(p) + p),
    "Cisco HDLC with direction": (205, lambda p: b"\x01\x0f\x00" + ethertype(p) + p),
    "frame relay": (107, lambda p: b"\x18\x41\x03" + (b"\xcc" if p[0] >> 4 == 4 else b"\x8e") + p),
    "frame relay, SNAP": (107, lambda p: b"\x18\x41\x03\x00\x80\0\0\0" + ethertype(p) + p),
    "frame relay, Cisco": (107, lambda p: b"\x18\x41" + ethertype(p) + p),
    "ATM": (100, snap),
    "ATM, classical": (106, snap),
    "fibre channel": (122, lambda p: bytes(16) + snap(p)),
    "IPsec interface": (109, lambda p: (b"\x02\0\0\0" if p[0] >> 4 == 4 else b"\x18\0\0\0") + bytes(8) + p),
    "packet filter log": (
        117,
        lambda p: bytes([61, 2 if p[0] >> 4 == 4 else 24]) + bytes(62) + p,
    ),
    "cooked": (113, lambda p: bytes(14) + ethertype(p) + p),
    "cooked, tagged": (113, lambda p: bytes(14) + b"\x81\0\0\5" + ethertype(p) + p),
    "cooked, 802.2": (113, lambda p: bytes(14) + b"\0\4" + snap(p)),
    "cooked 2": (276, lambda p: ethertype(p) + bytes(18) + p),
    "MPLS without Ethernet": (219, lambda p: b"\x00\x01\x01\x40" + p),
    "netfilter log": (239, nflog),
    "netfilter log, big-endian": (239, lambda p: nflog(p, ">")),
    "PKTAP, Ethernet": (258, lambda p: pktap(1, ethernet(p))),
    "PKTAP, raw": (149, lambda p: pktap(12, p)),
    "PKTAP, null, trailer": (
        149,
        lambda p: pktap(0, b"\x02\0\0\0" + p if p[0] >> 4 == 4 else b"\x1e\0\0\0" + p, b"end"),
    ),
    "PPI, 802.11": (192, lambda p: ppi(105, wireless(p))),
    "PPI, 802.11, check sequence": (
        192,
        lambda p: ppi(
            105, wireless(p) + CHECK, struct.pack("<HH8sHHHHBBbb", 2, 20, b"", 1, 2, 0, 0, 0, 0, 0, 0)
        ),
    ),
    "PPI, IPv4": (192, lambda p: ppi(228, p)),
    "802.11": (105, wireless),
    "802.11 from the distribution system": (105, lambda p: wireless(p, 0x02)),
    "802.11 without one": (105, lambda p: wireless(p, 0x00)),
    "802.11, four addresses": (105, lambda p: wireless(p, 0x03, fourth=bytes(6))),
    "802.11 QoS": (105, lambda p: wireless(p, 0x01, 8, control=b"\x06\x00")),
    "802.11 QoS, HT control": (105, lambda p: wireless(p, 0x81, 8, control=b"\x06\x00\0\0\0\0")),
    "802.11 QoS, four addresses": (105, lambda p: wireless(p, 0x03, 8, bytes(6), b"\x06\x00")),
    "802.11 A-MSDU of one": (105, aggregated),
    "radiotap": (127, lambda p: radiotap(wireless(p))),
    "radiotap, check sequence": (127, lambda p: radiotap(wireless(p) + CHECK, flags=0x10)),
    "radiotap, time": (127, lambda p: radiotap(wireless(p) + CHECK, flags=0x10, time=True)),
    "radiotap, three words": (127, lambda p: radiotap(wireless(p) + CHECK, flags=0x10, time=True, words=3)),
    "radiotap, padded": (
        127,
        lambda p: radiotap(wireless(p, 0x01, 8, control=b"\x06\0", padding=b"\0\0"), flags=0x20),
    ),
    "radiotap, A-MSDU, check sequence": (127, lambda p: radiotap(aggregated(p) + CHECK, flags=0x10)),
    "Prism": (119, lambda p: struct.pack("<II", 0x44, 144) + bytes(136) + wireless(p)),
    "Prism, big-endian": (119, lambda p: struct.pack(">II", 0x44, 144) + bytes(136) + wireless(p)),
    "Prism, AVS": (119, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + wireless(p)),
    "AVS": (163, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + wireless(p)),
    "DSA": (284, lambda p: MACS + b"\x40\0\0\0" + ethertype(p) + p),
}
"""Name -> LINKTYPE_ number, and what puts an IP packet into a frame of it."""

TUNNELS: dict[str, Wrap] = {
    "IP in IP": lambda p: ip4(4 if p[0] >> 4 == 4 else 41, p),
    "IP in IPv6": lambda p: ip6(4 if p[0] >> 4 == 4 else 41, p),
    "IP in IP, authenticated": lambda p: ip4(51, bytes([4 if p[0] >> 4 == 4 else 41, 4]) + bytes(22) + p),
    "GRE": lambda p: gre(0, int.from_bytes(ethertype(p), "big"), b"", p),
    "GRE, all fields": lambda p: gre(0xB000, int.from_bytes(ethertype(p), "big"), bytes(12), p),
    "GRE, key": lambda p: gre(0x2000, int.from_bytes(ethertype(p), "big"), bytes(4), p),
    "GRE, source route": lambda p: gre(
        0x4000, int.from_bytes(ethertype(p), "big"), bytes(4) + b"\x08\0\0\x04abcd" + bytes(4), p
    ),
    "GRE, Ethernet": lambda p: gre(0x2000, 0x6558, bytes(4), ethernet(p)),
    "GRE, MPLS": lambda p: gre(0, 0x8847, b"", b"\x00\x01\x01\x40" + p),
    "PPTP": lambda p: pptp(p, False),
    "PPTP, acknowledging": lambda p: pptp(p, True),
    "WCCP": lambda p: gre(0, 0x883E, b"", p),
    "WCCP 2": lambda p: gre(0, 0x883E, bytes(4), p),
    "ERSPAN": lambda p: gre(0, 0x88BE, b"", ethernet(p)),
    "ERSPAN II": lambda p: gre(0x1000, 0x88BE, bytes(4) + b"\x10\0\0\0\0\0\0\0", ethernet(p)),
    "ERSPAN III": lambda p: gre(0x1000, 0x22EB, bytes(4) + b"\x20" + bytes(11), ethernet(p)),
    "ERSPAN III, subheader": lambda p: gre(
        0x1000, 0x22EB, bytes(4) + b"\x20" + bytes(10) + b"\x01" + bytes(8), ethernet(p)
    ),
    "GRE, Aruba": lambda p: gre(0, 0x8200, b"", wireless(p)),
    "GRE, Aruba, A-MSDU": lambda p: gre(0, 0x9000, b"", aggregated(p)),
    "GRE in UDP": lambda p: udp(4754, b"\x30\0" + ethertype(p) + bytes(8) + p),
    "EtherIP": lambda p: ip4(97, b"\x30\x00" + ethernet(p)),
    "MPLS in IP": lambda p: ip4(137, b"\x00\x01\x01\x40" + p),
    "VXLAN": vxlan,
    "VXLAN, old port": lambda p: vxlan(p, 8472),
    "VXLAN, group policy": lambda p: vxlan(p, head="8808123400002a00"),
    "VXLAN, tagged": lambda p: udp(4789, bytes.fromhex("0800000000002a00") + ethernet(p, b"\x81\0\0\5")),
    "VXLAN-GPE, Ethernet": lambda p: vxlan(p, 4790, "0c00000300002a00"),
    "VXLAN-GPE, IP": lambda p: udp(4790, bytes([0x0C, 0, 0, 1 if p[0] >> 4 == 4 else 2, 0, 0, 42, 0]) + p),
    "VXLAN, reserved bits": lambda p: vxlan(p, head="4a12345600002a77"),
    "VXLAN-GPE, NSH": lambda p: udp(
        4790, bytes([0x0C, 0, 0, 4, 0, 0, 42, 0]) + b"\x0f\xc6\1\3" + bytes(20) + ethernet(p)
    ),
    "Geneve": lambda p: geneve(0x6558, ethernet(p)),
    "Geneve, options": lambda p: geneve(0x6558, ethernet(p), bytes(3) + b"\x01" + bytes(4), 0x40),
    "Geneve, IP": lambda p: geneve(int.from_bytes(ethertype(p), "big"), p),
    "GTP": gtp,
    "GTP, sequence number": lambda p: gtp(p, b"\0\1\0\0", 0x32),
    "GTP, extension": lambda p: gtp(p, b"\0\0\0\x85\x01\x10\x01\x00", 0x34),
    "L2TP": lambda p: udp(1701, b"\x00\x02\0\1\0\2\xff\x03" + ppp(p)),
    "L2TP, all fields": lambda p: udp(
        1701, b"\x4a\x02" + be(20 + len(p)) + b"\0\1\0\2\0\3\0\4\0\2ab\xff\x03" + ppp(p)[:2] + p
    ),
    "two": lambda p: vxlan(gre(0, 0x6558, b"", ethernet(p))),
}
"""Name -> what puts an IP packet into another one, by a tunnel."""

FRAMES: dict[str, tuple[int, Wrap]] = {
    **LINKS,
    **{name: (1, lambda p, wrap=wrap: ethernet(wrap(p))) for name, wrap in TUNNELS.items()},  # type: ignore[misc]  # a bound value
}
"""All wrappers: name -> LINKTYPE_ number, and the function that makes a frame of an IP packet."""
