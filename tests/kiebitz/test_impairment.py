from __future__ import annotations

import json
import socket
import time
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from altering_relay import Alteration, Line, alterations, blamed, recorded, relaying
from maexchen_programs import Player, Server
from processes_and_rows import rows
from strength import a_few

from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.services.alteration.rule_values import chance

NAMES = ("alice", "bob", "carl")


class Table(Line):
    """A Mäxchen server, to whom players come through the relay."""

    def __init__(self, server: Server) -> None:
        self._made = server
        super().__init__("maexchen")

    def listen(self) -> socket.socket:
        return self._made.socket


def seed_for(share: float) -> int:
    """Return a seed by which the first datagram of each player, who registers once, is not lost."""
    return next(
        seed
        for seed in range(1_000)
        if all(chance(seed, 1, f"{stream} c2s", "loss") >= share for stream in range(1, len(NAMES) + 1))
    )


def play(database: Path, how: str, rounds: int) -> tuple[Server, list[Player], Table]:
    """Return a game of these players, through a network that is as bad as that."""
    server = Server(expected=len(NAMES), rounds=rounds, answer_window_s=0.2)
    table = Table(server)
    players = [Player(name, ("127.0.0.1", table.port), bluffs=name == "carl") for name in NAMES]
    with relaying([table], database, "--impair", how) as relay:
        server.start()
        for player in players:
            player.start()
            time.sleep(0.05)
        server.join(60)
        assert not server.is_alive()
        # Messages after the next one, of which there is none, are forwarded now.
        relay.end()
        for player in players:
            player.stop()
    return server, players, table


def rounds_of(server: Server) -> dict[str, tuple[list[str], str]]:
    ended: dict[str, tuple[list[str], str]] = {}
    for said in server.log.sent.values():
        number = ""
        for data in said:
            name, *values = data.decode().split(";")
            if name == "ROUND STARTED":
                number = f"round {values[0]}"
            elif name == "PLAYER LOST":
                ended[number] = (values[0].split(","), values[1])
    return ended


@pytest.mark.full
@pytest.mark.parametrize(
    ("share", "rounds"), a_few([(0, 3), (5, 10), (20, 1), (20, 10), (50, 12)], [(20, 1)])
)
def test_reports_on_a_lossy_game_are_true(tmp_path: Path, share: int, rounds: int) -> None:
    database = tmp_path / "lossy.db"
    some, seed = share / 5, seed_for(share / 100)
    how = f"loss {share}%, double {some}%, delay 2ms±2ms, reorder {some}%, seed {seed}"
    server, players, table = play(database, how, rounds)
    # What each got is what is recorded.
    for player in players:
        query = (
            "SELECT data FROM chunks c JOIN streams s ON s.id = c.stream_id"
            f" WHERE client = '127.0.0.1:{player.address[1]}' AND direction = 's2c' ORDER BY c.id"
        )
        assert [data for (data,) in rows(database, query)] == player.log.received.get(player.server, [])
    # A server that has closed does not receive the last late messages.
    assert Counter(chain(*server.log.received.values())) <= Counter(recorded(database, table)["c2s"])
    # What was sent is what came, and what was done to it.
    sent = sum(map(len, server.log.sent.values()))
    came = sum(len(said) for player in players for said in player.log.received.values())
    done = Counter(deed.action for deed in alterations(database, table) if deed.direction == "s2c")
    assert sent - done["drop"] + done["double"] == came
    assert (done["drop"] > 0) == (share > 0)
    # Each reported end of a round is right, and no violation is reported for lost messages.
    played = rounds_of(server)
    query = "SELECT label, result FROM games WHERE result IS NOT NULL"
    told = [(label, json.loads(result)) for label, result in rows(database, query)]
    ended = [(label, (result["losers"], result["reason"])) for label, result in told if "losers" in result]
    for label, ending in ended:
        # Only the number is unknown for an end that arrives in the next round.
        assert ending == played[label] if label in played else label == "round" and ending in played.values()
    assert share or dict(ended) == played
    assert len(ended) * 2 >= len(played) - 1
    assert blamed(database) == []


def altered(database: Path, *options: str) -> list[list[Alteration]]:
    lines = [Line("maexchen"), Line("okey")]
    datagrams, stream = lines
    with relaying(lines, database, *options):
        datagrams.connect()
        stream.connect()
        for number in range(60):
            datagrams.say("c2s", b"REGISTER;a%d" % number)
            stream.say("c2s", b"LOGI a%d\r\n" % number)
            stream.say("s2c", b"+LOGI a%d\r\n" % number)
            # The system drops none of so few.
            time.sleep(0.001)
        # Nothing is lost over TCP: when all of that has come, the datagrams before it have.
        stream.hang_up()
        time.sleep(0.2)
    assert {*recorded(database, stream)} == {*DIRECTIONS}
    return [sorted(alterations(database, line)) for line in lines]


@pytest.mark.parametrize(
    "options",
    a_few(
        [
            ["--drop", 'msg == "REGISTER" || msg == "LOGI" || msg == "+LOGI" [20%, seed 7]'],
            ["--impair", "loss 10%, double 5%, seed 7", "--drop", 'msg == "LOGO" [first 2]'],
            ["--impair", "cut 20%, delay 1ms±1ms, seed 7", "--duplicate", 'msg == "+LOGI" [10%, seed 3]'],
        ],
        lambda options: "cut" in options[1],
        lambda options: options[1],
    ),
)
@pytest.mark.full
def test_a_seed_repeats_a_run(tmp_path: Path, options: list[str]) -> None:
    one, other = (altered(tmp_path / f"{number}.db", *options) for number in (1, 2))
    assert one == other
    assert any(one)


@pytest.mark.full
def test_a_byte_stream_is_slow_and_in_pieces_but_whole(tmp_path: Path) -> None:
    database = tmp_path / "slow.db"
    line = Line("okey")
    said = [b"LOGI " + b"a" * 989 + b"%04d\r\n" % number for number in range(20)]
    with relaying([line], database, "--impair", "delay 20ms±10ms, rate 1Mbit/s, cut 30%, seed 1"):
        line.connect()
        line.say("c2s", b"".join(said))
        begun = time.monotonic()
        line.hear("c2s", said)
        # 20,000 bytes are 160,000 bits.
        assert time.monotonic() - begun > 0.16
        line.hang_up()
    assert b"".join(line.got["c2s"]) == b"".join(said) == b"".join(recorded(database, line)["c2s"])
    assert {deed.action for deed in alterations(database, line)} <= {"delay", "cut"}
    assert blamed(database) == []


@pytest.mark.full
def test_a_reset_is_one_to_both(tmp_path: Path) -> None:
    database = tmp_path / "reset.db"
    line = Line("okey")
    with relaying([line], database, "--drop", 'msg == "LLPL"', "--impair", "reset 50%, seed 3"):
        line.connect()
        line.say("c2s", b"LOGI a\r\nLPLA\r\nPING\r\nLLPL\r\n")
        for direction in DIRECTIONS:
            # What had been passed on before may be read first.
            with pytest.raises(ConnectionResetError):
                line.hear(direction, [b"a" * 1_000])
    assert rows(database, "SELECT close_reason FROM streams") == [("reset",)]
    assert next(deed.action for deed in alterations(database, line)) == "reset"
    assert blamed(database) == []
