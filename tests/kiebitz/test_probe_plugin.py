"""`kiebitz probe` on programs of plug-ins: no code is made for it, a recorded game leads to the cases."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import kiebitz, peer_command
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from peers.bench import Bench
from peers.planted import CONTROLS, PLUGIN_FAULTS, PLUGIN_PEERS, Fault
from peers.program import Player, Server, Setup
from processes_and_rows import free_port

from kiebitz.dissectors.conformance.expectations import TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.registry import plugins
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder

PLUGINS: dict[str, Dissector] = {"noughts": NOUGHTS, "knobeln": KNOBELN}


@pytest.fixture
def plugged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for protocol in PLUGINS:
        about = tmp_path / f"kiebitz_{protocol}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kiebitz-{protocol}\nVersion: 1.0\n")
        offer = f"{protocol} = kiebitz_{protocol}.dissector:{protocol.upper()}"
        (about / "entry_points.txt").write_text(f"[kiebitz.dissectors]\n{offer}\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    yield tmp_path
    plugins.cache_clear()


def server_of(protocol: str) -> Server:
    server = PLUGIN_PEERS[f"{protocol}-server"](Setup(games=2))
    assert isinstance(server, Server)
    return server


def played(protocol: str) -> Bench:
    bench = Bench(server_of(protocol))
    for name in ("Anna", "Bert"):
        if protocol == "knobeln":
            bench.say(bench.connect(), f"HALLO {name}".encode())
            continue
        player = PLUGIN_PEERS["noughts-player"](Setup(name=name, games=2))
        assert isinstance(player, Player)
        bench.connect(player)
    bench.run(10)
    return bench


def recorded(folder: Path, protocol: str) -> Path:
    """Return the capture of that."""
    bench, path = played(protocol), folder / f"{protocol}.pcapng"
    recorder = Recorder(MEMORY, "replay", protocol, decode_as=bench.decode_as(PLUGINS[protocol]))
    recorder.record(bench.items())
    recorder.close()
    with path.open("wb") as file:
        FORMATS["pcapng"](Timeline(recorder.connection, sessions(recorder.connection)[-1]), file)
    recorder.connection.close()
    return path


def probed(
    folder: Path, role: TargetRole, protocol: str, *only: str, fault: str = "", games: int = 2
) -> dict[str, Any]:
    """Return the results of cases at a program, by the cases' names without their protocol."""
    port = free_port(PLUGINS[protocol].transport)
    peer = f"{protocol}-{'server' if role == 'server' else 'player'}"
    own = ["--games", str(games)] if role == "client" else []
    words = peer_command(peer, "--port", str(port), *own, fault=fault)
    options = [
        "--via-session",
        str(recorded(folder, protocol)),
        "--restart",
        shlex.join(words),
        "--timeout",
        "0.3",
    ]
    options += [word for pattern in only for word in ("--only", f"{protocol}/{pattern}")]
    done = kiebitz("probe", role, str(port), "-d", protocol, *options, "--json")
    assert "Traceback" not in done.err
    found = done.json
    assert found["left_out"] is None
    results = {each["case"].removeprefix(f"{protocol}/"): each for each in found["results"]}
    assert done.status == (3 if failed(results) else 0), done.err
    return results


def failed(results: dict[str, Any]) -> dict[str, str]:
    return {case: each["why"] for case, each in results.items() if each["verdict"] == "FAILED"}


def verdict(results: dict[str, Any], case: str) -> str:
    return str(results[case]["verdict"])


def test_the_recorded_games_are_right() -> None:
    for protocol, dissector in PLUGINS.items():
        assert played(protocol).findings(dissector).diagnostics == []


def test_a_game_is_asked_for(plugged_in: Path) -> None:
    done = kiebitz("probe", "server", str(free_port("tcp")), "-d", "noughts")
    assert (done.status, done.out) == (1, "")
    assert "no recorded game comes with noughts: name a capture of one with --via-session CAPTURE" in done.err


# What is found.

OUTSIDE_THE_GRAMMAR = {
    "lets-the-loser-win": 'the server says WON with name "Anna" for "Bert"',
    "is-silent-when-it-is-its-turn": "the client sends nothing, but the recording has PUT",
}


@pytest.mark.parametrize("fault", PLUGIN_FAULTS, ids=lambda fault: f"{fault.peer} {fault.name}")
@pytest.mark.full
def test_a_fault_is_found_by_the_right_cases_alone(fault: Fault, plugged_in: Path) -> None:
    assert fault.cases or fault.reason
    controls = CONTROLS[fault.peer]
    results = probed(plugged_in, fault.role, fault.protocol, *controls, fault=fault.name)
    found = failed(results)
    assert {*found} == {*fault.cases} & {*results}, found
    if fault.name.startswith("dies"):
        assert {*found.values()} == {"it has ended: exit status 1"}
        assert all("peers" in results[case]["output"] for case in found)
    if fault.name in OUTSIDE_THE_GRAMMAR:
        assert verdict(results, "game") == "INFORMATIONAL"
        assert OUTSIDE_THE_GRAMMAR[fault.name] in results["game"]["why"]


@pytest.mark.full
@pytest.mark.parametrize("peer", PLUGIN_PEERS)
def test_a_faultless_program_passes(peer: str, plugged_in: Path) -> None:
    protocol, _, role = peer.partition("-")
    results = probed(plugged_in, "server" if role == "server" else "client", protocol)
    assert failed(results) == {}
    assert verdict(results, "game") == "OK"
    untried = [case for case, each in results.items() if each["verdict"] == "NOT TRIED"]
    assert len(untried) < len(results) / 10, untried
    assert not {*untried} & {*CONTROLS[peer]}
    if peer == "noughts-server":
        assert verdict(results, "BYE/whole") == "OK"
        assert "answers it with REFUSED" in results["HELLO/name/others-player"]["why"]


@pytest.mark.full
def test_differences_between_programs_are_not_demanded(plugged_in: Path) -> None:
    """In the recording the client leaves after two games; this one plays on, and waits for the server."""
    results = probed(plugged_in, "client", "noughts", "game", "DRAW/whole", "MARK/whole", games=3)
    assert failed(results) == {}
    assert verdict(results, "game") == "INFORMATIONAL"
    assert verdict(results, "MARK/whole") == "OK"
    # Nothing in the grammar answers a DRAW: to say nothing then is right.
    assert (verdict(results, "DRAW/whole"), results["DRAW/whole"]["why"]) == ("OK", "it ignores it")
