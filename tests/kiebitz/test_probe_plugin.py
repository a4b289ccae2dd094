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
from peers.of_plugins import PLUGIN_FAULTS, PLUGIN_PEERS
from peers.program import Player, Server, Setup
from processes_and_rows import free_port
from strength import a_few

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

PICKED: dict[tuple[TargetRole, str], tuple[str, ...]] = {
    ("server", "noughts"): (
        *("game", "*/said", "unknown-message", "rubbish", "come-and-go/reset", "HELLO/name/latin-1"),
        *("HELLO/name/others-player", "BYE/whole", "BYE/bytewise", "BYE/cut/close", "PUT/whole"),
        *(
            "PUT/bytewise",
            "PUT/cut/silence",
            "PUT/cut/half-close",
            "PUT/square/left-out",
            "PUT/square/latin-1",
        ),
        "PUT/square/unknown",
    ),
    ("client", "noughts"): (
        *("game", "*/said", "unknown-message", "START/x/latin-1", "MARK/whole", "MARK/square/left-out"),
        *("MARK/cut/close", "DRAW/whole"),
    ),
    ("server", "knobeln"): (
        *("game", "*/said", "unknown-message", "rubbish", "HALLO/whole", "HALLO/doubled"),
        *("HALLO/from-stranger", "HALLO/name/latin-1", "HALLO/name/nobodys-player"),
    ),
}
"""Cases that each program is tried with, whatever its fault is."""

FINDS: dict[tuple[TargetRole, str, str], tuple[str, ...]] = {
    ("server", "noughts", "dies-on-bad-utf8"): ("HELLO/name/latin-1", "PUT/square/latin-1"),
    ("server", "noughts", "dies-on-an-unknown-word"): ("unknown-message", "rubbish"),
    ("server", "noughts", "dies-on-a-missing-field"): ("rubbish", "PUT/square/left-out"),
    ("server", "noughts", "dies-on-half-a-line"): ("BYE/cut/close", "PUT/cut/half-close"),
    ("server", "noughts", "waits-for-the-rest"): ("PUT/cut/silence",),
    ("server", "noughts", "closes-all"): (
        *("unknown-message", "rubbish", "PUT/square/left-out", "PUT/square/latin-1", "PUT/square/unknown"),
    ),
    ("server", "noughts", "forgets-the-square"): ("MARK/said",),
    ("server", "noughts", "makes-up-reasons"): ("REFUSED/said",),
    ("server", "noughts", "takes-taken-squares"): ("MARK/said",),
    ("server", "noughts", "lets-all-go-first"): ("MARK/said",),
    # No rule of its table says who wins, so no violation is reported.
    ("server", "noughts", "lets-the-loser-win"): (),
    ("client", "noughts", "dies-on-bad-utf8"): ("START/x/latin-1",),
    ("client", "noughts", "dies-on-an-unknown-word"): ("unknown-message",),
    ("client", "noughts", "dies-on-a-missing-field"): ("MARK/square/left-out",),
    ("client", "noughts", "puts-where-no-square-is"): ("PUT/said",),
    # The grammar does not define a message's successors either.
    ("client", "noughts", "is-silent-when-it-is-its-turn"): (),
    ("server", "knobeln", "dies-on-bad-utf8"): ("rubbish", "HALLO/name/latin-1"),
    ("server", "knobeln", "dies-on-an-unknown-word"): ("unknown-message", "rubbish"),
    ("server", "knobeln", "rolls-a-word"): ("WURF/said",),
}

OUTSIDE_THE_GRAMMAR = {
    "lets-the-loser-win": 'the server says WON with name "Anna" for "Bert"',
    "is-silent-when-it-is-its-turn": "the client sends nothing, but the recording has PUT",
}


def test_each_fault_is_looked_for() -> None:
    roles = {"server": "server", "client": "player"}
    assert {(protocol, roles[role], fault) for role, protocol, fault in FINDS} == {
        (fault.protocol, fault.role, fault.name) for fault in PLUGIN_FAULTS
    }


@pytest.mark.parametrize(
    ("role", "protocol", "fault"),
    a_few(
        FINDS,
        [("server", "knobeln", "rolls-a-word")],
    ),
)
@pytest.mark.full
def test_a_fault_is_found_by_the_right_cases_alone(
    role: TargetRole, protocol: str, fault: str, plugged_in: Path, request: pytest.FixtureRequest
) -> None:
    finds = FINDS[role, protocol, fault]
    # A few that find nothing are tried, too.
    is_full = request.config.getoption("--full")
    picked = PICKED[role, protocol] if is_full else (*finds[:2], "game", *PICKED[role, protocol][-2:])
    results = probed(plugged_in, role, protocol, *picked, fault=fault)
    found = failed(results)
    assert {*found} == {*finds} & {*results}, found
    if fault.startswith("dies"):
        assert {*found.values()} == {"it has ended: exit status 1"}
        assert all("peers" in results[case]["output"] for case in found)
    if fault in OUTSIDE_THE_GRAMMAR:
        assert verdict(results, "game") == "INFORMATIONAL"
        assert OUTSIDE_THE_GRAMMAR[fault] in results["game"]["why"]


@pytest.mark.full
@pytest.mark.parametrize(("role", "protocol"), PICKED)
def test_a_faultless_program_passes(role: TargetRole, protocol: str, plugged_in: Path) -> None:
    results = probed(plugged_in, role, protocol, *PICKED[role, protocol])
    assert failed(results) == {}
    assert verdict(results, "game") == "OK"
    assert {case for case, each in results.items() if each["verdict"] == "NOT TRIED"} == set()
    if role == "server" and protocol == "noughts":
        assert verdict(results, "BYE/whole") == "OK"
        assert "answers it with REFUSED" in results["HELLO/name/others-player"]["why"]


@pytest.mark.full
@pytest.mark.parametrize(("role", "protocol"), [*PICKED])
def test_a_faultless_program_passes_all(role: TargetRole, protocol: str, plugged_in: Path) -> None:
    results = probed(plugged_in, role, protocol)
    assert failed(results) == {}
    untried = [case for case, each in results.items() if each["verdict"] == "NOT TRIED"]
    assert len(untried) < len(results) / 10, untried


@pytest.mark.full
def test_differences_between_programs_are_not_demanded(plugged_in: Path) -> None:
    """In the recording the client leaves after two games; this one plays on, and waits for the server."""
    results = probed(plugged_in, "client", "noughts", "game", "DRAW/whole", "MARK/whole", games=3)
    assert failed(results) == {}
    assert verdict(results, "game") == "INFORMATIONAL"
    assert verdict(results, "MARK/whole") == "OK"
    # Nothing in the grammar answers a DRAW: to say nothing then is right.
    assert (verdict(results, "DRAW/whole"), results["DRAW/whole"]["why"]) == ("OK", "it ignores it")
