"""The layout of a message: its tags, attributes and texts in the order of their bytes, with their fields.

An element with only a text in it is one part, and so is each attribute; both include the blanks after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from kiebitz.dissectors.grammar.dissection_tree import MAX_PIECES, Kind
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import AnyText, ListText, ObjectText, PartsText
from kiebitz.dissectors.grammar.grammar import BLANKS, Field, Path, Place, trimmed
from kiebitz.dissectors.grammar.layout_codec import UNKNOWN_FIELD, Part, parts_in
from kiebitz.dissectors.grammar.xml import shapes
from kiebitz.dissectors.grammar.xml.diagnostics import XmlFormat
from kiebitz.dissectors.grammar.xml.markup import Tag, attribute_place, attributes, tags
from kiebitz.dissectors.grammar.xml.shapes import MAX_DEPTH, TEXT, ElementType, Shape, is_item, open_shape

_UNKNOWN = "no such {} belongs here"
_WHICH = "not read: the kind of message is unknown"
_TAGS_LOOKED_AT = 4 * MAX_PIECES
"""Maximum number of tags to examine; an element is one or several pieces."""


def is_marked(frame: bytes, tag: Tag, row: ElementType) -> bool:
    """Return True if a start tag has the attribute that distinguishes a message from others of its name."""
    if row.mark is None:
        return True
    name, word = row.mark
    place = attribute_place(frame, tag, name, of_value=True)
    return place is not None and frame[place[0] : place[0] + place[1]] == word.encode()


class LayoutBuilder:
    """Builder of the parts from the tags of a range of a frame, which is XML up to its end."""

    def __init__(
        self,
        frame: bytes,
        row: ElementType,
        of: XmlFormat,
        place: tuple[int, int],
    ) -> None:
        self._frame, self._row, self._format = frame, row, of
        self._at, end = place
        self._tags = [tag for tag in islice(tags(frame, self._at), _TAGS_LOOKED_AT) if tag.end <= end]
        self._number = 0
        self._parts: list[Part] = []
        self._is_lowered = of.is_strict and all(
            name == name.lower() for name in (row.name, *dict(row.shape.nested()))
        )
        """True if the specification has no capitals, so that those of a message have no meaning."""
        self._unknown: tuple[Kind, str] = ("unread", _UNKNOWN)
        if row.shape.anywhere is not None:
            self._unknown = ("ignored", UNKNOWN_FIELD)

    @property
    def _tag(self) -> Tag | None:
        return self._tags[self._number] if self._number < len(self._tags) else None

    def parts(self) -> Sequence[Part]:
        """Return the parts of the message."""
        row, of = self._row, self._format
        envelope = Shape(outer=of.outer)
        is_rooted = False
        while (tag := self._tag) is not None:
            is_envelope = bool(of.envelope) and tag.name == of.envelope.lower()
            is_element = tag.kind in ("start", "empty") and not is_envelope
            before = self._frame[self._at : tag.start].strip(BLANKS)
            if tag.kind in ("text", "cdata") or (is_rooted and (is_element or before)):
                break
            self._add(tag.start, "ignored", "before the message")
            if is_element:
                is_rooted = True
                mark = "" if row.mark is None else ' {}="{}"'.format(*row.mark)
                if not is_marked(self._frame, tag, row):
                    self._unknown = ("unread", _WHICH)
                self._element(tag, row.shape, (), "name", f"<{row.name}{mark}>")
            elif tag.kind == "start":
                self._tag_with_attributes(tag, envelope, (), "markup", "envelope")
            else:
                self._add(self._past(tag), "ignored" if tag.kind != "end" else "markup", self._words(tag))
        return self._parts

    def _element(
        self, tag: Tag, shape: Shape, path: Path, kind: Kind, title: str, is_list: bool = False
    ) -> None:
        number = self._end_number()
        inside = (tag.end, self._tags[number].start) if number < len(self._tags) else None
        self._tag_with_attributes(tag, shape, path, kind, title)
        if tag.kind == "start":
            self._inside(shape, path, inside, is_list)
            end = self._tag
            if end is not None:
                self._add(self._past(end), "markup", self._words(end))

    def _inside(self, shape: Shape, path: Path, inside: Place | None, is_list: bool) -> None:
        names = Counter(tag.name for tag in self._children(self._number - 1))
        text = shape.text
        if shape.anywhere is not None and TEXT in shape.anywhere and TEXT not in names:
            text = Field(TEXT, shape.anywhere[TEXT], "")
        count: Counter[str] = Counter()
        while (tag := self._tag) is not None and tag.kind != "text":
            place = None if names else inside
            self._text(tag.start, text, path, place, is_needed=tag.kind == "end" and shape.needs_text)
            if tag.kind == "end":
                return
            name = self._name(tag)
            steps = (*path, name)
            if tag.kind == "cdata":
                self._number += 1
                self._text(tag.end, text, path, place)
            elif tag.kind not in ("start", "empty"):
                self._add(self._past(tag), "ignored", self._words(tag))
            elif shape.anywhere is not None and name in shape.anywhere:
                kind = shape.anywhere[name]
                if is_list:
                    self._open_child(tag, kind, (*path, count.total()))
                elif isinstance(kind, ListText) and names[tag.name] > 1:
                    self._open_child(tag, kind.item, (*steps, count[name]))
                else:
                    self._open_child(tag, kind, steps)
            elif (child := shape.elements.get(name)) is not None:
                self._child(tag, child, (*steps, count[name]) if child.is_list else steps)
            else:
                role, title = self._unknown
                self._whole_element(role, title.format("element"))
            count[name] += tag.kind in ("start", "empty")

    def _child(self, tag: Tag, child: shapes.Child, path: Path) -> None:
        kind = child.field.type
        if child.shape is None:
            self._whole_element("field", kind.title, path, kind)
        elif len(path) < MAX_DEPTH:
            self._nested(tag, child.shape, path, kind.title, kind)

    def _open_child(self, tag: Tag, kind: FieldType, path: Path) -> None:
        names = [self._name(each) for each in self._children(self._number)]
        has_attributes = any(attributes(self._frame[tag.start : tag.end]))
        if isinstance(kind, AnyText) and names:
            self._whole_element("field", kind.title, path)
        elif isinstance(kind, AnyText) or not (names or has_attributes):
            self._whole_element("field", kind.title, path, kind)
        elif isinstance(kind, ListText):
            if has_attributes or is_item(kind.item, names):
                self._open_child(tag, kind.item, (*path, 0))
            else:
                items = dict.fromkeys(names, kind.item)
                self._nested(tag, Shape(anywhere=items), path, kind.title, None, is_list=True)
        elif isinstance(kind, ObjectText):
            self._nested(tag, open_shape(kind), path, kind.title, None)
        else:
            self._whole_element("field", kind.title, path)

    def _nested(
        self, tag: Tag, shape: Shape, path: Path, title: str, kind: FieldType | None, is_list: bool = False
    ) -> None:
        """Add an element with others in it as one part with parts."""
        outer, self._parts, start = self._parts, [], self._at
        end = self._end_number()
        whole = tag.start, (self._tags[end].end if end < len(self._tags) else self._tags[-1].end) - tag.start
        self._element(tag, shape, path, "markup", f"<{self._name(tag)}>", is_list)
        inner, self._parts = self._parts, outer
        place = whole if kind is not None else (0, 0)
        outer.append(Part(start, self._at, path, "field", title, place, whole, kind, tuple(inner)))

    def _end_number(self) -> int:
        """Return the number of the tag that ends the element of the next tag."""
        depth = 0
        for number in range(self._number, len(self._tags)):
            depth += {"start": 1, "end": -1}.get(self._tags[number].kind, 0)
            if not depth:
                return number
        return len(self._tags)

    def _children(self, number: int) -> Sequence[Tag]:
        """Return the start tags directly inside the element with this start tag."""
        depth, found = 0, []
        for tag in islice(self._tags, number, None):
            if tag.kind in ("start", "empty") and depth == 1:
                found.append(tag)
            depth += {"start": 1, "end": -1}.get(tag.kind, 0)
            if depth <= 0:
                break
        return found

    def _whole_element(self, kind: Kind, title: str, path: Path = (), of: FieldType | None = None) -> None:
        """Add the element that begins with the next tag as one part, if it has an end."""
        first = self._tag
        number = self._end_number()
        if first is None or number == len(self._tags):
            self._number = number
            return
        self._number = number
        last = self._tags[number]
        value = first.place if first is last else self._trimmed(first.end, last.start, of)
        whole = first.start, last.end - first.start
        parts = () if of is None or first is last else self._text_parts(of, value, path)
        self._add(self._past(last), kind, title, path, value, whole, of, parts)

    def _text_parts(self, kind: FieldType, place: Place, path: Path) -> Sequence[Part]:
        """Return the parts of a list or an object that is written as text, if that has no escapes."""
        start, length = place
        sent = self._frame[start : start + length]
        if not isinstance(kind, PartsText) or b"&" in sent or b"<" in sent or not sent.isascii():
            return ()
        places = [(at, 1) for at in range(start, start + length)]
        return tuple(parts_in(kind, sent.decode(), places, path, True))

    def _trimmed(self, start: int, end: int, kind: FieldType | None) -> Place:
        """Return the place of a text without the blanks around it, if they have no meaning."""
        if kind is None or kind.is_free_text:
            return start, end - start
        return trimmed(self._frame, start, end)

    def _text(
        self, end: int, field: Field | None, path: Path, inside: Place | None, is_needed: bool = False
    ) -> None:
        """Add the text up to an offset; if it `is_needed`, that of an empty element, too."""
        is_empty = inside is not None and not self._frame[slice(*inside)].strip(BLANKS)
        if not (is_needed and is_empty) and not self._frame[self._at : end].strip(BLANKS):
            return
        if field is None:
            kind, title = self._unknown
            self._add(end, kind, title.format("text") if kind == "ignored" else "no text belongs here")
            return
        kind_of = field.type
        value = (0, 0) if inside is None else self._trimmed(*inside, kind_of)
        parts = () if inside is None else self._text_parts(kind_of, value, (*path, field.name))
        self._add(
            *(end, "field", kind_of.title, (*path, field.name)),
            *(value, value, None if inside is None else kind_of, parts),
        )

    def _tag_with_attributes(self, tag: Tag, shape: Shape, path: Path, kind: Kind, title: str) -> None:
        kinds = {
            **(shape.anywhere or {}),
            **{name: each[0].type for name, each in shape.by_attribute.items()},
        }
        standing = [*attributes(self._frame[tag.start : tag.end])]
        before = tag.start + 1 + len(tag.name.encode("latin-1"))
        for number, (name, (first, end), (start, stop)) in enumerate(standing):
            if not number:
                self._add(tag.start + first, kind, title)
            upto = tag.start + (standing[number + 1][1][0] if number + 1 < len(standing) else end)
            value = tag.start + start, stop - start
            whole = before, tag.start + end - before
            before = tag.start + end
            known = name if name in kinds else name.lower()
            if self._format.mark == name and path == self._format.path:
                self._add(upto, "name", "name")
            elif known not in kinds:
                of, unknown = self._unknown
                self._add(upto, of, unknown.format("attribute"))
            else:
                kind_of, steps = kinds[known], (*path, known)
                parts = self._text_parts(kind_of, value, steps)
                self._add(upto, "field", kind_of.title, steps, value, whole, kind_of, parts)
        if standing:
            self._add(self._past(tag), "markup", "end of the tag")
        else:
            self._add(self._past(tag), kind, title)

    def _name(self, tag: Tag) -> str:
        return tag.name if self._is_lowered else tag.written_in(self._frame)

    def _words(self, tag: Tag) -> str:
        return f"</{self._name(tag)}>" if tag.kind == "end" else tag.kind

    def _past(self, tag: Tag) -> int:
        """Continue with the tag after this one; return the end of this one and of the blanks after it."""
        self._number += 1
        following = self._tag
        if following is not None and not self._frame[tag.end : following.start].strip(BLANKS):
            return following.start
        return tag.end

    def _add(
        self,
        end: int,
        kind: Kind,
        title: str,
        path: Path = (),
        value: Place = (0, 0),
        whole: Place = (0, 0),
        of: FieldType | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        if end > self._at or kind == "field":
            self._parts.append(Part(self._at, end, path, kind, title, value, whole, of, tuple(parts)))
            self._at = max(self._at, end)


def unread_at(parts: Sequence[Part], offset: int) -> Iterator[Part]:
    """Yield the parts; the innermost field at an offset is unread."""
    for part in parts:
        if part.kind == "field" and part.start <= offset < part.end:
            inner = (*unread_at(part.parts, offset),)
            if inner:
                yield Part(part.start, part.end, part.path, "field", part.title, parts=inner)
            else:
                yield Part(part.start, part.end, part.path, "unread", part.title)
        else:
            yield part
