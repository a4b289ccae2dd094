"""Which tables of two sessions are the same: of one protocol, by server address, then by their order."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.model import TableInfo

TableMatch = list[tuple[int | None, int | None]]
"""Places of two tables that are the same; None where one side has none."""


def match_tables(a: Sequence[TableInfo], b: Sequence[TableInfo]) -> TableMatch:
    """The tables of the first session in their order, then those that only the second has."""
    partner: dict[int, int] = {}
    free = dict.fromkeys(range(len(b)))
    for is_same in (_same_server, _same_protocol):
        for i, mine in enumerate(a):
            found = next((j for j in free if i not in partner and is_same(mine, b[j])), None)
            if found is not None:
                partner[i] = found
                del free[found]
    return [*((i, partner.get(i)) for i in range(len(a))), *((None, j) for j in free)]


def _same_server(mine: TableInfo, other: TableInfo) -> bool:
    return (mine.protocol, mine.server) == (other.protocol, other.server)


def _same_protocol(mine: TableInfo, other: TableInfo) -> bool:
    return mine.protocol == other.protocol
