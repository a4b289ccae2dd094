"""Counts of verdicts by message, during and after a test run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kiebitz.dissectors.probing.case import Case
from kiebitz.services.probing.results import NOT_TRIED, Result, group_of


class Totals:
    """Counts of results, grouped by message; `cases` are the planned ones, if known beforehand."""

    def __init__(self, cases: Iterable[Case] = ()) -> None:
        self._all = Counter(group_of(case) for case in cases)
        self._counts: dict[str, Counter[str]] = {group: Counter() for group in self._all}
        self._reasons: dict[str, Counter[str]] = {}

    def add(self, result: Result) -> None:
        """Count a result."""
        self._counts.setdefault(result.group, Counter())[result.verdict] += 1
        if result.verdict == NOT_TRIED:
            self._reasons.setdefault(result.why, Counter())[result.group] += 1

    @property
    def groups(self) -> Sequence[str]:
        """The groups in the order of their first result or case."""
        return [*self._counts]

    def of(self, group: str) -> Counter[str]:
        """Return the number of results of a group by verdict."""
        return self._counts[group]

    def left(self, group: str) -> int:
        """Return the number of cases of a group that are still to be tried."""
        return self._all[group] - self.of(group).total()

    @property
    def total(self) -> Counter[str]:
        """The number of all results by verdict."""
        return sum(self._counts.values(), Counter())

    def reasons(self) -> Iterator[tuple[str, Counter[str]]]:
        """Yield the reasons why cases could not be tried, most frequent first, with case counts by group."""
        yield from sorted(self._reasons.items(), key=lambda each: -each[1].total())


def totals_of(results: Iterable[Result]) -> Totals:
    """Return the counts of complete results."""
    totals = Totals()
    for result in results:
        totals.add(result)
    return totals
