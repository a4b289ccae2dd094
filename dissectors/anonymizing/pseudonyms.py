"""What stands in for words and addresses that may tell who somebody is, each always in place of the same one.

A word is a run of letters, or of digits. Its stand-in takes as many bytes in every charset and with every
kind of escape, so nothing moves. Blanks and punctuation stay, and so does whether a letter is a capital.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import gcd, prod
from string import ascii_lowercase, ascii_uppercase, digits

from kiebitz.dissectors.anonymizing.addresses import Addresses
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import IdentifierKind

MAX_WORDS = 1 << 17
"""So many words are remembered; then the oldest is forgotten, as peers can send any number of them."""

_MAX_LENGTH = 24
"""A run of letters that goes on for longer is taken for several words."""

_WINDOWS = "€‚„…†‡ˆ‰‹‘’“”•–—˜™›\ufffd\ufeff"
"""Punctuation outside Latin-1 that Windows-1252 has; and what stands where bytes are no text,
or before it."""
_LETTER = rf"(?:[^\W0-9_]|[^\x00-\xff\w\s{_WINDOWS}\ud800-\udfff])"
_WORD = re.compile(rf"{_LETTER}{{1,{_MAX_LENGTH}}}|[0-9]{{1,15}}")

_FIRST, _VOWELS, _CONSONANTS = "qxzyjwv", "aeiou", "bdfgklmnprst"
"""A made-up word begins with a letter that few words begin with, and can be spoken."""
_TWO_BYTES = "äöüéáóíúýâôîëçÄÖÜÉÁÓÍÚÝÂÔÎËÇß"
"""Letters that Latin-1, Latin-2 and Windows-1252 have; UTF-8 has two bytes for each."""
_THREE_BYTES = "".join(map(chr, range(0x10D0, 0x10F1)))
_FOUR_BYTES = "".join(map(chr, range(0x1F400, 0x1F440)))
_KINDS = {"a": ascii_lowercase, "0": digits, "2": _TWO_BYTES, "3": _THREE_BYTES, "4": _FOUR_BYTES}

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_SEARCHED = 2_000
"""So many words of a form are looked through for one that is free, where the good ones are used up."""


class StandIns:
    """Finds the stand-ins. None is a word of these protocols, nor one that was replaced, if it can be
    helped."""

    def __init__(self, dissectors: Iterable[Dissector]) -> None:
        words = [word for dissector in dissectors for word in dissector.grammar.words]
        self._avoided = {part.translate(_LOWER) for word in words for part in _WORD.findall(word)}
        self._words: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        """By form, which of the made-up words comes next."""
        self._addresses = Addresses()

    def text(self, text: str) -> str:
        """A text with a stand-in for each of its words."""
        return _WORD.sub(lambda found: self._word(found[0]), text)

    def endpoint(self, endpoint: str) -> str:
        """The same for an address with its port, `ip:port`, or the name of a machine; the port stays."""
        host, colon, port = endpoint.rpartition(":")
        if not colon:
            host, port = endpoint, ""
        bare = host.removeprefix("[").removesuffix("]")
        other = self._addresses.stand_in(bare)
        if other is None:
            other = self.text(bare)
        return f"{host.replace(bare, other)}{colon}{port}" if bare else endpoint

    def rename(self, identifier: IdentifierKind, name: object) -> object:
        """The same for what is a name of this kind; a number stays that only counts within a game."""
        if isinstance(name, str) and identifier.of_server:
            return self.endpoint(name)
        if isinstance(name, str) and identifier.of_player:
            return self.text(name)
        if type(name) is int and identifier.global_:
            return int(self.text(str(name)))
        return name

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each word and each address, and what stands in for it, in the order in which they came."""
        yield from self._words.items()
        yield from self._addresses.pairs()

    def _word(self, word: str) -> str:
        # "Alice" and "alice" are one word, or a name would not be recognised in a chat.
        key = word.translate(_LOWER)
        stand_in = self._words.get(key)
        if stand_in is None:
            if len(self._words) >= MAX_WORDS:
                self._taken.discard(self._words.pop(next(iter(self._words))))
            stand_in = self._words[key] = self._new(key)
            self._taken.add(stand_in)
        if key == word:
            return stand_in
        return "".join(
            new.upper() if old in ascii_uppercase else new for old, new in zip(word, stand_in, strict=True)
        )

    def _new(self, word: str) -> str:
        """A made-up word of the form of this one, which stands for no other."""
        form = "".join(map(_kind, word))
        count = made_up_count(form)
        number = self._next.get(form, 0)
        while number < count:
            made = made_up(form, number)
            number += 1
            if made != word and not (made in self._taken or made in self._avoided or made in self._words):
                self._next[form] = number
                return made
        self._next[form] = number
        # There are as many stand-ins as there are words of a form, unless these have rare letters.
        others = (made_up(form, number) for number in range(min(count, _SEARCHED)))
        free = (made for made in others if made not in self._taken)
        return next((made for made in free if made != word), made_up(form, 0))


def made_up_count(form: str) -> int:
    """How many made-up words there are of a form, some of them twice."""
    return prod(map(len, _spoken(form))) + prod(len(_KINDS[kind]) for kind in form)


def made_up(form: str, number: int) -> str:
    """A made-up word of a form: first those that can be spoken, in an order that mixes them, then all."""
    spoken = _spoken(form)
    count = prod(map(len, spoken))
    if number >= count:
        return _spelt([_KINDS[kind] for kind in form], number - count)
    step = count * 6180339887 // 10**10 | 1
    while gcd(step, count) != 1:
        step += 2
    # Of each form another one is the first, so that words of several forms end differently.
    return _spelt(spoken, (number + 3 * len(form)) * step % count)


@lru_cache(maxsize=1024)
def _spoken(form: str) -> tuple[str, ...]:
    """Which letters stand in each place of a word of a form that can be spoken."""
    letters: list[str] = []
    for place, kind in enumerate(form):
        if kind == "a":
            letters.append(_VOWELS if place % 2 else _CONSONANTS if place else _FIRST)
        elif kind == "0" and not place:
            # A number has no zero before it.
            letters.append(digits[1:])
        else:
            # A capital in the middle of a word is odd.
            letters.append("".join(char for char in _KINDS[kind] if not char.isupper()))
    return tuple(letters)


def _spelt(letters: Sequence[str], number: int) -> str:
    """The word of this number among all that have one of these letters in each place."""
    word = ""
    for of_place in letters:
        number, place = divmod(number, len(of_place))
        word += of_place[place]
    return word


def _kind(char: str) -> str:
    """Which letters can stand in for this one: those that take as many bytes."""
    if char.isascii():
        return "0" if char in digits else "a"
    return str(len(char.encode()))
