"""Compares two sessions by what happened in them, not by their packets.

Tables are matched by server, their players by name or by seat, their games by what happens in them; then the
events of each pair of games are put beside each other, and those outside games. Order is compared inside a
game, not between games, which may be on at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.diff.compared_table import ComparedTable
from kiebitz.dissectors.diff.events import TableComparison
from kiebitz.dissectors.diff.order import Order
from kiebitz.dissectors.diff.result import Difference, TablePair
from kiebitz.dissectors.diff.tables import match_tables
from kiebitz.storage.diff.conversations import compare_conversations
from kiebitz.storage.diff.loader import ComparedSession
from kiebitz.storage.diff.messages import compare_messages
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


def compare(a: Timeline, b: Timeline, wanted: Filter | None = None) -> Difference:
    """How two sessions differ; with a filter, only events and messages that meet it count.

    Raises sqlite3.Error.
    """
    with a.as_of_now(), b.as_of_now():
        first, second = ComparedSession(a, wanted), ComparedSession(b, wanted)
        # Whoever aligns has to choose at times. So that the choice is the same whichever session is named
        # first, the sessions' contents decide which of them is the first here.
        if first.digest <= second.digest:
            return _compare(first, second, wanted)
        return _compare(second, first, wanted).mirrored()


def _compare(a: ComparedSession, b: ComparedSession, wanted: Filter | None) -> Difference:
    found = Difference([], [], 0, [], [], [])
    same = 0
    order = Order(a.first_messages, b.first_messages)
    for i, j in match_tables([table.row for table in a.tables], [table.row for table in b.tables]):
        number = len(found.tables)
        mine = a.tables[i] if i is not None else None
        other = b.tables[j] if j is not None else None
        if mine is None or other is None:
            found.tables.append(_unmatched(mine, other))
            continue
        comparison = TableComparison(mine, other, order, number, len(found.games))
        table = comparison.compare(a.games, b.games)
        found.tables.append(table.pair)
        found.games.extend(table.games)
        found.events.extend(table.events)
        same += table.same
        found.messages.extend(compare_messages(a, mine, b, other, table.match, number, wanted))
        if wanted is None:
            found.conversations.extend(compare_conversations(a, mine, b, other, table.match, number))
    found.events.sort(key=lambda one: (one.place, one.table))
    return msgspec.structs.replace(found, same=same)


def _unmatched(a: ComparedTable | None, b: ComparedTable | None) -> TablePair:
    """A table that only one side has."""
    return TablePair(
        a.row if a is not None else None,
        b.row if b is not None else None,
        "name",
        [],
        (len(a.ids) if a is not None else 0, len(b.ids) if b is not None else 0),
    )
