"""Field types for values that are sent as text: text, words, numbers, and lists and objects in a text."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.field_type import (
    OF_ANY,
    OF_NUMBERS,
    OF_WORDS,
    WHOLE_REST,
    FieldType,
    IdentifierKind,
    Mismatch,
    WireType,
    Wrong,
    other_case,
)
from kiebitz.dissectors.grammar.grammar import Path, nearest_word, shortened
from kiebitz.dissectors.grammar.tokens import Tokenizer
from kiebitz.dissectors.suggestions import with_suggestion

MAX_QUOTED = 40
"""Maximum length of a quoted invalid value, in characters."""

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""Limits of numbers."""

OF_WHOLE_FIELDS = ("empty", "too-long", "control", "markup", "outside-ascii")
"""Kinds of invalid values that are tried for a whole field, not for its parts."""

_LONG = 10
"""A number of as many digits is no number of items."""

INTEGER = re.compile(r"0|-?[1-9]\d{0,14}")
"""A whole number as programs write it."""
_VERSION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?")


def is_version(text: str) -> bool:
    """Return True if a text is a version number such as `1.0`, which is not personal."""
    return _VERSION.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Return a text as it is quoted in a sentence."""
    return f'"{shortened(text, MAX_QUOTED)}"'


class Text(FieldType):
    """Any text that the framing allows; a name if it has an `identifier`. `words` are its usual values."""

    title = "text"
    is_free_text = True

    def __init__(self, identifier: IdentifierKind | None = None, words: tuple[str, ...] = ()) -> None:
        self.words = words
        self.identifier = identifier

    def decode(self, text: str) -> str:
        return text

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> WireType | None:
        return {"kind": "text"}


class AnyText(Text):
    """Any text, of which nothing is known."""

    def wire_type(self) -> WireType | None:
        return {"kind": "text", "any": True}


class Rest(Text):
    """All that remains of a message, which begins with the fixed text `before`."""

    title = "the rest of the message"
    width = (0, None)
    before = ""

    def decode(self, text: str) -> str:
        if not text.startswith(self.before):
            problem = f"{quoted(text)} does not begin with {self.before}"
            raise Mismatch(0, WHOLE_REST, problem, f"{self.before}{self.title}")
        return text[len(self.before) :]

    def encode(self, value: Any) -> str:
        return f"{self.before}{value}"

    def wire_type(self) -> WireType | None:
        return {"kind": "rest", "before": self.before or None}


class Word(FieldType):
    """A fixed word of a small set, with its value if that is not the word itself."""

    wrong_texts: Sequence[Wrong] = OF_WORDS

    def __init__(
        self, *words: str, title: str | None = None, values: Mapping[str, Any] | None = None
    ) -> None:
        self.values = dict(zip(words, words, strict=True)) if values is None else values
        self.words = (*self.values,)
        self.title = title or ("one of " if len(self.words) > 1 else "") + ", ".join(self.words)
        self._texts = {(type(value), value): word for word, value in self.values.items()}

    def decode(self, text: str) -> Any:
        try:
            return self.values[text]
        except KeyError:
            raise unknown_word(text, self.words, self.title) from None

    def encode(self, value: Any) -> str:
        text = self._texts.get((type(value), value))
        if text is None:
            raise ValueError(f"{value!r} is not {self.title}")
        return text

    def wire_type(self) -> WireType | None:
        return {"kind": "choice", "values": {text: _wire_value(value) for text, value in self.values.items()}}

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if any(word != word.swapcase() for word in self.words):
            yield other_case(self.encode)


class SpelledWord(Word):
    """A fixed word, of which readers accept other spellings."""

    def __init__(self, values: Mapping[str, Any], spelled: Mapping[str, Sequence[str]], **more: Any) -> None:
        super().__init__(values=values, **more)
        self._spelled = {other: word for word in values for other in spelled.get(word, ())}
        self.values = {**{other: values[word] for other, word in self._spelled.items()}, **values}

    def all_words(self) -> Iterator[str]:
        yield from self.values

    def remark(self, text: str) -> str | None:
        return None if text in self.words else f"{quoted(text)} is written {self._spelled[text]}"


def _wire_value(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return "b", value
    return "i" if isinstance(value, int) else "s", str(value)


class Limits(msgspec.Struct, frozen=True):
    """The limits of a number, inclusive; `whole` if it has no fraction."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = True


def limits_title(limits: Limits) -> str:
    """Return the description of a number's limits."""
    noun = "whole number" if limits.whole else "number"
    if limits.minimum is not None and limits.maximum is not None:
        return f"{noun} from {limits.minimum:.15g} to {limits.maximum:.15g}"
    if limits.minimum is not None:
        return f"{noun} from {limits.minimum:.15g}"
    return f"{noun} up to {limits.maximum:.15g}" if limits.maximum is not None else noun


def beyond_limits(limits: Limits) -> Iterator[tuple[str, str, int]]:
    """Yield whole numbers beyond the limits, as kinds, descriptions and values."""
    if limits.maximum is not None:
        yield "out-of-range", "a number above the largest", int(limits.maximum) + 1
    if limits.minimum is not None:
        kind = "out-of-range" if limits.maximum is None else "below-range"
        yield kind, "a number below the smallest", int(-(-limits.minimum // 1)) - 1


class Number(FieldType):
    """A number within limits; the number of something, if it has an `identifier`.

    By default it is whole, not below 0, and has at most 15 digits: every reader of the database can hold it.
    """

    wrong_texts = OF_NUMBERS

    def __init__(
        self, identifier: IdentifierKind | None = None, limits: Limits | None = None, title: str | None = None
    ) -> None:
        self.identifier = identifier
        self.limits = limits
        self.title = title or ("whole number" if limits is None else limits_title(limits))
        self.is_whole = limits is None or limits.whole
        low, high = (0, 10**15 - 1) if limits is None else (limits.minimum, limits.maximum)
        self.smallest = SMALLEST if low is None else low
        self.largest = LARGEST if high is None else high

    def decode(self, text: str) -> int | float:
        if self.is_whole:
            # Short digits are the usual case.
            if not (text.isdigit() and text.isascii() and len(text) < 20) and _WHOLE.fullmatch(text) is None:
                raise self._mismatch(text, "is not a whole number")
            value: int | float = int(text)
        else:
            if _NUMBER.fullmatch(text) is None:
                raise self._mismatch(text, "is not a number")
            value = int(text) if _WHOLE.fullmatch(text) is not None else float(text)
        if not self.smallest <= value <= self.largest:
            raise self._mismatch(text, "is out of range")
        return value

    def _mismatch(self, text: str, problem: str) -> Mismatch:
        problem = f"{quoted(text)} {problem}" if text else "there is nothing here"
        return Mismatch(0, len(text), problem, self.title, "bad-number")

    def encode(self, value: Any) -> str:
        if type(value) not in (int, float):
            raise ValueError(f"{value!r} is not a number")
        return repr(value)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for kind, title, value in beyond_limits(self.limits) if self.limits is not None else ():
            yield Wrong(kind, title, str(value))

    def wire_type(self) -> WireType | None:
        return {
            "kind": "number",
            "whole": self.is_whole,
            "digits": 20 if self.is_whole else 40,
            "min": self.smallest,
            "max": self.largest,
        }


class PartsText(FieldType):
    """A text with parts, which are the tokens of a tokenizer.

    The parts of a `spread` value are tokens of the message, or of the list or object around it.
    """

    wrong_texts = OF_ANY

    def __init__(self, tokenizer: Tokenizer, is_spread: bool = False) -> None:
        self.tokenizer = tokenizer
        self.is_spread = is_spread

    @abstractmethod
    def part_at(self, number: int) -> tuple[Path, FieldType] | None:
        """Return path and type of the part that is a token, None if there is no such part."""

    def pieces(self, texts: Sequence[str]) -> Iterator[tuple[Path, FieldType, int, int]]:
        """Yield path, type and range of tokens of each part, as far as it is one."""
        for number in range(len(texts)):
            if (found := self.part_at(number)) is None:
                return
            yield *found, number, number + 1

    @abstractmethod
    def decode_tokens(self, texts: Sequence[str]) -> Any:
        """Return the value of the texts of its tokens. Raises Mismatch."""

    @abstractmethod
    def encode_tokens(self, value: Any, pad: str = "") -> list[str]:
        """Return the texts of a value's tokens; raise ValueError if it has none."""

    def split(self, text: str) -> list[str]:
        """Return the texts of the parts."""
        return self.tokenizer.texts(text)

    def decode(self, text: str) -> Any:
        try:
            return self.decode_tokens(self.split(text))
        except Mismatch as error:
            start, end = error_place(self.tokenizer, text, self.tokenizer.tokens(text), error)
            raise Mismatch(start, end, error.problem, error.expected, error.code) from None

    def encode(self, value: Any) -> str:
        return self.write(value)

    def write(self, value: Any, pad: str = "") -> str:
        """Return the text of a value; parts in quotation marks have this padding."""
        texts = self.encode_tokens(value, pad)
        text = self.tokenizer.joined(texts, pad)
        if self.split(text) != texts:
            raise ValueError(f"{value!r} cannot be written with {quoted(self.tokenizer.separator)} in a part")
        return text

    def _wrong_inside(self, kind: FieldType, name: str, number: int) -> Iterator[Wrong]:
        for wrong in kind.wrong_values():
            if wrong.kind not in OF_WHOLE_FIELDS:
                yield wrong.inside(name, partial(self._with_part, number, wrong))

    def _with_part(self, number: int, wrong: Wrong, value: Any) -> str:
        texts = self.encode_tokens(value)
        values = [*value.values()] if isinstance(value, dict) else value
        texts[number] = wrong.of(values[number])
        return self.tokenizer.joined(texts)


class ListText(PartsText):
    """A list of `least` to `most` values of one type. Of `nulls`, an empty item is null.

    If it is spread, the field `count` before it may have the number of its items, or the word `until` may
    follow the last one.

    Args:
        item: Type of the items.
        tokenizer: What is between them.
        title: Description.
        noun: Words for the items in an error about their number.
        code: Code of such an error.
        item_code: Code of errors in an item, which are then about the whole item.
    """

    item: FieldType

    def __init__(
        self,
        item: FieldType,
        tokenizer: Tokenizer,
        *,
        least: int = 0,
        most: int | None = None,
        nulls: bool = False,
        is_spread: bool = False,
        count: str = "",
        until: str = "",
        title: str | None = None,
        noun: str = "items",
        code: str = "bad-list",
        item_code: str | None = None,
    ) -> None:
        super().__init__(tokenizer, is_spread)
        self.item, self.least, self.most, self.nulls = item, least, most, nulls
        self.parts = (item,)
        self.count, self.until = count, until
        self.is_counted = bool(count or until or item.is_counted)
        self.title = title or f"{_counted(least, most)}{item.title}{' or nothing' if nulls else ''}"
        self._noun, self._code, self._item_code = noun, code, item_code
        self._split = tokenizer.splitter()
        self._size = item.width[0]
        """Number of tokens of an item."""
        self._decode = (lambda text: item.decode(text) if text else None) if nulls else item.decode
        self._is_plain = type(item).decode is Text.decode and not nulls
        if is_spread:
            self.width = least * self._size + bool(until), None if most is None else most * self._size

    def all_words(self) -> Iterator[str]:
        yield from ((self.until,) if self.until else ())
        yield from super().all_words()

    def _ranges(self, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the ranges of tokens of the items."""
        at, end = 0, len(texts) - bool(self.until)
        while at < end:
            start, at = at, self.item.end_in(texts, at, {}) if self.item.is_counted else at + self._size
            yield start, min(at, end)

    def pieces(self, texts: Sequence[str]) -> Iterator[tuple[Path, FieldType, int, int]]:
        for number, place in enumerate(self._ranges(texts)):
            yield (number,), self.item, *place

    def end_in(self, texts: Sequence[str], at: int, numbers: Mapping[str, int]) -> int:
        if not (self.is_counted and self.is_spread):
            return super().end_in(texts, at, numbers)
        size, left = len(texts), numbers.get(self.count)
        if self.until:
            while at < size and texts[at] != self.until:
                at = self.item.end_in(texts, at, {})
            return at + 1
        if left is None:
            return max(at, size)
        # Beyond the message it does not matter how much is missing.
        while left and at <= size:
            at, left = max(self.item.end_in(texts, at, {}), at + 1), left - 1
        return at

    def part_at(self, number: int) -> tuple[Path, FieldType] | None:
        if not isinstance(self.item, PartsText) or not self.item.is_spread:
            return (number,), self.item
        number, inner = divmod(number, self._size)
        found = self.item.part_at(inner)
        return None if found is None else ((number, *found[0]), found[1])

    def split(self, text: str) -> list[str]:
        # A list of one empty text is possible only if it cannot be empty.
        return self._split(text) if text or self.least else []

    def decode_tokens(self, texts: Sequence[str]) -> list[Any]:
        if self.until and (not texts or texts[-1] != self.until):
            problem = f"there is no {self.until} after the last of these"
            raise Mismatch(0, WHOLE_REST, problem, self.title, "missing-field", len(texts))
        if self.is_counted:
            return self.decode_items(texts)
        count = len(texts) if self._size == 1 else -(-len(texts) // self._size)
        if count < self.least or (self.most is not None and count > self.most):
            first = 0 if self.least else self.most or 0
            raise Mismatch(0, WHOLE_REST, f"{count} {self._noun}", self.title, self._code, first * self._size)
        return self.decode_items(texts)

    def decode_items(self, texts: Sequence[str]) -> list[Any]:
        """Return the items of tokens, whatever their number. Raises Mismatch."""
        if self._is_plain:
            return [*texts[: len(texts) - bool(self.until)]]
        values: list[Any] = []
        first = 0
        try:
            if isinstance(self.item, PartsText) and self.item.is_spread:
                for first, end in self._ranges(texts):
                    values.append(self.item.decode_tokens(texts[first:end]))
            else:
                for text in texts[: len(texts) - bool(self.until)]:
                    values.append(self._decode(text))
        except Mismatch as error:
            first = max(first, len(values))
            if self._item_code is None:
                raise error.moved(first) from None
            text = texts[first]
            raise Mismatch(0, len(text), error.problem, self.title, self._item_code, first) from None
        return values

    def encode_tokens(self, value: Any, pad: str = "") -> list[str]:
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is not a list")
        last = [self.until] if self.until else []
        if isinstance(self.item, PartsText) and self.item.is_spread:
            return [*(text for part in value for text in self.item.encode_tokens(part, pad)), *last]
        items = ("" if part is None and self.nulls else written(self.item, part, pad) for part in value)
        return [*items, *last]

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield from self._wrong_inside(self.item, "0", 0)
        if self.most is not None:
            yield Wrong("too-many", f"more than {self.most} {self._noun}", self._too_many)

    def _too_many(self, value: Any) -> str:
        texts = self.encode_tokens(value) or [""] * self._size
        return self.tokenizer.joined((texts * ((self.most or 0) + 1))[: ((self.most or 0) + 1) * self._size])

    def wire_type(self) -> WireType | None:
        if self.is_counted and not self.is_spread:
            return {"kind": "text", "limit": "its parts are not checked"}
        limits = {"least": self.least or None, "most": self.most, "nulls": self.nulls or None}
        ends = {"count": self.count or None, "until": self.until or None, "spread": self.is_spread or None}
        return {"kind": "list", "item": wire_type_of(self.item), **self.tokenizer.wire(), **limits, **ends}


def _counted(least: int, most: int | None) -> str:
    if most is None:
        return f"list of {least} or more: " if least else "list: "
    return f"list of {least} to {most}: " if least != most else f"list of {least}: "


class ObjectText(PartsText):
    """Named values; only the last ones can be absent. A spread list at the end has all remaining tokens.

    `problem` describes missing and surplus parts; `{}` in it is the text.
    """

    def __init__(
        self,
        fields: Mapping[str, FieldType],
        tokenizer: Tokenizer,
        optional: frozenset[str] = frozenset(),
        *,
        is_spread: bool = False,
        title: str | None = None,
        problem: str | None = None,
    ) -> None:
        super().__init__(tokenizer, is_spread)
        self.fields, self.optional = fields, optional
        self.members, self.parts = fields, (*fields.values(),)
        self.title = title or tokenizer.separator.join(fields)
        self._problem = problem
        self._names = [*fields]
        self._least = max(
            (
                number
                for number, (name, kind) in enumerate(fields.items(), 1)
                if name not in optional and kind.width[0] > 0
            ),
            default=0,
        )
        self.is_counted = any(kind.is_counted for kind in self.parts)
        if is_spread:
            most = [kind.width[1] for kind in self.parts]
            is_open = self.is_counted or None in most
            self.width = (
                sum(kind.width[0] for kind in self.parts),
                None if is_open else sum(filter(None, most)),
            )
        self._tail = self.parts[-1] if self.parts and self.parts[-1].width != (1, 1) else None

    def pieces(self, texts: Sequence[str]) -> Iterator[tuple[Path, FieldType, int, int]]:
        if not self.is_counted:
            yield from super().pieces(texts)
            return
        for name, start, end in spans_in(self.fields.items(), texts):
            yield (name,), self.fields[name], start, min(end, len(texts))

    def end_in(self, texts: Sequence[str], at: int, numbers: Mapping[str, int]) -> int:
        if not (self.is_counted and self.is_spread):
            return super().end_in(texts, at, numbers)
        return at + [*spans_in(self.fields.items(), texts[at:])][-1][2]

    def part_at(self, number: int) -> tuple[Path, FieldType] | None:
        last = len(self.parts) - 1
        if number < last or (number == last and self._tail is None):
            return (self._names[number],), self.parts[number]
        if not isinstance(self._tail, PartsText):
            return None
        found = self._tail.part_at(number - last)
        return None if found is None else ((self._names[last], *found[0]), found[1])

    def decode_tokens(self, texts: Sequence[str]) -> dict[str, Any]:
        if len(texts) < self._least:
            problem = f"there is no {self._names[len(texts)]} here"
            raise self._mismatch(texts, len(texts), problem, "missing-field")
        if self.is_counted:
            return self._decode_counted(texts)
        values: dict[str, Any] = {}
        at = 0
        try:
            for name, kind in self.fields.items():
                if kind is self._tail and isinstance(kind, PartsText):
                    values[name] = kind.decode_tokens(texts[at:])
                    return values
                if at == len(texts):
                    return values
                values[name] = kind.decode(texts[at])
                at += 1
        except Mismatch as error:
            raise error.moved(at) from None
        if at < len(texts):
            raise self._mismatch(texts, at, "there is more than belongs here", "surplus-fields")
        return values

    def _decode_counted(self, texts: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, at, end in spans_in(self.fields.items(), texts):
            if end > len(texts):
                raise self._mismatch(
                    texts, len(texts), f"{name} has fewer items than its number says", "missing-field"
                )
            try:
                values[name] = _decoded(self.fields[name], texts[at:end])
            except Mismatch as error:
                raise error.moved(at) from None
        return values

    def _mismatch(self, texts: Sequence[str], at: int, problem: str, code: str) -> Mismatch:
        if self._problem is not None:
            problem = self._problem.format(self.tokenizer.separator.join(texts)[:MAX_QUOTED])
        return Mismatch(0, WHOLE_REST, problem, self.title, code, at)

    def encode_tokens(self, value: Any, pad: str = "") -> list[str]:
        if not isinstance(value, dict) or {*value} != {*self._names[: max(len(value), self._least)]}:
            raise ValueError(f"{value!r} does not have the parts {self.title}")
        texts: list[str] = []
        for name in self._names[: len(value)]:
            kind = self.fields[name]
            if isinstance(kind, PartsText) and (kind is self._tail or kind.is_counted):
                texts += kind.encode_tokens(value[name], pad)
            else:
                texts.append(written(kind, value[name], pad))
        return texts

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for number, (name, kind) in enumerate(self.fields.items()):
            if kind is not self._tail:
                yield from self._wrong_inside(kind, name, number)

    def wire_type(self) -> WireType | None:
        if self.is_counted and not self.is_spread:
            return {"kind": "text", "limit": "its parts are not checked"}
        return {
            "kind": "object",
            **self.tokenizer.wire(),
            "least": self._least,
            "fields": [
                {"name": name, "type": wire_type_of(kind), "optional": name in self.optional or None}
                for name, kind in self.fields.items()
            ],
            "spread": self.is_spread or None,
            "counted": self.is_counted or None,
        }


def spans_in(fields: Iterable[tuple[str, FieldType]], texts: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield names and ranges of tokens of fields, of which some are counted. Missing tokens exceed the range.

    An optional field without tokens has none.
    """
    numbers: dict[str, int] = {}
    at = 0
    for name, kind in fields:
        end = kind.end_in(texts, at, numbers)
        text = texts[at] if at < len(texts) else ""
        if end == at + 1 and text.isdecimal() and len(text) < _LONG:
            numbers[name] = int(text)
        yield name, at, end
        at = end


def _decoded(kind: FieldType, texts: Sequence[str]) -> Any:
    """Return the value of its tokens. Raises Mismatch."""
    if isinstance(kind, PartsText) and kind.is_spread:
        return kind.decode_tokens(texts)
    return kind.decode(texts[0])


def token_types(kind: FieldType, count: int | None = None) -> list[FieldType]:
    """Return the types of the tokens of a value, of which there are `count`, else as few as possible."""
    if not isinstance(kind, PartsText) or not kind.is_spread:
        return [kind] * (1 if count is None else count)
    parts = map(kind.part_at, range(kind.width[0] if count is None else count))
    return [part[1] for part in parts if part is not None]


def decode_incomplete(kind: FieldType, texts: Sequence[str]) -> None:
    """Decode the tokens that there are of a value, by items as far as these are complete. Raises Mismatch."""
    at = 0
    if isinstance(kind, ListText):
        at = len(texts) - len(texts) % kind.item.width[0]
        kind.decode_items(texts[:at])
    for number, part in enumerate(token_types(kind)[at : len(texts)], at):
        try:
            part.decode(texts[number])
        except Mismatch as error:
            raise error.moved(number) from None


def written(kind: FieldType, value: Any, pad: str) -> str:
    """Return the text of a value; parts in quotation marks have this padding."""
    return kind.write(value, pad) if isinstance(kind, PartsText) else kind.encode(value)


def error_place(
    tokenizer: Tokenizer, text: str, tokens: Sequence[Any], error: Mismatch, first: int = 0
) -> tuple[int, int]:
    """Return the range of characters in a text that is wrong, of a value that begins at the token `first`."""
    number = first + error.token
    if number >= len(tokens):
        return len(text), len(text)
    token = tokens[number]
    if error.end == WHOLE_REST:
        return token.start, tokens[-1].end
    return tokenizer.part(text, token, error.start, error.end)


def wire_type_of(kind: FieldType) -> WireType:
    """Return the declarative description of a part's type."""
    return kind.wire_type() or {"kind": "text", "limit": f"{kind.title} is not checked"}


def unknown_word(text: str, words: tuple[str, ...], expected: str) -> Mismatch:
    """Return the error for a text that is none of `words`, with the closest one as a suggestion."""
    problem = f"{quoted(text)} is not known here" if text else "the value is empty"
    return Mismatch(0, len(text), with_suggestion(problem, nearest_word(text, words)), expected)
