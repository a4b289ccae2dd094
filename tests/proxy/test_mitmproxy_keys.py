"""Private keys of mitmproxy's modes: made for us alone, mended where others could read them, else refused.

The relay as a WireGuard server, with a peer in user space on machines of the tests' own.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from command import kiebitz
from foreign_files import create_as_stranger, folder_for_all, give_to_stranger
from maexchen_programs import Player, Server, play
from mitmproxy_live import assert_recorded, game, relayed_plainly, tunnel
from networks import GATEWAY_INSIDE, SERVER, at, inside, network, skip_unless_possible
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, running, speak, until
from strength import a_few
from taps_and_nats import Program

MITMPROXYS_LIBRARIES = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PRIVATE = ("mitmproxy-ca.pem", "mitmproxy-ca.p12", "wireguard.conf")


def relay(folder: Path, mode: str, *settings: str, more: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run the relay until it listens, or ends; return its status, and what it said."""
    log = folder / "said"
    log.unlink(missing_ok=True)
    options = [part for setting in settings for part in ("--set", setting)]
    command = ("relay", "-m", mode, "-w", str(folder / "game.db"), "-q", *more, *options)
    with Program(log, *command, environment={"HOME": str(folder)}) as program:
        process = program.process
        until(lambda: "listening on" in program.said or process.poll() is not None, "it starts or ends")
        process.terminate()
        return process.wait(PATIENCE_S), program.said


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> str:
    monkeypatch.setenv("HOME", str(folder))
    done = kiebitz("relay", "-m", mode, "-w", str(folder / "game.db"), "-q")
    assert done.status == 1
    return done.err


def wireguard(key_file: Path | None = None) -> str:
    return f"wireguard{f':{key_file}' if key_file else ''}@{free_port('udp')}"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def keys(path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    assert relay(home, wireguard())[0] == 0
    return home / ".mitmproxy"


@pytest.fixture(params=a_few([0o000, 0o022], [0], lambda mask: f"umask {mask:03o}"))
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.full
@pytest.mark.usefixtures("umask")
def test_new_keys_are_ours_alone(tmp_path: Path) -> None:
    own = tmp_path / "new" / "keys.json"
    status, said = relay(tmp_path, wireguard(), more=("-m", wireguard(own)))
    assert status == 0, said
    folder = tmp_path / ".mitmproxy"
    assert mode_of(folder) == 0o700
    assert {name: mode_of(folder / name) for name in PRIVATE} == dict.fromkeys(PRIVATE, 0o600)
    made = keys(folder / "wireguard.conf")
    assert len({made["server_key"], made["client_key"]}) == 2
    assert relay(tmp_path, wireguard())[0] == 0
    assert keys(folder / "wireguard.conf") == made
    # In a file of one's own.
    assert mode_of(own) == 0o600
    assert keys(own).keys() == {"server_key", "client_key"}
    assert not set(keys(own).values()) & set(made.values())


@pytest.mark.full
def test_too_open_permissions_are_corrected_and_reported_once(tmp_path: Path, made: Path) -> None:
    folder = tmp_path / ".mitmproxy"
    shutil.copytree(made, folder)
    folder.chmod(0o777)
    for name in PRIVATE:
        (folder / name).chmod(0o644)
    status, said = relay(tmp_path, wireguard())
    assert status == 0, said
    assert mode_of(folder) == 0o700
    for name in PRIVATE:
        assert mode_of(folder / name) == 0o600
        assert said.count(f"{folder / name} let other users of this machine read") == 1
    assert keys(folder / "wireguard.conf") == keys(made / "wireguard.conf")
    assert "let other users" not in relay(tmp_path, wireguard())[1]


@pytest.mark.full
def test_a_folder_that_is_not_mitmproxys_alone_keeps_its_rights(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    assert relay(tmp_path, wireguard(), f"confdir={folder}")[0] == 0
    assert mode_of(folder) == 0o755
    assert mode_of(folder / "wireguard.conf") == 0o600
    folder.chmod(0o1777)
    status, said = relay(tmp_path, wireguard(), f"confdir={folder}")
    assert status == 1
    assert "is writable by all users" in said
    assert mode_of(folder) == 0o1777


KEYS = json.dumps({"server_key": "QP" * 21 + "Q=", "client_key": "AB" * 21 + "A="})

Make = Callable[[Path], object]
PLANTED: dict[str, Make] = {
    "a file": lambda path: path.write_text(KEYS),
    "a pipe": lambda path: os.mkfifo(path, 0o666),
    "a folder": Path.mkdir,
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a link to a file of ours": lambda path: path.symlink_to(path.parent.parent / "ours"),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", PLANTED)
@MITMPROXYS_LIBRARIES
def test_a_planted_key_file_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder_for_all(tmp_path / "shared") / "keys.json"
    ours = tmp_path / "ours"
    ours.write_text(KEYS)
    ours.chmod(0o644)
    create_as_stranger(path, PLANTED[kind])
    before = path.lstat()
    assert "belongs to another user" in refused(tmp_path, monkeypatch, wireguard(path))
    assert os.path.samestat(path.lstat(), before)
    assert mode_of(ours) == 0o644


NO_KEYS: dict[str, tuple[Make, str]] = {
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a folder": (Path.mkdir, "is not a regular file"),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), "No such file"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", NO_KEYS)
@MITMPROXYS_LIBRARIES
def test_an_invalid_key_file_is_not_awaited(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, words = NO_KEYS[kind]
    make(tmp_path / "keys.json")
    said = refused(tmp_path, monkeypatch, wireguard(tmp_path / "keys.json"))
    assert words in said
    assert "Traceback" not in said


@pytest.mark.full
@pytest.mark.parametrize("name", ["mitmproxy-ca.pem", "mitmproxy-ca-cert.pem", "wireguard.conf", "."])
def test_another_user_s_entries_in_mitmproxys_folder_are_rejected(
    tmp_path: Path, made: Path, name: str
) -> None:
    folder = tmp_path / ".mitmproxy"
    shutil.copytree(made, folder)
    give_to_stranger(folder / name)
    status, said = relay(tmp_path, wireguard())
    assert status == 1
    assert "belongs to another user" in said
    assert list(tmp_path.glob(".*spool*")) == []


UDP_PORT, TCP_PORT = 9000, 35555
NAMES = ("alice", "bob", "carl")
ADDRESS_OF_LOCALHOST = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x09localhost\x00\x00\x01\x00\x01"
"""A question for a name server (RFC 1035, 4)."""


def read_configuration(relay: subprocess.Popen[str]) -> dict[str, str]:
    """Return the peer's configuration, as the relay prints it."""
    assert relay.stderr is not None
    values: dict[str, str] = {}
    for line in relay.stderr:
        name, equals, value = line.strip().partition(" = ")
        if equals:
            values[name] = value
        if name == "Endpoint":
            return values
    raise AssertionError("the relay has ended")


@pytest.mark.full
def test_games_through_the_tunnel(tmp_path: Path) -> None:
    skip_unless_possible("wireguard-go", "wg")
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun")
    said = game("Anna", "Bärbel", "Carl")
    database = tmp_path / "game.db"
    with network() as net:
        command = at(
            net.gateway,
            *KIEBITZ,
            *("relay", "-m", f"wireguard@{GATEWAY_INSIDE[4]}:51820", "-w", str(database), "-q"),
            *("--set", f"confdir={tmp_path / 'keys'}"),
        )
        with running(*command, ready="listening on udp") as relay:
            configuration = read_configuration(relay)
            assert configuration["Endpoint"] == f"{GATEWAY_INSIDE[4]}:51820"
            with tunnel(net.client, tmp_path, configuration) as host:
                with inside(net.server):
                    server = Server(expected=3, rounds=2, address=(SERVER[4], UDP_PORT))
                with inside(net.client):
                    players = [Player(name, (SERVER[4], UDP_PORT), host=host) for name in NAMES]
                play(server, players)
                with inside(net.client):
                    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                with asking:
                    asking.settimeout(PATIENCE_S)
                    asking.sendto(ADDRESS_OF_LOCALHOST, (configuration["DNS"], 53))
                    assert asking.recv(512).endswith(b"\x7f\x00\x00\x01")
                with inside(net.server):
                    listener = socket.create_server((SERVER[4], TCP_PORT))
                listener.settimeout(PATIENCE_S)
                with listener, inside(net.client):
                    speak(
                        said, listener, partial(socket.create_connection, (SERVER[4], TCP_PORT), PATIENCE_S)
                    )
    assert_recorded(database, players)
    # What the name server inside the tunnel was asked is no stream.
    assert rows(database, "SELECT count(*) FROM streams") == [(6,)]
    assert rows(database, "SELECT count(*) FROM games WHERE protocol = 'maexchen'") == [(2,)]
    assert rows(database, "SELECT count(*) FROM diagnostics WHERE severity != 'note'") == [(0,)]

    relayed_plainly(tmp_path / "plain.db", said)
    query = (
        "SELECT name, fields, offset FROM messages m JOIN streams s ON s.id = m.stream_id"
        " WHERE transport = 'tcp' ORDER BY m.id"
    )
    assert rows(database, query) == rows(tmp_path / "plain.db", query)
    assert rows(database, "SELECT count(*) FROM streams WHERE close_reason = 'closed'") == [(3,)]
