"""A user's way with a plug-in: Kiebitz and Knobeln are installed in a fresh environment, and work together.

Nothing is fetched: the environment sees the packages of the one that the tests run in, but for Kiebitz. In a
second environment Kiebitz is compiled, which takes minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sysconfig
import venv
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import ROOT
from processes_and_rows import PATIENCE_S, free_port, rows, running
from scapy.layers.inet import IP, UDP
from scapy.utils import wrpcap
from strength import CEILING_S

from kiebitz.services.importing.packets import import_capture
from kiebitz.storage.database.schema import TABLES

ROOMS = ("proxy", "dissectors", "storage", "cli")
PLUGIN = ROOT / "tests" / "plugins" / "knobeln"
SERVER = ("10.0.0.9", 5000)
ALICE, BOB = ("10.0.0.1", 40_001), ("10.0.0.2", 40_002)

GAME = [
    (ALICE, SERVER, b"HALLO alice"),
    (SERVER, ALICE, b"WILLKOMMEN"),
    (BOB, SERVER, b"HALLO bob"),
    (SERVER, BOB, b"WILLKOMMEN"),
    (SERVER, ALICE, b"WURF alice 6"),
    (SERVER, BOB, b"WURF alice 6"),
    (SERVER, ALICE, b"WURF bob 1"),
    (SERVER, BOB, b"WURF bob eins"),
]
"""Sender, receiver and datagram. The last is malformed."""

TOLD = ["alice joins", "bob joins", "alice rolls 6", "bob rolls 1"]


class Environment:
    """A fresh virtual environment, in which nothing of the checkout can be imported."""

    def __init__(self, folder: Path, is_compiled: bool) -> None:
        self.folder = folder
        self.is_compiled = is_compiled
        self.scripts = folder / "bin"
        venv.create(folder, symlinks=True)
        paths = {"base": str(folder), "platbase": str(folder)}
        self.packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
        self._borrow(folder / "borrowed")

    def run(self, program: str, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, which must end with this status."""
        done = subprocess.run(
            [self.scripts / program, *arguments],
            cwd=self.folder,
            env=_plain_environment() | ({"KIEBITZ_COMPILE": "1"} if self.is_compiled else {}),
            capture_output=True,
            text=True,
            timeout=CEILING_S[self.is_compiled],
        )
        assert done.returncode == status, done.stderr
        return done

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self.run("kiebitz", *arguments, "--json", status=status).stdout)

    def install(self, source: Path) -> None:
        """Install from a folder of sources, without the network."""
        quiet = ("--quiet", "--disable-pip-version-check")
        alone = ("--no-deps", "--no-build-isolation", "--no-index")
        self.run("python", "-m", "pip", "install", *quiet, *alone, str(source))

    def _borrow(self, folder: Path) -> None:
        folder.mkdir()
        for scheme in ("purelib", "platlib"):
            for entry in Path(sysconfig.get_path(scheme)).iterdir():
                if "kiebitz" not in entry.name and not (folder / entry.name).exists():
                    (folder / entry.name).symlink_to(entry)
        (self.packages / "borrowed.pth").write_text(f"{folder}\n")


def _plain_environment() -> dict[str, str]:
    """Return the variables of a user who has set nothing for Python and pip."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}


@pytest.fixture(scope="module", params=["plain", "compiled"])
def fresh(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Environment:
    is_compiled = request.param == "compiled"
    if is_compiled:
        pytest.importorskip("Cython", reason="Kiebitz is compiled by Cython")
    sources = tmp_path_factory.mktemp("sources")
    no_caches = shutil.ignore_patterns("__pycache__")
    for folder in ("kiebitz", *ROOMS):
        shutil.copytree(ROOT / folder, sources / "kiebitz" / folder, symlinks=True, ignore=no_caches)
    for room in ROOMS:
        # As git checks out links without support for them: core.symlinks=false, usual on Windows.
        link = sources / "kiebitz" / "kiebitz" / room
        target = link.readlink()
        link.unlink()
        link.write_text(str(target))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / "kiebitz")
    shutil.copytree(PLUGIN, sources / "knobeln", ignore=no_caches)
    environment = Environment(tmp_path_factory.mktemp("environment"), is_compiled)
    environment.install(sources / "kiebitz")
    environment.install(sources / "knobeln")
    return environment


@pytest.fixture(scope="module")
def database(fresh: Environment) -> str:
    packets = []
    for number, (sender, receiver, data) in enumerate(GAME):
        packet = IP(src=sender[0], dst=receiver[0]) / UDP(sport=sender[1], dport=receiver[1]) / data
        packet.time = 1_700_000_000 + number / 1000
        packets.append(packet)
    wrpcap(str(fresh.folder / "knobeln.pcap"), packets)
    done = fresh.run("kiebitz", "import", "knobeln.pcap", "-w", "game.db")
    assert "8 packets, 2 streams, 8 messages" in done.stderr
    return "game.db"


@pytest.mark.full
def test_the_installed_copy_runs_and_is_complete(fresh: Environment) -> None:
    program = "import kiebitz; print(kiebitz.__file__)"
    # Isolated: the folder that it runs in does not count.
    found = fresh.run("python", "-I", "-c", program).stdout.strip()
    assert found == str(fresh.packages / "kiebitz" / "__init__.py")
    for room in ROOMS:
        files = _files(fresh.packages / "kiebitz" / room)
        modules = {file for file in files if file.suffix == ".so"}
        assert files - modules == _files(ROOT / room)
        assert bool(modules) == (fresh.is_compiled and room != "cli")
    version = fresh.run("kiebitz", "--version").stdout
    assert version.endswith(f", {'compiled' if fresh.is_compiled else 'not compiled'})\n")


@pytest.mark.full
@pytest.mark.parametrize("capture", sorted(path.name for path in (ROOT / "captures").glob("*.pcap*")))
def test_its_rows_are_those_of_the_checkout(fresh: Environment, tmp_path: Path, capture: str) -> None:
    source = str(ROOT / "captures" / capture)
    fresh.run("kiebitz", "import", source, "-w", str(tmp_path / "installed.db"))
    import_capture(source, str(tmp_path / "checkout.db"), {}, lambda _done, _all: None)
    for table in TABLES:
        query = f"SELECT * FROM {table}"
        if table == "sessions":
            query = "SELECT source, started_ns, ended_ns, messages_before FROM sessions"
        assert rows(tmp_path / "installed.db", query) == rows(tmp_path / "checkout.db", query), table


@pytest.mark.full
def test_it_takes_one_name_and_leaves_the_others_theirs(fresh: Environment) -> None:
    """PyPI's package proxy.py brings a package `proxy`, too."""
    record = next(fresh.packages.glob("kiebitz-*.dist-info")) / "RECORD"
    tops = {line.split("/")[0] for line in record.read_text().splitlines() if not line.startswith("..")}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"kiebitz"}
    other = fresh.folder / "proxy.py"
    (other / "proxy").mkdir(parents=True)
    (other / "proxy" / "__init__.py").write_text("name = 'the other one'\n")
    (other / "pyproject.toml").write_text('[project]\nname = "proxy.py"\nversion = "2.4"\n')
    fresh.install(other)
    assert fresh.run("python", "-I", "-c", "import proxy; print(proxy.name)").stdout == "the other one\n"
    assert fresh.run("kiebitz", "protocols", "knobeln").stdout
    assert fresh.run("python", "-I", "-m", "kiebitz", "protocols", "knobeln").stdout


@pytest.mark.full
def test_a_plug_in_passes_strict_type_checks_against_it(fresh: Environment) -> None:
    plugin = fresh.folder / "checked"
    shutil.copytree(PLUGIN / "kiebitz_knobeln", plugin / "kiebitz_knobeln")
    done = fresh.run(
        "python", "-m", "mypy", "--strict", "--cache-dir", str(fresh.folder / "mypy"), str(plugin)
    )
    assert "no issues found" in done.stdout
    # What is not so is found: the check has seen Kiebitz's types.
    table = plugin / "kiebitz_knobeln" / "table.py"
    table.write_text(table.read_text() + "\nTableInfo(id='one', protocol=1, server=None)\n")
    done = fresh.run(
        "python", "-m", "mypy", "--strict", "--cache-dir", str(fresh.folder / "mypy"), str(plugin), status=1
    )
    assert 'Argument "id" to "TableInfo" has incompatible type "str"' in done.stdout


def _files(folder: Path) -> set[Path]:
    return {
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


@pytest.mark.full
def test_it_is_listed_with_where_it_comes_from(fresh: Environment) -> None:
    done = fresh.run("kiebitz", "protocols")
    listed = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert " ".join(listed["knobeln"]) == "knobeln Knobeln · kiebitz-knobeln 1.0 udp 5000 3 2"
    assert listed["maexchen"][:4] == ["maexchen", "Mäxchen", "udp", "9000"]
    assert done.stderr == ""


@pytest.mark.full
def test_its_reference_is_printed(fresh: Environment) -> None:
    reference = fresh.run("kiebitz", "protocols", "knobeln").stdout
    for text in (
        "from the plug-in kiebitz-knobeln 1.0",
        "WURF name zahl",
        "answers HALLO",
        "each client gets a copy",
        "rolled{name, zahl}: {name} rolls {zahl}",
        "knobeln.zahl",
    ):
        assert text in reference


@pytest.mark.full
def test_a_capture_is_reported_as_a_game(fresh: Environment, database: str) -> None:
    assert [row["sentence"] for row in fresh.json("events", database)] == TOLD
    (table,) = fresh.json("state", database)
    assert table["protocol"] == "knobeln"
    assert table["state"] == {"players": {"alice": {}, "bob": {}}, "rolls": {"alice": 6, "bob": 1}}
    (before,) = fresh.json("state", database, "--at", "#3")
    assert before["state"]["rolls"] == {"alice": 6}
    assert '"alice": 6' in fresh.run("kiebitz", "state", database).stdout


@pytest.mark.full
def test_a_diagnostic_is_reported_at_its_byte(fresh: Environment, database: str) -> None:
    (diagnostic,) = fresh.json("check", database, status=3)
    assert (diagnostic["code"], diagnostic["blame"], diagnostic["clause"]) == (
        "bad-number",
        "server",
        "Spiel",
    )
    assert (diagnostic["offset_in_msg"], diagnostic["length"], diagnostic["bytes"]) == (9, 4, "eins")
    shown = fresh.run("kiebitz", "check", database, status=3).stdout
    assert "| WURF bob eins\n   |          ^^^^\n" in shown


@pytest.mark.full
def test_its_names_can_be_filtered_by(fresh: Environment, database: str) -> None:
    found = fresh.json("messages", database, "-Y", "knobeln.zahl == 6")
    assert [(row["name"], row["client"]) for row in found] == [
        ("WURF", "10.0.0.1:40001"),
        ("WURF", "10.0.0.2:40002"),
    ]
    assert fresh.run("kiebitz", "redissect", database, "-d", "udp.port==5000,knobeln").stderr == ""


@pytest.mark.full
def test_a_relay_records_it(fresh: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fresh.folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    port = free_port("udp")
    with (
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server,
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client,
    ):
        server.bind(("127.0.0.1", 0))
        for end in (server, client):
            end.settimeout(PATIENCE_S)
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{port}"
        kiebitz = str(fresh.scripts / "kiebitz")
        with running(kiebitz, "relay", "-m", mode, "-w", "live.db", ready="listening on"):
            client.sendto(b"HALLO alice", ("127.0.0.1", port))
            data, address = server.recvfrom(100)
            assert data == b"HALLO alice"
            server.sendto(b"WILLKOMMEN", address)
            assert client.recv(100) == b"WILLKOMMEN"
    live = fresh.folder / "live.db"
    assert rows(live, "SELECT kind, actor FROM events") == [("joined", "alice")]
    assert rows(live, "SELECT DISTINCT protocol FROM streams") == [("knobeln",)]


# The last one, as it takes the plug-in away.
@pytest.mark.full
def test_without_the_plugin_its_database_stays_readable(fresh: Environment, database: str) -> None:
    fresh.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "kiebitz-knobeln")
    assert "knobeln" not in fresh.run("kiebitz", "protocols").stdout
    assert [(row["kind"], row["sentence"]) for row in fresh.json("events", database)] == [
        ("joined", "joined name=alice"),
        ("joined", "joined name=bob"),
        ("rolled", "rolled name=alice zahl=6"),
        ("rolled", "rolled name=bob zahl=1"),
    ]
    done = fresh.run("kiebitz", "events", database)
    assert (
        "there is no protocol knobeln here: give its file with -P, or install its plug-in with pip"
        in done.stderr
    )
    assert fresh.json("state", database)[0]["state"]["rolls"] == {"alice": 6, "bob": 1}
    assert len(fresh.json("messages", database)) == len(GAME)
    assert len(fresh.json("check", database, status=3)) == 1
    wrong = fresh.run("kiebitz", "messages", database, "-Y", "knobeln.zahl == 6", status=2).stderr
    assert "if knobeln is a plug-in's protocol, install that with pip" in wrong
