"""Pictures of tables on a terminal: recorded games as they look, seats, colours, widths and letters."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from command import kiebitz
from game_scenes import cgml, maexchen, okey, schafkopf
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from rich.cells import cell_len
from rich.console import Console
from strength import times
from terminal_scenes import drawn

from kiebitz.cli.options.session import open_session
from kiebitz.cli.render.text import draw
from kiebitz.cli.render.text.seating import FELT_ROWS, seating
from kiebitz.cli.spectator.view import SpectatorView
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import PACK as CGML_PACK
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST
from kiebitz.dissectors.protocols.schafkopf.cards import PACK

HUMANS, HANDS, OKEY = "schafkopf-1.3-2humans.pcap", "cgml-hands.pcap.gz", "okey-head-game-win.pcap.gz"


def picture(game: str, state: dict[str, Any], events: list[Event] | None = None, **how: Any) -> str:
    """Return a picture without the blanks at the ends of its lines: some are the edges of a hand."""
    return "\n".join(map(str.rstrip, drawn(state, events, protocol=game, **how).split("\n")))


# Recorded games.


@pytest.mark.parametrize(
    ("capture", "game", "told"),
    [
        (HUMANS, "2", r"  Sauspiel Eichel  .*\n.* Bärbel and \[BOT\]-0 .*\n.*  lost  "),
        (OKEY, "1", r" pascal  .*\n.*  has won  "),
        (HANDS, "1", r" robot Karel and .*\n.* robot Emil &… won "),
    ],
)
def test_replay_of_a_game_ends_with_its_outcome(
    capture: str, game: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    replayed = kiebitz("replay", database_of(capture), "--game", game, "--speed", "0").out
    last = replayed[replayed.rindex("game " + game) :]
    assert re.search(told, last)
    assert "▶" not in last


@pytest.mark.full
@pytest.mark.parametrize(
    ("capture", "step", "places"),
    [
        (HUMANS, 4, [r"│ (▶ )?Jürgen Groß$", r"╰────.*\n(?s:.*)^ {17,}(▶ )?Bärbel"]),
        (OKEY, 1, [r"^ +(▶ )?pascal · .*1?\d tiles$", r"╰─{44}╯(?s:.*)^ +(▶ )?boran · 1\d tiles$"]),
        (HANDS, 9, [r"^ +(▶ )?wampaire ╭─+ group 5 · hand \d+ ─+╮ (▶ )?robot Karel$"]),
    ],
)
def test_every_moment_is_drawn_and_players_keep_their_places(
    capture: str, step: int, places: list[str]
) -> None:
    timeline = open_session(database_of(capture))
    spectator_view = SpectatorView(timeline, None)
    pictures = 0
    for game in timeline.games():
        span = timeline.span(game.id)
        assert span is not None
        for seq in range(span[0].seq + 2, span[1].seq, step * times(1, 3)):
            out = io.StringIO()
            state, events = timeline.state_at(game.table_id, seq), timeline.recent(game.table_id, seq, 60)
            Console(file=out, width=80, highlight=False).print(
                spectator_view.picture(game.table_id, state, events)
            )
            assert all(cell_len(line) <= 80 for line in out.getvalue().splitlines())
            for place in places if "╭" in out.getvalue() else ():
                assert re.search(place, out.getvalue(), re.MULTILINE), out.getvalue()
            pictures += 1
    assert pictures > times(60, 20)


# Letters and colours.


@pytest.mark.full
@pytest.mark.parametrize(
    ("game", "states"),
    [
        ("schafkopf", [schafkopf(private={"Anna": {"hand": [card]}}) for card in PACK]),
        ("cgml", [cgml(private={"1": {"hand": [card]}}) for card in CGML_PACK]),
        (
            "okey",
            [
                okey(private={"Anna": {"deck": [f"{number}:{colour}"]}})
                for number in range(1, HIGHEST + 1)
                for colour in COLOURS
            ],
        ),
    ],
)
def test_all_pieces_are_distinct_in_unicode_and_ascii(game: str, states: list[dict[str, Any]]) -> None:
    for encoding in ("utf-8", "ascii"):
        assert len({picture(game, state, encoding=encoding) for state in states}) == len(states)


def test_one_picture_is_drawn_again_for_each_console() -> None:
    state = maexchen("alice", "bob", announced={"name": "alice", "dice": "6,5"})
    made = draw("maexchen", Scene(state, [], ["alice", "bob"]))
    for width in (120, 40, 80):
        out = io.StringIO()
        Console(file=out, width=width, highlight=False).print(made)
        assert out.getvalue() == drawn(state, width=width)


def test_colours_are_those_of_the_names_and_no_color_is_plain() -> None:
    for seats in (["Anna", "Bert", "x", "y"], ["Bert", "x", "y", "Anna"]):
        out = io.StringIO()
        console = Console(file=out, width=80, force_terminal=True, color_system="truecolor", _environ={})
        console.print(draw("schafkopf", Scene(schafkopf(seats=seats), [], ["Anna", "Bert"])))
        # Rich remembers how it wrote a style first, perhaps in another test to a terminal of 256 colours.
        assert re.search(r"\x1b\[38;(2;0;135;255|5;33)mAnna", out.getvalue())
        assert re.search(r"\x1b\[38;(2;215;95;0|5;166)mBert", out.getvalue())
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True, _environ={"NO_COLOR": "1", "TERM": "xterm"}).print(
        draw("maexchen", Scene(maexchen("alice", "bob", turn="alice"), [], ["alice", "bob"]))
    )
    assert "38;" not in out.getvalue()
    assert "▶" in out.getvalue()


# Where players sit.


@given(st.integers(0, 60), st.integers(20, 250), st.booleans())
def test_seats_do_not_meet(players: int, width: int, top: bool) -> None:
    found = seating(players, width, top=top)
    if found is None:
        return
    assert len(found.places) == players
    assert top or all(place.edge != "top" for place in found.places)
    cells: set[tuple[int, int]] = set()
    for place in found.places:
        assert 0 <= place.x <= place.x + place.width <= width
        for row in range(place.y, place.y + (1 if place.one_line else 2)):
            assert row < found.rows
            taken = {(row, column) for column in range(place.x, place.x + place.width)}
            assert not taken & cells
            cells |= taken


def test_twenty_players_sit_around_a_table_of_80_columns() -> None:
    names = [f"player{number}" for number in range(20)]
    seen = drawn(maexchen(*names, announced={"name": "player6", "dice": "2,1"}))
    assert all(name in seen for name in names)
    seats = seating(20, 80)
    assert seats is not None
    assert len(seen.splitlines()) == seats.rows
    assert seating(2 * (3 + FELT_ROWS), 80) is not None


def test_three_players_are_spaced_evenly() -> None:
    found = seating(3, 80, top=False)
    assert found is not None
    assert [place.edge for place in found.places] == ["right", "bottom", "left"]
    assert found.y == 0
