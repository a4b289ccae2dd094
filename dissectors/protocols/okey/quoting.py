"""How Okey's lines are cut into arguments, and arguments into lists: one rule, used again on what it gives.

A token is bare unless it is empty or holds a blank or a quotation mark. Else it is quoted: each quotation
mark gets a backslash before it, and a padding stands before the closing one, so that a backslash, which is
never escaped itself, cannot stand there. The specification pads with a blank, later programs with `%`. A list
is its tokens with blanks between, as one token once more.

Readers are sloppy, and all of them in the same way: quoted and bare parts may touch and are one token, the
padding may be missing, an empty token without it vanishes, and what is quoted without an end is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

BLANK_PAD, PERCENT_PAD = " ", "%"
PADS = BLANK_PAD, PERCENT_PAD
"""The paddings of the specification and of later programs."""

_PIECES = re.compile(r'(?P<bare>[^ "]+)|"(?P<quoted>(?:[^"\\]|\\"?)*+)"|(?P<blank> +)|(?P<open>")')
"""Within quotation marks `\\"` is a quotation mark, and any other backslash is itself."""


class Token(msgspec.Struct, frozen=True):
    """An argument: its text, and from where to where it stands in the text it was cut from (characters)."""

    text: str
    start: int
    end: int


class Sloppy(msgspec.Struct, frozen=True):
    """What a writer did not do as he should, and where (characters).

    `vanished`: an empty token is lost, having no padding. `unpadded`: a quoted token has no padding.
    `unended`: a quotation has no end, and is lost. `loose`: blanks stand where none belong.
    """

    kind: Literal["vanished", "unpadded", "unended", "loose"]
    start: int
    end: int


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of a text, and the first thing that is sloppy about how they are written, if any."""

    tokens: list[Token]
    sloppy: Sloppy | None = None

    @property
    def texts(self) -> list[str]:
        """The tokens without their places."""
        return [token.text for token in self.tokens]


def cut(text: str) -> Tokens:
    """The tokens of a text.

    Which padding its writer uses need not be known: nobody writes a quoted token that ends with the other one
    but without his own.
    """
    tokens: list[Token] = []
    sloppy: Sloppy | None = None
    parts = ""
    start = end = 0
    quoted = False
    for piece in _PIECES.finditer(text):
        group = piece.lastgroup
        if group == "blank":
            if len(piece[0]) > 1 or not piece.start() or piece.end() == len(text):
                sloppy = sloppy or Sloppy("loose", *piece.span())
            if not parts:
                # Only a token that is not empty is ended, so that it was quoted is told of the next one.
                continue
            token, was_padded = _token(parts, start, end, quoted)
            if not was_padded:
                sloppy = sloppy or Sloppy("unpadded", start, end)
            tokens.append(token)
            parts, quoted = "", False
            continue
        if not parts:
            start = piece.start()
        end = piece.end()
        if group == "open":
            return Tokens(tokens, Sloppy("unended", piece.start(), len(text)))
        if group == "bare":
            parts += piece[0]
        else:
            quoted = True
            parts += piece["quoted"].replace('\\"', '"')
            if not piece["quoted"]:
                sloppy = sloppy or Sloppy("vanished", *piece.span())
    if parts:
        token, was_padded = _token(parts, start, end, quoted)
        if not was_padded:
            sloppy = sloppy or Sloppy("unpadded", start, end)
        tokens.append(token)
    return Tokens(tokens, sloppy)


def _token(text: str, start: int, end: int, quoted: bool) -> tuple[Token, bool]:
    """A token without its padding, and whether it has one if it should."""
    is_padded = not quoted or text[-1] in PADS
    return Token(text[:-1] if quoted and is_padded else text, start, end), is_padded


def shown_pad(text: str) -> str | None:
    """The padding of the first quoted token that has one; None if none shows which its writer uses."""
    quoted = (piece["quoted"][-1:] for piece in _PIECES.finditer(text) if piece["quoted"])
    return next((last for last in quoted if last in PADS), None)


def quote(text: str, pad: str) -> str:
    """A token as it is written."""
    if text and " " not in text and '"' not in text:
        return text
    escaped = text.replace('"', '\\"')
    return f'"{escaped}{pad}"'


def write_list(texts: Iterable[str], pad: str) -> str:
    """Tokens as the text of one token, which is to be quoted in its turn."""
    return " ".join(quote(text, pad) for text in texts)


def inner_places(text: str, token: Token) -> list[tuple[int, int]]:
    """From where to where in `text` each character of a token's text stands, and its padding, if any."""
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
