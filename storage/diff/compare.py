"""Comparison of two sessions by their events and diagnostics, not by their packets.

Tables are matched by server, their players by name or by seat, and their games by their events. Then the
events of each pair of games are aligned, and those outside games. Order counts within a game, but not between
games, which may run at the same time.

Comparison of the diagnostics of two sessions: those that only one session has.

Two diagnostics are the same if code, severity, blamed side, direction and message name are equal, and if the
places are: the same event or, for a message without an event, the connection of the same player near the
same events. Texts and byte positions are not compared, as they contain values that a server generates. A
deviation that is noted once per table has no place.

A server may repeat a state. If it does so soon, the message has the event that it repeats, and later none.
Therefore a diagnostic with an event also equals one without, if their texts are equal and they are near.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.diff.events import TableComparison, TableFindings
from kiebitz.dissectors.diff.matching import ComparedTable, Order, shared_numbers
from kiebitz.dissectors.diff.result import DiagnosticDifference, Difference, DifferenceKind, TablePair
from kiebitz.dissectors.game.context import DIALECT
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import TableInfo
from kiebitz.storage.diff.messages import (
    ComparedSession,
    MatchedTables,
    compare_conversations,
    compare_messages,
    streams_by_player,
)
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.message_queries import StoredDiagnostic, diagnostics
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


_MAX_DISTANCE = 8
"""Maximum number of events between two equal diagnostics of messages without an event."""


class SessionDiagnostics:
    """The diagnostics of one session, by table in order of time."""

    def __init__(self, side: ComparedSession, wanted: Filter | None) -> None:
        self.side = side
        self._by_server: dict[tuple[str | None, str], list[StoredDiagnostic]] = {}
        for one in diagnostics(side.timeline, *sql_condition(side.timeline, wanted, "diagnostics")):
            server = (one.stream.protocol, one.stream.server)
            self._by_server.setdefault(server, []).append(one)

    def take(self, table: ComparedTable | None) -> list[StoredDiagnostic]:
        """Remove and return the diagnostics of a table; None stands for a missing one."""
        return self._by_server.pop((table.row.protocol, table.row.server), []) if table is not None else []

    def take_others(self) -> list[StoredDiagnostic]:
        """Remove and return the diagnostics of all streams whose table was not asked for."""
        return [one for server in [*self._by_server] for one in self._by_server.pop(server)]


class _Placed(msgspec.Struct, eq=False):
    """A diagnostic with its place.

    `event` is equal for the same event, and None without one; `connection` is equal for connections of the
    same player. `events` has the numbers of the common events on the connection, ascending, and `latest` is
    that of the last one before the diagnostic.
    """

    diagnostic: StoredDiagnostic
    event: Hashable = None
    connection: tuple[int, ...] = ()
    latest: int = -1
    events: Sequence[int] = ()

    @property
    def place(self) -> Hashable:
        """The event, or the connection."""
        return self.event if self.event is not None else self.connection

    def is_near(self, other: _Placed) -> bool:
        """Return True if both have the same event, or one has none and few events separate them."""
        if self.event is not None and other.event is not None:
            return self.event == other.event
        return any(
            abs(bisect_right(events, self.latest) - bisect_right(events, other.latest)) <= _MAX_DISTANCE
            for events in (self.events, other.events)
        )


def compare_diagnostics(
    a: SessionDiagnostics,
    table_a: ComparedTable,
    b: SessionDiagnostics,
    table_b: ComparedTable,
    number: int,
    findings: TableFindings,
) -> list[DiagnosticDifference]:
    """Return the diagnostics of two tables that only one has; `number` is the index of the pair."""
    rows_a, rows_b = a.take(table_a), b.take(table_b)
    if not (rows_a and rows_b):
        return _differences(number, rows_a, rows_b)
    partners = sorted(findings.partners)
    stays = len(table_b.normalizer.roster.players)
    placed = (
        _place(rows_a, a.side, table_a, range(len(findings.match)), [mine for mine, _ in partners]),
        _place(
            rows_b, b.side, table_b, shared_numbers(findings.match, stays), [other for _, other in partners]
        ),
    )
    return _differences(number, *_unmatched_diagnostics(*placed))


def compare_others(a: SessionDiagnostics, b: SessionDiagnostics) -> list[DiagnosticDifference]:
    """Return the diagnostics of streams without a table that only one side has."""
    placed = [[_Placed(one) for one in side.take_others()] for side in (a, b)]
    return _differences(None, *_unmatched_diagnostics(*placed))


def _place(
    rows: Sequence[StoredDiagnostic],
    side: ComparedSession,
    table: ComparedTable,
    who: Sequence[int],
    common: Sequence[int],
) -> list[_Placed]:
    """Return the diagnostics of a table with their places.

    Args:
        rows: The diagnostics.
        side: Their session.
        table: Their table.
        who: The number of each player, which both sides share.
        common: The ids of the events that both sessions have, in an order that both sides share.
    """
    numbers = {event_id: number for number, event_id in enumerate(common)}
    players: dict[int, list[int]] = {}
    for player, theirs in streams_by_player(side, table)[0].items():
        for stream in theirs:
            players.setdefault(stream, []).append(who[player])
    reports = _reports(side, numbers, {one.stream.id for one in rows})
    placed: list[_Placed] = []
    for one in rows:
        event: Hashable = None
        if one.code == DIALECT:
            event = one.text
        elif one.event_id is not None:
            # An event that the other session lacks is equal to none there.
            event = numbers.get(one.event_id, (id(side), one.event_id))
        known = reports.get(one.stream.id, _NO_REPORTS)
        acting = tuple(sorted(players.get(one.stream.id, ())))
        placed.append(_Placed(one, event, acting, known.latest(one.ts_ns), known.events))
    return placed


class _Reports(msgspec.Struct, eq=False):
    """The common events on a connection: their times (ns) and numbers, and the numbers in ascending order."""

    times: list[int]
    numbers: list[int]
    events: list[int]

    def latest(self, ts_ns: int) -> int:
        """Return the number of the last event at a time; -1 if there is none."""
        before = bisect_right(self.times, ts_ns)
        return self.numbers[before - 1] if before else -1


_NO_REPORTS = _Reports([], [], [])


def _reports(
    side: ComparedSession, numbers: Mapping[int, int], streams: Collection[int]
) -> dict[int, _Reports]:
    """Return the common events that these streams report; `numbers` has their numbers by id."""
    rows = side.timeline.connection.execute(
        "SELECT stream_id, event_id, min(ts_ns) FROM messages"
        " WHERE event_id IS NOT NULL AND stream_id IN (SELECT value FROM json_each(?))"
        " GROUP BY stream_id, event_id ORDER BY min(id)",
        (to_json(sorted(streams)),),
    )
    found: dict[int, _Reports] = {}
    for stream, event_id, ts_ns in rows:
        if event_id in numbers:
            known = found.setdefault(stream, _Reports([], [], []))
            known.times.append(ts_ns)
            known.numbers.append(numbers[event_id])
    for known in found.values():
        known.events = sorted(known.numbers)
    return found


def _unmatched_diagnostics(a: Sequence[_Placed], b: Sequence[_Placed]) -> tuple[list[StoredDiagnostic], ...]:
    """Return the diagnostics of each side without a partner; those of equal texts are matched first."""
    keys: tuple[Callable[[_Placed], Hashable], ...] = (
        lambda one: (one.diagnostic.text, _key(one, one.place)),
        lambda one: _key(one, one.place),
        lambda one: (one.diagnostic.text, _key(one, one.connection)),
    )
    for key in keys:
        groups: dict[Hashable, tuple[list[_Placed], list[_Placed]]] = {}
        for number, side in enumerate((a, b)):
            for one in side:
                groups.setdefault(key(one), ([], []))[number].append(one)
        a, b = [], []
        for mine, others in groups.values():
            rest_a, rest_b = _unpaired(mine, others)
            a += rest_a
            b += rest_b
    return [one.diagnostic for one in a], [one.diagnostic for one in b]


def _key(one: _Placed, place: Hashable) -> Hashable:
    found = one.diagnostic
    return found.code, found.severity, found.blame, found.direction, found.message, place


def _unpaired(a: list[_Placed], b: list[_Placed]) -> tuple[list[_Placed], list[_Placed]]:
    """Pair diagnostics of equal keys that are near each other, in order; return the others of each side."""
    a, b = (sorted(side, key=lambda one: one.latest) for side in (a, b))
    rest_a: list[_Placed] = []
    rest_b: list[_Placed] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i].is_near(b[j]):
            i, j = i + 1, j + 1
        elif a[i].latest < b[j].latest:
            rest_a.append(a[i])
            i += 1
        else:
            rest_b.append(b[j])
            j += 1
    return rest_a + a[i:], rest_b + b[j:]


def _differences(
    number: int | None, a: Sequence[StoredDiagnostic], b: Sequence[StoredDiagnostic]
) -> list[DiagnosticDifference]:
    sides: list[tuple[DifferenceKind, Sequence[StoredDiagnostic]]] = [("only a", a), ("only b", b)]
    return [
        DiagnosticDifference(
            sort,
            number,
            one.severity,
            one.code,
            one.blame,
            one.message,
            one.id if sort == "only a" else None,
            one.id if sort == "only b" else None,
        )
        for sort, side in sides
        for one in sorted(side, key=lambda one: (one.ts_ns, one.id))
    ]


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
    pairs: list[MatchedTables] = []
    diagnostics_a, diagnostics_b = SessionDiagnostics(a, wanted), SessionDiagnostics(b, wanted)
    order = Order(a.first_messages, b.first_messages)
    for i, j in _match_tables([table.row for table in a.tables], [table.row for table in b.tables]):
        number = len(found.tables)
        mine = a.tables[i] if i is not None else None
        other = b.tables[j] if j is not None else None
        if mine is None or other is None:
            rows = [side.row if side is not None else None for side in (mine, other)]
            counts = [len(side.ids) if side is not None else 0 for side in (mine, other)]
            found.tables.append(TablePair(rows[0], rows[1], "name", [], (counts[0], counts[1])))
            found.diagnostics.extend(
                _differences(number, diagnostics_a.take(mine), diagnostics_b.take(other))
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
        pairs.append(MatchedTables(number, mine, other, table.match))
        if wanted is None:
            found.conversations.extend(compare_conversations(a, b, pairs[-1]))
    found.messages.extend(compare_messages(a, b, pairs, wanted))
    found.diagnostics.extend(compare_others(diagnostics_a, diagnostics_b))
    found.events.sort(key=lambda one: (one.place, one.table))
    return msgspec.structs.replace(found, same=same)


def _match_tables(a: Sequence[TableInfo], b: Sequence[TableInfo]) -> list[tuple[int | None, int | None]]:
    """Match tables of one protocol by server address, then by their order; return their indexes.

    The tables of the first session come first in order, then those that only the second has.
    """
    partner: dict[int, int] = {}
    free = dict.fromkeys(range(len(b)))
    for names in (("protocol", "server"), ("protocol",)):
        key = attrgetter(*names)
        for i, mine in enumerate(a):
            found = next((j for j in free if i not in partner and key(mine) == key(b[j])), None)
            if found is not None:
                partner[i] = found
                del free[found]
    return [*((i, partner.get(i)) for i in range(len(a))), *((None, j) for j in free)]
