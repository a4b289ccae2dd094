"""Ethernet and its relatives: IEEE 802.3, VLAN tags, 802.2, token ring, MACsec, and MPLS."""

from __future__ import annotations

from kiebitz.proxy.capture.layers import (
    ETHERNET,
    IPV4,
    IPV6,
    LLC,
    MIN_ETHERTYPE,
    QINQ,
    QINQ_OLD,
    QINQ_OLDER,
    VLAN,
    Inner,
    MalformedPacket,
    NoTransport,
    UnsupportedLayer,
    is_ethernet,
    is_ip,
    short_at,
    skip,
    version_of,
)

NLPIDS = {0xCC: IPV4, 0x8E: IPV6}
"""Network layer protocol identifiers (RFC 2427, RFC 6328)."""


def read_ethernet(data: bytes, length: int) -> Inner:
    """Read an Ethernet header, or an IEEE 802.3 one, which has a length in place of the EtherType."""
    content, length = skip(14, data, length)
    ethertype = short_at(data, 12)
    if ethertype < MIN_ETHERTYPE:
        # Padding up to 60 bytes is no content.
        return LLC, content[:ethertype], min(ethertype, length)
    return ethertype, content, length


def read_with_ethertype(size: int, place: int, data: bytes, length: int) -> Inner:
    """Read a header of `size` bytes with an EtherType at byte `place`."""
    content, length = skip(size, data, length)
    ethertype = short_at(data, place)
    return ethertype, content, length


def read_fixed(content: int, size: int, data: bytes, length: int) -> Inner:
    """Skip a header of `size` bytes before content of a fixed kind."""
    return content, *skip(size, data, length)


def read_vlan_tags(data: bytes, length: int) -> Inner:
    """Read a VLAN tag and all tags that follow it."""
    position = 2
    while len(data) >= position + 2:
        ethertype = short_at(data, position)
        position += 2
        if ethertype not in (VLAN, QINQ, QINQ_OLD, QINQ_OLDER):
            if ethertype < MIN_ETHERTYPE:
                return LLC, data[position:][:ethertype], min(ethertype, length - position)
            return ethertype, data[position:], length - position
        position += 2
    raise MalformedPacket("link header cut short")


def read_llc(data: bytes, length: int) -> Inner:
    """Read an IEEE 802.2 header, with or without SNAP after it (RFC 1042)."""
    content, inner_length = skip(3, data, length)
    if data[:3] == b"\xaa\xaa\x03":
        content, inner_length = skip(5, content, inner_length)
        # RFC 1042, and 802.1H bridge tunnels: an EtherType. Other organizations number their own protocols.
        if data[3:6] in (b"\0\0\0", b"\0\0\xf8"):
            return short_at(data, 6), content, inner_length
        raise NoTransport("SNAP")
    # The service access point of IP, and that of OSI, in which an NLPID follows.
    if data[:3] == b"\x06\x06\x03":
        return IPV4, content, inner_length
    if data[:3] == b"\xfe\xfe\x03" and content and content[0] in NLPIDS:
        return NLPIDS[content[0]], content[1:], inner_length - 1
    raise NoTransport("802.2")


def read_token_ring(data: bytes, length: int) -> Inner:
    """Read an IEEE 802.5 header, with or without source routing."""
    content, length = skip(14, data, length)
    if data[8] & 0x80 and content:
        return LLC, *skip(content[0] & 0x1F, content, length)
    return LLC, content, length


_MACSEC_VERSION, _MACSEC_CHANNEL, _MACSEC_CHANGED = 0x80, 0x20, 0x0C
"""Bits of a MACsec tag (IEEE 802.1AE, 9.5): another version, a channel identifier, changed content."""


def read_macsec(data: bytes, length: int) -> Inner:
    """Read a MACsec tag before content that is protected but not encrypted."""
    skip(6, data, length)
    if data[0] & _MACSEC_VERSION:
        raise MalformedPacket("impossible MACsec header")
    if data[0] & _MACSEC_CHANGED:
        raise UnsupportedLayer("encrypted MACsec")
    size = 14 if data[0] & _MACSEC_CHANNEL else 6
    return read_with_ethertype(size + 2, size, data, length)


def read_mpls(data: bytes, length: int) -> Inner:
    """Read an MPLS label stack (RFC 3032), whose content is not named, and read only if unambiguous."""
    position = 0
    while len(data) >= position + 4:
        is_last = data[position + 2] & 1
        position += 4
        if is_last:
            break
    else:
        raise MalformedPacket("link header cut short")
    content, length = data[position:], length - position
    if is_ip(content, length):
        return version_of(content), content, length
    # RFC 4448, 4.6: a pseudowire's control word may precede an Ethernet frame.
    if content[:1] and content[0] >> 4 == 0 and is_ethernet(content[4:], length - 4):
        return ETHERNET, content[4:], length - 4
    if is_ethernet(content, length):
        return ETHERNET, content, length
    raise UnsupportedLayer("MPLS content that is not IP")
