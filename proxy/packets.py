"""From a captured packet to the UDP datagram or the TCP segment in it.

Link layers are told apart by their LINKTYPE_ number; below UDP and TCP there are IPv4 (RFC 791) and IPv6
(RFC 8200) with extension headers. Fragments are put together. Checksums are not looked at: the sending
machine's own capture has them before the network card fills them in. A datagram quoted in an ICMP error is no
traffic.
"""

from __future__ import annotations

import socket
from collections import Counter
from struct import Struct

import msgspec

from kiebitz.proxy.fragments import Reassembly

RawPacket = tuple[int, int, bytes, int]
"""(ts_ns, linktype, data, wirelen): time in ns since 1970, LINKTYPE_ number, bytes captured, bytes sent."""

Datagram = tuple[bytes, bytes, int, int]
"""(flow, payload, missing, identification): what was sent from where to where, how many bytes the capture cut
off it, and the identification of its IP packet, 0 where it has none.

`flow` is as in the packet: source address, destination address (4 or 16 bytes each), source port,
destination port (2 bytes each, big-endian). That makes it a key that costs one slice; see `endpoints`.
"""

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
"""Flags of a TCP segment that matter here (RFC 9293, 3.1)."""


class Segment(msgspec.Struct, gc=False):
    """A TCP segment: its flow as that of a datagram, and of its header what tells where its bytes belong.

    The payload had `missing` more bytes, which the capture cut off. `flags` are the eight bits of the header;
    `window` is as it stands there, not scaled. `scale` is the window scale option of a SYN (RFC 7323, 2.2),
    None where there is none.
    """

    flow: bytes
    payload: bytes
    missing: int
    seq: int
    ack: int
    flags: int
    window: int
    scale: int | None = None


_ETHERNET = 1
# Ethernet, an IPv4 header without options, UDP: ethertype, version and header length, total length,
# identification, flags and fragment offset, protocol, UDP length.
_COMMON = Struct(">12xHBxHHHxB14xH").unpack_from
# Sequence and acknowledgment number, data offset and flags, window (RFC 9293, 3.1).
_TCP_HEADER = Struct(">IIHH").unpack_from
_SHORT = Struct(">H").unpack_from
_PORTS = Struct(">HH").unpack_from

# Link headers with an EtherType in them: LINKTYPE_ -> length, place of the EtherType.
# Ethernet, Linux cooked v1 and v2.
_WITH_ETHERTYPE = {_ETHERNET: (14, 12), 113: (16, 14), 276: (20, 0)}
# BSD loopback, in host byte order of whoever captured, and in network byte order.
_WITH_FAMILY = frozenset({0, 108})
# No header at all: raw IP (also as 12 and 14, its numbers on some systems), raw IPv4, raw IPv6.
_RAW = frozenset({101, 12, 14, 228, 229})

_IPV4, _IPV6 = 0x0800, 0x86DD
# IEEE 802.1Q, 802.1ad (QinQ), and two that were used before it.
_VLAN = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})
# AF_INET6 is 10 on Linux, 23 on Windows, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS.
_FAMILIES = {2: 4, 10: 6, 23: 6, 24: 6, 28: 6, 30: 6}

_UDP, _TCP = 17, 6
_FRAGMENT, _AUTHENTICATION = 44, 51
# Hop-by-hop, routing and destination options: RFC 8200, 4.3, 4.4, 4.6.
_OPTIONS = frozenset({0, 43, 60})
_PROTOCOL_NAMES = {1: "ICMP", 2: "IGMP", 58: "ICMPv6", 59: "no payload", 132: "SCTP"}


def endpoints(flow: bytes) -> tuple[str, str]:
    """Write source and destination of a flow as `ip:port`, an IPv6 address in brackets."""
    size = (len(flow) - 4) // 2
    source, destination = _PORTS(flow, 2 * size)
    if size == 4:
        return (
            f"{socket.inet_ntop(socket.AF_INET, flow[:4])}:{source}",
            f"{socket.inet_ntop(socket.AF_INET, flow[4:8])}:{destination}",
        )
    return (
        f"[{socket.inet_ntop(socket.AF_INET6, flow[:16])}]:{source}",
        f"[{socket.inet_ntop(socket.AF_INET6, flow[16:32])}]:{destination}",
    )


class _Flaw(Exception):
    """A packet is malformed; the text is the reason it is counted under."""


class PacketDecoder:
    """Decodes packets, one after another, and keeps the fragments between them.

    `ignored` counts packets that carry neither UDP nor TCP, by what they carry; `malformed` counts what no
    receiver would have accepted or what cannot be read, by reason. Whatever the bytes are, nothing is raised.
    """

    def __init__(self) -> None:
        self.ignored: Counter[str] = Counter()
        self.malformed: Counter[str] = Counter()
        self._fragments = Reassembly(self.malformed)

    def decode(self, linktype: int, data: bytes, wirelen: int, ts_ns: int) -> Datagram | Segment | None:
        """Give the datagram or segment that this packet carries or completes, or None.

        `data` is what was captured of the packet's `wirelen` bytes, `ts_ns` the time in ns since 1970.
        """
        if linktype == _ETHERNET and len(data) >= 42:
            # Nearly every packet is of this form, so it is checked as a whole; all others take the long way.
            ethertype, version_and_length, total, identification, fragment, protocol, length = _COMMON(data)
            if (
                ethertype == _IPV4
                and version_and_length == 0x45
                and not fragment & 0x3FFF
                and total <= len(data) - 14
            ):
                if protocol == _TCP and total >= 40:
                    seq, ack, offset_and_flags, window = _TCP_HEADER(data, 38)
                    start = 34 + (offset_and_flags >> 12) * 4
                    # A SYN's options are read on the long way.
                    if 54 <= start <= 14 + total and not offset_and_flags & SYN:
                        payload = data[start : 14 + total]
                        return Segment(data[26:38], payload, 0, seq, ack, offset_and_flags & 0xFF, window)
                elif protocol == _UDP and length + 20 == total >= 28:
                    return data[26:38], data[42 : 14 + total], 0, identification
        try:
            return self._link(linktype, data, max(wirelen, len(data)), ts_ns)
        except _Flaw as flaw:
            self.malformed[str(flaw)] += 1
            return None

    def close(self) -> None:
        """Count what is still in assembly as malformed; call it after the last packet."""
        self._fragments.close()

    def _link(self, linktype: int, data: bytes, wirelen: int, ts_ns: int) -> Datagram | Segment | None:
        if linktype in _WITH_ETHERTYPE:
            start, place = _WITH_ETHERTYPE[linktype]
            if len(data) < start:
                raise _Flaw("link header cut short")
            (ethertype,) = _SHORT(data, place)
            while ethertype in _VLAN:
                if len(data) < start + 4:
                    raise _Flaw("link header cut short")
                (ethertype,) = _SHORT(data, start + 2)
                start += 4
            version = {_IPV4: 4, _IPV6: 6}.get(ethertype, 0)
        elif linktype in _WITH_FAMILY:
            start = 4
            if len(data) < start:
                raise _Flaw("link header cut short")
            family = int.from_bytes(data[:4], "little")
            version = _FAMILIES.get(family) or _FAMILIES.get(int.from_bytes(data[:4], "big"), 0)
        elif linktype in _RAW:
            start = 0
            version = data[0] >> 4 if data else 0
        else:
            self.ignored[f"link type {linktype}"] += 1
            return None
        if version == 4:
            return self._ipv4(data, start, wirelen, ts_ns)
        if version == 6:
            return self._ipv6(data, start, wirelen, ts_ns)
        self.ignored["not IP"] += 1
        return None

    def _ipv4(self, data: bytes, start: int, wirelen: int, ts_ns: int) -> Datagram | Segment | None:
        if len(data) < start + 20:
            raise _Flaw("IP header cut short")
        header = (data[start] & 0x0F) * 4
        if data[start] >> 4 != 4 or header < 20:
            raise _Flaw("impossible IP header")
        # The network card was to cut this into packets (TSO) and to fill in the length of each.
        total = _SHORT(data, start + 2)[0] or wirelen - start
        if total < header:
            raise _Flaw("impossible IP header")
        if total > wirelen - start:
            raise _Flaw("packet shorter than its IP length")
        identification, fragment = _PORTS(data, start + 4)
        protocol = data[start + 9]
        addresses = data[start + 12 : start + 20]
        payload = data[start + header : start + total]
        length = total - header
        if fragment & 0x3FFF and protocol in (_UDP, _TCP):
            # RFC 791, 3.2: source, destination, protocol and identification say what belongs together.
            key = (addresses, protocol, identification)
            more = bool(fragment & 0x2000)
            whole = self._fragments.add(key, ts_ns, (fragment & 0x1FFF) * 8, more, length, payload, protocol)
            if whole is None:
                return None
            payload, length, _ = whole
        return self._transport(addresses, protocol, payload, length, identification)

    def _ipv6(self, data: bytes, start: int, wirelen: int, ts_ns: int) -> Datagram | Segment | None:
        if len(data) < start + 40:
            raise _Flaw("IP header cut short")
        if data[start] >> 4 != 6:
            raise _Flaw("impossible IP header")
        # A length of 0: a jumbogram (RFC 2675), or the network card was to fill it in.
        length = _SHORT(data, start + 4)[0] or wirelen - start - 40
        if length > wirelen - start - 40:
            raise _Flaw("packet shorter than its IP length")
        addresses = data[start + 8 : start + 40]
        return self._extensions(
            addresses, data[start + 6], data[start + 40 : start + 40 + length], length, ts_ns
        )

    def _extensions(
        self, addresses: bytes, header: int, payload: bytes, length: int, ts_ns: int
    ) -> Datagram | Segment | None:
        """Walk the extension headers of an IPv6 packet (RFC 8200, 4) to what it carries."""
        position = identification = 0
        assembled = False
        while True:
            if header in _OPTIONS:
                size = 8
                if len(payload) >= position + 2:
                    size = (payload[position + 1] + 1) * 8
            elif header == _AUTHENTICATION:
                # RFC 4302, 2.2: in units of 4 bytes, minus 2.
                size = 8
                if len(payload) >= position + 2:
                    size = (payload[position + 1] + 2) * 4
            elif header == _FRAGMENT:
                size = 8
            else:
                return self._transport(
                    addresses, header, payload[position:], length - position, identification
                )
            if position + size > length:
                raise _Flaw("impossible IPv6 extension header")
            if position + size > len(payload):
                raise _Flaw("IP header cut short")
            previous, header = header, payload[position]
            start = position
            position += size
            if previous != _FRAGMENT:
                continue
            (fragment,) = _SHORT(payload, start + 2)
            identification = int.from_bytes(payload[start + 4 : start + 8], "big")
            if not fragment & 0xFFF9:
                # RFC 6946: a fragment that is all of its packet is processed on its own.
                continue
            if assembled:
                raise _Flaw("impossible fragment")
            # RFC 8200, 4.5: only the first fragment's next header counts, so all kinds have to be kept.
            whole = self._fragments.add(
                (addresses, identification),
                ts_ns,
                fragment & 0xFFF8,
                bool(fragment & 1),
                length - position,
                payload[position:],
                header,
            )
            if whole is None:
                return None
            payload, length, header = whole
            position = 0
            assembled = True

    def _transport(
        self, addresses: bytes, protocol: int, payload: bytes, length: int, identification: int
    ) -> Datagram | Segment | None:
        """Read what IP carries. `payload` is what was captured of its `length` bytes."""
        if protocol == _UDP:
            return _datagram(addresses, payload, length, identification)
        if protocol == _TCP:
            return _segment(addresses, payload, length)
        self.ignored[_PROTOCOL_NAMES.get(protocol) or f"IP protocol {protocol}"] += 1
        return None


def _datagram(addresses: bytes, payload: bytes, length: int, identification: int) -> Datagram:
    """Read a UDP header (RFC 768)."""
    if length < 8:
        raise _Flaw("impossible UDP length")
    if len(payload) < 8:
        raise _Flaw("UDP header cut short")
    (stated,) = _SHORT(payload, 4)
    if stated == 0 and len(addresses) == 32:
        # RFC 2675, 4: it does not fit into the field, so it is what IP says.
        stated = length
    if not 8 <= stated <= length:
        # No receiver takes it, as it says that bytes belong to it which are not there.
        raise _Flaw("impossible UDP length")
    content = payload[8:stated]
    return addresses + payload[:4], content, stated - 8 - len(content), identification


def _segment(addresses: bytes, payload: bytes, length: int) -> Segment:
    """Read a TCP header (RFC 9293, 3.1)."""
    if length < 20:
        raise _Flaw("impossible TCP header")
    if len(payload) < 20:
        raise _Flaw("TCP header cut short")
    seq, ack, offset_and_flags, window = _TCP_HEADER(payload, 4)
    header = (offset_and_flags >> 12) * 4
    if not 20 <= header <= length:
        raise _Flaw("impossible TCP header")
    content = payload[header:length]
    # The snap length may have cut off options, too.
    missing = length - header - len(content)
    scale = _window_scale(payload[20:header]) if offset_and_flags & SYN else None
    flow = addresses + payload[:4]
    return Segment(flow, content, missing, seq, ack, offset_and_flags & 0xFF, window, scale)


def _window_scale(options: bytes) -> int | None:
    """The shift count of a window scale option, at most 14 (RFC 7323, 2.3)."""
    position = 0
    while position < len(options) and options[position] != 0:
        if options[position] == 1:
            position += 1
            continue
        length = options[position + 1] if position + 1 < len(options) else 0
        if length < 2:
            break
        if options[position : position + 2] == b"\x03\x03" and position + 2 < len(options):
            return min(options[position + 2], 14)
        position += length
    return None
