"""Sentences of protocol files, whose places are filled with the values of expressions.

In a template of the grammar, each place is a single word in braces, so that nothing but the word is looked up
when it is filled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any

import msgspec

from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.grammar.sentences import UNKNOWN
from kiebitz.dissectors.protocol_file.expressions import (
    ASKED,
    Compiled,
    Scope,
    compile_expression,
    pattern_of,
)
from kiebitz.dissectors.protocol_file.sections import StatisticSpec

MAX_WORDS = 200
"""Maximum length of a value in a sentence, in characters."""

_MAX_ITEMS = 30
"""Maximum number of elements of a list or object in a sentence."""

_MAX_DEPTH = 4

_FEW_PLACES = 5

RESERVED = frozenset({"known_to", "others_see", "called", "before"})
"""Keys with a meaning of their own in an event's data; a field of such a name gets an underscore."""

RESERVED_IN_RULES = RESERVED | {"at", "part", "blame", "clause"}
"""The same for the sentences of rules; see `GameContext.report_violation`."""

_NO_WORD = re.compile(r"\W+")
_PLAIN = re.compile(r"[^{}]*+(?>(?:(?:\{\{|\}\})[^{}]*+)*)")


def compile_template(text: str) -> list[str | Compiled]:
    """Return the texts and the expressions of a sentence; `{{` and `}}` are braces.

    Raises:
        FilterError: What is in the braces is no expression, or a brace is not closed.
    """
    parts: list[str | Compiled] = []
    position = 0
    while position < len(text):
        plain = _PLAIN.match(text, position)
        assert plain is not None, "it matches an empty text, too"
        if plain[0]:
            parts.append(plain[0].replace("{{", "{").replace("}}", "}"))
            position = plain.end()
        elif text[position] == "}":
            raise FilterError('no "{" belongs to this "}"', text, position)
        else:
            end = _closing(text, position)
            parts.append(_compiled_inside(text, position + 1, end))
            position = end + 1
    return parts


def _closing(text: str, opened: int) -> int:
    depth = 0
    for position in range(opened, len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if not depth:
            return position
    raise FilterError('this "{" is not closed', text, opened)


def _compiled_inside(text: str, start: int, end: int) -> Compiled:
    try:
        return Compiled(text[start:end])
    except FilterError as error:
        raise FilterError(
            error.message, text, start + error.position, error.length, error.hint, error.unknown
        ) from None


class Sentence(msgspec.Struct, frozen=True):
    """A sentence: `template` has a word in braces for each expression in `values`."""

    template: str
    values: Mapping[str, Compiled]
    parts: tuple[tuple[bool, str], ...]
    """Texts, and words (True) that stand for values."""
    max_length: int
    """Maximum length in characters, without the values of the first few places."""

    def evaluate(self, scope: Scope) -> dict[str, Any]:
        """Return the values of all places."""
        return {word: value.evaluate(scope) for word, value in self.values.items()}

    def fill(self, words: Callable[[str], str]) -> str:
        """Return the sentence with what `words` returns for each place."""
        return "".join(words(text) if is_place else text for is_place, text in self.parts)


def sentence_of(text: str, reserved: Collection[str] = RESERVED) -> Sentence:
    """Return the sentence for a text with expressions in braces; no place is one of the `reserved` words.

    Raises FilterError.
    """
    values: dict[str, Compiled] = {}
    parts: list[tuple[bool, str]] = []
    for part in compile_template(text):
        if isinstance(part, str):
            parts.append((False, part))
        else:
            parts.append((True, word := word_of(part.text, reserved)))
            values[word] = part
    template = "".join(
        f"{{{text}}}" if is_place else text.replace("{", "{{").replace("}", "}}") for is_place, text in parts
    )
    others = sum(is_place for is_place, _ in parts) - _FEW_PLACES
    return Sentence(template, values, tuple(parts), len(template) + MAX_WORDS * max(0, others))


def word_of(text: str, reserved: Collection[str] = RESERVED) -> str:
    """Return an expression, or the name of a field, as one word: `players.{who}.x` is `players_who_x`."""
    word = text if text.isidentifier() else _NO_WORD.sub("_", text).strip("_") or "value"
    return f"{word}_" if word in reserved else word


def asked_values(spec: StatisticSpec) -> dict[str, str]:
    """Return the expressions about the answered request in a statistic, by their keys in an event's data."""
    texts = filter(None, (spec.when, spec.by, spec.amount, spec.begins, *spec.lines))
    names = (name for text in texts for name in compile_expression(text).lookups if name.steps[0] == ASKED)
    found = (".".join(filter(None, pattern_of(name)[:2])) for name in names)
    return {word_of(text): text for text in found}


def value_words(value: Any, depth: int = 0) -> str:
    """Return the words for a value in a sentence."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        # An empty name must be visible.
        return shortened(value, MAX_WORDS) or '""'
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, dict | list | tuple):
        return str(value)
    if depth >= _MAX_DEPTH:
        return "…"
    parts = [
        f"{part} {value_words(value[part], depth + 1)}"
        if isinstance(value, dict)
        else value_words(part, depth + 1)
        for part in islice(value, _MAX_ITEMS)
    ]
    if len(value) > _MAX_ITEMS:
        parts.append("…")
    return shortened(", ".join(parts), MAX_WORDS) or "nothing"
