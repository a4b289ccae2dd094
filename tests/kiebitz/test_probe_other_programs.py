"""`kiebitz probe` on programs that are not made for it: the tests' own Mäxchen server and players."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import ROOT
from maexchen_programs import Player, Server
from probe_command import probe, server, transport_of
from processes_and_rows import free_port

FOR_EVER = 100_000


@contextmanager
def serving(rounds: int = FOR_EVER) -> Iterator[Server]:
    """Yield a server that waits for two players."""
    running = Server(2, rounds, answer_window_s=0.3)
    running.start()
    try:
        yield running
    finally:
        # It sees that its socket is gone at the next thing it does.
        with_errors = threading.excepthook
        threading.excepthook = lambda _: None
        running.socket.close()
        running.join(10)
        threading.excepthook = with_errors
    assert not running.is_alive()


# The server.


@pytest.mark.full
@pytest.mark.parametrize(
    "only", ["game */said JOIN/whole ROLL/lost rubbish", "ANNOUNCE/dice */rule JOIN SEE/token"]
)
def test_the_server_is_judged_rightly(only: str) -> None:
    with serving() as running:
        done = probe("maexchen-server", only, "--json", port=running.port)
    assert done.failed == {}
    assert done.json["left_out"] is None
    non_strict = [case for case, word in done.verdicts.items() if word == "NON-STRICT"]
    assert non_strict == [case for case in done.verdicts if case == "ANNOUNCE/dice/doubled"]
    assert [*done.verdicts.values()].count("OK") >= 4


def test_the_game_of_others_continues() -> None:
    with serving() as running:
        players = [Player(name, ("127.0.0.1", running.port)) for name in ("alice", "bob")]
        for player in players:
            player.start()
        done = probe("maexchen-server", "game ROLL/whole rubbish", "--json", port=running.port)
        heard = len(players[0].log.received[players[0].server])
        end = time.monotonic() + 20
        while len(players[0].log.received[players[0].server]) < heard + 10 and time.monotonic() < end:
            time.sleep(0.05)
        assert len(players[0].log.received[players[0].server]) >= heard + 10
        for player in players:
            player.stop()
    assert done.verdicts == {"game": "OK", "ROLL/whole": "OK", "rubbish": "INFORMATIONAL"}


@pytest.mark.full
def test_a_server_that_ends_by_itself_is_reported() -> None:
    with serving(rounds=1) as running:
        done = probe("maexchen-server", "JOIN/whole ROLL/whole ANNOUNCE/lost", port=running.port)
        assert done.status == 1, done.err
        assert "the server cannot be reached (Connection refused)" in done.out
        done = probe("maexchen-server", "JOIN/whole", port=running.port)
        assert (done.status, done.out) == (1, "")
        assert "does not answer. Start the server first" in done.err


DYING = [
    ("maexchen", "dies-on-an-unknown-word", "unknown-message"),
    ("schafkopf", "dies-on-bad-utf8", "rubbish"),
]


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "fault", "case"), DYING)
def test_a_server_that_ends_in_a_case_is_reported(protocol: str, fault: str, case: str) -> None:
    """The probe has not started the server, so its end is only detected at its address."""
    port = free_port(transport_of(protocol))
    # It reports when it listens.
    with subprocess.Popen(shlex.split(server(port, fault, protocol)), stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        assert b"listening" in running.stderr.readline()
        done = probe(f"{protocol}-server", case, "--json", port=port)
        running.kill()
    assert done.failed == {case: "it has ended: its address has no listener any more"}


# The players.


@contextmanager
def players(port: int, seconds: float = 1.5) -> Iterator[list[Player]]:
    """Yield a player comes, again and again, and each goes after a while; they know nothing of a probe."""
    come: list[Player] = []
    is_over = threading.Event()

    def again_and_again() -> None:
        while not is_over.is_set():
            come.append(Player("alice", ("127.0.0.1", port)))
            come[-1].start()
            is_over.wait(seconds)
            come[-1].stop()

    coming = threading.Thread(target=again_and_again, daemon=True)
    coming.start()
    yield come
    is_over.set()
    coming.join(10)
    assert not coming.is_alive()


@pytest.mark.full
def test_a_player_that_knows_another_dialect_is_not_blamed() -> None:
    """These players know ROUND STARTING without a number, as newer servers say it; the specification has one.

    So they never join, and the game is over without them; nothing of that is against a clause.
    """
    port = free_port("udp")
    with players(port):
        cases = "game REGISTER/said JOIN/said REGISTERED/whole unknown-message"
        done = probe("maexchen-client", cases, "--json", port=port)
    assert f"Connect the client to 127.0.0.1:{port}" in done.err
    assert done.status == 0
    assert done.verdicts == {
        "game": "INFORMATIONAL",
        "REGISTER/said": "OK",
        "JOIN/said": "NOT TRIED",
        "REGISTERED/whole": "OK",
        "unknown-message": "INFORMATIONAL",
    }
    assert done.results["game"]["why"] == "it says nothing but REGISTER: it takes no part in the game"


@pytest.mark.full
def test_a_player_that_falls_over_bad_utf_8_is_found(tmp_path: Path) -> None:
    """The exception ends a thread, or a program that has only one."""
    program = tmp_path / "player.py"
    program.write_text(
        "import sys\nfrom maexchen_programs import Player\n"
        "Player('alice', ('127.0.0.1', int(sys.argv[1]))).run()\n"
    )
    path = f"PYTHONPATH={ROOT / 'tests' / 'support'}{os.pathsep}{ROOT}"
    restart = shlex.join(["env", path, sys.executable, str(program)]) + " {port}"
    done = probe("maexchen-client", "rubbish empty", "--json", restart=restart)
    assert done.verdicts == {"rubbish": "FAILED", "empty": "INFORMATIONAL"}
    assert done.failed == {"rubbish": "it has ended: exit status 1"}
    assert "UnicodeDecodeError" in done.results["rubbish"]["output"]
