"""Downsampled timeline of a table: times, games, diagnostics, scores.

Sampling keeps a response small, however long the session is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kiebitz.cli.listings import result_words
from kiebitz.cli.web import records
from kiebitz.cli.web.reader import Reader
from kiebitz.dissectors.game.context import SNAPSHOT_EVERY
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.read.message_queries import placeholders, visible_groups
from kiebitz.storage.read.players import named_result
from kiebitz.storage.read.view_rows import AT_TABLE

_MAX_TIMES = 500
_MAX_GAMES = 1000
_MAX_DIAGNOSTICS = 1000
_MAX_STEPS = 1000
_MAX_NAMES = 50
"""Maximum number of players in the chart."""

_MAX_EVENTS_READ = 20_000
"""Maximum number of events that are all read for scores; of more, `_SAMPLES` are sampled."""

_SAMPLES = 300


def timeline_overview(
    reader: Reader, table: TableInfo, player: str | None, followed: FollowedScores | None = None
) -> records.TimelineOverview:
    """Return the timeline of a table in a player's view; with `followed` scores, up to their last event."""
    timeline = reader.timeline
    first, last = timeline.first_seq(table.id), timeline.last_seq(table.id)
    counts = _counts(reader, table, player)
    if followed is None:
        followed = FollowedScores(table.protocol, last)
        for seq, state in _states(reader, table, player, first, last):
            followed.add(seq, state)
    last = followed.last
    return records.TimelineOverview(
        first,
        last,
        _times(reader, table, first, last),
        [game for game in _games(reader, table, player) if game.seq <= last],
        [mark for mark in _diagnostics(reader, table, player, counts) if mark.seq <= last],
        counts.get("error", 0),
        counts.get("warning", 0),
        followed.record(),
    )


def _times(reader: Reader, table: TableInfo, first: int, last: int) -> list[tuple[int, float]]:
    rows = reader.timeline.connection.execute(
        "SELECT seq, ts_ns FROM events WHERE table_id = ? AND seq IN (SELECT value FROM json_each(?))"
        " ORDER BY seq",
        (table.id, str(_sample(first, last, _MAX_TIMES))),
    )
    return [(seq, reader.timeline.seconds(ts_ns)) for seq, ts_ns in rows]


def _sample(first: int, last: int, most: int) -> list[int]:
    """Return at most `most` numbers above `first` up to `last`, which is included."""
    step = max(1, -(-(last - first) // most))
    return [*range(first + 1, last, step), last] if last > first else []


def _games(reader: Reader, table: TableInfo, player: str | None) -> Iterator[records.GameMark]:
    """Yield the table's games, sampled if there are too many."""
    timeline = reader.timeline
    games = [game for game in timeline.games() if game.table_id == table.id]
    if player is not None and reader.visibility.streams_of(player):
        known = reader.visibility.games_of(player)
        games = [game for game in games if game.id in known]
    for game in games[:: max(1, -(-len(games) // _MAX_GAMES))]:
        begun = timeline.connection.execute(
            "SELECT seq FROM events WHERE game_id = ? ORDER BY id LIMIT 1", (game.id,)
        ).fetchone()
        if begun is not None:
            # The result may reveal what a player does not know.
            result = named_result(timeline, game) if player is None else None
            yield records.GameMark(
                timeline.numbers.number("games", game.id),
                game.label if player is None else reader.visibility.label(game, player),
                begun[0],
                result_words(result) if result else None,
            )


def _counts(reader: Reader, table: TableInfo, player: str | None) -> dict[str, int]:
    """Return the numbers of visible errors and warnings at a table."""
    groups = visible_groups(player)
    query = (
        "SELECT d.severity, count(*) FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
        f" WHERE s.session_id = ? AND {AT_TABLE} AND d.severity != 'note'"
        f" AND d.grp IN ({placeholders(groups)})"
    )
    parameters: list[str | int] = [reader.timeline.session.id, table.server, table.protocol, *groups]
    if player is not None:
        query += " AND s.id IN (SELECT value FROM json_each(?))"
        parameters.append(to_json(sorted(reader.visibility.streams_of(player))))
    counted = reader.timeline.connection.execute(f"{query} GROUP BY d.severity", parameters)
    return dict(counted.fetchall())


def _diagnostics(
    reader: Reader, table: TableInfo, player: str | None, counts: Mapping[str, int]
) -> list[records.DiagnosticMark]:
    """Return errors and warnings; of too many, a sample."""
    marks = []
    for severity, count in counts.items():
        every = -(-count // _MAX_DIAGNOSTICS)
        # Multiplied, as errors may have every second id.
        among = "d.severity = ? AND (d.id * 40503 >> 8) % ? = 0", (severity, every)
        for row in reader.rows(player).diagnostics(table, 0, None, among=among):
            seq = reader.timeline.seq_of_diagnostic(table.id, row.event_id, row.ts_ns)
            marks.append(records.DiagnosticMark(seq, row.severity, row.id))
    return sorted(marks, key=lambda mark: (mark.seq, mark.id))


# Scores.


class FollowedScores:
    """The scores of a table from event to event, up to number `last`."""

    def __init__(self, protocol: str, last: int) -> None:
        self.last = last
        dissector = dissector_of(protocol)
        self._presentation = dissector.presentation if dissector is not None else None
        self._steps: list[tuple[int, dict[str, int]]] = []

    def add(self, seq: int, state: State) -> None:
        """Add the state after an event."""
        scores = self._presentation.scores(state) if self._presentation is not None else None
        if scores and (not self._steps or self._steps[-1][1] != scores):
            self._steps.append((seq, scores))

    def record(self) -> records.Scores | None:
        """Return the scores, sampled if there are many; None if there are none."""
        if not self._steps or self._presentation is None:
            return None
        steps = [*self._steps[: -1 : -(-len(self._steps) // _MAX_STEPS)], self._steps[-1]]
        names = list(dict.fromkeys(name for _, scores in steps for name in scores))[:_MAX_NAMES]
        return records.Scores(
            self._presentation.counts,
            names,
            [(seq, [scores.get(name) for name in names]) for seq, scores in steps],
        )


def _states(
    reader: Reader, table: TableInfo, player: str | None, first: int, last: int
) -> Iterator[tuple[int, State]]:
    """Yield the table's states, sampled if there are many; each is valid until the next."""
    timeline = reader.timeline
    seqs: Sequence[int] = range(first + 1, last + 1)
    is_sampled = len(seqs) > _MAX_EVENTS_READ
    if is_sampled:
        # States between those that are stored take time to compute.
        step = -(-len(seqs) // (_SAMPLES * SNAPSHOT_EVERY)) * SNAPSHOT_EVERY
        seqs = [*range(first - first % step + step, last, step), last]
    if player is not None:
        for seq in seqs:
            yield seq, reader.visibility.shared_state(player, table.id, seq)
        return
    if is_sampled:
        for seq in seqs:
            yield seq, timeline.state_at(table.id, seq)
        return
    state = timeline.state_at(table.id, first)
    for event in timeline.events_between(table.id, first, last):
        if event.changes:
            apply(state, event.changes)
            yield event.seq, state
