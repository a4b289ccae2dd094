"""Common parts of the readers of pcap and pcapng: defects, limits and texts.

scapy, which captures live packets, could read files, too. Its readers take a tenth of a second to load and a
named tuple for each packet, and have serious faults. They cut packets at 65,535 bytes, ask for up to 4 GiB at
once if a length field says so, and number the interfaces of a second section on from the first. They drop
if_tsoffset, read no Simple Packet Block with an unlimited snap length, and cannot distinguish an end from a
truncation.
"""

from __future__ import annotations

from kiebitz.dissectors.errors import KiebitzError

SECOND = 1_000_000_000
"""Nanoseconds per second."""

CaptureDefect = tuple[str, str]
"""(noun, participle): a kind of damage, as in `3 packets were left out: interface not described`."""

UNDESCRIBED_INTERFACE: CaptureDefect = ("packet", "left out: interface not described")
OVERLONG_PACKET: CaptureDefect = ("packet", "left out: longer than its block")
BROKEN_PACKET: CaptureDefect = ("packet", "left out: block too short")
BROKEN_INTERFACE: CaptureDefect = ("interface description", "not read: block too short")
TOO_MANY_INTERFACES: CaptureDefect = ("interface description", "left out: too many interfaces")
IMPOSSIBLE_TIME: CaptureDefect = ("packet", "given the previous packet's time: impossible time")


class HeaderError(KiebitzError):
    """The header of a capture file, or of a section in it, cannot be read. The text describes its state."""

    def __init__(self, state: str = "broken or incomplete") -> None:
        super().__init__(state)


def truncation_text(what: str, offset: int, have: int, want: int) -> str:
    """Return a clause for a capture that ends inside `what`, at a byte offset."""
    return f"the capture ends inside {what} at byte {offset}: {have} of its {want} bytes are there"


def damage_text(what: str, offset: int, why: str) -> str:
    """Return a clause for a capture that is unreadable from a byte offset on."""
    return f"the capture is damaged at byte {offset}: {what} {why}; what follows cannot be read"


def without_check_sequence(data: bytes, wirelen: int, check_length: int) -> tuple[bytes, int]:
    """Return a frame and its length without the frame check sequence at its end."""
    wirelen = max(max(wirelen, len(data)) - check_length, 0)
    return data[:wirelen], wirelen
