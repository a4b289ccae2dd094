"""Rotation of live recordings: all bytes are recorded, in one database after the other."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from command import kiebitz
from inspected_captures import items_of
from maexchen_programs import Player, Server, play
from processes_and_rows import PATIENCE_S, Said, child_of, rows, speak
from recording_relays import small_disk
from relay_processes import HAS_PROC
from rotated_recording import assert_well_divided
from rotating_relays import Relay, listening, relaying

from kiebitz.dissectors.model import DIRECTIONS, Chunk


def databases(folder: Path) -> list[Path]:
    paths = sorted(folder.iterdir())
    for path in paths:
        assert re.fullmatch(r"game_\d{5}_20\d{12}\.db", path.name), path
    return paths


def play_maexchen(port: int, server: Server) -> list[Player]:
    players = [Player(name, ("127.0.0.1", port)) for name in ("alice", "bob", "carl")]
    play(server, players)
    return players


def assert_recorded(paths: list[Path], players: list[Player]) -> None:
    for player in players:
        for direction, said in (("c2s", player.log.sent), ("s2c", player.log.received)):
            (datagrams,) = said.values()
            query = (
                "SELECT c.data FROM chunks c JOIN streams s ON s.id = c.stream_id WHERE"
                f" s.client = '127.0.0.1:{player.address[1]}' AND direction = '{direction}' ORDER BY c.id"
            )
            assert [data for path in paths for (data,) in rows(path, query)] == datagrams


@pytest.mark.full
@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=HAS_PROC)])
def test_a_round_continues_in_the_next_database_after_a_time(is_killed: bool, tmp_path: Path) -> None:
    """Also if the recorder is killed meanwhile: another one continues in the newest database."""
    server = Server(expected=3, rounds=15)
    with (
        relaying("udp", server.port, tmp_path / "game.db", "-b", "duration:0.5") as relay,
        ThreadPoolExecutor(1) as beside,
    ):

        def kill() -> None:
            relay.wait_for("recording into", 3)
            os.kill(child_of(relay.process.pid), signal.SIGKILL)

        killing = beside.submit(kill) if is_killed else None
        players = play_maexchen(relay.port, server)
        if killing is not None:
            killing.result(PATIENCE_S)
            relay.wait_for("the recorder has caught up")
        assert relay.stop() == 0
    paths = databases(tmp_path)
    assert len(paths) >= 3
    assert_well_divided(paths)
    assert_recorded(paths, players)
    if is_killed:
        return
    goes_on = [
        path
        for path in paths[1:]
        if rows(path, "SELECT id FROM games WHERE started_ns < (SELECT started_ns FROM sessions)")
    ]
    assert goes_on, "no database was begun in the middle of a round"
    assert f"recording into {paths[0]}\n" in relay.said
    for number, path in enumerate(paths[1:], 2):
        assert f"{paths[number - 2]}:{number - 1}; recording into {path}\n" in relay.said
    assert f"-> {paths[-1]}:{len(paths)}\n" in relay.said
    for path in paths[1:]:
        for command in ("check", "messages", "events", "state", "streams", "games", "replay", "sessions"):
            assert kiebitz(command, str(path)).status == 0
        capture = tmp_path.parent / f"{tmp_path.name}.pcapng"
        assert kiebitz("export", str(path), "-T", "pcapng", "-o", str(capture)).status == 0
        assert kiebitz("diff", str(path), str(path)).status == 0
        (messages,) = rows(path, "SELECT count(*) FROM messages")[0]
        listed = kiebitz("messages", str(path), "-Y", "time >= 0", "--nl").out
        assert len(listed.splitlines()) == messages


def spoken(name: str) -> list[Said]:
    return [
        Said(item.stream.client, item.direction, item.data)
        for item in items_of(name)
        if isinstance(item, Chunk)
    ]


@pytest.mark.full
def test_a_catan_game_continues_in_the_next_database_at_a_size(tmp_path: Path) -> None:
    said = spoken("catan-infrarot-game2-3p.pcap.gz")
    with (
        listening() as listener,
        relaying(
            "tcp", listener.getsockname()[1], tmp_path / "game.db", "-b", "filesize:1000", "-b", "duration:60"
        ) as relay,
    ):

        def paced() -> Iterator[Said]:
            for number, one in enumerate(said):
                if number == len(said) * 2 // 3:
                    # A recorder that is behind would come to the end before it looks at the size.
                    relay.wait_for("recording into", 2)
                yield one

        speak(paced(), listener, partial(socket.create_connection, ("127.0.0.1", relay.port), PATIENCE_S))
        assert relay.stop() == 0
    paths = databases(tmp_path)
    assert len(paths) >= 2
    for path in paths[:-1]:
        # A batch of rows is written at once.
        assert 1_000_000 <= path.stat().st_size <= 3_000_000
    assert_well_divided(paths)
    recorded: Counter[str] = Counter()
    for path in paths:
        for direction, size in rows(path, "SELECT direction, sum(length) FROM chunks GROUP BY direction"):
            recorded[direction] += size
    for direction in DIRECTIONS:
        assert recorded[direction] == sum(len(one.data) for one in said if one.direction == direction)
    assert rows(paths[-1], "SELECT id FROM diagnostics WHERE code IN ('gap', 'mid-stream', 'cut-off')") == []


@pytest.mark.full
def test_a_message_that_is_never_finished_is_not_waited_for_long(tmp_path: Path) -> None:
    with (
        listening() as listener,
        relaying("tcp", listener.getsockname()[1], tmp_path / "game.db", "-b", "duration:1") as relay,
    ):
        with socket.create_connection(("127.0.0.1", relay.port), PATIENCE_S) as client:
            server, _ = listener.accept()
            with server:
                client.sendall(b"LOGI alice\r\nPI")
                begun = time.monotonic()
                relay.wait_for("recording into", 2)
                assert time.monotonic() - begun > 3
                client.sendall(b"NG\r\nLOGO\r\n")
                client.shutdown(socket.SHUT_WR)
                assert server.recv(100).startswith(b"LOGI")
        assert relay.stop() == 0
    paths = databases(tmp_path)
    assert_well_divided(paths)
    names = [name for path in paths for (name,) in rows(path, "SELECT name FROM messages ORDER BY id")]
    assert names == ["LOGI", "PING", "LOGO"]
    for path in paths:
        assert kiebitz("check", str(path)).status in (0, 3)
        assert kiebitz("messages", str(path)).status == 0


@pytest.mark.full
def test_without_a_new_database_recording_continues_in_the_old_one(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16m,nr_inodes=64") as disk:
        server = Server(expected=3, rounds=15)
        with relaying("udp", server.port, disk / "game.db", "-b", "duration:1") as relay:
            ballast = [disk / f"ballast{number}" for number in range(64)]
            with suppress(OSError):
                for path in ballast:
                    path.touch()
            players = play_maexchen(relay.port, server)
            for path in ballast:
                path.unlink(missing_ok=True)
            assert relay.stop() == 0
        assert relay.said.count("the recording continues in") == 1
        (path,) = databases(disk)
        assert_well_divided([path])
        assert_recorded([path], players)


@pytest.mark.full
def test_two_relays_with_one_name_leave_each_other_alone(tmp_path: Path) -> None:
    def say(relay: Relay, server: socket.socket, text: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(text, ("127.0.0.1", relay.port))
            assert server.recv(100) == text

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        begin = partial(relaying, "udp", server.getsockname()[1], tmp_path / "game.db", "-b", "duration:60")
        with begin() as first:
            with begin() as second:
                say(first, server, b"REGISTER;alice")
                say(second, server, b"REGISTER;bob")
                assert second.stop() == 0
            say(first, server, b"REGISTER;carl")
            assert first.stop() == 0
    told = [rows(path, "SELECT fields FROM messages ORDER BY id") for path in databases(tmp_path)]
    assert sorted(told) == [
        [('{"name":"alice"}',), ('{"name":"carl"}',)],
        [('{"name":"bob"}',)],
    ]
