"""The dissection tree of a message: elements, attributes and texts with the bytes they match.

An element with only a text in it is one piece, and so is each attribute; both include the blanks after them.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

from kiebitz.dissectors.grammar.dissection_tree import MAX_PIECES, Kind, Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.grammar import Decoded, Field
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.grammar.xml.markup import BLANKS, Tag, tags
from kiebitz.dissectors.protocols.cgml.diagnostics import DEPTH_LIMIT
from kiebitz.dissectors.protocols.cgml.grammar import ENVELOPE, VERSION, ElementType
from kiebitz.dissectors.protocols.cgml.locations import attribute_place, attributes
from kiebitz.dissectors.protocols.cgml.values import Compound, Shape

_ENVELOPE = Shape((VERSION,))
_OF_SEVERAL = ("missing-attribute", "missing-element", "too-many", "twice")
"""The codes of diagnostics in which each part by itself is valid."""
_UNKNOWN = "no such {} belongs here"
_WHICH = "not read: the kind of message is unknown"
_TAGS_LOOKED_AT = 4 * MAX_PIECES
"""Maximum number of tags to examine; an element is one or several pieces."""


def build_tree(
    frame: bytes, markup: bytes, decoded: Decoded, row: ElementType | None, upto: int
) -> tuple[Piece, ...]:
    """Return the pieces of a frame that is XML up to an offset.

    Args:
        frame: The bytes.
        markup: The bytes with misprints repaired.
        decoded: The decoded message.
        row: The row that the frame fits, or was probably intended to fit.
        upto: Offset up to which the frame is XML.
    """
    pieces = Pieces(frame)
    if row is None:
        pieces.take_any(len(frame.rstrip(BLANKS)) or len(frame), *not_understood(decoded))
    else:
        _TreeBuilder(markup, decoded, row, upto, pieces).take()
    if not frame[pieces.at :].strip(BLANKS):
        pieces.take_any(len(frame), "markup", "empty line")
    return pieces.finish(decoded)


def is_marked(frame: bytes, tag: Tag, row: ElementType) -> bool:
    """Return True if a start tag has the attribute that distinguishes a message from others of its name."""
    if row.mark is None:
        return True
    name, word = row.mark
    place = attribute_place(frame, tag, name, of_value=True)
    return place is not None and frame[place[0] : place[0] + place[1]] == word.encode()


class _TreeBuilder:
    """Builder of the pieces from the tags of a message."""

    def __init__(self, frame: bytes, decoded: Decoded, row: ElementType, upto: int, pieces: Pieces) -> None:
        self._frame, self._row, self._pieces = frame, row, pieces
        self._tags = [tag for tag in islice(tags(frame), _TAGS_LOOKED_AT) if tag.end <= upto]
        self._number = 0
        self._unknown = _UNKNOWN
        self._violation: int | None = None
        """Offset of the invalid part in a message that is XML."""
        if not decoded.valid and decoded.row is not None:
            wrong = decoded.violations[-1]
            self._violation = None if wrong.code in _OF_SEVERAL else wrong.place(frame)[0]

    @property
    def _tag(self) -> Tag | None:
        return self._tags[self._number] if self._number < len(self._tags) else None

    def take(self) -> None:
        row = self._row
        root = Shape((*row.shape.attributes, VERSION), row.shape.text, row.shape.children)
        is_rooted = False
        while (tag := self._tag) is not None and not self._pieces.is_full:
            is_element = tag.kind in ("start", "empty") and tag.name != ENVELOPE
            before = self._frame[self._pieces.at : tag.start].strip(BLANKS)
            if tag.kind in ("text", "cdata") or (is_rooted and (is_element or before)):
                return
            self._pieces.take_any(tag.start, "ignored", "before the message")
            if is_element:
                is_rooted = True
                mark = "" if row.mark is None else ' {}="{}"'.format(*row.mark)
                if not is_marked(self._frame, tag, row):
                    self._unknown = _WHICH
                self._element(tag, root, (), "name", f"<{row.name}{mark}>")
            elif tag.kind == "start":
                self._tag_with_attributes(tag, _ENVELOPE, (), "markup", "envelope")
            else:
                self._one_tag(tag, "ignored" if tag.kind != "end" else "markup", _words_of(tag))

    def _element(self, tag: Tag, shape: Shape, path: Path, kind: Kind, production: str) -> None:
        self._tag_with_attributes(tag, shape, path, kind, production)
        if tag.kind == "start":
            self._inside(shape, path)
            end = self._tag
            if end is not None:
                self._one_tag(end, "markup", _words_of(end))

    def _inside(self, shape: Shape, path: Path) -> None:
        children = {child.field.name: child for child in shape.children}
        count: Counter[str] = Counter()
        while (tag := self._tag) is not None and tag.kind != "text" and not self._pieces.is_full:
            self._text(tag.start, shape, path)
            if tag.kind == "end":
                return
            child = children.get(tag.name)
            if tag.kind == "cdata":
                self._number += 1
                self._text(tag.end, shape, path)
            elif tag.kind not in ("start", "empty"):
                self._one_tag(tag, "ignored", _words_of(tag))
            elif child is None:
                self._whole_element("unread", self._unknown.format("element"))
            else:
                steps = (child.field.name, count[tag.name]) if child.is_list else (child.field.name,)
                count[tag.name] += 1
                self._child(tag, child.field, (*path, *steps))

    def _child(self, tag: Tag, field: Field, path: Path) -> None:
        if not isinstance(field.type, Compound):
            self._whole_element("field", field.type.title, path)
        elif len(path) < DEPTH_LIMIT:
            with self._pieces.inside("field", field.type.title, path):
                self._element(tag, field.type.shape, path, "markup", f"<{field.name}>")

    def _whole_element(self, kind: Kind, production: str, path: Path = ()) -> None:
        """Add the element that begins with the next tag as one piece, if it has an end."""
        depth = 0
        for number in range(self._number, len(self._tags)):
            tag = self._tags[number]
            depth += {"start": 1, "end": -1}.get(tag.kind, 0)
            if not depth:
                self._number = number
                self._one_tag(tag, kind, production, path)
                return
        self._number = len(self._tags)

    def _text(self, end: int, shape: Shape, path: Path) -> None:
        if self._frame[self._pieces.at : end].strip(BLANKS):
            if shape.text is None:
                self._take(end, "unread", "no text belongs here")
            else:
                self._take(end, "field", shape.text.type.title, (*path, shape.text.name))

    def _tag_with_attributes(self, tag: Tag, shape: Shape, path: Path, kind: Kind, production: str) -> None:
        fields = {field.name: field for field in shape.attributes}
        standing = [(name, *whole) for name, whole, _ in attributes(self._frame[tag.start : tag.end])]
        for number, (name, start, end) in enumerate(standing):
            if not number:
                self._take(tag.start + start, kind, production)
            upto = standing[number + 1][1] if number + 1 < len(standing) else end
            field = fields.get(name.lower())
            if field is None:
                self._take(tag.start + upto, "unread", self._unknown.format("attribute"))
            else:
                self._take(tag.start + upto, "field", field.type.title, (*path, field.name))
        if standing:
            self._one_tag(tag, "markup", "end of the tag")
        else:
            self._one_tag(tag, kind, production)

    def _one_tag(self, tag: Tag, kind: Kind, production: str, path: Path = ()) -> None:
        """Add everything up to the end of a tag and the blanks after it; continue with the next tag."""
        self._number += 1
        following = self._tag
        end = tag.end
        if following is not None and not self._frame[end : following.start].strip(BLANKS):
            end = following.start
        self._take(end, kind, production, path)

    def _take(self, end: int, kind: Kind, production: str, path: Path = ()) -> None:
        """Add a piece; an invalid field becomes `unread`."""
        is_wrong = (
            kind == "field" and self._violation is not None and self._pieces.at <= self._violation < end
        )
        self._pieces.take(end, "unread" if is_wrong else kind, production, path)


def _words_of(tag: Tag) -> str:
    return f"</{tag.name}>" if tag.kind == "end" else tag.kind
