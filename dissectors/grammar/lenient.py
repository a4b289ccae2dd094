"""Deviations that real readers accept, and other spellings of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_WORD = "\N{HORIZONTAL ELLIPSIS}"


class Misprint(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True):
    """A misprint of the specification in tags of XML.

    Attributes:
        name: A word for it, which ends the code of its note.
        sent: The misprint in brackets, between its neighbours; an ellipsis is a word.
        meant: What is meant, in as many characters.
        where: Its place in the specification.
    """

    name: str
    sent: Annotated[
        str,
        Meta(
            pattern=r"^[^\[\]…]*\[[^\[\]]+\][^\[\]]*$",
            max_length=100,
            extra={"is": 'a text with brackets around the misprint, such as \'=["… "]…="\''},
        ),
    ]
    meant: str
    where: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern of the misprint; its words are its groups."""
        before, wrong, after = (
            re.escape(part).replace("\\ ", r"\s").replace(_WORD, r"(\w{1,64}+)")
            for part in re.split(r"[\[\]]", self.sent)
        )
        return re.compile(f"(?<={before}){wrong}(?={after})".encode())

    @cached_property
    def repaired(self) -> bytes:
        """The replacement of a match."""
        numbers = count(1)
        template = self.meant.replace("\\", r"\\")
        return re.sub(_WORD, lambda _: rf"\g<{next(numbers)}>", template).encode()

    @property
    def is_repairable(self) -> bool:
        """True if what is meant has as many bytes and words as what is sent."""
        _, wrong, _ = re.split(r"[\[\]]", self.sent)
        sizes = {(len(text.encode()), text.count(_WORD)) for text in (wrong, self.meant)}
        return len(sizes) == 1


class Lenient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Deviations that readers accept: they are notes, and no errors.

    Attributes:
        surplus: True if readers ignore fields after the last one.
        charset: Encoding of text that is not UTF-8.
        line_ends: True if CR, LF, or the end of the stream ends a line.
        control: What readers do with control characters in a client's message, in words.
        blanks: True if several blanks between words are noted.
        misprints: Misprints in tags of XML that peers have copied.
    """

    surplus: bool = False
    charset: Literal["", "windows-1252", "iso-8859-2"] = ""
    line_ends: bool = False
    control: str = ""
    blanks: bool = False
    misprints: tuple[Misprint, ...] = ()


class Spellings:
    """The spellings of words that readers accept, besides the specification's.

    Args:
        words: Other spellings by the specification's word: `{"Straße": ["street"]}`.
        letters: Replacements of letters in any word: `{"ß": "ss"}`.
    """

    def __init__(
        self, words: Mapping[str, Sequence[str]] | None = None, letters: Mapping[str, str] | None = None
    ) -> None:
        self._others = words or {}
        self._letters = str.maketrans(dict(letters or {}))

    def of(self, words: Iterable[str]) -> dict[str, str]:
        """Return the specification's word for every known spelling of these words."""
        known = {word: word for word in words}
        known |= {other: word for word in [*known] for other in self._others.get(word, ())}
        return {spelt.translate(self._letters): word for spelt, word in known.items()} | known

    def with_words(self, words: Mapping[str, Sequence[str]]) -> Spellings:
        """Return these spellings with those of further words."""
        found = Spellings({**self._others, **words})
        found._letters = self._letters
        return found

    def plain(self, word: str) -> str:
        """Return a word with its letters replaced."""
        return word.translate(self._letters)


AS_WRITTEN = Spellings()
"""The spellings of a protocol that has none but the specification's."""
