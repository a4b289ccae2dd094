"""The programs in `peers/` play by the rules, survive everything, and show their faults where they play."""

from __future__ import annotations

import random
import re
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from command import ROOT, kiebitz, peer_command
from games_in_memory import GAMES, NAMES, SEATS, diagnostics, played
from peers.bench import Bench, Seat
from peers.planted import FAULTS, PEERS, Fault
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, running
from strength import a_few, times

from kiebitz.dissectors.model import Transport

PROGRAMS = ROOT / "tests" / "support" / "peers"
GAMES_LIVE = {"maexchen": 6, "schafkopf": 2, "catan": 1, "okey": 1, "cgml": 3}
MOVES = {
    "maexchen": (b"JOIN", b"ROLL", b"SEE", b"ANNOUNCE"),
    "schafkopf": (b"!MODEL",),
    "catan": (b'{"Bauen', '{"Würfeln'.encode()),
    "okey": (b"DRAW", b"PUTT"),
    "cgml": (b"<licite", b"<playcard"),
}

STALLED_S = 70.0


# The table of faults.


@pytest.mark.parametrize("peer", PEERS)
def test_the_table_and_the_programs_agree(peer: str) -> None:
    own, shared = ((PROGRAMS / f"{name}.py").read_text() for name in (peer.replace("-", "_"), "program"))
    listed = [fault.name for fault in FAULTS if fault.peer == peer]
    assert len({*listed}) == len(listed) >= 3
    assert {*re.findall(r'\b(?:has|dies)\(\s*"([a-z0-9-]+)"', own)} <= {*listed}
    assert [name for name in listed if f'"{name}"' not in own and f'"{name}"' not in shared] == []


def test_there_are_many() -> None:
    assert len(FAULTS) > 100
    assert {fault.peer for fault in FAULTS} == {*PEERS}


# By the rules: `test_bots.py` shows whole games without a fault.


def showing(fault: Fault) -> set[str]:
    """Return the codes of what Kiebitz finds in ordinary play of a program with this fault."""
    found: set[str] = set()
    for seed in range(1, 6):
        servers, berts = (fault.name, "") if fault.role == "server" else ("", fault.name)
        bench = played(fault.protocol, servers, berts, seed=seed, seconds=STALLED_S)
        found |= {violation.code for violation in diagnostics(fault.protocol, bench)}
        if {*fault.shows} <= found:
            break
    return found


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "fault",
    a_few(
        [fault for fault in FAULTS if fault.shows],
        lambda fault: (
            fault.name in ("counts-a-loss-twice", "names-the-losers", "pays-too-much", "repeats-the-bid")
        ),
        lambda fault: f"{fault.peer} {fault.name}",
    ),
)
def test_a_fault_shows_in_play(fault: Fault) -> None:
    assert {*fault.shows} <= showing(fault)
    assert not {*fault.shows} & {
        violation.code for violation in diagnostics(fault.protocol, played(fault.protocol))
    }


# For any message of a client.


def spoilt(chance: random.Random, data: bytes) -> list[bytes]:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(8):
        case 0:
            return [data[:at], bytes([chance.randrange(256)]) + data[at + 1 :]]
        case 1:
            return [data[:at]]
        case 2:
            return [data[at:], data]
        case 3:
            return [data, data]
        case 4:
            return [
                data[:at] + chance.choice((b"\xff", b"\0", b"9" * 400, b'"', b"<", b"{" * 3000)) + data[at:]
            ]
        case 5:
            return []
        case 6:
            return [chance.randbytes(chance.randrange(200)) + b"\n\n"]
    return [data.replace(b"1", b"-7").replace(b"e", b"E")]


def gets_in(protocol: str, bench: Bench) -> bool:
    seat = bench.connect()
    if protocol == "maexchen":
        bench.say(seat, b"REGISTER;Zoe")
    if protocol == "cgml":
        bench.say(seat, b"<no></xml>\r\n\r\n")
    return bool(seat.heard)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("seed", range(times(60, 2)))
@pytest.mark.parametrize("protocol", SEATS)
def test_a_server_survives_a_player_that_errs(protocol: str, seed: int) -> None:
    chance = random.Random(seed)

    def spoils(seat: Seat, data: bytes) -> list[bytes]:
        return spoilt(chance, data) if chance.random() < 0.1 else [data]

    bench = played(protocol, spoils=spoils, seed=seed)
    assert gets_in(protocol, bench) or bench.server.over


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", range(times(20, 1)))
@pytest.mark.parametrize("protocol", a_few(SEATS, lambda protocol: protocol != "catan"))
def test_a_game_continues_despite_an_unverified_client(protocol: str, seed: int) -> None:
    chance = random.Random(seed)
    strangers: list[Seat] = []

    def overhears(seat: Seat, data: bytes) -> list[bytes]:
        is_heard = not strangers or (chance.random() < 0.3 and len(strangers) < 30)
        if data.startswith(MOVES[protocol]) and is_heard:
            if not strangers or strangers[-1].is_closed:
                strangers.append(seat.bench.connect(host="127.0.0.2", door=seat.door))
            for piece in spoilt(chance, data):
                seat.bench.whisper(strangers[-1], piece)
        return [data]

    bench = played(protocol, spoils=overhears, seed=seed)
    assert bench.server.games == GAMES[protocol]
    assert strangers


# As programs.


@contextmanager
def served(protocol: str, database: Path, *options: str) -> Iterator[list[int]]:
    """Yield a server and a relay before it, with the ports of the relay."""
    transport: Transport = "udp" if protocol == "maexchen" else "tcp"
    doors = 2 if protocol == "cgml" else 1
    first = free_port(transport)
    while doors == 2 and free_port(transport) != first + 1:
        first = free_port(transport)
    ports = [free_port(transport) for _ in range(doors)]
    modes = [
        option
        for number, port in enumerate(ports)
        for option in ("-m", f"reverse:{transport}://127.0.0.1:{first + number}@{port}")
    ]
    common = ("--port", str(first), "--players", str(SEATS[protocol]), "--points", "4")
    with ExitStack() as ending:
        server = peer_command(f"{protocol}-server", *common, "--url", f"127.0.0.1:{ports[-1]}", *options)
        ending.enter_context(running(*server, ready="listening on"))
        ending.enter_context(running(*KIEBITZ, "relay", *modes, "-w", str(database), ready="listening on"))
        yield ports


@pytest.mark.parametrize(
    ("protocol", "fault", "code"),
    a_few(
        [
            *((protocol, "", "") for protocol in SEATS),
            ("maexchen", "blames-who-saw", "wrong-verdict"),
            ("schafkopf", "names-the-losers", "wrong-winner"),
            ("catan", "charges-too-much", "wrong-cost"),
            ("okey", "lets-anybody-win", "no-win"),
            ("cgml", "pays-too-much", "money"),
        ],
        lambda row: row[:2] == ("maexchen", ""),
        lambda row: " ".join(row[:2]).strip(),
    ),
)
@pytest.mark.full
def test_a_game_through_the_relay_is_checked(tmp_path: Path, protocol: str, fault: str, code: str) -> None:
    database = tmp_path / "game.db"
    games = str(GAMES_LIVE[protocol])
    with served(protocol, database, *(["--fault", fault] if fault else [])) as ports:
        players = [
            subprocess.Popen(
                peer_command(f"{protocol}-player", "--port", str(ports[0]), "--name", name, "--games", games),
                stderr=subprocess.PIPE,
            )
            for name in NAMES[: SEATS[protocol]]
        ]
        try:
            said = [player.communicate(timeout=PATIENCE_S)[1].decode() for player in players]
        finally:
            for player in players:
                player.kill()
                player.wait()
        assert said == [""] * len(players)
        assert {player.returncode for player in players} == {0}
    done = kiebitz("check", str(database))
    assert done.err == ""
    assert done.status == (3 if fault else 0), done.out
    assert code in done.out


def test_the_command_line_rejects_missing_objects() -> None:
    done = subprocess.run(
        peer_command("okey-server", "--fault", "laughs"), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 2
    assert "okey-server has no fault laughs; --list shows all" in done.stderr


def closed_at_once(sock: socket.socket) -> None:
    """Send nothing."""


def reset_in_a_line(sock: socket.socket) -> None:
    sock.sendall(b'{"Hal')
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_closed_in_a_line(sock: socket.socket) -> None:
    sock.sendall(b"LOGI Zoe")
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(4096):
        pass


def endless_line(sock: socket.socket) -> None:
    sock.sendall(b"x" * 600_000)


def reads_nothing(sock: socket.socket) -> None:
    sock.sendall(b"LPLA\n" * 30_000)


RUDE: tuple[Callable[[socket.socket], None], ...] = (
    closed_at_once,
    reset_in_a_line,
    half_closed_in_a_line,
    endless_line,
    reads_nothing,
)


@pytest.mark.parametrize(
    "protocol", a_few([protocol for protocol in SEATS if protocol != "maexchen"], ["okey"])
)
def test_a_program_survives_rude_connections(protocol: str) -> None:
    port = free_port("tcp")
    with running(*peer_command(f"{protocol}-server", "--port", str(port)), ready="listening on"):
        for rude in RUDE:
            # A server may have closed already what is written to.
            with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
                rude(sock)
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
            sock.sendall(b"<no></xml>\r\n\r\n")
            assert sock.recv(1)


def test_a_program_that_dies_is_gone() -> None:
    port = free_port("tcp")
    command = peer_command("okey-server", "--port", str(port), "--fault", "dies-on-an-empty-line")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert "listening on" in server.stderr.readline()
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
                sock.sendall(b"\r\n")
                _, said = server.communicate(timeout=PATIENCE_S)
        finally:
            server.kill()
    assert server.returncode == 1
    assert "Died: unreadable: an empty line has no message" in said
