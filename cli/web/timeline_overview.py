"""A table's whole course in little: when its events were, its games, what was wrong, who had how much.

What is long is sampled, so that an answer stays small however long the session is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kiebitz.cli.listings import result_words
from kiebitz.cli.web import records
from kiebitz.cli.web.lists import seen_diagnostics
from kiebitz.cli.web.reader import Reader, View
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.results import named_result

_TIMES = 500
_GAMES = 1000
_FLAWS = 1000
_FLAWS_READ = 20_000
_STEPS = 1000
_MOST_NAMES = 50
"""So many players have a line in the chart."""

_WHOLE = 20_000
"""Up to so many events each of them is looked at for what players have; beyond that some hundred."""

_LOOKS = 300


def course(reader: Reader, table: TableInfo, player: str | None) -> records.Course:
    """The course of a table, as far as a player could know it."""
    timeline = reader.timeline
    first, last = timeline.first_seq(table.id), timeline.last_seq(table.id)
    return records.Course(
        first,
        last,
        _times(reader, table, first, last),
        list(_games(reader, table, player)),
        _flaws(reader, table, player),
        _scores(reader, table, player, first, last),
    )


def _times(reader: Reader, table: TableInfo, first: int, last: int) -> list[tuple[int, float]]:
    rows = reader.timeline.connection.execute(
        "SELECT seq, ts_ns FROM events WHERE table_id = ? AND seq IN (SELECT value FROM json_each(?))"
        " ORDER BY seq",
        (table.id, str(_sample(first, last, _TIMES))),
    )
    return [(seq, reader.timeline.seconds(ts_ns)) for seq, ts_ns in rows]


def _sample(first: int, last: int, most: int) -> list[int]:
    """Up to so many numbers above the first one and up to the last, which is among them."""
    step = max(1, -(-(last - first) // most))
    return [*range(first + 1, last, step), last] if last > first else []


def _games(reader: Reader, table: TableInfo, player: str | None) -> Iterator[records.GameMark]:
    """The table's games; of more than are shown one of each stretch."""
    timeline = reader.timeline
    games = [game for game in timeline.games() if game.table_id == table.id]
    if player is not None and reader.visibility.streams_of(player):
        known = reader.visibility.games_of(player)
        games = [game for game in games if game.id in known]
    for game in games[:: max(1, -(-len(games) // _GAMES))]:
        begun = timeline.connection.execute(
            "SELECT seq FROM events WHERE game_id = ? ORDER BY id LIMIT 1", (game.id,)
        ).fetchone()
        if begun is not None:
            # How it ended may tell what a player was not told.
            result = named_result(timeline, game) if player is None else None
            yield records.GameMark(
                timeline.numbers.number("games", game.id),
                game.label,
                begun[0],
                result_words(result) if result else None,
            )


def _flaws(reader: Reader, table: TableInfo, player: str | None) -> list[records.FlawMark]:
    """Errors and warnings; of more than are shown the gravest of each stretch."""
    found = seen_diagnostics(reader, None, View(player), "warning", 0, None)
    marks = []
    for row in islice(found, _FLAWS_READ):
        stream = row.stream
        # A flaw of a stream that belongs to no table is told at each.
        if stream.protocol is None or (stream.server, stream.protocol) == (table.server, table.protocol):
            seq = reader.timeline.seq_of_diagnostic(table.id, row.event_id, row.ts_ns)
            marks.append(records.FlawMark(seq, row.severity, row.id))
    marks.sort(key=lambda mark: mark.seq)
    stretch = -(-len(marks) // _FLAWS)
    return [
        min(marks[at : at + stretch], key=lambda mark: mark.severity != "error")
        for at in range(0, len(marks), stretch or 1)
    ]


# Who had how much.


def _scores(
    reader: Reader, table: TableInfo, player: str | None, first: int, last: int
) -> records.Scores | None:
    dissector = dissector_of(table.protocol)
    if dissector is None:
        return None
    steps: list[tuple[int, dict[str, int]]] = []
    for seq, state in _states(reader, table, player, first, last):
        scores = dissector.presentation.scores(state)
        if scores and (not steps or steps[-1][1] != scores):
            steps.append((seq, scores))
    if not steps:
        return None
    stretch = -(-len(steps) // _STEPS)
    steps = [*steps[:-1:stretch], steps[-1]]
    names = list(dict.fromkeys(name for _, scores in steps for name in scores))[:_MOST_NAMES]
    return records.Scores(
        dissector.presentation.counts,
        names,
        [(seq, [scores.get(name) for name in names]) for seq, scores in steps],
    )


def _states(
    reader: Reader, table: TableInfo, player: str | None, first: int, last: int
) -> Iterator[tuple[int, State]]:
    """Yield the table's states, or some hundred where there are many; each is good until the next."""
    timeline = reader.timeline
    if last - first > _WHOLE:
        for seq in _sample(first, last, _LOOKS):
            yield seq, reader.state(table.id, seq, player)
        return
    if player is not None:
        for seq in range(first + 1, last + 1):
            yield seq, reader.visibility.shared_state(player, table.id, seq)
        return
    state = timeline.state_at(table.id, first)
    for event in timeline.events_between(table.id, first, last):
        if event.changes:
            apply(state, event.changes)
            yield event.seq, state
