"""The view of a table of licitovaný mariáš: marks and figures, what is going on, groups and servers."""

from __future__ import annotations

from typing import Any

import pytest
from game_scenes import CGML_TRICK, IDS, cgml, played, said, story, view
from terminal_scenes import event

from kiebitz.dissectors.game.view import Seat, View
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.cgml.cards import level_words
from kiebitz.dissectors.protocols.cgml.view import contract, sorted_hand, tricks_words


def seen(state: dict[str, Any], events: list[Event] | None = None) -> View:
    return view("cgml", state, events)


def seat(made: View, name: str) -> Seat:
    return next(each for each in made.seats if each.name == name)


def figures(made: View, name: str) -> list[str]:
    return [figure.words for figure in seat(made, name).figures]


def facts(made: View) -> dict[str, str]:
    return {said(fact.title): ", ".join(map(said, fact.items)) for fact in made.facts}


@pytest.mark.parametrize(
    ("part", "events", "told"),
    [
        ({"contract": None, "bidding": []}, [], ["bidding", "no bid yet"]),
        ({"contract": None, "bidding": None, "unknown": ["bidding"]}, [], ["bidding"]),
        ({"contract": None}, [], ["bidding", "7 of Bára"]),
        ({"contract": "PASS"}, [], ["all have passed"]),
        ({"talon": None, "trump": None}, [], ["Bára", "has the talon"]),
        ({"trump": None}, [], ["Bára", "has won the bidding"]),
        ({}, [], ["doubling"]),
        ({"contract": "BIG", "trump": None}, [], ["doubling"]),
        ({"table": [played(2, "R10")]}, [], ["trick 1"]),
        ({"table": [played(2, "R10")], "unknown": ["tricks"]}, [], ["trick ?"]),
        ({"tricks": [CGML_TRICK]}, [], ["trick 1", "for Cyril"]),
        ({"tricks": [CGML_TRICK], "table": [played(3, "B07")]}, [], ["trick 2"]),
        ({"pause": {"player": 3, "message": "káva"}}, [], ["pause of Cyril", "káva"]),
        ({"pause": {"player": None, "message": None}}, [], ["pause of ?"]),
        (
            {"table": [played(2, "R10")]},
            [event(1, "renonc", player=1, card="A10", should=["R0A", "R07"])],
            ["Adam revokes", "žaludy 10 for červené eso, červené 7"],
        ),
        ({}, [event(1, "renonc", player=None, card=None, should=None)], ["? revokes"]),
        ({}, [event(1, "cancelled", why="pass")], ["cancelled: pass"]),
        ({}, [event(1, "aborted", player=3, why="gone")], ["aborted because of Cyril: gone"]),
        (
            {},
            [event(1, "result", game="7", winners=[1, 3], losers=[2], money={"1": 4, "2": -8, "3": 4})],
            ["Adam and", "Cyril won"],
        ),
    ],
)
def test_story(part: dict[str, Any], events: list[Event], told: list[str]) -> None:
    assert story(seen(cgml(**part), events)) == told


def test_marks_while_bidding_and_afterwards() -> None:
    def marks(made: View) -> dict[str, list[str]]:
        return {each.name: [mark.text for mark in each.marks] for each in made.seats}

    bidding = seen(cgml(contract=None, declarer=None, turn=1))
    assert marks(bidding) == {"Adam": ["passes"], "Bára": ["bids 7"], "Cyril": ["passes"]}
    assert seat(bidding, "Adam").state == "turn"
    assert marks(seen(cgml())) == {"Adam": [], "Bára": ["declarer"], "Cyril": []}
    assert not any(marks(seen(cgml(contract="PASS"))).values())


def test_money_and_what_this_hand_has_brought() -> None:
    assert figures(seen(cgml()), "Adam") == ["id 1", "money 12"]
    end = event(1, "result", game="7", winners=[1, 3], losers=[2], money={"1": 4, "2": -8, "3": 4})
    made = seen(cgml(turn=2, tricks=[CGML_TRICK]), [end])
    assert figures(made, "Bára") == ["id 2", "0 tricks", "this hand -8", "money -24"]
    assert not any(each.state for each in made.seats)


def test_talon_is_hidden_until_somebody_knows_it() -> None:
    assert [pile.words for pile in seen(cgml()).piles] == ["2 hidden"]
    known = seen(cgml(private={"2": {"talon": ["G07", "B0J"]}}))
    assert [pile.words for pile in known.piles] == ["zelené 7, kule spodek"]
    assert seen(cgml(talon=None)).piles == ()


def test_card_that_takes_the_trick_stays_until_the_next_one_is_played() -> None:
    over = seen(cgml(tricks=[CGML_TRICK]))
    assert [each.lies.words for each in over.seats if each.lies] == ["červené 7", "červené 10", "červené eso"]
    assert [each.name for each in over.seats if each.takes] == ["Cyril"]
    following = seen(cgml(tricks=[CGML_TRICK], table=[played(3, "B07")]))
    assert [each.lies.words for each in following.seats if each.lies] == ["kule 7"]


def test_bids_tricks_and_what_was_laid_down() -> None:
    made = seen(cgml(tricks=[CGML_TRICK], laid={"player": 2, "cards": ["G0A", "R08"]}))
    assert facts(made) == {
        "bidding": "Bára 7, Cyril PASS, Adam PASS",
        "trick 1 for Cyril": "červené 10, červené eso, červené 7",
        "laid down by Bára": "zelené eso, červené 8",
    }


def test_game_in_words() -> None:
    def words(**part: Any) -> list[str]:
        made = contract(part)
        return [said(line) for line in (*made.parts, *made.additions)] if made is not None else []

    assert words() == words(contract="PASS") == []
    assert words(contract="BG") == ["BG"]
    assert words(contract="B127", trump="A", second="B") == ["B127", "trumps žaludy", "second kule"]
    assert words(contract="SMALL") == ["SMALL", "no trumps"]


@pytest.mark.parametrize(
    ("level", "told"),
    [("1", ""), ("1:1", ""), ("4", "flek ×4"), ("2:1", "flek ×2"), ("1:8", "flek ×1, against ×8")],
)
def test_level_in_words(level: str, told: str) -> None:
    assert level_words(level) == told
    made = contract({"contract": "7", "flek": level})
    assert made is not None
    assert made.level == told


def test_hand_is_sorted_by_the_game() -> None:
    hand = ["A07", "R0K", "G08", "R10", "G0J"]
    assert sorted_hand(hand, {"contract": "G", "trump": "G"}) == ["G0J", "G08", "R10", "R0K", "A07"]
    assert sorted_hand(hand, {"contract": "BIG"}) == ["R0K", "R10", "G0J", "G08", "A07"]


def test_tricks_are_counted_as_far_as_they_were_seen() -> None:
    assert tricks_words({}, 1) == ""
    assert tricks_words({"tricks": [CGML_TRICK]}, 3) == "1 trick"
    assert tricks_words({"tricks": [CGML_TRICK]}, 1) == "0 tricks"
    assert tricks_words({"tricks": [CGML_TRICK], "unknown": ["tricks"]}, 3) == "1+ tricks"


def test_hand_of_the_latest_event_is_drawn_and_other_groups_are_listed() -> None:
    state = cgml()
    state["games"]["12"] = {"group": "?8", "hand": 1, "seats": [8], "unknown": ["contract", "hands"]}
    state["groups"] |= {"?8": {"players": [8, 9]}, "6": {"players": [], "money": {}}}
    state["players"] |= {"9": {"name": "Dana"}, "10": {"race": "bot"}}
    newest = seen(state)
    assert (newest.title, newest.unknown) == (("group ?", "hand 1"), "not known: contract, hands")
    money = (("Adam", "money 12"), ("Bára", "money -24"), ("Cyril", "money 12"))
    assert [(group.title, group.members) for group in newest.groups] == [
        ("group 4", money),
        ("group 6", ()),
        ("in no group", (("player 10", "bot"),)),
    ]
    followed = seen(state, [event(1, "turn", player=1)])
    assert followed.title == ("group 4", "hand 3")
    assert ("group ?", (("player 8", ""), ("Dana", ""))) in [
        (group.title, group.members) for group in followed.groups
    ]


def test_between_two_hands_and_on_a_login_server() -> None:
    state = cgml() | {"games": {}}
    end = event(1, "result", game="7", winners=[1, 3], losers=[2], money={"1": 4, "2": -8, "3": 4})
    made = seen(state, [end])
    assert made.idle == "no hand is played"
    assert facts(made) == {"the last hand: Adam and Cyril won": "Adam +4, Bára -8, Cyril +4"}
    login = seen({"servers": {"10.0.0.1:7003": {"numplayers": 3}}, "loads": {"10.0.0.9:4000": 20}})
    assert facts(login) == {
        "game servers": "10.0.0.1:7003 for 3 players",
        "load of servers of bots": "10.0.0.9:4000 20",
    }
    assert seen({}).idle == "nobody is here yet"


def test_almost_unknown_players() -> None:
    made = seen({"games": {"7": {"unknown": ["bidding", "tricks"]}}})
    assert (made.title, made.unknown) == (("group ?", "hand ?"), "not known: bidding, tricks")
    assert [each.hand.hidden for each in made.seats if each.hand] == [None] * 3
    heard = seen(cgml(seats=[], hands={}, declarer=None, table=[played(77, "R0A")]))
    assert seat(heard, "player 77").lies is not None
    state = cgml()
    state["players"] = {"1": {"name": "Eva"}, "2": {"name": "Eva"}, "3": {"name": "Eva"}}
    assert [each.name for each in seen(state).seats] == [f"Eva {player}" for player in IDS]
