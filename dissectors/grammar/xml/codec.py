"""The codec for XML elements: from their bytes to messages and back.

The parser is expat, through ElementTree. It never gets a message with a document type declaration, so no
entity is expanded or fetched. Offsets of diagnostics are found in the bytes afterwards (`tree.py`), which
costs nothing for valid messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, fromstring
from xml.parsers import expat

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import Fields, FieldType, Mismatch, WireType
from kiebitz.dissectors.grammar.grammar import (
    BLANKS,
    Decoded,
    Field,
    Grammar,
    MessageType,
    Place,
    Violation,
    error_at,
    nearest_word,
    sender_of,
    spelt_alike,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import LayoutCodec, Part
from kiebitz.dissectors.grammar.xml.diagnostics import (
    FOLLOWED,
    MISPRINT,
    XmlFormat,
    check_framing,
    control_character_error,
    document_type_error,
    empty_lines,
    envelope_error,
    extras,
    first_error,
    in_second_charset,
    outer_place,
    repaired,
    too_deep,
    unusual,
)
from kiebitz.dissectors.grammar.xml.framer import framing_of
from kiebitz.dissectors.grammar.xml.layout import LayoutBuilder, is_marked, unread_at
from kiebitz.dissectors.grammar.xml.markup import (
    ATTRIBUTES,
    BLANK_TEXT,
    BYTE_ORDER_MARK,
    as_xml,
    escaped,
    location_of,
    note_at,
    tags,
    tree,
)
from kiebitz.dissectors.grammar.xml.shapes import (
    MAX_DEPTH,
    TEXT,
    Compound,
    ElementType,
    InvalidElement,
    OpenReading,
    decoded,
    element_xml,
    open_xml,
    read,
    wire_field,
    wire_shape,
)
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.suggestions import with_suggestion

_PROLOG = re.compile(rf"\A(?>(?:[{BLANK_TEXT}]*+(?:<\?[^<>]*+>|<!--.*?-->))+)[{BLANK_TEXT}]*+", re.DOTALL)
_SMALL = 4096
"""Size in bytes (up to ten times as much) below which no nesting is too deep for the parser."""
_MAX_QUOTED = 40
_MARK = BYTE_ORDER_MARK.decode()
_OF_SEVERAL = ("missing-attribute", "missing-element", "missing-field", "too-many", "twice")
"""The codes of diagnostics in which each part by itself is valid."""
_CHARACTER = re.compile("&[^;]{1,9};|.", re.DOTALL)
_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}

_LIMITS: Mapping[str, Callable[[XmlFormat], object]] = {
    "misprints in the markup are errors, though Kiebitz reads some of them": lambda of: of.misprints,
    "an envelope around several messages, or without its end, is not checked": lambda of: of.envelope,
}
"""Limits of the dissectors for Wireshark, and the formats that have them."""


class _DocumentType(Exception):
    """A document type is declared."""


def parse(text: str) -> Element:
    """Return the element of a text, with names as they are written. Raises ParseError, _DocumentType."""
    if "<!DOCTYPE" not in text:
        try:
            element = fromstring(text)
        except ParseError:
            if ":" not in text:
                raise
        else:
            if "xmlns" not in text:
                return element
    # ElementTree would follow document types, and read prefixes of namespaces.
    parser = expat.ParserCreate("utf-8")
    builder: Any = TreeBuilder()

    def begin(name: str, attributes: dict[str, str]) -> None:
        # Namespaces are ignored.
        builder.start(name, {key: of for key, of in attributes.items() if not key.startswith("xmlns")})

    parser.StartElementHandler, parser.EndElementHandler = begin, builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise ParseError(str(error)) from None
    found = builder.close()
    assert isinstance(found, Element)
    return found


def _refuse(*_: Any) -> None:
    raise _DocumentType


class XmlCodec(LayoutCodec):
    """The codec for XML elements; `format` says how they are written.

    Rows with a closed shape have fields in one place; of those with an open one, the best row is chosen.
    """

    between = "markup"
    is_self_delimited = True

    def __init__(self, grammar: Grammar, envelope: Envelope, of: XmlFormat, **more: Any) -> None:
        super().__init__(grammar, envelope, **more)
        self.format = of
        self.framing = framing_of(grammar.rows, of)
        repeated = {row.name: None for row in grammar.rows if isinstance(row, ElementType) and row.repeats}
        names = ", ".join(f"<{name}>" for name in repeated)
        self._following = f"; only {names} may repeat" if names else ""
        self._opening = f"<{of.envelope}"
        self._rows: dict[tuple[Direction, str], tuple[ElementType, ...]] = {}
        for row in grammar.rows:
            if isinstance(row, ElementType):
                key = row.direction, str(self.sent_name(row))
                self._rows[key] = (*self._rows.get(key, ()), row)
        name = re.escape(of.envelope)
        # In a text, `\s` matches more than XML's blanks.
        self._begin = re.compile(
            rf"<{name}([{BLANK_TEXT}](?:{ATTRIBUTES.decode()}(?=>)|[^<>]*+))?>[{BLANK_TEXT}]*+"
        )
        self._end = re.compile(rf"</{name}[{BLANK_TEXT}]*+>[{BLANK_TEXT}]*+\Z")

        self._document = {row.direction: row for row in grammar.transport_rows if row.name == of.envelope}

        @lru_cache(maxsize=64)
        def outer_fields(attributes: str) -> Mapping[str, Any]:
            sent = fromstring(f"<x{attributes}/>").attrib
            return {
                field.name: decoded(field.name, field.type, sent[field.name], f"={field.name}")
                for field in of.outer
                if field.name in sent
            }

        self._outer_fields = outer_fields

    # Decoding.

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        start, end = self.envelope.body(frame)
        if start == end:
            return self.empty(frame)
        decoded = self._decode(frame[start:end], direction)
        return self._completed(decoded, start) if decoded.violations else decoded

    def _completed(self, decoded: Decoded, start: int = 0) -> Decoded:
        """Return a message with its diagnostics' places in the frame, and the clause about messages."""
        violations = (
            msgspec.structs.replace(each, offset=each.offset + start, clause=each.clause or self.clause)
            for each in decoded.violations
        )
        return msgspec.structs.replace(decoded, violations=tuple(violations))

    def characters(self, frame: bytes) -> tuple[str, Violation | None]:
        """Return a frame's text, with a note or an error on its charset."""
        try:
            return frame.decode(self.encoding), None
        except UnicodeDecodeError as error:
            if self.format.charset:
                return in_second_charset(frame, error, self.format.charset)
            return "", self.not_text(frame, error, 0)

    def _decode(self, frame: bytes, direction: Direction) -> Decoded:
        of = self.format
        notes: list[Violation] = []
        try:
            text = frame.decode(self.encoding)
        except UnicodeDecodeError:
            text, charset = self.characters(frame)
            assert charset is not None
            if charset.severity == "error":
                return unreadable(control_character_error(frame, charset.offset) or charset)
            notes.append(charset)
        if "<!" in text or "<?" in text:
            violation = document_type_error(frame)
            if violation is not None:
                return unreadable(violation)
            notes += extras(frame) if of.is_strict else ()
        is_usual = frame.startswith(b"<")
        if of.blank_line and (
            not is_usual or not frame.endswith(b"\r\n\r\n") or frame.count(b"\n") != frame.count(b"\r\n")
        ):
            if not frame.strip(BLANKS):
                return unreadable(*empty_lines(frame))
            notes += empty_lines(frame)
        if not is_usual and frame.lstrip(BLANKS).startswith(BYTE_ORDER_MARK):
            at = frame.find(BYTE_ORDER_MARK)
            note = note_at("byte-order-mark", "a byte order mark precedes the message", (at, 3), None)
            notes += [note] if of.is_strict else ()
            text = text.replace(_MARK, "", 1)
            if not text.strip(BLANK_TEXT):
                return unreadable(note)
        return self._read(frame, text, direction, notes)

    def _read(self, frame: bytes, text: str, direction: Direction, notes: list[Violation]) -> Decoded:
        of = self.format
        outer: Fields = {}
        body = text.strip(BLANK_TEXT)
        opened = closed = None
        if body.startswith(("<?", "<!")):
            body = _PROLOG.sub("", body)
        if of.envelope:
            if body.startswith(self._opening):
                opened = self._begin.match(body)
                if opened is not None:
                    body = body[opened.end() :]
            # The envelope can only end with the last tag.
            closed = self._end.match(body, body.rfind("<"))
            if closed is not None:
                body = body[: closed.start()]
        if len(frame) > _SMALL:
            violation = _too_deep(frame)
            if violation is not None:
                return unreadable(violation)
        if of.envelope and not body and of.stays_open and (opened or closed):
            return Decoded(self._document[direction], {}, "{}", True, tuple(notes))
        if opened is not None and (not body or body.startswith(self._opening)):
            return unreadable(envelope_error(frame, of.envelope.lower()))
        try:
            if opened is not None:
                outer = self._outer_fields(opened[1] or "")
            element = parse(body)
        except InvalidElement as error:
            place = outer_place(frame, error.part[1:])
            return unreadable(error_at(error.code, str(error), place, error.expected))
        except ParseError:
            return self._mended(frame, direction, notes)
        except _DocumentType:
            return unreadable(document_type_error(frame, is_sure=True) or first_error(frame, of))
        return self._message(
            frame, element, outer, direction, notes, (opened is not None, closed is not None)
        )

    def _mended(self, frame: bytes, direction: Direction, notes: list[Violation]) -> Decoded:
        misprints = self.format.misprints
        mended, found = repaired(frame, misprints)
        if found and not repaired(mended, misprints)[1]:
            text, _ = self.characters(mended)
            decoded = self._read(mended, text, direction, [*notes, *found])
            if decoded.row is not None:
                return decoded
        return unreadable(first_error(frame, self.format))

    def _message(
        self,
        frame: bytes,
        element: Element,
        outer: Fields,
        direction: Direction,
        notes: list[Violation],
        envelope: tuple[bool, bool],
    ) -> Decoded:
        of = self.format
        sent = element.tag if of.mark is None else self._marked(element)[0]
        rows = self._rows.get((direction, sent or ""), ())
        if not rows and sent is not None and (name := self.name_of_text(sent, direction)) is not None:
            rows = self._rows.get((direction, str(self._sent_names[direction, name])), ())
        lowered = None
        if not rows and of.is_strict and sent is not None and sent != sent.lower():
            text = "identifiers are written in small letters"
            lowered = note_at("upper-case", text, self._place(frame), f"<{sent.lower()[:_MAX_QUOTED]}>")
            _lower(element)
            rows = self._rows.get((direction, sent.lower()), ())
        if not rows:
            return unreadable(self.unknown_element(frame, element, sent, direction))
        row = rows[0]
        if row.shape.anywhere is not None:
            return self._open_message(frame, element, rows, outer, notes)
        fields: dict[str, Any] = {}
        try:
            row, fields = self._closed(rows, element, direction)
        except InvalidElement as error:
            row = error.row or row
            # One diagnostic is enough.
            violation = lowered or self.invalid(frame, row, error)
            return Decoded(row, {}, "{}", False, (violation,))
        if of.blank_line:
            following = None if row.repeats else self._following
            framing = check_framing(frame, of, *envelope, following)
            if framing is not None and framing.severity == "error":
                return Decoded(row, {}, "{}", False, (framing,))
            if framing is not None:
                notes.append(framing)
        for field in of.outer:
            if field.name in outer:
                fields[field.name] = outer[field.name]
            if field.name in fields and (remark := field.type.remark(str(fields[field.name]))) is not None:
                notes.append(unusual(frame, field, remark))
        if lowered is not None:
            notes.append(lowered)
        return Decoded(row, fields, to_json(fields), True, tuple(notes))

    def _marked(self, element: Element) -> tuple[str | None, tuple[int, ...]]:
        """Return what is sent as a message's name, and the path of the element that has it."""
        mark, path = self.format.mark, self.format.path
        if not path:
            return element.get(mark or ""), ()
        for number, inner in enumerate(element):
            if inner.tag == path[0]:
                return inner.get(mark or ""), (number,)
        return element.tag, ()

    def _closed(
        self, rows: tuple[ElementType, ...], element: Element, direction: Direction
    ) -> tuple[ElementType, dict[str, Any]]:
        """Return the row of a message, and its fields. Raises InvalidElement."""
        wrong: InvalidElement | None = None
        for row in rows:
            if row.mark is None or element.get(row.mark[0]) == row.mark[1]:
                try:
                    return row, read(row.shape, element)
                except InvalidElement as error:
                    error.row = row
                    wrong = wrong or error
        raise wrong or self._unmarked(rows, element, direction)

    def _unmarked(
        self, rows: tuple[ElementType, ...], element: Element, direction: Direction
    ) -> InvalidElement:
        """Return the error of a message that has the mark of no row."""
        assert rows[0].mark is not None
        attribute = rows[0].mark[0]
        value = element.get(attribute)
        words = [row.mark[1] for row in rows if row.mark is not None]
        expected = f'{attribute}="{"|".join(words)}"'
        if value is None:
            return InvalidElement("missing-attribute", f"<{element.tag}> has no {attribute}", expected)
        others = self._rows.get((OPPOSITE[direction], element.tag), ())
        if any(row.mark == (attribute, value) for row in others):
            problem = f'{attribute}="{value}" is only sent by {sender_of(OPPOSITE[direction])}'
            return InvalidElement("wrong-direction", problem, expected)
        problem = f'{attribute}: "{value[:_MAX_QUOTED]}" is not known here'
        near = nearest_word(value, words)
        return InvalidElement("bad-field", with_suggestion(problem, near), expected, f"={attribute}")

    def _open_message(
        self,
        frame: bytes,
        element: Element,
        rows: tuple[ElementType, ...],
        outer: Fields,
        notes: list[Violation],
    ) -> Decoded:
        """Return the message of the first row that fits without other fields, else of the nearest one."""
        readings = []
        mark, marked = (None, *self.format.path) if self.format.path else (self.format.mark, None)
        for row in rows:
            reading = OpenReading(row.shape, element, mark, marked)
            reading.fields |= outer
            if not reading.wrong and not reading.unknown:
                return Decoded(row, reading.fields, to_json(reading.fields), True, tuple(notes))
            readings.append((row, reading))
        row, reading = min(
            readings,
            key=lambda each: (
                bool(each[1].wrong),
                each[1].wrong and len(each[1].wrong) - len(each[1].fields),
            ),
        )
        if reading.wrong:
            notes.insert(0, self.invalid(frame, row, reading.wrong[0]))
        else:
            notes.append(self.unknown_field(frame, row, *reading.unknown[0]))
        fields = reading.fields
        return Decoded(row, fields, to_json(fields), not reading.wrong, tuple(notes))

    # Diagnostics.

    def _place(self, frame: bytes, error: InvalidElement | None = None) -> Place:
        part, path = ("tag", ()) if error is None else (error.part, error.path)
        place = location_of(frame, part, path, self.framing.envelope)
        mismatch = None if error is None else error.mismatch
        if mismatch is not None and 0 < mismatch.end - mismatch.start < place[1]:
            # A part of a list or an object that is written as text.
            text = frame[place[0] : place[0] + place[1]]
            if b"&" not in text and text.isascii() and mismatch.end <= place[1]:
                return place[0] + mismatch.start, mismatch.end - mismatch.start
        return place

    def invalid(self, frame: bytes, row: ElementType, error: InvalidElement) -> Violation:
        """Return the error of a part that does not fit its row."""
        place = self._place(frame, error)
        if row.shape.anywhere is None:
            return error_at(error.code, str(error), place, error.expected, row.clause)
        if error.code == "missing-field" and not error.path:
            return self.missing_error(row, error.field, place)
        problem = error.problem if error.mismatch is None else error.mismatch.problem
        return self.field_error(row, error.field, Mismatch(0, 0, problem, error.expected, error.code), place)

    def unknown_field(self, frame: bytes, row: ElementType, name: str, error: InvalidElement) -> Violation:
        """Return the note on a part that no row of the message has."""
        text = f'{row.name} has a field "{name[:_MAX_QUOTED]}", which is not specified'
        start, length = self._place(frame, error)
        if error.part.startswith("@"):
            length = len(name.encode())
        note = note_at("unknown-field", text, (start, length), self.notation(row))
        return msgspec.structs.replace(note, clause=row.clause)

    def unknown_element(
        self, frame: bytes, element: Element, sent: str | None, direction: Direction
    ) -> Violation:
        """Return the error of a message whose name is not known."""
        if not self.format.is_strict:
            return self._unknown_name(frame, element, sent, direction)
        name = element.tag
        names = self.grammar.names(direction)
        text = f"<{name[:_MAX_QUOTED]}> is not a message that {sender_of(direction)} sends"
        code = "unknown-message"
        near = nearest_word(name, names)
        if name in self.grammar.names(OPPOSITE[direction]):
            text += f", but {sender_of(OPPOSITE[direction])}"
            code = "wrong-direction"
        elif near is not None:
            text = with_suggestion(text, f"<{near}>")
        return error_at(code, text, self._place(frame), "one of " + ", ".join(names))

    def _unknown_name(
        self, frame: bytes, element: Element, sent: str | None, direction: Direction
    ) -> Violation:
        mark = self.format.mark
        path = () if mark is None else self._marked(element)[1]
        is_tag = mark is None or len(path) < len(self.format.path)
        error = InvalidElement("", "", "", "name" if is_tag else f"={mark}")
        error.path = path
        if sent is None:
            error.part = "tag"
            return self.error(
                "unknown-message", f"there is no attribute {mark}", self._place(frame, error), f"{mark}="
            )
        return self.unknown_message(sent, direction, self._place(frame, error))

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        if not self.format.blank_line:
            return super().truncated(frame, direction)
        decoded = self.decode(frame, direction)
        if not decoded.valid:
            return decoded
        # The element is complete, so no information is missing.
        at = frame.rfind(b"<")
        text = "the stream ends without the empty line after the message"
        note = note_at("no-empty-line", text, (at, len(frame) - at), "an empty line")
        others = (violation for violation in decoded.violations if violation.code not in FOLLOWED)
        return self._completed(
            Decoded(decoded.row, decoded.fields, decoded.fields_json, True, (*others, note))
        )

    # Places.

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        return self._layout(frame, row, self.envelope.body(frame))

    def _layout(self, frame: bytes, row: MessageType, place: tuple[int, int]) -> Sequence[Part]:
        assert isinstance(row, ElementType)
        return LayoutBuilder(frame, row, self.format, place).parts()

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        start, end = self.envelope.body(frame)
        row, upto, markup = decoded.row, end, frame
        wrong = next((each for each in decoded.violations if each.severity == "error"), None)
        if any(violation.code.startswith(MISPRINT) for violation in decoded.violations):
            markup = repaired(frame, self.format.misprints)[0]
        if row is None and decoded.violations:
            upto = (wrong or decoded.violations[0]).place(frame)[0]
            row = self._begun(frame, direction, start, upto)
        pieces = Pieces(frame)
        pieces.take_any(start, "markup", self.envelope.title)
        if row is None:
            pieces.take_any(len(frame[:end].rstrip(BLANKS)) or end, *not_understood(decoded))
        else:
            parts: Sequence[Part] = self._layout(markup, row, (start, upto))
            if wrong is not None and decoded.row is not None and wrong.code not in _OF_SEVERAL:
                parts = [*unread_at(parts, wrong.place(frame)[0])]
            for part in parts:
                self._take(pieces, part, decoded)
        if not frame[pieces.at : end].strip(BLANKS):
            pieces.take_any(len(frame), "markup", "empty line" if self.format.blank_line else "line end")
        return pieces.finish(decoded)

    def is_unread(self, part: Part, decoded: Decoded) -> bool:
        return False

    def _begun(self, frame: bytes, direction: Direction, start: int, upto: int) -> ElementType | None:
        """Return the row of the message that begins a frame which is XML up to an offset."""
        for tag in tags(frame, start, upto):
            if tag.kind in ("start", "empty") and tag.name != (self.framing.envelope or None):
                name = frame[tag.start + 1 : tag.start + 1 + len(tag.name)].decode("latin-1")
                rows = self._rows.get((direction, name), self._rows.get((direction, tag.name), ()))
                return next((row for row in rows if is_marked(frame, tag, row)), rows[0] if rows else None)
        return None

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        place = super().text_place(frame, row, name)
        if place is None and isinstance(row, ElementType) and row.shape.text is not None:
            root = tree(frame, self.framing.envelope) if row.shape.text.name == name else None
            return None if root is None or root.tag.kind == "empty" else (root.tag.end, 0)
        is_empty = place is not None and place[1] and frame.endswith(b"/>", place[0], place[0] + place[1])
        return None if is_empty and place is not None and frame.startswith(b"<", place[0]) else place

    def _part_of(self, frame: bytes, row: MessageType, name: str) -> Part | None:
        """Return the part of a field; if it is a list in a closed shape, the first element."""
        is_open = isinstance(row, ElementType) and row.shape.anywhere is not None
        paths = ((name,),) if is_open else ((name,), (name, 0))
        return next((part for part in self.layout(frame, row) if part.path in paths), None)

    # Writing.

    def has_all(self, row: MessageType, fields: Fields) -> bool:
        return True

    def write_message(self, row: MessageType, fields: Fields) -> bytes:
        assert isinstance(row, ElementType)
        of = self.format
        if row is self._document.get(row.direction):
            return f"</{of.envelope}>".encode()
        name = str(self.sent_name(row))
        inner, indent = dict(fields), "\r\n" if of.blank_line else ""
        outer = [(field, inner.pop(field.name)) for field in of.outer if field.name in inner]
        if row.shape.anywhere is None:
            element = "".join(element_xml(name, row.shape, inner, indent))
        else:
            element = self._open_element(name, row.shape.anywhere, inner)
        if outer:
            attributes = "".join(
                f' {field.name}="{as_xml(field.type.encode(value))}"' for field, value in outer
            )
            closing = "" if of.stays_open else f"{indent}</{of.envelope}>"
            element = f"<{of.envelope}{attributes}>{indent}{element}{closing}"
        ending = indent * 2
        return f"{element}{ending}".encode(self.encoding, "xmlcharrefreplace")

    def _open_element(self, name: str, kinds: Mapping[str, FieldType], fields: Fields) -> str:
        mark, path = self.format.mark, self.format.path
        if mark is None or (path and path[0] not in kinds):
            return open_xml(name, kinds, fields)
        if not path:
            return open_xml("message", kinds, fields, f' {mark}="{escaped(name)}"')
        return open_xml("message", kinds, {**fields, path[0]: {mark: name, **fields[path[0]]}})

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert part.type is not None
        new = part.type.encode(value)
        if isinstance(part.type, Compound):
            return new.encode()
        of = self.format
        is_second = of.charset and self.characters(frame)[1] is not None
        charset = of.charset if is_second else self.encoding
        text = as_xml(new).encode(charset, "xmlcharrefreplace")
        start, length = part.value
        was = frame[start : start + length]
        if was.startswith(b"<") and was.endswith(b"/>"):
            # An empty element becomes one with a text.
            head = was.removesuffix(b"/>").rstrip(BLANKS)
            return b"%b>%b</%b>" % (head, text, re.split(rb"\s", head, maxsplit=1)[0][1:])
        if frame[start - 1 : start] == b"'":
            text = text.replace(b"'", b"&apos;")
        alike = None if b"<" in was else _spelt_alike(was, new, charset)
        return text if alike is None else alike

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        # An element with parts is encoded as XML already.
        content = text if isinstance(field.type, Compound) else escaped(text)
        return Codec.as_text(self, frame, row, field, content)

    def notation(self, row: MessageType) -> str:
        sent, mark, path = str(self.sent_name(row)), self.format.mark, self.format.path
        if self.format.is_strict:
            assert isinstance(row, ElementType)
            return f"<{sent}>" if row.mark is None else f'<{sent} {row.mark[0]}="{row.mark[1]}">'
        names = [f' {field.name}="…"' for field in row.fields if field.name not in (TEXT, *path)]
        if path and any(field.name == path[0] for field in row.fields):
            return f'<…{"".join(names)}><{path[0]} {mark}="{sent}"/></…>'
        head = sent if mark is None or path else f'… {mark}="{sent}"'
        if any(field.name == TEXT for field in row.fields):
            return f"<{head}{''.join(names)}>…</{head.split()[0]}>"
        return f"<{head}{''.join(names)}/>"

    def wire_format(self) -> WireType:
        of = self.format
        described = super().wire_format()
        framing = described["framing"] or {"kind": "xml", "skips_blanks": True}
        framing = {**framing, "envelope": of.envelope or None, "stays_open": of.stays_open or None}
        if framing["kind"] == "xml":
            framing |= {"blank_line": of.blank_line or None, "roots": self.framing.wire_roots or None}
        described = {**described, "framing": framing, "outer": [*map(wire_field, of.outer)]}
        if not of.is_strict:
            return described
        charset = (bytes([byte]).decode(of.charset, "replace") for byte in range(0x80, 0x100))
        return described | {
            "kind": "elements",
            "charset": [*charset] if of.charset else None,
            "limits": [limit for limit, is_used in _LIMITS.items() if is_used(of)],
        }

    def wire_parts(self) -> Sequence[str]:
        own = ("json", "pairs", "xml", "elements") if self.format.is_strict else ("json", "pairs", "xml")
        return (*super().wire_parts(), *own)

    def wire_details(self) -> WireType:
        return {"kind": "xml", "attribute": self.format.mark, "path": self.format.path or None}

    def wire_row(self, row: MessageType) -> WireType:
        assert isinstance(row, ElementType)
        if row.shape.anywhere is not None:
            return super().wire_row(row)
        return {"mark": row.mark, "shape": wire_shape(row.shape)}


def _too_deep(frame: bytes) -> Violation | None:
    depth = 0
    first = None
    for tag in tags(frame):
        if tag.kind == "start":
            first = first or tag
            depth += 1
            if depth > MAX_DEPTH:
                return too_deep(first)
        elif tag.kind == "end":
            depth -= 1
    return None


def _lower(element: Element) -> None:
    for inner in element.iter():
        inner.tag = inner.tag.lower()
        for name in [name for name in inner.attrib if name != name.lower()]:
            inner.attrib[name.lower()] = inner.attrib.pop(name)


def _spelt_alike(before: bytes, new: str, charset: str) -> bytes | None:
    """Return a text with each character spelt like the one in its place before; None if impossible."""
    with suppress(ValueError, OverflowError):
        text = spelt_alike(before.decode(charset), new, _CHARACTER, _unescaped, _escaped_alike)
        return None if text is None else text.encode(charset)
    return None


def _unescaped(character: str) -> str:
    if len(character) == 1 or character in _NAMED:
        return _NAMED.get(character, character)
    digits = character[2:-1]
    return chr(int(digits[1:], 16) if digits[:1] in "xX" else int(digits))


def _escaped_alike(before: str, character: str) -> str:
    """Return a character as a number if the previous one was, with as many digits."""
    if len(before) == 1 or before in _NAMED:
        return as_xml(character)
    if before[2] in "xX":
        return f"&#{before[2]}{f'{ord(character):x}'.zfill(len(before) - 4)};"
    return f"&#{str(ord(character)).zfill(len(before) - 3)};"
