"""Pictures of a table: what must be seen in them, and what must not happen whatever the state says."""

from __future__ import annotations

import io
from typing import Any

import pytest
from command import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from strength import times
from terminal_scenes import drawn, event

from kiebitz.cli.options.session import open_session
from kiebitz.cli.render.text import DRAWINGS, Scene, draw
from kiebitz.cli.render.text.seating import FELT_ROWS, seating
from kiebitz.dissectors.registry import BUILT_IN

CAPTURES = ROOT / "captures"


def playing(names: list[str], **part: Any) -> dict[str, Any]:
    """A round that these names play."""
    return {
        "players": {name: {} for name in names},
        "games": {"7": {"phase": "started", "round": 12, "players": names, **part}},
    }


def test_every_protocol_has_a_drawing() -> None:
    assert set(DRAWINGS) == {dissector.protocol for dissector in BUILT_IN}


def test_protocol_without_a_drawing_shows_its_state_safely() -> None:
    picture = drawn({"name": "\x1b[2J"}, protocol="chess")
    assert '"name": "\\u001b[2J"' in picture


def test_announcement_stands_in_a_bubble_beside_a_known_bluff() -> None:
    state = playing(
        ["alice", "bob"],
        turn="bob",
        announced={"name": "alice", "dice": "6,5"},
        private={"alice": {"dice": "4,2", "bluff": True}},
    )
    picture = drawn(state)
    assert "│ 6,5 │" in picture
    assert "╭──┴──╮" in picture
    assert "a bluff: it is 4,2" in picture
    assert "▶ bob" in picture
    assert "round 12" in picture
    assert " ● " in picture


def test_roll_that_is_not_known_is_under_the_cup() -> None:
    picture = drawn(playing(["alice", "bob"], rolling="alice"))
    assert "╱  ? ?  ╲" in picture
    assert "●" not in picture


def test_what_a_gap_took_is_a_question_mark() -> None:
    state = playing(["alice", "bob"], rolling="alice", unknown=["announced", "players", "round"])
    del state["games"]["7"]["round"], state["games"]["7"]["players"]
    picture = drawn(state)
    assert "round ?" in picture
    assert "to beat: ?" in picture
    assert "? what to beat, who plays, which round" in picture


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("CAUGHT_BLUFFING", "announced 6,5 and had 4,2"),
        ("SEE_FAILED", "wanted to see, and 6,5 was true"),
        ("DID_NOT_ANNOUNCE", "did not announce in time"),
        ("ANNOUNCED_LOSING_DICE", "announced 6,5, which does not beat 1,1"),
        ("saw that the announcement was true", "saw that the announcement was true"),
    ],
)
def test_loss_is_told_in_plain_words(reason: str, told: str) -> None:
    events = [
        event(1, "announced", name="bob", dice="1,1"),
        event(2, "announced", name="alice", dice="6,5"),
        event(3, "actual_dice", dice="4,2"),
        event(4, "lost", names=["alice"], reason=reason),
    ]
    lost = playing(["alice", "bob"], lost={"names": ["alice"], "reason": reason})
    lost["games"]["7"]["phase"] = "lost"
    for state in (lost, {"players": {"alice": {}, "bob": {}}, "scores": {"alice": 0, "bob": 1}}):
        picture = drawn(state, events, width=120)
        assert "alice lost" in picture
        assert told in picture
        assert reason in picture


def test_all_but_one_lose_against_maexchen() -> None:
    lost = {"names": ["alice", "bob", "dora"], "reason": "MIA"}
    state = playing(["alice", "bob", "carl", "dora"], lost=lost)
    state["games"]["7"]["phase"] = "lost"
    assert "all but carl lost" in drawn(state, [event(1, "lost", **lost)])


def test_spectators_and_those_who_sit_out_are_named() -> None:
    state = playing(["alice", "bob"])
    state["players"]["egon"] = {"spectator": True}
    state["players"]["carl"] = {}
    state["scores"] = {"alice": 1, "carl": 4, "gone": 2}
    picture = drawn(state)
    assert "watching: egon" in picture
    assert "not in this round: carl 4, gone 2" in picture
    assert "1 point" in picture
    assert "? points" in picture


def test_names_cannot_drive_the_terminal() -> None:
    picture = drawn(playing(["a\x1b[2Jb", "x\u202ey", "line\nbreak", "z" * 2000, ""]))
    assert not {"\x1b", "\u202e"} & set(picture)
    assert all(cell_len(line) <= 80 for line in picture.splitlines())
    assert "zzz…" in picture
    assert '""' in picture


def test_ascii_terminal() -> None:
    state = playing(["alice", "bob"], announced={"name": "alice", "dice": "6,5"}, private={})
    assert drawn(state, encoding="ascii").isascii()
    assert "+--^--+" in drawn(state, encoding="ascii")


def test_one_picture_is_drawn_anew_for_each_console() -> None:
    state = playing(["alice", "bob"], announced={"name": "alice", "dice": "6,5"}, private={})
    picture = draw("maexchen", Scene(state, [], ["alice", "bob"]))
    for width in (120, 40, 80):
        out = io.StringIO()
        Console(file=out, width=width, highlight=False).print(picture)
        assert out.getvalue() == drawn(state, width=width)


def test_no_color_is_plain_and_colours_are_those_of_the_name() -> None:
    state = playing(["alice", "bob"], turn="alice")
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True, color_system="truecolor", _environ={}).print(
        draw("maexchen", Scene(state, [], ["alice", "bob"]))
    )
    assert "38;2;0;135;255" in out.getvalue()
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True, _environ={"NO_COLOR": "1", "TERM": "xterm"}).print(
        draw("maexchen", Scene(state, [], ["alice", "bob"]))
    )
    assert "38;" not in out.getvalue()
    assert "▶" in out.getvalue()


@given(st.integers(0, 60), st.integers(20, 250), st.booleans())
def test_seats_do_not_meet(players: int, width: int, top: bool) -> None:
    found = seating(players, width, top=top)
    if found is None:
        return
    assert len(found.seats) == players
    assert top or all(seat.edge != "top" for seat in found.seats)
    cells: set[tuple[int, int]] = set()
    for seat in found.seats:
        assert 0 <= seat.x <= seat.x + seat.width <= width
        for row in range(seat.y, seat.y + (1 if seat.one_line else 2)):
            assert row < found.rows
            taken = {(row, column) for column in range(seat.x, seat.x + seat.width)}
            assert not taken & cells
            cells |= taken


def test_twenty_players_sit_around_a_table_of_80_columns() -> None:
    names = [f"player{number}" for number in range(20)]
    picture = drawn(playing(names, announced={"name": "player6", "dice": "2,1"}, private={}))
    assert all(name in picture for name in names)
    seats = seating(20, 80)
    assert seats is not None
    assert len(picture.splitlines()) == seats.rows
    assert seating(2 * (3 + FELT_ROWS), 80) is not None


def test_three_sit_evenly_where_nobody_sits_at_the_top() -> None:
    found = seating(3, 80, top=False)
    assert found is not None
    assert [seat.edge for seat in found.seats] == ["right", "bottom", "left"]
    assert found.y == 0


_NAME = st.text(max_size=30) | st.sampled_from(["alice", "bob", "🎲" * 10, "日本語" * 10, "x" * 2000])
_DICE = st.sampled_from(["6,5", "2,1", "7,7", "3,-1"]) | st.text(max_size=8)


@st.composite
def scenes(draw_: st.DrawFn) -> dict[str, Any]:
    names = draw_(st.lists(_NAME, max_size=30, unique=True))
    some = st.sampled_from(names or ["?"])
    part = draw_(
        st.fixed_dictionaries(
            {"phase": st.sampled_from(["starting", "started", "lost", "canceled"])},
            optional={
                "round": st.integers(0, 10**9),
                "players": st.just(names),
                "turn": some,
                "rolling": some,
                "seer": some,
                "actual": _DICE,
                "announced": st.fixed_dictionaries({"name": some, "dice": _DICE}),
                "lost": st.fixed_dictionaries({"names": st.lists(some, max_size=5), "reason": st.text()}),
                "unknown": st.lists(st.sampled_from(["players", "round", "announced", "turn"])),
                "private": st.dictionaries(
                    some,
                    st.fixed_dictionaries(
                        {}, optional={"dice": _DICE, "bluff": st.booleans(), "joined": st.booleans()}
                    ),
                    max_size=2,
                ),
            },
        )
    )
    return {
        "players": {name: {"spectator": len(name) > 20} for name in names},
        "scores": {name: len(name) for name in names[::2]},
        "games": {"7": part} if draw_(st.booleans()) else {},
    }


@settings(deadline=None, max_examples=times(40))
@given(scenes(), st.integers(12, 140), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_any_state_is_drawn_within_its_width(state: dict[str, Any], width: int, encoding: str) -> None:
    picture = drawn(state, width=width, encoding=encoding)
    assert all(cell_len(line) <= width for line in picture.split("\n"))
    assert all(character.isprintable() or character == "\n" for character in picture)


def test_every_moment_of_a_capture_is_drawn() -> None:
    timeline = open_session(str(CAPTURES / "maexchen-head-odd.pcap"))
    for seq in range(0, timeline.recent(1, timeline.seq_upto(1, timeline.last_event()), 1)[0].seq, 5):
        picture = drawn(timeline.state_at(1, seq), timeline.recent(1, seq, 60))
        assert all(cell_len(line) <= 80 for line in picture.splitlines())
