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
from command import ROOT, Done, kiebitz, peer_command
from maexchen_programs import Player, Server
from processes_and_rows import free_port
from strength import a_few

from kiebitz.dissectors.model import Transport

FOR_EVER = 100_000


@contextmanager
def server(rounds: int = FOR_EVER) -> Iterator[Server]:
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


def probed(port: int, *only: str, more: tuple[str, ...] = ()) -> Done:
    arguments = ["probe", "server", str(port), "-d", "maexchen", "--timeout", "0.5", *more]
    done = kiebitz(*arguments, *(word for name in only for word in ("--only", f"maexchen/{name}")))
    assert "Traceback" not in done.err
    return done


def verdicts(done: Done) -> dict[str, str]:
    return {each["case"].removeprefix("maexchen/"): each["verdict"] for each in done.json["results"]}


# The server.

TRUE_OF_THE_SERVER = {"ANNOUNCE/dice/doubled": "NON-STRICT"}


ASKED = ("game */said JOIN/whole ROLL/lost rubbish", "ANNOUNCE/dice */rule JOIN SEE/token")


@pytest.mark.full
@pytest.mark.parametrize("only", ASKED)
def test_the_server_is_judged_rightly(only: str) -> None:
    with server() as running:
        done = probed(running.port, *only.split(), more=("--json",))
    found = verdicts(done)
    assert done.status == 0
    assert done.json["left_out"] is None
    not_ok = {case: word for case, word in found.items() if word in ("FAILED", "NON-STRICT")}
    assert not_ok == {case: word for case, word in TRUE_OF_THE_SERVER.items() if case in found}
    assert sum(word == "OK" for word in found.values()) >= 4


def test_the_game_of_others_continues() -> None:
    with server() as running:
        players = [Player(name, ("127.0.0.1", running.port)) for name in ("alice", "bob")]
        for player in players:
            player.start()
        done = probed(running.port, "game", "ROLL/whole", "rubbish", more=("--json",))
        heard = len(players[0].log.received[players[0].server])
        end = time.monotonic() + 20
        while len(players[0].log.received[players[0].server]) < heard + 10 and time.monotonic() < end:
            time.sleep(0.05)
        assert len(players[0].log.received[players[0].server]) >= heard + 10
        for player in players:
            player.stop()
    assert verdicts(done) == {"game": "OK", "ROLL/whole": "OK", "rubbish": "INFORMATIONAL"}


@pytest.mark.full
def test_a_server_that_ends_by_itself_is_reported() -> None:
    with server(rounds=1) as running:
        done = probed(running.port, "JOIN/whole", "ROLL/whole", "ANNOUNCE/lost")
        assert done.status == 1, done.err
        assert "the server cannot be reached (Connection refused)" in done.out
        done = probed(running.port, "JOIN/whole")
        assert (done.status, done.out) == (1, "")
        assert "does not answer. Start the server first" in done.err


DYING = [
    ("maexchen", "udp", "dies-on-an-unknown-word", "maexchen/unknown-message"),
    ("schafkopf", "tcp", "dies-on-bad-utf8", "schafkopf/rubbish"),
]


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "transport", "fault", "case"), a_few(DYING, DYING[:1]))
def test_a_server_that_ends_in_a_case_is_reported(
    protocol: str, transport: Transport, fault: str, case: str
) -> None:
    """The probe has not started the server, so its end is only detected at its address."""
    port = free_port(transport)
    words = peer_command(f"{protocol}-server", "--port", str(port), fault=fault)
    # It reports when it listens.
    with subprocess.Popen(words, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        assert b"listening" in running.stderr.readline()
        done = kiebitz("probe", "server", str(port), "-d", protocol, "--only", case, "--json")
        running.kill()
    (result,) = done.json["results"]
    assert (done.status, result["verdict"]) == (3, "FAILED")
    assert result["why"] == "it has ended: its address has no listener any more"


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
        names = ("game", "REGISTER/said", "JOIN/said", "REGISTERED/whole", "unknown-message")
        only = [word for name in names for word in ("--only", f"maexchen/{name}")]
        done = kiebitz("probe", "client", str(port), "-d", "maexchen", "--timeout", "0.5", "--json", *only)
    assert "Traceback" not in done.err
    assert f"Connect the client to 127.0.0.1:{port}" in done.err
    assert done.status == 0
    assert verdicts(done) == {
        "game": "INFORMATIONAL",
        "REGISTER/said": "OK",
        "JOIN/said": "NOT TRIED",
        "REGISTERED/whole": "OK",
        "unknown-message": "INFORMATIONAL",
    }
    why = {each["case"]: each["why"] for each in done.json["results"]}
    assert why["maexchen/game"] == "it says nothing but REGISTER: it takes no part in the game"


@pytest.mark.full
def test_a_player_that_falls_over_bad_utf_8_is_found(tmp_path: Path) -> None:
    """The exception ends a thread, or a program that has only one."""
    port, program = free_port("udp"), tmp_path / "player.py"
    program.write_text(
        "import sys\nfrom maexchen_programs import Player\n"
        f"player = Player('alice', ('127.0.0.1', {port}))\nplayer.run()\n"
    )
    path = f"PYTHONPATH={ROOT / 'tests' / 'support'}{os.pathsep}{ROOT}"
    restart = shlex.join(["env", path, sys.executable, str(program)])
    only = ["--only", "maexchen/rubbish", "--only", "maexchen/empty"]
    done = kiebitz(
        "probe",
        "client",
        str(port),
        "-d",
        "maexchen",
        "--restart",
        restart,
        "--timeout",
        "0.5",
        "--json",
        *only,
    )
    assert done.status == 3
    assert verdicts(done) == {"rubbish": "FAILED", "empty": "INFORMATIONAL"}
    (failed,) = (each for each in done.json["results"] if each["verdict"] == "FAILED")
    assert failed["why"] == "it has ended: exit status 1"
    assert "UnicodeDecodeError" in failed["output"]
