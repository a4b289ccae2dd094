"""The semantics of a syntax tree: names resolved, values checked, `!=` and `not` moved down to conditions.

`a != v` means: there is an a, and none equals v. With no `not` above them, the conditions make flat SQL that
can use indexes and is not nested deeper than the parentheses of the filter.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import msgspec

from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.filters.expressions import searching
from kiebitz.dissectors.filters.fields import (
    COLUMNS,
    AnyField,
    Carrier,
    Column,
    DiagnosticAsWhole,
    FieldCatalog,
    MessageField,
    MessageName,
    Protocol,
    StateField,
    Subject,
    UnknownName,
    look_up,
)
from kiebitz.dissectors.filters.rows import Target, numbered
from kiebitz.dissectors.filters.syntax import (
    And,
    Comparison,
    Constant,
    Expression,
    Has,
    Name,
    Not,
    Passage,
    Value,
)
from kiebitz.dissectors.filters.values import Question, Test
from kiebitz.dissectors.session_numbering import Numbers
from kiebitz.dissectors.suggestions import did_you_mean

_ADDRESSES = 'addresses and ports are in client and server: server contains ":4711"'
"""Hint for those who know Wireshark's names."""


class Condition(msgspec.Struct, frozen=True):
    """The condition that a value of a subject passes a test or, with `wanted` False, that none does.

    The subject is a `Column`, an `AnyField` of whatever protocol, a `MessageName`, a `MessageField` or a
    `StateField`.
    """

    subject: Column | AnyField | MessageName | MessageField | StateField
    test: Test
    wanted: bool = True


class AllOf(msgspec.Struct, frozen=True):
    """Every term holds."""

    terms: tuple[Meaning, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """The condition that at least one of its terms holds."""

    terms: tuple[Meaning, ...]


Meaning = Condition | AllOf | AnyOf


def meaning(expression: Expression, text: str, catalog: FieldCatalog) -> Meaning:
    """Return the meaning of a filter; its tree was parsed from `text`. Raises FilterError."""
    return _Resolver(text, catalog).read(expression)


def with_row_ids(meaning: Meaning, target: Target, numbers: Numbers) -> Meaning:
    """Return the meaning with row ids in place of numbers that count within a session."""
    if not isinstance(meaning, Condition):
        return msgspec.structs.replace(
            meaning, terms=tuple(with_row_ids(term, target, numbers) for term in meaning.terms)
        )
    table = numbered(meaning.subject.name, target) if isinstance(meaning.subject, Column) else None
    if table is None:
        return meaning
    seen = cast(tuple[int | float, ...], meaning.test.values)
    ids = tuple(_within_column(numbers.row_id(table, value)) for value in seen)
    return msgspec.structs.replace(meaning, test=msgspec.structs.replace(meaning.test, values=ids))


class _Resolver:
    """Resolves a syntax tree; has the context of all levels."""

    def __init__(self, text: str, catalog: FieldCatalog) -> None:
        self.text = text
        self.catalog = catalog

    def read(self, expression: Expression) -> Meaning:
        if isinstance(expression, Has):
            return self._has(expression.name)
        if isinstance(expression, Comparison):
            return self._comparison(expression)
        if isinstance(expression, Not):
            return _negate(self.read(expression.term))
        terms = tuple(map(self.read, expression.terms))
        return AllOf(terms) if isinstance(expression, And) else AnyOf(terms)

    def _has(self, name: Name) -> Meaning:
        subject = self._look_up(name, bare=True)
        if isinstance(subject, DiagnosticAsWhole):
            subject = Column("diag.severity")  # every diagnostic has one
        if isinstance(subject, Protocol):
            return _of_protocol(subject.name)
        if isinstance(subject, Carrier):
            return Condition(Column("transport"), Test("in", (subject.name,)))
        return _condition(subject, Test("has"))

    def _comparison(self, comparison: Comparison) -> Meaning:
        subject = self._look_up(comparison.name, bare=False)
        if isinstance(subject, Protocol | MessageName | DiagnosticAsWhole | Carrier):
            what = {
                Protocol: "a protocol",
                MessageName: "a message",
                DiagnosticAsWhole: "a diagnostic",
                Carrier: "a transport",
            }[type(subject)]
            raise self._error(
                f'"{self._source(comparison.name)}" is {what} and has no value', comparison.name
            )
        self._check_constants(comparison)
        if isinstance(subject, Column):
            self._check_column(subject, comparison)
        values = tuple(constant.value for constant in comparison.constants)
        if comparison.operator == "!=":
            differs = _negate(_condition(subject, _test(subject, "in", values)))
            return AllOf((_condition(subject, Test("has")), differs))
        if comparison.operator == "matches":
            (pattern,) = comparison.constants
            passage = Passage(self.text, pattern.position, pattern.length)
            return _condition(subject, Test("matches", values, passage))
        question = "in" if comparison.operator == "==" else comparison.operator
        return _condition(subject, _test(subject, question, values))

    def _look_up(self, name: Name, bare: bool) -> Subject:
        try:
            return look_up(name.steps, self.catalog, bare)
        except UnknownName as unknown:
            nearest = [f'"{other}"' for other in unknown.nearest]
            hint = _ADDRESSES if name.steps[0] in ("ip", "ipv6", "tcp", "udp") else None
            if hint is None and nearest:
                hint = did_you_mean(*nearest)
            if hint is None and len(name.steps) > 1:
                hint = f"if {name.steps[0]} is a plug-in's protocol, install that with pip"
            sentence = f'no field "{unknown.name}"'
            raise FilterError(
                sentence, self.text, name.position, name.length, hint, unknown=name.steps
            ) from None

    def _check_constants(self, comparison: Comparison) -> None:
        operator, constant = comparison.operator, comparison.constants[0]
        if operator in ("contains", "matches") and not isinstance(constant.value, str):
            raise self._error(f'"{operator}" takes text in quotes', constant)
        if operator in ("<", "<=", ">", ">=") and isinstance(constant.value, bool):
            raise self._error("true and false have no order", constant)
        if operator == "matches":
            try:
                searching(cast(str, constant.value))
            except ValueError as error:
                raise self._error(str(error), constant) from None

    def _check_column(self, column: Column, comparison: Comparison) -> None:
        """Check the type of a column; that of a field is known only in a message."""
        kind = COLUMNS[column.name]
        written = self._source(comparison.name)
        if kind == "number" and comparison.operator in ("contains", "matches"):
            raise self._error(
                f'"{written}" is a number; "{comparison.operator}" looks into text', comparison.name
            )
        for constant in comparison.constants:
            if isinstance(constant.value, bool) or isinstance(constant.value, str) != (kind == "text"):
                hint = f'text must be quoted: "{self._source(constant)}"' if kind == "text" else None
                article = "text" if kind == "text" else "a number"
                raise self._error(f'"{written}" is {article}', constant, hint)

    def _source(self, part: Name | Constant) -> str:
        return self.text[part.position : part.position + part.length]

    def _error(self, message: str, at: Name | Constant, hint: str | None = None) -> FilterError:
        return FilterError(message, self.text, at.position, at.length, hint)


def _condition(subject: Column | AnyField | MessageName | MessageField | StateField, test: Test) -> Meaning:
    if isinstance(subject, AnyField) and subject.protocol is not None:
        return AllOf((_of_protocol(subject.protocol), Condition(AnyField(None, subject.path), test)))
    return Condition(subject, test)


def _of_protocol(protocol: str) -> Condition:
    return Condition(Column("protocol"), Test("in", (protocol,)))


def _negate(term: Meaning) -> Meaning:
    if isinstance(term, Condition):
        return msgspec.structs.replace(term, wanted=not term.wanted)
    opposites = tuple(map(_negate, term.terms))
    return AnyOf(opposites) if isinstance(term, AllOf) else AllOf(opposites)


def _test(subject: Subject, question: Question, values: tuple[Value, ...]) -> Test:
    if not isinstance(subject, Column) or COLUMNS[subject.name] == "text":
        return Test(question, values)
    return _integer_test(
        question, cast(tuple[int | float, ...], values), 10**9 if subject.name == "time" else 1
    )


def _integer_test(question: Question, values: tuple[int | float, ...], unit: int) -> Test:
    """Return the test in whole numbers, as columns have them; of times in nanoseconds.

    No rounding then moves a row over the border, in whatever engine.
    """
    exact = [Fraction(repr(value)) * unit for value in values]
    if question == "in":
        whole = [int(value) for value in exact if value.denominator == 1]
        return Test(question, tuple(value for value in whole if _within_column(value) == value))
    up = question in ("<", ">=")
    bounds = (math.ceil(value) if up else math.floor(value) for value in exact)
    return Test(question, tuple(map(_within_column, bounds)))


def _within_column(value: int | float) -> int | float:
    """Limit a value to what SQLite accepts: beyond 64 bits, infinity compares the same with any column."""
    if -(2**63) <= value < 2**63:
        return value
    return math.inf if value > 0 else -math.inf
