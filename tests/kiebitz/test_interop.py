"""`kiebitz interop`: the matrix of model servers and clients, its report, and what is left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any
from xml.etree import ElementTree

import container_engine
import pytest
from command import ROOT, kiebitz
from processes_and_rows import KIEBITZ, until
from strength import a_few

from kiebitz.services.interop.results import own_folder

PLAN = ROOT / "docs" / "examples" / "interop" / "plan.toml"
PEERS = ROOT / "tests" / "support" / "peers"
SERVER = f"{sys.executable} {PEERS} maexchen-server --port {{port}} --players 2 --window 0.3"
CLIENT = f"{sys.executable} {PEERS} maexchen-player --port {{port}} --name {{name}}"

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


def outcomes(report: Path) -> dict[str, tuple[str, str | None]]:
    """Return outcome and culprit of each cell in a report."""
    cells = json.loads((report / "results.json").read_text())["cells"]
    return {
        f"{cell['server']}×{cell['client']}": (cell["attempts"][0]["outcome"], cell["attempts"][0]["culprit"])
        for cell in cells
    }


def plan(path: Path, client: str, *, server: str = SERVER, head: str = "") -> str:
    """Write a plan with one server and one client, and return its path."""
    programs = "".join(
        f'[[{role}]]\nname = "it"\ncommand = {json.dumps(command)}\n'
        for role, command in (("server", server), ("client", client))
    )
    path.write_text(f'protocol = "maexchen"\nplayers = 2\n{head}\n{programs}')
    return str(path)


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
    only = ("--only", "group-axgroup-a", "--only", "group-b×group-a")
    done = kiebitz("interop", str(PLAN), "-o", str(report), "--jobs", "2", *only)
    assert done.status == 3, done.err
    assert "1 of 2 cells completed" in done.err
    assert "! violations group-b×group-a: the server breaks a rule: " in done.out
    found = outcomes(report)
    assert found == {name: EXPECTED[name] for name in found}
    assert len(found) == 2
    index = (report / "index.html").read_text()
    assert 'href="cells/group-b--group-a.html"' in index
    page = (report / "cells" / "group-b--group-a.html").read_text()
    assert 'href="group-b--group-a-game.html"' in page
    assert "message #" in page
    assert "--only &#x27;group-b×group-a&#x27;" in page or "group-b×group-a" in page
    assert (report / "cells" / "group-b--group-a-game.html").stat().st_size > 10_000
    assert (report / "programs" / "client-group-a.html").exists()
    assert "1/1" in (report / "badges" / "server-group-a.svg").read_text()
    suite = ElementTree.parse(report / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert kiebitz("check", str(report / "cells" / "group-b--group-a.db")).status == 3
    assert not (report / "work").exists()
    # Nothing has changed, so nothing is run again.
    before = (report / "results.json").read_text()
    again = kiebitz("interop", str(PLAN), "-o", str(report), "--resume", "--json", *only)
    assert again.status == 3
    assert (report / "results.json").read_text() == before
    assert [cell["server"] for cell in again.json["cells"]] == ["group-a", "group-b"]


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
def test_the_example_has_each_fault_in_its_cell(tmp_path: Path) -> None:
    report = tmp_path / "report"
    assert kiebitz("interop", str(PLAN), "-o", str(report), "--jobs", "3").status == 3
    assert outcomes(report) == EXPECTED


@pytest.mark.full
def test_a_server_sends_its_clients_to_a_second_port(tmp_path: Path) -> None:
    server = f"{sys.executable} {PEERS} cgml-server --port {{port}} --url {{host}}:{{relay+1}}"
    client = f"{sys.executable} {PEERS} cgml-player --port {{port}} --name {{name}}"
    path = tmp_path / "plan.toml"
    path.write_text(
        'protocol = "cgml"\ntimeout = "60s"\nprobe = "5s"\n'
        f'[[server]]\nname = "it"\ncommand = "{server}"\n[[client]]\nname = "it"\ncommand = "{client}"\n'
    )
    done = kiebitz("interop", str(path), "-o", str(tmp_path / "report"), "--json")
    assert outcomes(tmp_path / "report") == {"it×it": ("completed", None)}, done.out
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
    path = plan(tmp_path / "plan.toml", CLIENT, head='memory = "300MB"\ncpu = "30s"')
    Path(path).write_text(Path(path).read_text().replace("[[server]]", '[[server]]\nimage = "an-image"'))
    report = tmp_path / "report"
    done = kiebitz("interop", path, "-o", str(report))
    assert outcomes(report) == {"it×it": ("completed", None)}, done.err
    (options,) = engine.parent.glob("*.options")
    assert "--memory=300000000 --ulimit cpu=30:30 --ulimit nofile=1024:1024" in options.read_text()
    assert [file.name for file in engine.parent.glob("kiebitz-*")] == [options.name]


PYTHON = f"{sys.executable} -c"
HOG = f"{PYTHON} 'import time; kept = bytearray(400000000); time.sleep(60)' {{port}}"


@pytest.mark.parametrize(
    ("client", "server", "outcome", "culprit", "why"),
    a_few(
        [
            (
                "true {port}",
                SERVER,
                "refused",
                "client",
                "the client it ended (exit status 0) before any game began",
            ),
            (
                "sleep 60{port}",
                SERVER,
                "idle",
                "client",
                "client it-1 has not connected; 0 games of 1 in 3 s",
            ),
            (
                "/nowhere/it {port}",
                SERVER,
                "refused",
                "client",
                "the client it ended (exit status 127) before any",
            ),
            (CLIENT, "sh -c 'exit 4' {port}", "crashed", "server", "server it: it has ended (exit status 4)"),
            (
                HOG,
                SERVER,
                "crashed",
                "client",
                "the client it crashed (more than 300,000,000 bytes of memory)",
            ),
        ],
        lambda row: row[0] == "true {port}",
    ),
)
def test_programs_that_do_not_play(
    tmp_path: Path, client: str, server: str, outcome: str, culprit: str | None, why: str
) -> None:
    head = 'timeout = "3s"\nmemory = "300MB"'
    path = plan(tmp_path / "plan.toml", client, server=server, head=head)
    done = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--json")
    assert done.status == 3, done.err
    (cell,) = done.json["cells"]
    (attempt,) = cell["attempts"]
    assert (attempt["outcome"], attempt["culprit"]) == (outcome, culprit), attempt["why"]
    assert why in attempt["why"]
    assert running(str(tmp_path)) == []


ONE_THAT_STOPS = """
import socket
import sys

role, port, *said = sys.argv[1:]
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if role == "server":
    peer.bind(("127.0.0.1", int(port)))
else:
    peer.connect(("127.0.0.1", int(port)))
    peer.send(b"REGISTER;" + said[0].encode())
registered = 0
while True:
    data, sender = peer.recvfrom(1000)
    registered += data.startswith(b"REGISTER;")
    for message in said if role == "server" and registered == 2 else ():
        peer.sendto(message.encode(), sender)
"""


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("said", "outcome", "culprit", "why"),
    [
        ((), "hung", "server", " s the server has not answered REGISTER"),
        (
            ("REGISTERED",),
            "hung",
            None,
            " s no message was sent; the last one, REGISTERED from the server, needs no answer",
        ),
        (
            ("REGISTERED", "ROUND STARTING;1"),
            "idle",
            "client",
            "client it-2 takes no part in a game: it has never answered ROUND STARTING (1 time); "
            "0 games of 1 in 8 s",
        ),
        (
            ("REGISTERED", "ROUND STARTING;1", "HEARTBEAT"),
            "idle",
            "client",
            "client it-2 takes no part in a game: it has never answered ROUND STARTING (1 time); "
            "0 games of 1 in 8 s",
        ),
        (
            ("REGISTERED", "ROUND STARTED;1;alice,bob", "PLAYER ROLLS;alice"),
            "hung",
            "client",
            " s the client has not made its move",
        ),
    ],
)
def test_silence_is_blamed_on_the_side_that_has_to_answer(
    said: tuple[str, ...], outcome: str, culprit: str | None, why: str, tmp_path: Path
) -> None:
    program = tmp_path / "stops.py"
    program.write_text(ONE_THAT_STOPS)
    server = shlex.join([sys.executable, str(program), "server", "{port}", *said])
    client = f"{sys.executable} {program} client {{port}} {{name}}"
    path = plan(tmp_path / "plan.toml", client, server=server, head='timeout = "8s"')
    (cell,) = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--json").json["cells"]
    (attempt,) = cell["attempts"]
    assert (attempt["outcome"], attempt["culprit"]) == (outcome, culprit), attempt["why"]
    assert attempt["why"].endswith(why)


@pytest.mark.full
def test_an_interrupted_run_leaves_nothing_and_can_be_resumed(tmp_path: Path) -> None:
    client = f"sleep 60.{os.getpid()}"
    path = plan(tmp_path / "plan.toml", f"sh -c '{client}' {{port}}", head='timeout = "60s"')
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


MISTAKES: list[tuple[str, str]] = [
    ('protocol = "maexhen"', "plan.toml:1:12: there is no protocol maexhen; did you mean maexchen"),
    ('protocol = "maexchen"\nplayer = 2', "plan.toml:2:1: unknown key player: did you mean players?"),
    (
        'protocol = "maexchen"\ntimeout = "2 hours"',
        "timeout must be a number with its unit, as in 120s or 2min",
    ),
    ('protocol = "maexchen"\ngames = 0', "games must be at least 1"),
    ("protocol = ", "plan.toml:1:"),
]


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_mistakes_in_a_plan_are_shown_with_carets(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.toml"
    programs = "".join(
        f'\n[[{role}]]\nname = "it"\ncommand = "it {{port}}"\n' for role in ("server", "client")
    )
    path.write_text(text + programs)
    done = kiebitz("interop", str(path), "--list")
    assert (done.status, done.out) == (2, "")
    assert says in done.err
    assert "^" in done.err


PROGRAMS: list[tuple[str, str]] = [
    ('[[server]]\nname = "a"\ncommand = "a {port}"', "no client: add a table [[client]]"),
    ('[[server]]\nname = "a/b"\ncommand = "a {port}"', "a name has up to 40 letters, digits and .+-_"),
    ('[[server]]\nname = "a"\ncommand = "a"', "{port} is missing: the server must use the given port"),
    ('[[server]]\nname = "a"\ncommand = "a \'{port}"', "No closing quotation"),
    ('[[server]]\nname = "a"', "command is missing"),
]


@pytest.mark.parametrize(("text", "says"), PROGRAMS)
def test_mistakes_in_programs_are_reported(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.toml"
    client = "" if "no client" in says else '[[client]]\nname = "a"\ncommand = "a {port}"'
    path.write_text(f'protocol = "maexchen"\n{text}\n{client}\n')
    done = kiebitz("interop", str(path), "--list")
    assert done.status == 2
    assert says in done.err


def test_cells_are_listed(tmp_path: Path) -> None:
    assert kiebitz("interop", str(PLAN), "--list").out.split() == [*EXPECTED]
    assert kiebitz("interop", str(PLAN), "--list", "--json", "--only", "group-c×*").json == [
        "group-c×group-a",
        "group-c×group-b",
    ]
    mixed = tmp_path / "plan.toml"
    mixed.write_text(PLAN.read_text().replace("games = 2", "games = 2\nmix = true"))
    listed = kiebitz("interop", str(mixed), "--list").out.split()
    assert [name for name in listed if name not in EXPECTED] == [f"group-{each}×mix-1" for each in "abc"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "missing folder for the report: give -o FOLDER"),
        (("--only", "group-x×*"), "matches group-x×*; --list shows all cells"),
        (("-o", "-"), "a report is a folder: name a file"),
    ],
)
def test_wrong_usage_is_reported(options: tuple[str, ...], says: str) -> None:
    done: Any = kiebitz("interop", str(PLAN), *options)
    assert (done.status, done.out) == (2, "")
    assert says in done.err


@pytest.mark.full
def test_probes_are_a_row_and_a_column(tmp_path: Path) -> None:
    path = plan(tmp_path / "plan.toml", CLIENT, head='probe = "8s"\ntimeout = "20s"')
    done = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--json")
    probes = {probe["role"]: probe for probe in done.json["probes"]}
    assert {role: probe["why_not"] for role, probe in probes.items()} == {"server": None, "client": None}
    assert all(probe["verdicts"].get("OK", 0) > 0 for probe in probes.values())
    assert "<th>probe</th>" in (tmp_path / "report" / "index.html").read_text()


PLAYER_OF_A_KIND = """
import os
import socket
import sys

kind, port, name = sys.argv[1:]
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.connect(("127.0.0.1", int(port)))
peer.send(f"REGISTER;{name}".encode())
rounds, last = 0, ""


def rank(dice):
    high, low = sorted(map(int, dice.split(",")), reverse=True)
    return (high, low) == (2, 1), high == low, high, low


while True:
    word, *values = peer.recv(1000).decode().split(";")
    if word == "ROUND STARTING" and kind != "never-joins":
        peer.send(f"JOIN;{values[-1]}".encode())
    elif word == "ROUND STARTED":
        rounds, last = rounds + 1, ""
        if rounds == 2 and kind == "quits":
            sys.exit(0)
        if rounds == 2 and kind == "crashes":
            os.abort()
    elif word == "ANNOUNCED":
        last = values[1]
    elif word == "YOUR TURN" and kind != "never-moves":
        peer.send(f"{'SEE' if last else 'ROLL'};{values[0]}".encode())
    elif word == "ROLLED" and kind != "never-announces":
        peer.send(f"ANNOUNCE;{values[0]};{values[1]}".encode())
"""

KINDS: dict[str, tuple[str, str | None, str]] = {
    "good": ("completed", None, " games"),
    "never-joins": ("idle", "client", "takes no part in a game: it has never answered ROUND STARTING"),
    "never-moves": ("idle", "client", "makes no move: it has never answered YOUR TURN"),
    "never-announces": ("hung", "client", "has never answered ROLLED"),
    "quits": ("left", "client", "the client quits ended (exit status 0) after "),
    "crashes": ("crashed", "client", "the client crashes crashed (SIGABRT)"),
}
"""Kinds of clients, with the outcome of a cell of them, its culprit, and part of the reason."""


def plan_of_kinds(folder: Path, *kinds: str, head: str = "") -> str:
    """Write a plan with the model server and clients of these kinds, and return its path."""
    program = folder / "player.py"
    program.write_text(PLAYER_OF_A_KIND)
    clients = "".join(
        f'[[client]]\nname = "{kind}"\ncommand = "{sys.executable} {program} {kind} {{port}} {{name}}"\n'
        for kind in kinds
    )
    path = folder / "plan.toml"
    path.write_text(
        f'protocol = "maexchen"\ngames = 4\nplayers = 2\ntimeout = "8s"\n{head}\n'
        f'[[server]]\nname = "it"\ncommand = "{SERVER}"\n{clients}'
    )
    return str(path)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_outcome_of_a_kind_of_client(kind: str, tmp_path: Path) -> None:
    outcome, culprit, why = KINDS[kind]
    path = plan_of_kinds(tmp_path, kind)
    done = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--json")
    (cell,) = done.json["cells"]
    (attempt,) = cell["attempts"]
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
    path = plan_of_kinds(tmp_path, bad, "good", head="mix = true")
    done = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--only", "it×mix-1")
    (cell,) = json.loads((tmp_path / "report" / "results.json").read_text())["cells"]
    (attempt,) = cell["attempts"]
    assert (attempt["outcome"], attempt["culprit"]) == (KINDS[bad][0], bad), attempt["why"]
    assert [client["program"] for client in attempt["clients"]] == [bad, "good"]
    assert f"    {bad}-1: {'not joined' if bad == 'never-joins' else 'joined'}, " in done.out


def test_clients_start_one_after_the_other(tmp_path: Path) -> None:
    program = tmp_path / "starts.py"
    program.write_text("import sys, time\nprint(time.time(), flush=True)\ntime.sleep(60)\n")
    client = f"{sys.executable} {program} {{port}}"
    path = plan(tmp_path / "plan.toml", client, head='stagger = "700ms"\ntimeout = "2s"')
    (cell,) = kiebitz("interop", path, "-o", str(tmp_path / "report"), "--json").json["cells"]
    outputs = cell["attempts"][0]["outputs"]
    first, second = (float(each["output"]) for each in outputs if each["role"] == "client")
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

COIN_PEER = """
import socket
import sys
import time

role, port, word = sys.argv[1:]
if role == "client":
    peer = socket.create_connection(("127.0.0.1", int(port)))
    peer.sendall(f"LOGIN {word}\\n".encode())
    for line in peer.makefile():
        if line == "START\\n":
            peer.sendall(b"TOSS\\n")
    sys.exit(0)
server = socket.create_server(("127.0.0.1", int(port)))
while True:
    peer, _ = server.accept()
    lines = peer.makefile()
    name = next(lines).split()[1]
    peer.sendall(f"HELLO {name}\\n".encode())
    for _ in range(200):
        peer.sendall(b"START\\n")
        next(lines)
        peer.sendall(f"TOSSED {name}\\nOVER {word}\\n".encode())
        time.sleep(0.1)
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
    (tmp_path / "peer.py").write_text(COIN_PEER)
    peer = f"{sys.executable} {tmp_path / 'peer.py'}"
    path = tmp_path / "plan.toml"
    path.write_text(
        'protocol = "coins.toml"\nplayers = 1\ngames = 3\ntimeout = "4s"\n'
        f'[[server]]\nname = "it"\ncommand = "{peer} server {{port}} {how}"\n'
        f'[[client]]\nname = "it"\ncommand = "{peer} client {{port}} {{name}}"\n'
    )
    (cell,) = kiebitz("interop", str(path), "-o", str(tmp_path / "report"), "--json").json["cells"]
    (attempt,) = cell["attempts"]
    assert (attempt["outcome"], attempt["culprit"]) == (outcome, None), attempt["why"]
    assert why in attempt["why"]
    assert attempt["clients"][0]["moves"] >= 3


def test_a_protocol_file_without_games_is_refused(tmp_path: Path) -> None:
    (tmp_path / "coins.toml").write_text(COINS.replace("opens = true, ", ""))
    path = tmp_path / "plan.toml"
    programs = "".join(f'[[{role}]]\nname = "it"\ncommand = "it {{port}}"\n' for role in ("server", "client"))
    path.write_text(f'protocol = "coins.toml"\n{programs}')
    done = kiebitz("interop", str(path), "--list")
    assert done.status == 2
    assert "plan.toml:1:12: coins.toml has no event with opens = true: no games to count" in done.err
    assert "^" in done.err
