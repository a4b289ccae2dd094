"""The report of a difference: equal events, first difference, and all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from kiebitz.cli.configuration.file import named
from kiebitz.cli.differences.side_by_side import Drawn, two_tables
from kiebitz.cli.differences.sides import Side, Sides
from kiebitz.cli.spectator.view import RECENT
from kiebitz.cli.terminal.byte_rows import reasons
from kiebitz.cli.terminal.console import COLOURS
from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.dissectors.diff.result import (
    DiagnosticDifference,
    Difference,
    DifferenceKind,
    EventDifference,
    GamePair,
    TablePair,
)
from kiebitz.dissectors.diff.states import StateDifference, compare_states
from kiebitz.dissectors.escaping import json_text, printable
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.model import Event, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.wording import GRAVITY, counted
from kiebitz.storage.read.event_text import game_title

_BEFORE = 4
"""Number of moves to show before the first difference."""
_LOOKED_THROUGH = 40
"""Number of events to search for these moves."""

SHOWN = 20
"""Maximum number of entries per section of the report."""

_LISTED = 8
_LONGEST_VALUE = 60
"""Maximum length of a name, value or path (characters)."""

_SORTS: dict[DifferenceKind, str] = {
    "changed": "changed",
    "only a": "only in A",
    "only b": "only in B",
    "order": "in another order",
    "name": "with another name",
    "game order": "played in another order",
}


def show_difference(difference: Difference, both: Sides) -> None:
    """Print the differences between two sessions."""
    console = Console()
    for line in _lines(difference, both, console):
        console.show(line)


def _lines(difference: Difference, both: Sides, console: Console) -> Iterator[Text]:
    if difference.equal:
        same = f"{counted(difference.same, 'event')}{_matched(difference)}"
        yield Text(f"A {both.a.title} and B {both.b.title} are the same: {same}")
        return
    yield Text.assemble(("A ", "bold"), both.a.title, ("   B ", "bold"), both.b.title)
    yield Text(_summary(difference) + _matched(difference))
    if difference.events:
        yield from _first(difference, difference.events[0], both, console)
    if rest := [one for one in _apart(difference) if one is not difference.events[0]]:
        yield Text()
        yield Text("Other differences", "bold")
        yield from _grouped(difference, rest, both)
    if difference.messages:
        yield Text()
        yield Text("Messages without an event", "bold")
        yield from _messages(difference, both)
    if difference.diagnostics:
        yield Text()
        yield Text("Diagnostics", "bold")
        yield from _diagnostics(difference, both)
    for side in both:
        if alone := [*_bounded(_alone(difference, side))]:
            yield Text()
            yield Text(f"Only in {side.label}", "bold")
            yield from (Text(f"  {line}") for line in alone)


def _summary(difference: Difference) -> str:
    """Summarize equal and different events in one line."""
    sorts = dict.fromkeys(_SORTS, 0)
    for one in _apart(difference):
        sorts[one.sort] += 1
    moved = sorts.pop("game order")
    told = [f"{count} {_SORTS[sort]}" for sort, count in sorts.items() if count]
    if moved:
        told.append(f"{counted(moved, 'game')} {_SORTS['game order']}")
    lone: list[tuple[str, Sequence[TablePair | GamePair]]] = [
        ("server", difference.tables),
        ("game", difference.games),
    ]
    for what, pairs in lone:
        for side, count in (
            ("A", sum(pair.b is None for pair in pairs)),
            ("B", sum(pair.a is None for pair in pairs)),
        ):
            if count:
                told.append(f"{counted(count, what)} only in {side}")
    if difference.messages:
        told.append(counted(sum(one.count for one in difference.messages), "message") + " without an event")
    for sort, count in sorted(Counter(one.sort for one in difference.diagnostics).items()):
        told.append(f"{counted(count, 'diagnostic')} {_SORTS[sort]}")
    return f"{counted(difference.same, 'event')} the same; {', '.join(told) or 'no event differs'}"


def _apart(difference: Difference) -> list[EventDifference]:
    """Return the differing events, without games that only one side has."""
    games = difference.games
    return [one for one in difference.events if one.game is None or not games[one.game].is_unmatched]


def _matched(difference: Difference) -> str:
    """List the matched players whose names differ."""
    # Several tables of one session may have the same players.
    pairs = list(
        dict.fromkeys(
            f"{_short(pair.a)} = {_short(pair.b)}"
            for table in difference.tables
            for pair in table.players
            if pair.a is not None and pair.b is not None and pair.a != pair.b
        )
    )
    by_seat = any(table.matching == "seat" for table in difference.tables)
    if not pairs:
        return ""
    more = f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
    return f"; players by {'seat' if by_seat else 'name'}: {', '.join(pairs[:SHOWN])}{more}"


class _Moment(msgspec.Struct, frozen=True):
    """A side's position at the first difference: its event, if any, and its table's sequence number."""

    side: Side
    table_id: int
    event: Event | None
    seq: int

    @property
    def state(self) -> State:
        return self.side.timeline.state_at(self.table_id, self.seq)

    def drawn(self) -> Drawn:
        """Return the table after the event."""
        spectator_view = self.side.spectator_view
        events = self.side.timeline.recent(self.table_id, self.seq, RECENT)
        game = self.event.game_id if self.event is not None else None
        above = [Text(f"{self.side.label}:", "bold"), spectator_view.heading(self.table_id, events, game)]
        return Drawn(above, spectator_view.table(self.table_id, self.state, events))


def _moment(side: Side, table: TableInfo, own: int | None, before: int | None) -> _Moment:
    event = side.event(own) if own is not None else None
    if event is not None:
        return _Moment(side, table.id, event, event.seq)
    return _Moment(side, table.id, None, side.event(before).seq if before is not None else 0)


def _first(difference: Difference, first: EventDifference, both: Sides, console: Console) -> Iterator[Text]:
    """Yield the first different event, with the moves before it and the states after it."""
    pair = difference.tables[first.table]
    assert pair.a is not None
    assert pair.b is not None
    a = _moment(both.a, pair.a, first.a, first.before[0])
    b = _moment(both.b, pair.b, first.b, first.before[1])
    yield Text()
    yield Text(f"First difference: {_place(difference, first, both)}, {_what(first)}", "bold")
    for mine, other in _context(first, both):
        yield Text(f"  A {both.a.name(mine):<8} B {both.b.name(other):<8} {both.a.event_text(mine)}", "dim")
    yield _move(a, "")
    yield _move(b, f"{'':11}")
    if a.event is not None and b.event is not None:
        for field in first.fields:
            was, now = (
                _value({"actor": event.actor, **event.data}.get(field)) for event in (a.event, b.event)
            )
            yield from _values(f"    {field}:", was, now, console)
    yield Text()
    yield from two_tables(console, a.drawn(), b.drawn())
    yield Text()
    yield from state_lines(state_difference(difference, first.table, both, a.state, b.state), console)


def _context(first: EventDifference, both: Sides) -> list[tuple[Event, Event]]:
    """Return the last common moves of the game, in pairs."""
    if first.before[0] is None or first.before[1] is None:
        return []
    mine, others = (
        _moves_up_to(side, number) for side, number in ((both.a, first.before[0]), (both.b, first.before[1]))
    )
    pairs: list[tuple[Event, Event]] = []
    for one, other in zip(reversed(mine), reversed(others), strict=False):
        if one.kind != other.kind or len(pairs) == _BEFORE:
            break
        pairs.append((one, other))
    return pairs[::-1]


def _moves_up_to(side: Side, number: int) -> list[Event]:
    """Return the latest events of the same game, or outside games, up to this one."""
    last = side.event(number)
    recent = side.timeline.recent(last.table_id, last.seq, _LOOKED_THROUGH)
    return [event for event in recent if event.game_id == last.game_id]


def _move(moment: _Moment, indent: str) -> Text:
    """Return the event of one side, in its column."""
    label = Text.assemble("  ", indent, (f"{moment.side.label} ", "bold"))
    if moment.event is not None:
        number = moment.side.name(moment.event)
        return label.append(f"{number:{20 - len(indent)}}{moment.side.event_text(moment.event)}")
    following = next(iter(moment.side.timeline.recent(moment.table_id, moment.seq + 1, 1)), None)
    if following is None:
        return label.append("nothing, and no later event")
    return label.append(
        f"nothing; next is {moment.side.name(following)} {moment.side.event_text(following).lstrip()}"
    )


def state_difference(
    difference: Difference, table: int, both: Sides, a: State, b: State
) -> list[StateDifference]:
    """Compare two states of a pair of tables; paths use the games' numbers in the session."""
    pair = difference.tables[table]
    assert pair.a is not None
    dissector = dissector_of(pair.a.protocol)
    games = {
        str(both.a.numbers.number("games", game.a.id)): str(both.b.numbers.number("games", game.b.id))
        for game in difference.games
        if game.table == table and game.a is not None and game.b is not None
    }
    handles = dissector.grammar.state_identifiers if dissector is not None else {}
    shown_a, shown_b = both.a.numbers.state(a), both.b.numbers.state(b)
    return compare_states(shown_a, shown_b, handles, pair.owners, games)


def state_lines(found: Sequence[StateDifference], console: Console) -> Iterator[Text]:
    """Yield the paths at which two states differ, with both values."""
    if not found:
        yield Text("The states are the same.")
        return
    yield Text(f"The states differ in {counted(len(found), 'place')}:", "bold")
    for one in found[:SHOWN]:
        path = _short(".".join(one.path_a or one.path_b or ()))
        mine = _value(one.a) if one.path_a is not None else "nothing"
        other = _value(one.b) if one.path_b is not None else "nothing"
        yield from _values(f"  {path}:", mine, other, console)
    if len(found) > SHOWN:
        yield Text(f"  and {len(found) - SHOWN} more")


def _values(what: str, a: str, b: str, console: Console) -> Iterator[Text]:
    """Yield a difference with both values, on separate lines if the terminal is too narrow."""
    line = Text(f"{what}  A {a}  B {b}")
    if not console.is_terminal or line.cell_len <= console.width:
        yield line
        return
    indent = " " * (len(what) - len(what.lstrip()) + 2)
    yield Text(what)
    yield Text(f"{indent}A {a}")
    yield Text(f"{indent}B {b}")


def _value(value: Any) -> str:
    return _short(json_text(value))


def _short(text: str) -> str:
    return shortened(printable(text), _LONGEST_VALUE)


def _grouped(difference: Difference, rest: Sequence[EventDifference], both: Sides) -> Iterator[Text]:
    """Yield the differences grouped by game, kind and field, each with its first example."""
    groups: dict[tuple[int, int, str], list[EventDifference]] = {}
    for one in rest:
        game = -1 if one.game is None else one.game
        groups.setdefault((one.table, game, _what(one)), []).append(one)
    in_order = sorted(groups.items(), key=lambda group: group[0][:2])
    place = None
    for (table, game, what), members in in_order[:SHOWN]:
        one = members[0]
        if place != (table, game):
            place = (table, game)
            yield Text(f"  {_place(difference, one, both)}", "bold")
        yield Text(f"    {len(members)} × {what}" if len(members) > 1 else f"    {what}")
        for side, number in ((both.a, one.a), (both.b, one.b)):
            if number is not None:
                event = side.event(number)
                yield Text(f"      {side.label} {side.name(event):<7} {side.event_text(event)}", "dim")
    if len(groups) > SHOWN:
        left = sum(len(members) for _, members in in_order[SHOWN:])
        yield Text(f"  and {counted(left, 'difference')} more, in {counted(len(groups) - SHOWN, 'group')}")


def _what(one: EventDifference) -> str:
    """Describe how two events differ."""
    fields = ", ".join(one.fields)
    kind = one.kind
    if one.sort == "changed":
        return f"{kind}: other {fields}"
    if one.sort == "name":
        return f"{kind}: {fields} has another name"
    if one.sort == "game order":
        return f"the game {_SORTS[one.sort]}"
    return f"{kind} {_SORTS[one.sort]}"


def _place(difference: Difference, one: EventDifference, both: Sides) -> str:
    """Return table and game of two events."""
    pair = difference.tables[one.table]
    assert pair.a is not None
    table = f"{game_title(pair.a.protocol)} {named(pair.a.server)}"
    if one.game is None:
        return f"{table}, outside games"
    game = difference.games[one.game]
    row = game.a or game.b
    assert row is not None
    a, b = (
        side.numbers.number_if_any("games", mine.id if mine is not None else None)
        for side, mine in ((both.a, game.a), (both.b, game.b))
    )
    if a is None or b is None:
        numbers = f"game {b if a is None else a} of {'B' if a is None else 'A'}"
    else:
        numbers = f"game {a}" if a == b else f"game {a} of A, {b} of B"
    return f"{table}, {numbers} ({row.label})"


def _messages(difference: Difference, both: Sides) -> Iterator[Text]:
    for one in difference.messages[:SHOWN]:
        what = f"other {', '.join(one.fields)}" if one.sort == "changed" else _SORTS[one.sort]
        examples = [
            f"{side.label} #{side.numbers.number('messages', number)}"
            for side, number in ((both.a, one.a), (both.b, one.b))
            if number is not None
        ]
        yield Text(f"  {one.count} × {one.direction} {one.name}: {what}  ({', '.join(examples)})")
    if len(difference.messages) > SHOWN:
        yield Text(f"  and {len(difference.messages) - SHOWN} more kinds")


def _diagnostics(difference: Difference, both: Sides) -> Iterator[Text]:
    """Yield the diagnostics by side, code and culprit, most severe first, each with its first example."""
    groups: dict[tuple[object, ...], list[DiagnosticDifference]] = {}
    for one in difference.diagnostics:
        groups.setdefault((one.sort, one.severity, one.code, one.blame), []).append(one)
    in_order = sorted(groups.values(), key=lambda members: GRAVITY.index(members[0].severity))
    for members in in_order[:SHOWN]:
        one = members[0]
        side, number = (both.a, one.a) if one.a is not None else (both.b, one.b)
        assert number is not None
        diagnostic = side.diagnostic(number)
        count = f"{len(members)} × " if len(members) > 1 else ""
        label = (f"{one.severity}[{one.code}]", f"bold {COLOURS[one.severity]}")
        *_, (title, culprit) = reasons(diagnostic)
        yield Text.assemble(f"  {count}", label, f" {_SORTS[one.sort]}, {title}: {culprit}")
        yield Text(f"    {side.label} {side.diagnostic_text(diagnostic)}", "dim")
    if len(in_order) > SHOWN:
        left = sum(len(members) for members in in_order[SHOWN:])
        yield Text(f"  and {counted(left, 'diagnostic')} more, in {counted(len(groups) - SHOWN, 'group')}")


def _alone(difference: Difference, side: Side) -> Iterator[str]:
    """Yield a line for each thing that only one side has."""
    label, numbers = side.label, side.numbers
    for table in difference.tables:
        row = table.a if label == "A" else table.b
        if row is not None and table.is_unmatched:
            events = counted(sum(table.events), "event")
            yield f"the server {game_title(row.protocol)} {named(row.server)}, {events}"
    for game in difference.games:
        only = game.a if label == "A" else game.b
        if only is not None and game.is_unmatched:
            number = numbers.number("games", only.id)
            yield f"game {number} ({only.label}), {counted(sum(game.events), 'event')}"
    for _, player in difference.unmatched_players:
        name = player.a if label == "A" else player.b
        if name is not None:
            yield f"the player {_short(name)}"
    for talk in difference.conversations:
        streams = talk.a if label == "A" else talk.b
        if streams:
            whose = f"of {_short(talk.player)}" if talk.player is not None else "of an unknown player"
            listed = (str(numbers.number("streams", stream)) for stream in streams[:_LISTED])
            yield f"a conversation {whose}, stream {', '.join(listed)}"


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    """Yield at most SHOWN lines, then the number of the others."""
    remaining = iter(lines)
    yield from islice(remaining, SHOWN)
    if more := sum(1 for _ in remaining):
        yield f"and {more} more"
