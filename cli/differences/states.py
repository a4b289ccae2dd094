"""`kiebitz diff --state`: compare two states, table by table."""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.cli.differences.report import state_difference, state_lines
from kiebitz.cli.differences.side_by_side import Drawn, one_table, two_tables
from kiebitz.cli.differences.sides import Side, Sides
from kiebitz.cli.spectator.view import RECENT
from kiebitz.cli.terminal.console import write_json
from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.dissectors.diff.result import Difference
from kiebitz.dissectors.diff.states import StateDifference
from kiebitz.storage.read.seek import Position, TablePosition, tables_at


def show_state_difference(
    difference: Difference, both: Sides, moment_a: Position, moment_b: Position, as_json: bool
) -> bool:
    """Show how two states differ; return True if they are equal.

    `difference`, of the whole sessions, matches tables, games and players.
    """
    a = {found.table.id: found for found in tables_at(both.a.timeline, moment_a)}
    b = {found.table.id: found for found in tables_at(both.b.timeline, moment_b)}
    pairs = [
        (
            a[pair.a.id] if pair.a is not None else None,
            b[pair.b.id] if pair.b is not None else None,
            _between(difference, number, both, a, b),
        )
        for number, pair in enumerate(difference.tables)
    ]
    if as_json:
        write_json([_json(*pair, both) for pair in pairs])
    else:
        console = Console()
        for place, (mine, other, found) in enumerate(pairs):
            if place:
                console.print()
            for text in (*_tables(console, both, mine, other), *state_lines(found, console)):
                console.show(text)
    return not any(found or mine is None or other is None for mine, other, found in pairs)


def _between(
    difference: Difference, number: int, both: Sides, a: dict[int, TablePosition], b: dict[int, TablePosition]
) -> list[StateDifference]:
    pair = difference.tables[number]
    if pair.a is None or pair.b is None:
        return []
    return state_difference(difference, number, both, a[pair.a.id].state, b[pair.b.id].state)


def _tables(
    console: Console, both: Sides, mine: TablePosition | None, other: TablePosition | None
) -> Iterator[Text]:
    """Yield the existing tables and an empty line."""
    drawn = [_drawn(side, moment) for side, moment in ((both.a, mine), (both.b, other)) if moment is not None]
    yield from two_tables(console, *drawn) if len(drawn) == 2 else one_table(console, drawn[0])
    yield Text()


def _drawn(side: Side, moment: TablePosition) -> Drawn:
    spectator_view = side.spectator_view
    events = side.timeline.recent(moment.table.id, moment.seq, RECENT)
    return Drawn(
        [Text(f"{side.label} {side.title}", "bold"), spectator_view.heading(moment.table.id, events)],
        spectator_view.table(moment.table.id, moment.state, events),
        [Text(spectator_view.latest(events), "dim")],
    )


def _json(
    mine: TablePosition | None, other: TablePosition | None, found: list[StateDifference], both: Sides
) -> dict[str, object]:
    return {
        "a": _moment(both.a, mine),
        "b": _moment(both.b, other),
        "differences": [
            {"path_a": one.path_a, "path_b": one.path_b, "a": one.a, "b": one.b} for one in found
        ],
    }


def _moment(side: Side, moment: TablePosition | None) -> dict[str, object] | None:
    if moment is None:
        return None
    return {
        "table": moment.table.id,
        "protocol": moment.table.protocol,
        "server": moment.table.server,
        "event": side.numbers.number("events", moment.event.id) if moment.event is not None else None,
        "time": side.spectator_view.seconds(moment.event) if moment.event is not None else None,
    }
