"""Deviations that real readers accept."""

from __future__ import annotations

import msgspec


class Lenient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Deviations that real readers accept: they are notes, and no errors.

    Attributes:
        surplus: Fields after the last one are ignored.
        charset: Encoding of text that is not UTF-8: `windows-1252`.
        line_ends: CR, LF, or the end of the stream ends a line.
        control: What readers do with control characters in a client's message, in words.
        blanks: There may be several blanks between fields.
    """

    surplus: bool = False
    charset: str = ""
    line_ends: bool = False
    control: str = ""
    blanks: bool = False
