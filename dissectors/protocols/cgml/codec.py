"""Elements to messages and back.

The parser is expat, by way of ElementTree. A message that declares a document type is not given to it at all,
so nothing is expanded or fetched. It is not asked for offsets: where a flaw stands is looked up in the bytes
(`places.py`), which costs nothing where nothing is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Flaw,
    MessageType,
    nearest_word,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Direction
from kiebitz.dissectors.protocols.cgml.anatomy import anatomy, is_marked
from kiebitz.dissectors.protocols.cgml.flaws import DEPTH_LIMIT, control, declared, first_flaw, too_deep
from kiebitz.dissectors.protocols.cgml.grammar import GRAMMAR, ROWS, VERSION, VERSIONS, ElementType
from kiebitz.dissectors.protocols.cgml.layout import (
    FOLLOWED,
    characters,
    empty_lines,
    extras,
    of_envelopes,
    of_framing,
    unknown_version,
)
from kiebitz.dissectors.protocols.cgml.markup import BLANK_TEXT, BLANKS, BYTE_ORDER_MARK, ENVELOPE, tags
from kiebitz.dissectors.protocols.cgml.misprints import MISPRINT, repaired
from kiebitz.dissectors.protocols.cgml.places import place_of, unusual, wrong
from kiebitz.dissectors.protocols.cgml.respelling import field_place, patched
from kiebitz.dissectors.protocols.cgml.values import Compound, Unfit, as_xml, escaped, read, written
from kiebitz.dissectors.suggestions import with_suggestion

_ROWS: dict[tuple[Direction, str], tuple[ElementType, ...]] = {
    (direction, name): tuple(row for row in ROWS if (row.direction, row.name) == (direction, name))
    for direction in DIRECTIONS
    for name in GRAMMAR.names(direction)
}

# A text's `\s` is more than a blank of XML.
_BEGIN = re.compile(rf"<{ENVELOPE}([{BLANK_TEXT}][^<>]*+)?>[{BLANK_TEXT}]*+")
_END = re.compile(rf"</{ENVELOPE}[{BLANK_TEXT}]*+>[{BLANK_TEXT}]*+\Z")
_PROLOG = re.compile(rf"\A(?:[{BLANK_TEXT}]*+(?:<\?[^<>]*+>|<!--.*?-->))++[{BLANK_TEXT}]*+", re.DOTALL)
_SMALL = 4096
"""In so few bytes (or ten times as many) nothing is nested too deep for the parser."""
_MAX_QUOTED = 40
_MARK = BYTE_ORDER_MARK.decode()


def _read(frame: bytes, text: str, direction: Direction, notes: list[Flaw]) -> Decoded:
    """Read the one element of a frame."""
    version: str | None = None
    body = text.strip(BLANK_TEXT)
    envelope = None
    if body.startswith(("<?", "<!")):
        body = _without_prolog(body)
    if body.startswith("<cgml"):
        envelope = _BEGIN.match(body)
        if envelope is not None:
            body = body[envelope.end() :]
    # The end of an envelope can only be the last tag.
    closed = _END.match(body, body.rfind("<"))
    if closed is not None:
        body = body[: closed.start()]
    if len(frame) > _SMALL:
        flaw = _too_deep(frame)
        if flaw is not None:
            return unreadable(flaw)
    if envelope is not None and (not body or body.startswith("<cgml")):
        return unreadable(of_envelopes(frame))
    try:
        if envelope is not None:
            version = _version_of(envelope[1] or "")
        element = fromstring(body)
    except ParseError:
        return _mended(frame, direction, notes)
    return _message(frame, element, version, direction, notes, envelope is not None, closed is not None)


@lru_cache(maxsize=64)
def _version_of(attributes: str) -> str | None:
    """The version in an envelope's attributes. Raises ParseError."""
    return fromstring(f"<{ENVELOPE}{attributes}/>").get(VERSION.name)


def _without_prolog(body: str) -> str:
    """The text behind declarations and comments."""
    return _PROLOG.sub("", body)


def _mended(frame: bytes, direction: Direction, notes: list[Flaw]) -> Decoded:
    """Read a frame once more without the misprints of the specification, or say what is wrong in it."""
    mended, misprints = repaired(frame)
    if misprints and not repaired(mended)[1]:
        text, _ = characters(mended)
        decoded = _read(mended, text, direction, [*notes, *misprints])
        if decoded.row is not None:
            return decoded
    return unreadable(first_flaw(frame))


def _too_deep(frame: bytes) -> Flaw | None:
    depth = 0
    first = None
    for tag in tags(frame):
        if tag.kind == "start":
            first = first or tag
            depth += 1
            if depth > DEPTH_LIMIT:
                return too_deep(first)
        elif tag.kind == "end":
            depth -= 1
    return None


def _message(
    frame: bytes,
    element: Element,
    version: str | None,
    direction: Direction,
    notes: list[Flaw],
    opened: bool,
    closed: bool,
) -> Decoded:
    name = element.tag
    rows = _ROWS.get((direction, name), ())
    lowered = None
    if not rows and name != name.lower():
        text = "identifiers are written in small letters"
        lowered = unusual("upper-case", text, place_of(frame), f"<{name.lower()[:_MAX_QUOTED]}>")
        _lower(element)
        rows = _ROWS.get((direction, element.tag), ())
    if not rows:
        return unreadable(_unknown(frame, element, direction))
    row = rows[0]
    fields: dict[str, Any] = {}
    try:
        row = _row_of(rows, element, direction)
        fields = read(row.shape, element, VERSION)
    except Unfit as error:
        if lowered is not None:
            # One flaw is enough.
            return Decoded(row, {}, "{}", False, (lowered,))
        flaw = wrong(
            error.code, str(error), place_of(frame, error.part, error.path), error.expected, row.clause
        )
        return Decoded(row, {}, "{}", False, (flaw,))
    framing = of_framing(frame, row, opened, closed)
    if framing is not None and framing.severity == "error":
        return Decoded(row, {}, "{}", False, (framing,))
    if framing is not None:
        notes.append(framing)
    if version is not None:
        fields[VERSION.name] = version
    if VERSION.name in fields and fields[VERSION.name] not in VERSIONS:
        notes.append(unknown_version(frame, fields[VERSION.name]))
    if lowered is not None:
        notes.append(lowered)
    return Decoded(row, fields, to_json(fields), True, tuple(notes))


def _lower(element: Element) -> None:
    for inner in element.iter():
        inner.tag = inner.tag.lower()
        for name in [name for name in inner.attrib if name != name.lower()]:
            inner.attrib[name.lower()] = inner.attrib.pop(name)


def _row_of(rows: tuple[ElementType, ...], element: Element, direction: Direction) -> ElementType:
    """Which of several messages of a name this is. Raises Unfit."""
    if rows[0].mark is None:
        return rows[0]
    attribute = rows[0].mark[0]
    value = element.get(attribute)
    for row in rows:
        if row.mark is not None and row.mark[1] == value:
            return row
    words = [row.mark[1] for row in rows if row.mark is not None]
    expected = f'{attribute}="{"|".join(words)}"'
    if value is None:
        raise Unfit("missing-attribute", f"<{element.tag}> has no {attribute}", expected)
    others = _ROWS.get((OPPOSITE[direction], element.tag), ())
    if any(row.mark == (attribute, value) for row in others):
        problem = f'{attribute}="{value}" is only sent by {sender_of(OPPOSITE[direction])}'
        raise Unfit("wrong-direction", problem, expected)
    problem = f'{attribute}: "{value[:_MAX_QUOTED]}" is not known here'
    near = nearest_word(value, words)
    raise Unfit("bad-field", with_suggestion(problem, near), expected, f"={attribute}")


def _unknown(frame: bytes, element: Element, direction: Direction) -> Flaw:
    name = element.tag
    names = GRAMMAR.names(direction)
    text = f"<{name[:_MAX_QUOTED]}> is no message that {sender_of(direction)} sends"
    code = "unknown-message"
    near = nearest_word(name, names)
    if name in GRAMMAR.names(OPPOSITE[direction]):
        text += f", but {sender_of(OPPOSITE[direction])}"
        code = "wrong-direction"
    elif near is not None:
        text = with_suggestion(text, f"<{near}>")
    return wrong(code, text, place_of(frame), "one of " + ", ".join(names))


def _begun(frame: bytes, direction: Direction, upto: int) -> ElementType | None:
    """The message that a frame begins whose element is no XML from an offset on."""
    for tag in tags(frame[:upto]):
        if tag.kind in ("start", "empty") and tag.name != ENVELOPE:
            rows = _ROWS.get((direction, tag.name), ())
            return next((row for row in rows if is_marked(frame, tag, row)), rows[0] if rows else None)
    return None


class CgmlCodec(Codec):
    """Elements of XML, each with an empty line behind it."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        """What a frame says; see `Codec.decode`."""
        text, charset = characters(frame)
        if charset is not None and charset.severity == "error":
            return unreadable(control(frame, charset.offset) or charset)
        notes = [charset] if charset is not None else []
        if "<!" in text or "<?" in text:
            flaw = declared(frame)
            if flaw is not None:
                return unreadable(flaw)
            notes += extras(frame)
        if (
            not frame.endswith(b"\r\n\r\n")
            or not frame.startswith(b"<")
            or frame.count(b"\n") != frame.count(b"\r\n")
        ):
            if not frame.strip(BLANKS):
                return unreadable(*empty_lines(frame))
            notes += empty_lines(frame)
            if frame.lstrip(BLANKS).startswith(BYTE_ORDER_MARK):
                at = frame.find(BYTE_ORDER_MARK)
                notes.append(
                    unusual("byte-order-mark", "a byte order mark stands before the message", (at, 3), None)
                )
                text = text.replace(_MARK, "", 1)
                if not text.strip(BLANK_TEXT):
                    return unreadable(*notes)
        return _read(frame, text, direction, notes)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        """The elements of a message and what takes them; see `Codec.anatomy`."""
        decoded = self.decode(frame, direction)
        row, upto = decoded.row, len(frame)
        markup = frame
        if any(flaw.code.startswith(MISPRINT) for flaw in decoded.flaws):
            markup = repaired(frame)[0]
        if row is None and decoded.flaws:
            upto = next((flaw for flaw in decoded.flaws if flaw.severity == "error"), decoded.flaws[0]).offset
            row = _begun(frame, direction, upto)
        assert row is None or isinstance(row, ElementType)
        return anatomy(frame, markup, decoded, row, upto)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        """What is left when a stream is closed before an empty line; see `Codec.truncated`."""
        decoded = self.decode(frame, direction)
        if not decoded.valid:
            return decoded
        # The element is whole: nothing of what was said is missing.
        at = frame.rfind(b"<")
        text = "the stream ends without the empty line behind the message"
        note = unusual("no-empty-line", text, (at, len(frame) - at), "an empty line")
        others = (flaw for flaw in decoded.flaws if flaw.code not in FOLLOWED)
        return Decoded(decoded.row, decoded.fields, decoded.fields_json, True, (*others, note))

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        """The element of a message, written as in the specification; see `Codec.encode`."""
        for row in _ROWS.get((direction, name), ()):
            if row.mark is not None and fields.get(row.mark[0]) != row.mark[1]:
                continue
            inner = {key: value for key, value in fields.items() if key != VERSION.name}
            try:
                element = "".join(written(name, row.shape, inner))
                if read(row.shape, fromstring(element)) != inner:
                    continue
                if VERSION.name in fields:
                    version = as_xml(fields[VERSION.name])
                    element = f'<{ENVELOPE} version="{version}">\r\n{element}\r\n</{ENVELOPE}>'
            except (Unfit, ValueError, TypeError, KeyError, AttributeError):
                continue
            return f"{element}\r\n\r\n".encode()
        raise ValueError(f"{direction} {name} has no row with these fields: {to_json(fields)[:_MAX_QUOTED]}")

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        assert isinstance(row, ElementType)
        return patched(frame, row, before, fields)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        assert isinstance(row, ElementType)
        return field_place(frame, row, name, whole=False)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        assert isinstance(row, ElementType)
        return field_place(frame, row, name, whole=True)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        # The text of an element with parts is XML already.
        written = text if isinstance(field.type, Compound) else escaped(text)
        return super().as_text(frame, row, field, written)

    def notation(self, row: MessageType) -> str:
        if isinstance(row, ElementType) and row.mark is not None:
            return f'<{row.name} {row.mark[0]}="{row.mark[1]}">'
        return f"<{row.name}>"
