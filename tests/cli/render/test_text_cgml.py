"""Pictures of a table of licitovaný mariáš: real hands, and whatever the state says."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from command import kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from stored import stored
from strength import times
from terminal_scenes import drawn, event

from kiebitz.cli.options.session import open_session
from kiebitz.cli.render.text.canvas import ASCII, UNICODE
from kiebitz.cli.render.text.cgml_words import game_words, sorted_hand, tricks_words
from kiebitz.cli.spectator.view import Onlooker
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import COLOURS, LADDER, PACK
from kiebitz.dissectors.protocols.cgml.words import level_words

HANDS = "cgml-hands.pcap.gz"
IDS = [1, 2, 3]


def picture(state: dict[str, Any], events: list[Event] | None = None, **how: Any) -> str:
    """A picture without the blanks at the ends of its lines: some are the edges of a hand."""
    return stripped(drawn(state, events, protocol="cgml", **how))


def stripped(text: str) -> str:
    return "\n".join(map(str.rstrip, text.split("\n")))


def playing(**part: Any) -> dict[str, Any]:
    """A hand in which Bára (2) plays; None takes a part of it away."""
    known = {
        "group": "4",
        "hand": 3,
        "seats": IDS,
        "hands": {"1": 10, "2": 10, "3": 10},
        "talon": 2,
        "bidding": [{"player": 2, "call": "7"}, {"player": 3, "call": "PASS"}, {"player": 1, "call": "PASS"}],
        "declarer": 2,
        "contract": "7",
        "trump": "G",
        **part,
    }
    return {
        "players": {"1": {"name": "Adam"}, "2": {"name": "Bára"}, "3": {"name": "Cyril", "race": "bot"}},
        "groups": {"4": {"players": IDS, "money": {"1": 12, "2": -24, "3": 12}}},
        "games": {"7": {key: value for key, value in known.items() if value is not None}},
    }


def played(player: int, card: str) -> dict[str, Any]:
    return {"player": player, "card": card}


TRICK = {"number": 1, "cards": [played(2, "R10"), played(3, "R0A"), played(1, "R07")], "winner": 3}


# Real hands.


def test_trick_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        stripped(kiebitz("state", stored(HANDS), "--game", "2", "--at", "#172").out)
        == """\
CGML (licitovaný mariáš)  127.0.0.1:7002  game 2  0.312s  #172
        wampaire ╭───────────── group 5 · hand 2 ─────────────╮ robot Karel
         id 6533 │           BG · trumps ♥ červené            │ declarer
        0 tricks │                  flek ×2                   │ id 8678
        money -2 │                talon ♠7 ♣7                 │ 1 trick
 ♥8  ♦A  ♦10 ♦8  │                                            │ money 1
 ♦7  ♠J  ♠8      │ ╭─────╮          trick 3           ╭─────╮ │ ♥Q ♥J ♥7 ♦K
                 │ │ ♠9  │                            │ ♠10 │ │ ♦Q ♣Q ♣J
                 │ ╰─────╯                            ╰─────╯ │
                 │                  ╭─────╮                   │
                 │                  │ ♠A  │                   │
                 │                  ╰─────╯                   │
                 ╰──── ♣ žaludy ♠ zelené ♥ červené ♦ kule ────╯
                             ♥10 ♥K ♥9 ♦J ♦9 ♠K ♠Q
                               robot Emil & spol.
                          id 1216 · 1 trick · money 1
bidding: robot Emil &… BG, robot Karel BG, robot Emil &… PASS, wampaire PASS
trick 2 for robot Emil &…: ♣A ♥A ♣K
robot Karel plays zelené 10
"""
    )


def test_as_one_player_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        stripped(kiebitz("state", stored(HANDS), "--game", "2", "--at", "#172", "--as", "6533").out)
        == """\
CGML (licitovaný mariáš)  127.0.0.1:7002  game 2  0.312s  #172
     robot Karel ╭───────────── group 5 · hand 2 ─────────────╮ robot Emil & sp…
        declarer │           BG · trumps ♥ červené            │ id 1216
         id 8678 │                  flek ×2                   │ 1 trick
         1 trick │                  talon ▒▒                  │ money 1
         money 1 │                                            │ ▒▒▒▒▒▒▒ 7
       ▒▒▒▒▒▒▒ 7 │ ╭─────╮          trick 3           ╭─────╮ │
                 │ │ ♠10 │                            │ ♠A  │ │
                 │ ╰─────╯                            ╰─────╯ │
                 │                  ╭─────╮                   │
                 │                  │ ♠9  │                   │
                 │                  ╰─────╯                   │
                 ╰──── ♣ žaludy ♠ zelené ♥ červené ♦ kule ────╯
                             ♥8 ♦A ♦10 ♦8 ♦7 ♠J ♠8
                                    wampaire
                         id 6533 · 0 tricks · money -2
bidding: robot Emil &… BG, robot Karel BG, robot Emil &… PASS, wampaire PASS
trick 2 for robot Emil &…: ♣A ♥A ♣K
group 4: robot Karel, robot Emil &…, wampaire
robot Karel plays zelené 10
"""
    )


def test_hand_that_is_over_is_drawn_as_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        stripped(kiebitz("state", stored(HANDS), "--game", "4").out)
        == """\
CGML (licitovaný mariáš)  127.0.0.1:7002  game 4  0.372s  #411
        wampaire ╭───────────── group 5 · hand 4 ─────────────╮ robot Karel
         id 6533 │           B7 · trumps ♥ červené            │ declarer
         1 trick │            flek ×8, against ×4             │ id 8678
   this hand -40 │                talon ♠7 ♦8                 │ 8 tricks
       money -32 │                                            │ this hand +80
                 │ ╭─────╮      robot Karel won       ╭─────╮ │ money 79
                 │ │ ♠K  │                            │ ♥7  │ │
                 │ ╰─────╯                            ╰─────╯ │
                 │                  ╭─────╮                   │
                 │                  │ ♣Q  │                   │
                 │                  ╰─────╯                   │
                 ╰──── ♣ žaludy ♠ zelené ♥ červené ♦ kule ────╯

                               robot Emil & spol.
                 id 1216 · 1 trick · this hand -40 · money -47
bidding: … robot Karel BG, wampaire BG, robot Karel 7, wampaire 7, robot Karel
B7, wampaire PASS, robot Emil &… PASS
laid down by robot Karel: ♥9 ♥7
trick 10 for robot Karel: ♥7 ♣Q ♠K
B7 is over; robot Karel won; money: robot Emil & spol. -40, wampaire -40, robot Karel 80
"""
    )


def test_between_two_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    login, game = kiebitz("state", stored(HANDS), "--at", "0.3238s").out.split("\n\n")[1:]
    assert (
        game
        == """\
CGML (licitovaný mariáš)  127.0.0.1:7002  game 2  0.324s  #223
the last hand: robot Emil &… and wampaire won: robot Emil &… +4, wampaire +4,
robot Karel -8
group 5: robot Karel (-7), robot Emil &… (5), wampaire (2)
BG is over; robot Emil & spol., wampaire won; money: robot Emil & spol. 4, wampaire 4, robot Karel -8
"""
    )
    assert "in no group: robot <3> (bot)\n" in login
    assert "last hand" not in kiebitz("state", stored(HANDS), "--at", "0.22s").out
    assert "load of servers of bots: 127.0.0.1:48728 48, " in login


def test_replay_of_a_hand_ends_with_its_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    replayed = kiebitz("replay", stored(HANDS), "--game", "1", "--speed", "0").out
    last = replayed[replayed.index("CGML (") :]
    assert re.search(r" robot Karel and .*\n.* robot Emil &… won ", last)
    assert "this hand -2" in last
    assert "▶" not in last


def test_every_moment_is_drawn_and_everybody_keeps_his_place() -> None:
    timeline = open_session(stored(HANDS))
    onlooker = Onlooker(timeline, None)
    hands = 0
    for game in timeline.games():
        span = timeline.span(game.id)
        assert span is not None
        for seq in range(span[0].seq + 2, span[1].seq, 6):
            out = io.StringIO()
            console = Console(file=out, width=80, highlight=False)
            console.print(
                onlooker.picture(
                    game.table_id,
                    timeline.state_at(game.table_id, seq),
                    timeline.recent(game.table_id, seq, 60),
                )
            )
            lines = out.getvalue().splitlines()
            assert all(cell_len(line) <= 80 for line in lines)
            assert re.match(r" +(▶ )?wampaire ╭─+ group 5 · hand \d+ ─+╮ (▶ )?robot Karel$", lines[1])
            assert re.search(r"^ {17,}(▶ )?robot Emil & spol\.", out.getvalue(), re.MULTILINE)
        hands += 1
    assert hands == 24


# How a hand stands.


@pytest.mark.parametrize(
    ("part", "events", "told"),
    [
        ({"contract": None, "bidding": []}, [], "bidding\nno bid yet"),
        ({"contract": None, "bidding": None, "unknown": ["bidding"]}, [], "bidding"),
        ({"contract": None}, [], "bidding\n7 of Bára"),
        ({"contract": "PASS"}, [], "all have passed"),
        ({"talon": None, "trump": None}, [], "Bára\nhas the talon"),
        ({"trump": None}, [], "Bára\nhas won the bidding"),
        ({}, [], "doubling"),
        ({"contract": "BIG", "trump": None}, [], "doubling"),
        ({"table": [played(2, "R10")]}, [], "trick 1"),
        ({"table": [played(2, "R10")], "unknown": ["tricks"]}, [], "trick ?"),
        ({"tricks": [TRICK]}, [], "trick 1\nfor Cyril"),
        ({"tricks": [TRICK], "table": [played(3, "B07")]}, [], "trick 2"),
        ({"pause": {"player": 3, "message": "káva"}}, [], "pause of Cyril\nkáva"),
        ({"pause": {"player": None, "message": None}}, [], "pause of ?"),
        (
            {"table": [played(2, "R10")]},
            [event(1, "renonc", player=1, card="A10", should=["R0A", "R07"])],
            "Adam revokes\n♣10 for ♥A ♥7",
        ),
        ({}, [event(1, "renonc", player=None, card=None, should=None)], "? revokes"),
        ({}, [event(1, "cancelled", why="pass")], "cancelled: pass"),
        ({}, [event(1, "aborted", player=3, why="gone")], "broken off because of Cyril: gone"),
        (
            {},
            [event(1, "result", game="7", winners=[1, 3], losers=[2], money={"1": 4, "2": -8, "3": 4})],
            "Adam and\nCyril won",
        ),
    ],
)
def test_story(part: dict[str, Any], events: list[Event], told: str) -> None:
    lines = picture(playing(**part), events, width=60).split("\n")
    first = (
        next(number for number, line in enumerate(lines) if line.startswith("Adam: ")) - told.count("\n") - 1
    )
    assert lines[first : first + told.count("\n") + 1] == told.split("\n")
    around = picture(playing(**part), events, width=120)
    assert all(re.search(rf"│ .* {re.escape(line)} .*│", around) for line in told.split("\n"))


def test_marks_while_bidding_and_afterwards() -> None:
    bidding = picture(playing(contract=None, declarer=None, turn=1))
    assert "▶ Adam · passes\n" in bidding
    assert re.search(r"Bára ╭.*\n +bids 7 │.*│ passes\n", bidding)
    later = picture(playing())
    assert "passes" not in later
    assert later.count("declarer") == 1
    assert "declarer" not in picture(playing(contract="PASS"))


def test_money_and_what_this_hand_has_brought() -> None:
    assert "id 1 · money 12\n" in picture(playing())
    end = event(1, "result", game="7", winners=[1, 3], losers=[2], money={"1": 4, "2": -8, "3": 4})
    seen = picture(playing(turn=2), [end])
    assert "id 1 · this hand +4 · money 12\n" in seen
    assert "this hand -8" in seen
    assert "▶" not in seen


def test_talon_is_hidden_until_somebody_knows_it() -> None:
    assert "talon ▒▒" in picture(playing())
    assert "talon ♠7 ♦J" in picture(playing(private={"2": {"talon": ["G07", "B0J"]}}))
    assert "talon" not in picture(playing(talon=None, table=[played(2, "R10")]))


def test_card_that_takes_the_trick_stays_until_the_next_one_is_played() -> None:
    over = picture(playing(tricks=[TRICK]))
    assert all(f"│ {card} │" in over for card in ("♥10", "♥A ", "♥7 "))
    following = picture(playing(tricks=[TRICK], table=[played(3, "B07")]))
    assert "│ ♦7  │" in following
    assert "│ ♥" not in following
    assert "trick 1 for Cyril: ♥10 ♥A ♥7\n" in following


def test_many_bids_end_with_the_latest() -> None:
    bidding = [{"player": 1 + number % 3, "call": call} for number, call in enumerate(LADDER)]
    seen = picture(playing(bidding=bidding))
    assert "bidding: … Cyril B107, Adam SMALL, Bára BIG, Cyril 27, Adam 127, Bára B27, Cyril\nB127\n" in seen


def test_who_has_laid_down_his_cards() -> None:
    laid = {"player": 2, "cards": ["G0A", "R08"]}
    assert "laid down by Bára: ♠A ♥8\n" in picture(playing(laid=laid, table=[played(2, "G0A")]))


# Cards and games.


def test_game_in_words() -> None:
    def words(**part: Any) -> str:
        return game_words(part, UNICODE).plain

    assert words() == words(contract="PASS") == ""
    assert words(contract="BG") == "BG"
    assert words(contract="B127", trump="A", second="B") == "B127 · trumps ♣ žaludy · second ♦ kule"
    assert words(contract="SMALL") == "SMALL · no trumps"
    assert game_words({"contract": "7", "trump": "G"}, ASCII).plain == "7 - trumps G zelene"


@pytest.mark.parametrize(
    ("level", "told"),
    [("1", ""), ("1:1", ""), ("4", "flek ×4"), ("2:1", "flek ×2"), ("1:8", "flek ×1, against ×8")],
)
def test_level_in_words(level: str, told: str) -> None:
    assert level_words(level) == told
    assert level_words(level, ASCII.times) == told.replace("×", "x")


def test_hand_is_sorted_by_the_game() -> None:
    hand = ["A07", "R0K", "G08", "R10", "G0J"]
    assert sorted_hand(hand, {"contract": "G", "trump": "G"}) == ["G0J", "G08", "R10", "R0K", "A07"]
    assert sorted_hand(hand, {"contract": "BIG"}) == ["R0K", "R10", "G0J", "G08", "A07"]


def test_tricks_are_counted_as_far_as_they_were_seen() -> None:
    assert tricks_words({}, 1) == ""
    assert tricks_words({"tricks": [TRICK]}, 3) == "1 trick"
    assert tricks_words({"tricks": [TRICK]}, 1) == "0 tricks"
    assert tricks_words({"tricks": [TRICK], "unknown": ["tricks"]}, 3) == "1+ tricks"


def test_all_cards_can_be_told_apart_in_unicode_and_ascii() -> None:
    for encoding in ("utf-8", "ascii"):
        seen = {picture(playing(private={"1": {"hand": [card]}}), encoding=encoding) for card in PACK}
        assert len(seen) == len(PACK)


# Groups and other servers.


def test_hand_of_the_latest_event_is_drawn_and_other_groups_are_listed() -> None:
    state = playing()
    state["games"]["12"] = {"group": "?8", "hand": 1, "seats": [8], "unknown": ["contract", "hands"]}
    state["groups"] |= {"?8": {"players": [8, 9]}, "6": {"players": [], "money": {}}}
    state["players"]["9"] = {"name": "Dana"}
    state["players"]["10"] = {"race": "bot"}
    newest = picture(state)
    assert "─ group ? · hand 1 ─" in newest
    assert "not known: contract, hands\n" in newest
    assert "group 4: Adam (12), Bára (-24), Cyril (12)\n" in newest
    followed = picture(state, [event(1, "turn", player=1)])
    assert "─ group 4 · hand 3 ─" in followed
    assert "group ?: player 8, Dana\n" in followed
    assert "in no group: player 10 (bot)\n" in followed


def test_servers_of_a_login_server() -> None:
    state = {"servers": {"10.0.0.1:7003": {"numplayers": 3}}, "loads": {"10.0.0.9:4000": 20}}
    assert picture(state).split("\n") == [
        "game servers: 10.0.0.1:7003 for 3 players",
        "load of servers of bots: 10.0.0.9:4000 20",
        "",
    ]


def test_many_groups() -> None:
    groups: dict[str, Any] = {str(number): {"players": []} for number in range(20)}
    seen = picture({"groups": groups}).split("\n")
    assert seen == [*(f"group {number}:" for number in range(12, 20)), "and 12 more groups", ""]


# Whatever the state says.


def test_nothing_known() -> None:
    assert picture({}) == "nobody is here yet\n"
    seen = picture({"games": {"7": {"unknown": ["bidding", "tricks"]}}})
    assert "group ? · hand ?" in seen
    assert seen.count("? cards") == 3
    assert "not known: bidding, tricks\n" in seen


def test_player_who_is_heard_of_only_by_his_cards() -> None:
    seen = picture(playing(seats=[], hands={}, declarer=None, table=[played(77, "R0A")]))
    assert "player 77" in seen
    assert "│ ♥A  │" in seen


def test_ascii_terminal() -> None:
    state = playing(table=[played(2, "R10")], flek="4", turn=3, private={"1": {"hand": ["A0K", "G07"]}})
    seen = picture(state, encoding="ascii")
    assert seen.isascii()
    assert "7 - trumps G zelene" in seen
    assert "flek x4" in seen
    assert "| R10 |" in seen
    assert "> Cyril" in seen
    assert "G7 AK\n" in seen
    assert "########## 10" in seen


@pytest.mark.parametrize("width", [80, 40])
def test_what_others_have_written_cannot_drive_the_terminal(width: int) -> None:
    state = playing(pause={"player": 1, "message": "\x1b[2J\u202e" * 50})
    state["players"] = {
        "1": {"name": "a\x1b[2Jb"},
        "2": {"name": "日本語" * 20},
        "3": {"name": "z" * 5000},
        "4": {"name": ""},
    }
    state["loads"] = {"\x1b" * 50: 1}
    why = event(1, "cancelled", why="\x1b[31m" * 60)
    for seen in (
        picture(state, width=width),
        picture(state, [why], width=width),
        picture({**state, "games": {}}, [why], width=width),
    ):
        assert not {"\x1b", "\u202e"} & set(seen)
        assert r"a\x1b[2Jb" in seen
        assert all(cell_len(line) <= width for line in seen.splitlines())


def test_equal_names_have_their_ids() -> None:
    state = playing()
    state["players"] = {"1": {"name": "Eva"}, "2": {"name": "Eva"}, "3": {"name": "Eva"}}
    assert all(f"Eva {player}" in picture(state) for player in IDS)


_ID = st.sampled_from([*IDS, 0, 2**31])
_CARDS = st.lists(st.sampled_from(PACK), max_size=len(PACK), unique=True)
_PLAYED = st.builds(played, _ID, st.sampled_from(PACK))
_TEXT = st.text(max_size=60) | st.sampled_from(["日本語" * 30, "x" * 200])
_SEVERAL = st.lists(_ID, max_size=3)


@st.composite
def scenes(draw_: st.DrawFn) -> tuple[dict[str, Any], list[Event]]:
    trick = st.builds(
        lambda number, cards, winner: {"number": number, "cards": cards, "winner": winner},
        st.integers(1, 10),
        st.lists(_PLAYED, min_size=3, max_size=3),
        _ID,
    )
    own = st.fixed_dictionaries({}, optional={"hand": _CARDS, "talon": _CARDS})
    part = draw_(
        st.fixed_dictionaries(
            {},
            optional={
                "group": st.sampled_from(["4", "?77"]),
                "hand": st.integers(1, 10**6),
                "seats": st.lists(_ID, max_size=6),
                "hands": st.dictionaries(_ID.map(str), st.integers(0, 32), max_size=4),
                "talon": st.integers(0, 32),
                "private": st.dictionaries(_ID.map(str), own, max_size=3),
                "bidding": st.lists(
                    st.builds(lambda who, call: {"player": who, "call": call}, _ID, st.sampled_from(LADDER)),
                    max_size=16,
                ),
                "declarer": _ID,
                "contract": st.sampled_from(LADDER),
                "trump": st.sampled_from(COLOURS),
                "second": st.sampled_from(COLOURS),
                "flek": st.sampled_from(["1", "2:1", "999999:999999"]),
                "turn": _ID,
                "table": st.lists(_PLAYED, max_size=3),
                "tricks": st.lists(trick, max_size=10),
                "laid": st.builds(lambda who, cards: {"player": who, "cards": cards}, _ID, _CARDS),
                "pause": st.fixed_dictionaries({"player": st.none() | _ID, "message": st.none() | _TEXT}),
                "unknown": st.lists(st.sampled_from(["bidding", "contract", "tricks", "talon"])),
            },
        )
    )
    state = {
        "players": draw_(st.dictionaries(_ID.map(str), st.fixed_dictionaries({"name": _TEXT}))),
        "groups": {"4": {"players": draw_(_SEVERAL), "money": {"1": -(10**14)}}, "5": {}},
        "games": {"7": part} if draw_(st.booleans()) else {},
    }
    events = st.one_of(
        st.builds(lambda who, why: event(1, "aborted", player=who, why=why), st.none() | _ID, _TEXT),
        st.builds(lambda who: event(1, "renonc", player=who, card="A10", should=["A0A"]), _ID),
        st.builds(
            lambda won, money: event(1, "result", game="G", winners=won, losers=[], money=money),
            _SEVERAL,
            st.dictionaries(_ID.map(str), st.integers(-(10**14), 10**14)),
        ),
    )
    return state, draw_(st.lists(events, max_size=2))


@settings(deadline=None, max_examples=times(40))
@given(scenes(), st.integers(12, 140), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_any_state_is_drawn_within_its_width(
    scene: tuple[dict[str, Any], list[Event]], width: int, encoding: str
) -> None:
    seen = picture(*scene, width=width, encoding=encoding)
    assert all(cell_len(line) <= width for line in seen.split("\n"))
    assert all(character.isprintable() or character == "\n" for character in seen)
