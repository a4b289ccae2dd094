"""Invalid values of fields, for the test cases of `probe`.

A field type lists texts that it may reject (`FieldType.wrong_texts`); those that it does reject are its
invalid values. Field types of plug-ins inherit a default list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

LONG = 5000
"""Length of a text that is too long, in characters."""

UNKNOWN_WORD = "Kiebitz"
"""A word that occurs in no protocol."""

Text = str | Callable[[Any], str]
"""A text to send, or a function that makes it from the field's value."""


class Wrong(NamedTuple):
    """An invalid text for a field, with its `kind` in a word and a title.

    An `odd` text is tested even if the type accepts it; `allowed` is then True, and no violation is expected.
    `part` names the invalid part of a field that has parts.
    """

    kind: str
    title: str
    text: Text
    odd: bool = False
    allowed: bool = False
    part: str = ""

    def of(self, value: Any) -> str:
        """Return the text that replaces a value; raise LookupError or ValueError if there is none."""
        return self.text if isinstance(self.text, str) else self.text(value)

    def inside(self, part: str, text: Callable[[Any], str]) -> Wrong:
        """Return this invalid value for a part of a field; `text` makes the text of the whole field."""
        return self._replace(text=text, part=f"{part}.{self.part}" if self.part else part)


EMPTY = Wrong("empty", "an empty text", "", odd=True)
NEGATIVE = Wrong("negative", "a number below zero", "-1")
TOO_LARGE = Wrong("too-large", "a number of twenty digits", "9" * 20)
FRACTION = Wrong("fraction", "a number with a fraction", "1.5")
UNKNOWN = Wrong("unknown", "an unknown word", UNKNOWN_WORD)
TOO_LONG = Wrong("too-long", f"a text of {LONG} characters", "x" * LONG, odd=True)
CONTROL = Wrong("control", "control characters", f"{UNKNOWN_WORD}\x07\x1b[31m", odd=True)
MARKUP = Wrong("markup", "markup of other formats", f'<b>&"{UNKNOWN_WORD}"</b>', odd=True)
OUTSIDE_ASCII = Wrong("outside-ascii", "letters of two and four bytes", "Größe🎲", odd=True)

OF_ANY = (EMPTY, UNKNOWN, NEGATIVE, TOO_LARGE, FRACTION, TOO_LONG, CONTROL, MARKUP, OUTSIDE_ASCII)
"""Candidates for a type without its own `wrong_texts`."""

OF_NUMBERS = (
    EMPTY,
    UNKNOWN._replace(kind="other-type", title="a word in place of a number"),
    NEGATIVE,
    TOO_LARGE,
    FRACTION,
    TOO_LONG._replace(title=f"a number of {LONG} digits", text="1" * LONG),
)

OF_WORDS = (
    EMPTY,
    UNKNOWN,
    NEGATIVE._replace(kind="other-type", title="a number in place of a word"),
    TOO_LONG,
    CONTROL,
)


def other_case(encode: Callable[[Any], str]) -> Wrong:
    """Return the candidate with upper and lower case swapped."""

    def text(value: Any) -> str:
        written = encode(value)
        if written.swapcase() == written:
            raise ValueError("it has no letters")
        return written.swapcase()

    return Wrong("other-case", "upper and lower case swapped", text)
