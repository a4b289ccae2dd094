"""Tokens of a text: how they are separated and quoted, and where they are; patterns of quoted text.

A token is bare, or quoted because it is empty or contains a separator or a quotation mark. There are two
ways of quoting: `Splitter` escapes quotation marks and backslashes by a backslash. `PaddedQuotes` escapes
quotation marks only, and writes a padding before the closing one, so that a backslash cannot precede it; a
list in a token is its tokens joined by blanks, quoted once more.

The memory of quoted text's patterns is bounded: an atomic group keeps about 150 bytes for each repetition
until it ends. So a repetition is an escape and all text up to the next one, never a single character.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import methodcaller
from typing import Literal, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.field_type import WireType

JSON_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
"""An escape that JSON allows (RFC 8259, 7 Strings)."""


def quoted_text(excluded: str, escape: str = r"\\.") -> str:
    """Return a pattern of the text between quotation marks.

    Args:
        excluded: The characters that occur only in escapes, as in a character set: the quotation mark, and
            others if need be. A backslash always begins an escape.
        escape: A pattern of an escape; that of any character excludes a line feed without `re.DOTALL`.
    """
    return rf"[^{excluded}\\]*+(?>(?:{escape}[^{excluded}\\]*+)*)"


JSON_STRING = b'"%b"' % quoted_text('"').encode()
"""A string of JSON with any escapes."""


class Token(msgspec.Struct, frozen=True, gc=False):
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

    @property
    def loses_token(self) -> bool:
        """True if readers drop a token."""
        return self.kind in ("vanished", "unended")


class Texts(NamedTuple):
    """The texts of tokens, and the first deviation in their quoting, if any."""

    texts: list[str]
    deviation: Deviation | None = None


class Tokenizer(ABC):
    """A way to write several texts as one, and to find them again."""

    separator: str
    """Text between two tokens."""
    quote = ""
    """Quotation mark; empty if there is none."""
    pads: tuple[str, ...] = ()
    """Paddings before a closing quotation mark, that of the specification first."""
    is_blank = False
    """True if tokens are separated by any number of blanks, so that an empty one must be quoted."""
    _escaped: tuple[str, ...] = ()

    @abstractmethod
    def texts(self, text: str) -> list[str]:
        """Return the texts of the tokens."""

    def splitter(self) -> Callable[[str], list[str]]:
        """Return the fastest function that does the same as `texts`."""
        return self.texts

    @abstractmethod
    def tokens(self, text: str) -> list[Token]:
        """Return the tokens with their places."""

    @abstractmethod
    def quoted(self, text: str, pad: str = "") -> str:
        """Return the token of a text, quoted if necessary and possible."""

    def read(self, text: str) -> Texts:
        """Return the texts of the tokens, and what is unusual in them."""
        return Texts(self.texts(text))

    def joined(self, texts: Sequence[str], pad: str = "") -> str:
        """Return a text with these tokens."""
        return self.separator.join([self.quoted(text, pad) for text in texts])

    def shown_pad(self, text: str) -> str | None:
        """Return the padding that a text shows, or None."""
        return None

    def places(self, text: str, token: Token) -> Sequence[tuple[int, int]]:
        """Return the range in `text` of each character of a token's text."""
        if text.startswith(token.text, token.start) and len(token.text) == token.end - token.start:
            return [*pairwise(range(token.start, token.end + 1))]
        places: list[tuple[int, int]] = []
        at, is_inside = token.start, False
        while at < token.end and len(places) < len(token.text):
            width = 2 if is_inside and text[at : at + 2] in self._escaped else 1
            if width == 1 and text[at] == self.quote:
                is_inside = not is_inside
            else:
                places.append((at, at + width))
            at += width
        return places

    def part(self, text: str, token: Token, start: int, end: int) -> tuple[int, int]:
        """Return the range in `text` of characters `start` to `end` of a token's text.

        That of all of them includes the quotation marks.
        """
        if (start, end) == (0, len(token.text)):
            return token.start, token.end
        places = self.places(text, token)
        first = places[start][0] if start < len(places) else places[-1][1]
        return first, places[end - 1][1] if end > start else first

    @abstractmethod
    def wire(self) -> WireType:
        """Return a declarative description."""


class Splitter(Tokenizer):
    r"""Tokens with a separator between them, or with `blanks`; `quote` is a quotation mark, if there is one.

    In quotation marks, `\"` is a quotation mark, and `\\` a backslash. At most `limit` separators count.
    """

    def __init__(self, separator: str, quote: str = "", blanks: str = "", limit: int = -1) -> None:
        self.separator, self.quote, self._blanks, self._limit = separator, quote, blanks, limit
        self.is_blank = bool(blanks)
        self._escaped = ("\\\\", f"\\{quote}") if quote else ()
        between = r"\r?\n" if separator == "\n" else re.escape(separator)
        mark = re.escape(quote)
        alternative = f"{mark}(?P<quoted>{quoted_text(mark)}){mark}|" if quote else ""
        # To look for the separator behind each character would be ten times slower.
        bare = f"[^{between}]*" if len(separator) == 1 and separator != "\n" else ".*?"
        pattern = (
            f"{alternative}(?P<bare>[^{re.escape(blanks)}]+)"
            if blanks
            else rf"{between}(?:{alternative}(?P<bare>{bare})(?={between}|\Z))"
        )
        self._pattern = re.compile(pattern, re.DOTALL)
        self._bare = re.compile(f"[^{re.escape(blanks)}]+") if blanks else self._pattern
        blank = f"[{re.escape(blanks)}]"
        self._loose = re.compile(rf"\A{blank}+|{blank}{{2,}}|{blank}+\Z") if blanks else None
        self._escape = re.compile(rf"\\([\\{mark}])")

    def texts(self, text: str) -> list[str]:
        if self.quote and self.quote in text:
            return [token.text for token in self.tokens(text)]
        if self._blanks:
            return self._bare.findall(text)
        if self.separator == "\n":
            text = text.replace("\r\n", "\n")
        return text.split(self.separator, self._limit)

    def read(self, text: str) -> Texts:
        loose = self._loose.search(text) if self._loose is not None else None
        return Texts(self.texts(text), None if loose is None else Deviation("loose", *loose.span()))

    def splitter(self) -> Callable[[str], list[str]]:
        is_plain = not self.quote and not self._blanks and self.separator != "\n"
        return methodcaller("split", self.separator, self._limit) if is_plain else self.texts

    def tokens(self, text: str) -> list[Token]:
        if self._limit >= 0:
            parts = text.split(self.separator, self._limit)
            starts = accumulate((len(part) + len(self.separator) for part in parts), initial=0)
            return [Token(part, at, at + len(part)) for part, at in zip(parts, starts, strict=False)]
        found: list[Token] = []
        # A separator precedes each token.
        before = "" if self._blanks else self.separator
        for match in self._pattern.finditer(before + text):
            inner, place = match["quoted"] if self.quote else None, match.span("bare")
            if inner is not None:
                inner = self._escape.sub(r"\1", inner)
                place = match.start("quoted") - len(self.quote), match.end()
            found.append(
                Token(
                    match["bare"] if inner is None else inner, place[0] - len(before), place[1] - len(before)
                )
            )
        return found

    def quoted(self, text: str, pad: str = "") -> str:
        quote = self.quote
        if not quote or not (text.startswith(quote) or self._is_separated(text)):
            return text
        escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
        return f"{quote}{escaped}{quote}"

    def _is_separated(self, text: str) -> bool:
        if self._blanks:
            return not text or any(blank in text for blank in self._blanks)
        return (text + self.separator).find(self.separator) != len(text)

    def wire(self) -> WireType:
        limit = self._limit if self._limit >= 0 else None
        found = {"blanks": self._blanks or None, "quote": self.quote or None, "splits": limit}
        return {"separator": self.separator, **found}


class PaddedQuotes(Tokenizer):
    r"""Tokens with blanks between them; quoted ones have a padding before the closing quotation mark.

    Within quotation marks `\"` is a quotation mark, and any other backslash is itself.

    All readers are equally lenient: adjacent quoted and bare parts form one token, the padding may be
    missing, an empty token without it vanishes, and an unended quotation is dropped.
    """

    separator = " "
    is_blank = True

    def __init__(self, quote: str = '"', pads: Sequence[str] = (" ",)) -> None:
        self.quote, self.pads = quote, tuple(pads)
        self._escape = f"\\{quote}"
        self._escaped = (self._escape,)
        mark = re.escape(quote)
        self._pieces = re.compile(
            rf"(?P<bare>[^ {mark}]+)|{mark}(?P<quoted>[^{mark}\\]*+|.*?(?<!\\)){mark}"
            rf"|(?P<blank> +)|(?P<open>{mark})",
            re.DOTALL,
        )

    def texts(self, text: str) -> list[str]:
        return self.read(text).texts

    def read(self, text: str) -> Texts:
        if self.quote not in text:
            texts = text.split(" ")
            if "" not in texts:
                return Texts(texts)
        found, deviation = self._cut(text)
        return Texts([token.text for token in found], deviation)

    def tokens(self, text: str) -> list[Token]:
        return self._cut(text)[0]

    def _cut(self, text: str) -> tuple[list[Token], Deviation | None]:
        """Return the tokens of a text, and the first deviation.

        The writer's padding need not be known: no writer ends a quoted token with another padding but without
        its own.
        """
        tokens: list[Token] = []
        deviation: Deviation | None = None
        parts = ""
        start = end = 0
        is_quoted = False

        size = len(text)
        # A blank at the end finishes the last token.
        for piece in self._pieces.finditer(f"{text} "):
            group = piece.lastgroup
            if group == "blank":
                at, stop = piece.start(), min(piece.end(), size)
                if stop > at and (stop > at + 1 or not at or stop == size):
                    deviation = deviation or Deviation("loose", at, stop)
                # An empty part does not end a token, so `is_quoted` stays set for the next one.
                if parts:
                    if is_quoted and parts[-1] in self.pads:
                        parts = parts[:-1]
                    elif is_quoted:
                        deviation = deviation or Deviation("unpadded", start, end)
                    tokens.append(Token(parts, start, end))
                    parts, is_quoted = "", False
                continue
            if not parts:
                start = piece.start()
            end = piece.end()
            if group == "open":
                return tokens, Deviation("unended", piece.start(), size)
            if group == "bare":
                parts += piece[0]
            else:
                is_quoted = True
                parts += piece["quoted"].replace(self._escape, self.quote)
                if not piece["quoted"]:
                    deviation = deviation or Deviation("vanished", *piece.span())
        return tokens, deviation

    def quoted(self, text: str, pad: str = "") -> str:
        if text and " " not in text and self.quote not in text:
            return text
        escaped = text.replace(self.quote, self._escape)
        return f"{self.quote}{escaped}{pad or self.pads[0]}{self.quote}"

    def shown_pad(self, text: str) -> str | None:
        ends = (piece["quoted"][-1:] for piece in self._pieces.finditer(text) if piece["quoted"])
        return next((end for end in ends if end in self.pads), None)

    def wire(self) -> WireType:
        return {"separator": " ", "quote": self.quote, "pads": "".join(self.pads)}
