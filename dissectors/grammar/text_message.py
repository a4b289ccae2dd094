"""The text of a frame with its tokens and their places, the tokens of a row's fields, and older charsets.

Text should be UTF-8, but is Windows-1252 if an older program wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, permutations
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.dissection_tree import Kind
from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import PartsText, Rest, spans_in
from kiebitz.dissectors.grammar.grammar import Field, MessageType, Path, Place
from kiebitz.dissectors.grammar.layout_codec import Part, parts_in
from kiebitz.dissectors.grammar.tokens import Deviation, Token, Tokenizer


def read_text(data: bytes) -> tuple[str, UnicodeDecodeError | None]:
    """Return the decoded text, and the error if it is not UTF-8.

    In that case each line that is not is decoded as Windows-1252, with one character for each byte; others
    may come from other programs.
    """
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        return "\n".join(map(_read_line, data.split(b"\n"))), error


def _read_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace")


def character_sizes(data: bytes) -> list[int]:
    """Return the number of bytes of each character that `read_text` returns."""
    sizes: list[int] = []
    for number, line in enumerate(data.split(b"\n")):
        if number:
            sizes.append(1)
        text = _read_line(line)
        sizes += [1] * len(line) if len(text) == len(line) else [len(each.encode()) for each in text]
    return sizes


_SURROGATE = re.compile("[\udc80-\udcff]")

MAX_SHUFFLED = 4
"""Maximum number of fields whose other orders are tried."""


class Sent(msgspec.Struct, frozen=True):
    """The text of a frame.

    Attributes:
        frame: The frame.
        start: Offset of the text.
        text: The text; each byte that is not in the encoding is one character.
        offsets: Offset of each character and of the end, from `start`.
        tokenizer: What divides the text.
        tokens: Its tokens.
        deviation: The first deviation in their quoting.
        pad: The padding of its dialect.
    """

    frame: bytes
    start: int
    text: str
    offsets: Sequence[int]
    tokenizer: Tokenizer
    tokens: Sequence[Token]
    deviation: Deviation | None
    pad: str = ""

    @property
    def end(self) -> int:
        """Offset of the end of the text."""
        return self.start + self.offsets[-1]

    @property
    def texts(self) -> list[str]:
        """The texts of the tokens."""
        return [token.text for token in self.tokens]

    def span(self, start: int, end: int) -> Place:
        """Return the place of a range of characters."""
        return self.start + self.offsets[start], self.offsets[end] - self.offsets[start]

    def remainder(self, number: int) -> Place:
        """Return the place of all tokens from this one on, with the delimiter before them."""
        return self.span(self.end_of(number), self.tokens[-1].end)

    def end_of(self, count: int) -> int:
        """Return the end of the first tokens, of which there may be none."""
        return self.tokens[count - 1].end if count else 0

    def rest(self, number: int) -> int:
        """Return the first character of the text that begins with a token."""
        return rest_start(self.tokenizer, self.text, number)

    def part(
        self, start: int, end: int, path: Path, of: FieldType, before: int, inner: tuple[Part, ...] = ()
    ) -> Part:
        """Return the part that is a range of characters; what belongs to it alone begins at `before`."""
        place = self.span(start, end)
        whole = self.span(before, end)
        return Part(place[0], sum(place), path, "field", of.title, place, whole, of, inner, self.pad)

    def other_part(self, start: int, end: int, kind: Kind, title: str) -> Part:
        """Return a part that is no field."""
        place = self.span(start, end)
        return Part(place[0], sum(place), (), kind, title)

    def field_part(self, field: Field, start: int, end: int) -> Part | None:
        """Return the part of a field with these tokens, None if there are none."""
        kind, path, tokens = field.type, (field.name,), self.tokens[start:end]
        if start > len(self.tokens) or (not tokens and (kind.width[0] or field.optional)):
            return None
        before = self.end_of(start)
        if isinstance(kind, Rest):
            return self.part(self.rest(start), len(self.text), path, kind, before)
        if isinstance(kind, PartsText) and kind.is_spread:
            return self._spread_part(kind, tokens, path, before)
        (token,) = tokens
        is_bare = not self.tokenizer.quote or token.end - token.start == len(token.text)
        places = [self.span(*place) for place in self.tokenizer.places(self.text, token)]
        inner = tuple(parts_in(kind, token.text, places, path, is_bare))
        return self.part(token.start, token.end, path, kind, before, inner)

    def _spread_part(self, kind: PartsText, tokens: Sequence[Token], path: Path, before: int) -> Part:
        """Return the part of a value of several tokens; the items of a list may have several, too."""
        inner: list[Part] = []
        at = before
        for step, of, start, end in kind.pieces([token.text for token in tokens]):
            # A part of a value that is no list or object has no path of its own.
            steps = (*path, *step) if step else ()
            if not (own := tokens[start:end]):
                continue
            if isinstance(of, PartsText) and of.is_spread:
                inner.append(self._spread_part(of, own, steps, at))
            else:
                inner.append(self.part(own[0].start, own[0].end, steps, of, at))
            at = own[-1].end
        first, last = (tokens[0].start, tokens[-1].end) if tokens else (len(self.text), len(self.text))
        return self.part(first, last, path, kind, before, tuple(inner))


def sent_in(
    frame: bytes, start: int, end: int, encoding: str, tokenizer: Tokenizer, charset: str = ""
) -> Sent:
    """Return the text between two offsets of a frame, if need be in the `charset` of older programs."""
    body = frame[start:end]
    offsets: Sequence[int] = range(len(body) + 1)
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        text = undecoded(body, encoding, charset)
    if len(text) < len(body) and charset:
        offsets = (0, *accumulate(character_sizes(body)))
    elif len(text) < len(body):
        characters = body.decode(encoding, "surrogateescape")
        offsets = (0, *accumulate(len(char.encode("utf-8", "surrogateescape")) for char in characters))
    return Sent(
        frame, start, text, offsets, tokenizer, tokenizer.tokens(text), tokenizer.read(text).deviation
    )


def undecoded(body: bytes, encoding: str, charset: str = "") -> str:
    """Return the text of bytes that are not in their encoding; each wrong byte is one character."""
    if charset:
        return read_text(body)[0]
    return _SURROGATE.sub("\ufffd", body.decode(encoding, "surrogateescape"))


def rest_start(tokenizer: Tokenizer, text: str, number: int) -> int:
    """Return the character after the separator that precedes a token, if there is any."""
    if not number:
        return 0
    end = tokenizer.tokens(text)[number - 1].end
    end += tokenizer.separator == "\n" and text.startswith("\r", end)
    return min(len(text), end + len(tokenizer.separator))


def rest_of(tokenizer: Tokenizer, text: str, number: int) -> str:
    """Return the text that begins with a token; of several lines, each ends with a line feed."""
    rest = text[rest_start(tokenizer, text, number) :]
    return rest.replace("\r\n", "\n") if tokenizer.separator == "\n" else rest


def is_counted(row: MessageType) -> bool:
    """Return True if the message shows how many tokens a field of a row has."""
    return any(field.type.is_counted for field in row.fields)


def spans_of(
    row: MessageType, count: int, texts: Sequence[str] = ()
) -> tuple[list[tuple[Field, int, int]], int]:
    """Return the ranges of tokens of a row's fields, of `count` after the name, and their end.

    If optional fields are absent, these are the last ones. If tokens are missing, the ranges exceed them.
    For counted fields, the `texts` of the tokens are required; without them, the ranges are possible ones.
    """
    if texts and is_counted(row):
        fields = {field.name: field for field in row.fields}
        found = [
            (fields[name], start, end)
            for name, start, end in spans_in(((field.name, field.type) for field in row.fields), texts)
            if start < count or not fields[name].optional
        ]
        return found, max((end for _, _, end in found), default=0)
    spare = count - sum(field.type.width[0] for field in row.fields if not field.optional)
    spans: list[tuple[Field, int, int]] = []
    at = 0
    for field in row.fields:
        least, most = field.type.width
        if field.optional:
            least = max(least, 1)
            if spare < least:
                continue
            spare -= least
        more = max(spare, 0) if most is None else min(max(spare, 0), most - least)
        spare -= more
        spans.append((field, at, at + least + more))
        at += least + more
    return spans, at


def fits_in_other_order(fields: Sequence[Field], texts: Sequence[Any]) -> bool:
    """Return True if a few texts are valid for as many fields in another order; none may be optional."""
    is_few = len(texts) == len(fields) and 1 < len(texts) <= MAX_SHUFFLED
    if not is_few or any(field.optional for field in fields):
        return False
    return any(
        all(field.type.accepts(text) for field, text in zip(fields, order, strict=True))
        for order in permutations(texts)
    )
