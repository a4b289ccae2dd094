"""Inference of the format: JSON, XML, text or binary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from kiebitz.dissectors.drafting.binary import struct_format
from kiebitz.dissectors.drafting.format_choice import FormatChoice
from kiebitz.dissectors.drafting.framing import content
from kiebitz.dissectors.drafting.json_format import json_format, json_object
from kiebitz.dissectors.drafting.text_format import text_format
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.drafting.xml_format import element_of, xml_format
from kiebitz.dissectors.protocol_file.specification import Framing, TextEncoding

_SAMPLE = 4000
"""Number of messages by which a format is inferred."""


def choose_format(framing: Framing, messages: Sequence[Message]) -> FormatChoice:
    """Return the format that fits best."""
    contents = [found for message in _sampled(messages) if (found := content(framing, message.data)).strip()]
    if _share(contents, json_object) >= 0.8:
        return json_format(contents)
    if _share(contents, element_of) >= 0.5 and Counter(c[:1] for c in contents).most_common(1)[0][0] == b"<":
        return xml_format(contents)
    encoding: TextEncoding = "utf-8" if _share(contents, _utf8) >= 0.99 else "latin-1"
    texts = [content.rstrip(b"\r\n").decode(encoding, "replace") for content in contents]
    if sum(map(_is_printable, texts)) < 0.8 * len(texts):
        return struct_format(framing, contents)
    return text_format(framing, texts, encoding)


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
