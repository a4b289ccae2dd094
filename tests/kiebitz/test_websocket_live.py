"""Games over WebSocket between real programs: relayed, altered, replayed, and read from a capture."""

from __future__ import annotations

import shlex
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from certificates import Authority
from command import ROOT, kiebitz
from live_replays import ended, playing
from mitmproxy_live import mitmproxys
from processes_and_rows import KIEBITZ, free_port, rows, running, until
from websocket_dice import dice_server, play, write_file

pytestmark = pytest.mark.usefixtures("protocol_files_forgotten")


@contextmanager
def relaying(database: Path, server: int, *options: str, scheme: str = "tcp") -> Iterator[int]:
    """Relay to a server; yield the relay's port."""
    port = free_port("tcp")
    mode = f"reverse:{scheme}://127.0.0.1:{server}@{port}"
    file = write_file(database.parent)
    command = [*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", "-P", file, *options]
    with running(*command, ready="listening on"):
        yield port


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Run a server with TLS; yield its port, and the options for a relay that trusts it."""
    authority = Authority(folder)
    encrypted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encrypted.load_cert_chain(authority.server())
    with dice_server(encrypted) as port:
        trusted = f"ssl_verify_upstream_trusted_ca={authority.path}"
        yield port, ["--set", trusted, "--set", f"confdir={folder / 'keys'}"]


def names(database: Path) -> list[tuple[str, str]]:
    """Return direction and name of all messages."""
    return rows(database, "SELECT direction, name FROM messages ORDER BY id")


WHOLE = [
    ("c2s", "websocket-request"),
    ("s2c", "websocket-response"),
    ("c2s", "join"),
    ("s2c", "welcome"),
    *[("c2s", "roll"), ("s2c", "rolled")] * 3,
    ("c2s", "websocket-ping"),
    ("s2c", "websocket-pong"),
    ("c2s", "websocket-close"),
    ("s2c", "websocket-close"),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("websocket") / "game.db"
    with dice_server() as server, relaying(database, server) as port:
        assert play(port, "alice", 3) == [1, 2, 3]
        until(lambda: len(rows(database, "SELECT id FROM messages")) == len(WHOLE), "all is recorded")
    return database


def test_a_game_is_recorded(recorded: Path) -> None:
    assert names(recorded) == WHOLE
    assert kiebitz("check", str(recorded)).status == 0
    joined = kiebitz("show", str(recorded), "3")
    assert "frame header: text, 33 bytes" in joined.out
    assert "name = alice" in joined.out
    opened = kiebitz("show", str(recorded), "1")
    assert "clause: RFC 6455, 4.1" in opened.out


def test_an_export_is_the_same_game(recorded: Path, tmp_path: Path) -> None:
    capture, again = tmp_path / "game.pcapng", tmp_path / "again.db"
    assert kiebitz("export", str(recorded), "-T", "pcapng", "-o", str(capture)).status == 0
    done = kiebitz("import", str(capture), "-w", str(again), "-P", write_file(tmp_path))
    assert done.status == 0, done.err
    question = "SELECT direction, offset, length, name, fields FROM messages ORDER BY direction, offset"
    assert rows(again, question) == rows(recorded, question)


@pytest.mark.parametrize("has_tls", [False, pytest.param(True, marks=pytest.mark.full)])
def test_messages_are_altered_with_mask_and_compression(has_tls: bool, tmp_path: Path) -> None:
    database = tmp_path / "altered.db"
    options = [
        *("--change", "msg == 'rolled' [2nd]", "dice=6"),
        *("--drop", "msg == 'roll' [3rd]"),
        *("--insert", "msg == 'roll' [first 1]", "roll"),
        *("--delay", "msg == 'welcome'", "50ms"),
        *("--impair", "cut 50%, seed 1"),
    ]
    with ExitStack() as stack:
        if has_tls:
            served, trusted = stack.enter_context(tls_server(tmp_path))
            options += trusted
        else:
            served = stack.enter_context(dice_server())
        scheme = "wss" if has_tls else "tcp"
        port = stack.enter_context(relaying(database, served, *options, scheme=scheme))
        # The server has seen an additional roll, and one less.
        assert play(port, "alice", 3) == [1, 6, 3]
    assert "bad-deflate" not in kiebitz("check", str(database)).out
    altered = rows(database, "SELECT DISTINCT action FROM alterations")
    assert {action for (action,) in altered} >= {"change", "drop", "insert", "delay", "cut"}


@pytest.mark.full
def test_it_is_replayed_to_a_live_server_and_to_a_live_client(recorded: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path)
    with dice_server() as server:
        address = f"127.0.0.1:{server}"
        done = kiebitz("replay", str(recorded), "--connect", address, "-P", file, "-q")
        assert (done.status, done.err) == (0, "all 14 messages went as recorded\n")
    port = free_port("tcp")
    with playing(str(recorded), "--serve", f"127.0.0.1:{port}", "-P", file, "-q") as server_side:
        assert play(port, "alice", 3) == [1, 2, 3]
        status, _, said = ended(server_side)
        assert (status, said) == (0, "all 14 messages went as recorded\n")


@pytest.mark.full
@pytest.mark.parametrize("has_tls", [True, False], ids=["TLS on both sides", "TLS to the server"])
def test_a_server_with_tls(has_tls: bool, tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with (
        tls_server(tmp_path) as (server, options),
        relaying(database, server, *options, scheme="wss") as port,
    ):
        trusted = ssl.create_default_context(cafile=mitmproxys(tmp_path)) if has_tls else None
        assert play(port, "alice", 3, trusted) == [1, 2, 3]
        until(lambda: len(rows(database, "SELECT id FROM messages")) == len(WHOLE), "all is recorded")
    assert names(database) == WHOLE


EVENTS = """
[events]
begins = { on = "welcome", opens = true, say = "a game begins" }
ends = { on = "rolled", when = "dice == 3", ends = true, say = "the dice shows {dice}" }
"""
PROGRAM = [sys.executable, str(ROOT / "tests" / "support" / "websocket_program.py")]


@pytest.mark.full
@pytest.mark.parametrize("fault", ["", "--fault"])
def test_a_server_is_probed(fault: str, recorded: Path, tmp_path: Path) -> None:
    port = free_port("tcp")
    cases = ("unknown-message", "join/bytewise", "join/name/latin-1", "roll/cut/silence", "*/said")
    done = kiebitz(
        *("probe", "server", str(port), "-d", "wsdice", "-P", write_file(tmp_path)),
        *("--timeout", "0.4", "--json", "--via-session", str(recorded)),
        *("--restart", shlex.join([*PROGRAM, "server", str(port), *fault.split()])),
        *(word for case in cases for word in ("--only", f"wsdice/{case}")),
    )
    verdicts = {each["case"]: each["verdict"] for each in done.json["results"]}
    failed = {case for case, verdict in verdicts.items() if verdict == "FAILED"}
    assert failed == ({"wsdice/unknown-message"} if fault else set())
    assert verdicts["wsdice/join/bytewise"] == verdicts["wsdice/rolled/said"] == "OK"


@pytest.mark.full
def test_programs_play_with_each_other(tmp_path: Path) -> None:
    file = Path(write_file(tmp_path))
    file.write_text(file.read_text() + EVENTS)
    program = shlex.join(PROGRAM)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'protocol = "{file.name}"\ngames = 1\nplayers = 1\ntimeout = "15s"\n'
        f'[[server]]\nname = "a"\ncommand = "{program} server {{port}}"\n'
        f'[[client]]\nname = "b"\ncommand = "{program} player {{port}} {{name}}"\n'
    )
    report = tmp_path / "report"
    done = kiebitz("interop", str(plan), "-o", str(report), "--json")
    (cell,) = done.json["cells"]
    assert cell["attempts"][0]["outcome"] == "completed", (done.out, done.err)


def test_an_anonymous_copy_has_the_same_messages(recorded: Path, tmp_path: Path) -> None:
    capture, copy = tmp_path / "anonymous.pcapng", tmp_path / "anonymous.db"
    file = write_file(tmp_path)
    done = kiebitz("export", str(recorded), "-T", "pcapng", "--anonymize", "-o", str(capture))
    assert done.status == 0, done.err
    kiebitz("import", str(capture), "-w", str(copy), "-P", file)
    messages = "SELECT direction, name FROM messages ORDER BY id"
    assert rows(copy, messages) == rows(recorded, messages)
    names = "SELECT DISTINCT fields ->> 'name' FROM messages WHERE name = 'join'"
    assert not {*rows(copy, names)} & {*rows(recorded, names)}
    assert rows(copy, "SELECT DISTINCT code FROM diagnostics") == rows(
        recorded, "SELECT DISTINCT code FROM diagnostics"
    )
