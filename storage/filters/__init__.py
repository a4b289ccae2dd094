"""Display filters in Wireshark's notation: a SQL condition for stored rows and a predicate for live ones.

The way through: `parser` (text → `syntax` tree) → `meaning` (names looked up in `fields`, `not` moved down) →
`sql` and `predicate`, which share `rows` (where a value is) and `values` (what a test asks of it).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kiebitz.storage.database.session_numbering import Numbers
from kiebitz.storage.filters import predicate as _predicate
from kiebitz.storage.filters import sql as _sql
from kiebitz.storage.filters.dialects import DUCKDB, SQLITE, Dialect
from kiebitz.storage.filters.errors import FilterError
from kiebitz.storage.filters.fields import Column, FieldCatalog, StateField, complete
from kiebitz.storage.filters.predicate import Predicate
from kiebitz.storage.filters.rows import Row, Target
from kiebitz.storage.filters.semantics import Condition, Meaning, meaning, of_rows
from kiebitz.storage.filters.sql import Parameters, reason_of, register_functions
from kiebitz.storage.filters.syntax import Value

__all__ = [
    "DUCKDB",
    "FieldCatalog",
    "Filter",
    "FilterError",
    "Parameters",
    "Predicate",
    "Row",
    "Target",
    "compile_filter",
    "complete",
    "reason_of",
    "register_functions",
]


class Filter(msgspec.Struct, frozen=True):
    """A filter that was understood; the same one serves all three kinds of row, stored and live."""

    text: str
    meaning: Meaning

    def sql(self, target: Target, numbers: Numbers, dialect: Dialect = SQLITE) -> tuple[str, Parameters]:
        """A condition for WHERE and its parameters, in order; `numbers` are those of the rows' session.

        The row's table must have the alias m (messages), e (events) or d (diagnostics) and the connection the
        functions of `register_functions`; `reason_of` explains what one of them has raised. NULL counts as
        false, so do not negate the whole.
        """
        condition, parameters = _sql.condition(of_rows(self.meaning, target, numbers), target, dialect)
        return f"({condition})", parameters

    def asks(self, column: str) -> bool:
        """Whether it asks for one of the language's own names, a key of `fields.COLUMNS`."""
        return any(term.subject == Column(column) for term in self._conditions())

    @property
    def asks_for_state(self) -> bool:
        """Whether it asks for the state of the table."""
        return any(isinstance(term.subject, StateField) for term in self._conditions())

    def compared_with(self, column: str) -> list[Value]:
        """The values with which it compares one of the language's own names."""
        return [
            value
            for term in self._conditions()
            if term.subject == Column(column)
            for value in term.test.values
        ]

    def _conditions(self) -> Iterator[Condition]:
        waiting = [self.meaning]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Condition):
                yield term
            else:
                waiting += term.terms

    def predicate(self, target: Target, numbers: Numbers) -> Predicate:
        """The same condition on a live row of this kind. It raises FilterError where it takes too long."""
        return _predicate.predicate(of_rows(self.meaning, target, numbers), target)


def compile_filter(text: str, catalog: FieldCatalog) -> Filter:
    """Understand a filter. Raises FilterError with the place and, if one is near, the name that was meant."""
    # The parser's library takes its time to load, and the rest is needed where nothing is parsed, too.
    from kiebitz.storage.filters.parser import parse

    return Filter(text, meaning(parse(text), text, catalog))
