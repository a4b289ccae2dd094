"""CGML by the real commands: listings with glosses, filters on fields, what a player could know."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command import CAPTURES, ROOT, kiebitz
from imported_databases import database_of

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
