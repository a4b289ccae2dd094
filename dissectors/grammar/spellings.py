"""Other spellings of a protocol's words: letters replaced, and words of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


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
