"""The codec for CGML: XML elements to messages and back.

The parser is expat, through ElementTree. It never gets a message with a document type declaration, so no
entity is expanded or fetched. Offsets of diagnostics are found in the bytes afterwards (`places.py`), which
costs nothing for valid messages.
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
    MessageType,
    Violation,
    nearest_word,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.xml.markup import ATTRIBUTES, BLANK_TEXT, BLANKS, BYTE_ORDER_MARK, tags
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Direction
from kiebitz.dissectors.protocols.cgml.diagnostics import (
    DEPTH_LIMIT,
    control_character_error,
    document_type_error,
    first_error,
    too_deep,
)
from kiebitz.dissectors.protocols.cgml.dissection_tree import build_tree, is_marked
from kiebitz.dissectors.protocols.cgml.grammar import (
    ENVELOPE,
    FRAMING,
    GRAMMAR,
    VERSION,
    VERSIONS,
    ElementType,
)
from kiebitz.dissectors.protocols.cgml.layout_checks import (
    FOLLOWED,
    characters,
    check_framing,
    empty_lines,
    envelope_error,
    extras,
    unknown_version,
)
from kiebitz.dissectors.protocols.cgml.locations import error_at, location_of, note_at
from kiebitz.dissectors.protocols.cgml.misprints import MISPRINT, repaired
from kiebitz.dissectors.protocols.cgml.patching import field_place, patch_frame
from kiebitz.dissectors.protocols.cgml.values import (
    Compound,
    InvalidElement,
    as_xml,
    element_xml,
    escaped,
    read,
    wire_field,
    wire_shape,
)
from kiebitz.dissectors.suggestions import with_suggestion

_ROWS: dict[tuple[Direction, str], tuple[ElementType, ...]] = {
    (direction, name): tuple(
        row for row in GRAMMAR.rows_named(direction, name) if isinstance(row, ElementType)
    )
    for direction in DIRECTIONS
    for name in GRAMMAR.names(direction)
}

# In a text, `\s` matches more than XML's blanks.
_BEGIN = re.compile(rf"<{ENVELOPE}([{BLANK_TEXT}](?:{ATTRIBUTES.decode()}(?=>)|[^<>]*+))?>[{BLANK_TEXT}]*+")
_END = re.compile(rf"</{ENVELOPE}[{BLANK_TEXT}]*+>[{BLANK_TEXT}]*+\Z")
_PROLOG = re.compile(rf"\A(?>(?:[{BLANK_TEXT}]*+(?:<\?[^<>]*+>|<!--.*?-->))+)[{BLANK_TEXT}]*+", re.DOTALL)
_SMALL = 4096
"""Size in bytes (up to ten times as much) below which no nesting is too deep for the parser."""
_MAX_QUOTED = 40
_MARK = BYTE_ORDER_MARK.decode()


def _read(frame: bytes, text: str, direction: Direction, notes: list[Violation]) -> Decoded:
    version: str | None = None
    body = text.strip(BLANK_TEXT)
    envelope = None
    if body.startswith(("<?", "<!")):
        body = _without_prolog(body)
    if body.startswith("<cgml"):
        envelope = _BEGIN.match(body)
        if envelope is not None:
            body = body[envelope.end() :]
    # The envelope can only end with the last tag.
    closed = _END.match(body, body.rfind("<"))
    if closed is not None:
        body = body[: closed.start()]
    if len(frame) > _SMALL:
        violation = _too_deep(frame)
        if violation is not None:
            return unreadable(violation)
    if envelope is not None and (not body or body.startswith("<cgml")):
        return unreadable(envelope_error(frame))
    try:
        if envelope is not None:
            version = _version_of(envelope[1] or "")
        element = fromstring(body)
    except ParseError:
        return _mended(frame, direction, notes)
    return _message(frame, element, version, direction, notes, envelope is not None, closed is not None)


@lru_cache(maxsize=64)
def _version_of(attributes: str) -> str | None:
    return fromstring(f"<{ENVELOPE}{attributes}/>").get(VERSION.name)


def _without_prolog(body: str) -> str:
    return _PROLOG.sub("", body)


def _mended(frame: bytes, direction: Direction, notes: list[Violation]) -> Decoded:
    mended, misprints = repaired(frame)
    if misprints and not repaired(mended)[1]:
        text, _ = characters(mended)
        decoded = _read(mended, text, direction, [*notes, *misprints])
        if decoded.row is not None:
            return decoded
    return unreadable(first_error(frame))


def _too_deep(frame: bytes) -> Violation | None:
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
    notes: list[Violation],
    opened: bool,
    closed: bool,
) -> Decoded:
    name = element.tag
    rows = _ROWS.get((direction, name), ())
    lowered = None
    if not rows and name != name.lower():
        text = "identifiers are written in small letters"
        lowered = note_at("upper-case", text, location_of(frame), f"<{name.lower()[:_MAX_QUOTED]}>")
        _lower(element)
        rows = _ROWS.get((direction, element.tag), ())
    if not rows:
        return unreadable(_unknown(frame, element, direction))
    row = rows[0]
    fields: dict[str, Any] = {}
    try:
        row = _row_of(rows, element, direction)
        fields = read(row.shape, element, VERSION)
    except InvalidElement as error:
        if lowered is not None:
            # One diagnostic is enough.
            return Decoded(row, {}, "{}", False, (lowered,))
        violation = error_at(
            error.code, str(error), location_of(frame, error.part, error.path), error.expected, row.clause
        )
        return Decoded(row, {}, "{}", False, (violation,))
    framing = check_framing(frame, row, opened, closed)
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
    """Return the row of a message if several have its name. Raises Unfit."""
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
        raise InvalidElement("missing-attribute", f"<{element.tag}> has no {attribute}", expected)
    others = _ROWS.get((OPPOSITE[direction], element.tag), ())
    if any(row.mark == (attribute, value) for row in others):
        problem = f'{attribute}="{value}" is only sent by {sender_of(OPPOSITE[direction])}'
        raise InvalidElement("wrong-direction", problem, expected)
    problem = f'{attribute}: "{value[:_MAX_QUOTED]}" is not known here'
    near = nearest_word(value, words)
    raise InvalidElement("bad-field", with_suggestion(problem, near), expected, f"={attribute}")


def _unknown(frame: bytes, element: Element, direction: Direction) -> Violation:
    name = element.tag
    names = GRAMMAR.names(direction)
    text = f"<{name[:_MAX_QUOTED]}> is not a message that {sender_of(direction)} sends"
    code = "unknown-message"
    near = nearest_word(name, names)
    if name in GRAMMAR.names(OPPOSITE[direction]):
        text += f", but {sender_of(OPPOSITE[direction])}"
        code = "wrong-direction"
    elif near is not None:
        text = with_suggestion(text, f"<{near}>")
    return error_at(code, text, location_of(frame), "one of " + ", ".join(names))


def _begun(frame: bytes, direction: Direction, upto: int) -> ElementType | None:
    """Return the row of the message that begins a frame which is XML up to an offset."""
    for tag in tags(frame[:upto]):
        if tag.kind in ("start", "empty") and tag.name != ENVELOPE:
            rows = _ROWS.get((direction, tag.name), ())
            return next((row for row in rows if is_marked(frame, tag, row)), rows[0] if rows else None)
    return None


class CgmlCodec(Codec):
    """The codec for XML elements, each followed by an empty line."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        text, charset = characters(frame)
        if charset is not None and charset.severity == "error":
            return unreadable(control_character_error(frame, charset.offset) or charset)
        notes = [charset] if charset is not None else []
        if "<!" in text or "<?" in text:
            violation = document_type_error(frame)
            if violation is not None:
                return unreadable(violation)
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
                    note_at("byte-order-mark", "a byte order mark precedes the message", (at, 3), None)
                )
                text = text.replace(_MARK, "", 1)
                if not text.strip(BLANK_TEXT):
                    return unreadable(*notes)
        return _read(frame, text, direction, notes)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        row, upto = decoded.row, len(frame)
        markup = frame
        if any(violation.code.startswith(MISPRINT) for violation in decoded.violations):
            markup = repaired(frame)[0]
        if row is None and decoded.violations:
            upto = next(
                (violation for violation in decoded.violations if violation.severity == "error"),
                decoded.violations[0],
            ).offset
            row = _begun(frame, direction, upto)
        assert row is None or isinstance(row, ElementType)
        return build_tree(frame, markup, decoded, row, upto)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        decoded = self.decode(frame, direction)
        if not decoded.valid:
            return decoded
        # The element is complete, so no information is missing.
        at = frame.rfind(b"<")
        text = "the stream ends without the empty line after the message"
        note = note_at("no-empty-line", text, (at, len(frame) - at), "an empty line")
        others = (violation for violation in decoded.violations if violation.code not in FOLLOWED)
        return Decoded(decoded.row, decoded.fields, decoded.fields_json, True, (*others, note))

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        for row in _ROWS.get((direction, name), ()):
            if row.mark is not None and fields.get(row.mark[0]) != row.mark[1]:
                continue
            inner = {key: value for key, value in fields.items() if key != VERSION.name}
            try:
                element = "".join(element_xml(name, row.shape, inner))
                if read(row.shape, fromstring(element)) != inner:
                    continue
                if VERSION.name in fields:
                    version = as_xml(fields[VERSION.name])
                    element = f'<{ENVELOPE} version="{version}">\r\n{element}\r\n</{ENVELOPE}>'
            except (InvalidElement, ValueError, TypeError, KeyError, AttributeError):
                continue
            return f"{element}\r\n\r\n".encode()
        raise ValueError(f"{direction} {name} has no row with these fields: {to_json(fields)[:_MAX_QUOTED]}")

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        assert isinstance(row, ElementType)
        return patch_frame(frame, row, before, fields)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        assert isinstance(row, ElementType)
        return field_place(frame, row, name, whole=False)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        assert isinstance(row, ElementType)
        return field_place(frame, row, name, whole=True)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        # An element with parts is encoded as XML already.
        content = text if isinstance(field.type, Compound) else escaped(text)
        return super().as_text(frame, row, field, content)

    def notation(self, row: MessageType) -> str:
        if isinstance(row, ElementType) and row.mark is not None:
            return f'<{row.name} {row.mark[0]}="{row.mark[1]}">'
        return f"<{row.name}>"

    def wire_format(self) -> Mapping[str, Any]:
        return {
            "kind": "cgml",
            "framing": {
                "kind": "xml",
                "blank_line": True,
                "skips_blanks": True,
                "envelope": ENVELOPE,
                "roots": FRAMING.wire_roots,
            },
            "version": wire_field(VERSION),
            "runtime": ("text_types", "json", "pairs", "xml", "cgml"),
            "charset": [bytes([byte]).decode("iso-8859-2") for byte in range(0x80, 0x100)],
            "limits": (
                "misprints in the markup are errors, though Kiebitz reads some of them",
                "an envelope around several messages, or without its end, is not checked",
            ),
        }

    def wire_row(self, row: MessageType) -> Mapping[str, Any]:
        assert isinstance(row, ElementType)
        return {"mark": row.mark, "shape": wire_shape(row.shape)}
