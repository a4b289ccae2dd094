from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, kiebitz
from maexchen_programs import Player, Server, play
from mitmproxy_live import assert_recorded, game, listening, relayed_plainly
from processes_and_rows import (
    KIEBITZ,
    PATIENCE_S,
    Said,
    child_of,
    free_port,
    receive,
    rows,
    running,
    speak,
    story,
)
from recording_relays import assert_sound, connected, recorded, relaying, round_trips
from strength import times
from udp_relays import eventually

from kiebitz.storage.database.recorder_lock import RecorderWatch

TO_CATCH_UP = times(6000, quick=3000)

MADE = ("streams", "tables", "games", "messages", "diagnostics", "events", "snapshots")


def all_rows(database: Path) -> dict[str, list[Any]]:
    return {table: rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in MADE}


def assert_as_if_undisturbed(database: Path) -> None:
    made = all_rows(database)
    assert made["messages"]
    assert kiebitz("redissect", str(database)).status == 0
    assert all_rows(database) == made


def bytes_in(database: Path) -> int:
    return int(rows(database, "SELECT coalesce(sum(length), 0) FROM chunks")[0][0])


@pytest.mark.full
@pytest.mark.parametrize(
    "steps",
    [
        # Some of it is committed, and some is not even flushed to the journal.
        "20 sleep 20 kill 20 wait 20",
        "10 kill 10 wait kill 10 wait 10",
        # There is nothing yet.
        "kill wait 10",
    ],
)
def test_it_is_killed_between_messages(steps: str, tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    said: list[bytes] = []
    with relaying(database) as echo:
        for step in steps.split():
            if step == "kill":
                echo.kill_recorder()
            elif step == "wait":
                echo.wait_for("the recorder has caught up")
            elif step == "sleep":
                time.sleep(0.15)
            else:
                said += round_trips(echo, len(said) // 2, int(step))
        assert echo.stop() == 0
    assert "Traceback" not in echo.said
    assert f"recorded 1 stream, {len(said)} messages" in echo.said
    assert recorded(database) == said
    assert rows(database, "SELECT count(*), min(ended_ns > started_ns) FROM sessions") == [(1, 1)]
    assert rows(database, "SELECT close_reason FROM streams") == [("end",)]
    assert_as_if_undisturbed(database)
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]


@pytest.mark.full
def test_rows_recorded_before_a_restart_keep_their_numbers(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    for first in (0, 10):
        with relaying(database) as echo:
            round_trips(echo, first, 10)
            assert echo.stop() == 0
    before = all_rows(database)
    with relaying(database) as echo:
        round_trips(echo, 20, 10)
        eventually(lambda: len(recorded(database)) == 60)
        third = all_rows(database)
        echo.kill_recorder()
        said = round_trips(echo, 30, 10)
        assert echo.stop() == 0
    after = all_rows(database)
    for table in MADE:
        assert [row for row in after[table] if row in before[table]] == before[table]
        if table not in ("streams", "games"):
            assert after[table][: len(third[table])] == third[table]
    assert recorded(database)[60:] == said
    assert_as_if_undisturbed(database)


@pytest.mark.full
def test_it_is_killed_again_while_it_catches_up(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        said = round_trips(echo, 0, TO_CATCH_UP)
        eventually(lambda: len(recorded(database)) == 2 * TO_CATCH_UP)
        watch = RecorderWatch(str(database))
        echo.kill_recorder()
        eventually(lambda: watch.is_recording())
        os.kill(echo.recorder(), signal.SIGKILL)
        echo.wait_for("the relay continues, but nothing more is recorded")
        round_trips(echo, TO_CATCH_UP, 10)
        assert echo.stop() == 1
    assert "Traceback" not in echo.said
    assert_sound(database)
    assert recorded(database) == said


@pytest.mark.full
def test_it_is_killed_while_the_relay_waits_for_its_end(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        said = round_trips(echo, 0, 10)
        recorder = echo.recorder()
        os.kill(recorder, signal.SIGSTOP)
        said += round_trips(echo, 10, 10)
        echo.relay.send_signal(signal.SIGINT)
        time.sleep(0.3)
        os.kill(recorder, signal.SIGKILL)
        echo.wait_for("recorded 1 stream, 40 messages")
        assert echo.relay.wait(20) == 0
    assert recorded(database) == said
    assert rows(database, "SELECT ended_ns > started_ns FROM sessions") == [(1,)]


POISON = """
import os
import signal
from copy import copy
from kiebitz.dissectors.grammar.text_codec import DelimitedCodec
from kiebitz_knobeln.dissector import KNOBELN

class Poisoned(DelimitedCodec):
    def decode(self, frame, direction):
        if frame == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().decode(frame, direction)

POISONED = copy(KNOBELN)
POISONED.codec = Poisoned(KNOBELN.grammar, "Grundlagen")
"""


@pytest.fixture
def poisoned(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "plug-in"
    about = folder / "kiebitz_poison-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "kiebitz_poison.py").write_text(POISON)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kiebitz-poison\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kiebitz.dissectors]\nknobeln = kiebitz_poison:POISONED\n")
    knobeln = ROOT / "tests" / "plugins" / "knobeln"
    return {"PYTHONPATH": os.pathsep.join(map(str, (folder, knobeln, ROOT)))}


# An exception of a dissector ends a game only: see `tests/storage/test_isolation.py`.
@pytest.mark.full
def test_a_fatal_input_kills_it_only_twice(tmp_path: Path, poisoned: dict[str, str]) -> None:
    database = tmp_path / "game.db"
    with relaying(database, poisoned) as echo:
        for data in (b"HALLO alice", b"WURF alice 6"):
            echo.round_trip(data)
        eventually(lambda: len(recorded(database)) == 4)
        echo.round_trip(b"kill")
        echo.wait_for("the recorder has died and is restarted")
        echo.wait_for("the relay continues, but nothing more is recorded")
        for _ in range(10):
            echo.round_trip(b"WURF alice 5")
        assert echo.stop() == 1
    assert echo.said.count("is restarted") == 1
    assert_sound(database)
    assert recorded(database) == [b"HALLO alice"] * 2 + [b"WURF alice 6"] * 2


@pytest.mark.full
def test_the_database_is_gone(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        round_trips(echo, 0, 10)
        database.unlink()
        echo.kill_recorder()
        echo.wait_for("there is no such file")
        echo.wait_for("the relay continues, but nothing more is recorded")
        round_trips(echo, 10, 10)
        assert echo.stop() == 1


@pytest.mark.full
def test_another_kiebitz_has_taken_the_database(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        round_trips(echo, 0, 10)
        eventually(lambda: len(recorded(database)) == 20)
        recorder = echo.recorder()
        # The relay does not see it die before the other one has begun.
        os.kill(echo.relay.pid, signal.SIGSTOP)
        os.kill(recorder, signal.SIGKILL)
        with relaying(tmp_path / "other.db") as stopped:
            assert stopped.stop() == 0
        shutil.copy(ROOT / "captures" / "maexchen-head-tiny.pcap", tmp_path / "tiny.pcap")
        assert kiebitz("import", str(tmp_path / "tiny.pcap"), "-w", str(database)).status == 0
        os.kill(echo.relay.pid, signal.SIGCONT)
        echo.wait_for("its session 1 cannot be continued")
        round_trips(echo, 10, 10)
        assert echo.stop() == 1
    assert_sound(database)
    assert rows(database, "SELECT kind FROM sessions ORDER BY id") == [("relay",), ("import",)]


# Games, over UDP and TCP.


def kill_in_round(number: int, database: Path, relay: int) -> int:
    rolled = f"SELECT count(*) FROM events WHERE kind = 'rolled' AND game_id = {number}"
    eventually(lambda: rows(database, rolled)[0][0] > 0)
    os.kill(child_of(relay), signal.SIGKILL)
    return int(rows(database, "SELECT count(*) FROM events")[0][0])


@pytest.mark.full
def test_in_the_middle_of_a_maexchen_game(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    server = Server(expected=3, rounds=4)
    port = free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
    players = [Player(name, ("127.0.0.1", port), bluffs=name == "bob") for name in ("alice", "bob", "carl")]
    with running(*KIEBITZ, "relay", "-m", mode, "-w", str(database), ready="listening on") as relay:
        with ThreadPoolExecutor(1) as beside:
            killed = beside.submit(kill_in_round, 2, database, relay.pid)
            play(server, players)
        events_before = killed.result(0)
    assert rows(database, "SELECT count(*) FROM events")[0][0] > events_before + 10
    assert_recorded(database, players)
    assert rows(database, "SELECT count(*) FROM games WHERE result IS NOT NULL") == [(4,)]
    assert rows(database, "SELECT count(*) FROM sessions") == [(1,)]
    state = kiebitz("state", str(database), "--json").json
    assert_as_if_undisturbed(database)
    assert kiebitz("state", str(database), "--json").json == state


@pytest.mark.full
@pytest.mark.parametrize("at", [2, 90])
def test_in_the_middle_of_a_message_over_tcp(tmp_path: Path, at: int) -> None:
    said = game("Anna", "Bärbel", "Carl")
    database = tmp_path / "game.db"
    with listening() as listener:
        port = free_port("tcp")
        mode = f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{port}"
        with running(*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", ready="listening on") as relay:
            half = len(said[at].data) // 2
            before = sum(len(one.data) for one in said[:at]) + half

            def disturbed() -> Iterator[Said]:
                client, direction, data = said[at]
                yield from said[:at]
                yield Said(client, direction, data[:half])
                eventually(lambda: bytes_in(database) == before)
                os.kill(child_of(relay.pid), signal.SIGKILL)
                yield Said(client, direction, data[half:])
                yield from said[at + 1 :]

            speak(disturbed(), listener, lambda: socket.create_connection(("127.0.0.1", port), PATIENCE_S))
    relayed_plainly(tmp_path / "plain.db", said)
    assert story(database) == story(tmp_path / "plain.db")
    assert_as_if_undisturbed(database)


@pytest.mark.full
def test_connections_from_segments_that_are_deleted(tmp_path: Path) -> None:
    """Three connections begin in a deleted segment: one with data, one without, one that ends meanwhile."""
    database = tmp_path / "game.db"
    block = b"x" * 65_536
    with listening() as listener, ExitStack() as opened:
        port = free_port("tcp")
        mode = f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{port}"
        with running(*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", ready="listening on") as relay:
            silent, to_silent = connected(port, listener, opened)
            busy, to_busy = connected(port, listener, opened)
            leaving, to_leaving = connected(port, listener, opened)
            leaving.sendall(b"bye")
            assert receive(to_leaving, 3) == b"bye"
            for _ in range(300):
                busy.sendall(block)
                assert receive(to_busy, len(block)) == block
            leaving.close()
            to_leaving.close()
            eventually(lambda: bytes_in(database) == 3 + 300 * 65_536)
            eventually(lambda: not list(tmp_path.glob(".*spool*/journal/00000001.journal")))
            os.kill(child_of(relay.pid), signal.SIGKILL)
            silent.sendall(b"here I am")
            assert receive(to_silent, 9) == b"here I am"
            busy.sendall(b"still here")
            assert receive(to_busy, 10) == b"still here"
            opened.close()
    assert rows(
        database,
        "SELECT s.id, sum(c.length), s.close_reason FROM streams s JOIN chunks c ON c.stream_id = s.id"
        " GROUP BY s.id",
    ) == [(1, 9, "closed"), (2, 300 * 65_536 + 10, "closed"), (3, 3, "closed")]


# Who reads along.


@pytest.mark.full
def test_the_view_shows_each_event_once(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    server = Server(expected=2, rounds=3)
    port = free_port("udp")
    mode = f"reverse:udp://127.0.0.1:{server.port}@{port}"
    shown = tmp_path / "shown"
    with shown.open("w") as file:
        relay = subprocess.Popen(
            [*KIEBITZ, "relay", "-m", mode, "-w", str(database)],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert relay.stderr is not None
            assert "listening" in relay.stderr.readline()
            players = [Player(name, ("127.0.0.1", port)) for name in ("alice", "bob")]
            with ThreadPoolExecutor(1) as beside:
                killed = beside.submit(kill_in_round, 2, database, relay.pid)
                play(server, players)
            assert killed.result(0) > 0
            relay.send_signal(signal.SIGINT)
            _, said = relay.communicate(timeout=20)
        finally:
            relay.kill()
            relay.wait()
    assert "is restarted" in said
    assert relay.returncode == 0
    times = [line.split()[0] for line in shown.read_text().splitlines()]
    told = rows(database, "SELECT ts_ns FROM events ORDER BY id")
    (started,) = rows(database, "SELECT started_ns FROM sessions")[0]
    assert times == [f"{(ts - started) / 1e9:.6f}" for (ts,) in told]


@pytest.mark.full
def test_messages_are_followed_through_it(tmp_path: Path) -> None:
    database, listed = tmp_path / "game.db", tmp_path / "listed"
    with relaying(database) as echo:
        round_trips(echo, 0, 10)
        eventually(lambda: len(recorded(database)) == 20)
        with listed.open("w") as file:
            following = subprocess.Popen([*KIEBITZ, "messages", str(database), "-F", "--nl"], stdout=file)
        try:
            eventually(lambda: listed.stat().st_size > 0)
            echo.kill_recorder()
            round_trips(echo, 10, 10)
            echo.wait_for("the recorder has caught up")
            round_trips(echo, 20, 10)
            assert echo.stop() == 0
            assert following.wait(20) == 0
        finally:
            following.kill()
            following.wait()
    ids = [json.loads(line)["id"] for line in listed.read_text().splitlines()]
    assert ids == [*range(1, 61)]
