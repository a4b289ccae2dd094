"""Replacement of values in a message; markup, blanks and charset stay the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Text
from kiebitz.dissectors.grammar.patching import Path, Place, differences, replaced, spelt_alike, value_at
from kiebitz.dissectors.grammar.xml.markup import BLANKS, tags
from kiebitz.dissectors.protocols.cgml.grammar import VERSION, ElementType
from kiebitz.dissectors.protocols.cgml.layout_checks import characters
from kiebitz.dissectors.protocols.cgml.locations import ElementLocation, attribute_place, elements
from kiebitz.dissectors.protocols.cgml.values import Compound, Shape, as_xml


def patch_frame(
    frame: bytes, row: ElementType, before: Mapping[str, Any], fields: Mapping[str, Any]
) -> bytes:
    """Return the message with other values; see `Codec.patch`.

    Raises:
        ValueError: If the elements, or the version, differ from before.
    """
    standing = {each.path: each for each in elements(frame)}
    charset = "utf-8" if characters(frame)[1] is None else "iso-8859-2"
    pieces: dict[Place, bytes] = {}
    for path in differences(before, fields):
        element, attribute, kind = _found(standing, row.shape, path)
        new = kind.encode(value_at(fields, path))
        text = as_xml(new).encode(charset, "xmlcharrefreplace")
        if attribute is not None:
            place = attribute_place(frame, element.tag, attribute, of_value=True)
            if place is None:
                raise ValueError(f"there is no {attribute} where it was read")
        else:
            place, text = _inside(frame, element, kind, text)
        start, length = place
        was = frame[start : start + length]
        # An empty element becomes one with a text.
        alike = None if b"<" in was else _spelt_alike(was, new, charset)
        pieces[place] = text if alike is None else alike
    return replaced(frame, pieces)


_CHARACTER = re.compile("&[^;]{1,9};|.", re.DOTALL)
_NAMED = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}


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


def _found(
    standing: Mapping[tuple[int, ...], ElementLocation], shape: Shape, path: Path
) -> tuple[ElementLocation, str | None, FieldType]:
    """Return the element of a field, the field's name if it is an attribute, and its type.

    Raises:
        ValueError: If the path leads to no single text.
        LookupError: If there is no such element.
    """
    place: tuple[int, ...] = ()
    steps = [*path]
    while steps:
        name = str(steps.pop(0))
        if name in shape.names:
            kind = next(field.type for field in shape.attributes if field.name == name)
            return standing[place], name, kind
        if shape.text is not None and name == shape.text.name:
            return standing[place], None, shape.text.type
        child = next((child for child in shape.children if child.field.name == name), None)
        if child is None:
            break
        place = _child(standing, place, name, steps.pop(0) if child.is_list else 0)
        kind = child.field.type
        if not isinstance(kind, Compound):
            return standing[place], None, kind
        shape = kind.shape
    raise ValueError(f"{path} is no text")


def _child(
    standing: Mapping[tuple[int, ...], ElementLocation], around: tuple[int, ...], name: str, number: str | int
) -> tuple[int, ...]:
    place = 0
    same: list[tuple[int, ...]] = []
    while (inner := standing.get((*around, place))) is not None:
        if inner.tag.name == name:
            same.append(inner.path)
        place += 1
    return same[int(number)]


def field_place(frame: bytes, row: ElementType, name: str, whole: bool) -> Place | None:
    """Return the location of a field's text; if `whole`, of the attribute with its blank, or the element.

    Of several elements it is the first; one with parts is always whole. None if the field does not exist.
    """
    if name == VERSION.name:
        # It is the envelope's, or the element's if there is no envelope.
        tag = next((each for each in tags(frame) if each.kind in ("start", "empty")), None)
        place = None if tag is None else attribute_place(frame, tag, name, of_value=not whole)
        return (place[0] - 1, place[1] + 1) if whole and place is not None else place
    standing = {each.path: each for each in elements(frame)}
    shape = row.shape
    root = standing.get(())
    if root is None:
        return None
    if name in shape.names:
        place = attribute_place(frame, root.tag, name, of_value=not whole)
        return (place[0] - 1, place[1] + 1) if whole and place is not None else place
    if shape.text is not None and name == shape.text.name:
        return None if root.tag.kind == "empty" else (root.tag.end, root.end - root.tag.end)
    try:
        element = standing[_child(standing, (), name, 0)]
    except LookupError:
        return None
    kind = next(child.field.type for child in shape.children if child.field.name == name)
    if whole or isinstance(kind, Compound):
        end = element.end if element.tag.kind == "empty" else frame.find(b">", element.end) + 1
        return element.tag.start, end - element.tag.start
    return None if element.tag.kind == "empty" else (element.tag.end, element.end - element.tag.end)


def _inside(frame: bytes, element: ElementLocation, kind: FieldType, text: bytes) -> tuple[Place, bytes]:
    """Return the location at which to write an element's text, and the text with any markup it needs."""
    tag = element.tag
    if tag.kind == "empty":
        start = frame[tag.start : tag.end].removesuffix(b"/>").rstrip(BLANKS)
        name = start[1 : 1 + len(tag.name)]
        return (tag.start, tag.end - tag.start), b"%b>%b</%b>" % (start, text, name)
    inside = frame[tag.end : element.end]
    if isinstance(kind, Text):
        return (tag.end, len(inside)), text
    # Blanks around other types have no meaning.
    return (element.end - len(inside.lstrip(BLANKS)), len(inside.strip(BLANKS))), text
