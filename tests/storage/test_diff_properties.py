from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from cleanup import close_after_test
from command import CAPTURES
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from strength import few_captures, times

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.diff.result import Difference
from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import Event, Findings, Game, TableInfo
from kiebitz.dissectors.registry import BUILT_IN, dissector_of
from kiebitz.storage.database.schema import MEMORY, create_tables
from kiebitz.storage.diff import compare
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.timeline import sessions as sessions_of
from kiebitz.storage.recording.rows import INSERTS, empty_rows, gather


@dataclass(frozen=True)
class EventSpec:
    """An event; `game` is any number of its own, 0 outside games."""

    kind: str
    actor: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    game: int = 0
    table: int = 0


def session(
    events: Sequence[EventSpec], protocol: str = "maexchen", servers: Sequence[str] = ("127.0.0.1:9000",)
) -> Timeline:
    """Return a session in which this happens, a millisecond apart, at tables of one protocol."""
    connection = close_after_test(sqlite3.connect(MEMORY))
    create_tables(connection)
    connection.execute(
        "INSERT INTO sessions (id, name, kind, source, started_ns, kiebitz_version, continues,"
        " streams_before, games_before, messages_before, events_before)"
        " VALUES (1, 'made up', 'import', 'made up', 0, '0', 0, 0, 0, 0, 0)"
    )
    tables = [TableInfo(number, protocol, server) for number, server in enumerate(servers, 1)]
    games: dict[tuple[int, int], Game] = {}
    found: list[Event] = []
    counts = [0] * len(tables)
    for number, told in enumerate(events, 1):
        if told.game:
            game = Game(len(games) + 1, told.table + 1, protocol, f"game {told.game}", number * 10**6)
            games.setdefault((told.table, told.game), game)
        counts[told.table] += 1
        found.append(
            Event(
                number,
                told.table + 1,
                games[told.table, told.game].id if told.game else None,
                counts[told.table],
                number * 10**6,
                told.kind,
                told.actor,
                told.data,
                [],
            )
        )
    rows = empty_rows()
    gather(Findings(tables=tables, games=[*games.values()], events=found), 1, {}, rows)
    for table, statement in INSERTS.items():
        connection.executemany(statement, rows[table])
    return Timeline(connection, sessions_of(connection)[0])


PROTOCOLS = ("maexchen", "schafkopf", "catan", "okey", "cgml", "unheard")
NAMES = st.sampled_from(["alice", "bob", "carl", "1", "", "\x1b[2J"])
SCALARS = NAMES | st.integers(-1, 3) | st.booleans() | st.none()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def told(draw: st.DrawFn, protocol: str) -> EventSpec:
    """Return an event of a protocol, whose data may be anything: what is stored comes from the network."""
    dissector = dissector_of(protocol)
    kinds: dict[str, tuple[str, ...]] = {"this": ("name",), "that": ("name", "what")}
    if dissector is not None:
        kinds = {kind: known.fields for kind, known in dissector.grammar.events.items()}
    kind = draw(st.sampled_from(sorted(kinds)))
    data: dict[str, Any] = {name: draw(VALUES) for name in kinds[kind]}
    return EventSpec(kind, draw(st.none() | NAMES), data, draw(st.integers(0, 2)), draw(st.integers(0, 1)))


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Timeline, Timeline]:
    protocol = draw(st.sampled_from(PROTOCOLS))
    events = draw(st.lists(told(protocol), max_size=12))
    others = list(events)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(others)))
        match draw(st.sampled_from(["gone", "changed", "moved", "added"])):
            case "gone":
                del others[place : place + 1]
            case "changed":
                others[place : place + 1] = [draw(told(protocol))]
            case "moved":
                moved = others[place : place + 1]
                del others[place : place + 1]
                others[draw(st.integers(0, len(others))) :][:0] = moved
            case "added":
                others.insert(place, draw(told(protocol)))
    servers = ("127.0.0.1:9000", "127.0.0.1:9001")
    return session(events, protocol, servers), session(
        others, protocol, servers[:: draw(st.sampled_from([1, -1]))]
    )


@given(sessions())
def test_exchanging_the_sessions_exchanges_the_sides(pair: tuple[Timeline, Timeline]) -> None:
    a, b = pair
    assert compare(b, a) == compare(a, b).mirrored()


@pytest.mark.full
@given(sessions())
def test_a_session_and_itself_are_the_same(pair: tuple[Timeline, Timeline]) -> None:
    for timeline in pair:
        found = compare(timeline, timeline)
        assert found.equal
        assert found.same == sum(1 for _ in timeline.events())


@pytest.mark.full
@given(sessions())
def test_every_event_is_the_same_or_different_or_in_a_game_of_one_side(
    pair: tuple[Timeline, Timeline],
) -> None:
    a, b = pair
    found = compare(a, b)
    assert counted(found, 0) == sum(1 for _ in a.events())
    assert counted(found, 1) == sum(1 for _ in b.events())


def counted(found: Difference, side: int) -> int:
    """Return the number of a side's events in a difference."""
    in_games = [one for one in found.events if one.game is not None and found.games[one.game].is_unmatched]
    alone = sum(game.events[side] for game in found.games if game.is_unmatched)
    lone_tables = sum(table.events[side] for table in found.tables if table.is_unmatched)
    apart = sum(
        (one.a, one.b)[side] is not None
        for one in found.events
        if one not in in_games and one.sort != "game order"
    )
    return found.same + apart + alone + lone_tables


def rounds(*names: str) -> list[EventSpec]:
    registered = [EventSpec("registered", name, {"name": name}) for name in sorted(names)]
    return registered + [
        EventSpec(kind, name, {"name": name, "names": [name]}, game=game)
        for game, name in enumerate(names, 1)
        for kind in ("turn", "rolls", "lost")
    ]


def test_games_that_are_the_same_but_were_played_in_another_order() -> None:
    a, b = session(rounds("alice", "bob", "carl", "dora")), session(rounds("alice", "carl", "dora", "bob"))
    found = compare(a, b)
    assert [(one.sort, one.a, one.b) for one in found.events] == [("game order", 8, 14)]
    assert found.same == 16


def test_games_of_several_lobbies_may_begin_in_any_order() -> None:
    *registered, a, b, c, x, y, z = rounds("alice", "bob")
    one, other = session([*registered, a, x, b, c, y, z]), session([*registered, x, y, a, b, c, z])
    assert compare(one, other).equal


SEVERAL = [
    *sorted(path.name for path in CAPTURES.glob("*-tiny.pcap*")),
    "cgml-styles.pcap.gz",
    "okey-head-malformed.pcap.gz",
    "okey-seed-game-win.pcap.gz",
    "catan-yaks-lobby.pcap.gz",
    "catan-eisfrei-lobby.pcap.gz",
    "maexchen-head-port4711.pcap",
    "schafkopf-1.3-badcard.pcap",
]


@pytest.mark.parametrize("other", few_captures(SEVERAL))
def test_captures_exchanged_exchange_the_sides(other: str) -> None:
    b = open_session(database_of(other))
    for capture in ("okey-head-game-win.pcap.gz", "maexchen-old-20111003.pcap", "cgml-hands.pcap.gz")[
        : times(3, quick=1)
    ]:
        a = open_session(database_of(capture))
        assert compare(b, a) == compare(a, b).mirrored()


NO_NAMES = ("known_to", "others_see")


def values(name: str, value: Any, handles: IdentifierKinds) -> Iterator[tuple[str, Any, bool]]:
    handle = handles.get(name)
    if isinstance(value, dict):
        for key, part in value.items():
            yield name, key, handle is not None
            yield from values(key if handle is None else "", part, handles)
    elif isinstance(value, list):
        for part in value:
            yield from values(name, part, handles)
    else:
        yield name, value, isinstance(handle, IdentifierKind)


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_fields_that_name_a_player_have_a_handle(capture: str) -> None:
    timeline = open_session(database_of(capture))
    for table in timeline.tables():
        dissector = dissector_of(table.protocol)
        assert dissector is not None
        grammar = dissector.grammar
        events = list(timeline.events("e.table_id = ?", [table.id]))
        names = {event.actor for event in events} - {None}
        overlooked = set()
        for event in events:
            for name, part in event.data.items():
                if name not in NO_NAMES:
                    for key, value, is_known in values(name, part, grammar.data_identifiers):
                        if str(value) in names and not is_known:
                            overlooked.add((event.kind, key, value))
        for event in events[:: max(1, len(events) // 40)]:
            for key, value, is_known in values(
                "", timeline.state_at(table.id, event.seq), grammar.state_identifiers
            ):
                if str(value) in names and not is_known:
                    overlooked.add(("state", key, value))
        assert not overlooked


@pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
def test_fields_with_identifiers_belong_to_an_event(dissector: Any) -> None:
    grammar = dissector.grammar
    fields = {field for kind in grammar.events.values() for field in kind.fields}
    # Tricks of Schafkopf show the seats, Catan's map the owners, a game server of CGML has its url as its
    # name, and the names of its players are next to the fields.
    inside = {"seats", "Eigentümer", "url", CALLED}
    assert {*grammar.data_identifiers} - {"actor"} <= fields | inside
    assert {*grammar.aliases, *grammar.aliases.values()} <= {*grammar.data_identifiers}
    assert all(isinstance(handle, IdentifierKind | KeysOf) for handle in grammar.data_identifiers.values())
    assert {kind.ending for kind in grammar.events.values()} - {None} <= fields
