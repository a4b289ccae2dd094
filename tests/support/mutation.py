"""Mutated messages. Random decisions are read from bytes, whichever engine makes these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Decisions read from bytes in turn; after the last byte, each is the first alternative.

    hypothesis makes the bytes and shrinks them; atheris makes them guided by coverage.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def spent(self) -> bool:
        return self._at >= len(self._data)

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        size = ((limit - 1).bit_length() + 7) // 8
        number = int.from_bytes(self._data[self._at : self._at + size])
        self._at += size
        return number % limit

    def one_in(self, count: int) -> bool:
        """True in one of `count` cases, and never once all is spent."""
        return self.below(count) == count - 1

    def of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]


HOSTILE = (
    *(b"", b"\0", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b"\x1b[2J", b"\xc2\x9b31m", b"\x7f"),
    *(b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b"\\udc00", b";", b",", b":", b"%", b"&", b"<", b">", b"="),
    *(b"{", b"}", b"[", b"]", b"[]", b"{}", b"null", b"true", b"false", b'""', b"NaN", b"-Infinity"),
    *(b"</a>", b"<a/>", b"&lt;", b"&x;", b"&#0;", b"&#x110000;", b"<!--", b"<![CDATA[", b"]]>", b"<?xml?>"),
    *(b"0", b"-0", b"-1", b"1e999", b"1E-999", b"0.5", b"007", b"+1", b"1_0", b"0x10", "٣".encode()),
    *(b"255", b"256", b"65536", b"2147483648", b"9223372036854775808", b"18446744073709551616"),
    *(b"9" * 400, b"9" * 5000, b"-" + b"9" * 5000, b"0." + b"0" * 5000 + b"1"),
    *(b"[" * 2000, b'{"a":' * 1200, b"<a>" * 1200, b'"' * 999, b"\\" * 999, b"\n" * 300, b"!" * 300),
    *(
        b"\xff",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        "\u202e\u2066".encode(),
        "e\u0301\u0301".encode(),
    ),
    *("🎲\u200d🎲".encode(), b"x" * 300, b"y" * 5000, "ß".encode("latin-1"), b"\xa7", "§".encode()),
    *(b"'); DROP TABLE messages; --", b"%s%n", b"{0.__class__}", b"[bold]", b"__proto__", b"=1+1"),
)
"""Texts that have broken programs before: ends, quotation marks, numbers, depths, letters, names."""

_TOKENS = re.compile(rb"[0-9]+|[A-Za-z_]+|\s+|[^0-9A-Za-z_\s]")


def mutate(data: bytes, choices: Choices, others: Sequence[bytes]) -> bytes:
    """Return `data` with one mutation: of a bit, a piece, or a token of the protocols' notations.

    `others` are messages of the same protocol, of which parts may be inserted.
    """
    kind = choices.below(10)
    if kind < 5:
        return _other_tokens(kind, data, choices, others)
    at = choices.below(len(data) + 1)
    upto = min(len(data), at + choices.below(40))
    if kind == 5 and at < len(data):
        return data[:at] + bytes([data[at] ^ 1 << choices.below(8)]) + data[at + 1 :]
    if kind == 6:
        return data[:at]
    if kind == 7:
        return data[:at] + data[upto:]
    if kind == 8:
        other = choices.of(others)
        return data[:at] + other[choices.below(len(other) + 1) :]
    return data[:at] + choices.of(HOSTILE) + data[at:]


def _other_tokens(kind: int, data: bytes, choices: Choices, others: Sequence[bytes]) -> bytes:
    tokens = _TOKENS.findall(data)
    if not tokens:
        return choices.of(HOSTILE)
    at = choices.below(len(tokens))
    upto = at + 1 + choices.below(8)
    if kind == 0:
        tokens[at] = choices.of(HOSTILE)
    elif kind == 1:
        other = _TOKENS.findall(choices.of(others)) or [b""]
        tokens[at] = choices.of(other)
    elif kind == 2:
        tokens[at:upto] = tokens[at:upto] * (2 + choices.below(3))
    elif kind == 3:
        del tokens[at:upto]
    else:
        tokens[at:upto] = tokens[at:upto][::-1]
    return b"".join(tokens)
