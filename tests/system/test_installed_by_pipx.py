"""An installation by the current pipx, which writes `python -E` into the script: it relays."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command import ROOT
from processes_and_rows import free_port, rows, running


@pytest.mark.full
def test_pipx_installs_a_kiebitz_that_relays(tmp_path: Path) -> None:
    pipx = pytest.importorskip("pipx")
    environment = os.environ | {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    done = subprocess.run(
        [sys.executable, "-m", pipx.__name__, "install", str(ROOT)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    if done.returncode != 0 and "Could not" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    script = tmp_path / "bin" / "kiebitz"
    assert script.read_text().splitlines()[0].endswith(" -E")
    database, port = tmp_path / "game.db", free_port("udp")
    with (
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server,
        closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client,
    ):
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{port}"
        with running(str(script), "relay", "-m", mode, "-w", str(database), ready="listening on"):
            client.sendto(b"REGISTER;alice", ("127.0.0.1", port))
            assert server.recv(100) == b"REGISTER;alice"
    assert rows(database, "SELECT count(*) FROM chunks") == [(1,)]
