from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from command import Done, kiebitz, peer_command
from processes_and_rows import KIEBITZ, free_port
from strength import a_few

TRANSPORTS = {"maexchen": "udp", "schafkopf": "tcp", "catan": "tcp", "okey": "tcp", "cgml": "tcp"}


def player(protocol: str, port: int, fault: str = "", games: int = 0) -> list[str]:
    """Return a player of the tests' own; CGML's is sent from one port to the next."""
    return peer_command(f"{protocol}-player", "--port", str(port), "--games", str(games), fault=fault)


def port_for(protocol: str) -> int:
    return free_port("udp" if TRANSPORTS[protocol] == "udp" else "tcp")


def probed(protocol: str, port: int, *more: str, only: str) -> Done:
    picked = [word for name in only.split() for word in ("--only", f"{protocol}/{name}")]
    done = kiebitz("probe", "client", str(port), "-d", protocol, "--timeout", "0.5", *more, *picked)
    assert "Traceback" not in done.err
    return done


def found(protocol: str, only: str, fault: str = "", games: int = 0) -> dict[str, Any]:
    port = port_for(protocol)
    restart = shlex.join(player(protocol, port, fault, games))
    done = probed(protocol, port, "--restart", restart, "--json", only=only)
    results = {each["case"].removeprefix(f"{protocol}/"): each for each in done.json["results"]}
    is_failed = any(each["verdict"] == "FAILED" for each in results.values())
    assert done.status == (3 if is_failed else 0), done.err
    return results


# Right and wrong clients.

RIGHT = [
    ("maexchen", "game */said ROUND_STARTING/whole YOUR_TURN/whole rubbish"),
    ("schafkopf", "game */said NAME/whole DRAN/whole HOCHZEIT/whole rubbish"),
    ("catan", "game */said Willkommen/whole Würfelwurf/whole Ertrag/whole rubbish"),
    ("okey", "game */said +LOGI/whole STRT/whole +DRAW/whole rubbish"),
    ("cgml", "game */said connect/whole licite.ask/whole playcard.ask/whole rubbish"),
]


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "only"), RIGHT)
def test_a_right_client_passes(protocol: str, only: str) -> None:
    results = found(protocol, only)
    assert {case: each["why"] for case, each in results.items() if each["verdict"] == "FAILED"} == {}
    assert sum(each["verdict"] == "OK" for each in results.values()) > len(results) / 2


WRONG = [
    ("maexchen", "dies-on-an-unknown-word", "unknown-message", "it has ended: exit status 1"),
    ("maexchen", "dies-on-bad-utf8", "rubbish", "it has ended: exit status 1"),
    ("maexchen", "is-silent-after-the-roll", "ROLLED/whole", "it ignores it, and must continue as usual"),
    ("schafkopf", "dies-on-bad-utf8", "rubbish", "it has ended: exit status 1"),
]


@pytest.mark.parametrize(("protocol", "fault", "case", "why"), a_few(WRONG, WRONG[:1]))
def test_a_wrong_client_is_found(protocol: str, fault: str, case: str, why: str) -> None:
    (result,) = found(protocol, case, fault).values()
    assert (result["verdict"], result["why"]) == ("FAILED", why)


@pytest.mark.full
def test_a_client_that_hangs_is_found(tmp_path: Path) -> None:
    """It joins, receives its turn, and then hangs: it lives, but sends nothing."""
    port, program = free_port("udp"), tmp_path / "client.py"
    program.write_text(
        "import socket, time\n"
        "talk = socket.socket(type=socket.SOCK_DGRAM)\n"
        f"talk.connect(('127.0.0.1', {port}))\n"
        "talk.send(b'REGISTER;Anna')\n"
        "while True:\n"
        "    words = talk.recv(4096).split(b';')\n"
        "    if words[0] == b'ROUND STARTING': talk.send(b'JOIN;' + words[-1])\n"
        "    if words[0] == b'YOUR TURN': time.sleep(60)\n"
    )
    restart = shlex.join([sys.executable, str(program)])
    done = probed("maexchen", port, "--restart", restart, "--json", only="YOUR_TURN/whole")
    (result,) = done.json["results"]
    assert (done.status, result["verdict"]) == (3, "FAILED")
    assert result["why"] == "it ignores it, and must continue as usual"


# Clients that do not play.

SILENT = "import socket, time\ntalk = socket.create_connection(('127.0.0.1', PORT))\ntime.sleep(60)\n"
FLOOD = (
    "import socket\ntalk = socket.create_connection(('127.0.0.1', PORT))\n"
    "for _ in range(2000): talk.sendall(b'LOGI;x\\r\\n' * 200)\n"
    "talk.recv(1 << 16)\n"
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "says"), [(SILENT, "it sent nothing in 10 s"), (FLOOD, None)], ids=["silent", "flood"]
)
def test_a_client_that_does_not_play_is_reported(code: str, says: str | None, tmp_path: Path) -> None:
    port, program = free_port("tcp"), tmp_path / "client.py"
    program.write_text(code.replace("PORT", str(port)))
    restart = shlex.join([sys.executable, str(program)])
    done = probed("okey", port, "--restart", restart, "--json", only="game +LOGI/whole")
    game, _ = done.json["results"]
    assert game["case"] == "okey/game"
    if says is not None:
        assert (done.status, game["verdict"], game["why"]) == (1, "NOT TRIED", says)


def test_a_client_that_does_not_come_is_reported() -> None:
    port = free_port("udp")
    done = probed("maexchen", port, "--max-time", "1", only="game REGISTERED/whole")
    assert done.status == 1
    assert f"Connect the client to 127.0.0.1:{port} repeatedly: each connection is one case." in done.err
    assert "no client connected in 1 s" in done.out
    assert "left out: 1 case: the 1 s of --max-time are over" in done.err


def test_a_program_that_ends_without_having_come_is_reported() -> None:
    port = free_port("udp")
    started = time.monotonic()
    done = probed("maexchen", port, "--restart", "true", only="game")
    assert done.status == 1
    assert "it has ended (exit status 0) and has not connected" in done.out
    assert time.monotonic() - started < 20


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = probed("maexchen", port, only="game")
    assert (done.status, done.out) == (1, "")
    assert f"Cannot listen on udp 127.0.0.1:{port}: the port is in use" in done.err


# A client started manually.


@pytest.mark.full
def test_each_connection_of_a_client_started_by_hand_is_a_case() -> None:
    port, is_over = free_port("tcp"), threading.Event()

    def by_hand() -> None:
        while not is_over.is_set():
            playing = subprocess.Popen(player("okey", port, games=1), stderr=subprocess.DEVNULL)
            end = time.monotonic() + 30
            while playing.poll() is None and time.monotonic() < end and not is_over.is_set():
                time.sleep(0.05)
            playing.kill()
            playing.wait()

    hand = threading.Thread(target=by_hand, daemon=True)
    hand.start()
    done = probed("okey", port, "--json", only="game +LOGI/whole +LOGI/bytewise unknown-message")
    is_over.set()
    hand.join(10)
    assert not hand.is_alive()
    results = {each["case"].removeprefix("okey/"): each["verdict"] for each in done.json["results"]}
    assert done.status == 0
    assert results["game"] == results["+LOGI/whole"] == results["+LOGI/bytewise"] == "OK"
    assert results["unknown-message"] != "FAILED"


@pytest.mark.full
def test_the_wait_for_a_client_can_be_interrupted(tmp_path: Path) -> None:
    port = free_port("udp")
    command = [*KIEBITZ, "probe", "client", str(port), "-d", "maexchen", "--only", "maexchen/game", "--json"]
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert "Connect the client" in process.stderr.readline()
        # The port is listened at in a moment.
        end = time.monotonic() + 10
        while time.monotonic() < end and not _is_taken(port):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait(20) == 130, said
    assert "Traceback" not in said
    assert "left out: 1 case: interrupted" in said


def _is_taken(port: int) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as trying:
        try:
            trying.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False
