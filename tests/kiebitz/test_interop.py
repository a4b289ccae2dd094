"""`kiebitz interop`: the matrix of model servers and clients, its report, and what is left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any
from xml.etree import ElementTree

import container_engine
import pytest
from command import ROOT, Done, kiebitz
from processes_and_rows import KIEBITZ, until

from kiebitz.services.interop.results import own_folder

PLAN = ROOT / "docs" / "examples" / "interop" / "plan.toml"
PEERS = ROOT / "tests" / "support" / "peers"
SERVER = f"{sys.executable} {PEERS} maexchen-server --port {{port}} --players 2 --window 0.3"
CLIENT = f"{sys.executable} {PEERS} maexchen-player --port {{port}} --name {{name}}"
WRONG = f"{sys.executable} {ROOT / 'tests' / 'support' / 'interop_programs.py'}"

EXPECTED = {
    "group-a×group-a": ("completed", None),
    "group-a×group-b": ("violations", "client"),
    "group-b×group-a": ("violations", "server"),
    "group-b×group-b": ("violations", "client"),
    "group-c×group-a": ("completed", None),
    "group-c×group-b": ("hung", "client"),
}
"""The outcome and the culprit of each cell of the example."""


@pytest.fixture(autouse=True)
def _python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the example's `python` be this one."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def plan(
    folder: Path,
    clients: str | Mapping[str, str],
    servers: str | Mapping[str, str] = SERVER,
    head: str = "players = 2",
    protocol: str = "maexchen",
) -> str:
    """Write a plan with these programs, one is called "it", and return its path."""
    text = f'protocol = "{protocol}"\n{head}\n'
    for role, programs in (("server", servers), ("client", clients)):
        for name, command in ({"it": programs} if isinstance(programs, str) else programs).items():
            text += f'[[{role}]]\nname = "{name}"\ncommand = {json.dumps(command)}\n'
    (folder / "plan.toml").write_text(text)
    return str(folder / "plan.toml")


def run(plan: str, *options: str) -> tuple[Done, list[dict[str, Any]]]:
    """Run a plan; return the command, and the first attempt of each cell."""
    done = kiebitz("interop", plan, "-o", str(Path(plan).parent / "report"), "--json", *options)
    return done, [cell["attempts"][0] for cell in done.json["cells"]]


def running(text: str) -> list[str]:
    """Return the processes whose command line contains a text."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in command:
            found.append(command)
    return found


@pytest.mark.full
def test_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report"
    done = kiebitz("interop", str(PLAN), "-o", str(report), "--jobs", "3")
    assert done.status == 3, done.err
    assert "2 of 6 cells completed" in done.err
    assert "! violations group-b×group-a: the server breaks a rule: " in done.out
    results = (report / "results.json").read_text()
    assert {
        f"{cell['server']}×{cell['client']}": (cell["attempts"][0]["outcome"], cell["attempts"][0]["culprit"])
        for cell in json.loads(results)["cells"]
    } == EXPECTED
    index = (report / "index.html").read_text()
    assert 'href="cells/group-b--group-a.html"' in index
    page = (report / "cells" / "group-b--group-a.html").read_text()
    assert 'href="group-b--group-a-game.html"' in page
    assert "message #" in page
    assert "--only &#x27;group-b×group-a&#x27;" in page or "group-b×group-a" in page
    assert (report / "cells" / "group-b--group-a-game.html").stat().st_size > 10_000
    assert (report / "programs" / "client-group-a.html").exists()
    assert "1/2" in (report / "badges" / "server-group-a.svg").read_text()
    suite = ElementTree.parse(report / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("6", "4")
    assert kiebitz("check", str(report / "cells" / "group-b--group-a.db")).status == 3
    assert not (report / "work").exists()
    # Nothing has changed, so nothing is run again.
    again = kiebitz("interop", str(PLAN), "-o", str(report), "--resume", "--json")
    assert again.status == 3
    assert (report / "results.json").read_text() == results
    assert [f"{cell['server']}×{cell['client']}" for cell in again.json["cells"]] == [*EXPECTED]


def test_cells_that_begin_at_once_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "0").symlink_to(tmp_path)
    with ThreadPoolExecutor(4) as side_by_side:
        for name in map(str, range(40)):
            begin = Barrier(4)

            def made(name: str = name, begin: Barrier = begin) -> Path:
                begin.wait(10)
                return own_folder(tmp_path, name)

            assert {each.result() for each in [side_by_side.submit(made) for _ in range(4)]} == {
                tmp_path / name
            }
            assert not (tmp_path / name).is_symlink()


@pytest.mark.full
def test_a_server_sends_its_clients_to_a_second_port(tmp_path: Path) -> None:
    server = f"{sys.executable} {PEERS} cgml-server --port {{port}} --url {{host}}:{{relay+1}}"
    client = CLIENT.replace("maexchen", "cgml")
    head = 'timeout = "60s"\nprobe = "5s"'
    done, (attempt,) = run(plan(tmp_path, client, server, head, "cgml"))
    assert (attempt["outcome"], attempt["culprit"]) == ("completed", None), done.out
    # The second port leads past no relay.
    events = kiebitz("events", str(tmp_path / "report" / "cells" / "it--it.db")).out
    assert "is over" in events
    # A probe has no relay: the server announces its own second port.
    (probe,) = [probe for probe in done.json["probes"] if probe["role"] == "server"]
    assert probe["verdicts"].get("OK", 0) > 0
    assert probe["failed"] == []


@pytest.mark.full
def test_containers_have_limits_and_end_with_their_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "engine" / "podman"
    engine.parent.mkdir()
    source = Path(container_engine.__file__).read_text()
    engine.write_text(f"#!{sys.executable}\n{source}")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{engine.parent}:{os.environ['PATH']}")
    path = Path(plan(tmp_path, CLIENT, head='players = 2\nmemory = "300MB"\ncpu = "30s"'))
    path.write_text(path.read_text().replace("[[server]]", '[[server]]\nimage = "an-image"'))
    done, (attempt,) = run(str(path))
    assert (attempt["outcome"], attempt["culprit"]) == ("completed", None), done.err
    (options,) = engine.parent.glob("*.options")
    assert "--memory=300000000 --ulimit cpu=30:30 --ulimit nofile=1024:1024" in options.read_text()
    assert [file.name for file in engine.parent.glob("kiebitz-*")] == [options.name]


PYTHON = f"{sys.executable} -c"
HOG = f"{PYTHON} 'import time; kept = bytearray(400000000); time.sleep(60)' {{port}}"
REGISTERING = f"{WRONG} register {{port}} {{name}}"
NO_PART = (
    "client it-2 takes no part in a game: it has never answered ROUND STARTING (1 time); 0 games of 1 in 8 s"
)
STOPPING = [
    ([], "hung", "server", " s the server has not answered REGISTER"),
    (
        ["REGISTERED"],
        "hung",
        None,
        " s no message was sent; the last one, REGISTERED from the server, needs no answer",
    ),
    (["REGISTERED", "ROUND STARTING;1"], "idle", "client", NO_PART),
    (["REGISTERED", "ROUND STARTING;1", "HEARTBEAT"], "idle", "client", NO_PART),
    (
        ["REGISTERED", "ROUND STARTED;1;alice,bob", "PLAYER ROLLS;alice"],
        "hung",
        "client",
        " s the client has not made its move",
    ),
]
ENDS = [
    ("true {port}", SERVER, "refused", "client", "client it ended (exit status 0) before any game began"),
    ("sleep 60{port}", SERVER, "idle", "client", "client it-1 has not connected; 0 games of 1 in 8 s"),
    ("/nowhere/it {port}", SERVER, "refused", "client", "client it ended (exit status 127) before any game"),
    (CLIENT, "sh -c 'exit 4' {port}", "crashed", "server", "server it: it has ended (exit status 4)"),
    (HOG, SERVER, "crashed", "client", "client it crashed (more than 300,000,000 bytes of memory)"),
    *[
        (REGISTERING, f"{WRONG} stop {{port}} {shlex.join(said)}", outcome, culprit, why)
        for said, outcome, culprit, why in STOPPING
    ],
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("client", "server", "outcome", "culprit", "why"), ENDS)
def test_silence_and_ends_are_blamed_on_the_side_that_has_to_answer(
    client: str, server: str, outcome: str, culprit: str | None, why: str, tmp_path: Path
) -> None:
    path = plan(tmp_path, client, server, 'players = 2\ntimeout = "8s"\nmemory = "300MB"')
    done, (attempt,) = run(path)
    assert done.status == 3, done.err
    assert (attempt["outcome"], attempt["culprit"]) == (outcome, culprit), attempt["why"]
    assert why in attempt["why"]
    assert running(str(tmp_path)) == []


@pytest.mark.full
def test_an_interrupted_run_leaves_nothing_and_can_be_resumed(tmp_path: Path) -> None:
    client = f"sleep 60.{os.getpid()}"
    path = plan(tmp_path, f"sh -c '{client}' {{port}}")
    report = tmp_path / "report"
    process = subprocess.Popen(
        [*KIEBITZ, "interop", path, "-o", str(report)], stderr=subprocess.PIPE, text=True
    )
    until(lambda: len(running(client)) >= 2, "the cell runs", 30)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 130, said
    assert "interrupted; --resume continues" in said
    assert "Traceback" not in said
    until(lambda: running(client) == [], "all has ended", 10)
    assert json.loads((report / "results.json").read_text())["cells"] == []


@pytest.mark.full
def test_probes_are_a_row_and_a_column(tmp_path: Path) -> None:
    done, _ = run(plan(tmp_path, CLIENT, head='players = 2\nprobe = "8s"\ntimeout = "20s"'))
    probes = {probe["role"]: probe for probe in done.json["probes"]}
    assert {role: probe["why_not"] for role, probe in probes.items()} == {"server": None, "client": None}
    assert all(probe["verdicts"].get("OK", 0) > 0 for probe in probes.values())
    assert "<th>probe</th>" in (tmp_path / "report" / "index.html").read_text()


KINDS: dict[str, tuple[str, str | None, str]] = {
    "good": ("completed", None, " games"),
    "never-joins": ("idle", "client", "takes no part in a game: it has never answered ROUND STARTING"),
    "never-moves": ("idle", "client", "makes no move: it has never answered YOUR TURN"),
    "never-announces": ("hung", "client", "has never answered ROLLED"),
    "quits": ("left", "client", "the client quits ended (exit status 0) after "),
    "crashes": ("crashed", "client", "the client crashes crashed (SIGABRT)"),
}
"""Kinds of clients, with the outcome of a cell of them, its culprit, and part of the reason."""


def of_kinds(*kinds: str) -> dict[str, str]:
    return {kind: f"{WRONG} {kind} {{port}} {{name}}" for kind in kinds}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_outcome_of_a_kind_of_client(kind: str, tmp_path: Path) -> None:
    outcome, culprit, why = KINDS[kind]
    head = 'players = 2\ngames = 4\ntimeout = "8s"'
    _, (attempt,) = run(plan(tmp_path, of_kinds(kind), head=head))
    assert (attempt["outcome"], attempt["culprit"]) == (outcome, culprit), attempt["why"]
    assert why in attempt["why"]
    clients = attempt["clients"]
    assert [client["name"] for client in clients] == [f"{kind}-1", f"{kind}-2"]
    assert [client["joined"] for client in clients] == [kind != "never-joins"] * 2
    if kind.startswith("never"):
        assert attempt["games"] == 0
        assert sum(client["moves"] for client in clients) > 0 or kind != "never-announces"
    elif kind == "good":
        assert attempt["games"] >= 4
        assert all(client["moves"] and client["games"] >= 4 for client in clients)
    # What Kiebitz has interrupted by ending the programs is no violation.
    assert attempt["findings"] == []
    page = (tmp_path / "report" / "cells" / f"it--{kind}.html").read_text()
    assert "games to the end" in page
    assert f"<th>{kind}-1</th><td>{kind}</td><td>{'no' if kind == 'never-joins' else 'yes'}</td>" in page


@pytest.mark.full
@pytest.mark.parametrize("bad", ["never-joins", "never-moves", "never-announces", "quits"])
def test_at_a_mixed_table_the_group_is_blamed(bad: str, tmp_path: Path) -> None:
    head = 'players = 2\ngames = 4\ntimeout = "8s"\nmix = true'
    path = plan(tmp_path, of_kinds(bad, "good"), head=head)
    done = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--only", "it×mix-1")
    (cell,) = json.loads((tmp_path / "report" / "results.json").read_text())["cells"]
    (attempt,) = cell["attempts"]
    assert (attempt["outcome"], attempt["culprit"]) == (KINDS[bad][0], bad), attempt["why"]
    assert [client["program"] for client in attempt["clients"]] == [bad, "good"]
    assert f"    {bad}-1: {'not joined' if bad == 'never-joins' else 'joined'}, " in done.out


def test_clients_start_one_after_the_other(tmp_path: Path) -> None:
    head = 'players = 2\nstagger = "700ms"\ntimeout = "2s"'
    _, (attempt,) = run(plan(tmp_path, f"{WRONG} print-time {{port}}", head=head))
    first, second = (float(each["output"]) for each in attempt["outputs"] if each["role"] == "client")
    assert 0.5 < second - first < 20


COINS = """
protocol = "coins"
[messages]
LOGIN = "c: name=player"
HELLO = "s: name=player < LOGIN"
START = "s*:"
TOSS = "c:"
TOSSED = "s*: name=player < TOSS"
OVER = "s*: how=late|broken|won"
[identity]
login = "LOGIN"
[events]
started = { on = "START", opens = true, say = "a game begins" }
tossed = { on = "TOSSED", say = "{name} tosses" }
late = { on = "OVER", when = "how == 'late'", ends = true, timeout = true }
broken = { on = "OVER", when = "how == 'broken'", cancels = true }
won = { on = "OVER", when = "how == 'won'", ends = true }
"""


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("how", "outcome", "why"),
    [
        ("late", "hung", " lost only for a missing answer) in 4 s"),
        ("broken", "hung", " cancelled) in 4 s"),
        ("won", "completed", " games"),
    ],
)
def test_a_protocol_file_says_which_games_count(how: str, outcome: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "coins.toml").write_text(COINS)
    client, server = f"{WRONG} toss {{port}} {{name}}", f"{WRONG} serve-coins {{port}} {how}"
    head = 'players = 1\ngames = 3\ntimeout = "4s"'
    _, (attempt,) = run(plan(tmp_path, client, server, head, "coins.toml"))
    assert (attempt["outcome"], attempt["culprit"]) == (outcome, None), attempt["why"]
    assert why in attempt["why"]
    assert attempt["clients"][0]["moves"] >= 3


# Programs that escape, replace files, or publish a report with other paths.


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("daemon", "the server daemon crashed (more than 150,000,000 bytes of memory)"),
        ("database-pipe", "it was not recorded: "),
        ("database-text", "it was not recorded: "),
        ("links", "the server links ended (exit status 1) before any game began"),
    ],
)
def test_a_hostile_program_spoils_its_cell_only(kind: str, why: str, tmp_path: Path) -> None:
    report = tmp_path / "report"
    servers = {name: f"{WRONG} {name} {{port}} {report}" for name in (kind, "quiet")}
    head = 'players = 1\ntimeout = "30s"\nmemory = "150MB"'
    done, (spoiled, other) = run(plan(tmp_path, {"c": "sleep 60 {port}"}, servers, head))
    assert done.status == 3, done.err
    assert why in str(spoiled["why"])
    assert other["outcome"] == "refused"
    until(lambda: running(str(tmp_path)) == [], "nothing is left", 10)
    # Everything is in the report itself.
    for name in ("cells", "programs", "badges", "index.html", "results.json"):
        assert (report / name).exists()
        assert not (report / name).is_symlink()
    assert not (report / "results.json").is_fifo()
    assert {file.name for file in tmp_path.iterdir()} == {"plan.toml", "report"}
    assert [file for file in report.iterdir() if file.name.startswith(".")] == []


def test_paths_in_the_results_of_a_stranger_are_not_used(tmp_path: Path) -> None:
    path = plan(tmp_path, "true {port}", "true {port}", 'players = 1\ntimeout = "1s"')
    run(path)
    report = tmp_path / "report" / "results.json"
    results = json.loads(report.read_text())
    for outside in (f"{tmp_path}/outside", "../outside", "cells/../../outside"):
        results["cells"][0]["attempts"][0].update(page=f"{outside}.html", database=f"{outside}.db")
        report.write_text(json.dumps(results))
        _, (attempt,) = run(path, "--resume")
        assert (attempt["page"], attempt["database"]) == ("cells/it--it.html", "cells/it--it.db")
        assert {file.name for file in tmp_path.iterdir()} == {"plan.toml", "report"}
