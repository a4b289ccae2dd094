"""The notation of JSON types in a protocol's table: `building = "{Typ=piece Ort=[place]2|3}"`.

A type is `text`, `version`, `integer`, `number`, `bool`, `any`, a range `1..6`, a pattern `/[a-z]+/`, words
`Rot|'Hell Blau'`, a list `[type]1..9`, an object `{name=type other?=type}`, numbers of things
`bag Holz|Lehm`, or the name of another type; `or` is between alternatives. A table `{ is = "type", … }` adds
keys that a type has as arguments, such as `title`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.invalid_values import Wrong
from kiebitz.dissectors.grammar.json.containers import JsonBag, JsonList, JsonObject, SizeRule
from kiebitz.dissectors.grammar.json.types import (
    JsonAny,
    JsonBoolean,
    JsonChoice,
    JsonEither,
    JsonNumber,
    JsonText,
    JsonType,
    JsonVersion,
    OddWord,
)
from kiebitz.dissectors.grammar.spellings import Spellings

_TOKEN = re.compile(
    r"\s*(?:'(?P<quoted>[^']*)'|/(?P<pattern>(?:\\.|[^\\/])*)/|(?P<range>(?:-?\d+)?\.\.(?:-?\d+)?)"
    r"|(?P<word>[^\s\[\]{}|=?'/!]+)|(?P<mark>[\[\]{}|=?]))"
)
_SIMPLE: dict[str, Callable[..., JsonType]] = {
    "text": JsonText,
    "version": JsonVersion,
    "integer": JsonNumber,
    "number": lambda **keys: JsonNumber(whole=False, **keys),
    "bool": JsonBoolean,
    "any": JsonAny,
}


class NamedTypes(Mapping[str, JsonType]):
    """The types of a table by name; each is made when it is first used.

    Args:
        table: The table `[types]`.
        descriptions: Descriptions of fields.
        identifiers: Kinds of identifiers, by the names in the key `id`.
        spellings: Other spellings of words and attributes.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        descriptions: Mapping[str, str],
        identifiers: Mapping[str, IdentifierKind],
        spellings: Spellings,
    ) -> None:
        self.table, self.descriptions, self.spellings = table, descriptions, spellings
        self._identifiers = identifiers
        self._made: dict[str, JsonType] = {}

    def __getitem__(self, name: str) -> JsonType:
        if name not in self._made:
            self._made[name] = _SIMPLE[name]() if name in _SIMPLE else self._make(self.table[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def _make(self, entry: str | Mapping[str, Any]) -> JsonType:
        keys: dict[str, Any] = {"is": entry} if isinstance(entry, str) else dict(entry)
        text = keys.pop("is")
        identifier, wrong = keys.pop("id", None), keys.pop("wrong", ())
        descriptions = {**self.descriptions, **keys.pop("descriptions", {})}
        kind = _Parser(text, self, keys, descriptions).whole()
        if identifier is not None:
            kind.identifier = self._identifiers[identifier]
        kind.more_wrong = tuple(Wrong(**each) for each in wrong)
        return kind


class _Parser:
    """A parser of one type; `keys` are arguments of its outermost type."""

    def __init__(
        self, text: str, types: NamedTypes, keys: dict[str, Any], descriptions: Mapping[str, str]
    ) -> None:
        self._text, self._types, self._keys, self._descriptions = text, types, keys, descriptions
        self._tokens = [
            (str(found.lastgroup), found[str(found.lastgroup)]) for found in _TOKEN.finditer(text)
        ]
        self._at = 0

    def whole(self) -> JsonType:
        """Return the type; raise ValueError if the text is not one."""
        kind = self._alternatives()
        if self._at < len(self._tokens):
            raise ValueError(f"{self._text!r} is not a type")
        return kind

    def _alternatives(self) -> JsonType:
        keys, self._keys = self._keys, {}
        if not self._has_or():
            return self._type(keys)
        options = [self._type({})]
        while self._takes("word", "or"):
            options.append(self._type({}))
        return JsonEither(*options, **keys)

    def _has_or(self) -> bool:
        depth = 0
        for group, text in self._tokens[self._at :]:
            if group == "mark":
                depth += (text in "[{") - (text in "]}")
            elif depth == 0 and (group, text) == ("word", "or"):
                return True
            if depth < 0:
                break
        return False

    def _type(self, keys: dict[str, Any]) -> JsonType:
        group, text = self._next()
        match group, text:
            case "mark", "[":
                item = self._alternatives()
                self._expect("]")
                return JsonList(item, **self._sizes(), **keys)
            case "mark", "{":
                fields = [*self._fields()]
                sizes = SizeRule(**keys.pop("sizes")) if "sizes" in keys else None
                spellings = self._types.spellings
                return JsonObject(*fields, spellings=spellings, sizes=sizes, is_open=not fields, **keys)
            case "pattern", _:
                return JsonText(lambda value: re.fullmatch(text, value) is not None, **keys)
            case "range", _:
                least, most = _limits(text)
                return JsonNumber(least, most, **keys)
            case "word", "bag":
                return JsonBag(self._words(*self._next()), spellings=self._types.spellings, **keys)
            case "word", _ if text in _SIMPLE:
                return _SIMPLE[text](**keys)
            case "word", _ if text in self._types and not keys and self._peek() != ("mark", "|"):
                return self._types[text]
        odd = {word: OddWord(**each) for word, each in keys.pop("odd", {}).items()}
        spellings = self._types.spellings.with_words(keys.pop("spelled", {}))
        return JsonChoice(self._words(group, text), spellings, odd, **keys)

    def _fields(self) -> Iterator[Field]:
        while not self._takes("mark", "}"):
            _, name = self._next()
            optional = self._takes("mark", "?")
            self._expect("=")
            kind = self._alternatives()
            yield Field(name, kind, self._descriptions.get(name, name), optional=optional)

    def _words(self, group: str, text: str) -> list[Any]:
        words = [*self._word(group, text)]
        while self._takes("mark", "|"):
            words += self._word(*self._next())
        return words

    def _word(self, group: str, text: str) -> Iterator[str | int]:
        if group == "word" and text in self._types:
            choice = self._types[text]
            if not isinstance(choice, JsonChoice):
                raise ValueError(f"{self._text!r}: {text} has no words")
            yield from choice.values
        elif group in ("word", "quoted"):
            yield int(text) if group == "word" and re.fullmatch(r"-?\d+", text) else text
        else:
            raise ValueError(f"{self._text!r} is not a type")

    def _sizes(self) -> Mapping[str, Any]:
        group, text = self._peek()
        if group == "range":
            self._next()
            least, most = _limits(text)
            return {"least": least or 0, "most": most}
        if group == "word" and text.isdigit():
            return {"sizes": self._words(*self._next())}
        return {}

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("mark", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _takes(self, group: str, text: str) -> bool:
        is_next = self._peek() == (group, text)
        self._at += is_next
        return is_next

    def _expect(self, mark: str) -> None:
        if not self._takes("mark", mark):
            raise ValueError(f"{self._text!r}: {mark} is missing")


def _limits(text: str) -> list[int | None]:
    return [int(limit) if limit else None for limit in text.split("..")]
