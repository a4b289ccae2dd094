"""Pseudonyms for words and addresses that may identify a person; equal originals get equal pseudonyms.

A word is a run of letters or of digits. Its pseudonym takes as many bytes in every charset and with every
kind of escape, so nothing moves. Blanks, punctuation and capitalization stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from ipaddress import ip_address
from itertools import count, product
from math import gcd, prod
from string import ascii_lowercase, ascii_uppercase, digits

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import IdentifierKind

_ANY_IPV4 = len("255.255.255.255")
_ANY_IPV6 = len("2001:db8::1000")

_DOCUMENTATION = ("192.0.2.", "198.51.100.", "203.0.113.")
"""RFC 5737."""

_LOCAL_NAME = "localhost"


class AddressPseudonyms:
    """A one-to-one mapping of addresses to pseudonyms.

    Args:
        most: Maximum number of remembered addresses; then the oldest is evicted, as clients can invent any
            number.
        other_length: Length of IPv4 pseudonyms if there are none of the original's length.
    """

    def __init__(self, most: int = 1 << 17, other_length: int = _ANY_IPV4) -> None:
        self._most, self._other_length = most, other_length
        self._found: dict[str, str] = {}
        self._free: dict[tuple[int, int], Iterator[str]] = {}
        """Unused pseudonyms, by IP version and length."""

    def pseudonym(self, address: str) -> str | None:
        """Return the pseudonym of an address; a loopback address itself; None if the text is no address."""
        known = self._found.get(address)
        if known is not None:
            return known
        try:
            ip = ip_address(address)
        except ValueError:
            return address if address == _LOCAL_NAME else None
        if ip.is_loopback or ip.is_unspecified:
            return address
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[address] = other = self._next(ip.version, len(address))
        return other

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each address and its pseudonym, in order of appearance."""
        yield from self._found.items()

    def _next(self, version: int, length: int) -> str:
        """Return an unused pseudonym, of this length as long as there are any."""
        make, other_length = (_ipv4, self._other_length) if version == 4 else (_ipv6, _ANY_IPV6)
        while True:
            for wanted in (length, other_length):
                free = self._free.setdefault((version, wanted), make(wanted))
                for address in free:
                    if address not in self._found:
                        return address
            # All have been used. They outnumber the remembered ones, so the first are free again.
            del self._free[version, other_length]


def _ipv4(length: int) -> Iterator[str]:
    """Yield all IPv4 pseudonyms of this length."""
    for network in _DOCUMENTATION:
        places = length - len(network)
        if 1 <= places <= 3:
            yield from (f"{network}{host}" for host in range(10 ** (places - 1), min(10**places, 255)))
    # 0.0.0.0/8 and 240.0.0.0/4 are unassigned, and 10.0.0.0/8 is private.
    first = {7: "0", 8: "10"}.get(length, "240")
    places = length - len(first) - 3
    for sizes in product((1, 2, 3), repeat=3):
        if sum(sizes) == places:
            numbers = (range(10 ** (size - 1), min(10**size, 256)) for size in sizes)
            for octets in product(*numbers):
                yield ".".join((first, *map(str, octets)))


def _ipv6(length: int) -> Iterator[str]:
    """Yield all IPv6 pseudonyms of this length in the notation of RFC 5952; a few lengths have none."""
    # RFC 3849, and for short ones RFC 6666. Two colons replace at least two groups.
    for network, most_groups, exactly in (
        ("2001:db8::", 4, False),
        ("2001:db8:", 6, True),
        ("100::", 1, False),
    ):
        rest = length - len(network)
        groups = most_groups if exactly else (rest + 5) // 5
        places = rest - (groups - 1)
        if 1 <= groups <= most_groups and groups <= places <= 4 * groups:
            sizes = [places // groups + (number < places % groups) for number in range(groups)]
            yield from _groups(network, sizes)
            return


def _groups(network: str, sizes: list[int]) -> Iterator[str]:
    """Yield addresses of a network whose groups have these numbers of hexadecimal digits."""
    ranges = [(16 ** (size - 1), 16**size) for size in sizes]
    for number in count():
        values = []
        for low, high in reversed(ranges):
            number, value = divmod(number, high - low)
            values.append(f"{low + value:x}")
        if number:
            return
        yield network + ":".join(reversed(values))


MAX_WORDS = 1 << 17
"""Maximum number of remembered words; then the oldest is evicted, as peers can send any number of them."""

_MAX_WORD_LENGTH = 24
"""Maximum length of a word; a longer run of letters counts as several words."""

_WINDOWS = "€‚„…†‡ˆ‰‹‘’“”•–—˜™›\ufffd\ufeff"
"""Punctuation of Windows-1252 outside Latin-1, the replacement character and the byte order mark."""
_LETTER = rf"(?:[^\W0-9_]|[^\x00-\xff\w\s{_WINDOWS}\ud800-\udfff])"
_WORD = re.compile(rf"{_LETTER}{{1,{_MAX_WORD_LENGTH}}}|[0-9]{{1,15}}")

_FIRST, _VOWELS, _CONSONANTS = "qxzyjwv", "aeiou", "bdfgklmnprst"
"""A pseudonym begins with a letter that few words begin with, and is pronounceable."""
_TWO_BYTES = "äöüéáóíúýâôîëçÄÖÜÉÁÓÍÚÝÂÔÎËÇß"
"""Letters of Latin-1, Latin-2 and Windows-1252; each takes two bytes in UTF-8."""
_THREE_BYTES = "".join(map(chr, range(0x10D0, 0x10F1)))
_FOUR_BYTES = "".join(map(chr, range(0x1F400, 0x1F440)))
_KINDS = {"a": ascii_lowercase, "0": digits, "2": _TWO_BYTES, "3": _THREE_BYTES, "4": _FOUR_BYTES}

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_MAX_SEARCHED = 2_000
"""Maximum number of words of a form to search for a free one once the pronounceable ones are used up."""


class Pseudonyms:
    """A mapping of words and addresses to pseudonyms.

    If possible, none is a word of these protocols or one that was replaced.
    """

    def __init__(self, dissectors: Iterable[Dissector]) -> None:
        words = [word for dissector in dissectors for word in dissector.grammar.words]
        self._avoided = {part.translate(_LOWER) for word in words for part in _WORD.findall(word)}
        self._words: dict[str, str] = {}
        self._used: set[str] = set()
        self._next: dict[str, int] = {}
        """The number of the next made-up word, by form."""
        self._addresses = AddressPseudonyms()

    def text(self, text: str) -> str:
        """Replace each word of a text."""
        return _WORD.sub(lambda found: self._word(found[0]), text)

    def endpoint(self, endpoint: str) -> str:
        """Replace the address in `ip:port`, or a host name; the port stays."""
        host, colon, port = endpoint.rpartition(":")
        if not colon:
            host, port = endpoint, ""
        bare = host.removeprefix("[").removesuffix("]")
        other = self._addresses.pseudonym(bare)
        if other is None:
            other = self.text(bare)
        return f"{host.replace(bare, other)}{colon}{port}" if bare else endpoint

    def rename(self, identifier: IdentifierKind, name: object) -> object:
        """Replace an identifier of this kind; a number that only counts within a game stays."""
        if isinstance(name, str) and identifier.of_server:
            return self.endpoint(name)
        if isinstance(name, str) and identifier.of_player:
            return self.text(name)
        if type(name) is int and identifier.global_:
            return int(self.text(str(name)))
        return name

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each word and each address with its pseudonym, in order of appearance."""
        yield from self._words.items()
        yield from self._addresses.pairs()

    def _word(self, word: str) -> str:
        # "Alice" and "alice" are one word, or a name would not be recognised in a chat.
        key = word.translate(_LOWER)
        pseudonym = self._words.get(key)
        if pseudonym is None:
            if len(self._words) >= MAX_WORDS:
                self._used.discard(self._words.pop(next(iter(self._words))))
            pseudonym = self._words[key] = self._new(key)
            self._used.add(pseudonym)
        if key == word:
            return pseudonym
        return "".join(
            new.upper() if old in ascii_uppercase else new for old, new in zip(word, pseudonym, strict=True)
        )

    def _new(self, word: str) -> str:
        """Return an unused made-up word of the same form."""
        form = "".join(map(_kind, word))
        count = count_made_up(form)
        number = self._next.get(form, 0)
        while number < count:
            made = make_up(form, number)
            number += 1
            if made != word and not (made in self._used or made in self._avoided or made in self._words):
                self._next[form] = number
                return made
        self._next[form] = number
        # There are as many pseudonyms as words of a form, unless these have rare letters.
        others = (make_up(form, number) for number in range(min(count, _MAX_SEARCHED)))
        free = (made for made in others if made not in self._used)
        return next((made for made in free if made != word), make_up(form, 0))


def count_made_up(form: str) -> int:
    """Return the number of made-up words of a form, some of which occur twice."""
    return prod(map(len, _spoken(form))) + prod(len(_KINDS[kind]) for kind in form)


def make_up(form: str, number: int) -> str:
    """Return a made-up word of a form: pronounceable ones first, in a mixed order, then all."""
    spoken = _spoken(form)
    count = prod(map(len, spoken))
    if number >= count:
        return _spelt([_KINDS[kind] for kind in form], number - count)
    step = count * 6180339887 // 10**10 | 1
    while gcd(step, count) != 1:
        step += 2
    # Each form starts at another word, so that words of several forms end differently.
    return _spelt(spoken, (number + 3 * len(form)) * step % count)


@lru_cache(maxsize=1024)
def _spoken(form: str) -> tuple[str, ...]:
    """Return the possible letters at each position of a pronounceable word of a form."""
    letters: list[str] = []
    for place, kind in enumerate(form):
        if kind == "a":
            letters.append(_VOWELS if place % 2 else _CONSONANTS if place else _FIRST)
        elif kind == "0" and not place:
            # A number has no leading zero.
            letters.append(digits[1:])
        else:
            # A capital in the middle of a word would look odd.
            letters.append("".join(char for char in _KINDS[kind] if not char.isupper()))
    return tuple(letters)


def _spelt(letters: Sequence[str], number: int) -> str:
    """Return the word with this number among all words over these letters for each position."""
    word = ""
    for of_place in letters:
        number, place = divmod(number, len(of_place))
        word += of_place[place]
    return word


def _kind(char: str) -> str:
    """Return the class of characters that may replace this one: those with as many bytes."""
    if char.isascii():
        return "0" if char in digits else "a"
    return str(len(char.encode()))
