"""Notes and errors on what surrounds an element: charset, line ends, comments, envelope, misprints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count

import msgspec

from kiebitz.dissectors.grammar.grammar import Field, Violation
from kiebitz.dissectors.grammar.xml.markup import BLANK_LINE, BLANKS, tags
from kiebitz.dissectors.grammar.xml.tree import error_at, note_at

_NO_LATIN2 = re.compile("[\x80-\x9f]")
_BLANK_LINE = re.compile(BLANK_LINE)
_VERSION = rb"""<[^<>]*?\s%b\s*=\s*["']([^"'<]*)"""
_MAX_QUOTED = 40
_WORD = "\N{HORIZONTAL ELLIPSIS}"
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


class Misprint(msgspec.Struct, frozen=True, dict=True):
    """A misprint of the specification in a tag, and what is meant, in as many characters.

    In both, an ellipsis is a word. Of what is `sent`, only the part in brackets is replaced; around it are
    its neighbours, before it without words. `where` is its place in the specification.
    """

    name: str
    sent: str
    meant: str
    where: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern of the misprint; its words are its groups."""
        before, wrong, after = (
            re.escape(part).replace("\\ ", r"\s").replace(_WORD, r"(\w+)")
            for part in re.split(r"[\[\]]", self.sent)
        )
        return re.compile(f"(?<={before}){wrong}(?={after})".encode())

    @cached_property
    def repaired(self) -> bytes:
        """The replacement of a match."""
        numbers = count(1)
        return re.sub(_WORD, lambda _: rf"\{next(numbers)}", self.meant).encode()


class XmlFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The notation of messages as elements, with the deviations that are noted.

    Attributes:
        mark: Attribute with the message's name; None if that is the element's.
        envelope: Name of an element around one or several messages; empty if there is none.
        version: Attribute of the envelope, or of a message without one, that is a field.
        versions: Its values; others are noted.
        blank_line: True if an empty line follows each message, and lines end in CR LF.
        charset: A second charset, for messages that are not UTF-8; empty if there is none.
        misprints: Misprints of the specification, which are noted.
        is_strict: True if comments, CDATA sections and declarations, and capitals in names, are noted.
    """

    mark: str | None = None
    envelope: str = ""
    version: Field | None = None
    versions: Sequence[str] = ()
    blank_line: bool = False
    charset: str = ""
    misprints: Sequence[Misprint] = ()
    is_strict: bool = False


def characters(frame: bytes, second: str) -> tuple[str, Violation | None]:
    """Return a frame's text, with a note if it is not UTF-8, or an error if it cannot be decoded."""
    try:
        return frame.decode(), None
    except UnicodeDecodeError as error:
        charset = second.upper()
        expected = f"UTF-8 or {charset}" if second else "UTF-8"
        at = error.start
        place = at, error.end - at
        text = frame.decode(second or "latin-1", "replace")
        if second and frame.startswith((b"\xff\xfe", b"\xfe\xff")):
            return text, error_at("charset", "this looks like UTF-16", (0, 2), expected)
        if not second or _NO_LATIN2.search(text):
            problem = f"{frame[at : error.end].hex(' ')} is not UTF-8"
            if second:
                problem += f", and the message is not {charset}"
            return text, error_at("charset", problem, place, expected)
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
    frame: bytes, envelope: str, opened: bool, closed: bool, repeated: str | None
) -> Violation | None:
    """Return an error or note on the empty lines of a message; a `repeated` one needs none."""
    end = len(frame.rstrip(BLANKS))
    start = len(frame) - len(frame.lstrip(BLANKS))
    inside = _BLANK_LINE.search(frame, start, end)
    if inside is not None:
        text = "there is an empty line inside the message"
        place = inside.start(), len(inside[0])
        return error_at("empty-line-inside", text, place, "no empty line before the end")
    if frame.endswith(b"\r\n\r\n") or _BLANK_LINE.search(frame, end):
        if opened and not closed:
            tag = next(tag for tag in tags(frame) if tag.name == envelope)
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


def unknown_version(frame: bytes, version: str, of: XmlFormat) -> Violation:
    """Return a note on a version that is not one of the specification's."""
    # It is in the first tag that has one: the envelope's, or the message's own.
    assert of.version is not None
    found = re.search(_VERSION % re.escape(of.version.name.encode()), frame)
    place = (found.start(1), len(found[1])) if found is not None else (0, len(frame))
    text = f"version {version[:_MAX_QUOTED]} is not known"
    return note_at("unknown-version", text, place, f"{of.versions[0]} to {of.versions[-1]}")


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
