"""Tunnels over IP and UDP: readers by IP protocol number and by UDP port.

A UDP port is no proof: a datagram to the port of a tunnel is decoded as such only if its header conforms to
the specification, and a packet can follow. All others at that port are ordinary datagrams.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.proxy.capture.layers import (
    ARP,
    ERSPAN_II,
    ETHERNET,
    IPV4,
    IPV6,
    MPLS,
    NSH,
    PPP,
    RAW_IP,
    WIRELESS,
    Inner,
    LayerReader,
    MalformedPacket,
    NoTransport,
    UnsupportedLayer,
    is_ethernet,
    is_ip,
    layer_names,
    short_at,
    skip,
    version_is,
)

_CHECKSUM, _ROUTING, _KEY, _SEQUENCE, _ACKNOWLEDGMENT = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080
"""Flags of a GRE header (RFC 1701, RFC 2890; the last one is RFC 2637's)."""

_GRE_VERSION = 0x0007
_WCCP = 0x883E
_ARUBA = frozenset({*range(0x8200, 0x8380, 0x10), 0x9000})
"""Protocol types with which access points of Aruba send 802.11 frames to their controller."""

_GRE_CONTROL = frozenset({0, 0x2000, 0x2001})
"""Protocol types in GRE that carry no traffic: keepalive, CDP, NHRP."""


def _read_gre(data: bytes, length: int) -> Inner:
    """Read a GRE header with all its optional fields."""
    skip(4, data, length)
    flags, protocol = short_at(data, 0), short_at(data, 2)
    version = flags & _GRE_VERSION
    if version > 1:
        raise MalformedPacket("impossible GRE header")
    size = 4
    if flags & (_CHECKSUM | _ROUTING):
        size += 4
    if flags & _KEY:
        size += 4
    if flags & _SEQUENCE:
        size += 4
    elif version == 1:
        raise NoTransport("GRE acknowledgment")
    if version == 1 and flags & _ACKNOWLEDGMENT:
        size += 4
    content, inner_length = skip(size, data, length, "GRE header")
    if version == 0 and flags & _ROUTING:
        content, inner_length = _skip_source_routes(content, inner_length)
    if version == 1:
        # RFC 2637, 4.1: the key's first half is the length of the payload.
        stated = short_at(data, 4)
        content, inner_length = content[:stated], min(stated, inner_length)
    if protocol in _GRE_CONTROL:
        raise NoTransport("GRE control")
    if protocol in _ARUBA:
        return WIRELESS, content, inner_length
    if protocol == _WCCP:
        # Version 2 of WCCP puts a header of its own before the packet; version 1 does not.
        if not is_ip(content, inner_length):
            content, inner_length = skip(4, content, inner_length, "GRE header")
        return RAW_IP, content, inner_length
    if protocol == ERSPAN_II and not flags & _SEQUENCE:
        # Type I has no header but GRE's, nor a sequence number.
        return ETHERNET, content, inner_length
    return protocol, content, inner_length


def _skip_source_routes(data: bytes, length: int) -> tuple[bytes, int]:
    """Skip the source route entries of RFC 1701, up to the one that is all zeros."""
    while True:
        entry = data[:4]
        data, length = skip(4, data, length, "GRE header")
        if entry == b"\0\0\0\0":
            return data, length
        data, length = skip(entry[3], data, length, "GRE header")


def read_erspan_2(data: bytes, length: int) -> Inner:
    """Read an ERSPAN header of type II: version 1, eight bytes, before an Ethernet frame."""
    content, inner_length = skip(8, data, length, "ERSPAN header")
    if data[0] >> 4 != 1:
        raise MalformedPacket("impossible ERSPAN header")
    return ETHERNET, content, inner_length


def read_erspan_3(data: bytes, length: int) -> Inner:
    """Read an ERSPAN header of type III: version 2, twelve bytes, and eight more if its last bit is set."""
    skip(12, data, length, "ERSPAN header")
    if data[0] >> 4 != 2:
        raise MalformedPacket("impossible ERSPAN header")
    content, inner_length = skip(20 if data[11] & 1 else 12, data, length, "ERSPAN header")
    # The frame type: Ethernet, or an IP packet.
    kind = data[10] >> 2 & 0x1F
    if kind not in (0, 2):
        raise UnsupportedLayer("ERSPAN frame that is neither Ethernet nor IP")
    return (ETHERNET if kind == 0 else RAW_IP), content, inner_length


_NEXT_PROTOCOLS = {1: IPV4, 2: IPV6, 3: ETHERNET, 4: NSH, 5: MPLS}
"""Next protocol in an NSH (RFC 8300, 2.2), and in the header of VXLAN-GPE."""


def read_nsh(data: bytes, length: int) -> Inner:
    """Read a network service header (RFC 8300), whose length is in units of four bytes."""
    skip(8, data, length)
    size = (data[1] & 0x3F) * 4
    if data[0] >> 6 or size < 8:
        raise MalformedPacket("impossible NSH header")
    content, inner_length = skip(size, data, length, "NSH header")
    if data[3] not in _NEXT_PROTOCOLS:
        raise UnsupportedLayer(f"NSH protocol {data[3]}")
    return _NEXT_PROTOCOLS[data[3]], content, inner_length


def _read_ether_ip(data: bytes, length: int) -> Inner:
    """Read EtherIP (RFC 3378): version 3 and reserved bits of zero."""
    content, inner_length = skip(2, data, length, "EtherIP header")
    if data[0] != 0x30:
        raise MalformedPacket("impossible EtherIP header")
    return ETHERNET, content, inner_length


IP_PROTOCOLS: dict[int, LayerReader] = {
    4: lambda data, length: (IPV4, data, length),
    41: lambda data, length: (IPV6, data, length),
    47: _read_gre,
    97: _read_ether_ip,
    137: lambda data, length: (MPLS, data, length),
    143: lambda data, length: (ETHERNET, data, length),
}
"""IP protocol number -> the reader of the tunnel."""


def read_ip_protocol(protocol: int, data: bytes, length: int) -> Inner:
    """Read the content of an IP packet other than UDP and TCP.

    Raises MalformedPacket, UnsupportedLayer and NoTransport.
    """
    reader = IP_PROTOCOLS.get(protocol)
    if reader is not None:
        return reader(data, length)
    ordinary = layer_names("ordinary IP protocols").get(protocol)
    if ordinary is not None:
        raise NoTransport(ordinary)
    name = layer_names("IP tunnels").get(protocol)
    raise UnsupportedLayer(f"IP protocol {protocol} ({name})" if name else f"IP protocol {protocol}")


_VXLAN_ID, _GPE_PROTOCOL, _GROUP_POLICY = 0x08, 0x04, 0x80
"""Flags of a VXLAN header: RFC 7348; drafts for generic protocols and for group policies."""


def _vxlan(payload: bytes, length: int) -> Inner | None:
    """Read a VXLAN header of either draft or of RFC 7348.

    Receivers ignore reserved bits. If one is set, the content must be an IP packet beyond doubt.
    """
    if len(payload) < 8 or not payload[0] & _VXLAN_ID:
        return None
    flags = payload[0]
    content, length = payload[8:], length - 8
    if flags == _VXLAN_ID | _GPE_PROTOCOL and payload[1:3] == b"\0\0" and not payload[7]:
        return _plausible(_NEXT_PROTOCOLS.get(payload[3], 0), content, length)
    is_plain = flags == _VXLAN_ID and payload[1:4] == b"\0\0\0"
    # Two bits of the second byte are in use, and the next two bytes are the policy.
    has_policy = flags == _VXLAN_ID | _GROUP_POLICY and not payload[1] & ~0x48
    if (is_plain or has_policy) and not payload[7]:
        return _plausible(ETHERNET, content, length)
    return (ETHERNET, content, length) if is_ethernet(content, length, is_sure=True) else None


def _geneve(payload: bytes, length: int) -> Inner | None:
    """Read a Geneve header (RFC 8926): version 0, reserved bits of zero, options."""
    if len(payload) < 8 or payload[0] >> 6 or payload[1] & 0x3F or payload[7]:
        return None
    size = 8 + (payload[0] & 0x3F) * 4
    return _plausible(short_at(payload, 2), payload[size:], length - size)


def _gtp(payload: bytes, length: int) -> Inner | None:
    """Read a GTP-U header (3GPP TS 29.281, 5.1) of version 1 before a user's packet."""
    if len(payload) < 8 or payload[0] & 0xF8 != 0x30 or payload[1] != 0xFF:
        return None
    if short_at(payload, 2) != length - 8:
        return None
    size = 8
    if payload[0] & 7:
        # Sequence number, N-PDU number, type of the first extension header; each counts four bytes as one.
        size = 12
        while payload[0] & 4 and payload[size - 1 : size] not in (b"", b"\0"):
            step = payload[size] * 4 if len(payload) > size else 0
            if not step:
                return None
            size += step
    return _plausible(RAW_IP, payload[size:], length - size)


def _gre_in_udp(payload: bytes, length: int) -> Inner | None:
    """Read GRE in UDP (RFC 8086, 4): version 0, with only the three flags of RFC 2890."""
    if len(payload) < 4 or short_at(payload, 0) & ~(_CHECKSUM | _KEY | _SEQUENCE):
        return None
    try:
        return _plausible(*_read_gre(payload, length))
    except (MalformedPacket, NoTransport):
        return None


def _l2tp(payload: bytes, length: int) -> Inner | None:
    """Read an L2TP data message (RFC 2661, 3.1) that contains PPP."""
    if len(payload) < 6:
        return None
    flags = short_at(payload, 0)
    # A data message of version 2, and no reserved bit.
    if flags & 0x800F != 2 or flags & 0x34F0:
        return None
    size = 6
    if flags & 0x4000:
        if short_at(payload, 2) != length:
            return None
        size += 2
    if flags & 0x0800:
        size += 4
    if flags & 0x0200:
        if len(payload) < size + 2:
            return None
        size += 2 + short_at(payload, size)
    content, length = payload[size:], length - size
    start = 2 if content[:2] == b"\xff\x03" else 0
    # RFC 1661, 6.5: the protocol field may be compressed.
    for protocol in (b"\x00\x21", b"\x21", b"\x00\x57", b"\x57"):
        end = start + len(protocol)
        if content[start:end] == protocol and is_ip(content[end:], length - end):
            return PPP, content, length
    return None


def _plausible(ethertype: int, data: bytes, length: int) -> Inner | None:
    """Return the content if tunnels carry its kind and its bytes are plausible, else None."""
    if ethertype == ETHERNET:
        plausible = is_ethernet(data, length)
    elif ethertype in (IPV4, IPV6):
        plausible = version_is(data, ethertype) and is_ip(data, length)
    elif ethertype == RAW_IP:
        plausible = is_ip(data, length)
    elif ethertype == NSH:
        plausible = (
            len(data) >= 8 and data[0] >> 6 == 0 and data[1] & 0x3F >= 2 and data[3] in _NEXT_PROTOCOLS
        )
    else:
        plausible = ethertype == ARP
    return (ethertype, data, length) if plausible else None


UDP_TUNNELS: dict[int, Callable[[bytes, int], Inner | None]] = {
    1701: _l2tp,
    2152: _gtp,
    4754: _gre_in_udp,
    4789: _vxlan,
    4790: _vxlan,
    6081: _geneve,
    8472: _vxlan,
}
"""Destination port -> a reader that returns None for anything but its tunnel.

The ports are those of IANA, and the one that Linux used for VXLAN before one was assigned.
"""
