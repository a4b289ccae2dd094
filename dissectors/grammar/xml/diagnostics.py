"""The first error in a frame that the parser rejects, with its location in bytes."""

from __future__ import annotations

import re
from xml.parsers import expat

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.grammar.xml.markup import BLANKS, Tag, tags
from kiebitz.dissectors.grammar.xml.notes import XmlFormat
from kiebitz.dissectors.grammar.xml.shapes import MAX_DEPTH
from kiebitz.dissectors.grammar.xml.tree import error_at

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
            if _looks_like_tag(frame, tag):
                return error_at(
                    "unclosed-tag", "this tag has no end", (tag.start, tag.end - tag.start), '">"'
                )
            place = tag.start, max(1, min(3, tag.end - tag.start))
            return error_at("bare-less-than", '"<" does not begin a tag', place, '"&lt;"')
        if tag.kind in ("start", "empty"):
            violation = _start_tag_error(frame, tag)
            if violation is None and rooted and not opened:
                text = f"<{_shown(frame, tag)}> follows the message's element"
                violation = error_at("not-one-element", text, (tag.start, tag.end - tag.start), "one element")
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
        start = len(frame) - len(frame.lstrip(BLANKS))
        text = "this message contains no element"
        return error_at("no-element", text, (start, len(frame.strip(BLANKS))), "an element")
    return None


def too_deep(outermost: Tag) -> Violation:
    """Return the error for elements nested too deeply."""
    text = f"elements are nested more than {MAX_DEPTH} deep"
    return error_at("too-deep", text, (outermost.start, outermost.end - outermost.start), "a message")


def _shown(frame: bytes, tag: Tag) -> str:
    return tag.written_in(frame)[:_MAX_QUOTED]


def _looks_like_tag(frame: bytes, tag: Tag) -> bool:
    return re.match(rb"</?[A-Za-z]", frame[tag.start : tag.start + 3]) is not None


def _text_error(frame: bytes, start: int, end: int, inside: bool, following: str) -> Violation | None:
    text = frame[start:end]
    if inside:
        for found in _REFERENCE.finditer(text):
            violation = _reference_error(found, start)
            if violation is not None:
                return violation
        return None
    stripped = text.strip(BLANKS)
    if not stripped or (stripped == b"]>" and not following):
        return None
    place = start + len(text) - len(text.lstrip(BLANKS)), len(stripped)
    shown = stripped[:_MAX_QUOTED].decode("utf-8", "replace")
    if following:
        return error_at("text-outside", f'"{shown}" follows the element', place, following)
    return error_at("no-element", f'"{shown}" is not the beginning of a message', place, "an element")


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
        for reference in _REFERENCE.finditer(found[4]):
            violation = _reference_error(reference, tag.start + found.start(4))
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
    place = tag.start, tag.end - tag.start
    if not opened:
        if tag.name == envelope:
            return None
        return error_at(
            "stray-end-tag",
            f"</{_shown(frame, tag)}> has no start tag",
            place,
            "a start tag",
        )
    if opened[-1].name == tag.name:
        begin = opened.pop()
        if begin.written_in(frame) == tag.written_in(frame):
            return None
        text = f"</{_shown(frame, tag)}> is not written like its start tag"
        return error_at("stray-end-tag", text, place, f"</{_shown(frame, begin)}>")
    if all(start.name != tag.name for start in opened):
        text = f"</{_shown(frame, tag)}> has no start tag"
        return error_at("stray-end-tag", text, place, f"</{_shown(frame, opened[-1])}>")
    unclosed = opened[-1]
    later = f"</{unclosed.name}>".encode("latin-1")
    if frame[tag.end :].lstrip(BLANKS).lower().startswith(later):
        text = f"</{_shown(frame, tag)}> precedes </{_shown(frame, unclosed)}>"
        return error_at("crossed-tags", text, place, f"</{_shown(frame, unclosed)}>")
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
