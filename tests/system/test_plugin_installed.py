"""A user's way with a plug-in: Kiebitz and Knobeln are installed in a fresh environment, and work together.

Nothing is fetched: the environment sees the packages of the one that the tests run in, but for Kiebitz. In a
second environment Kiebitz is compiled, which takes minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
from command import ROOT, Done
from conversation_files import blocks, check
from processes_and_rows import free_port, rows, running
from scapy.layers.inet import IP, UDP
from scapy.utils import wrpcap
from snapshots import DATA
from strength import CEILING_S
from transcripts import played
from udp_relays import Echo, ask, client_of

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

    def kiebitz(self, *arguments: str) -> Done:
        """Run the command in the current folder."""
        command = [str(self.scripts / "kiebitz"), *arguments]
        done = subprocess.run(command, env=_plain_environment(), capture_output=True, text=True, timeout=200)
        return Done(done.returncode, done.stdout, done.stderr)

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
    shutil.copytree(ROOT / "docs" / "examples", sources / "kiebitz" / "docs" / "examples", ignore=no_caches)
    shutil.copytree(PLUGIN, sources / "knobeln", ignore=no_caches)
    environment = Environment(tmp_path_factory.mktemp("environment"), is_compiled)
    environment.install(sources / "kiebitz")
    environment.install(sources / "knobeln")
    return environment


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


def capture_game(folder: Path) -> None:
    packets = []
    for number, (sender, receiver, data) in enumerate(GAME):
        packet = IP(src=sender[0], dst=receiver[0]) / UDP(sport=sender[1], dport=receiver[1]) / data
        packet.time = 1_700_000_000 + number / 1000
        packets.append(packet)
    wrpcap(str(folder / "knobeln.pcap"), packets)


@pytest.mark.full
def test_a_relay_records_it(fresh: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fresh.folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    port = free_port("udp")
    with Echo() as server, client_of(("127.0.0.1", port)) as client:
        mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
        kiebitz = str(fresh.scripts / "kiebitz")
        with running(kiebitz, "relay", "-m", mode, "-w", "live.db", ready="listening on"):
            assert ask(client, b"HALLO alice") == b"HALLO alice"
            server.socket.sendto(b"WILLKOMMEN", server.came[0][1])
            assert client.recv(100) == b"WILLKOMMEN"
    live = fresh.folder / "live.db"
    assert rows(live, "SELECT kind, actor FROM events") == [("joined", "alice")]
    assert rows(live, "SELECT DISTINCT protocol FROM streams") == [("knobeln",)]


@pytest.mark.full
def test_with_the_plugin_and_without(
    fresh: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the last test, as it takes the plug-in away."""
    monkeypatch.chdir(tmp_path)
    capture_game(tmp_path)
    with_it, without = blocks(DATA / "installed_plugin.txt").values()
    check(with_it, played(with_it, tmp_path, fresh.kiebitz))
    fresh.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "kiebitz-knobeln")
    (tmp_path / "without").mkdir()
    monkeypatch.chdir("without")
    (tmp_path / "game.db").rename("game.db")
    check(without, played(without, tmp_path / "without", fresh.kiebitz))
