"""Violations of the frames of WebSocket, with their clauses of RFC 6455 and RFC 7692."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Violation

CLAUSE = "RFC 6455"
DEFLATE_CLAUSE = "RFC 7692"


def frame_error(
    code: str, text: str, place: tuple[int, int], clause: str, expected: str | None = None, of: str = CLAUSE
) -> Violation:
    """Return an error of a frame; `clause` is the number of the section."""
    return Violation("error", "malformed", code, text, *place, expected, f"{of}, {clause}")


def not_masked(place: tuple[int, int]) -> Violation:
    """Return the error of a client's frame without a mask."""
    return frame_error("not-masked", "a client's frame is not masked", place, "5.1", "a masked frame")


def is_masked(place: tuple[int, int]) -> Violation:
    """Return the error of a server's frame with a mask."""
    return frame_error("masked", "a server's frame is masked", place, "5.1", "a frame without mask")


def reserved_bits(bits: int, place: tuple[int, int]) -> Violation:
    """Return the error of reserved bits that no extension has defined."""
    names = [name for name, bit in (("RSV1", 0x40), ("RSV2", 0x20), ("RSV3", 0x10)) if bits & bit]
    text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} set, though no extension defines it"
    return frame_error("reserved-bits", text, place, "5.2", "0 in the reserved bits")


def compressed_fragment(place: tuple[int, int]) -> Violation:
    """Return the error of RSV1 in a frame that begins no data message."""
    text = "RSV1 is set in a frame that does not begin a data message"
    return frame_error("reserved-bits", text, place, "6.1", "0 in RSV1", DEFLATE_CLAUSE)


def reserved_opcode(opcode: int, place: tuple[int, int]) -> Violation:
    """Return the error of an opcode without a meaning."""
    text = f"opcode {opcode} is reserved"
    return frame_error("reserved-opcode", text, place, "5.2", "opcode 0, 1, 2, 8, 9 or 10")


def fragmented_control(place: tuple[int, int]) -> Violation:
    """Return the error of a control frame that is a fragment."""
    return frame_error("fragmented-control", "a control frame is fragmented", place, "5.5", "FIN is 1")


def long_control(length: int, place: tuple[int, int]) -> Violation:
    """Return the error of a control frame that is too long."""
    text = f"a control frame has a payload of {length:,} bytes"
    return frame_error("long-control", text, place, "5.5", "at most 125 bytes")


def longer_length(place: tuple[int, int]) -> Violation:
    """Return the error of a length that is written with more bytes than necessary."""
    text = "the length is written with more bytes than it needs"
    return frame_error("bad-length", text, place, "5.2", "the shortest form of the length")


def negative_length(place: tuple[int, int]) -> Violation:
    """Return the error of a length with the most significant bit set."""
    text = "the most significant bit of the length is 1"
    return frame_error("bad-length", text, place, "5.2", "a length below 2^63")


def lone_continuation(place: tuple[int, int]) -> Violation:
    """Return the error of a continuation that continues nothing."""
    text = "a continuation frame continues no message"
    return frame_error("lone-continuation", text, place, "5.4", "a text or binary frame")


def interrupted(place: tuple[int, int]) -> Violation:
    """Return the error of a message that another one interrupts."""
    text = "a new message begins before the fragmented one has ended"
    return frame_error("interrupted-message", text, place, "5.4", "a continuation frame")


def after_close(place: tuple[int, int]) -> Violation:
    """Return the error of a data frame after a close frame."""
    return frame_error("after-close", "a data frame follows the close frame", place, "5.5.1", "no data")


def not_inflatable(place: tuple[int, int]) -> Violation:
    """Return the error of a compressed message that cannot be decompressed."""
    text = "the compressed message cannot be decompressed"
    return frame_error("bad-deflate", text, place, "7.2.2", "DEFLATE data", DEFLATE_CLAUSE)


def after_gap(place: tuple[int, int]) -> Violation:
    """Return the note on a message that cannot be read without bytes that are missing."""
    text = "bytes before this message, without which it cannot be read, are not in the capture"
    return Violation("note", "malformed", "after-gap", text, *place)


def no_upgrade(place: tuple[int, int]) -> Violation:
    """Return the note on HTTP that leads to no WebSocket."""
    return Violation("note", "malformed", "no-upgrade", "this is HTTP without WebSocket", *place)


def bad_head(place: tuple[int, int]) -> Violation:
    """Return the error of a beginning that is no handshake."""
    text = "the stream begins with no handshake"
    return frame_error("bad-handshake", text, place, "1.3", "an HTTP/1.1 upgrade")
