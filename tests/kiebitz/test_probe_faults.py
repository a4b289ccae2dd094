"""`kiebitz probe` finds planted faults by the right cases and by no other; right programs fail none.

For the protocols of plug-ins and of files no code is made: a recorded game leads to the cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from command import kiebitz
from file_conversations import DATA as PROTOCOL_FILES
from file_conversations import dissector_named
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from peers.bench import Bench
from peers.planted import CONTROLS, FAULTS, PEERS, PLUGIN_FAULTS, PLUGIN_PEERS, Fault
from peers.program import Player, Server, Setup
from probe_command import Probed, probe
from processes_and_rows import free_port

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import dissector_of, plugins
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder

PLAYED = "game */said"
"""The cases of a game without anything unusual."""

FOUND = [fault for fault in FAULTS if fault.cases]


def test_each_planted_fault_is_found_or_it_is_reported_why_not() -> None:
    assert [fault for fault in (*FAULTS, *PLUGIN_FAULTS) if bool(fault.cases) == bool(fault.reason)] == []


def is_in_play(fault: Fault) -> bool:
    """True if the fault shows in a game in which nothing odd is done."""
    return all(case == "game" or case.endswith("/said") for case in fault.cases)


def tried(fault: Fault) -> str:
    """Return the cases that are tried for a fault; a game of Catan takes as long as is given to it."""
    named = " ".join(case for case in fault.cases if "*" not in case)
    played = PLAYED if is_in_play(fault) or fault.protocol != "catan" else ""
    return named if fault.alone else " ".join([named, played, *CONTROLS[fault.peer]])


# The built-in protocols.


def probed(peer: str, cases: str, fault: str = "", seconds: float = 600.0) -> Probed:
    options = ("--json", "--rate", "1000", "--max-time", str(seconds))
    return probe(peer, cases, *options, fault=fault, name="Zoe")


@pytest.mark.full
@pytest.mark.parametrize("fault", FOUND, ids=lambda fault: f"{fault.peer} {fault.name}")
def test_a_fault_is_found_by_the_right_case_and_by_no_other(fault: Fault) -> None:
    failed = probed(fault.peer, tried(fault), fault.name, 6.0 if is_in_play(fault) else 600.0).failed
    assert failed, "no case has failed"
    assert [case for case in failed if not any(fnmatchcase(case, right) for right in fault.cases)] == [], (
        failed
    )


@pytest.mark.full
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_a_right_program_fails_none_of_these_cases(peer: str) -> None:
    assert (
        probed(peer, " ".join(tried(fault) for fault in FOUND if fault.peer == peer) + f" {PLAYED}").failed
        == {}
    )


def test_cases_that_no_game_leads_to_take_no_time_and_name_their_need() -> None:
    results = probed("maexchen-server", "JOIN/whole JOIN/overtaken REGISTER/early ECHO/whole").results
    untried = [each for each in results.values() if each["verdict"] == "NOT TRIED"]
    assert [each["seconds"] for each in untried] == [0] * 3
    assert all("; this needs a " in each["why"] for each in untried)


SLOW = ("slowly", "silence")
"""Kinds of cases that take seconds each."""

UNSAID = {
    "maexchen": "REGISTER_SPECTATOR UNREGISTER ECHO UNREGISTERED HEARTBEAT ECHOING",
    "schafkopf": "HOCHZEIT BEENDEN KARTE",
    "catan": "Erfindung",
    "okey": "LLOB +JOND +LEFT +NAMS RNAM HIGH RSTA +LLOB JOND LEFT NAMS",
    "cgml": "load renonc newgroup",
}
"""Messages that come up seldom or never: to wait for one takes seconds."""


@pytest.mark.full
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_a_right_program_fails_no_kind_of_case(peer: str) -> None:
    kinds: dict[str, Case] = {}
    protocol, role = peer.split("-")
    dissector = dissector_of(protocol)
    assert dissector is not None
    for case in generate_cases(dissector, "server" if role == "server" else "client"):
        # The slow ones are tried where their protocol is.
        if not case.is_in_play and case.message not in UNSAID[protocol].split() and case.kind not in SLOW:
            kinds.setdefault(case.kind, case)
    assert probed(peer, " ".join(case.name.partition("/")[2] for case in kinds.values())).failed == {}


# Protocols of plug-ins.

PLUGINS: dict[str, Dissector] = {"noughts": NOUGHTS, "knobeln": KNOBELN}
OUTSIDE_THE_GRAMMAR = {
    "lets-the-loser-win": 'the server says WON with name "Anna" for "Bert"',
    "is-silent-when-it-is-its-turn": "the client sends nothing, but the recording has PUT",
}


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


def played(protocol: str) -> Bench:
    server = PLUGIN_PEERS[f"{protocol}-server"](Setup(games=2))
    assert isinstance(server, Server)
    bench = Bench(server)
    for name in ("Anna", "Bert"):
        if protocol == "knobeln":
            bench.say(bench.connect(), f"HALLO {name}".encode())
            continue
        player = PLUGIN_PEERS["noughts-player"](Setup(name=name, games=2))
        assert isinstance(player, Player)
        bench.connect(player)
    bench.run(10)
    return bench


def recorded(folder: Path, protocol: str, dissector: Dissector) -> str:
    """Return the capture of that."""
    bench, path = played(protocol), folder / f"{protocol}.pcapng"
    recorder = Recorder(MEMORY, "replay", protocol, decode_as=bench.decode_as(dissector))
    recorder.record(bench.items())
    recorder.close()
    with path.open("wb") as file:
        FORMATS["pcapng"](Timeline(recorder.connection, sessions(recorder.connection)[-1]), file)
    recorder.connection.close()
    return str(path)


def probed_by_session(folder: Path, peer: str, cases: str, fault: str = "", games: int = 2) -> Probed:
    protocol = peer.partition("-")[0]
    session = ("--via-session", recorded(folder, protocol, PLUGINS[protocol]))
    done = probe(peer, cases, "--json", *session, fault=fault, games=games, timeout_s=0.3)
    assert done.json["left_out"] is None
    return done


def test_the_recorded_games_are_right() -> None:
    for protocol, dissector in PLUGINS.items():
        assert played(protocol).findings(dissector).diagnostics == []


def test_a_game_is_asked_for(plugged_in: Path) -> None:
    done = probe("noughts-server", "", port=free_port("tcp"))
    assert (done.status, done.out) == (1, "")
    assert "no recorded game comes with noughts: name a capture of one with --via-session CAPTURE" in done.err


@pytest.mark.full
@pytest.mark.parametrize("fault", PLUGIN_FAULTS, ids=lambda fault: f"{fault.peer} {fault.name}")
def test_a_fault_in_a_plug_in_s_program_is_found(fault: Fault, plugged_in: Path) -> None:
    done = probed_by_session(plugged_in, fault.peer, " ".join(CONTROLS[fault.peer]), fault.name)
    assert {*done.failed} == {*fault.cases} & {*done.results}, done.failed
    if fault.name.startswith("dies"):
        assert {*done.failed.values()} == {"it has ended: exit status 1"}
        assert all("peers" in done.results[case]["output"] for case in done.failed)
    if fault.name in OUTSIDE_THE_GRAMMAR:
        assert done.verdicts["game"] == "INFORMATIONAL"
        assert OUTSIDE_THE_GRAMMAR[fault.name] in done.results["game"]["why"]


@pytest.mark.full
@pytest.mark.parametrize("peer", PLUGIN_PEERS)
def test_a_faultless_program_of_a_plug_in_passes(peer: str, plugged_in: Path) -> None:
    done = probed_by_session(plugged_in, peer, "")
    assert done.failed == {}
    assert done.verdicts["game"] == "OK"
    untried = [case for case, verdict in done.verdicts.items() if verdict == "NOT TRIED"]
    assert len(untried) < len(done.verdicts) / 10, untried
    assert not {*untried} & {*CONTROLS[peer]}
    if peer == "noughts-server":
        assert done.verdicts["BYE/whole"] == "OK"
        assert "answers it with REFUSED" in done.results["HELLO/name/others-player"]["why"]


@pytest.mark.full
def test_differences_between_programs_are_not_demanded(plugged_in: Path) -> None:
    """In the recording the client leaves after two games; this one plays on, and waits for the server."""
    done = probed_by_session(plugged_in, "noughts-player", "game DRAW/whole MARK/whole", games=3)
    # Nothing in the grammar answers a DRAW: to say nothing then is right.
    assert done.verdicts == {"game": "INFORMATIONAL", "DRAW/whole": "OK", "MARK/whole": "OK"}
    assert done.results["DRAW/whole"]["why"] == "it ignores it"


# A protocol file.


@pytest.mark.parametrize(
    ("peer", "fault", "cases"),
    [
        ("noughts-player", "", PLAYED),
        pytest.param("noughts-server", "", f"{PLAYED} unknown-message rubbish", marks=pytest.mark.full),
        pytest.param("noughts-server", "dies-on-an-unknown-word", "unknown-message", marks=pytest.mark.full),
    ],
)
def test_a_program_is_probed_by_a_protocol_file(peer: str, fault: str, cases: str, tmp_path: Path) -> None:
    session = recorded(tmp_path, "noughts", dissector_named("noughts"))
    options = ("-P", str(PROTOCOL_FILES / "noughts.toml"), "--via-session", session)
    done = probe(peer, cases, "--json", *options, fault=fault, games=2, timeout_s=0.3)
    assert bool(done.failed) == bool(fault)


def test_a_session_that_was_recorded_without_the_file(tmp_path: Path) -> None:
    database = str(tmp_path / "game.db")
    kiebitz("import", recorded(tmp_path, "noughts", dissector_named("noughts")), "-w", database)
    options = ("-P", str(PROTOCOL_FILES / "noughts.toml"), "--via-session", database)
    done = probe("noughts-server", "", *options, port=9)
    assert done.status == 1
    assert done.err.endswith(f"kiebitz redissect {database} -P FILE\n")
