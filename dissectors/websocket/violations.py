"""Violations of the frames of WebSocket, with their clauses of RFC 6455 and RFC 7692."""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.grammar.grammar import Place, Violation, error_at

CLAUSE = "RFC 6455"
_DEFLATE = "RFC 7692"


def frame_error(
    code: str, text: str, section: str, expected: str, place: Place = (0, 0), of: str = CLAUSE
) -> Violation:
    """Return an error of a frame; `section` is that of the specification."""
    return error_at(code, text, place, expected, f"{of}, {section}")


def _note(code: str, text: str) -> Violation:
    return Violation("note", "malformed", code, text, 0, 0)


def placed(violation: Violation, place: Place) -> Violation:
    """Return a violation at a place."""
    return msgspec.structs.replace(violation, offset=place[0], length=place[1])


def moved(violation: Violation, distance: int) -> Violation:
    """Return a violation at a place that is later by a number of bytes."""
    return msgspec.structs.replace(violation, offset=violation.offset + distance)


NOT_MASKED = frame_error("not-masked", "a client's frame is not masked", "5.1", "a masked frame")
MASKED = frame_error("masked", "a server's frame is masked", "5.1", "a frame without mask")
COMPRESSED_FRAGMENT = frame_error(
    "reserved-bits",
    "RSV1 is set in a frame that does not begin a data message",
    "6.1",
    "0 in RSV1",
    of=_DEFLATE,
)
FRAGMENTED_CONTROL = frame_error("fragmented-control", "a control frame is fragmented", "5.5", "FIN is 1")
LONGER_LENGTH = frame_error(
    "bad-length",
    "the length is written with more bytes than it needs",
    "5.2",
    "the shortest form of the length",
)
NEGATIVE_LENGTH = frame_error(
    "bad-length", "the most significant bit of the length is 1", "5.2", "a length below 2^63"
)
LONE_CONTINUATION = frame_error(
    "lone-continuation", "a continuation frame continues no message", "5.4", "a text or binary frame"
)
INTERRUPTED = frame_error(
    "interrupted-message",
    "a new message begins before the fragmented one has ended",
    "5.4",
    "a continuation frame",
)
AFTER_CLOSE = frame_error("after-close", "a data frame follows the close frame", "5.5.1", "no data")
NOT_INFLATABLE = frame_error(
    "bad-deflate", "the compressed message cannot be decompressed", "7.2.2", "DEFLATE data", of=_DEFLATE
)
NO_HANDSHAKE = frame_error(
    "bad-handshake", "the stream begins with no handshake", "1.3", "an HTTP/1.1 upgrade"
)
AFTER_GAP = _note(
    "after-gap", "bytes before this message, without which it cannot be read, are not in the capture"
)
NO_UPGRADE = _note("no-upgrade", "this is HTTP without WebSocket")


def reserved_bits(bits: int) -> Violation:
    """Return the error of reserved bits that no extension has defined."""
    names = [name for name, bit in (("RSV1", 0x40), ("RSV2", 0x20), ("RSV3", 0x10)) if bits & bit]
    text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} set, though no extension defines it"
    return frame_error("reserved-bits", text, "5.2", "0 in the reserved bits")


def reserved_opcode(opcode: int) -> Violation:
    """Return the error of an opcode without a meaning."""
    return frame_error("reserved-opcode", f"opcode {opcode} is reserved", "5.2", "opcode 0, 1, 2, 8, 9 or 10")


def long_control(length: int) -> Violation:
    """Return the error of a control frame that is too long."""
    text = f"a control frame has a payload of {length:,} bytes"
    return frame_error("long-control", text, "5.5", "at most 125 bytes")
