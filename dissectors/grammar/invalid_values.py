"""How a field's text can be wrong: what is put in its place to see what a program makes of it.

A type of field lists texts that it may refuse (`FieldType.wrong_texts`); those that it does refuse are its
wrong values. A plug-in's types have them without a line of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

LONG = 5000
"""A text that is too long has so many characters."""

NOBODY = "Kiebitz"
"""A word that no protocol knows."""

Text = str | Callable[[Any], str]
"""A text to be written, or how it is made of the value that stands there."""


class Wrong(NamedTuple):
    """A way to spoil a field: its `kind` in a word, what it is in a few, and the text to be written.

    One that is `odd` is worth a try where its type lets it pass, too; `allowed` says that it does: then no
    flaw is promised. `part` is what of a field is wrong that has parts.
    """

    kind: str
    title: str
    text: Text
    odd: bool = False
    allowed: bool = False
    part: str = ""

    def of(self, value: Any) -> str:
        """The text in place of a value. Raises LookupError or ValueError where this value has nothing
        to be spoilt so."""
        return self.text if isinstance(self.text, str) else self.text(value)

    def inside(self, part: str, text: Callable[[Any], str]) -> Wrong:
        """The same in a part of a field, all of whose text is then `text`."""
        return self._replace(text=text, part=f"{part}.{self.part}" if self.part else part)


EMPTY = Wrong("empty", "nothing stands there", "", odd=True)
NEGATIVE = Wrong("negative", "a number below zero", "-1")
TOO_LARGE = Wrong("too-large", "a number of twenty digits", "9" * 20)
FRACTION = Wrong("fraction", "a number with a fraction", "1.5")
UNKNOWN = Wrong("unknown", "a word that nobody knows", NOBODY)
TOO_LONG = Wrong("too-long", f"a text of {LONG} characters", "x" * LONG, odd=True)
CONTROL = Wrong("control", "control characters", f"{NOBODY}\x07\x1b[31m", odd=True)
MARKUP = Wrong("markup", "what other formats take for markup", f'<b>&"{NOBODY}"</b>', odd=True)
OUTSIDE_ASCII = Wrong("outside-ascii", "letters of two and of four bytes", "Größe🎲", odd=True)

OF_ANY = (EMPTY, UNKNOWN, NEGATIVE, TOO_LARGE, FRACTION, TOO_LONG, CONTROL, MARKUP, OUTSIDE_ASCII)
"""The texts for a type of which nothing is known."""

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
    """Small letters for capital ones, and the other way round."""

    def text(value: Any) -> str:
        written = encode(value)
        if written.swapcase() == written:
            raise ValueError("it has no letters")
        return written.swapcase()

    return Wrong("other-case", "small letters for capital ones, or the other way round", text)
