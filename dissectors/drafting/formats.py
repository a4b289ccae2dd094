"""Inference of the format: JSON, XML, text or binary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.binary import struct_format
from kiebitz.dissectors.drafting.framing import code_of, content
from kiebitz.dissectors.drafting.keyed_formats import element_of, json_format, json_object, xml_format
from kiebitz.dissectors.drafting.text_format import numbers_before, text_fields, text_format
from kiebitz.dissectors.drafting.traffic import FormatChoice, Message
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.specification import Format, Framing, TextEncoding

_SAMPLE = 4000
"""Number of messages by which a format is inferred."""


def with_numbers(framing: Framing, messages: Sequence[Message]) -> Framing:
    """Return the framing with the numbers before the names of messages in text."""
    if framing.has_name or framing.kind in ("size", "fields", "json", "xml", "length"):
        return framing
    texts = [text for data in _contents(framing, messages) if (text := _utf8(data)) is not None]
    return msgspec.structs.replace(framing, before=numbers_before(texts))


def choose_formats(
    framing: Framing, messages: Sequence[Message], root: str = ""
) -> dict[Direction, FormatChoice]:
    """Return the format of each direction: the same, unless one side speaks JSON and the other does not."""
    if root:
        return dict.fromkeys(DIRECTIONS, xml_format(_contents(framing, messages), root))
    sides = [[message for message in messages if message.direction == each] for each in DIRECTIONS]
    are_objects = [_share(_contents(framing, own), json_object) >= 0.8 for own in sides]
    if all(sides) and are_objects[0] != are_objects[1] and not framing.has_name and framing.kind != "json":
        found = [_choose_format(framing, own) for own in sides]
    else:
        found = [_choose_format(framing, messages)] * 2
    return dict(zip(DIRECTIONS, found, strict=True))


def _choose_format(framing: Framing, messages: Sequence[Message]) -> FormatChoice:
    """Return the format that fits best."""
    contents = _contents(framing, messages)
    encoding: TextEncoding = "utf-8" if _share(contents, _utf8) >= 0.99 else "latin-1"
    texts = [content.rstrip(b"\r\n").decode(encoding, "replace") for content in contents]
    is_binary = sum(map(_is_printable, texts)) < (0.95 if framing.has_name else 0.8) * len(texts)
    if framing.has_name:
        return _format_after_header(framing, messages, contents, is_binary)
    if _share(contents, json_object) >= 0.8:
        return json_format(contents)
    if _share(contents, element_of) >= 0.5 and Counter(c[:1] for c in contents).most_common(1)[0][0] == b"<":
        return xml_format(contents)
    if is_binary:
        return struct_format(framing, [content(framing, message.data) for message in _sampled(messages)])
    return text_format(framing, texts, encoding)


def _format_after_header(
    framing: Framing, messages: Sequence[Message], contents: Sequence[bytes], is_binary: bool
) -> FormatChoice:
    """Return the format of messages whose names are in their headers: it is that of the fields alone."""
    if _share(contents, json_object) >= 0.8:
        return FormatChoice(
            Format(kind="json", name=""), lambda data: ("", json_object(data) or {}), has_codes=True
        )
    if is_binary or not contents or _share(contents, _utf8) < 1:
        form = Format(kind="struct", name="", order=framing.order)
        return FormatChoice(form, lambda data: ("", {"": data}), is_positional=True, has_codes=True)
    rows = [(code_of(framing, each.data), content(framing, each.data)) for each in _sampled(messages)]
    return text_fields([(code, data.decode()) for code, data in rows])


def _contents(framing: Framing, messages: Sequence[Message]) -> list[bytes]:
    found = (content(framing, message.data, True) for message in _sampled(messages))
    return [data for data in found if data.strip()]


def _sampled(messages: Sequence[Message]) -> Sequence[Message]:
    """Return at most `_SAMPLE` messages, taken evenly."""
    return messages if len(messages) <= _SAMPLE else messages[:: -(-len(messages) // _SAMPLE)]


def _share(contents: Sequence[bytes], test: Callable[[bytes], Any]) -> float:
    return sum(test(content) is not None for content in contents) / len(contents) if contents else 0.0


def _utf8(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _is_printable(text: str) -> bool:
    return not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]", text)
