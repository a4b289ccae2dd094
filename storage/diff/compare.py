"""Comparison of two sessions by their events, not by their packets.

Tables are matched by server, their players by name or by seat, and their games by their events. Then the
events of each pair of games are aligned, and those outside games. Order counts within a game, but not between
games, which may run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.diff.compared_table import ComparedTable
from kiebitz.dissectors.diff.events import TableComparison
from kiebitz.dissectors.diff.order import Order
from kiebitz.dissectors.diff.result import Difference, TablePair
from kiebitz.dissectors.model import TableInfo
from kiebitz.storage.diff.diagnostics import SessionDiagnostics, compare_diagnostics, compare_others
from kiebitz.storage.diff.loader import ComparedSession
from kiebitz.storage.diff.messages import compare_conversations, compare_messages
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


def compare(a: Timeline, b: Timeline, wanted: Filter | None = None) -> Difference:
    """Return the difference of two sessions; with a filter, only events and messages that pass it count.

    Raises sqlite3.Error.
    """
    with a.as_of_now(), b.as_of_now():
        first, second = ComparedSession(a, wanted), ComparedSession(b, wanted)
        # Alignment sometimes has to choose. So that the choice does not depend on the order of the arguments,
        # the contents decide which session is the first here.
        if first.digest <= second.digest:
            return _compare(first, second, wanted)
        return _compare(second, first, wanted).mirrored()


def _compare(a: ComparedSession, b: ComparedSession, wanted: Filter | None) -> Difference:
    found = Difference([], [], 0, [], [], [], [])
    same = 0
    diagnostics_a, diagnostics_b = SessionDiagnostics(a, wanted), SessionDiagnostics(b, wanted)
    order = Order(a.first_messages, b.first_messages)
    for i, j in _match_tables([table.row for table in a.tables], [table.row for table in b.tables]):
        number = len(found.tables)
        mine = a.tables[i] if i is not None else None
        other = b.tables[j] if j is not None else None
        if mine is None or other is None:
            found.tables.append(_unmatched(mine, other))
            found.diagnostics.extend(
                compare_diagnostics(diagnostics_a, mine, diagnostics_b, other, number, None)
            )
            continue
        comparison = TableComparison(mine, other, order, number, len(found.games))
        table = comparison.compare(a.games, b.games)
        found.tables.append(table.pair)
        found.games.extend(table.games)
        found.events.extend(table.events)
        same += table.same
        found.diagnostics.extend(
            compare_diagnostics(diagnostics_a, mine, diagnostics_b, other, number, table)
        )
        found.messages.extend(compare_messages(a, mine, b, other, table.match, number, wanted))
        if wanted is None:
            found.conversations.extend(compare_conversations(a, mine, b, other, table.match, number))
    found.diagnostics.extend(compare_others(diagnostics_a, diagnostics_b))
    found.events.sort(key=lambda one: (one.place, one.table))
    return msgspec.structs.replace(found, same=same)


def _unmatched(a: ComparedTable | None, b: ComparedTable | None) -> TablePair:
    """Return the pair for a table that only one side has."""
    return TablePair(
        a.row if a is not None else None,
        b.row if b is not None else None,
        "name",
        [],
        (len(a.ids) if a is not None else 0, len(b.ids) if b is not None else 0),
    )


def _match_tables(a: Sequence[TableInfo], b: Sequence[TableInfo]) -> list[tuple[int | None, int | None]]:
    """Match tables of one protocol by server address, then by their order; return their indexes.

    The tables of the first session come first in order, then those that only the second has.
    """
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
