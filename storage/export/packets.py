"""Synthetic IP packets for stored bytes, with the addresses of their stream.

Checksums are right, except where bytes are missing from the end of a packet.
"""

from __future__ import annotations

import ipaddress
import struct

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
"""Flags of a TCP segment (RFC 9293, 3.1)."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Endpoints = tuple[tuple[Address, int], tuple[Address, int]]
"""Address and port of the source, then of the destination."""

_TCP, _UDP = 6, 17
_HOP_LIMIT = 64
_WINDOW = 65_535


def endpoint(text: str) -> tuple[Address, int]:
    """Return the address and port of `ip:port`."""
    host, _, port = text.rpartition(":")
    # A link-local address may have its interface after a %.
    return ipaddress.ip_address(host.strip("[]").partition("%")[0]), int(port)


def udp_packet(ends: Endpoints, number: int, data: bytes, missing: int) -> bytes:
    """Return a packet with a datagram (RFC 768) whose last `missing` bytes were not captured.

    In IPv4, `number` determines its identification, so that equal datagrams do not look like copies of a
    packet.
    """
    (_, source), (_, destination) = ends
    start = struct.pack("!HHH", source, destination, 8 + len(data) + missing)
    identification = 1 + number % 0xFFFF
    if missing:
        # Without a checksum (RFC 768).
        return _packet(ends, _UDP, start + b"\0\0" + data, missing, identification)
    return _packet(ends, _UDP, _with_checksum(ends, _UDP, start, data, none=0xFFFF), 0, identification)


def tcp_packet(ends: Endpoints, seq: int, ack: int, flags: int, data: bytes = b"", missing: int = 0) -> bytes:
    """Return a packet with a segment (RFC 9293, 3.1) whose last `missing` bytes were not captured."""
    (_, source), (_, destination) = ends
    numbers = seq % (1 << 32), ack % (1 << 32) if flags & ACK else 0
    start = struct.pack("!HHIIBBH", source, destination, *numbers, 5 << 4, flags, _WINDOW)
    if missing:
        return _packet(ends, _TCP, start + bytes(4) + data, missing)
    return _packet(ends, _TCP, _with_checksum(ends, _TCP, start, b"\0\0" + data, none=0), 0)


def _packet(ends: Endpoints, protocol: int, content: bytes, missing: int, identification: int = 0) -> bytes:
    version, addresses = _addresses(ends)
    length = len(content) + missing
    if version == 4:
        before, after = (
            struct.pack("!BxHHxxBB", 0x45, 20 + length, identification, _HOP_LIMIT, protocol),
            addresses,
        )
        return before + struct.pack("!H", internet_checksum(before + after)) + after + content
    return struct.pack("!IHBB", 6 << 28, length, protocol, _HOP_LIMIT) + addresses + content


def _with_checksum(ends: Endpoints, protocol: int, start: bytes, rest: bytes, none: int) -> bytes:
    """Return a header and its content with the checksum in between; a checksum of 0 is written as `none`."""
    _, addresses = _addresses(ends)
    length = len(start) + 2 + len(rest)
    total = internet_checksum(addresses + struct.pack("!HH", protocol, length) + start + b"\0\0" + rest)
    return start + struct.pack("!H", total or none) + rest


def _addresses(ends: Endpoints) -> tuple[int, bytes]:
    """Return the IP version and both addresses in it."""
    (source, _), (destination, _) = ends
    if source.version != destination.version:
        # A relay may be reached over one version and reach its server over the other.
        source, destination = _as_ipv6(source), _as_ipv6(destination)
    return source.version, source.packed + destination.packed


def _as_ipv6(address: Address) -> Address:
    return ipaddress.IPv6Address(f"::ffff:{address}") if address.version == 4 else address


def internet_checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071).

    The sum of 16-bit digits with carries is congruent modulo 65,535. Only for nothing but zeros that sum is
    0; otherwise a remainder of 0 means 65,535 (RFC 1624, 3).
    """
    total = int.from_bytes(data + b"\0" * (len(data) % 2), "big")
    return ~(total and (total - 1) % 0xFFFF + 1) & 0xFFFF
