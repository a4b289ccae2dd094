"""Readers that remove one layer from a packet: Ethernet, point-to-point links and 802.11; their results.

A layer names its content by an EtherType, even if its own header uses other numbers. So one table of
EtherTypes leads from every link layer and every tunnel to IP.

Ethernet and its relatives: IEEE 802.3, VLAN tags, 802.2, token ring, MACsec, and MPLS.

Point-to-point links: PPP, HDLC, PPPoE and Frame Relay.

IEEE 802.11 frames, and the radio headers that captures in monitor mode put before them.

Only unencrypted data frames are read; a frame that the network encrypts is counted, as its key is not known.
Clause numbers are those of IEEE 802.11-2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

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


@cache
def layer_names(kind: str) -> dict[int, str]:
    """Return the names of a kind of numbers: a table of `layer_names.toml`."""
    # Slow to import, and most captures have no such layer.
    import tomllib

    tables = tomllib.loads(Path(__file__).with_name("layer_names.toml").read_text(encoding="utf-8"))
    return {int(number, 0): name for number, name in tables[kind].items()}


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


_PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: MPLS_UPSTREAM}
_PPP_CONTROL = 0x4000
"""The lowest PPP protocol number of protocols that carry no packets: RFC 1661, 2."""


def read_ppp(data: bytes, length: int) -> Inner:
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
        raise NoTransport("PPP control")
    raise UnsupportedLayer(f"PPP protocol {protocol:#06x}")


def read_hdlc(data: bytes, length: int) -> Inner:
    """Read PPP in HDLC-like framing, or Cisco HDLC, by the address (RFC 1547, 4.3.1)."""
    if data[:1] in (b"\x0f", b"\x8f"):
        return read_with_ethertype(4, 2, data, length)
    return read_ppp(data, length)


def read_ppp_with_direction(data: bytes, length: int) -> Inner:
    """Read PPP after a byte for the direction, which precedes or replaces pppd's address byte."""
    content, length = skip(1, data, length)
    if content[:1] == b"\x03":
        return _read_ppp_protocol(*skip(1, content, length))
    return read_hdlc(content, length)


def read_pppoe(data: bytes, length: int) -> Inner:
    """Read a PPPoE header (RFC 2516, 4)."""
    content, length = skip(6, data, length)
    if data[0] != 0x11:
        raise MalformedPacket("impossible PPPoE header")
    if data[1] != 0:
        raise NoTransport("PPPoE discovery")
    stated = short_at(data, 4)
    return read_ppp(content[:stated], min(stated, length))


def read_frame_relay(data: bytes, length: int) -> Inner:
    """Read a Frame Relay header: RFC 2427, or Cisco's, which has an EtherType."""
    size = next((number + 1 for number, byte in enumerate(data[:4]) if byte & 1), 4)
    content, length = skip(size, data, length)
    if content[:1] != b"\x03":
        return read_with_ethertype(2, 0, content, length)
    # A zero may pad the control field.
    content, length = skip(2 if content[1:2] == b"\0" else 1, content, length)
    skip(1, content, length)
    if content[0] in NLPIDS:
        return NLPIDS[content[0]], content[1:], length - 1
    if content[0] == 0x80:
        return read_llc(b"\xaa\xaa\x03" + content[1:], length + 2)
    raise NoTransport("Frame Relay")


_DATA = 2
"""Type of a frame that carries data (9.2.4.1.3)."""

_TYPES = ("802.11 management", "802.11 control", "802.11 data", "802.11 extension")
_NO_DATA, _QOS = 0x4, 0x8
"""Bits of a data frame's subtype."""

_BOTH_DS, _MORE_FRAGMENTS, _PROTECTED, _HT_CONTROL = 0x03, 0x04, 0x40, 0x80
"""Flags in the second byte of the frame control field (9.2.4.1)."""

_IS_AGGREGATE = 0x80
"""Bit of the QoS control field: the frame is an aggregate (9.2.4.5)."""

_FRAGMENT_NUMBER = 0x0F
_CHECK_SEQUENCE_LENGTH = 4

_FLAGS_PRESENT, _TSFT_PRESENT, _MORE_PRESENT = 1 << 1, 1 << 0, 1 << 31
"""Bits of radiotap's it_present (https://www.radiotap.org)."""

_HAS_CHECK_SEQUENCE, _IS_PADDED, _IS_DAMAGED = 0x10, 0x20, 0x40
"""Bits of radiotap's flags."""

_AVS_MAGIC = 0x80211000
_PRISM_LENGTH = 144


def read_80211(data: bytes, length: int, is_padded: bool = False) -> Inner:
    """Read an 802.11 header; if `is_padded`, its content begins at a multiple of four bytes."""
    skip(2, data, length)
    kind, subtype = data[0] >> 2 & 3, data[0] >> 4
    if data[0] & 3:
        raise MalformedPacket("impossible 802.11 header")
    if kind != _DATA or subtype & _NO_DATA:
        raise NoTransport(_TYPES[kind])
    flags = data[1]
    size = 30 if flags & _BOTH_DS == _BOTH_DS else 24
    control = size
    if subtype & _QOS:
        size += 6 if flags & _HT_CONTROL else 2
    content, length = skip(size + (-size % 4 if is_padded else 0), data, length)
    if flags & _PROTECTED:
        raise UnsupportedLayer("encrypted 802.11 data")
    if flags & _MORE_FRAGMENTS or data[22] & _FRAGMENT_NUMBER:
        raise UnsupportedLayer("802.11 fragments")
    if subtype & _QOS and data[control] & _IS_AGGREGATE:
        return AGGREGATE, content, length
    return LLC, content, length


def subframes(data: bytes, length: int) -> Iterator[Inner]:
    """Yield the frames in an A-MSDU (9.3.2.2): each with two addresses, its length, and padding."""
    position = 0
    while position + 14 < min(len(data), length):
        size = short_at(data, position + 12)
        start = position + 14
        yield LLC, data[start : start + size], min(size, length - start)
        position = start + size + -(14 + size) % 4


def read_radiotap(data: bytes, length: int) -> Inner:
    """Read a radiotap header, of which only the flags are used."""
    skip(8, data, length)
    size = int.from_bytes(data[2:4], "little")
    if data[0] != 0 or size < 8:
        raise MalformedPacket("impossible radiotap header")
    frame, length = skip(size, data, length)
    flags = _radiotap_flags(data[:size])
    if flags & _IS_DAMAGED:
        raise MalformedPacket("802.11 frame that was received with errors")
    if flags & _HAS_CHECK_SEQUENCE:
        length -= _CHECK_SEQUENCE_LENGTH
        frame = frame[: max(length, 0)]
    return read_80211(frame, length, bool(flags & _IS_PADDED))


def _radiotap_flags(header: bytes) -> int:
    """Return the flags in a radiotap header, 0 if there are none."""
    present = int.from_bytes(header[4:8], "little")
    position, word = 8, present
    # Further words of it_present; their fields come after those of the first word.
    while word & _MORE_PRESENT and position + 4 <= len(header):
        word = int.from_bytes(header[position : position + 4], "little")
        position += 4
    if present & _TSFT_PRESENT:
        # Eight bytes at a multiple of eight.
        position += -position % 8 + 8
    return header[position] if present & _FLAGS_PRESENT and position < len(header) else 0


def read_avs(data: bytes, length: int) -> Inner:
    """Read the header of AbsoluteValue Systems: a magic number and its own length."""
    skip(8, data, length)
    size = int.from_bytes(data[4:8], "big")
    if not _is_avs(data) or size < 8:
        raise MalformedPacket("impossible AVS header")
    return read_80211(*skip(size, data, length))


def read_prism(data: bytes, length: int) -> Inner:
    """Read a Prism header, in the byte order of the machine that captured; some drivers use AVS instead."""
    skip(8, data, length)
    if _is_avs(data):
        return read_avs(data, length)
    if _PRISM_LENGTH not in (int.from_bytes(data[4:8], "little"), int.from_bytes(data[4:8], "big")):
        raise MalformedPacket("impossible Prism header")
    return read_80211(*skip(_PRISM_LENGTH, data, length))


def _is_avs(data: bytes) -> bool:
    return int.from_bytes(data[:4], "big") & 0xFFFFF000 == _AVS_MAGIC
