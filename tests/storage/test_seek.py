"""Moments of a session: how they are written, and that the state at each follows from the events."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cleanup import kept_until_end
from command import ROOT
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from strength import GAMES, times

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import PUBLIC
from kiebitz.storage.read.seek import (
    END,
    Position,
    PositionError,
    SeenTable,
    first_event,
    game_at,
    last_event,
    parse_position,
    state_with_last_game,
    tables_at,
)
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.visibility import Visibility

CAPTURES = ROOT / "captures"


@pytest.fixture(scope="module")
def tiny() -> Timeline:
    with kept_until_end():
        return open_session(str(CAPTURES / "maexchen-head-tiny.pcap"))


@pytest.fixture(scope="module")
def long() -> Timeline:
    """1,235 events, six snapshots."""
    with kept_until_end():
        return open_session(str(CAPTURES / "maexchen-old-20110928-seed-tiny.pcap"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("12.5s", Position(elapsed_ns=12_500_000_000)),
        ("12.5", Position(elapsed_ns=12_500_000_000)),
        ("0", Position(elapsed_ns=0)),
        ("3.s", Position(elapsed_ns=3_000_000_000)),
        (" 0.000000001s ", Position(elapsed_ns=1)),
        ("#7", Position(event=7)),
        ("end", END),
    ],
)
def test_moment_is_read(text: str, moment: Position) -> None:
    assert parse_position(text) == moment


@pytest.mark.parametrize(
    "text", ["", "-1s", "1,5s", "nan", "inf", "7#", "#", "#1.5", "1e3", "END", "١s", "1m"]
)
def test_an_invalid_position_is_answered_with_the_syntax(text: str) -> None:
    with pytest.raises(PositionError, match=r"12\.5s .* #7 .* end"):
        parse_position(text)


@given(st.text())
def test_any_text_is_a_moment_or_a_clear_error(text: str) -> None:
    with suppress(PositionError):
        assert isinstance(parse_position(text), Position)


@pytest.mark.full
def test_state_at_every_event_follows_from_the_beginning(long: Timeline) -> None:
    state: State = {}
    assert tables_at(long, Position(elapsed_ns=0))[0].seq <= 1
    for event in long.events():
        apply(state, event.changes)
        (found,) = tables_at(long, Position(event=event.id))
        assert (found.seq, found.state) == (event.seq, state)


def test_a_time_is_the_last_event_until_then(tiny: Timeline) -> None:
    events = list(tiny.events())
    for event in events:
        elapsed_ns = event.ts_ns - tiny.started_ns
        latest = max(other.id for other in events if other.ts_ns <= event.ts_ns)
        assert last_event(tiny, Position(elapsed_ns=elapsed_ns)) == latest
        earliest = min(other.id for other in events if other.ts_ns >= event.ts_ns)
        assert first_event(tiny, Position(elapsed_ns=elapsed_ns)) == earliest
    assert last_event(tiny, Position(elapsed_ns=10**15)) == events[-1].id == last_event(tiny, END)
    assert first_event(tiny, END) == events[-1].id + 1


def test_game_that_is_over_is_shown_at_its_last_event(tiny: Timeline) -> None:
    for moment in (END, Position(elapsed_ns=10**12), Position(event=21), Position(event=26)):
        found = game_at(tiny, 1, moment)
        assert found.event is not None
        assert (found.event.id, found.event.kind) == (21, "score")
        assert list(found.state["games"]) == ["1"]
        assert found.state["games"]["1"]["lost"] == {"names": ["alice"], "reason": "ANNOUNCED_LOSING_DICE"}
        assert found.state["scores"] == {"alice": 0, "bob": 1, "carl": 1, "dora": 1}


def test_game_before_it_began_is_reported_when_it_is_on(tiny: Timeline) -> None:
    with pytest.raises(PositionError, match=r"game 2 .* from 1\.401s \(#22\) to 1\.404s \(#26\)"):
        game_at(tiny, 2, Position(event=21))
    with pytest.raises(PositionError, match=r"no game 3 .* games 1 to 2"):
        game_at(tiny, 3, END)
    with pytest.raises(PositionError, match=r"no event #27 .* #1 to #26"):
        tables_at(tiny, Position(event=27))


def test_every_game_ends_with_its_result(long: Timeline) -> None:
    for game in long.games():
        part = game_at(long, game.id, END).state["games"].get(str(game.id), {})
        if game.result is not None and "losers" in game.result:
            assert part["lost"] == {"names": game.result["losers"], "reason": game.result["reason"]}
        elif game.result is not None:
            assert part["phase"] == "canceled"


def test_states_in_passing_are_those_of_their_moments(long: Timeline) -> None:
    events = list(long.events("e.id BETWEEN 190 AND 420"))
    for event in (*events, *events[::-7], *events[::90]):
        assert long.passing_state(event.table_id, event.seq) == long.state_at(event.table_id, event.seq)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("game", GAMES)
def test_step_by_step_a_viewer_sees_the_states_that_single_queries_find(game: str) -> None:
    with kept_until_end():
        timeline = open_session(database_of(GAMES[game]))
    visibility, alone = Visibility(timeline), Visibility(timeline)
    for viewer in (None, PUBLIC, *visibility.labels()[: times(8, 1)]):
        for table in timeline.tables():
            first, last = timeline.first_seq(table.id), min(timeline.last_seq(table.id), 150)
            for start in {first, (first + last) // 2}:
                followed = SeenTable(visibility, viewer, table.id, start)
                for event in timeline.events_between(table.id, start, last):
                    seen, state = followed.step(event), followed.state_with_last_game()
                    whole = alone.state(viewer, table.id, event.seq)
                    expected = state_with_last_game(alone, viewer, table.id, event.seq, whole)
                    assert (event.seq, state) == (event.seq, expected)
                    assert (seen is None) == (alone.seen(event, viewer) is None)
