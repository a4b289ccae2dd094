"""Notes and errors on what surrounds an element: charset, line ends, comments, envelope, misprints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from kiebitz.dissectors.grammar.grammar import Field, Violation
from kiebitz.dissectors.grammar.lenient import Misprint
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.xml.markup import BLANK_LINE, BLANKS, tags
from kiebitz.dissectors.grammar.xml.tree import error_at, note_at

_NO_TEXT = re.compile("[\x80-\x9f\N{REPLACEMENT CHARACTER}]")
_BLANK_LINE = re.compile(BLANK_LINE)
_OUTER = rb"""<[^<>]*?\s%b\s*=\s*["']([^"'<]*)"""
FOLLOWED = ("no-empty-line", "same-line")
"""The codes for a message that is directly followed by another one."""
MISPRINT = "misprint-"
"""Prefix of the codes of notes on misprints."""
_EXTRAS = {
    "comment": ("comment", "a comment", 4),
    "cdata": ("cdata", "a CDATA section", 9),
    "declaration": ("xml-declaration", "an XML declaration", 5),
}
"""Code, description, and length in bytes of the marked part, by kind of tag."""


class XmlFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The notation of messages as elements, with the deviations that are noted.

    Attributes:
        mark: Attribute with the message's name; None if that is the element's.
        path: The element inside the message's that has this attribute; empty if it is the message's own. The
            name of a message without it is that of its element.
        envelope: Name of an element around one or several messages; empty if there is none.
        stays_open: True if the envelope is around all messages of a direction.
        outer: Attributes of the envelope, or of a message without one, that are fields.
        blank_line: True if an empty line follows each message, and lines end in CR LF.
        charset: A second charset, for messages that are not in the first; empty if there is none.
        misprints: Misprints of the specification, which are noted.
        is_strict: True if comments, CDATA sections and declarations, and capitals in names, are noted.
    """

    mark: str | None = None
    path: tuple[str, ...] = ()
    envelope: str = ""
    stays_open: bool = False
    outer: tuple[Field, ...] = ()
    blank_line: bool = False
    charset: str = ""
    misprints: Sequence[Misprint] = ()
    is_strict: bool = False


def in_second_charset(frame: bytes, error: UnicodeDecodeError, second: str) -> tuple[str, Violation]:
    """Return the text of a frame that is not UTF-8 with a note, or an error if it cannot be decoded."""
    charset = second.upper()
    expected = f"UTF-8 or {charset}"
    at = error.start
    text = frame.decode(second, "replace")
    if frame.startswith((b"\xff\xfe", b"\xfe\xff")):
        return text, error_at("charset", "this looks like UTF-16", (0, 2), expected)
    if _NO_TEXT.search(text):
        problem = f"{frame[at : error.end].hex(' ')} is not UTF-8, and the message is not {charset}"
        return text, error_at("charset", problem, (at, error.end - at), expected)
    said = f"this is {charset}; the specification names no charset"
    return text, note_at(second, said, (at, 1), None)


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


def check_framing(
    frame: bytes, of: XmlFormat, opened: bool, closed: bool, repeated: str | None
) -> Violation | None:
    """Return an error or note on the empty lines of a message; a `repeated` one needs none."""
    envelope = of.envelope
    end = len(frame.rstrip(BLANKS))
    start = len(frame) - len(frame.lstrip(BLANKS))
    inside = _BLANK_LINE.search(frame, start, end)
    if inside is not None:
        text = "there is an empty line inside the message"
        place = inside.start(), len(inside[0])
        return error_at("empty-line-inside", text, place, "no empty line before the end")
    if frame.endswith(b"\r\n\r\n") or _BLANK_LINE.search(frame, end):
        if opened and not closed and not of.stays_open:
            tag = next(tag for tag in tags(frame) if tag.name == of.envelope.lower())
            text = f"<{envelope}> is not closed"
            return error_at("unclosed-envelope", text, (tag.start, tag.end - tag.start), f"</{envelope}>")
    elif not opened and not closed and repeated is not None:
        text = f"another element follows without an empty line{repeated}"
        return note_at(FOLLOWED[end == len(frame)], text, (end, len(frame) - end), "an empty line")
    return None


def envelope_error(frame: bytes, envelope: str) -> Violation:
    """Return the error for an envelope that is empty or contains another one."""
    outer, *inner = (tag for tag in tags(frame) if tag.name == envelope)
    second = inner[0] if inner else outer
    place = second.start, second.end - second.start
    if second.kind == "start" and second is not outer:
        return error_at("envelope-twice", "an envelope is inside another one", place, "a message")
    return error_at("empty-envelope", "this envelope contains no message", place, "a message")


def outer_place(frame: bytes, name: str) -> Place:
    """Return the offset and length of the value of an attribute of the envelope, or of the message."""
    found = re.search(_OUTER % re.escape(name.encode()), frame)
    return (found.start(1), len(found[1])) if found is not None else (0, len(frame))


def unusual(frame: bytes, field: Field, remark: str) -> Violation:
    """Return a note on an unusual value of an attribute of the envelope, or of the message."""
    return note_at(f"unknown-{field.name}", remark, outer_place(frame, field.name), field.type.title)


def repaired(frame: bytes, misprints: Sequence[Misprint]) -> tuple[bytes, list[Violation]]:
    """Return the frame without the specification's misprints, and a note on each kind of them."""
    notes: dict[str, Violation] = {}
    whole = bytearray(frame)
    for tag in tags(frame):
        for misprint in misprints if tag.kind in ("start", "empty") else ():
            text = bytes(whole[tag.start : tag.end])
            found = misprint.pattern.search(text)
            if found is None:
                continue
            whole[tag.start : tag.end] = misprint.pattern.sub(misprint.repaired, text)
            place = tag.start + found.start(), len(found[0])
            said = "this is a misprint of the specification"
            if misprint.where:
                said += f" ({misprint.where})"
            meant = found.expand(misprint.repaired).decode("latin-1")
            code = f"{MISPRINT}{misprint.name}"
            notes.setdefault(code, note_at(code, said, place, meant))
    return bytes(whole), list(notes.values())
