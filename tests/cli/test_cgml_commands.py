"""CGML by the real commands: listings with glosses, filters on fields, what a player could know."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, kiebitz
from imported_databases import database_of

TINY = "cgml-tiny.pcap.gz"
HANDS = "cgml-hands.pcap.gz"


def test_a_card_that_breaks_the_rule_is_shown_at_its_byte() -> None:
    done = kiebitz("check", database_of(HANDS))
    assert done.status == 3
    player = "robot Emil & spol."
    assert f"error[renonc]: žaludy 10 breaks the rule of play: {player} has zelené eso, zelené 10" in done.out
    assert "<card>A10</card>" in done.out
    assert "expected: one of zelené eso, zelené 10" in done.out
    assert "blame: client (rule)" in done.out
    assert kiebitz("check", str(CAPTURES / TINY)).status == 0


def test_messages_are_found_by_their_fields_and_have_a_gloss() -> None:
    (client, *told) = kiebitz(
        "messages", database_of(TINY), "-Y", 'cgml.card[0] == "R10" && msg == "playcard"', "--json"
    ).json
    assert (client["gloss"], client["dir"]) == ("to the desk: červené 10", "c2s")
    assert {message["gloss"] for message in told} == {"player 1216 plays červené 10"}
    answers = 'msg == "licite" && cgml.type == "answer"'
    bids = kiebitz("messages", database_of(TINY), "-Y", answers, "--json").json
    assert [bid["gloss"] for bid in bids][:2] == ["bids G", "bids YES"]


def test_a_game_is_a_hand_with_its_result() -> None:
    games = kiebitz("games", database_of(HANDS), "--json").json
    assert len(games) == 24
    assert games[14]["result"] == {"cancelled": "pass"}
    assert games[0]["label"] == "group 5, hand 1"


def test_a_player_sees_his_own_cards_only() -> None:
    (table,) = [
        table
        for table in kiebitz("state", database_of(TINY), "--at", "0.2s", "--as", "8678", "--json").json
        if table["server"].endswith(":7002")
    ]
    (part,) = table["state"]["games"].values()
    assert {*part["private"]} == {"8678"}
    dealt = kiebitz("events", database_of(TINY), "--as", "8678", "--json", "-Y", 'kind == "dealt"').json
    assert [event["data"]["cards"] == [None] * 10 for event in dealt] == [True, False, True]


def test_the_reference_has_each_message_with_its_clause() -> None:
    out = kiebitz("protocols", "cgml").out
    assert '<licite type="answer">' in out
    assert "see: 3 Průběh jednotlivých her: Licitace -- nabídka hry" in out
    assert "answers licite" in out


GAME = "catan-yaks-g1-3p.pcap.gz"


def test_the_picture_in_the_readme_is_what_the_command_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "board.svg"
    assert kiebitz("state", str(CAPTURES / GAME), "--at", "8s", "--svg", str(drawn)).status == 0
    ET.fromstring(drawn.read_bytes())
    assert drawn.read_bytes() == (ROOT / "docs" / "pictures" / "catan.svg").read_bytes()


def test_a_message_has_a_gloss_next_to_its_german_name() -> None:
    (first, *_) = kiebitz("messages", database_of(GAME), "-Y", 'msg == "Würfelwurf"', "--json").json
    assert (first["name"], first["gloss"]) == ("Würfelwurf", "dice 3+5")
    assert re.search(
        r"  Würfelwurf +dice 3\+5 · ", kiebitz("messages", database_of(GAME), "-Y", 'msg == "Würfelwurf"').out
    )


@pytest.mark.parametrize("viewer", ["AssortedPets (AI)", "ConcreteExchange (AI)"])
def test_a_player_sees_the_hands_of_others_only_as_a_number(viewer: str) -> None:
    (table,) = kiebitz("state", database_of(GAME), "--at", "8s", "--as", viewer, "--json").json
    (part,) = table["state"]["games"].values()
    assert {*part["private"]} == {viewer}
    assert all(isinstance(player["resources"], int) for player in part["players"].values())


@pytest.mark.full
def test_a_theft_is_seen_by_two_players_only() -> None:
    game = database_of("catan-niedlichepixel-game2-3p.pcap.gz")
    stolen = {
        viewer: [
            event["data"]["resources"]
            for event in kiebitz("events", game, "--as", viewer, "--json", "-Y", 'kind == "paid"').json
            if event["data"]["why"] == "robber"
        ]
        for viewer in ("BlueBro", "RedBro", "OrangeBro")
    }
    hidden = {viewer: sum(isinstance(counts, int) for counts in seen) for viewer, seen in stolen.items()}
    # Each theft is hidden from the third.
    assert sum(hidden.values()) == len(stolen["BlueBro"]) > 15
    assert all(hidden.values())
