"""Pictures of an Okey table: of two real games, and what must not happen whatever the state says."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ROOT, kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from stored import stored
from strength import times
from terminal_scenes import drawn, event

from kiebitz.cli.options.session import open_session
from kiebitz.cli.spectator.view import Onlooker
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST

SEED = str(CAPTURES / "okey-seed-game-win.pcap.gz")
HEAD = str(CAPTURES / "okey-head-game-win.pcap.gz")
LOBBIES = str(CAPTURES / "okey-seed-lobby.pcap.gz")
NAMES = ["Anna", "Bert", "Carl", "Dora"]
TILES = [f"{number}:{colour}" for number in range(HIGHEST + 1) for colour in COLOURS]


def picture(state: dict[str, Any], events: list[Event] | None = None, **how: Any) -> str:
    """A picture without the blanks at the ends of its lines: some are the edges of a rack."""
    return "\n".join(map(str.rstrip, drawn(state, events, protocol="okey", **how).split("\n")))


def playing(names: list[str] = NAMES, **part: Any) -> dict[str, Any]:
    """A game in which it is Bert's turn and nobody's rack was seen."""
    return {
        "players": {name: {"lobby": 5} for name in names},
        "lobbies": {"5": {"players": names, "ready": names}},
        "games": {
            "7": {
                "lobby": 5,
                "seats": {str(seat): {"name": name, "tiles": 14} for seat, name in enumerate(names)},
                "exchange": ["1:RED", "12:BLUE", None, "0:YELLOW"],
                "turn": 1,
                **part,
            }
        },
    }


def shown(*arguments: str) -> str:
    return "\n".join(map(str.rstrip, kiebitz("state", *arguments).out.split("\n")))


# Real games.


def test_tile_just_drawn_as_everybody_together_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        shown(HEAD, "--at", "#20")
        == """\
Okey  127.0.0.1:8090  game 1  0.554s  #20
                               pascal · 14 tiles
                 4r  9r  3k  6r  5b 11r  8b  1b 13r 13y  1r  9r
                 1k  5y  ·   ·   ·   ·   ·   ·   ·   ·   ·   ·
        ▶ istref ╭───────────────── lobby 1 ──────────────────╮ robin
        13b  7r  │ ╭─────╮          ╭─────╮           ╭─────╮ │   2b  5k
         9b  3b  │ │  ·  │          │ ▒▒▒ │           │  ·  │ │   6y 12k
         8b[ 4y] │ ╰─────╯          ╰─────╯           ╰─────╯ │  12b  ·
        12k  ·   │ for pascal      main stack       for robin │   4k  ·
         7y  ·   │                                            │  11y  ·
        12r  ·   │               istref's turn                │   2k  ·
         2k  ·   │               to put a tile                │   2b  ·
         3k  ·   │                                            │  13y  ·
         7k  ·   │ for istref                       for boran │   6r  ·
         8r  ·   │ ╭─────╮                            ╭─────╮ │   7r  ·
         7k  ·   │ │  4y │                            │  ·  │ │   4y  ·
        10b  ·   │ ╰─────╯                            ╰─────╯ │   9k  ·
        15 tiles ╰────────────────────────────────────────────╯ 14 tiles
                 8k 10r  ·   6y  9y 12b  3y 11y  2r  8y  5k  6k
                10b  9y  6k  ·   ·   ·   ·   ·   ·   ·   ·   ·
                                boran · 14 tiles
tiles: r red, b blue, y yellow, k black, ★ joker, [ ] just drawn
istref draws yellow 4 from the left stack
"""
    )


def test_as_one_player_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        shown(SEED, "--at", "0.7s", "--as", "boran")
        == """\
Okey  127.0.0.1:8090  game 1  0.693s  #39

                               pascal · 14 tiles
                                 ▒▒▒▒▒▒▒▒▒▒▒▒▒▒
        ▶ istref ╭───────────────── lobby 1 ──────────────────╮ robin
  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒ │ ╭─────╮          ╭─────╮           ╭─────╮ │ ▒▒▒▒▒▒▒▒▒▒▒▒▒▒
        14 tiles │ │  ·  │          │ ▒▒▒ │           │  ·  │ │ 14 tiles
                 │ ╰─────╯          ╰─────╯           ╰─────╯ │
                 │ for pascal      main stack       for robin │
                 │                                            │
                 │               istref's turn                │
                 │               to draw a tile               │
                 │                                            │
                 │ for istref                       for boran │
                 │ ╭─────╮                            ╭─────╮ │
                 │ │  5r │                            │  2r │ │
                 │ ╰─────╯                            ╰─────╯ │
                 ╰────────────────────────────────────────────╯
                 ★   ★   1r  3r  3r  9r  ·  11r 13r 13b  2y 10y
                 4k 13k  4b  ·   ·   ·   ·   ·   ·   ·   ·   ·
                                boran · 14 tiles
tiles: r red, b blue, y yellow, k black, ★ joker, [ ] just drawn
it is istref's turn; exchange stacks: red 2, red 5, –, –
"""
    )


def test_lobbies_before_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        shown(LOBBIES, "--at", "0.282s")
        == """\
Okey  127.0.0.1:8091  0.281s  #17
lobby -5, 1 of 4: pascal
lobby 3, 1 of 4: Zoë_1
lobby 42, 4 of 4: has space, Zoë, q"uote, back\\slash
Robin_Hood is now called back\\slash
"""
    )
    assert (
        shown(HEAD, "--at", "#10")
        == """\
Okey  127.0.0.1:8090  0.374s  #10
lobby 1, 4 of 4: boran (ready), istref (ready), pascal, robin
istref is ready
"""
    )
    assert "in no lobby: istref, pascal, robin\n" in shown(HEAD, "--at", "#5")


def test_whoever_is_gone_without_a_logout_is_not_shown() -> None:
    assert "#27\nnobody is here\n" in shown(LOBBIES)


def test_replay_of_a_game_ends_with_its_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    replayed = kiebitz("replay", HEAD, "--game", "1", "--speed", "0").out
    last = replayed[replayed.index("Okey  127") :]
    assert re.search(r" pascal has won ", last)
    assert "turn" not in last
    assert "★" in last


@pytest.mark.parametrize("capture", [SEED, HEAD])
def test_every_moment_of_a_game_is_drawn_and_everybody_keeps_his_place(capture: str) -> None:
    timeline = open_session(capture)
    onlooker = Onlooker(timeline, None)
    last = timeline.span(1)
    assert last is not None
    for seq in range(last[0].seq, last[1].seq + 1):
        out = io.StringIO()
        console = Console(file=out, width=80, highlight=False)
        console.print(onlooker.picture(1, timeline.state_at(1, seq), timeline.recent(1, seq, 60)))
        seen = out.getvalue()
        assert all(cell_len(line) <= 80 for line in seen.splitlines())
        above, _, below = re.split("[╭╰]─+(?: lobby 1 )?─+[╮╯]", re.sub("[╭╰]─{5}[╮╯]", "", seen))
        assert re.search(r"^ +(▶ )?pascal · [1?]\d? tiles$", above, re.MULTILINE)
        assert re.search(r"^ +(▶ )?boran · 1\d tiles$", below, re.MULTILINE)


# What is going on.


@pytest.mark.parametrize(
    ("part", "events", "told"),
    [
        ({}, [], "Bert's turn\nto draw a tile"),
        ({"seats": {"1": {"name": "Bert", "tiles": 15}}}, [], "Bert's turn\nto put a tile"),
        ({"seats": {"1": {"name": "Bert"}}}, [], "Bert's turn"),
        ({"seats": {}}, [], "seat 1's turn"),
        ({"turn": None, "seats": {"3": {"name": "Dora", "tiles": 15}}}, [], "Dora's turn\nto put a tile"),
        ({"turn": None}, [], "whose turn?"),
        ({}, [event(1, "put", seat=1, tile="0:RED", valid=True)], "Bert\nhas put ★"),
        ({}, [event(1, "put", seat=1, tile="10:BLACK", valid=True)], "Bert\nhas put 10k"),
        ({}, [event(1, "put", seat=1, tile=None, valid=True)], "Bert\nhas put ?"),
        ({}, [event(1, "put", seat=1, tile="1:RED", valid=False)], "Bert's turn\nto draw a tile"),
        ({"winner": "Carl"}, [], "Carl has won"),
        ({"drawn_game": True}, [], "nobody has won\nthe main stack is empty"),
    ],
)
def test_story(part: dict[str, Any], events: list[Event], told: str) -> None:
    state = playing(**part)
    state["games"]["7"] = {key: value for key, value in state["games"]["7"].items() if value is not None}
    listed = picture(state, events, width=40).split("\n")
    assert listed[: 2 + told.count("\n")] == ["lobby 5", *told.split("\n")]
    around = picture(state, events)
    assert all(re.search(rf"│ .*{re.escape(line)} .*│", around) for line in told.split("\n"))
    assert ("▶" in around) == ("turn" in told and "?" not in told)


def test_empty_main_stack_has_no_back() -> None:
    assert "│ ▒▒▒ │" in picture(playing())
    assert "│ ▒▒▒ │" not in picture(playing(drawn_game=True))


def test_a_stack_lies_between_the_player_who_puts_and_the_one_who_draws() -> None:
    lines = picture(playing()).split("\n")

    def place(words: str) -> tuple[bool, bool]:
        """Whether words stand in the upper half, and in the left half."""
        row = next(number for number, line in enumerate(lines) if words in line)
        return row < len(lines) / 2, lines[row].index(words) < 40

    # Anna sits at the bottom, Bert at the left, Carl at the top, Dora at the right.
    assert place("for Bert") == place("│ 12b │") == (False, True)
    assert place("for Carl") == (True, True)
    assert place("for Dora") == place("│  ★  │") == (True, False)
    assert place("for Anna") == place("│  1r │") == (False, False)


# Racks.


def test_gaps_stay_and_a_rack_has_24_places() -> None:
    deck = ["1:RED", None, "13:BLACK", *[None] * 9, None, "4:YELLOW"]
    at_the_bottom = picture(playing(private={"Anna": {"deck": deck}})).split("\n")
    assert "  1r  ·  13k  ·   ·   ·   ·   ·   ·   ·   ·   ·" in at_the_bottom[-5]
    assert "  ·   4y  ·   ·   ·   ·   ·   ·   ·   ·   ·   ·" in at_the_bottom[-4]
    on_end = picture(playing(private={"Anna": {"deck": []}, "Bert": {"deck": deck}})).split("\n")
    assert [line[8:16].strip() for line in on_end[4:8]] == ["1r  ·", "·   4y", "13k  ·", "·   ·"]


@pytest.mark.parametrize("player", NAMES)
def test_tile_just_drawn_is_in_brackets(player: str) -> None:
    private = {player: {"deck": ["1:RED", "5:BLUE", "5:BLUE"], "drawn": "5:BLUE"}}
    assert picture(playing(private=private)).count("[ 5b]") == 1
    private[player]["drawn"] = "9:RED"
    assert re.search(r"\[[ \d]", picture(playing(private=private)).replace("[ ]", "")) is None


def test_first_rack_that_is_known_is_at_the_bottom() -> None:
    seen = picture(playing(private={"Carl": {"deck": ["1:RED"]}}))
    assert "Carl · 14 tiles\ntiles: " in seen.replace(" " * 32, "")
    assert seen.count("▒" * 14) == 3


def test_all_tiles_can_be_told_apart_in_unicode_and_ascii() -> None:
    for encoding in ("utf-8", "ascii"):
        seen = {picture(playing(private={"Anna": {"deck": [tile]}}), encoding=encoding) for tile in TILES}
        # The jokers' colours mean nothing.
        assert len(seen) == len(TILES) - len(COLOURS) + 1


@pytest.mark.parametrize(
    ("terminal", "tiles"),
    [
        (
            {"FORCE_COLOR": "3"},
            ["38;2;215;0;0;48;2;255;255;215m 4r", "38;2;0;0;0;48;2;255;255;215m12k"],
        ),
        (
            {"FORCE_COLOR": "2"},
            ["38;5;160;48;5;230m 4r", "38;5;16;48;5;230m12k", "38;5;20;48;5;230m 5b"],
        ),
        ({"NO_COLOR": "1"}, [" 4r", "12k", " 5b", " 5y"]),
    ],
)
def test_tiles_are_coloured_and_ivory(terminal: dict[str, str], tiles: list[str]) -> None:
    # A process of its own, since rich keeps the codes of a style for the first terminal that it sees.
    seen = subprocess.run(
        [sys.executable, "-m", "kiebitz", "state", stored(Path(HEAD).name), "--at", "#20"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", "FORCE_COLOR": "1", **terminal},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert all(tile in seen for tile in tiles)
    assert ("38;" in seen) == ("NO_COLOR" not in terminal)


# Several games, and who else is there.


def test_game_of_the_latest_event_is_drawn_and_the_others_are_named() -> None:
    state = playing()
    state["games"]["12"] = {"lobby": -3, "seats": {"0": {"name": "Emil", "tiles": 15}}}
    state["players"] |= {"Emil": {"lobby": -3}, "Fritz": {}}
    newest = picture(state)
    assert "─ lobby -3 ─" in newest
    assert "other games: lobby 5\n" in newest
    followed = picture(state, [event(1, "status"), Event(2, 1, None, 2, 2, "chat", None, {}, [])])
    assert "─ lobby 5 ─" in followed
    assert "not in this game: Emil (lobby -3), Fritz\n" in followed
    assert "other games: lobby -3\n" in followed


def test_many_lobbies() -> None:
    lobbies = {str(number): {"players": [f"p{number}", None, None, None]} for number in range(-2, 30)}
    seen = picture({"lobbies": lobbies, "players": {"p0": {"lobby": 0}, "late": {}}}).split("\n")
    assert seen[0] == "lobby -2, 1 of 4: p-2"
    assert seen[11:] == ["lobby 9, 1 of 4: p9", "and 20 more lobbies", "in no lobby: late", ""]


# Whatever the state says.


def test_nothing_known() -> None:
    assert picture({}) == "nobody is here\n"
    seen = picture({"games": {"7": {"seats": {}}}})
    assert "lobby ?" in seen
    assert "not known: names, exchange stacks" in seen
    assert "whose turn?" in seen
    assert all(f"for seat {seat}" in seen for seat in range(4))
    assert seen.count("? tiles") == 4
    assert seen.count("│  ?  │") == 4


def test_ascii_terminal() -> None:
    seen = picture(playing(private={"Anna": {"deck": ["0:RED", None]}}), encoding="ascii")
    assert seen.isascii()
    assert "> Bert" in seen
    assert "  *   - " in seen
    assert "| 12b |" in seen
    assert "#" * 14 in seen


@pytest.mark.parametrize("width", [80, 40])
def test_names_cannot_drive_the_terminal(width: int) -> None:
    names = ["a\x1b[2Jb", "x\u202ey", "日本語" * 20, "z" * 5000]
    state = playing(names, turn=2)
    for seen in (picture(state, width=width), picture({**state, "games": {}}, width=width)):
        assert not {"\x1b", "\u202e"} & set(seen)
        assert r"a\x1b[2Jb" in seen
        assert all(cell_len(line) <= width for line in seen.splitlines())


_NAMES = st.lists(
    st.text(max_size=30) | st.sampled_from(["Anna", "🎲" * 10, "日本語" * 10, "x" * 5000]),
    min_size=4,
    max_size=4,
    unique=True,
)
_TILES = st.none() | st.sampled_from(TILES)


@st.composite
def scenes(draw_: st.DrawFn) -> tuple[dict[str, Any], list[Event]]:
    names = draw_(_NAMES)
    some = st.sampled_from(names)
    own = st.fixed_dictionaries(
        {}, optional={"deck": st.lists(_TILES, max_size=25), "drawn": st.sampled_from(TILES)}
    )
    seats = st.fixed_dictionaries({}, optional={"name": some, "tiles": st.integers(0, 25)})
    part = draw_(
        st.fixed_dictionaries(
            {},
            optional={
                "lobby": st.integers(-(2**31), 2**31 - 1),
                "exchange": st.lists(_TILES, min_size=4, max_size=4),
                "seats": st.dictionaries(st.sampled_from("0123"), seats),
                "turn": st.integers(0, 3),
                "winner": some,
                "drawn_game": st.just(True),
                "private": st.dictionaries(some, own, max_size=4),
            },
        )
    )
    state = {
        "players": {name: {"lobby": 2} if len(name) < 9 else {} for name in names[1:]},
        "lobbies": {"2": {"players": names, "ready": names[2:]}},
        "games": {"7": part} if draw_(st.booleans()) else {},
    }
    put = st.builds(
        lambda tile, valid: event(1, "put", seat=3, tile=tile, valid=valid), _TILES, st.booleans()
    )
    return state, draw_(st.lists(put, max_size=1))


@settings(deadline=None, max_examples=times(40))
@given(scenes(), st.integers(12, 140), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_any_state_is_drawn_within_its_width(
    scene: tuple[dict[str, Any], list[Event]], width: int, encoding: str
) -> None:
    seen = picture(*scene, width=width, encoding=encoding)
    assert all(cell_len(line) <= width for line in seen.split("\n"))
    assert all(character.isprintable() or character == "\n" for character in seen)
