"""Values in a text that has no separator for them: in a fixed text, or next to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from kiebitz.dissectors.grammar.field_type import WHOLE_REST, FieldType, Mismatch, WireType, Wrong
from kiebitz.dissectors.grammar.fields import PartsText, Text, quoted, wire_type_of, written
from kiebitz.dissectors.grammar.grammar import Path
from kiebitz.dissectors.grammar.tokens import Token, Tokenizer


class FixedText(FieldType):
    """A value with a fixed text before and after it."""

    def __init__(self, before: str, kind: FieldType, after: str) -> None:
        self.kind, self.before, self.after = kind, before, after
        self.parts = (kind,)
        self.title = f"{before}{kind.title}{after}"

    def decode(self, text: str) -> Any:
        start, end = len(self.before), len(text) - len(self.after)
        if end < start or not (text.startswith(self.before) and text.endswith(self.after)):
            raise Mismatch(0, len(text), f"{quoted(text)} has another form", self.title)
        try:
            return self.kind.decode(text[start:end])
        except Mismatch as error:
            stop = end if error.end == WHOLE_REST else start + error.end
            raise Mismatch(start + error.start, stop, error.problem, error.expected, error.code) from None

    def encode(self, value: Any) -> str:
        return f"{self.before}{self.kind.encode(value)}{self.after}"

    def all_words(self) -> Iterator[str]:
        yield from (self.before, self.after, *super().all_words())

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        return change(self.kind, value)

    def wrong_values(self) -> Iterator[Wrong]:
        for wrong in self.kind.wrong_values():
            yield wrong._replace(text=partial(self._around, wrong))

    def _around(self, wrong: Wrong, value: Any) -> str:
        return f"{self.before}{wrong.of(value)}{self.after}"

    def wire_type(self) -> WireType | None:
        item = wire_type_of(self.kind)
        return {"kind": "fixed", "before": self.before, "after": self.after, "item": item}


class FixedWords(PartsText):
    """A value with fixed words before and after it, which are tokens of the message, as the value is."""

    def __init__(
        self, before: Sequence[str], kind: FieldType, after: Sequence[str], tokenizer: Tokenizer
    ) -> None:
        super().__init__(tokenizer, is_spread=True)
        self.kind, self._before, self._after = kind, [*before], [*after]
        self.parts = (kind,)
        count = len(before) + 1 + len(after)
        self.width = count, count
        self.title = tokenizer.separator.join([*before, kind.title, *after])

    def all_words(self) -> Iterator[str]:
        yield from (*self._before, *self._after, *super().all_words())

    def part_at(self, number: int) -> tuple[Path, FieldType] | None:
        return (), self.kind if number == len(self._before) else Text()

    def decode_tokens(self, texts: Sequence[str]) -> Any:
        first = len(self._before)
        for number, text in enumerate(texts):
            word = text if number == first else [*self._before, "", *self._after][number]
            if text != word:
                raise Mismatch(0, len(text), f"{quoted(text)} is not {word}", self.title, token=number)
        if len(texts) < self.width[0]:
            missing = [*self._before, self.kind.title, *self._after][len(texts)]
            problem = f"there is no {missing} here"
            raise Mismatch(0, WHOLE_REST, problem, self.title, "missing-field", len(texts))
        try:
            return self.kind.decode(texts[first])
        except Mismatch as error:
            raise error.moved(first) from None

    def encode_tokens(self, value: Any, pad: str = "") -> list[str]:
        return [*self._before, written(self.kind, value, pad), *self._after]

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        return change(self.kind, value)

    def wire_type(self) -> WireType | None:
        separator = self.tokenizer.separator
        return {
            "kind": "fixed",
            "before": "".join(f"{word}{separator}" for word in self._before),
            "after": "".join(f"{separator}{word}" for word in self._after),
            "item": wire_type_of(self.kind),
            "separator": separator,
            "tokens": self.width[0],
            "spread": True,
        }


class Cutter(Tokenizer):
    """Tokens without anything between them: each is the longest text that its type accepts.

    A character that no token begins with is a token, too.

    Args:
        parts: A condition and a greatest number of characters for each token. The last one is for all that
            follow. If there are several, a text that fits the last one as a whole may have any length.
    """

    separator = ""

    def __init__(self, parts: Sequence[tuple[Callable[[str], bool], int]]) -> None:
        self._parts = parts

    def texts(self, text: str) -> list[str]:
        return [token.text for token in self.tokens(text)]

    def tokens(self, text: str) -> list[Token]:
        found: list[Token] = []
        at, last = 0, len(self._parts) - 1
        while at < len(text):
            accepts, most = self._parts[min(len(found), last)]
            left = len(text) - at
            sizes: Iterable[int] = range(min(most, left), 1, -1)
            if 0 < len(found) == last:
                sizes = (left, *sizes)
            end = at + next((size for size in sizes if accepts(text[at : at + size])), 1)
            found.append(Token(text[at:end], at, end))
            at = end
        return found

    def quoted(self, text: str, pad: str = "") -> str:
        return text

    def wire(self) -> WireType:
        return {"separator": "", "cut": [most for _, most in self._parts]}
