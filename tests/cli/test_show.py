"""`kiebitz show`: messages in full, by their numbers; as a player could know them, as JSON, and refused."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from command import CAPTURES, kiebitz
from imported_databases import database_of
from strength import GAMES, a_few
from terminals import OnTerminal

import kiebitz as library
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.session.message_detail import MessageDetails

DECK = (
    "8:BLACK,10:RED,4:YELLOW,6:YELLOW,9:YELLOW,12:BLUE,3:YELLOW,11:YELLOW,2:RED,8:YELLOW,5:BLACK,6:BLACK,"
    "10:BLUE,9:YELLOW,6:BLACK"
)


# As a player.


# For programs.


@pytest.mark.parametrize("protocol", GAMES)
def test_json_is_what_the_page_gets(protocol: str) -> None:
    path = database_of(GAMES[protocol])
    done = kiebitz("show", path, "#2", "#9", "--json")
    with library.open(path) as session:
        told = [MessageDetails(session.timeline).message(number) for number in (2, 9)]
    assert done.json == json.loads(msgspec.json.encode(told))


# On a terminal.


@pytest.mark.full
@pytest.mark.parametrize("columns", a_few([40, 60, 80, 160], [60]))
def test_no_line_is_wider_than_the_terminal_and_no_tile_is_torn(columns: int) -> None:
    capture = str(CAPTURES / "okey-head-game-win.pcap.gz")
    with OnTerminal("show", capture, "#105", columns=columns) as terminal:
        assert terminal.ended() == 0
    assert all(cell_len(line) <= columns for line in terminal.lines)
    deck = next(place for place, line in enumerate(terminal.lines) if "private.boran.deck" in line)
    end = next(place for place, line in enumerate(terminal.lines) if "seats.0.tiles" in line)
    tiles = [tile for line in terminal.lines[deck:end] for tile in re.split(r"[,\s]+", line) if ":" in tile]
    assert ",".join(tile for tile in tiles if "deck" not in tile) == DECK
