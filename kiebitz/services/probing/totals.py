"""How many cases of each message came out how: while they run, and in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kiebitz.dissectors.probing.case import Case
from kiebitz.services.probing.results import NOT_TRIED, Result, group_of


class Tally:
    """Counts results, those of the same message together; of `cases`, if they are known beforehand."""

    def __init__(self, cases: Iterable[Case] = ()) -> None:
        self._all = Counter(group_of(case) for case in cases)
        self._counts: dict[str, Counter[str]] = {group: Counter() for group in self._all}
        self._reasons: dict[str, Counter[str]] = {}

    def add(self, result: Result) -> None:
        """Count one."""
        self._counts.setdefault(result.group, Counter())[result.verdict] += 1
        if result.verdict == NOT_TRIED:
            self._reasons.setdefault(result.why, Counter())[result.group] += 1

    @property
    def groups(self) -> Sequence[str]:
        """The messages, in their order."""
        return [*self._counts]

    def of(self, group: str) -> Counter[str]:
        """How many of a message came out how."""
        return self._counts[group]

    def left(self, group: str) -> int:
        """How many cases of a message are still to be tried."""
        return self._all[group] - self.of(group).total()

    @property
    def total(self) -> Counter[str]:
        """How many came out how altogether."""
        return sum(self._counts.values(), Counter())

    def reasons(self) -> Iterator[tuple[str, Counter[str]]]:
        """Why cases could not be tried, the commonest reason first, with how many of each message."""
        yield from sorted(self._reasons.items(), key=lambda each: -each[1].total())


def tally_of(results: Iterable[Result]) -> Tally:
    """The count of results that are all there."""
    tally = Tally()
    for result in results:
        tally.add(result)
    return tally
