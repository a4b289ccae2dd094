from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command import ODD, ROOT, TINY, kiebitz
from damaged_databases import FORGED, HOSTILE, SPOTS, damage
from hostile_text import CODES, WORDS, is_harmless
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port
from strength import a_few

NAME = HOSTILE.replace(";", "")


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._seen = b""

    @property
    def text(self) -> str:
        return CODES.sub("", self._seen.decode(errors="replace"))

    def until(self, words: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while words not in self.text:
            assert time.monotonic() < end, self.text
            self._read(0.1)

    def end(self) -> int:
        """Read until it has ended; its exit status."""
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < end, self.text
            self._read(0.1)
        self._read(0.1)
        return self.process.returncode

    def _read(self, patience_s: float) -> None:
        # A terminal whose last program is gone gives an error where a file would end.
        with suppress(OSError):
            while select.select([self._master], [], [], patience_s)[0]:
                piece = os.read(self._master, 65_536)
                self._seen += piece
                if not piece:
                    return


@contextmanager
def on_terminal(*arguments: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*KIEBITZ, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "1000", "PYTHONPATH": str(ROOT)},
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def drives_nothing(text: str) -> bool:
    lines = text.replace("\r", "\n")
    return is_harmless(lines) and not re.search(rf"^ *{FORGED}", lines, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "encoding"),
    a_few(
        [(name, encoding) for name in (NAME, "日本") for encoding in ("utf-8", "latin-1")],
        [(NAME, "latin-1")],
        lambda row: f"{'hostile' if row[0] == NAME else 'foreign'}-{row[1]}",
    ),
)
def test_hostile_peer_names_control_no_terminal_of_a_relay(
    name: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A terminal may have no such letter: that must not end the recording.
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        port = free_port("udp")
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{port}"
        forced = f"udp.port=={server.getsockname()[1]},maexchen"
        with (
            on_terminal("relay", "-m", mode, "-w", str(tmp_path / f"a\n{FORGED}.db"), "-d", forced) as relay,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        ):
            relay.until("listening on")
            for said in (f"REGISTER;{name}", name, f"JOIN;{name}"):
                client.sendto(said.encode(), ("127.0.0.1", port))
                data, sender = server.recvfrom(65_535)
                assert data == said.encode()
                server.sendto(b"REGISTERED", sender)
            relay.until("is registered")
            relay.until("error[")
            relay.process.send_signal(signal.SIGINT)
            assert relay.end() == 0
            assert "recorded" in relay.text
            assert "fault" not in relay.text
            assert drives_nothing(relay.text)


@pytest.mark.full
def test_a_replay_of_a_spoilt_database_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"a\n{FORGED}\x1b[2J.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    damage(str(path), [spot for spot in SPOTS if spot.column not in WORDS and spot.kind != "names"])
    with on_terminal("replay", str(path), "--speed", "50") as terminal:
        assert terminal.end() in (0, 1, 3)
        assert terminal.text
        assert drives_nothing(terminal.text)


@pytest.mark.full
def test_a_replay_that_serves_a_spoilt_database_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    damage(str(path), [spot for spot in SPOTS if spot.column not in WORDS and spot.kind != "names"])
    with on_terminal("replay", str(path), "--serve", "127.0.0.1:0") as terminal:
        terminal.until("\n")
        if "playing" in terminal.text:
            terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() in (1, 130)
        assert drives_nothing(terminal.text)


@pytest.mark.full
def test_a_bar_with_the_name_of_a_file_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"a\n{FORGED}\x1b[2J[bold].pcap"
    path.write_bytes(Path(ODD).read_bytes())
    with on_terminal("import", str(path), "-w", str(tmp_path / "game.db")) as terminal:
        assert terminal.end() == 0
        assert "[bold].pcap" in terminal.text
        assert drives_nothing(terminal.text)
