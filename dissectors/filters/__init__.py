"""Display filters in Wireshark's notation.

Stages: `parser` (text → `syntax` tree) → `semantics` (names looked up in `fields`, `not` moved down) →
`predicate` for live rows and `kiebitz.storage.filters` (SQL) for stored ones. Both share `rows` (the location
of a value) and `values` (the tests of a value).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kiebitz.dissectors.filters import predicate as _predicate
from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.filters.fields import Column, FieldCatalog, StateField, complete
from kiebitz.dissectors.filters.predicate import Predicate
from kiebitz.dissectors.filters.rows import Row, Target
from kiebitz.dissectors.filters.semantics import Condition, Meaning, meaning, with_row_ids
from kiebitz.dissectors.filters.syntax import Value
from kiebitz.dissectors.session_numbering import Numbers

__all__ = [
    "FieldCatalog",
    "Filter",
    "FilterError",
    "Predicate",
    "Row",
    "Target",
    "compile_filter",
    "complete",
]


class Filter(msgspec.Struct, frozen=True):
    """A compiled filter; the same one serves all three kinds of row, stored and live."""

    text: str
    meaning: Meaning

    def asks(self, column: str) -> bool:
        """Return True if the filter uses this name of the language, a key of `fields.COLUMNS`."""
        return any(term.subject == Column(column) for term in self._conditions())

    @property
    def asks_for_state(self) -> bool:
        """True if the filter uses the state of the table."""
        return any(isinstance(term.subject, StateField) for term in self._conditions())

    def compared_with(self, column: str) -> list[Value]:
        """Return the values with which the filter compares one of the language's own names."""
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
        """Return the condition on a live row of this kind. It raises FilterError if it takes too long."""
        return _predicate.predicate(with_row_ids(self.meaning, target, numbers), target)


def compile_filter(text: str, catalog: FieldCatalog) -> Filter:
    """Compile a filter. Raises FilterError with the position and, if possible, a suggestion."""
    # The parser's library takes its time to load, and the rest is needed where nothing is parsed, too.
    from kiebitz.dissectors.filters.parser import parse

    return Filter(text, meaning(parse(text), text, catalog))
