"""The codec of protocol files for XML: fields are attributes, elements, and the text of the message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.fields import ListText, ObjectText, PartsText
from kiebitz.dissectors.grammar.grammar import Decoded, Grammar, MessageType, unreadable
from kiebitz.dissectors.grammar.json.types import Misfit
from kiebitz.dissectors.grammar.layout_codec import UNKNOWN_FIELD, Part, parts_in, walk
from kiebitz.dissectors.grammar.patching import Path, Place
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.framers import xml_framing
from kiebitz.dissectors.protocol_file.mapping_codec import MappingCodec, Read
from kiebitz.dissectors.protocol_file.specification import Specification
from kiebitz.dissectors.protocol_file.text_types import AnyText
from kiebitz.dissectors.protocol_file.xml_tree import (
    TEXT,
    Element,
    Repeated,
    XmlMismatch,
    add_children,
    escaped,
    parse,
)


class XmlCodec(MappingCodec):
    """The codec of XML elements, whose name is the tag or an attribute."""

    between = "markup"
    is_self_delimited = True

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        super().__init__(specification, grammar)
        name = specification.format.name
        self._roots = xml_framing(specification).wire_roots
        self._name_attribute = name.removeprefix("@") if name.startswith("@") else None
        self._has_text = {
            (row.direction, row.name)
            for row in grammar.rows
            if any(field.name == TEXT for field in row.fields)
        }

    def reader_of(self, kind: FieldType) -> Read:
        return lambda value: _read(kind, value)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        start, end, is_whole = self.envelope.body(frame)
        if not is_whole:
            return self.not_framed(frame)
        if start == end:
            return self.empty(frame)
        try:
            root = parse(frame, start, end, self.encoding)
        except XmlMismatch as error:
            return self._no_xml(frame, error)
        sent = root.tag if self._name_attribute is None else root.attributes.get(self._name_attribute)
        if sent is None:
            text = f"there is no attribute {self._name_attribute}"
            place = start, root.open_end(frame) - start
            return unreadable(self.error("unknown-message", text, place, f"{self._name_attribute}="))
        name = self.name_of_text(sent, direction)
        if name is None:
            return self.unknown(sent, direction, self._name_place(frame, root))
        values: dict[str, Any] = {
            key: value
            for key, value in root.attributes.items()
            if key != self._name_attribute and key != "xmlns" and not key.startswith("xmlns:")
        }
        add_children(values, root)
        text = root.text
        if text.strip() or (direction, name) in self._has_text:
            values.setdefault(TEXT, text)
        return self.read(frame, direction, name, values)

    def _no_xml(self, frame: bytes, error: XmlMismatch) -> Decoded:
        start, end, _ = self.envelope.body(frame)
        try:
            frame[start:end].decode(self.encoding)
        except UnicodeDecodeError as wrong:
            return unreadable(self.not_text(frame, wrong, start))
        place = error.offset, error.length
        return unreadable(self.error(error.code, f"this is not XML: {error}", place, "an XML element"))

    # Places.

    def _root(self, frame: bytes) -> Element:
        start, end, _ = self.envelope.body(frame)
        return parse(frame, start, end, self.encoding)

    def _name_place(self, frame: bytes, root: Element) -> Place:
        for attribute in root.attribute_places(frame):
            if attribute.name == self._name_attribute:
                return attribute.value
        return root.start + 1, len(root.tag.encode())

    def place_of_error(self, frame: bytes, name: str, error: Mismatch | None) -> Place:
        root = self._root(frame)
        if error is None:
            return root.start, root.open_end(frame) - root.start
        path = (name, *(error.path if isinstance(error, Misfit) else ()))
        kinds: dict[str, FieldType] = {}
        for rows in self._readers.values():
            for reader in rows:
                kinds.update((field.name, field.type) for field in reader.row.fields if field.name == name)
        parts = [*self._parts(frame, root, kinds, ())]
        best: Part | None = None
        for part in walk(parts):
            if (
                part.path
                and path[: len(part.path)] == part.path
                and (best is None or len(part.path) >= len(best.path))
            ):
                best = part
        if best is None:
            return root.start, root.open_end(frame) - root.start
        start, length = best.value if best.type is not None else (best.start, best.end - best.start)
        text = frame[start : start + length]
        if best.path == path and error.end and b"&" not in text and text.isascii():
            return start + error.start, min(error.end, length) - error.start
        return start, length

    def place_of_name(self, frame: bytes, name: str) -> Place:
        root = self._root(frame)
        for attribute in root.attribute_places(frame):
            if attribute.name == name:
                return attribute.start, len(name.encode())
        child = next((each for each in root.children if each.tag == name), None)
        return (root.start, 1) if child is None else (child.start + 1, len(name.encode()))

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        root = self._root(frame)
        kinds = {field.name: field.type for field in row.fields}
        head = root.start + 1 + len(root.tag.encode())
        parts = [*self._parts(frame, root, kinds, ())]
        if self._name_attribute is None:
            return [Part(root.start, head, (), "name", row.name), *parts]
        return parts

    def _parts(
        self, frame: bytes, element: Element, kinds: Mapping[str, FieldType], path: Path
    ) -> Iterator[Part]:
        """Yield the parts of an element whose fields have these types, in the order of their bytes."""
        before = element.start + 1 + len(element.tag.encode())
        for attribute in element.attribute_places(frame):
            start, end = attribute.start, attribute.end
            kind = kinds.get(attribute.name)
            if attribute.name == self._name_attribute and not path:
                yield Part(start, end, (), "name", "name")
            elif kind is None:
                yield Part(start, end, (), "ignored", UNKNOWN_FIELD)
            else:
                inner = self._text_parts(frame, kind, attribute.value, (*path, attribute.name))
                yield Part(
                    start,
                    end,
                    (*path, attribute.name),
                    "field",
                    kind.title,
                    attribute.value,
                    (before, end - before),
                    kind,
                    inner,
                )
            before = end
        inside = element.inside(frame)
        if inside is None:
            return
        if not element.children:
            if TEXT in kinds:
                kind = kinds[TEXT]
                start, length = inside
                inner = self._text_parts(frame, kind, inside, (*path, TEXT))
                yield Part(
                    start, start + length, (*path, TEXT), "field", kind.title, inside, inside, kind, inner
                )
            return
        yield from self._children(frame, element, kinds, path)

    def _children(
        self, frame: bytes, element: Element, kinds: Mapping[str, FieldType], path: Path
    ) -> Iterator[Part]:
        counts = Counter(child.tag for child in element.children)
        numbers: Counter[str] = Counter()
        at = element.open_end(frame)
        has_text = TEXT not in kinds
        for child in element.children:
            if not has_text and (text := frame[at : child.start].strip()):
                has_text = True
                start = frame.index(text, at)
                yield Part(start, start + len(text), (*path, TEXT), "field", kinds[TEXT].title)
            at = child.end(frame)
            kind = kinds.get(child.tag)
            if kind is None:
                yield Part(child.start, at, (), "ignored", UNKNOWN_FIELD)
            elif isinstance(kind, ListText) and counts[child.tag] > 1:
                yield self._element_part(frame, child, kind.item, (*path, child.tag, numbers[child.tag]))
            else:
                yield self._element_part(frame, child, kind, (*path, child.tag))
            numbers[child.tag] += 1
        if not has_text and (text := frame[at : element.close].strip()):
            start = frame.index(text, at)
            yield Part(start, start + len(text), (*path, TEXT), "field", kinds[TEXT].title)

    def _element_part(self, frame: bytes, element: Element, kind: FieldType, path: Path) -> Part:
        end = element.end(frame)
        whole = element.start, end - element.start
        inside = element.inside(frame)
        if element.is_leaf:
            if inside is None:
                return Part(element.start, end, path, "field", kind.title, whole=whole)
            inner = self._text_parts(frame, kind, inside, path)
            return Part(element.start, end, path, "field", kind.title, inside, whole, kind, inner)
        parts: Iterator[Part] = iter(())
        if isinstance(kind, ObjectText):
            parts = self._parts(frame, element, kind.fields, path)
        elif isinstance(kind, ListText) and _is_list(kind, element):
            items = enumerate(element.children)
            parts = (self._element_part(frame, each, kind.item, (*path, number)) for number, each in items)
        elif isinstance(kind, ListText):
            parts = iter([self._element_part(frame, element, kind.item, (*path, 0))])
        return Part(element.start, end, path, "field", kind.title, (0, 0), whole, None, tuple(parts))

    def _text_parts(self, frame: bytes, kind: FieldType, place: Place, path: Path) -> tuple[Part, ...]:
        """Return the parts of a list or an object that is written as text, if that has no escapes."""
        start, length = place
        sent = frame[start : start + length]
        if not isinstance(kind, PartsText) or b"&" in sent or not sent.isascii():
            return ()
        places = [(at, 1) for at in range(start, start + length)]
        return tuple(parts_in(kind, sent.decode(), places, path, True))

    # Spelling.

    def write_message(self, row: MessageType, fields: Mapping[str, Any]) -> bytes:
        sent = str(self.sent_name(row))
        kinds = {field.name: field.type for field in row.fields if field.name in fields}
        if self._name_attribute is None:
            return _written(sent, "", kinds, fields).encode(self.encoding, "xmlcharrefreplace")
        head = f' {self._name_attribute}="{escaped(sent)}"'
        return _written("message", head, kinds, fields).encode(self.encoding, "xmlcharrefreplace")

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert part.type is not None
        return escaped(part.type.encode(value)).encode(self.encoding, "xmlcharrefreplace")

    def as_text(self, frame: bytes, row: MessageType, field: Any, text: str) -> bytes:
        return escaped(text).encode("utf-8", "surrogateescape")

    def notation(self, row: MessageType) -> str:
        sent = str(self.sent_name(row))
        head = sent if self._name_attribute is None else f'… {self._name_attribute}="{sent}"'
        names = [f' {field.name}="…"' for field in row.fields if field.name != TEXT]
        if any(field.name == TEXT for field in row.fields):
            return f"<{head}{''.join(names)}>…</{head.split()[0]}>"
        return f"<{head}{''.join(names)}/>"

    def wire_format(self) -> Mapping[str, Any]:
        described = super().wire_format()
        if described["framing"]["kind"] != "xml" or not self._roots:
            return described
        return {**described, "framing": {**described["framing"], "roots": self._roots}}

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "json", "pairs", "xml")

    def wire_details(self) -> Mapping[str, Any]:
        return {"kind": "xml", "attribute": self._name_attribute}


def _read(kind: FieldType, value: Any) -> Any:
    """Return the value of an attribute, an element, or several ones. Raises Misfit."""
    if type(value) is str:
        return _decoded(kind, value)
    if type(value) is Repeated:
        if isinstance(kind, ListText):
            return _read_each(kind.item, value)
        if isinstance(kind, AnyText):
            return [_plain(each) for each in value]
        raise Misfit(f"there are {len(value)} of these", kind.title, "surplus-fields").inside(1)
    assert isinstance(value, Element)
    if isinstance(kind, AnyText):
        return _plain(value)
    if isinstance(kind, ListText) and not value.is_leaf:
        return _read_each(kind.item, value.children if _is_list(kind, value) else [value])
    if isinstance(kind, ObjectText) and not value.is_leaf:
        return _read_object(kind, value)
    if value.is_leaf:
        return _decoded(kind, value.text)
    raise Misfit("this element has attributes or elements", kind.title)


def _is_list(kind: ListText, element: Element) -> bool:
    """Return True if an element contains the items of a list, rather than being one of them."""
    if element.attributes:
        return False
    return not isinstance(kind.item, ObjectText) or any(
        child.tag not in kind.item.fields for child in element.children
    )


def _read_each(kind: FieldType, values: Sequence[Any]) -> list[Any]:
    found = []
    for number, value in enumerate(values):
        try:
            found.append(_read(kind, value))
        except Misfit as error:
            raise error.inside(number) from None
    return found


def _read_object(kind: ObjectText, element: Element) -> dict[str, Any]:
    values: dict[str, Any] = dict(element.attributes)
    add_children(values, element)
    if TEXT in kind.fields:
        values.setdefault(TEXT, element.text)
    found = {}
    for name, of in kind.fields.items():
        if name not in values:
            if name in kind.optional:
                continue
            raise Misfit(f"there is no {name} here", kind.title, "missing-field")
        try:
            found[name] = _read(of, values[name])
        except Misfit as error:
            raise error.inside(name) from None
    return found


def _decoded(kind: FieldType, text: str) -> Any:
    try:
        return kind.decode(text if kind.is_free_text else text.strip())
    except Mismatch as error:
        misfit = Misfit(error.problem, error.expected, error.code)
        misfit.start, misfit.end = error.start, error.end
        raise misfit from None


def _plain(value: Any) -> Any:
    """Return an element as a JSON value."""
    if isinstance(value, Element):
        value = value.value()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


def _written(tag: str, head: str, kinds: Mapping[str, FieldType], values: Mapping[str, Any]) -> str:
    """Return an element with these fields: attributes, if they are simple values."""
    inside = ""
    for name, value in values.items():
        kind = kinds.get(name)
        if name == TEXT:
            inside = escaped(value if kind is None else kind.encode(value)) + inside
        elif isinstance(value, list):
            item = kind.item if isinstance(kind, ListText) else None
            inside += "".join(_element(name, item, each) for each in value) or f"<{name}/>"
        elif isinstance(value, dict):
            inside += _element(name, kind, value)
        else:
            head += f' {name}="{escaped(value if kind is None else kind.encode(value))}"'
    return f"<{tag}{head}>{inside}</{tag}>" if inside else f"<{tag}{head}/>"


def _element(name: str, kind: FieldType | None, value: Any) -> str:
    if isinstance(value, dict):
        kinds = kind.fields if isinstance(kind, ObjectText) else {}
        return _written(name, "", kinds, value)
    if isinstance(value, list):
        item = kind.item if isinstance(kind, ListText) else None
        return (
            _written(name, "", {}, {})
            if not value
            else f"<{name}>{''.join(_element('item', item, each) for each in value)}</{name}>"
        )
    return f"<{name}>{escaped(value if kind is None else kind.encode(value))}</{name}>"
