"""`kiebitz probe` with a protocol file: a recorded game leads to the cases."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from command import kiebitz, peer_command
from file_conversations import DATA, dissector_named
from peers.bench import Bench
from peers.planted import PLUGIN_PEERS
from peers.program import Player, Server, Setup
from processes_and_rows import free_port

from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder


def recorded(folder: Path) -> Path:
    """Return the capture of a game of noughts and crosses."""
    server = PLUGIN_PEERS["noughts-server"](Setup(games=2))
    assert isinstance(server, Server)
    bench = Bench(server)
    for name in ("Anna", "Bert"):
        player = PLUGIN_PEERS["noughts-player"](Setup(name=name, games=2))
        assert isinstance(player, Player)
        bench.connect(player)
    bench.run(10)
    path = folder / "noughts.pcapng"
    recorder = Recorder(MEMORY, "replay", "noughts", decode_as=bench.decode_as(dissector_named("noughts")))
    recorder.record(bench.items())
    recorder.close()
    with path.open("wb") as file:
        FORMATS["pcapng"](Timeline(recorder.connection, sessions(recorder.connection)[-1]), file)
    recorder.connection.close()
    return path


def failed(folder: Path, role: str, peer: str, fault: str, *only: str) -> dict[str, Any]:
    """Return the failed cases of a program, and why they failed."""
    port = free_port("tcp")
    own = ["--games", "2"] if role == "client" else []
    done = kiebitz(
        *("probe", role, str(port), "-d", "noughts", "-P", str(DATA / "noughts.toml")),
        *("--via-session", str(recorded(folder)), "--timeout", "0.3", "--json"),
        *("--restart", shlex.join(peer_command(peer, "--port", str(port), *own, fault=fault))),
        *(word for pattern in only for word in ("--only", f"noughts/{pattern}")),
    )
    assert "Traceback" not in done.err
    return {each["case"]: each["why"] for each in done.json["results"] if each["verdict"] == "FAILED"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "only"),
    [
        ("", ("game", "*/said", "unknown-message", "rubbish")),
        ("dies-on-an-unknown-word", ("unknown-message",)),
    ],
)
def test_a_server(tmp_path: Path, fault: str, only: tuple[str, ...]) -> None:
    assert bool(failed(tmp_path, "server", "noughts-server", fault, *only)) == bool(fault)


def test_a_client(tmp_path: Path) -> None:
    assert failed(tmp_path, "client", "noughts-player", "", "game", "*/said") == {}


def test_a_session_that_was_recorded_without_the_file(tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    kiebitz("import", str(recorded(tmp_path)), "-w", database)
    file = str(DATA / "noughts.toml")
    done = kiebitz("probe", "server", "9", "-d", "noughts", "-P", file, "--via-session", database)
    assert done.status == 1
    assert done.err.endswith(f"kiebitz redissect {database} -P FILE\n")
