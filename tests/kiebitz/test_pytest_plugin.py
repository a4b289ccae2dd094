"""The pytest plug-in, in pytest runs of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT

PROJECT = ROOT / "docs" / "examples" / "pytest-project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def outcome_of(folder: Path, *options: str) -> tuple[int, str]:
    """Return the exit status and the output of pytest."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(folder)]
    # The outer run's options do not apply.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.full
def test_the_example_project_passes(project: Path) -> None:
    status, out = outcome_of(project)
    assert (status, "2 passed" in out) == (0, True), out


@pytest.mark.full
def test_a_failed_test_names_its_recording(project: Path, tmp_path: Path) -> None:
    server = project / "guess_server.py"
    server.write_text(server.read_text().replace('f"WELCOME {name}"', '"WELCOME"'))
    status, out = outcome_of(project, f"--basetemp={tmp_path / 'kept'}", "-k", "follows")
    assert status == 1
    assert "kiebitz: recorded traffic" in out
    (command,) = (line for line in out.splitlines() if line.startswith("kiebitz check "))
    database = Path(command.split()[-1])
    assert database.exists()
    assert "Diagnostic(" in out


TESTS = """
import socket
import pytest
from kiebitz import KiebitzError


def test_udp(kiebitz):
    with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as client:
        server.bind(("127.0.0.1", 0))
        with kiebitz.relay(server.getsockname()[1], protocol="maexchen") as session:
            client.sendto(b"REGISTER;Anna", ("127.0.0.1", session.port))
            data, address = server.recvfrom(100)
            server.sendto(b"REGISTERED", address)
            assert client.recv(100) == b"REGISTERED"
            assert [message.name for message in session.messages()] == ["REGISTER", "REGISTERED"]
        assert not session.diagnostics()
        assert session.events('kind == "registered"')


def test_two_relays(kiebitz):
    with kiebitz.relay(9) as one, kiebitz.relay(9) as other:
        assert one.port != other.port
        assert one.database != other.database


def test_wrong_protocols(kiebitz, tmp_path):
    with pytest.raises(KiebitzError, match="there is no protocol maexhen; did you mean maexchen"):
        kiebitz.relay(9, protocol="maexhen").__enter__()
    with pytest.raises(KiebitzError, match="missing.toml"):
        kiebitz.relay(9, protocol=tmp_path / "missing.toml").__enter__()


def test_a_relay_that_does_not_start(kiebitz, tmp_path):
    # A folder in the place of the database.
    (tmp_path / "kiebitz-1.db").mkdir()
    with pytest.raises(KiebitzError, match="kiebitz-1.db"):
        kiebitz.relay(9).__enter__()
"""


@pytest.mark.full
def test_relays_in_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    status, out = outcome_of(tmp_path)
    assert (status, "4 passed" in out) == (0, True), out


def test_the_plug_in_imports_nothing_slow() -> None:
    code = (
        "import sys, pytest, kiebitz.pytest_plugin\n"
        "slow = {'scapy', 'mitmproxy', 'rich', 'sqlite_utils', 'click', 'msgspec'}\n"
        "print(sorted(slow & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
