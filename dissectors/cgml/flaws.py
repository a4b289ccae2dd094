"""What is wrong in a frame that no parser takes, or only after a repair: the first flaw, to the byte.

The specification has misprints that peers copied. They are repaired in place, byte for byte, so that every
offset stays true, and noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

from dissectors.cgml.markup import BLANKS, ENVELOPE, Tag, attribute_places, tags
from dissectors.grammar import Flaw

STRUCTURE = "1 Základní struktura datové zprávy"
"""The clause of all that is about elements as such."""

DEPTH_LIMIT = 32
"""No message of the specification has elements more than four deep."""

_SHOWN = 40
_EXTERNAL = re.compile(rb"\b(?:SYSTEM|PUBLIC)\b")
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_NO_LATIN2 = re.compile("[\x80-\x9f]")
_REFERENCE = re.compile(rb"&(?:(#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z][\w.-]{0,31});)?")
_PREDEFINED = frozenset((b"amp", b"lt", b"gt", b"quot", b"apos"))
_START_TAG = re.compile(rb"<[^\s<>/]++")
_ATTRIBUTES_END = re.compile(rb"\s*+/?>\Z")
_ATTRIBUTE = re.compile(rb"""(\s++)([^\s<>"'=/]++)\s*+(?:(=)\s*+("[^"<]*+"|'[^'<]*+')?)?""")
_UNTIL_BLANK = re.compile(rb"[^\s>]*+")


class Misprint(NamedTuple):
    """One of the specification: how it looks in a tag, and how it is repaired without a change of length."""

    code: str
    pattern: re.Pattern[bytes]
    repaired: bytes
    where: str


_MISPRINTS = (
    Misprint(
        "misprint-quote",
        re.compile(rb'(?<==)"(\w+) "(?=\w+=")'),
        rb'"\1" ',
        "Licitace -- informace",
    ),
    Misprint(
        "misprint-equals",
        re.compile(rb'(?<=\s)(\w+) ("\w*")(?=[\s/>])'),
        rb"\1=\2",
        "Talon -- převzetí",
    ),
    Misprint(
        "misprint-dots",
        re.compile(rb'(?<==)("\w*")\.\.\.(?=>)'),
        rb"\1   ",
        "Talon -- informace",
    ),
)


def repaired(frame: bytes) -> tuple[bytes, list[Flaw]]:
    """The frame without the specification's misprints, and a note on each kind of them."""
    notes: list[Flaw] = []
    whole = bytearray(frame)
    for tag in tags(frame):
        if tag.kind not in ("start", "empty"):
            continue
        for misprint in _MISPRINTS:
            text = bytes(whole[tag.start : tag.end])
            found = misprint.pattern.search(text)
            if found is None:
                continue
            whole[tag.start : tag.end] = misprint.pattern.sub(misprint.repaired, text)
            notes.append(
                Flaw(
                    "note",
                    "malformed",
                    misprint.code,
                    "this is a misprint of the specification",
                    tag.start + found.start(),
                    len(found[0]),
                    (misprint.pattern.sub(misprint.repaired, found[0]) or b"").decode("latin-1") or None,
                    f"3 Průběh jednotlivých her: {misprint.where}",
                    habit=True,
                )
            )
    return bytes(whole), notes


def wrong(code: str, text: str, place: tuple[int, int], expected: str, clause: str = STRUCTURE) -> Flaw:
    """An error at a place."""
    return Flaw("error", "malformed", code, text, *place, expected, clause)


def unusual(code: str, text: str, place: tuple[int, int], expected: str | None) -> Flaw:
    """A note on what is harmless, told once in a direction."""
    return Flaw("note", "malformed", code, text, *place, expected, STRUCTURE, habit=True)


def characters(frame: bytes) -> tuple[str, Flaw | None]:
    """A frame's text; the flaw is a note where it is no UTF-8, an error where it is nothing at all.

    The specification names no charset; Czech peers use UTF-8 or ISO-8859-2.
    """
    expected = "UTF-8 or ISO-8859-2"
    try:
        return frame.decode(), None
    except UnicodeDecodeError as error:
        text = frame.decode("iso-8859-2")
        at = error.start
        if frame.startswith((b"\xff\xfe", b"\xfe\xff")):
            return text, wrong("charset", "this looks like UTF-16", (0, 2), expected)
        if _NO_LATIN2.search(text):
            problem = f"{frame[at : error.end].hex(' ')} is no UTF-8, and the message no ISO-8859-2"
            return text, wrong("charset", problem, (at, error.end - at), expected)
        said = "this is ISO-8859-2; the specification names no charset"
        return text, unusual("iso-8859-2", said, (at, 1), None)


def declared(frame: bytes) -> Flaw | None:
    """A document type, which no message has and which is never followed: it may stand for anything."""
    start = frame.find(b"<!DOCTYPE")
    if start < 0:
        start = frame.find(b"<!ENTITY")
    if start < 0:
        return None
    external = _EXTERNAL.search(frame, start)
    if external is not None:
        text = "an external entity is declared; it is not looked up"
        return wrong("external-entity", text, (external.start(), len(external[0])), "no document type")
    text = "a document type is declared; it is not followed, and no entity is expanded"
    return wrong("document-type", text, (start, min(9, len(frame) - start)), "no document type")


def first_flaw(frame: bytes) -> Flaw:
    """What is wrong in a frame with no readable element in it."""
    flaw = _in_the_tags(frame)
    before = len(frame) if flaw is None else flaw.offset + max(flaw.length, 1)
    return control(frame, before) or flaw or _no_xml(frame)


def control(frame: bytes, before: int) -> Flaw | None:
    """The first control characters, if they stand before an offset."""
    found = _CONTROLS.search(frame)
    if found is None or found.start() >= before:
        return None
    text = f"there is a control character ({found[0][:4].hex(' ')})"
    return wrong("control-character", text, (found.start(), len(found[0])), "text")


def _in_the_tags(frame: bytes) -> Flaw | None:
    """The first flaw that can be told from the tags, the attributes in them and the text between them."""
    opened: list[Tag] = []
    rooted = False
    at = 0
    for tag in [*tags(frame), Tag("text", "", len(frame), len(frame))]:
        flaw = _in_text(frame, at, tag.start, bool(opened) and opened[-1].name != ENVELOPE, rooted)
        if flaw is not None:
            return flaw
        at = tag.end
        if tag.start == len(frame):
            break
        if tag.kind == "text":
            end = tag.start + 1
            shown = _UNTIL_BLANK.match(frame, end)
            assert shown is not None
            if _looks_like_tag(frame, tag):
                return wrong("unclosed-tag", "this tag has no end", (tag.start, tag.end - tag.start), '">"')
            place = tag.start, max(1, min(3, tag.end - tag.start))
            return wrong("bare-less-than", '"<" stands here, and begins no tag', place, '"&lt;"')
        if tag.kind in ("start", "empty"):
            flaw = _in_start_tag(frame, tag)
            if flaw is None and rooted and not opened:
                text = f"<{tag.name[:_SHOWN]}> stands behind the message's element"
                flaw = wrong("not-one-element", text, (tag.start, tag.end - tag.start), "one element")
            if flaw is not None:
                return flaw
            rooted = rooted or tag.name != ENVELOPE
            if tag.kind == "start":
                opened.append(tag)
                if len(opened) > DEPTH_LIMIT:
                    return too_deep(opened[0])
        elif tag.kind == "end":
            flaw = _ends(frame, tag, opened)
            if flaw is not None:
                return flaw
        elif tag.kind == "comment" and not frame.endswith(b"-->", tag.start + 4, tag.end):
            return wrong("unclosed-comment", "this comment has no end", (tag.start, 4), '"-->"')
    if opened and (opened[-1].name != ENVELOPE):
        return _unclosed(frame, opened[-1], len(frame))
    if not rooted:
        start = len(frame) - len(frame.lstrip(BLANKS))
        text = "there is no element in this message"
        return wrong("no-element", text, (start, len(frame.strip(BLANKS))), "an element")
    return None


def too_deep(outermost: Tag) -> Flaw:
    """Elements in elements in elements."""
    text = f"more than {DEPTH_LIMIT} elements stand in each other"
    return wrong("too-deep", text, (outermost.start, outermost.end - outermost.start), "a message")


def _looks_like_tag(frame: bytes, tag: Tag) -> bool:
    return re.match(rb"</?[A-Za-z]", frame[tag.start : tag.start + 3]) is not None


def _in_text(frame: bytes, start: int, end: int, inside: bool, rooted: bool) -> Flaw | None:
    text = frame[start:end]
    if inside:
        for found in _REFERENCE.finditer(text):
            flaw = _reference(found, start)
            if flaw is not None:
                return flaw
        return None
    stripped = text.strip(BLANKS)
    if not stripped or (stripped == b"]>" and not rooted):
        return None
    place = start + len(text) - len(text.lstrip(BLANKS)), len(stripped)
    shown = stripped[:_SHOWN].decode("utf-8", "replace")
    if rooted:
        return wrong("text-outside", f'"{shown}" stands behind the element', place, "an empty line")
    return wrong("no-element", f'"{shown}" stands where a message begins', place, "an element")


def _reference(found: re.Match[bytes], base: int) -> Flaw | None:
    place = base + found.start(), len(found[0])
    name = found[1]
    if name is None:
        return wrong("bare-ampersand", '"&" stands here, and begins no reference', place, '"&amp;"')
    if name.startswith(b"#"):
        number = int(name[2:], 16) if name.startswith(b"#x") else int(name[1:])
        if number in (9, 10, 13) or 0x20 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF:
            return None
        text = f"{found[0].decode()} is no character of XML"
        return wrong("bad-reference", text, place, "the number of a character")
    if name in _PREDEFINED:
        return None
    text = f"{found[0].decode('latin-1')} is an entity that nobody has declared"
    return wrong("undefined-entity", text, place, "&amp; &lt; &gt; &quot; &apos; or a number")


def _in_start_tag(frame: bytes, tag: Tag) -> Flaw | None:
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
            problem = f"{attribute[:_SHOWN].decode('latin-1')} is given twice"
            return wrong("attribute-twice", problem, (first, tag.start + found.end() - first), "each once")
        for reference in _REFERENCE.finditer(found[4]):
            flaw = _reference(reference, tag.start + found.start(4))
            if flaw is not None:
                return flaw
        seen[attribute] = start
        at = found.end()
    return None


def _broken_attribute(text: bytes, base: int, before: int, found: re.Match[bytes] | None) -> Flaw:
    """What is wrong with an attribute, or, where none is found, with the one `before`."""
    if found is not None and found[3] is not None:
        # Everything up to the next blank was probably meant as its value.
        rest = _UNTIL_BLANK.match(text, found.end())
        assert rest is not None
        place = base + found.start(2), rest.end() - found.start(2)
        return wrong("unquoted-value", "this value stands without quotes", place, 'name="value"')
    if found is not None:
        place = base + found.start(2), found.end() - found.start(2)
        return wrong("no-value", "this attribute has no value", place, 'name="value"')
    # Where a quote is missing, the attribute before this is the one without an end.
    place = base + before, len(text) - before - text.endswith(b">")
    return wrong("unterminated-value", "a quote is missing here", place, 'name="value"')


def _ends(frame: bytes, tag: Tag, opened: list[Tag]) -> Flaw | None:
    place = tag.start, tag.end - tag.start
    if not opened:
        if tag.name == ENVELOPE:
            return None
        return wrong("stray-end-tag", f"</{tag.name[:_SHOWN]}> ends nothing", place, "a start tag")
    if opened[-1].name == tag.name:
        begin = opened.pop()
        name = frame[begin.start + 1 : begin.start + 1 + len(tag.name)]
        if frame.startswith(name, tag.start + 2):
            return None
        text = f"</{tag.name[:_SHOWN]}> is not written like its start tag"
        return wrong("stray-end-tag", text, place, f"</{name[:_SHOWN].decode('latin-1')}>")
    if all(start.name != tag.name for start in opened):
        text = f"</{tag.name[:_SHOWN]}> ends nothing"
        return wrong("stray-end-tag", text, place, f"</{opened[-1].name[:_SHOWN]}>")
    unclosed = opened[-1]
    later = f"</{unclosed.name}>".encode("latin-1")
    if frame[tag.end :].lstrip(BLANKS).lower().startswith(later):
        text = f"</{tag.name[:_SHOWN]}> stands before </{unclosed.name[:_SHOWN]}>"
        return wrong("crossed-tags", text, place, f"</{unclosed.name[:_SHOWN]}>")
    return _unclosed(frame, unclosed, tag.start)


def _unclosed(frame: bytes, tag: Tag, end: int) -> Flaw:
    upto = min((at for at in (frame.find(b"<", tag.end, end), end) if at >= 0), default=end)
    length = len(frame[tag.start : upto].rstrip(BLANKS))
    text = f"<{tag.name[:_SHOWN]}> is not closed"
    return wrong("unclosed-element", text, (tag.start, length), f"</{tag.name[:_SHOWN]}>")


def _no_xml(frame: bytes) -> Flaw:
    """What only the parser takes exception to."""
    parser = expat.ParserCreate("iso-8859-1")
    try:
        parser.Parse(frame, True)
    except expat.ExpatError as error:
        at = min(max(parser.ErrorByteIndex, 0), len(frame))
        text = f"this is no XML: {expat.ErrorString(error.code)}"
        return wrong("no-xml", text, (at, min(1, len(frame) - at)), "well-formed XML")
    return wrong("no-xml", "this is no XML", (0, len(frame)), "well-formed XML")


# Where something stands in an element.


def place_of(frame: bytes, part: str = "tag", path: tuple[int, ...] = ()) -> tuple[int, int]:
    """Where in the bytes a part of an element stands, named as in `Unfit`: offset and length."""
    element = _element_at(frame, path)
    if element is None:
        return 0, len(frame)
    tag, inner_end = element
    start, end = tag.start, tag.end
    if part.startswith(("@", "=")):
        for name, whole, value in attribute_places(frame[start:end]):
            if name.lower() == part[1:].lower():
                first, last = whole if part[0] == "@" else value
                return start + first, last - first
    elif part == "text":
        text = frame[end:inner_end]
        if text.strip(BLANKS):
            return end + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))
    elif part == "text-inside":
        at, depth = end, 0
        for inner in [*tags(frame[end:inner_end]), Tag("text", "", inner_end - end, inner_end - end)]:
            text = frame[at : end + inner.start]
            if not depth and text.strip(BLANKS):
                return at + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))
            at = end + inner.end
            depth += {"start": 1, "end": -1}.get(inner.kind, 0)
    elif part.startswith("same "):
        one, other = (_element_at(frame, (*path, int(place))) for place in part.split()[1:])
        if one is not None and other is not None:
            close = frame.find(b">", other[1])
            return one[0].start, close + 1 - one[0].start
    return start, end - start


def _element_at(frame: bytes, path: tuple[int, ...]) -> tuple[Tag, int] | None:
    """The start tag of an element, and where its end tag begins."""
    found: Tag | None = None
    found_depth = 0
    steps: list[int] = []
    """The place of each open element among its siblings, the root's left out."""
    next_place = 0
    depth = 0
    for tag in tags(frame):
        if tag.name == ENVELOPE and depth == 0:
            continue
        if tag.kind in ("start", "empty"):
            here = (*steps[1:], next_place) if depth else ()
            if found is None and here == path:
                found = tag
                if tag.kind == "empty":
                    return tag, tag.end
                found_depth = depth
            if tag.kind == "start":
                steps.append(next_place if depth else 0)
                depth += 1
                next_place = 0
            else:
                next_place += 1
        elif tag.kind == "end" and depth:
            depth -= 1
            next_place = steps.pop() + 1
            if found is not None and depth == found_depth:
                return found, tag.start
    return (found, len(frame)) if found is not None else None


def empty_lines(frame: bytes) -> Iterator[Flaw]:
    """What is unusual about the line ends of a message, and the empty line behind it."""
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


def _line_ends(code: str, text: str, offset: int, length: int) -> Flaw:
    expected = "CR LF at the end of each line, and one empty line behind the message"
    return unusual(code, text, (offset, length), expected)
