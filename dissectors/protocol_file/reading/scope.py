"""The names that an expression or a sentence of a protocol file may contain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.protocol_file.expressions import (
    ASKED,
    STATE,
    Pattern,
    compile_expression,
    path_of,
    pattern_of,
)
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.specification import (
    BinaryType,
    BooleanType,
    ChoiceType,
    FieldTypeSpec,
    IdentifierType,
    NumberType,
    ObjectType,
    TextType,
)
from kiebitz.dissectors.protocol_file.templates import compile_template
from kiebitz.dissectors.protocol_file.values import COUNT

_CELL = re.compile(r"\.(-?\d+),(-?\d+)$")
_WORD = re.compile(r"\w")

MAX_SENTENCE = 2_000
"""Maximum length of a sentence in characters."""

_SINGLE = TextType | NumberType | BooleanType | ChoiceType | IdentifierType | BinaryType

KEPT: tuple[Pattern, ...] = (("players", None), ("private", None))
"""Paths that the table maintains by itself."""


class Names(msgspec.Struct, frozen=True):
    """The known names: fields of messages, `who` and others, and paths of the state.

    `fields` has the types of each; if it is None, the messages are unknown, and every name is accepted.
    `asked` has the fields of the requests that the messages answer, None if they answer none.
    """

    fields: Mapping[str, Sequence[FieldTypeSpec]] | None
    others: Collection[str]
    state: Collection[Pattern]
    asked: Mapping[str, Sequence[FieldTypeSpec]] | None = None

    def problem(self, steps: Pattern) -> str | None:
        """Return why a path is unknown, or None."""
        if self.fields is None:
            return None
        if steps[0] == STATE and len(steps) > 1 and STATE not in self.fields:
            steps = steps[1:]
        elif steps[0] in self.others:
            return None
        elif steps[0] in self.fields:
            return _problem_inside(steps, self.fields[str(steps[0])])
        elif steps[0] == ASKED and (self.asked is not None or self.fields):
            return self._problem_of_question(steps)
        path = steps[:-1] if steps[-1] == COUNT and len(steps) > 1 else steps
        matching = [known for known in self.state if is_within(path, known)]
        # Below what the table maintains, only events put values.
        if any(
            len(known) >= len(path) or known not in KEPT or matching.count(known) > 1 for known in matching
        ):
            return None
        first = str(path[0])
        if any(first == known[0] for known in self.state):
            written = ".".join("{…}" if step is None else step for step in path)
            return f"no event puts anything at {written}"
        names = {*self.fields, *self.others, *(str(known[0]) for known in self.state)}
        kind = "is neither a field nor put by an event" if self.fields else "is not put by any event"
        is_word = len(path) == 1 and bool(self.fields)
        return f"{first} {kind}{near(first, names) or (f': {_in_quotes(first)}' if is_word else '')}"

    def _problem_of_question(self, steps: Pattern) -> str | None:
        """Return why a path leads to no field of an answered request, or None."""
        if self.asked is None and any(known[0] == ASKED for known in self.state):
            return f"write {STATE}.{ASKED}, as {ASKED} is the request that a message answers"
        if self.asked is None:
            return "the message answers none: its row needs < with a message of the other side"
        if len(steps) == 1:
            return None
        field = steps[1]
        if field is None or field not in self.asked:
            known = [name for name in self.asked if name.isidentifier()]
            return f"the request has no field {field or '{…}'}{near(field or '', known)}"
        return _problem_inside(steps[1:], self.asked[field])


def _problem_inside(steps: Pattern, types: Sequence[FieldTypeSpec]) -> str | None:
    """Return why there is nothing at the second step of a path in a field of one of these types."""
    if (
        len(steps) == 1
        or steps[1] is None
        or any(not isinstance(kind, _SINGLE | ObjectType) for kind in types)
    ):
        return None
    known = {field.name for kind in types if isinstance(kind, ObjectType) for field in kind.fields}
    objects = [kind for kind in types if isinstance(kind, ObjectType)]
    if steps[1] in known or steps[1] == COUNT or any(not kind.fields for kind in objects):
        return None
    return f"{steps[0]} has no part {steps[1]}{near(steps[1], known)}"


def is_within(path: Pattern, known: Pattern) -> bool:
    """Return whether one of two paths leads to the other."""
    return all(
        here is None or there is None or here == there for here, there in zip(path, known, strict=False)
    )


def _names_in(text: str) -> Iterator[tuple[Pattern, int, int]]:
    """Yield the paths in an expression, their positions and lengths; outer ones first. Raises FilterError."""
    if text.isidentifier() and text not in WORDS:
        yield (text,), 0, len(text)
        return
    for name in compile_expression(text).lookups:
        yield pattern_of(name), name.position, name.length


def check_expression(source: Source, path: Path, text: str, names: Names, offset: int = 0) -> None:
    """Report a syntax error or unknown names in an expression, which begins at `offset` of the value."""
    source.count_expression(path)
    try:
        found = [*_names_in(text)]
    except FilterError as error:
        start = offset + error.position
        is_text = text.strip() != "" and not _WORD.search(text)
        sentence = f"{error}: {_in_quotes(text)}" if is_text else str(error)
        source.wrong(path, sentence, start, start + error.length)
        return
    for steps, position, length in found:
        problem = names.problem(steps)
        if problem is not None:
            source.wrong(path, problem, offset + position, offset + position + length)


def _in_quotes(text: str) -> str:
    return f"a text is written '{text}', in quotes"


def check_sentence(source: Source, path: Path, text: str, names: Names) -> None:
    """Report a syntax error or unknown names in a sentence."""
    if len(text) > MAX_SENTENCE:
        source.wrong(path, f"a sentence has at most {MAX_SENTENCE:,} characters", MAX_SENTENCE)
        return
    try:
        parts = compile_template(text)
    except FilterError as error:
        source.wrong(path, str(error), error.position, error.position + error.length)
        return
    offset = 0
    for part in parts:
        if not isinstance(part, str):
            offset = text.index(f"{{{part.text}}}", offset) + 1
            check_expression(source, path, part.text, names, offset)


def state_path(text: str) -> Pattern | None:
    """Return a path of the state, with None for each step that is computed; None if it is not a path."""
    try:
        return pattern_of(path_of(text))
    except FilterError:
        return None


def _keyword_in(text: str) -> str | None:
    """Return why a path with a keyword is none; None if it has no keyword."""
    words = [word for word in re.findall(r"\w+", text) if word in WORDS]
    return f"{words[0]} is a word of expressions: choose another name" if words else None


def check_path(source: Source, path: Path, text: str, names: Names) -> None:
    """Report what is wrong with a path of the state that is a value."""
    if state_path(text) is None:
        example = f"{path[-1]} must be a path of the state, such as players.{{player}}.points"
        source.wrong(path, _keyword_in(text) or example)
    else:
        check_expression(source, path, text, names)


def check_put_path(source: Source, path: Path, text: str, names: Names) -> None:
    """Report what is wrong with a path of the state that is a key."""
    if state_path(text) is None:
        example = f"{text} is no path of the state, such as players.{{who}}.points"
        if found := _CELL.search(text):
            written = f"{text[: found.start()]}.{{{found[1]}}},{{{found[2]}}}"
            example = f"numbers with a comma are written in braces: {written}"
        source.wrong_key(path, _keyword_in(text) or example)
        return
    # The first name is the path itself; the others are in its braces.
    for steps, _, _ in [*_names_in(text)][1:]:
        problem = names.problem(steps)
        if problem is not None:
            source.wrong_key(path, problem)
