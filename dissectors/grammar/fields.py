"""Field types of more than one protocol: text, fixed words, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, Mismatch
from kiebitz.dissectors.grammar.grammar import nearest_word
from kiebitz.dissectors.grammar.invalid_values import OF_NUMBERS, OF_WORDS, Wrong, other_case
from kiebitz.dissectors.suggestions import with_suggestion

_MAX_QUOTED = 40
"""Maximum length of a quoted invalid value, in characters."""


_VERSION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}")


def is_version(text: str) -> bool:
    """Return True if a text is a version number such as `1.0`, which is not personal."""
    return _VERSION.fullmatch(text) is not None


class Text(FieldType):
    """Any text that the framing allows; a name if it has an `identifier`. `words` are its usual values."""

    title = "text"
    is_free_text = True

    def __init__(self, identifier: IdentifierKind | None = None, words: tuple[str, ...] = ()) -> None:
        self.words = words
        self.identifier = identifier

    def decode(self, text: str) -> str:
        return text

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "text"}


class Word(Text):
    """A fixed word of a small set."""

    is_free_text = False
    wrong_texts = OF_WORDS

    def __init__(self, *words: str, title: str | None = None) -> None:
        super().__init__()
        self.words = words
        self.title = title or "one of " + ", ".join(words)

    def decode(self, text: str) -> str:
        if text not in self.words:
            raise unknown_word(text, self.words, self.title)
        return text

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "choice", "values": {word: ("s", word) for word in self.words}}

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if any(word != word.swapcase() for word in self.words):
            yield other_case(self.encode)


class Number(FieldType):
    """A whole number, 0 or more; the number of something, if it has an `identifier`."""

    title = "whole number"
    wrong_texts = OF_NUMBERS

    def __init__(self, identifier: IdentifierKind | None = None) -> None:
        self.identifier = identifier

    def decode(self, text: str) -> int:
        # At most 15 digits: a number that every reader of the database can hold.
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise Mismatch(
                0, len(text), f'"{text[:_MAX_QUOTED]}" is not a number', "a whole number", "bad-number"
            )
        return int(text)

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "number", "whole": True, "unsigned": True, "digits": 15}


def unknown_word(text: str, words: tuple[str, ...], expected: str) -> Mismatch:
    """Return the error for a text that is none of `words`, with the closest one as a suggestion."""
    problem = f'"{text[:_MAX_QUOTED]}" is not known here' if text else "the value is empty"
    return Mismatch(0, len(text), with_suggestion(problem, nearest_word(text, words)), expected)
