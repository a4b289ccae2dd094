from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from probe_command import player, probe, results
from processes_and_rows import KIEBITZ, free_port
from strength import a_few

RIGHT = [
    ("maexchen", "game */said ROUND_STARTING/whole YOUR_TURN/whole rubbish"),
    ("schafkopf", "game */said NAME/whole DRAN/whole HOCHZEIT/whole rubbish"),
    ("catan", "game */said Willkommen/whole Würfelwurf/whole Ertrag/whole rubbish"),
    ("okey", "game */said +LOGI/whole STRT/whole +DRAW/whole rubbish"),
    ("cgml", "game */said connect/whole licite.ask/whole playcard.ask/whole rubbish"),
]


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "cases"), RIGHT)
def test_a_right_client_passes(protocol: str, cases: str) -> None:
    done = probe(f"{protocol}-client", cases, "--json")
    assert done.failed == {}
    assert [*done.verdicts.values()].count("OK") > len(done.verdicts) / 2


WRONG = [
    ("maexchen", "dies-on-an-unknown-word", "unknown-message", "it has ended: exit status 1"),
    ("maexchen", "dies-on-bad-utf8", "rubbish", "it has ended: exit status 1"),
    ("maexchen", "is-silent-after-the-roll", "ROLLED/whole", "it ignores it, and must continue as usual"),
    ("schafkopf", "dies-on-bad-utf8", "rubbish", "it has ended: exit status 1"),
]


@pytest.mark.parametrize(("protocol", "fault", "case", "why"), a_few(WRONG, WRONG[:1]))
def test_a_wrong_client_is_found(protocol: str, fault: str, case: str, why: str) -> None:
    assert probe(f"{protocol}-client", case, "--json", fault=fault).failed == {case: why}


def script(path: Path, text: str) -> str:
    """Write a program that gets the port as its argument, and return its shell command."""
    path.write_text(text)
    return f"{shlex.join([sys.executable, str(path)])} {{port}}"


HANGING = """
import socket, sys, time
talk = socket.socket(type=socket.SOCK_DGRAM)
talk.connect(('127.0.0.1', int(sys.argv[1])))
talk.send(b'REGISTER;Anna')
while True:
    words = talk.recv(4096).split(b';')
    if words[0] == b'ROUND STARTING': talk.send(b'JOIN;' + words[-1])
    if words[0] == b'YOUR TURN': time.sleep(60)
"""


@pytest.mark.full
def test_a_client_that_hangs_is_found(tmp_path: Path) -> None:
    """It joins, receives its turn, and then hangs: it lives, but sends nothing."""
    restart = script(tmp_path / "client.py", HANGING)
    done = probe("maexchen-client", "YOUR_TURN/whole", "--json", restart=restart)
    assert done.failed == {"YOUR_TURN/whole": "it ignores it, and must continue as usual"}


# Clients that do not play.

CONNECTED = """
import socket, sys, time
talk = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
"""
FLOOD = "for _ in range(2000): talk.sendall(b'LOGI;x\\r\\n' * 200)\ntalk.recv(1 << 16)\n"


@pytest.mark.full
@pytest.mark.parametrize(("does", "says"), [("time.sleep(60)\n", "it sent nothing in 10 s"), (FLOOD, None)])
def test_a_client_that_does_not_play_is_reported(does: str, says: str | None, tmp_path: Path) -> None:
    restart = script(tmp_path / "client.py", CONNECTED + does)
    done = probe("okey-client", "game +LOGI/whole", "--json", restart=restart)
    game = done.results["game"]
    if says is not None:
        assert (done.status, game["verdict"]) == (1, "NOT TRIED")
        assert game["why"].startswith(says)


def test_a_client_that_does_not_come_is_reported() -> None:
    port = free_port("udp")
    done = probe("maexchen-client", "game REGISTERED/whole", "--max-time", "1", port=port)
    assert done.status == 1
    assert f"Connect the client to 127.0.0.1:{port} repeatedly: each connection is one case." in done.err
    # A loaded machine has less of the second left.
    assert re.search(r"no client connected in (?:1|0\.\d) s", done.out)
    assert "left out: 1 case: the 1 s of --max-time are over" in done.err


def test_a_program_that_ends_without_having_come_is_reported() -> None:
    started = time.monotonic()
    done = probe("maexchen-client", "game", restart="true")
    assert done.status == 1
    assert "it has ended (exit status 0) and has not connected" in done.out
    assert time.monotonic() - started < 20


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = probe("maexchen-client", "game", port=port)
    assert (done.status, done.out) == (1, "")
    assert f"Cannot listen on udp 127.0.0.1:{port}: the port is in use" in done.err


# A client started manually.


@pytest.mark.full
def test_each_connection_of_a_client_started_by_hand_is_a_case() -> None:
    port, is_over = free_port("tcp"), threading.Event()

    def by_hand() -> None:
        while not is_over.is_set():
            playing = subprocess.Popen(
                shlex.split(player(port, protocol="okey", games=1)), stderr=subprocess.DEVNULL
            )
            end = time.monotonic() + 30
            while playing.poll() is None and time.monotonic() < end and not is_over.is_set():
                time.sleep(0.05)
            playing.kill()
            playing.wait()

    hand = threading.Thread(target=by_hand, daemon=True)
    hand.start()
    cases = "game +LOGI/whole +LOGI/bytewise unknown-message"
    found = results("okey-client", cases, port=port)
    is_over.set()
    hand.join(10)
    assert not hand.is_alive()
    verdicts = {case: each["verdict"] for case, each in found.items()}
    assert verdicts.pop("unknown-message") != "FAILED"
    assert {*verdicts.values()} == {"OK"}


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
