"""Packet decoding: from a captured packet to its UDP datagram or TCP segment.

`link_layers` and `tunnels` lead to IPv4 (RFC 791) and IPv6 (RFC 8200), whose extension headers and fragments
are read here. The content of a tunnel has the addresses of the inner packet. Checksums are not verified: the
sending machine's own capture has them before the network card fills them in. A datagram quoted in an ICMP
error is not decoded.
"""

from __future__ import annotations

import socket
from collections import Counter
from struct import Struct

import msgspec

from kiebitz.proxy.capture.fragments import FragmentReassembler
from kiebitz.proxy.capture.layers import (
    AGGREGATE,
    IPV4,
    IPV6,
    Inner,
    MalformedPacket,
    NoTransport,
    UnsupportedLayer,
    subframes,
)
from kiebitz.proxy.capture.link_layers import read_ethertype, read_link
from kiebitz.proxy.capture.tunnels import IP_PROTOCOLS, UDP_TUNNELS, read_ip_protocol

RawPacket = tuple[int, int, bytes, int]
"""(ts_ns, linktype, data, wirelen): time in ns since 1970, LINKTYPE_ number, bytes captured, number of bytes
sent.
"""

Datagram = tuple[bytes, bytes, int, int]
"""(flow, payload, missing, identification): its flow, its captured payload, the number of payload bytes not
captured, and the identification of its IP packet, 0 if it has none.

`flow` is as in the packet: source address, destination address (4 or 16 bytes each), source port, destination
port (2 bytes each, big-endian). That makes it a key that costs one slice; see `endpoints`.
"""

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
"""The relevant flags of a TCP segment (RFC 9293, 3.1)."""


class Segment(msgspec.Struct, gc=False):
    """A TCP segment.

    Attributes:
        flow: Its flow, as that of a datagram.
        payload: The captured payload; always empty with a RST.
        missing: Number of payload bytes that were not captured; 0 with a RST.
        seq: Sequence number.
        ack: Acknowledgment number.
        flags: The eight flag bits of the header.
        window: Window as in the header, unscaled.
        scale: Window scale option of a SYN (RFC 7323, 2.2), None without it.
        reset_text: Diagnostic text in a RST (RFC 9293, 3.5.3), which is not part of the stream.
    """

    flow: bytes
    payload: bytes
    missing: int
    seq: int
    ack: int
    flags: int
    window: int
    scale: int | None = None
    reset_text: str = ""


_MAX_LAYERS = 16
"""Maximum number of layers of a packet, those of IP included; a stack of VLAN tags or MPLS labels is one."""

_MAX_UDP_LENGTH = 65_535
"""Maximum length in bytes that fits into the field of a UDP header."""

_MAX_RESET_TEXT = 200
"""Maximum number of characters kept of a RST's text."""

_ETHERNET = 1
# Ethernet, an IPv4 header without options, UDP: ethertype, version and header length, total length,
# identification, flags and fragment offset, protocol, UDP destination port, UDP length.
_COMMON = Struct(">12xHBxHHHxB12xHH").unpack_from
# Sequence and acknowledgment number, data offset and flags, window (RFC 9293, 3.1).
_TCP_HEADER = Struct(">IIHH").unpack_from
_SHORT = Struct(">H").unpack_from
_PORTS = Struct(">HH").unpack_from

_UDP, _TCP = 17, 6
_FRAGMENT, _AUTHENTICATION = 44, 51
# Hop-by-hop, routing and destination options: RFC 8200, 4.3, 4.4, 4.6.
_OPTIONS = frozenset({0, 43, 60})
_REASSEMBLED = frozenset({_UDP, _TCP, _AUTHENTICATION, *IP_PROTOCOLS})
"""IP protocols whose IPv4 fragments are reassembled."""

_Packet = tuple[bytes, int, bytes, int, int]
"""An IP packet: addresses, protocol, captured payload, length of the payload, identification."""


def endpoints(flow: bytes) -> tuple[str, str]:
    """Return source and destination of a flow as `ip:port`, an IPv6 address in brackets."""
    size = (len(flow) - 4) // 2
    source, destination = _PORTS(flow, 2 * size)
    family, form = (socket.AF_INET, "{}:{}") if size == 4 else (socket.AF_INET6, "[{}]:{}")
    client, server = (socket.inet_ntop(family, flow[start : start + size]) for start in (0, size))
    return form.format(client, source), form.format(server, destination)


class PacketDecoder:
    """A packet decoder that keeps fragments between packets. No input makes it raise.

    Attributes:
        ignored: Number of packets that carry neither UDP nor TCP, such as ARP, by kind.
        unread: Number of packets that may carry UDP or TCP in an unsupported encapsulation, by encapsulation.
        malformed: Number of packets that no receiver would accept or that cannot be read, by reason.
        rest: Further datagrams and segments of the latest packet, if it had several.
    """

    def __init__(self) -> None:
        self.ignored: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.malformed: Counter[str] = Counter()
        self.rest: list[Datagram | Segment] = []
        self._fragments = FragmentReassembler(self.malformed)
        self._frame = b""

    def decode(self, linktype: int, data: bytes, wirelen: int, ts_ns: int) -> Datagram | Segment | None:
        """Return the datagram or segment that this packet contains or completes, or None.

        Args:
            linktype: LINKTYPE_ number of the packet.
            data: The captured bytes.
            wirelen: Length of the packet on the wire.
            ts_ns: Time in ns since 1970.
        """
        if linktype == _ETHERNET and len(data) >= 42:
            # Fast path: nearly every packet has this form, so it is checked as a whole.
            ethertype, version_and_length, total, number, fragment, protocol, port, length = _COMMON(data)
            if (
                ethertype == IPV4
                and version_and_length == 0x45
                and not fragment & 0x3FFF
                and total <= len(data) - 14
            ):
                if protocol == _TCP and total >= 40:
                    seq, ack, offset_and_flags, window = _TCP_HEADER(data, 38)
                    start = 34 + (offset_and_flags >> 12) * 4
                    # A SYN's options and a RST's text are read on the slow path.
                    if 54 <= start <= 14 + total and not offset_and_flags & (SYN | RST):
                        payload = data[start : 14 + total]
                        return Segment(data[26:38], payload, 0, seq, ack, offset_and_flags & 0xFF, window)
                elif protocol == _UDP and length + 20 == total >= 28 and port not in UDP_TUNNELS:
                    return data[26:38], data[42 : 14 + total], 0, number
        self._frame = data
        try:
            return self._read(read_link(linktype, data, max(wirelen, len(data))), ts_ns, _MAX_LAYERS)
        except (MalformedPacket, UnsupportedLayer, NoTransport) as error:
            self._count(error)
            return None

    def close(self) -> None:
        """Count incomplete packets as malformed; call this after the last packet."""
        self._fragments.close()

    def _read(self, inner: Inner, ts_ns: int, layers: int) -> Datagram | Segment | None:
        """Remove layers until there is a datagram or a segment; return None while it is incomplete."""
        for left in range(layers, 0, -1):
            ethertype, data, length = inner
            if ethertype == AGGREGATE:
                return self._read_each(data, length, ts_ns, left - 1)
            if ethertype not in (IPV4, IPV6):
                inner = read_ethertype(ethertype, data, length)
                continue
            read_ip = self._ipv4 if ethertype == IPV4 else self._ipv6
            packet = read_ip(data, length, ts_ns)
            if packet is None:
                return None
            addresses, protocol, payload, length, identification = packet
            if protocol == _TCP:
                return _read_segment(addresses, payload, length)
            if protocol == _UDP:
                datagram = _read_datagram(addresses, payload, length, identification)
                tunnelled = _tunnel_content(datagram)
                if tunnelled is None:
                    return datagram
                inner = tunnelled
            else:
                inner = read_ip_protocol(protocol, payload, length)
        raise MalformedPacket(f"more than {_MAX_LAYERS} layers")

    def _read_each(self, data: bytes, length: int, ts_ns: int, layers: int) -> Datagram | Segment | None:
        """Read the frames of an aggregate; return the first one's content, and put others into `rest`."""
        inner = None
        for inner in subframes(data, length):
            try:
                sent = self._read(inner, ts_ns, layers)
            except (MalformedPacket, UnsupportedLayer, NoTransport) as error:
                self._count(error)
            else:
                if sent is not None:
                    self.rest.append(sent)
        if inner is None:
            raise MalformedPacket("link header cut short")
        return self.rest.pop(0) if self.rest else None

    def _count(self, error: MalformedPacket | UnsupportedLayer | NoTransport) -> None:
        counter = {MalformedPacket: self.malformed, UnsupportedLayer: self.unread, NoTransport: self.ignored}[
            type(error)
        ]
        counter[str(error)] += 1

    def _ipv4(self, data: bytes, wirelen: int, ts_ns: int) -> _Packet | None:
        if len(data) < 20:
            raise MalformedPacket("IP header cut short")
        header = (data[0] & 0x0F) * 4
        if data[0] >> 4 != 4 or header < 20:
            raise MalformedPacket("impossible IP header")
        total = self._length(_SHORT(data, 2)[0], data, wirelen)
        if total < header:
            raise MalformedPacket("impossible IP header")
        identification, fragment = _PORTS(data, 4)
        protocol = data[9]
        addresses = data[12:20]
        payload = data[header:total]
        length = total - header
        if fragment & 0x3FFF and protocol in _REASSEMBLED:
            # RFC 791, 3.2: source, destination, protocol and identification identify the packet.
            key = (addresses, protocol, identification)
            more = bool(fragment & 0x2000)
            whole = self._fragments.add(key, ts_ns, (fragment & 0x1FFF) * 8, more, length, payload, protocol)
            if whole is None:
                return None
            payload, length, _ = whole
        if protocol == _AUTHENTICATION:
            protocol, payload, length = _skip_authentication(payload, length)
        return addresses, protocol, payload, length, identification

    def _ipv6(self, data: bytes, wirelen: int, ts_ns: int) -> _Packet | None:
        if len(data) < 40:
            raise MalformedPacket("IP header cut short")
        if data[0] >> 4 != 6:
            raise MalformedPacket("impossible IP header")
        stated = _SHORT(data, 4)[0]
        length = self._length(stated and stated + 40, data, wirelen) - 40
        return self._extensions(data[8:40], data[6], data[40 : 40 + length], length, ts_ns)

    def _length(self, stated: int, data: bytes, wirelen: int) -> int:
        """Return the length of an IP packet whose header states a length.

        A length of 0 is a jumbogram (RFC 2675), or the network card was to split the packet (TSO) and to fill
        in the length of each part.

        A length beyond `wirelen` is right if the captured frame ends with the packet: a truncated capture may
        give the captured length as the original one. Otherwise a header before the packet, such as PPPoE's,
        has ended it, and the bytes after that end were never sent.
        """
        if stated == 0 or (stated > wirelen and not self._frame.endswith(data)):
            return wirelen
        return stated

    def _extensions(
        self, addresses: bytes, header: int, payload: bytes, length: int, ts_ns: int
    ) -> _Packet | None:
        """Walk the extension headers of an IPv6 packet (RFC 8200, 4) to its content."""
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
                return addresses, header, payload[position:], length - position, identification
            if position + size > length:
                raise MalformedPacket("impossible IPv6 extension header")
            if position + size > len(payload):
                raise MalformedPacket("IP header cut short")
            previous, header = header, payload[position]
            start = position
            position += size
            if previous != _FRAGMENT:
                continue
            (fragment,) = _SHORT(payload, start + 2)
            identification = int.from_bytes(payload[start + 4 : start + 8], "big")
            if not fragment & 0xFFF9:
                # RFC 6946: a fragment that is a whole packet is processed on its own.
                continue
            if assembled:
                raise MalformedPacket("impossible fragment")
            # RFC 8200, 4.5: only the first fragment's next header counts, so fragments of all kinds are kept.
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


def _skip_authentication(payload: bytes, length: int) -> tuple[int, bytes, int]:
    """Skip an IPv4 authentication header (RFC 4302, 2.2); return protocol, payload and length after it."""
    if len(payload) < 2:
        raise MalformedPacket("IP header cut short")
    size = (payload[1] + 2) * 4
    if size > length:
        raise MalformedPacket("impossible authentication header")
    return payload[0], payload[size:], length - size


def _tunnel_content(datagram: Datagram) -> Inner | None:
    """Return the content of a tunnel's datagram, or None for any other datagram."""
    flow, payload, missing, _ = datagram
    reader = UDP_TUNNELS.get(_SHORT(flow, len(flow) - 2)[0])
    return reader(payload, len(payload) + missing) if reader is not None else None


def _read_datagram(addresses: bytes, payload: bytes, length: int, identification: int) -> Datagram:
    """Read a UDP header (RFC 768)."""
    if length < 8:
        raise MalformedPacket("impossible UDP length")
    if len(payload) < 8:
        raise MalformedPacket("UDP header cut short")
    (stated,) = _SHORT(payload, 4)
    if stated == 0 and (len(addresses) == 32 or length > _MAX_UDP_LENGTH):
        # RFC 2675, 4, and Linux's BIG TCP: the length does not fit into the field, so that of IP counts.
        stated = length
    if not 8 <= stated <= length:
        # No receiver accepts it, as it claims bytes that are not there.
        raise MalformedPacket("impossible UDP length")
    content = payload[8:stated]
    return addresses + payload[:4], content, stated - 8 - len(content), identification


def _read_segment(addresses: bytes, payload: bytes, length: int) -> Segment:
    """Read a TCP header (RFC 9293, 3.1)."""
    if length < 20:
        raise MalformedPacket("impossible TCP header")
    if len(payload) < 20:
        raise MalformedPacket("TCP header cut short")
    seq, ack, offset_and_flags, window = _TCP_HEADER(payload, 4)
    header = (offset_and_flags >> 12) * 4
    if not 20 <= header <= length:
        raise MalformedPacket("impossible TCP header")
    content = payload[header:length]
    # The snap length may have cut off options, too.
    missing = length - header - len(content)
    scale = _window_scale(payload[20:header]) if offset_and_flags & SYN else None
    flow = addresses + payload[:4]
    reset_text = ""
    if offset_and_flags & RST:
        text = content.rstrip(b"\0\r\n ").decode("utf-8", "replace")
        is_cut = missing or len(text) > _MAX_RESET_TEXT
        reset_text, content, missing = f"{text[:_MAX_RESET_TEXT]}…" if is_cut else text, b"", 0
    return Segment(flow, content, missing, seq, ack, offset_and_flags & 0xFF, window, scale, reset_text)


def _window_scale(options: bytes) -> int | None:
    """Return the shift count of a window scale option, at most 14 (RFC 7323, 2.3)."""
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
