"""Pictures of a Schafkopf table: two of a real round, and what must not happen whatever the state says."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
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
from kiebitz.cli.render.text import Scene, draw
from kiebitz.cli.render.text.schafkopf_words import cards_left, seat_to_move, sorted_hand
from kiebitz.cli.spectator.view import Onlooker
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.schafkopf.cards import MODI, PACK
from kiebitz.dissectors.protocols.schafkopf.words import mode_words

HUMANS = str(CAPTURES / "schafkopf-1.3-2humans.pcap")
SEATS = ["Anna", "Bert", "[BOT]-0", "[BOT]-1"]


def picture(state: dict[str, Any], events: list[Event] | None = None, **how: Any) -> str:
    return drawn(state, events, protocol="schafkopf", **how)


def playing(**part: Any) -> dict[str, Any]:
    """A round that has been seen from its beginning, before its first card."""
    return {
        "players": {"Anna": {"here": True}, "Bert": {"here": True}},
        "accounts": {"Anna": 1000, "Bert": -74335},
        "stock": 40,
        "games": {
            "7": {
                "round": 3,
                "phase": "playing",
                "seats": SEATS,
                "mode": "SAUSPIELgras",
                "player": "Bert",
                "kontra": [],
                "unknown": ["partner"],
                **part,
            }
        },
    }


def trick(number: int, seats: list[int], *cards: str, winner: str | None, points: int) -> dict[str, Any]:
    return {
        "number": number,
        "cards": list(cards),
        "seats": seats,
        "leader": SEATS[seats[0]],
        "winner": winner,
        "points": points,
    }


TRICK = trick(
    1, [1, 2, 3, 0], "HERZ SAU", "HERZ NEUN", "EICHEL UNTER", "HERZ KONIG", winner="[BOT]-1", points=17
)
ON_TABLE = {"1": "HERZ SAU", "2": "HERZ NEUN", "3": "EICHEL UNTER", "0": "HERZ KONIG"}


# A real round.


def test_trick_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        kiebitz("state", HUMANS, "--at", "13s").out
        == """\
Schafkopf  127.0.0.1:35555  game 1  12.458s  #61
                               [BOT]-1 · knocked
                                   27 points
                                  ▒▒▒ 3 cards
                 ╭──────────── round 1 · stock 0 ─────────────╮
                 │                                            │
         [BOT]-0 │                                            │ Jürgen Groß
        0 points │                                            │ account 1000
     ▒▒▒ 3 cards │               Solo Schellen    ╭─────────╮ │ 43 points
                 │                  trick 4       │ ♠ 10    │ │ ♠9 ♥10
                 │                                ╰─────────╯ │
                 │                ╭─────────╮                 │
                 │                │ ♦ Ober  │                 │
                 │                ╰─────────╯                 │
                 ╰──── ♣ Eichel ♠ Gras ♥ Herz ♦ Schellen ─────╯
                                     ♦9 ♥S
                                 Bärbel · plays
                            account 1000 · 0 points
trick 3: 18 points for Jürgen Groß: ♠O ♦S ♥U ♦U
Bärbel plays Schellen-Ober
"""
    )


def test_trick_that_is_over_as_one_player_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        kiebitz("state", HUMANS, "--at", "#127", "--as", "Jürgen Groß").out
        == """\
Schafkopf  127.0.0.1:35555  game 2  21.765s  #127
                                    [BOT]-0
                                    0 points
                                 ▒▒▒▒▒ 5 cards
                 ╭──────────── round 2 · stock 0 ─────────────╮
                 │                ╭─────────╮                 │
        ▶ Bärbel │                │ ♦ Unter │                 │ [BOT]-1
  plays, knocked │                ╰─────────╯                 │ 0 points
    account 1000 │ ╭─────────╮  Sauspiel Eichel   ╭─────────╮ │ ▒▒▒▒▒ 5 cards
       10 points │ │ ♣ Ober  │ trick 1: 10 points │ ♠ Unter │ │
   ▒▒▒▒▒ 5 cards │ ╰─────────╯     for Bärbel     ╰─────────╯ │
                 │                ╭─────────╮                 │
                 │                │ ♦ Ober  │                 │
                 │                ╰─────────╯                 │
                 ╰──── ♣ Eichel ♠ Gras ♥ Herz ♦ Schellen ─────╯
                                ♣U ♥10 ♣K ♣9 ♦10
                              Jürgen Groß · Kontra
                            account 1150 · 0 points
partner not known yet
trick 1: 10 points for Bärbel: ♣O ♦U ♠U ♦O
it is Bärbel's turn
"""
    )


def test_replay_of_a_round_ends_with_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    replayed = kiebitz("replay", HUMANS, "--game", "2", "--speed", "0").out
    last = replayed[replayed.index("Schafkopf  127") :]
    assert re.search(r"  Sauspiel Eichel  .*\n.* Bärbel and \[BOT\]-0 .*\n.*  lost  ", last)
    assert "63 points" in last
    assert "cards" not in last


def test_every_moment_of_a_capture_is_drawn_and_everybody_keeps_his_place() -> None:
    timeline = open_session(HUMANS)
    onlooker = Onlooker(timeline, None)
    end = timeline.recent(1, timeline.seq_upto(1, timeline.last_event()), 1)[0].seq
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False)
    for seq in range(3, end, 4):
        console.print(onlooker.picture(1, timeline.state_at(1, seq), timeline.recent(1, seq, 60)))
    pictures = out.getvalue().split("Schafkopf  127")[1:]
    assert len(pictures) > 100
    for each in pictures:
        assert all(cell_len(line) <= 80 for line in each.splitlines())
        assert re.search(r"│ (▶ )?Jürgen Groß$", each, re.MULTILINE)
        below = each[each.rindex("\n                 ╰────") :]
        assert re.search(r"^ {17,}(▶ )?Bärbel", below, re.MULTILINE)


# Marks.


def test_partner_is_marked_as_soon_as_somebody_knows() -> None:
    nobody = picture(playing())
    assert "partner not known yet" in nobody
    secret = picture(playing(private={"[BOT]-1": {"partner": True}}))
    assert "secret partner" in secret
    assert "not known" not in secret
    known = picture(playing(partner="[BOT]-1", unknown=[], private={"[BOT]-1": {"partner": True}}))
    assert "secret" not in known
    assert "not known" not in known
    assert "partner" in known


def test_bids_and_knocks() -> None:
    bidding = playing(
        phase="bidding",
        private={"Anna": {"bid": "NICHTS"}, "Bert": {"bid": "SOLOherzDU"}},
        best_bid="SOLOherzDU",
        knocks=["Anna"],
        turn="[BOT]-0",
    )
    del bidding["games"]["7"]["mode"], bidding["games"]["7"]["player"]
    seen = picture(bidding)
    assert "Anna · passes, knocked" in seen
    assert re.search(r" bids Solo Herz │.*\n +du │", seen)
    assert re.search(r"best bid: .*\n.* Solo Herz du ", seen)
    assert "account -74335" in seen
    assert "round 3 · stock 40" in seen
    assert "▶ [BOT]-0" in seen
    assert "not known" not in seen


def test_three_cards_come_first_and_the_others_later() -> None:
    hand = {"Anna": {"hand": ["HERZ SAU", "GRAS OBER", "EICHEL NEUN"]}}
    assert "♠O ♥S ♣9\n" in picture(playing(phase="dealing", private=hand))
    assert "♠O ♥S ♣9 ▒▒▒\n" in picture(playing(phase="bidding", private=hand))


def test_nobody_is_to_move_between_a_card_and_the_next_turn() -> None:
    def to_move(**part: Any) -> int | None:
        return seat_to_move({"phase": "playing", **part}, SEATS)

    assert to_move(turn="Anna") == 0
    assert to_move(turn="Anna", trick=1, table={"0": "HERZ SAU"}) is None
    assert to_move(turn="Bert", trick=1, table={"0": "HERZ SAU"}) == 1
    assert to_move(turn="Anna", trick=1, table=ON_TABLE, tricks=[TRICK]) is None
    assert to_move(turn="[BOT]-1", trick=1, table=ON_TABLE, tricks=[TRICK]) == 3
    # The server lets somebody go on who has not taken the trick.
    assert to_move(turn="Bert", trick=1, table=ON_TABLE, tricks=[TRICK]) == 1
    assert to_move(phase="over", turn="Anna") is None
    assert to_move(turn="nobody here") is None


def test_cards_left_are_those_not_played() -> None:
    def left(**part: Any) -> list[int | None]:
        return [cards_left({"phase": "playing", "mode": "WENZ", **part}, seat) for seat in range(4)]

    points = {"Anna": 0}
    assert left() == [6, 6, 6, 6]
    assert left(trick=1, table={"1": "HERZ SAU"}) == [6, 5, 6, 6]
    assert left(trick=1, table=ON_TABLE, tricks=[TRICK], points=points) == [5, 5, 5, 5]
    assert left(trick=2, table={"3": "GRAS SAU"}, tricks=[TRICK], points=points) == [5, 5, 5, 4]
    # What came before these tricks was not seen.
    assert left(trick=1, table=ON_TABLE, tricks=[TRICK]) == [None] * 4


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([event(1, "round_ended", reason="not played")], "not played"),
        ([event(1, "round_ended", reason="broken off")], "broken off"),
        ([event(1, "round_ended", reason="played")], "the round is over"),
        ([event(1, "round_ended", reason="played"), event(2, "won", names=["Bert"])], "Bert won"),
        ([event(2, "lost", names=["Bert", "Anna"])], "Bert and Anna lost"),
        ([], "the round is over"),
    ],
)
def test_end_of_a_round(events: list[Event], told: str) -> None:
    for width in (80, 40):
        assert told in picture(playing(phase="over"), events, width=width)


def test_who_has_left_and_who_sits_out() -> None:
    state = playing()
    state["players"] |= {"Bert": {}, "Emil": {"here": True}, "Früher": {}}
    seen = picture(state)
    assert re.search(r" Bert │.*\n has left, plays │", seen)
    assert "not in this round: Emil\n" in seen
    assert "left: Früher\n" in seen


# Modes and cards.


def test_every_mode_has_words() -> None:
    assert [mode_words(name) for name in ("SAUSPIELgras", "SOLOherzDU", "WENZdu", "SI", "NICHTS")] == [
        "Sauspiel Gras",
        "Solo Herz du",
        "Wenz du",
        "Si",
        "Nichts",
    ]
    assert all(re.fullmatch(r"[A-Z][a-z]+( [A-Z][a-z]+)?( du)?", mode_words(name)) for name in MODI)


def test_hand_is_sorted_by_the_mode() -> None:
    hand = ["HERZ NEUN", "GRAS SAU", "EICHEL UNTER", "HERZ OBER", "GRAS ZEHN"]
    assert sorted_hand(hand, None)[:3] == ["HERZ OBER", "EICHEL UNTER", "HERZ NEUN"]
    assert sorted_hand(hand, "SOLOgras")[2:] == ["GRAS SAU", "GRAS ZEHN", "HERZ NEUN"]
    assert sorted_hand(hand, "WENZ")[0] == "EICHEL UNTER"


def test_all_cards_can_be_told_apart_in_unicode_and_ascii() -> None:
    for encoding in ("utf-8", "ascii"):
        seen = {picture(playing(private={"Anna": {"hand": [card]}}), encoding=encoding) for card in PACK}
        assert len(seen) == len(PACK)


# Terminals.


def test_ascii_terminal() -> None:
    seen = picture(playing(table={"0": "EICHEL KONIG"}, trick=1, turn="Bert"), encoding="ascii")
    assert seen.isascii()
    assert "| E Konig |" in seen
    assert "##### 5 cards" in seen
    assert "> Bert" in seen


def test_40_columns_are_a_list() -> None:
    state = playing(
        table={"1": "SCHELLEN OBER"},
        trick=1,
        turn="[BOT]-0",
        private={"Anna": {"hand": ["HERZ SAU", "GRAS NEUN"]}},
    )
    assert (
        picture(state, width=40)
        == """\
round 3 · stock 40
Sauspiel Gras
trick 1
Anna: holds ♥S ♠9 ▒▒▒▒, account 1000
Bert: plays, ♦O on the table, holds
▒▒▒▒▒ 5 cards, account -74335
▶ [BOT]-0: holds ▒▒▒▒▒▒ 6 cards
[BOT]-1: holds ▒▒▒▒▒▒ 6 cards
♣ Eichel ♠ Gras ♥ Herz ♦ Schellen
partner not known yet
"""
    )


def test_players_keep_their_colours_while_the_seats_move_on() -> None:
    for seats in (SEATS, SEATS[1:] + SEATS[:1]):
        out = io.StringIO()
        console = Console(file=out, width=80, force_terminal=True, color_system="truecolor")
        console.print(draw("schafkopf", Scene(playing(seats=seats), [], ["Anna", "Bert"])))
        # Rich remembers how it wrote a style first, perhaps in another test to a terminal of 256 colours.
        assert re.search(r"\x1b\[38;(2;0;135;255|5;33)mAnna", out.getvalue())
        assert re.search(r"\x1b\[38;(2;215;95;0|5;166)mBert", out.getvalue())


@pytest.mark.parametrize(
    ("terminal", "hand"),
    [
        ({"FORCE_COLOR": "3"}, ["1m♣K", "38;2;0;135;0m♠10", "38;2;215;0;0m♥O", "38;2;215;135;0m♦S"]),
        ({"FORCE_COLOR": "2"}, ["1m♣K", "38;5;28m♠10", "38;5;160m♥O", "38;5;172m♦S"]),
        ({"NO_COLOR": "1"}, ["♣K", "♠10", "♥O", "♦S"]),
    ],
)
def test_four_colours(terminal: dict[str, str], hand: list[str]) -> None:
    # A process of its own, since rich keeps the codes of a style for the first terminal that it sees.
    seen = subprocess.run(
        [sys.executable, "-m", "kiebitz", "state", stored("schafkopf-1.3-badcard.pcap")],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", "FORCE_COLOR": "1", **terminal},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert all(card in seen for card in hand)
    assert ("38;" in seen) == ("NO_COLOR" not in terminal)


# Whatever the state says.


def test_no_game_and_nothing_known() -> None:
    assert picture({}) == "no round yet\n"
    waiting = picture({"players": {"Anna": {"here": True}, "Bert": {}}, "accounts": {"Anna": 990}})
    assert waiting == "no round yet\nhere: Anna 990\nleft: Bert\n"
    assert "round ?" in picture({"games": {"7": {"phase": "dealing"}}})


def test_beginning_that_was_not_seen() -> None:
    beginning = {"phase": "dealing", "round": 1, "unknown": ["names", "player", "partner"]}
    seen = picture({"games": {"7": {**beginning, "table": {"2": "HERZ SAU"}, "trick": 1, "turn": "seat 3"}}})
    assert "not known: names, mode, player" in seen
    assert "▶ seat 3" in seen
    assert "? cards" in seen
    assert "│ ♥ Sau   │" in seen
    over = {**TRICK, "leader": None, "winner": None}
    seen = picture({"games": {"7": {**beginning, "table": ON_TABLE, "tricks": [over], "trick": 1}}})
    assert "? points" in seen
    assert "trick 1: 17 points for ?: ♥S ♥9 ♣U ♥K" in seen


@pytest.mark.parametrize("width", [80, 40])
def test_names_cannot_drive_the_terminal(width: int) -> None:
    seats = ["a\x1b[2Jb", "", "日本語" * 20, "z" * 5000]
    state = playing(seats=seats, player="z" * 5000, turn="日本語" * 20, kontra=[""], knocks=seats)
    state["players"] = {name: {"here": True} for name in seats}
    seen = picture(state, width=width)
    assert "\x1b" not in seen
    assert r"a\x1b[2Jb" in seen
    assert '""' in seen
    assert "▶ 日本語" in seen
    assert all(cell_len(line) <= width for line in seen.splitlines())


def test_equal_names_have_their_seats() -> None:
    seats = [f"Anna (seat {seat})" for seat in range(4)]
    seen = picture(playing(seats=seats, player=seats[2], turn=seats[1]))
    assert all(name in seen for name in seats)
    assert "▶ Anna (seat 1)" in seen


_NAMES = st.lists(
    st.text(max_size=30) | st.sampled_from(["Anna", "Bert", "🎲" * 10, "日本語" * 10, "x" * 5000]),
    min_size=4,
    max_size=4,
    unique=True,
)
_CARDS = st.lists(st.sampled_from(sorted(PACK)), max_size=6, unique=True)


@st.composite
def scenes(draw_: st.DrawFn) -> tuple[dict[str, Any], list[Event]]:
    names = draw_(_NAMES)
    some = st.sampled_from(names)
    several = st.lists(some, max_size=4, unique=True)
    four = st.lists(st.sampled_from(sorted(PACK)), min_size=4, max_size=4, unique=True)
    tricks = [
        {"number": number, "cards": cards, "seats": [2, 3, 0, 1], "leader": None, "winner": who, "points": 9}
        for number, (cards, who) in enumerate(
            draw_(st.lists(st.tuples(four, st.none() | some), max_size=6)), 1
        )
    ]
    part = draw_(
        st.fixed_dictionaries(
            {"phase": st.sampled_from(["dealing", "bidding", "playing", "over"])},
            optional={
                "round": st.integers(0, 10**9),
                "seats": st.just(names),
                "turn": some,
                "private": st.dictionaries(some, st.fixed_dictionaries({"hand": _CARDS}), max_size=4),
                "knocks": several,
                "best_bid": st.sampled_from(MODI),
                "bids": st.dictionaries(some, st.sampled_from(MODI), max_size=4),
                "player": some,
                "partner": some,
                "mode": st.sampled_from(MODI),
                "kontra": several,
                "table": st.dictionaries(st.sampled_from("0123"), st.sampled_from(sorted(PACK)), max_size=4),
                "trick": st.integers(1, 6),
                "tricks": st.just(tricks),
                "points": st.just(dict.fromkeys(names, 30)),
                "unknown": st.lists(st.sampled_from(["names", "player", "partner"])),
            },
        )
    )
    state = {
        "players": {name: {"here": len(name) < 20} for name in names[1:]},
        "accounts": dict.fromkeys(names[2:], -(10**14)),
        "games": {"7": part},
    }
    return state, draw_(
        st.lists(
            st.builds(lambda kind, who: event(1, kind, names=who), st.sampled_from(["won", "lost"]), several)
            | st.just(event(1, "round_ended", reason="not played")),
            max_size=2,
        )
    )


@settings(deadline=None, max_examples=times(40))
@given(scenes(), st.integers(12, 140), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_any_state_is_drawn_within_its_width(
    scene: tuple[dict[str, Any], list[Event]], width: int, encoding: str
) -> None:
    seen = picture(*scene, width=width, encoding=encoding)
    assert all(cell_len(line) <= width for line in seen.split("\n"))
    assert all(character.isprintable() or character == "\n" for character in seen)
