"""Expressions of protocol files: conditions and values over a message and the state of its table.

The notation is the filter language with names on both sides of an operator; it is parsed there. Nothing in an
expression is executed: it is compiled to closures that look up values. A value that is not known is None, and
conditions are three-valued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.filters.parser import parse_expression
from kiebitz.dissectors.filters.syntax import (
    And,
    Call,
    Constant,
    Joined,
    Lookup,
    Not,
    Or,
    Relation,
    Step,
    Sum,
    Term,
)
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.values import (
    COUNT,
    ORDERS,
    absolute,
    contains,
    equal,
    extreme,
    joined,
    minus,
    ordered,
    plus,
    quotient,
    remainder,
    step_text,
    times,
    truth,
    value_in,
)

Pattern = tuple[str | None, ...]
"""A path of the state; None stands for a computed step, which can be any key."""

WHO = "who"
"""Name of the player of a message."""

STATE = "state"
"""First step of a path that leads into the state although a field has the name of its second step."""

ASKED = "asked"
"""First step of a path to a field of the request that a message answers; by itself, the request's name."""


class Question(msgspec.Struct, frozen=True):
    """The request that a message answers, None where it is unknown; it may be a guess."""

    name: str | None = None
    fields: Fields | None = None
    is_certain: bool = False


Evaluate = Callable[["Scope"], Any]


class Doubt(Protocol):
    """Knows which values of the state are in doubt."""

    def covers(self, path: Sequence[str]) -> bool:
        """Return True if the value at a path, or a value in it, is in doubt."""


class Scope:
    """The values that an expression can name.

    `fields` are those of the message, None for an absent optional one; `who` is its player, `asked` the
    request that it answers. `locals` are the values that `let` names. `states` are searched in order for the
    first step of any other path. If it is `lenient`, what is not in an unknown list or object is absent, and
    not unknown. A value of the state that is in `doubt`, and one of a request that is a guess, make
    `is_doubtful` True; unless the scope is lenient, they are unknown.
    """

    __slots__ = ("asked", "doubt", "fields", "is_doubtful", "lenient", "locals", "states", "who")

    def __init__(
        self,
        fields: Fields,
        who: str | None = None,
        states: Sequence[Mapping[str, Any]] = (),
        *,
        lenient: bool = False,
        doubt: Doubt | None = None,
    ) -> None:
        self.asked: Question | None = None
        self.doubt = doubt
        self.is_doubtful = False
        self.fields = fields
        self.who = who
        self.states = states
        self.lenient = lenient
        self.locals: dict[str, tuple[Any, bool]] = {}
        """Values by name, and True if they are in doubt."""

    @property
    def absent(self) -> bool | None:
        """Value of a test for something in an object without it."""
        return False if self.lenient else None

    def let(self, name: str, value: Evaluate) -> None:
        """Evaluate an expression now, and use its value for a name from here on."""
        before, self.is_doubtful = self.is_doubtful, False
        self.locals[name] = value(self), self.is_doubtful
        self.is_doubtful = before

    def has(self, name: str) -> bool:
        """Return True if a path's first step does not lead into the state."""
        return name == WHO or name in self.fields or name in self.locals

    def find(self, name: str) -> Any:
        """Return the value of a path's first step, None if it is unknown."""
        if name in self.locals:
            value, is_doubtful = self.locals[name]
            self.is_doubtful |= is_doubtful
            return value
        if name == WHO:
            return self.who
        if name in self.fields:
            return self.fields[name]
        if name == ASKED and self.asked is not None:
            return self.asked.name if self._is_asked(self.asked) else None
        return self.find_in_state(name, ())

    @property
    def question(self) -> Mapping[str, Any] | None:
        """The fields of the request that the message answers; None if `asked` is no request here."""
        if self.asked is None or ASKED in self.fields:
            return None
        return (self.asked.fields or {}) if self._is_asked(self.asked) else {}

    def _is_asked(self, asked: Question) -> bool:
        """Return True if a request may be used; note that it is in doubt."""
        self.is_doubtful |= not asked.is_certain
        return asked.is_certain or self.lenient

    def find_in_state(self, name: str, steps: Sequence[Any]) -> Any:
        """Return the value of a key of the state, None if it is unknown, or if what follows at `steps` is."""
        if self.doubt is not None and self.doubt.covers(_path(name, steps)):
            self.is_doubtful = True
            if not self.lenient:
                return None
        for state in self.states:
            if name in state:
                return state[name]
        return None


def _path(first: str, steps: Sequence[Any]) -> list[str]:
    """Return a path up to the first step that is not a single key."""
    path = [first]
    for step in steps:
        if step is None or step == COUNT or isinstance(step, dict | list | tuple):
            break
        path.append(step_text(step))
    return path


class Compiled:
    """An expression, ready to be evaluated; `lookups` are its paths, outermost first."""

    def __init__(self, text: str) -> None:
        self.text = text
        term = parse_expression(text)
        self.lookups = tuple(_lookups(term))
        self._relations = [
            (_relation(part, text), [_compile(side, text) for side in (part.left, *part.right)], part)
            for part in parts_of(term)
            if isinstance(part, Relation)
        ]
        self.evaluate: Evaluate = _compile(term, text)
        """Returns the value in a scope, None if it is unknown. Never raises."""
        self._first = _compile(self.lookups[0], text) if self.lookups else None

    def holds(self, scope: Scope) -> bool | None:
        """Return the value as a condition, None if it is unknown."""
        return truth(self.evaluate(scope))

    def known(self, scope: Scope) -> Any:
        """Return the value with which the first false comparison compares: the side from the state.

        Without a comparison, it is the value of the first path.
        """
        for evaluate, sides, relation in self._relations:
            if evaluate(scope) is not False and len(self._relations) > 1:
                continue
            if relation.operator == "in" and relation.is_set:
                return [side(scope) for side in sides[1:]]
            of_state = [_is_of_state(side, scope) for side in (relation.left, relation.right[0])]
            return sides[0 if of_state == [True, False] else 1](scope)
        return None if self._first is None else self._first(scope)


def compile_expression(text: str) -> Compiled:
    """Return a compiled expression.

    Raises:
        FilterError: The text is no expression; it has the position.
    """
    return Compiled(text)


def optional_expression(text: object) -> Compiled | None:
    """Return a compiled expression, None for an empty text or anything else."""
    return compile_expression(text) if isinstance(text, str) and text else None


# Syntax.


def parts_of(term: Term) -> Iterator[Term]:
    """Yield a term and all terms within it, outermost first."""
    waiting = [term]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed([*_inner(part)])


def _inner(term: Term) -> Iterator[Term]:
    if isinstance(term, Lookup):
        yield from (step for step in term.steps if not isinstance(step, str | int))
    elif isinstance(term, Sum):
        yield term.first
        yield from (other for _, other in term.others)
    elif isinstance(term, Joined):
        yield from (part for part in term.parts if not isinstance(part, str))
    elif isinstance(term, Call):
        yield from term.arguments
    elif isinstance(term, Relation):
        yield term.left
        yield from term.right
    elif isinstance(term, Not):
        yield term.term
    elif isinstance(term, And | Or):
        yield from term.terms


def _lookups(term: Term) -> Iterator[Lookup]:
    return (part for part in parts_of(term) if isinstance(part, Lookup))


def pattern_of(name: Lookup) -> Pattern:
    """Return the steps of a path as keys of the state, None for a computed one."""
    return tuple(str(step) if isinstance(step, str | int) else None for step in name.steps)


def _is_of_state(term: Term, scope: Scope) -> bool:
    """Return True if a term has a path that leads into the state."""
    return any(not scope.has(cast(str, name.steps[0])) for name in _lookups(term))


# Compilation.


def _compile(term: Term, text: str) -> Evaluate:
    if isinstance(term, Constant):
        value = term.value
        return lambda scope: value
    if isinstance(term, Lookup):
        return _lookup(term, text)
    if isinstance(term, Sum):
        return _sum(term, text)
    if isinstance(term, Joined):
        parts = [part if isinstance(part, str) else _compile(part, text) for part in term.parts]
        return lambda scope: joined([part if isinstance(part, str) else part(scope) for part in parts])
    if isinstance(term, Call):
        return _call(term, text)
    if isinstance(term, Relation):
        return _relation(term, text)
    if isinstance(term, Not):
        inner = _compile(term.term, text)

        def negation(scope: Scope) -> bool | None:
            value = inner(scope)
            return None if value is None else not value

        return negation
    terms = [_compile(part, text) for part in term.terms]
    decisive = isinstance(term, Or)

    def junction(scope: Scope) -> bool | None:
        result: bool | None = not decisive
        for part in terms:
            value = part(scope)
            if value is None:
                result = None
            elif bool(value) is decisive:
                return decisive
        return result

    return junction


def _lookup(term: Lookup, text: str) -> Evaluate:
    first = cast(str, term.steps[0])
    steps = [step if isinstance(step, str | int) else _compile(step, text) for step in term.steps[1:]]
    if not steps:
        return lambda scope: scope.find(first)

    def value(scope: Scope) -> Any:
        question = scope.question if first == ASKED else None
        if scope.has(first) or question is not None:
            found = scope.find(first) if question is None else question
            for step in steps:
                if found is None:
                    return None
                found = value_in(found, step(scope) if callable(step) else step)
            return found
        rest = [step(scope) if callable(step) else step for step in steps]
        key: Any = first
        if first == STATE:
            key, *rest = rest
        found = None if key is None else scope.find_in_state(step_text(key), rest)
        for step in rest:
            if found is None:
                return None
            found = value_in(found, step)
        return found

    return value


_OPERATIONS = {"+": plus, "-": minus, "*": times, "//": quotient, "%": remainder}


def _sum(term: Sum, text: str) -> Evaluate:
    first = _compile(term.first, text)
    others = [(_OPERATIONS[sign], _compile(part, text)) for sign, part in term.others]

    def total(scope: Scope) -> Any:
        value = first(scope)
        for operation, part in others:
            value = operation(value, part(scope))
        return value

    return total


def _call(term: Call, text: str) -> Evaluate:
    parts = [_compile(part, text) for part in term.arguments]
    first = parts[0]
    if term.function == "known":
        return lambda scope: _is_known(first, scope)
    if term.function == "abs":
        return lambda scope: absolute(first(scope))
    choose = min if term.function == "min" else max
    return lambda scope: extreme(choose, [part(scope) for part in parts])


def _is_known(value: Evaluate, scope: Scope) -> bool | None:
    """Return True if a value is known; where what is absent may be unknown, no value is certainly unknown."""
    return True if value(scope) is not None else scope.absent


# Comparisons.


def _relation(term: Relation, text: str) -> Evaluate:
    left = _compile(term.left, text)
    if term.operator == "matches":
        return _matches(left, term.right[0], text)
    rights = [_compile(part, text) for part in term.right]
    right = rights[0]
    if term.operator == "in":
        return (
            _in_set(left, rights)
            if term.is_set
            else lambda scope: contains(right(scope), left(scope), scope.absent)
        )
    if term.operator == "contains":
        return lambda scope: contains(left(scope), right(scope), scope.absent)
    if term.operator == "==":
        return lambda scope: equal(left(scope), right(scope))
    if term.operator == "!=":

        def differs(scope: Scope) -> bool | None:
            same = equal(left(scope), right(scope))
            return None if same is None else not same

        return differs
    order = ORDERS[term.operator]
    return lambda scope: ordered(order, left(scope), right(scope))


def _matches(left: Evaluate, pattern: Term, text: str) -> Evaluate:
    if not (isinstance(pattern, Constant) and isinstance(pattern.value, str)):
        position, length = _place(pattern)
        raise FilterError('"matches" takes text in quotes', text, position, length)
    try:
        matches = matcher(pattern.value, whole=False)
    except ValueError as error:
        raise FilterError(str(error), text, pattern.position, pattern.length) from None
    return lambda scope: _found(matches, left(scope))


def _place(term: Term) -> tuple[int, int]:
    """Return the position and length of a term's first part that has one."""
    for part in parts_of(term):
        if isinstance(part, Constant | Lookup):
            return part.position, part.length
    return 0, 1


def _found(matches: Callable[[str], bool], value: Any) -> bool | None:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return any(isinstance(item, str) and matches(item) for item in value)
    return isinstance(value, str) and matches(value)


def _in_set(left: Evaluate, members: Sequence[Evaluate]) -> Evaluate:
    def is_member(scope: Scope) -> bool | None:
        value, result = left(scope), False
        unknown = False
        for member in members:
            same = equal(value, member(scope))
            unknown |= same is None
            result |= bool(same)
        return result or (None if unknown else False)

    return is_member


def compile_path(text: str) -> tuple[Step | Evaluate, ...]:
    """Return the steps of a path of the state, such as `players.{who}.x`; a computed one is a function.

    Raises:
        FilterError: The text is no path.
    """
    steps = path_of(text).steps
    return tuple(step if isinstance(step, str | int) else _compile(step, text) for step in steps)


def path_of(text: str) -> Lookup:
    """Return a path of the state. Raises FilterError."""
    term = parse_expression(text)
    if not isinstance(term, Lookup):
        raise FilterError("this is no path of the state", text, 0, len(text))
    return term


# Values of `put` and `result`: expressions, and lists and tables of them.


def expressions_in(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the expressions in a value of a file, and their paths; an empty text is a text."""
    if isinstance(value, str):
        if value.strip():
            yield path, value
    elif isinstance(value, dict | list):
        for step, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from expressions_in(part, (*path, step))


def compile_value(value: Any) -> Evaluate | None:
    """Return the function for a value of a file with expressions in it; None if there are none.

    An unknown element of a list is None, of a table absent.

    Raises:
        FilterError: A text is no expression.
    """
    return _composed(value) if any(expressions_in(value)) else None


def _composed(value: Any) -> Evaluate:
    if isinstance(value, str) and value.strip():
        return Compiled(value).evaluate
    if isinstance(value, list):
        items = [_composed(part) for part in value]
        return lambda scope: [item(scope) for item in items]
    if isinstance(value, dict):
        parts = {key: _composed(part) for key, part in value.items()}
        return lambda scope: {key: found for key, part in parts.items() if (found := part(scope)) is not None}
    return lambda scope: value
