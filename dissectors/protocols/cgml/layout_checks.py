"""Notes and errors on what surrounds an element: charset, line ends, comments, envelope, version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.grammar.xml.markup import BLANK_LINE, BLANKS, tags
from kiebitz.dissectors.protocols.cgml.grammar import ENVELOPE, VERSIONS, ElementType
from kiebitz.dissectors.protocols.cgml.locations import error_at, note_at

_NO_LATIN2 = re.compile("[\x80-\x9f]")
_BLANK_LINE = re.compile(BLANK_LINE)
_VERSION = re.compile(rb"""<[^<>]*?\sversion\s*=\s*["']([^"'<>]*)""")
_MAX_QUOTED = 40
FOLLOWED = ("no-empty-line", "same-line")
"""The codes for a message that is directly followed by another one."""
_EXTRAS = {
    "comment": ("comment", "a comment", 4),
    "cdata": ("cdata", "a CDATA section", 9),
    "declaration": ("xml-declaration", "an XML declaration", 5),
}
"""By kind of tag: code, description, and length in bytes of the marked part."""


def characters(frame: bytes) -> tuple[str, Violation | None]:
    """Return a frame's text, with a note if it is not UTF-8, or an error if it cannot be decoded.

    The specification names no charset; Czech peers use UTF-8 or ISO-8859-2.
    """
    expected = "UTF-8 or ISO-8859-2"
    try:
        return frame.decode(), None
    except UnicodeDecodeError as error:
        text = frame.decode("iso-8859-2")
        at = error.start
        if frame.startswith((b"\xff\xfe", b"\xfe\xff")):
            return text, error_at("charset", "this looks like UTF-16", (0, 2), expected)
        if _NO_LATIN2.search(text):
            problem = f"{frame[at : error.end].hex(' ')} is not UTF-8, and the message is not ISO-8859-2"
            return text, error_at("charset", problem, (at, error.end - at), expected)
        said = "this is ISO-8859-2; the specification names no charset"
        return text, note_at("iso-8859-2", said, (at, 1), None)


def extras(frame: bytes) -> list[Violation]:
    """Return notes on constructs of XML that the specification does not mention; they are accepted."""
    notes: dict[str, Violation] = {}
    for tag in tags(frame):
        if tag.kind in _EXTRAS:
            code, what, length = _EXTRAS[tag.kind]
            place = tag.start, min(length, tag.end - tag.start)
            notes.setdefault(code, note_at(code, f"{what} is not in the specification", place, None))
    return list(notes.values())


def empty_lines(frame: bytes) -> Iterator[Violation]:
    """Yield notes on unusual line ends of a message, and on the empty line after it."""
    body = frame.strip(BLANKS)
    start = len(frame) - len(frame.lstrip(BLANKS))
    end = start + len(body)
    after = frame[end:]
    feeds, both = frame.count(b"\n"), frame.count(b"\r\n")
    if re.search(rb"[\r\n]", frame[:start]):
        yield _line_ends("empty-lines", "there are empty lines before the message", 0, start)
    if frame.count(b"\r") > both:
        at = re.compile(rb"\r(?!\n)").search(frame)
        assert at is not None
        yield _line_ends("carriage-return", "lines end in CR alone", at.start(), 1)
    elif both and feeds > both:
        first = frame.find(b"\n")
        order = "crlf-then-lf" if frame[first - 1 : first] == b"\r" else "lf-then-crlf"
        yield _line_ends(order, "some lines end in CR LF, some in LF alone", end, len(after))
    elif feeds > both:
        yield _line_ends("line-feed", "lines end in LF alone", frame.find(b"\n"), 1)
    blanks = re.search(rb"(?:\r\n?|\n)([ \t]+(?:\r\n?|\n))", after)
    if blanks is not None:
        yield _line_ends(
            "blanks",
            "there are blanks on the empty line",
            end + blanks.start(1),
            len(blanks[1]),
        )


def _line_ends(code: str, text: str, offset: int, length: int) -> Violation:
    expected = "CR LF at the end of each line, and one empty line after the message"
    return note_at(code, text, (offset, length), expected)


def check_framing(frame: bytes, row: ElementType, opened: bool, closed: bool) -> Violation | None:
    """Return an error or note on the empty lines of a message."""
    end = len(frame.rstrip(BLANKS))
    start = len(frame) - len(frame.lstrip(BLANKS))
    inside = _BLANK_LINE.search(frame, start, end)
    if inside is not None:
        text = "there is an empty line inside the message"
        place = inside.start(), len(inside[0])
        return error_at("empty-line-inside", text, place, "no empty line before the end")
    if frame.endswith(b"\r\n\r\n") or _BLANK_LINE.search(frame, end):
        if opened and not closed:
            tag = next(tag for tag in tags(frame) if tag.name == ENVELOPE)
            text = f"<{ENVELOPE}> is not closed"
            return error_at("unclosed-envelope", text, (tag.start, tag.end - tag.start), f"</{ENVELOPE}>")
    elif not opened and not closed and row.name != "dial":
        text = "another element follows without an empty line; only <dial> may repeat"
        return note_at(FOLLOWED[end == len(frame)], text, (end, len(frame) - end), "an empty line")
    return None


def envelope_error(frame: bytes) -> Violation:
    """Return the error for an envelope that is empty or contains another one."""
    outer, *inner = (tag for tag in tags(frame) if tag.name == ENVELOPE)
    second = inner[0] if inner else outer
    place = second.start, second.end - second.start
    if second.kind == "start" and second is not outer:
        return error_at("envelope-twice", "an envelope is inside another one", place, "a message")
    return error_at("empty-envelope", "this envelope contains no message", place, "a message")


def unknown_version(frame: bytes, version: str) -> Violation:
    """Return a note on a version that is not one of the specification's."""
    # It is in the first tag that has one: the envelope's, or the message's own.
    found = _VERSION.search(frame)
    place = (found.start(1), len(found[1])) if found is not None else (0, len(frame))
    text = f"version {version[:_MAX_QUOTED]} is not known"
    return note_at("unknown-version", text, place, f"{VERSIONS[0]} to {VERSIONS[-1]}")
