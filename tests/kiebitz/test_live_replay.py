from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command import kiebitz as in_this_process
from inspected_captures import CAPTURES
from live_replays import ended, playing
from maexchen_programs import Player, Server, play
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, running
from rotating_relays import relaying
from session_factory import Conversation, record
from strength import a_few

from kiebitz.dissectors.model import Transport

RECORDED = sorted(
    # RoboRally is known to its protocol file only.
    path.name
    for path in CAPTURES.glob("*.pcap*")
    if not path.name.startswith("roborally")
)
PACED = {"maexchen-two-servers-restart.pcapng": ("--speed", "2")}
QUICK = ["schafkopf-1.3-badcard.pcap"]
TINY = str(CAPTURES / "maexchen-head-tiny.pcap")


def kiebitz(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Return the command, run to its end, which is to be this one."""
    done = subprocess.run([*KIEBITZ, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done


def servers_of(database: Path) -> list[tuple[Transport, str, str]]:
    """Transport, address and protocol of the servers of a session."""
    return rows(
        database,
        "SELECT transport, server, protocol FROM streams WHERE protocol IS NOT NULL GROUP BY server",
    )


@pytest.mark.full
@pytest.mark.parametrize("capture", a_few(RECORDED, QUICK))
def test_both_sides_played_to_each_other_through_a_relay_are_the_same_game(
    capture: str, tmp_path: Path
) -> None:
    """Even where the recorded peers did all sorts of things wrong."""
    recorded, relayed = tmp_path / "recorded.db", tmp_path / "relayed.db"
    assert in_this_process("import", str(CAPTURES / capture), "-w", str(recorded)).status == 0
    serve: list[str] = []
    connect: list[str] = []
    modes: list[str] = []
    for transport, address, protocol in servers_of(recorded):
        behind, before = free_port(transport), free_port(transport)
        serve += ["--serve", f"{address}=127.0.0.1:{behind}"]
        connect += ["--connect", f"{address}=127.0.0.1:{before}"]
        modes += ["-m", f"reverse:{transport}://127.0.0.1:{behind}@{before}"]
        modes += ["-d", f"{transport}.port=={behind},{protocol}"]
    pace = PACED.get(capture, ())
    with (
        playing(str(recorded), *serve, *pace, "-q") as server,
        running(*KIEBITZ, "relay", *modes, "-q", "-w", str(relayed), ready="listening on"),
    ):
        kiebitz("replay", str(recorded), *connect, *pace, "-q")
        assert ended(server)[0] == 0
    compared = in_this_process("diff", str(recorded), str(relayed))
    assert compared.status == 0, compared.out
    assert "are the same" in compared.out


def test_empty_datagrams_are_sent_by_both_sides(tmp_path: Path) -> None:
    port = free_port("udp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(PATIENCE_S)
        said = Conversation().says(b"REGISTER;alice").says(b"").says(b"ROLL;x")
        peer.bind(("127.0.0.1", port))
        kiebitz("replay", record(tmp_path / "said.db", said.items), "--connect", f"127.0.0.1:{port}", "-q")
        assert [peer.recv(100) for _ in said.items] == [b"REGISTER;alice", b"", b"ROLL;x"]
    heard = Conversation().says(b"REGISTER;alice").hears(b"").hears(b"REGISTERED")
    with (
        playing(record(tmp_path / "heard.db", heard.items), "--serve", f"127.0.0.1:{port}", "-q"),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
    ):
        peer.settimeout(PATIENCE_S)
        peer.sendto(b"REGISTER;alice", ("127.0.0.1", port))
        assert [peer.recv(100) for _ in heard.items[1:]] == [b"", b"REGISTERED"]


# The clients' side of a game that these tests' own server plays once more, with tokens of its own.


def recorded_game(database: Path, *names: str, rounds: int) -> Path:
    """Return the database of a game of these players, through a relay."""
    server = Server(expected=len(names), rounds=rounds)
    with relaying("udp", server.port, database) as relay:
        play(server, [Player(name, ("127.0.0.1", relay.port)) for name in names])
        assert relay.stop() == 0
    assert len(rows(database, "SELECT id FROM games WHERE result IS NOT NULL")) == rounds
    return database


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_game(tmp_path_factory.mktemp("played") / "played.db", "alice", "bob", "carl", rounds=3)


@pytest.mark.full
def test_clients_replayed_to_another_server_make_the_same_game(played: Path, tmp_path: Path) -> None:
    today = tmp_path / "today.db"
    server = Server(expected=3, rounds=3)
    server.start()
    kiebitz("replay", str(played), "--connect", f"127.0.0.1:{server.port}", "-w", str(today), "-q")
    server.join(30)
    kiebitz("diff", str(played), str(today))
    tokens = "SELECT json_extract(fields, '$.token') FROM messages WHERE name = 'JOIN'"
    assert not {*rows(played, tokens)} & {*rows(today, tokens)}
    assert rows(today, "SELECT kind FROM sessions") == [("replay",)]


@pytest.mark.parametrize("roll", a_few([1, 3], [1]))
@pytest.mark.full
def test_another_die_is_the_first_difference(played: Path, tmp_path: Path, roll: int) -> None:
    today = tmp_path / "today.db"
    server = Server(expected=3, rounds=3, other_dice={roll: "3,1"})
    server.start()
    options = ("--on-divergence", "skip", "--timeout", "0.5", "-w", str(today))
    done = kiebitz("replay", str(played), "--connect", f"127.0.0.1:{server.port}", *options, status=3)
    server.join(30)
    number, dice = rows(
        played,
        "SELECT id, json_extract(fields, '$.dice') FROM messages WHERE name = 'ROLLED'"
        f" ORDER BY id LIMIT 1 OFFSET {roll - 1}",
    )[0]
    said = f'the server says ROLLED with dice "3,1" for "{dice}" (#{number})'
    first = next(line for line in done.stdout.splitlines() if "warning[divergence]" in line)
    assert first.endswith(said)
    assert said in done.stderr
    difference = json.loads(kiebitz("diff", str(played), str(today), "--json", status=3).stdout)
    first_difference = difference["differences"][0]
    assert [first_difference[side]["kind"] for side in "ab"] == ["rolled", "rolled"]
    assert [first_difference[side]["data"]["dice"] for side in "ab"] == [dice, "3,1"]
    # It is stored with the session, and survives redissecting.
    found = "SELECT text, grp, blame, expected FROM diagnostics WHERE code = 'divergence' ORDER BY id LIMIT 1"
    before = rows(today, found)
    assert before[0][:3] == (said, "state", "server")
    assert dice in before[0][3]
    kiebitz("redissect", str(today))
    assert rows(today, found) == before


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_server_with_dice_and_an_order_of_its_own_comes_through_the_round(
    seed: int, tmp_path: Path
) -> None:
    """It begins with a cancelled round. The record decides what its clients answer, whoever is asked."""
    today = tmp_path / "today.db"
    server = Server(expected=4, rounds=2, seed=seed, cancels_first=True)
    server.start()
    to_server = ("--connect", f"127.0.0.1:{server.port}", "--timeout", "5")
    done = kiebitz("replay", TINY, *to_server, "-w", str(today), "-q", status=3)
    server.join(30)
    assert re.search(
        r"^69 messages, \d+ divergences, the first: the server says ROUND CANCELED", done.stderr, re.M
    )
    announced = rows(
        today, "SELECT json_extract(fields, '$.dice') FROM messages WHERE name = 'ANNOUNCE' ORDER BY id"
    )
    assert announced == [("3,3",), ("6,5",)]
    sent = "SELECT count(*) FROM messages WHERE direction = 'c2s' AND name IN ('JOIN', 'ROLL')"
    assert rows(today, sent) == [(10,)]
    # Tokens are the live server's.
    wrong = "SELECT code FROM diagnostics WHERE severity = 'error' AND blame = 'client'"
    assert rows(today, wrong) == []
    results = [row["result"] for row in in_this_process("games", str(today), "--json").json]
    assert next(one["reason"] for one in results if one and "losers" in one) == "ANNOUNCED_LOSING_DICE"


@pytest.mark.full
def test_one_player_alone_is_played(played: Path, tmp_path: Path) -> None:
    """The others are live; their moves are their own, so this is only about who speaks."""
    server = Server(expected=1, rounds=1)
    server.start()
    arguments = ["--connect", f"127.0.0.1:{server.port}", "--player", "bob", "--on-divergence", "skip"]
    database = tmp_path / "bob.db"
    kiebitz("replay", str(played), *arguments, "--timeout", "0.5", "-w", str(database), "-q", status=3)
    server.join(30)
    said = rows(database, "SELECT fields FROM messages WHERE name = 'REGISTER'")
    assert said == [('{"name":"bob"}',)]


# A live client of a server that is played.


class Client:
    """A Mäxchen client by hand, which has registered."""

    def __init__(self, port: int, name: str = "alice") -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(("127.0.0.1", port))
        self.say(f"REGISTER;{name}")
        self.hear("REGISTERED")

    def say(self, text: str) -> None:
        self._socket.send(text.encode())

    def hear(self, beginning: str) -> str:
        """Return the next datagram, which is to begin like this."""
        text = self._socket.recv(65_535).decode()
        assert text.startswith(beginning)
        return text

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def one_player(tmp_path: Path) -> Path:
    return recorded_game(tmp_path / "one.db", "alice", rounds=1)


@pytest.mark.full
def test_a_client_of_another_name_plays_with_the_recorded_server(one_player: Path) -> None:
    port = free_port("udp")
    with playing(str(one_player), "--serve", f"127.0.0.1:{port}", "--timeout", "2") as server:
        client = Client(port, "zoë")
        client.say("JOIN;" + client.hear("ROUND STARTING;").split(";")[1])
        assert client.hear("ROUND STARTED").endswith(";zoë")
        token = client.hear("YOUR TURN;").split(";")[1]
        # The player deviates from the recording.
        client.say(f"SEE;{token}")
        status, out, err = ended(server)
        client.close()
    assert status == 3
    recorded = rows(one_player, "SELECT id FROM messages WHERE name = 'ROLL' ORDER BY id LIMIT 1")[0][0]
    assert re.search(rf"the client says SEE .*, where the record has ROLL .*\(#{recorded}\)", err)
    assert "zoë joins the round" in out


@pytest.mark.full
def test_a_silent_client_is_awaited_no_longer_than_asked(one_player: Path) -> None:
    port = free_port("udp")
    with playing(str(one_player), "--serve", f"127.0.0.1:{port}", "--timeout", "0.2", "-q") as server:
        # Before the first client has come, there is no limit.
        time.sleep(0.5)
        assert server.poll() is None
        client = Client(port)
        status, out, err = ended(server)
        client.close()
    assert status == 3
    assert out == ""
    assert "the client sends nothing, but the recording has JOIN" in err


def test_waiting_for_the_recorded_message_has_a_limit_though_others_come(one_player: Path) -> None:
    port = free_port("udp")
    options = ("--on-divergence", "wait", "--timeout", "0.3", "-q")
    with playing(str(one_player), "--serve", f"127.0.0.1:{port}", *options) as server:
        client = Client(port)
        deadline = time.monotonic() + PATIENCE_S
        # The port is closed once the replay has stopped.
        with suppress(ConnectionRefusedError):
            while server.poll() is None and time.monotonic() < deadline:
                client.say("ECHO;still here")
                time.sleep(0.02)
        status, _, err = ended(server)
        client.close()
    assert status == 3
    assert err.startswith("stopped after ")
    assert "the client sends nothing, but the recording has JOIN" in err


@pytest.mark.full
def test_one_game_is_played_after_the_introductions() -> None:
    port = free_port("udp")
    game = [str(CAPTURES / "maexchen-head-port4711.pcap"), "--game", "3"]
    with playing(*game, "--serve", f"127.0.0.1:{port}", "-q") as server:
        client = kiebitz("replay", *game, "--connect", f"127.0.0.1:{port}", "-q")
        assert ended(server)[0] == 0
    assert re.fullmatch(r"all \d+ messages went as recorded\n", client.stderr)


@pytest.mark.full
def test_an_interrupted_replay_keeps_what_was_recorded(one_player: Path, tmp_path: Path) -> None:
    port, database = free_port("udp"), tmp_path / "half.db"
    with playing(str(one_player), "--serve", f"127.0.0.1:{port}", "-w", str(database)) as server:
        client = Client(port)
        server.send_signal(signal.SIGINT)
        status, _, err = ended(server)
        client.close()
    assert status == 130
    assert f"-> {database}:1" in err
    assert rows(database, "SELECT name FROM messages ORDER BY id LIMIT 2") == [("REGISTER",), ("REGISTERED",)]


@pytest.mark.full
def test_the_pace_is_the_record_s_if_asked(one_player: Path) -> None:
    """The tests' server waits 0.1 s for those who join, so the round cannot start before that."""
    port = free_port("udp")
    times: list[float] = []
    with playing(str(one_player), "--serve", f"127.0.0.1:{port}", "--speed", "1", "-q"):
        client = Client(port)
        client.say("JOIN;" + client.hear("ROUND STARTING;").split(";")[1])
        times.append(time.monotonic())
        client.hear("ROUND STARTED")
        times.append(time.monotonic())
        client.close()
    assert times[1] - times[0] >= 0.08


def test_no_listener() -> None:
    port = free_port("udp")
    done = in_this_process("replay", TINY, "--connect", f"127.0.0.1:{port}")
    assert done.status == 3
    assert "the server cannot be reached (Connection refused)" in done.err
    port = free_port("tcp")
    lobby = str(CAPTURES / "catan-yaks-lobby.pcap.gz")
    done = in_this_process("replay", lobby, "--connect", f"127.0.0.1:{port}")
    assert done.status == 1
    assert f"Cannot connect to tcp 127.0.0.1:{port}: Connection refused. Start the server first" in done.err
