from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest
from command import ODD, TINY, kiebitz
from damaged_databases import FORGED, HOSTILE, SPOTS, damage
from hostile_text import CODES, WORDS, is_harmless
from processes_and_rows import PATIENCE_S, free_port
from strength import a_few
from terminals import OnTerminal

NAME = HOSTILE.replace(";", "")


def on_terminal(*arguments: str) -> OnTerminal:
    return OnTerminal(*arguments, columns=1000, COLUMNS="1000")


def text_of(terminal: OnTerminal) -> str:
    return CODES.sub("", terminal.written.decode(errors="replace"))


def until(terminal: OnTerminal, words: str) -> None:
    terminal.read_until(lambda _: words in text_of(terminal))


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
            until(relay, "listening on")
            for said in (f"REGISTER;{name}", name, f"JOIN;{name}"):
                client.sendto(said.encode(), ("127.0.0.1", port))
                data, sender = server.recvfrom(65_535)
                assert data == said.encode()
                server.sendto(b"REGISTERED", sender)
            until(relay, "is registered")
            until(relay, "error[")
            relay.signal(signal.SIGINT)
            assert relay.ended() == 0
            assert "recorded" in text_of(relay)
            assert "fault" not in text_of(relay)
            assert drives_nothing(text_of(relay))


@pytest.mark.full
def test_a_replay_of_a_spoilt_database_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"a\n{FORGED}\x1b[2J.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    damage(str(path), [spot for spot in SPOTS if spot.column not in WORDS and spot.kind != "names"])
    with on_terminal("replay", str(path), "--speed", "50") as terminal:
        assert terminal.ended() in (0, 1, 3)
        assert text_of(terminal)
        assert drives_nothing(text_of(terminal))


@pytest.mark.full
def test_a_replay_that_serves_a_spoilt_database_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    assert kiebitz("import", TINY, "-w", str(path)).status == 0
    damage(str(path), [spot for spot in SPOTS if spot.column not in WORDS and spot.kind != "names"])
    with on_terminal("replay", str(path), "--serve", "127.0.0.1:0") as terminal:
        until(terminal, "\n")
        if "playing" in text_of(terminal):
            terminal.signal(signal.SIGINT)
        assert terminal.ended() in (1, 130)
        assert drives_nothing(text_of(terminal))


@pytest.mark.full
def test_a_bar_with_the_name_of_a_file_drives_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"a\n{FORGED}\x1b[2J[bold].pcap"
    path.write_bytes(Path(ODD).read_bytes())
    with on_terminal("import", str(path), "-w", str(tmp_path / "game.db")) as terminal:
        assert terminal.ended() == 0
        assert "[bold].pcap" in text_of(terminal)
        assert drives_nothing(text_of(terminal))
