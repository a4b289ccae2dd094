"""Inference of where XML messages have their name: the tag, or an attribute."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from kiebitz.dissectors.drafting.format_choice import NAME_KEYS, FormatChoice, Parsed
from kiebitz.dissectors.protocol_file.specification import Format


def element_of(content: bytes) -> ElementTree.Element | None:
    """Return the element that a message is, None if it is none, or has a document type."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        return None
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None


def xml_format(contents: Sequence[bytes], root: str = "") -> FormatChoice:
    """Return the format of XML messages, which may be in one element that stays open."""
    outer = re.compile(rb"^\s*(?:<\?[^>]*>\s*)?<%b(?:\s[^<>]*)?>|</%b\s*>\s*$" % ((root.encode(),) * 2))

    def inner(content: bytes) -> ElementTree.Element | None:
        return element_of(outer.sub(b"", content) if root else content)

    elements = [found for content in contents if (found := inner(content)) is not None]
    tags = Counter(found.tag for found in elements)
    attribute = None
    if len(tags) <= 2:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for found in elements:
            for key, value in found.attrib.items():
                counts[key][value] += 1
        fitting = [
            (bool(NAME_KEYS.fullmatch(key)), len(values), key)
            for key, values in counts.items()
            if values.total() >= 0.95 * len(elements) and 2 <= len(values) <= max(3, len(elements) / 4)
        ]
        attribute = max(fitting)[2] if fitting else None

    def parse(content: bytes) -> Parsed | None:
        found = inner(content)
        name = None if found is None else found.get(attribute) if attribute else found.tag
        if found is None or name is None:
            return None
        fields = _xml_fields(found)
        if attribute:
            fields.pop(attribute, None)
        return name, fields

    name = f"@{attribute}" if attribute else "tag"
    return FormatChoice(Format(kind="xml", name=name, envelope=root, stays_open=bool(root)), parse)


def _xml_fields(element: ElementTree.Element, depth: int = 0) -> dict[str, Any]:
    """Return attributes, child elements (as a list if repeated) and the text of an element."""
    fields: dict[str, Any] = dict(element.attrib)
    for child in element:
        value: Any = (child.text or "").strip()
        if child.attrib or len(child):
            value = _xml_fields(child, depth + 1) if depth < 8 else {}
        if child.tag in fields:
            former = fields[child.tag]
            fields[child.tag] = [*former, value] if isinstance(former, list) else [former, value]
        else:
            fields[child.tag] = value
    if element.text and element.text.strip():
        fields["text"] = element.text.strip()
    return fields
