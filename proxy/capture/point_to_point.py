"""Point-to-point links: PPP, HDLC, PPPoE and Frame Relay."""

from __future__ import annotations

from kiebitz.proxy.capture.ethernet import NLPIDS, read_llc, read_with_ethertype
from kiebitz.proxy.capture.layers import (
    IPV4,
    IPV6,
    MPLS,
    MPLS_UPSTREAM,
    Inner,
    MalformedPacket,
    NoTransport,
    UnsupportedLayer,
    short_at,
    skip,
)

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
