"""Link layers: readers by the LINKTYPE_ number of a capture, and by the EtherType that a layer names.

The numbers are those of https://www.tcpdump.org/linktypes.html and of the IEEE's list of EtherTypes.
"""

from __future__ import annotations

from functools import partial
from struct import Struct

from kiebitz.proxy.capture.layers import (
    ERSPAN_II,
    ERSPAN_III,
    ETHERNET,
    IPV4,
    IPV6,
    LLC,
    MIN_ETHERTYPE,
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
    LayerReader,
    MalformedPacket,
    NoTransport,
    UnsupportedLayer,
    layer_names,
    read_80211,
    read_avs,
    read_ethernet,
    read_fixed,
    read_frame_relay,
    read_hdlc,
    read_llc,
    read_macsec,
    read_mpls,
    read_ppp,
    read_ppp_with_direction,
    read_pppoe,
    read_prism,
    read_radiotap,
    read_token_ring,
    read_vlan_tags,
    read_with_ethertype,
    skip,
    version_of,
)
from kiebitz.proxy.capture.tunnels import read_erspan_2, read_erspan_3, read_nsh

# AF_INET6 is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS.
_FAMILIES = {2: IPV4, 10: IPV6, 23: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}


def _read_cooked(size: int, place: int, data: bytes, length: int) -> Inner:
    """Read a Linux cooked header: numbers below the lowest EtherType are those of linux/if_ether.h."""
    ethertype, content, length = read_with_ethertype(size, place, data, length)
    if ethertype >= MIN_ETHERTYPE:
        return ethertype, content, length
    # ETH_P_802_2, and frames of Novell, which have no 802.2 header.
    if ethertype == 4:
        return LLC, content, length
    raise NoTransport("not IP")


def _read_raw(data: bytes, length: int) -> Inner:
    return version_of(data), data, length


def _read_family(size: int, place: int, data: bytes, length: int) -> Inner:
    """Read a BSD header of `size` bytes with an address family at `place`, in either byte order."""
    content, length = skip(size, data, length)
    family = data[place : place + 4]
    number = min(int.from_bytes(family, "little"), int.from_bytes(family, "big"))
    if number not in _FAMILIES:
        raise UnsupportedLayer(f"address family {number}")
    return _FAMILIES[number], content, length


def _read_pflog(data: bytes, length: int) -> Inner:
    """Read the header of OpenBSD's packet filter, which states its length without padding."""
    skip(2, data, length)
    if data[1] not in _FAMILIES:
        raise UnsupportedLayer(f"address family {data[1]}")
    return _FAMILIES[data[1]], *skip((data[0] + 3) & ~3, data, length)


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
    raise NoTransport("a netfilter log without a packet")


_NFLOG_PAYLOAD = 9


def _read_pktap(data: bytes, length: int) -> Inner:
    """Read Apple's header of captures on several interfaces, which names the link type of its content.

    Its fields are in the byte order of the machine, which is little-endian on all that have it.
    """
    skip(_PKTAP_MIN, data, length)
    size, record, linktype = (int.from_bytes(data[place : place + 4], "little") for place in (0, 4, 8))
    if size < _PKTAP_MIN:
        raise MalformedPacket("impossible PKTAP header")
    if record != _PKTAP_PACKET:
        raise NoTransport("PKTAP without a packet")
    trailer = int.from_bytes(data[60:64], "little")
    content, length = skip(size, data, length)
    if 0 < trailer <= length:
        length -= trailer
        content = content[:length]
    return _read_inner_link(linktype, content, length)


_PKTAP_MIN, _PKTAP_PACKET = 108, 1


def _read_user_2(data: bytes, length: int) -> Inner:
    """Read PKTAP under the number that macOS gives it; as that is for private use, it may be anything."""
    if int.from_bytes(data[:4], "little") == _PKTAP_MIN and data[4:8] in (b"\0\0\0\0", b"\1\0\0\0"):
        return _read_pktap(data, length)
    raise UnsupportedLayer(link_type(149))


def _read_ppi(data: bytes, length: int) -> Inner:
    """Read a Per-Packet Information header, which names the link type of its content."""
    skip(8, data, length)
    size = int.from_bytes(data[2:4], "little")
    linktype = int.from_bytes(data[4:8], "little")
    if size < 8:
        raise MalformedPacket("impossible PPI header")
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
        raise MalformedPacket("a link type inside itself")
    return read_link(linktype, data, length)


def _unread(name: str, _data: bytes, _length: int) -> Inner:
    raise UnsupportedLayer(name)


LINK_TYPES: dict[int, LayerReader] = {
    0: partial(_read_family, 4, 0),
    1: read_ethernet,
    6: read_token_ring,
    8: partial(read_fixed, RAW_IP, 16),
    9: read_hdlc,
    10: partial(read_fixed, LLC, 13),
    12: _read_raw,
    14: _read_raw,
    50: read_hdlc,
    51: read_pppoe,
    100: read_llc,
    101: _read_raw,
    104: partial(read_with_ethertype, 4, 2),
    105: read_80211,
    106: lambda data, length: (LLC if data[:2] == b"\xaa\xaa" else RAW_IP, data, length),
    107: read_frame_relay,
    108: partial(_read_family, 4, 0),
    109: partial(_read_family, 12, 0),
    113: partial(_read_cooked, 16, 14),
    117: _read_pflog,
    119: read_prism,
    122: partial(read_fixed, LLC, 16),
    127: read_radiotap,
    149: _read_user_2,
    163: read_avs,
    166: read_ppp_with_direction,
    192: _read_ppi,
    204: read_ppp_with_direction,
    205: partial(read_with_ethertype, 5, 3),
    206: lambda data, length: read_frame_relay(*skip(1, data, length)),
    219: read_mpls,
    228: _read_raw,
    229: _read_raw,
    239: _read_nflog,
    240: partial(read_fixed, ETHERNET, 4),
    242: partial(read_with_ethertype, 44, 40),
    258: _read_pktap,
    276: partial(_read_cooked, 20, 0),
    281: partial(read_with_ethertype, 18, 16),
    282: partial(read_fixed, ETHERNET, 4),
    284: partial(read_with_ethertype, 18, 16),
    285: partial(read_with_ethertype, 22, 20),
}
"""LINKTYPE_ number -> its reader."""

ETHERTYPES: dict[int, LayerReader] = {
    LLC: read_llc,
    RAW_IP: _read_raw,
    VLAN: read_vlan_tags,
    QINQ: read_vlan_tags,
    QINQ_OLD: read_vlan_tags,
    QINQ_OLDER: read_vlan_tags,
    ETHERNET: read_ethernet,
    0x6559: read_frame_relay,
    PPP: read_ppp,
    MPLS: read_mpls,
    MPLS_UPSTREAM: read_mpls,
    PPPOE: read_pppoe,
    # IEEE 802.1ah: a service identifier before a whole frame; Cisco's FabricPath: a tag before one.
    0x88E7: partial(read_fixed, ETHERNET, 4),
    0x88E5: read_macsec,
    0x8903: partial(read_fixed, ETHERNET, 2),
    # Tags other than those of VLANs: Cisco's metadata and VN-Tag, HSR (IEC 62439-3), 802.1BR.
    0x8909: partial(read_with_ethertype, 8, 6),
    0x8926: partial(read_with_ethertype, 6, 4),
    0x892F: partial(read_with_ethertype, 6, 4),
    0x893F: partial(read_with_ethertype, 8, 6),
    NSH: read_nsh,
    WIRELESS: read_80211,
    ERSPAN_II: read_erspan_2,
    ERSPAN_III: read_erspan_3,
}
"""EtherType -> the reader of its content, other than IP."""


def link_type(number: int) -> str:
    """Return a link type's number and its name, as in `link type 189 (USB_LINUX)`."""
    name = layer_names("link types").get(number)
    return f"link type {number} ({name})" if name else f"link type {number}"


def read_link(linktype: int, data: bytes, length: int) -> Inner:
    """Read the link header of a captured packet. Raises MalformedPacket, UnsupportedLayer and NoTransport."""
    reader = LINK_TYPES.get(linktype)
    if reader is None:
        raise UnsupportedLayer(link_type(linktype))
    return reader(data, length)


def read_ethertype(ethertype: int, data: bytes, length: int) -> Inner:
    """Read the content of an EtherType other than IP's.

    Raises MalformedPacket, UnsupportedLayer and NoTransport.
    """
    reader = ETHERTYPES.get(ethertype)
    if reader is not None:
        return reader(data, length)
    ordinary = layer_names("ordinary EtherTypes").get(ethertype)
    if ordinary is not None:
        raise NoTransport(ordinary)
    if 0 <= ethertype < MIN_ETHERTYPE:
        raise NoTransport("not IP")
    raise UnsupportedLayer(f"EtherType {ethertype:#06x}")
