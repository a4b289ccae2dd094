"""Link layers: readers by the LINKTYPE_ number of a capture, and by the EtherType that a layer names.

The numbers are those of https://www.tcpdump.org/linktypes.html and of the IEEE's list of EtherTypes.
"""

from __future__ import annotations

from functools import partial
from struct import Struct

from kiebitz.proxy.capture.layers import (
    ARP,
    ERSPAN_II,
    ERSPAN_III,
    ETHERNET,
    IPV4,
    IPV6,
    LEAST_ETHERTYPE,
    LLC,
    MPLS,
    MPLS_UPSTREAM,
    NSH,
    PPP,
    PPPOE,
    QINQ,
    QINQ_OLD,
    QINQ_OLDER,
    RAW_IP,
    VLAN,
    WIRELESS,
    Inner,
    Malformed,
    NoTraffic,
    Reader,
    Unread,
    is_ethernet,
    is_ip,
    short_at,
    skip,
    version_of,
)
from kiebitz.proxy.capture.link_type_names import LINK_TYPE_NAMES
from kiebitz.proxy.capture.tunnels import read_erspan_2, read_erspan_3, read_nsh
from kiebitz.proxy.capture.wireless import read_80211, read_avs, read_prism, read_radiotap

# AF_INET6 is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS.
_FAMILIES = {2: IPV4, 10: IPV6, 23: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}

_PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: MPLS_UPSTREAM}
_PPP_CONTROL = 0x4000
"""The lowest PPP protocol number of protocols that carry no packets: RFC 1661, 2."""

_PPPOE_DISCOVERY = 0x8863
_NLPIDS = {0xCC: IPV4, 0x8E: IPV6}
"""Network layer protocol identifiers (RFC 2427, RFC 6328)."""

_ORDINARY_ETHERTYPES = {
    ARP: "ARP",
    0x0842: "Wake-on-LAN",
    0x2000: "CDP",
    0x2001: "NHRP",
    0x6002: "DEC MOP",
    0x6003: "DECnet",
    0x6004: "DEC LAT",
    0x8035: "RARP",
    0x809B: "AppleTalk",
    0x80F3: "AppleTalk ARP",
    0x8137: "IPX",
    0x8808: "Ethernet flow control",
    0x8809: "slow protocols",
    _PPPOE_DISCOVERY: "PPPoE discovery",
    0x886D: "Intel ANS",
    0x887B: "HomePlug",
    0x888E: "EAPOL",
    0x8892: "PROFINET",
    0x8899: "Realtek",
    0x88A2: "ATA over Ethernet",
    0x88A4: "EtherCAT",
    0x88B5: "local experiment",
    0x88B6: "local experiment",
    0x88BA: "IEC 61850",
    0x88B8: "GOOSE",
    0x88C7: "802.11 preauthentication",
    0x88CC: "LLDP",
    0x88E1: "HomePlug",
    0x88E3: "MRP",
    0x88F7: "PTP",
    0x8902: "CFM",
    0x8906: "FCoE",
    0x890D: "TDLS",
    0x8912: "HomePlug",
    0x8914: "FCoE initialization",
    0x893A: "IEEE 1905.1",
    0x9000: "Ethernet loopback",
}
"""EtherTypes that encapsulate nothing, or no IP: they are common, and not reported."""


def read_ethernet(data: bytes, length: int) -> Inner:
    """Read an Ethernet header, or an IEEE 802.3 one, which has a length in place of the EtherType."""
    content, length = skip(14, data, length)
    ethertype = short_at(data, 12)
    if ethertype < LEAST_ETHERTYPE:
        # Padding up to 60 bytes is no content.
        return LLC, content[:ethertype], min(ethertype, length)
    return ethertype, content, length


def _read_with_ethertype(size: int, place: int, data: bytes, length: int) -> Inner:
    """Read a header of `size` bytes with an EtherType at byte `place`."""
    content, length = skip(size, data, length)
    ethertype = short_at(data, place)
    return ethertype, content, length


def _read_cooked(size: int, place: int, data: bytes, length: int) -> Inner:
    """Read a Linux cooked header: numbers below the lowest EtherType are those of linux/if_ether.h."""
    ethertype, content, length = _read_with_ethertype(size, place, data, length)
    if ethertype >= LEAST_ETHERTYPE:
        return ethertype, content, length
    # ETH_P_802_2, and frames of Novell, which have no 802.2 header.
    if ethertype == 4:
        return LLC, content, length
    raise NoTraffic("not IP")


def _read_as(content: int, size: int, data: bytes, length: int) -> Inner:
    """Skip a header of `size` bytes before content of a fixed kind."""
    return content, *skip(size, data, length)


def _read_raw(data: bytes, length: int) -> Inner:
    return version_of(data), data, length


def _read_tag(data: bytes, length: int) -> Inner:
    """Read a VLAN tag and all tags that follow it."""
    position = 2
    while len(data) >= position + 2:
        ethertype = short_at(data, position)
        position += 2
        if ethertype not in (VLAN, QINQ, QINQ_OLD, QINQ_OLDER):
            if ethertype < LEAST_ETHERTYPE:
                return LLC, data[position:][:ethertype], min(ethertype, length - position)
            return ethertype, data[position:], length - position
        position += 2
    raise Malformed("link header cut short")


def _read_llc(data: bytes, length: int) -> Inner:
    """Read an IEEE 802.2 header, with or without SNAP after it (RFC 1042)."""
    content, inner_length = skip(3, data, length)
    if data[:3] == b"\xaa\xaa\x03":
        content, inner_length = skip(5, content, inner_length)
        # RFC 1042, and 802.1H bridge tunnels: an EtherType. Other organizations number their own protocols.
        if data[3:6] in (b"\0\0\0", b"\0\0\xf8"):
            return short_at(data, 6), content, inner_length
        raise NoTraffic("SNAP")
    # The service access point of IP, and that of OSI, in which an NLPID follows.
    if data[:3] == b"\x06\x06\x03":
        return IPV4, content, inner_length
    if data[:3] == b"\xfe\xfe\x03" and content and content[0] in _NLPIDS:
        return _NLPIDS[content[0]], content[1:], inner_length - 1
    raise NoTraffic("802.2")


def _read_family(size: int, place: int, data: bytes, length: int) -> Inner:
    """Read a BSD header of `size` bytes with an address family at `place`, in either byte order."""
    content, length = skip(size, data, length)
    family = data[place : place + 4]
    number = min(int.from_bytes(family, "little"), int.from_bytes(family, "big"))
    if number not in _FAMILIES:
        raise Unread(f"address family {number}")
    return _FAMILIES[number], content, length


def _read_pflog(data: bytes, length: int) -> Inner:
    """Read the header of OpenBSD's packet filter, which states its length without padding."""
    skip(2, data, length)
    if data[1] not in _FAMILIES:
        raise Unread(f"address family {data[1]}")
    return _FAMILIES[data[1]], *skip((data[0] + 3) & ~3, data, length)


def _read_ppp(data: bytes, length: int) -> Inner:
    """Read a PPP frame (RFC 1661), with or without the header of HDLC-like framing (RFC 1662)."""
    start = 2 if data[:2] == b"\xff\x03" else 0
    return _read_ppp_protocol(*skip(start, data, length))


def _read_ppp_protocol(data: bytes, length: int) -> Inner:
    """Read a PPP protocol field, of one byte if it is compressed (RFC 1661, 6.5)."""
    skip(1, data, length)
    size = 1 if data[0] & 1 else 2
    content, length = skip(size, data, length)
    protocol = int.from_bytes(data[:size], "big")
    if protocol in _PPP_PROTOCOLS:
        return _PPP_PROTOCOLS[protocol], content, length
    if protocol >= _PPP_CONTROL:
        raise NoTraffic("PPP control")
    raise Unread(f"PPP protocol {protocol:#06x}")


def _read_hdlc(data: bytes, length: int) -> Inner:
    """Read PPP in HDLC-like framing, or Cisco HDLC, by the address (RFC 1547, 4.3.1)."""
    if data[:1] in (b"\x0f", b"\x8f"):
        return _read_with_ethertype(4, 2, data, length)
    return _read_ppp(data, length)


def _read_ppp_with_direction(data: bytes, length: int) -> Inner:
    """Read PPP after a byte for the direction, which precedes or replaces pppd's address byte."""
    content, length = skip(1, data, length)
    if content[:1] == b"\x03":
        return _read_ppp_protocol(*skip(1, content, length))
    return _read_hdlc(content, length)


def _read_pppoe(data: bytes, length: int) -> Inner:
    """Read a PPPoE header (RFC 2516, 4)."""
    content, length = skip(6, data, length)
    if data[0] != 0x11:
        raise Malformed("impossible PPPoE header")
    if data[1] != 0:
        raise NoTraffic("PPPoE discovery")
    stated = short_at(data, 4)
    return _read_ppp(content[:stated], min(stated, length))


def _read_frame_relay(data: bytes, length: int) -> Inner:
    """Read a Frame Relay header: RFC 2427, or Cisco's, which has an EtherType."""
    size = next((number + 1 for number, byte in enumerate(data[:4]) if byte & 1), 4)
    content, length = skip(size, data, length)
    if content[:1] != b"\x03":
        return _read_with_ethertype(2, 0, content, length)
    # A zero may pad the control field.
    content, length = skip(2 if content[1:2] == b"\0" else 1, content, length)
    skip(1, content, length)
    if content[0] in _NLPIDS:
        return _NLPIDS[content[0]], content[1:], length - 1
    if content[0] == 0x80:
        return _read_llc(b"\xaa\xaa\x03" + content[1:], length + 2)
    raise NoTraffic("Frame Relay")


def _read_token_ring(data: bytes, length: int) -> Inner:
    """Read an IEEE 802.5 header, with or without source routing."""
    content, length = skip(14, data, length)
    if data[8] & 0x80 and content:
        return LLC, *skip(content[0] & 0x1F, content, length)
    return LLC, content, length


_MACSEC_VERSION, _MACSEC_CHANNEL, _MACSEC_CHANGED = 0x80, 0x20, 0x0C
"""Bits of a MACsec tag (IEEE 802.1AE, 9.5): another version, a channel identifier, changed content."""


def _read_macsec(data: bytes, length: int) -> Inner:
    """Read a MACsec tag before content that is protected but not encrypted."""
    skip(6, data, length)
    if data[0] & _MACSEC_VERSION:
        raise Malformed("impossible MACsec header")
    if data[0] & _MACSEC_CHANGED:
        raise Unread("encrypted MACsec")
    size = 14 if data[0] & _MACSEC_CHANNEL else 6
    return _read_with_ethertype(size + 2, size, data, length)


def _read_mpls(data: bytes, length: int) -> Inner:
    """Read an MPLS label stack (RFC 3032), whose content is not named, and read only if unambiguous."""
    position = 0
    while len(data) >= position + 4:
        is_last = data[position + 2] & 1
        position += 4
        if is_last:
            break
    else:
        raise Malformed("link header cut short")
    content, length = data[position:], length - position
    if is_ip(content, length):
        return version_of(content), content, length
    # RFC 4448, 4.6: a pseudowire's control word may precede an Ethernet frame.
    if content[:1] and content[0] >> 4 == 0 and is_ethernet(content[4:], length - 4):
        return ETHERNET, content[4:], length - 4
    if is_ethernet(content, length):
        return ETHERNET, content, length
    raise Unread("MPLS content that is not IP")


def _read_nflog(data: bytes, length: int) -> Inner:
    """Read the attributes of Linux's netfilter log, in the byte order of the machine that captured."""
    skip(4, data, length)
    for attribute_at in (Struct("<HH").unpack_from, Struct(">HH").unpack_from):
        position = 4
        while position + 4 <= len(data):
            size, kind = attribute_at(data, position)
            if size < 4:
                break
            if kind == _NFLOG_PAYLOAD:
                content = data[position + 4 : position + size]
                return version_of(content), content, size - 4
            position += (size + 3) & ~3
    raise NoTraffic("a netfilter log without a packet")


_NFLOG_PAYLOAD = 9


def _read_pktap(data: bytes, length: int) -> Inner:
    """Read Apple's header of captures on several interfaces, which names the link type of its content.

    Its fields are in the byte order of the machine, which is little-endian on all that have it.
    """
    skip(_PKTAP_LEAST, data, length)
    size, record, linktype = (int.from_bytes(data[place : place + 4], "little") for place in (0, 4, 8))
    if size < _PKTAP_LEAST:
        raise Malformed("impossible PKTAP header")
    if record != _PKTAP_PACKET:
        raise NoTraffic("PKTAP without a packet")
    trailer = int.from_bytes(data[60:64], "little")
    content, length = skip(size, data, length)
    if 0 < trailer <= length:
        length -= trailer
        content = content[:length]
    return _read_inner_link(linktype, content, length)


_PKTAP_LEAST, _PKTAP_PACKET = 108, 1


def _read_user_2(data: bytes, length: int) -> Inner:
    """Read PKTAP under the number that macOS gives it; as that is for private use, it may be anything."""
    if int.from_bytes(data[:4], "little") == _PKTAP_LEAST and data[4:8] in (b"\0\0\0\0", b"\1\0\0\0"):
        return _read_pktap(data, length)
    raise Unread(link_type(149))


def _read_ppi(data: bytes, length: int) -> Inner:
    """Read a Per-Packet Information header, which names the link type of its content."""
    skip(8, data, length)
    size = int.from_bytes(data[2:4], "little")
    linktype = int.from_bytes(data[4:8], "little")
    if size < 8:
        raise Malformed("impossible PPI header")
    content, length = skip(size, data, length)
    if linktype == _IEEE_80211 and _ppi_has_check_sequence(data[8:size]):
        length -= 4
        content = content[: max(length, 0)]
    return _read_inner_link(linktype, content, length)


def _ppi_has_check_sequence(fields: bytes) -> bool:
    """Return True if the 802.11-Common field says that a frame check sequence ends the frame."""
    position = 0
    while position + 4 <= len(fields):
        kind = int.from_bytes(fields[position : position + 2], "little")
        size = int.from_bytes(fields[position + 2 : position + 4], "little")
        if kind == _PPI_80211_COMMON and position + 13 <= len(fields):
            return bool(fields[position + 12] & 1)
        position += 4 + size
    return False


_PPI_80211_COMMON = 2
_IEEE_80211 = 105
_WRAPPERS = frozenset({149, 192, 258})
"""Link types that name another link type. None of them may contain another one."""


def _read_inner_link(linktype: int, data: bytes, length: int) -> Inner:
    if linktype in _WRAPPERS:
        raise Malformed("a link type inside itself")
    return read_link(linktype, data, length)


def _unread(name: str, _data: bytes, _length: int) -> Inner:
    raise Unread(name)


LINK_TYPES: dict[int, Reader] = {
    0: partial(_read_family, 4, 0),
    1: read_ethernet,
    6: _read_token_ring,
    8: partial(_read_as, RAW_IP, 16),
    9: _read_hdlc,
    10: partial(_read_as, LLC, 13),
    12: _read_raw,
    14: _read_raw,
    50: _read_hdlc,
    51: _read_pppoe,
    100: _read_llc,
    101: _read_raw,
    104: partial(_read_with_ethertype, 4, 2),
    105: read_80211,
    106: lambda data, length: (LLC if data[:2] == b"\xaa\xaa" else RAW_IP, data, length),
    107: _read_frame_relay,
    108: partial(_read_family, 4, 0),
    109: partial(_read_family, 12, 0),
    113: partial(_read_cooked, 16, 14),
    117: _read_pflog,
    119: read_prism,
    122: partial(_read_as, LLC, 16),
    127: read_radiotap,
    149: _read_user_2,
    163: read_avs,
    166: _read_ppp_with_direction,
    192: _read_ppi,
    204: _read_ppp_with_direction,
    205: partial(_read_with_ethertype, 5, 3),
    206: lambda data, length: _read_frame_relay(*skip(1, data, length)),
    219: _read_mpls,
    228: _read_raw,
    229: _read_raw,
    239: _read_nflog,
    240: partial(_read_as, ETHERNET, 4),
    242: partial(_read_with_ethertype, 44, 40),
    258: _read_pktap,
    276: partial(_read_cooked, 20, 0),
    281: partial(_read_with_ethertype, 18, 16),
    282: partial(_read_as, ETHERNET, 4),
    284: partial(_read_with_ethertype, 18, 16),
    285: partial(_read_with_ethertype, 22, 20),
}
"""LINKTYPE_ number -> its reader."""

ETHERTYPES: dict[int, Reader] = {
    LLC: _read_llc,
    RAW_IP: _read_raw,
    VLAN: _read_tag,
    QINQ: _read_tag,
    QINQ_OLD: _read_tag,
    QINQ_OLDER: _read_tag,
    ETHERNET: read_ethernet,
    0x6559: _read_frame_relay,
    PPP: _read_ppp,
    MPLS: _read_mpls,
    MPLS_UPSTREAM: _read_mpls,
    PPPOE: _read_pppoe,
    # IEEE 802.1ah: a service identifier before a whole frame; Cisco's FabricPath: a tag before one.
    0x88E7: partial(_read_as, ETHERNET, 4),
    0x88E5: _read_macsec,
    0x8903: partial(_read_as, ETHERNET, 2),
    # Tags other than those of VLANs: Cisco's metadata and VN-Tag, HSR (IEC 62439-3), 802.1BR.
    0x8909: partial(_read_with_ethertype, 8, 6),
    0x8926: partial(_read_with_ethertype, 6, 4),
    0x892F: partial(_read_with_ethertype, 6, 4),
    0x893F: partial(_read_with_ethertype, 8, 6),
    NSH: read_nsh,
    WIRELESS: read_80211,
    ERSPAN_II: read_erspan_2,
    ERSPAN_III: read_erspan_3,
}
"""EtherType -> the reader of its content, other than IP."""


def link_type(number: int) -> str:
    """Return a link type's number and its name, as in `link type 189 (USB_LINUX)`."""
    name = LINK_TYPE_NAMES.get(number)
    return f"link type {number} ({name})" if name else f"link type {number}"


def read_link(linktype: int, data: bytes, length: int) -> Inner:
    """Read the link header of a captured packet. Raises MalformedPacket, UnsupportedLayer and NoTransport."""
    reader = LINK_TYPES.get(linktype)
    if reader is None:
        raise Unread(link_type(linktype))
    return reader(data, length)


def read_ethertype(ethertype: int, data: bytes, length: int) -> Inner:
    """Read the content of an EtherType other than IP's.

    Raises MalformedPacket, UnsupportedLayer and NoTransport.
    """
    reader = ETHERTYPES.get(ethertype)
    if reader is not None:
        return reader(data, length)
    ordinary = _ORDINARY_ETHERTYPES.get(ethertype)
    if ordinary is not None:
        raise NoTraffic(ordinary)
    if 0 <= ethertype < LEAST_ETHERTYPE:
        raise NoTraffic("not IP")
    raise Unread(f"EtherType {ethertype:#06x}")
