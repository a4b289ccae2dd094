"""The syntax tree of a filter, as written: names are not resolved yet, and `!=` is still `!=`.

`position` and `length` count characters of the filter's text, for the carets of errors.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

WORDS = {
    "or": "_OR",
    "and": "_AND",
    "not": "NOT",
    "in": "_IN",
    "true": "BOOLEAN",
    "false": "BOOLEAN",
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "contains", "matches"), "COMPARE"),
}
"""The keywords and their tokens; as a step of a path, such a name must be quoted."""

Value = str | int | float | bool
Step = str | int
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "contains", "matches", "in"]


class Passage(NamedTuple):
    """A part of a filter's text, with the whole of it."""

    text: str
    position: int
    length: int


class Name(msgspec.Struct, frozen=True):
    """A path such as `catan.Würfelwurf.Wurf[0]`; a step is a name or an index, the first one a name."""

    steps: tuple[Step, ...]
    position: int
    length: int


class Constant(msgspec.Struct, frozen=True):
    """A literal value in the filter."""

    value: Value
    position: int
    length: int


class Has(msgspec.Struct, frozen=True):
    """A bare name: the row has it."""

    name: Name


class Comparison(msgspec.Struct, frozen=True):
    """A name, an operator, and one value; for `in` any number from one up."""

    name: Name
    operator: Operator
    constants: tuple[Constant, ...]


class Not(msgspec.Struct, frozen=True):
    """The opposite of a term."""

    term: Any


class And(msgspec.Struct, frozen=True):
    """A conjunction of two or more terms."""

    terms: tuple[Any, ...]


class Or(msgspec.Struct, frozen=True):
    """At least one of two or more terms."""

    terms: tuple[Any, ...]


Expression = Has | Comparison | Not | And | Or


# The further parts of an expression in a protocol file; see `parser.parse_expression`.


class Lookup(msgspec.Struct, frozen=True):
    """A path whose steps after the first may be terms, such as `players.{who}.cards[number - 1]`."""

    steps: tuple[Step | Term, ...]
    position: int
    length: int


class Sum(msgspec.Struct, frozen=True):
    """Terms, each but the first with an operator before it, which are of equal rank."""

    first: Term
    others: tuple[tuple[Literal["+", "-", "*", "//", "%"], Term], ...]


class Joined(msgspec.Struct, frozen=True):
    """A step of a path with several braces, such as `{x},{y}`: terms, and the texts between them."""

    parts: tuple[str | Term, ...]


class Call(msgspec.Struct, frozen=True):
    """A function of some terms, such as `max(a, b)`."""

    function: str
    arguments: tuple[Term, ...]
    position: int
    length: int


class Relation(msgspec.Struct, frozen=True):
    """A comparison of two terms; for `in`, of a term with the members of a set."""

    left: Term
    operator: Operator
    right: tuple[Term, ...]
    is_set: bool = False


Term = Constant | Lookup | Sum | Joined | Call | Relation | Not | And | Or
