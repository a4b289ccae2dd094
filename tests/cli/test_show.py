"""`kiebitz show`: messages in full, by their numbers; as a player could know them, as JSON, and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from command import CAPTURES, TINY, kiebitz
from imported_databases import database_of
from strength import GAMES, a_few
from terminals import OnTerminal

import kiebitz as library
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.session.message_detail import MessageDetails

BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")

ANNOUNCED = """\
#33 ANNOUNCED: a player announces
1.385355 s, stream 1, from byte 113, game 1
127.0.0.1:9000 → alice (127.0.0.1:40176) (s2c)
clause: Ablauf einer Spielrunde

 0  41 4e 4e 4f 55 4e 43 45  ANNOUNCE  message · ANNOUNCED;name;dice
 8  44                       D
 9  3b                       ;         delimiter
10  63 61 72 6c              carl      name = carl · text
14  3b                       ;         delimiter
15  33 2c 33                 3,3       dice = 3,3 · two dice 1 to 6, higher
                                         first, such as 5,3

event #15, 1.385355 s: carl announces 3,3
  games.1.rolling: carl → (removed)
  games.1.turn: carl → alice
  games.1.inferred: turn
  games.1.announced: {"dice":"3,3","name":"carl"}
  games.1.private.carl.bluff: false

4 other copies
  #34 to bob (stream 2), 0.285 ms later
  #35 to carl (stream 3), 0.298 ms later
  #36 to dora (stream 4), 0.313 ms later
  #37 to zuschauer (stream 5), 0.323 ms later

before it on stream 1
  #19 1.382614 s, s2c: ROUND STARTED players=carl,alice,dora,bob round=1
  #26 1.384254 s, s2c: PLAYER ROLLS name=carl

after it on stream 1
  #38 1.385688 s, s2c: YOUR TURN token=5aa2358d-b5b0-4291-8178-f8247e5c3a2e
  #39 1.386118 s, c2s: ROLL token=5aa2358d-b5b0-4291-8178-f8247e5c3a2e
"""


DECK = (
    "8:BLACK,10:RED,4:YELLOW,6:YELLOW,9:YELLOW,12:BLUE,3:YELLOW,11:YELLOW,2:RED,8:YELLOW,5:BLACK,6:BLACK,"
    "10:BLUE,9:YELLOW,6:BLACK"
)


def shown(*arguments: str) -> str:
    done = kiebitz("show", *arguments)
    assert (done.status, done.err) == (0, "")
    return done.out


def test_a_message_is_shown_with_all_that_is_known_of_it() -> None:
    assert shown(TINY, "#33") == ANNOUNCED


def test_a_diagnostic_is_under_its_place() -> None:
    text = shown(BADCARD, "#118")
    assert " 7  42 4c 41 55 0a           BLAU." in text
    assert "    ^^^^^^^^^^^              ^^^^" in text
    assert '    error[bad-field]: KARTE: "BLAU" is not known here\n' in text


def test_several_are_shown_in_the_order_asked_for() -> None:
    text = shown(TINY, "33", "#31")
    assert text.startswith(ANNOUNCED + "\n#31 ROLLED: ")


def test_the_first_and_the_last_message_have_no_neighbour_beyond() -> None:
    assert "before it" not in shown(TINY, "#1")
    assert "after it" not in shown(TINY, "#69")


# As a player.


def test_a_player_sees_observable_values_only() -> None:
    text = shown(TINY, "#33", "--as", "alice")
    assert "event #15, 1.385355 s: carl announces 3,3\n" in text
    assert "private" not in text
    assert "other cop" not in text


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["#33", "--as", "bob"], "#33: this message is not on a connection of bob"),
        (["#33", "#34", "--as", "alice"], "#34: this message is not on a connection of alice"),
        (["#33", "--as", "alise"], "there is no player alise in this session; did you mean alice?"),
        (["#70"], "#70: no such message in this session; there are 1 to 69"),
        (["#0"], "#0: no such message in this session; there are 1 to 69"),
        (["#33", "#999999999999999999"], "#999999999999999999: no such message in this session"),
    ],
)
def test_views_that_cannot_be_shown_are_reported(arguments: list[str], sentence: str) -> None:
    done = kiebitz("show", TINY, *arguments)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"kiebitz: {sentence}")


@pytest.mark.parametrize("text", ["x", "#", "#1.5", "-", "#3 dice=2", "١"])
def test_an_invalid_number_is_a_usage_error(text: str) -> None:
    done = kiebitz("show", TINY, text)
    assert (done.status, done.out) == (2, "")
    assert "is not a message number, as in '#31' or 31" in done.err


def test_without_a_number_it_is_wrong_usage() -> None:
    assert kiebitz("show", TINY).status == 2


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


def test_the_second_session_of_a_database_has_numbers_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "two.db")
    assert kiebitz("import", BADCARD, TINY, "-w", path).status == 0
    assert shown(f"{path}:2", "#33") == ANNOUNCED
    done = kiebitz("show", f"{path}:2", "#70")
    assert "#70: no such message in this session; there are 1 to 69" in done.err
    summary = kiebitz("check", f"{path}:2", "--summary", "--json").json
    assert [row["message"] for row in summary] == [
        row["message"] for row in kiebitz("check", TINY, "--summary", "--json").json
    ]
