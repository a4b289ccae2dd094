"""The quoting of Okey's lines: arguments, and lists inside arguments, by one recursive rule.

A token is bare unless it is empty or contains a blank or a quotation mark. Otherwise it is quoted: each
quotation mark is escaped by a backslash, and a padding precedes the closing one, so that a backslash, which
is never escaped itself, cannot precede it. The specification pads with a blank, later programs with `%`. A
list is its tokens joined by blanks, quoted as one token again.

All readers are equally lenient: adjacent quoted and bare parts form one token, the padding may be missing, an
empty token without it vanishes, and an unended quotation is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

BLANK_PAD, PERCENT_PAD = " ", "%"
PADS = BLANK_PAD, PERCENT_PAD
"""The paddings of the specification and of later programs."""

_PIECES = re.compile(
    r'(?P<bare>[^ "]+)|"(?P<quoted>[^"\\]*+|.*?(?<!\\))"|(?P<blank> +)|(?P<open>")', re.DOTALL
)
r"""Within quotation marks `\"` is a quotation mark, and any other backslash is itself."""


class Token(msgspec.Struct, frozen=True):
    """A token: its text, and its range of characters in the original text."""

    text: str
    start: int
    end: int


class Deviation(msgspec.Struct, frozen=True):
    """A deviation from the quoting rule, and its range of characters.

    `vanished`: an empty token is lost, having no padding. `unpadded`: a quoted token has no padding.
    `unended`: a quotation has no end, and is lost. `loose`: extra blanks.
    """

    kind: Literal["vanished", "unpadded", "unended", "loose"]
    start: int
    end: int


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of a text, and the first deviation in their quoting, if any."""

    tokens: list[Token]
    deviation: Deviation | None = None

    @property
    def texts(self) -> list[str]:
        """The texts of the tokens."""
        return [token.text for token in self.tokens]


def cut(text: str) -> Tokens:
    """Split a text into tokens.

    The writer's padding need not be known: no writer ends a quoted token with the other padding but without
    its own.
    """
    tokens: list[Token] = []
    deviation: Deviation | None = None
    parts = ""
    start = end = 0
    quoted = False
    for piece in _PIECES.finditer(text):
        group = piece.lastgroup
        if group == "blank":
            if len(piece[0]) > 1 or not piece.start() or piece.end() == len(text):
                deviation = deviation or Deviation("loose", *piece.span())
            if not parts:
                # An empty part does not end a token, so `quoted` stays set for the next one.
                continue
            token, was_padded = _token(parts, start, end, quoted)
            if not was_padded:
                deviation = deviation or Deviation("unpadded", start, end)
            tokens.append(token)
            parts, quoted = "", False
            continue
        if not parts:
            start = piece.start()
        end = piece.end()
        if group == "open":
            return Tokens(tokens, Deviation("unended", piece.start(), len(text)))
        if group == "bare":
            parts += piece[0]
        else:
            quoted = True
            parts += piece["quoted"].replace('\\"', '"')
            if not piece["quoted"]:
                deviation = deviation or Deviation("vanished", *piece.span())
    if parts:
        token, was_padded = _token(parts, start, end, quoted)
        if not was_padded:
            deviation = deviation or Deviation("unpadded", start, end)
        tokens.append(token)
    return Tokens(tokens, deviation)


def _token(text: str, start: int, end: int, quoted: bool) -> tuple[Token, bool]:
    """Return a token without its padding, and False if a required padding is missing."""
    is_padded = not quoted or text[-1] in PADS
    return Token(text[:-1] if quoted and is_padded else text, start, end), is_padded


def shown_pad(text: str) -> str | None:
    """Return the padding of the first quoted token that has one, or None."""
    quoted = (piece["quoted"][-1:] for piece in _PIECES.finditer(text) if piece["quoted"])
    return next((last for last in quoted if last in PADS), None)


def quote(text: str, pad: str) -> str:
    """Quote a token if necessary."""
    if text and " " not in text and '"' not in text:
        return text
    escaped = text.replace('"', '\\"')
    return f'"{escaped}{pad}"'


def write_list(texts: Iterable[str], pad: str) -> str:
    """Join tokens as the text of one token, which must be quoted in turn."""
    return " ".join(quote(text, pad) for text in texts)


def inner_places(text: str, token: Token) -> list[tuple[int, int]]:
    """Return the range in `text` of each character of a token's text and of its padding, if any."""
    places: list[tuple[int, int]] = []
    at = token.start
    inside = False
    while at < token.end:
        width = 2 if inside and text[at : at + 2] == '\\"' else 1
        if width == 1 and text[at] == '"':
            inside = not inside
        else:
            places.append((at, at + width))
        at += width
    return places
