"""The notation of messages as elements, notes on what surrounds an element, and the first error in a frame.

Such an error is one that the parser rejects. Notes are on charset, line ends, comments, envelope, misprints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.parsers import expat

import msgspec

from kiebitz.dissectors.grammar.grammar import BLANKS, Field, Place, Violation, error_at, trimmed
from kiebitz.dissectors.grammar.lenient import Misprint
from kiebitz.dissectors.grammar.xml.markup import BLANK_LINE, Tag, note_at, tags
from kiebitz.dissectors.grammar.xml.shapes import MAX_DEPTH

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
    start, length = trimmed(frame, 0, len(frame))
    end = start + length
    after = frame[end:]
    feeds, both = frame.count(b"\n"), frame.count(b"\r\n")
    if re.search(rb"[\r\n]", frame[:start]):
        yield _line_ends("empty-lines", "there are empty lines before the message", 0, start)
    if frame.count(b"\r") > both:
        at = frame.replace(b"\r\n", b"  ").find(b"\r")
        yield _line_ends("carriage-return", "lines end in CR alone", at, 1)
    elif both and feeds > both:
        first = frame.find(b"\n")
        order = "crlf-then-lf" if frame[first - 1 : first] == b"\r" else "lf-then-crlf"
        yield _line_ends(order, "some lines end in CR LF, some in LF alone", end, len(after))
    elif feeds > both:
        yield _line_ends("line-feed", "lines end in LF alone", frame.find(b"\n"), 1)
    blanks = re.search(rb"(?:\r\n?|\n)([ \t]+(?:\r\n?|\n))", after)
    if blanks is not None:
        start = end + blanks.start(1)
        yield _line_ends("blanks", "there are blanks on the empty line", start, len(blanks[1]))


def _line_ends(code: str, text: str, offset: int, length: int) -> Violation:
    expected = "CR LF at the end of each line, and one empty line after the message"
    return note_at(code, text, (offset, length), expected)


def check_framing(
    frame: bytes, of: XmlFormat, opened: bool, closed: bool, repeated: str | None
) -> Violation | None:
    """Return an error or note on the empty lines of a message; a `repeated` one needs none."""
    envelope = of.envelope
    start, length = trimmed(frame, 0, len(frame))
    end = start + length
    inside = _BLANK_LINE.search(frame, start, end)
    if inside is not None:
        text = "there is an empty line inside the message"
        place = inside.start(), len(inside[0])
        return error_at("empty-line-inside", text, place, "no empty line before the end")
    if frame.endswith(b"\r\n\r\n") or _BLANK_LINE.search(frame, end):
        if opened and not closed and not of.stays_open:
            tag = next(tag for tag in tags(frame) if tag.name == envelope.lower())
            text = f"<{envelope}> is not closed"
            return error_at("unclosed-envelope", text, tag.place, f"</{envelope}>")
    elif not opened and not closed and repeated is not None:
        text = f"another element follows without an empty line{repeated}"
        return note_at(FOLLOWED[end == len(frame)], text, (end, len(frame) - end), "an empty line")
    return None


def envelope_error(frame: bytes, envelope: str) -> Violation:
    """Return the error for an envelope that is empty or contains another one."""
    outer, *inner = (tag for tag in tags(frame) if tag.name == envelope)
    second = inner[0] if inner else outer
    if second.kind == "start" and second is not outer:
        return error_at("envelope-twice", "an envelope is inside another one", second.place, "a message")
    return error_at("empty-envelope", "this envelope contains no message", second.place, "a message")


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


_MAX_QUOTED = 40
_EXTERNAL = re.compile(rb"\b(?:SYSTEM|PUBLIC)\b")
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_REFERENCE = re.compile(rb"&(?:(#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z][\w.-]{0,31});)?")
_PREDEFINED = frozenset((b"amp", b"lt", b"gt", b"quot", b"apos"))
_START_TAG = re.compile(rb"<[^\s<>/]++")
_ATTRIBUTES_END = re.compile(rb"\s*+/?>\Z")
_ATTRIBUTE = re.compile(rb"""(\s++)([^\s<>"'=/]++)\s*+(?:(=)\s*+("[^"<]*+"|'[^'<]*+')?)?""")
_UNTIL_BLANK = re.compile(rb"[^\s>]*+")


def document_type_error(frame: bytes, is_sure: bool = False) -> Violation | None:
    """Return the diagnostic for a document type declaration; in comments and CDATA sections, there is none.

    No message needs one, and it is never processed, as it can define arbitrary entities.
    """
    if b"<!DOCTYPE" not in frame and b"<!ENTITY" not in frame:
        return None
    declared = (b"<!DOCTYPE", b"<!ENTITY")
    start = next((tag.start for tag in tags(frame) if frame.startswith(declared, tag.start)), -1)
    if start < 0:
        if not is_sure:
            return None
        start = frame.find(declared[0])
    external = _EXTERNAL.search(frame, start)
    if external is not None:
        text = "an external entity is declared; it is not looked up"
        return error_at("external-entity", text, (external.start(), len(external[0])), "no document type")
    text = "a document type is declared; it is not followed, and no entity is expanded"
    return error_at("document-type", text, (start, min(9, len(frame) - start)), "no document type")


def first_error(frame: bytes, of: XmlFormat) -> Violation:
    """Return the first error in a frame with no readable element."""
    violation = _tag_error(frame, of)
    before = len(frame) if violation is None else violation.offset + max(violation.length, 1)
    return control_character_error(frame, before) or violation or _parser_error(frame)


def control_character_error(frame: bytes, before: int) -> Violation | None:
    """Return the diagnostic for the first control characters, if they are before an offset."""
    found = _CONTROLS.search(frame)
    if found is None or found.start() >= before:
        return None
    text = f"there is a control character ({found[0][:4].hex(' ')})"
    return error_at("control-character", text, (found.start(), len(found[0])), "text")


def _tag_error(frame: bytes, of: XmlFormat) -> Violation | None:
    envelope, following = of.envelope.lower(), "an empty line" if of.blank_line else "the next message"
    opened: list[Tag] = []
    rooted = False
    at = 0
    for tag in [*tags(frame), Tag("text", "", len(frame), len(frame))]:
        is_inside = bool(opened) and opened[-1].name != envelope
        violation = _text_error(frame, at, tag.start, is_inside, following if rooted else "")
        if violation is not None:
            return violation
        at = tag.end
        if tag.start == len(frame):
            break
        if tag.kind == "text":
            if re.match(rb"</?[A-Za-z]", frame[tag.start : tag.start + 3]):
                return error_at("unclosed-tag", "this tag has no end", tag.place, '">"')
            place = tag.start, max(1, min(3, tag.end - tag.start))
            return error_at("bare-less-than", '"<" does not begin a tag', place, '"&lt;"')
        if tag.kind in ("start", "empty"):
            violation = _start_tag_error(frame, tag)
            if violation is None and rooted and not opened:
                text = f"<{_shown(frame, tag)}> follows the message's element"
                violation = error_at("not-one-element", text, tag.place, "one element")
            if violation is not None:
                return violation
            rooted = rooted or tag.name != envelope
            if tag.kind == "start":
                opened.append(tag)
                if len(opened) > MAX_DEPTH:
                    return too_deep(opened[0])
        elif tag.kind == "end":
            violation = _end_tag_error(frame, tag, opened, envelope)
            if violation is not None:
                return violation
        elif tag.kind == "comment" and not frame.endswith(b"-->", tag.start + 4, tag.end):
            return error_at("unclosed-comment", "this comment has no end", (tag.start, 4), '"-->"')
    if opened and opened[-1].name != envelope:
        return _unclosed_error(frame, opened[-1], len(frame))
    if not rooted:
        text = "this message contains no element"
        return error_at("no-element", text, trimmed(frame, 0, len(frame)), "an element")
    return None


def too_deep(outermost: Tag) -> Violation:
    """Return the error for elements nested too deeply."""
    text = f"elements are nested more than {MAX_DEPTH} deep"
    return error_at("too-deep", text, outermost.place, "a message")


def _shown(frame: bytes, tag: Tag) -> str:
    return tag.written_in(frame)[:_MAX_QUOTED]


def _text_error(frame: bytes, start: int, end: int, inside: bool, following: str) -> Violation | None:
    if inside:
        return _first_reference_error(frame[start:end], start)
    stripped = frame[start:end].strip(BLANKS)
    if not stripped or (stripped == b"]>" and not following):
        return None
    place = trimmed(frame, start, end)
    shown = stripped[:_MAX_QUOTED].decode("utf-8", "replace")
    if following:
        return error_at("text-outside", f'"{shown}" follows the element', place, following)
    return error_at("no-element", f'"{shown}" is not the beginning of a message', place, "an element")


def _first_reference_error(text: bytes, base: int) -> Violation | None:
    """Return the first error in the references of a text at an offset."""
    violations = (_reference_error(found, base) for found in _REFERENCE.finditer(text))
    return next(filter(None, violations), None)


def _reference_error(found: re.Match[bytes], base: int) -> Violation | None:
    place = base + found.start(), len(found[0])
    name = found[1]
    if name is None:
        return error_at("bare-ampersand", '"&" does not begin a reference', place, '"&amp;"')
    if name.startswith(b"#"):
        number = int(name[2:], 16) if name.startswith(b"#x") else int(name[1:])
        if number in (9, 10, 13) or 0x20 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF:
            return None
        text = f"{found[0].decode()} is not a character of XML"
        return error_at("bad-reference", text, place, "the number of a character")
    if name in _PREDEFINED:
        return None
    text = f"{found[0].decode('latin-1')} is an undeclared entity"
    return error_at("undefined-entity", text, place, "&amp; &lt; &gt; &quot; &apos; or a number")


def _start_tag_error(frame: bytes, tag: Tag) -> Violation | None:
    text = frame[tag.start : tag.end]
    name = _START_TAG.match(text)
    assert name is not None
    at = name.end()
    seen: dict[bytes, int] = {}
    while not _ATTRIBUTES_END.match(text, at):
        found = _ATTRIBUTE.match(text, at)
        if found is None or found[4] is None:
            return _broken_attribute(text, tag.start, max(seen.values(), default=at), found)
        attribute = found[2]
        start = found.start(2)
        if attribute in seen:
            first = tag.start + seen[attribute]
            problem = f"{attribute[:_MAX_QUOTED].decode('latin-1')} is given twice"
            return error_at("attribute-twice", problem, (first, tag.start + found.end() - first), "each once")
        violation = _first_reference_error(found[4], tag.start + found.start(4))
        if violation is not None:
            return violation
        seen[attribute] = start
        at = found.end()
    return None


def _broken_attribute(text: bytes, base: int, before: int, found: re.Match[bytes] | None) -> Violation:
    """Return the error in an attribute; if none is found, in the one `before`."""
    if found is not None and found[3] is not None:
        # Everything up to the next blank was probably intended as the value.
        rest = _UNTIL_BLANK.match(text, found.end())
        assert rest is not None
        place = base + found.start(2), rest.end() - found.start(2)
        return error_at("unquoted-value", "this value has no quotes", place, 'name="value"')
    if found is not None:
        place = base + found.start(2), found.end() - found.start(2)
        return error_at("no-value", "this attribute has no value", place, 'name="value"')
    # If a quote is missing, the attribute before this one is unterminated.
    place = base + before, len(text.removesuffix(b">").removesuffix(b"/")) - before
    return error_at("unterminated-value", "a quote is missing here", place, 'name="value"')


def _end_tag_error(frame: bytes, tag: Tag, opened: list[Tag], envelope: str) -> Violation | None:
    written = f"</{_shown(frame, tag)}>"
    if not opened:
        if tag.name == envelope:
            return None
        return error_at("stray-end-tag", f"{written} has no start tag", tag.place, "a start tag")
    unclosed = opened[-1]
    expected = f"</{_shown(frame, unclosed)}>"
    if unclosed.name == tag.name:
        opened.pop()
        if unclosed.written_in(frame) == tag.written_in(frame):
            return None
        return error_at("stray-end-tag", f"{written} is not written like its start tag", tag.place, expected)
    if all(start.name != tag.name for start in opened):
        return error_at("stray-end-tag", f"{written} has no start tag", tag.place, expected)
    later = f"</{unclosed.name}>".encode("latin-1")
    if frame[tag.end :].lstrip(BLANKS).lower().startswith(later):
        return error_at("crossed-tags", f"{written} precedes {expected}", tag.place, expected)
    return _unclosed_error(frame, unclosed, tag.start)


def _unclosed_error(frame: bytes, tag: Tag, end: int) -> Violation:
    upto = min((at for at in (frame.find(b"<", tag.end, end), end) if at >= 0), default=end)
    length = len(frame[tag.start : upto].rstrip(BLANKS))
    text = f"<{_shown(frame, tag)}> is not closed"
    return error_at("unclosed-element", text, (tag.start, length), f"</{_shown(frame, tag)}>")


def _parser_error(frame: bytes) -> Violation:
    """Return the diagnostic for an error that only the parser finds."""
    parser = expat.ParserCreate("iso-8859-1")
    try:
        parser.Parse(frame, True)
    except expat.ExpatError as error:
        at = min(max(parser.ErrorByteIndex, 0), len(frame))
        text = f"this is not XML: {expat.ErrorString(error.code)}"
        return error_at("no-xml", text, (at, min(1, len(frame) - at)), "well-formed XML")
    return error_at("no-xml", "this is not XML", (0, len(frame)), "well-formed XML")
