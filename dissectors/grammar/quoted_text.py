"""Regular expressions of quoted text with escapes, whose memory is bounded.

An atomic group keeps about 150 bytes for each repetition until it ends. So a repetition is an escape and all
text up to the next one, never a single character.
"""

from __future__ import annotations

JSON_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
"""An escape that JSON allows (RFC 8259, 7 Strings)."""


def quoted_text(excluded: str, escape: str = r"\\.") -> str:
    """Return a pattern of the text between quotation marks.

    Args:
        excluded: The characters that occur only in escapes, as in a character set: the quotation mark, and
            others if need be. A backslash always begins an escape.
        escape: A pattern of an escape; that of any character excludes a line feed without `re.DOTALL`.
    """
    return rf"[^{excluded}\\]*+(?>(?:{escape}[^{excluded}\\]*+)*)"


JSON_STRING = b'"%b"' % quoted_text('"').encode()
"""A string of JSON with any escapes."""
