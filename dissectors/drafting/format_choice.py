"""The chosen format of messages, with its parser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kiebitz.dissectors.protocol_file.specification import Format

MAX_NAMES = 400
"""Maximum number of message names in a file."""

MAX_NAME = 60
"""Maximum length of a message name, in characters."""

Parsed = tuple[str, dict[str, Any]]
"""Name and fields of a message; fields without a name have their position, from `1`."""

Parser = Callable[[bytes], Parsed | None]
"""Function from a frame's content to its name and fields; None if it does not fit the format."""


class FormatChoice(msgspec.Struct):
    """The chosen format.

    Attributes:
        format: The format.
        parse: The parser of a frame's content.
        is_positional: True if fields have a position instead of a name.
        has_codes: True if numbers stand for message names.
    """

    format: Format
    parse: Parser
    is_positional: bool = False
    has_codes: bool = False
