"""Common parts of the readers that remove one layer from a packet: results, errors, plausibility checks.

A layer names its content by an EtherType, even if its own header uses other numbers. So one table of
EtherTypes leads from every link layer and every tunnel to IP.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.errors import KiebitzError

Inner = tuple[int, bytes, int]
"""(ethertype, data, length): the content of a layer, its captured bytes, and its length on the wire."""

LayerReader = Callable[[bytes, int], Inner]
"""Function that removes a layer: from its captured bytes and its length on the wire to its content.

Raises MalformedPacket, UnsupportedLayer or NoTransport.
"""

IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
VLAN, QINQ, QINQ_OLD, QINQ_OLDER = 0x8100, 0x88A8, 0x9100, 0x9200
"""IEEE 802.1Q, 802.1ad, and the two numbers that were used before 802.1ad."""

MPLS, MPLS_UPSTREAM, PPPOE, PPP, ETHERNET = 0x8847, 0x8848, 0x8864, 0x880B, 0x6558
ERSPAN_II, ERSPAN_III = 0x88BE, 0x22EB

NSH = 0x894F

LLC, RAW_IP, WIRELESS, AGGREGATE = -1, -2, -3, -4
"""Contents without an EtherType: an IEEE 802.2 header, IP of either version, an 802.11 frame, or several."""

MIN_ETHERTYPE = 0x0600
"""The lowest EtherType; a lower number in its place is the length of an IEEE 802.3 frame."""

BRIDGE_GROUP = b"\x01\x80\xc2\x00\x00"
"""Prefix of the addresses to which bridges send (IEEE 802.1D, 7.12.3), as in a spanning tree."""


def short_at(data: bytes, position: int) -> int:
    """Return the two bytes at a position as a number in network byte order."""
    return int.from_bytes(data[position : position + 2], "big")


class MalformedPacket(KiebitzError):
    """A packet that no receiver would accept, or that cannot be read. The text is the reason."""


class UnsupportedLayer(KiebitzError):
    """A packet in an unsupported encapsulation that may carry UDP or TCP. The text names it."""


class NoTransport(KiebitzError):
    """A packet of a kind that carries neither UDP nor TCP, as ARP. The text names its kind."""


def skip(size: int, data: bytes, length: int, what: str = "link header") -> tuple[bytes, int]:
    """Return data and length without their first `size` bytes. Raises MalformedPacket if these are cut."""
    if len(data) < size:
        raise MalformedPacket(f"{what} cut short")
    return data[size:], length - size


def version_of(data: bytes) -> int:
    """Return the EtherType of an IP packet by its version number. Raises NoTransport for others."""
    version = data[0] >> 4 if data else 0
    if version == 4:
        return IPV4
    if version == 6:
        return IPV6
    raise NoTransport("not IP")


def is_ip(data: bytes, length: int) -> bool:
    """Return True if bytes may be an IP packet that fits into `length` bytes, judging by its header."""
    if len(data) >= 20 and 0x45 <= data[0] <= 0x4F:
        # As in a whole packet, a length of 0 is left to the network card.
        total = short_at(data, 2) or length
        return (data[0] & 0x0F) * 4 <= total <= length
    return len(data) >= 40 and data[0] >> 4 == 6 and short_at(data, 4) + 40 <= length


def has_right_checksum(data: bytes) -> bool:
    """Return True if the header checksum of an IPv4 packet is right (RFC 1071); IPv6 has none."""
    header = data[: (data[0] & 0x0F) * 4]
    return (
        data[0] >> 4 == 6 or sum(short_at(header, place) for place in range(0, len(header), 2)) % 0xFFFF == 0
    )


def is_ethernet(data: bytes, length: int, is_sure: bool = False) -> bool:
    """Return True if bytes may be an Ethernet frame of IP, ARP or a bridge, with or without VLAN tags.

    With `is_sure` it must be one of IP, with a right checksum.
    """
    if is_sure and not (
        len(data) >= 34 and data[12:14] in (b"\x08\x00", b"\x86\xdd") and has_right_checksum(data[14:])
    ):
        return False
    if data[:5] == BRIDGE_GROUP and len(data) >= 14:
        return True
    position = 12
    while len(data) >= position + 2:
        ethertype = short_at(data, position)
        content = data[position + 2 :]
        if ethertype in (IPV4, IPV6):
            return version_is(content, ethertype) and is_ip(content, length - position - 2)
        if ethertype == ARP:
            # RFC 826: hardware and protocol type of Ethernet and IPv4.
            return content[:4] == b"\x00\x01\x08\x00"
        if ethertype not in (VLAN, QINQ, QINQ_OLD, QINQ_OLDER):
            return False
        position += 4
    return False


def version_is(data: bytes, ethertype: int) -> bool:
    """Return True if an IP packet has the version of its EtherType."""
    return bool(data) and data[0] >> 4 == (4 if ethertype == IPV4 else 6)
