"""Relay and recorder are killed together, at any moment: the journal has what they had not recorded yet.

A few kills run with all other tests, two hundred by `make soak`, which prints what each costs.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from command import kiebitz
from load_on_relays import Load, cost, group, kill_under_load, leftover
from mitmproxy_live import listening
from networks import needs_libpcap, needs_rights
from processes_and_rows import KIEBITZ, child_of, free_port, receive, rows, running, until
from recording_relays import connected, recorded, relaying

from kiebitz.dissectors.model import Transport

LAST_S = 0.2
"""Greatest age (seconds) of a forwarded message that a kill may lose."""

LONGEST_S = 3.0
"""Longest time (seconds) from the first forwarded message to a kill."""


@pytest.mark.parametrize(
    ("transport", "kills"),
    [
        pytest.param("udp", 1, id="udp-short", marks=pytest.mark.full),
        pytest.param("tcp", 1, id="tcp-short", marks=pytest.mark.full),
        *(
            pytest.param(transport, 100, id=f"{transport}-long", marks=pytest.mark.soak)
            for transport in ("udp", "tcp")
        ),
    ],
)
def test_a_kill_of_both_loses_what_was_not_flushed_at_most(
    transport: Transport, kills: int, tmp_path: Path
) -> None:
    moments = random.Random(f"{transport}{kills}")
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        # Half of them in the first second.
        after_s = moments.uniform(0, 1) if number % 2 else moments.uniform(0, LONGEST_S)
        load, killed_at = kill_under_load(transport, folder, after_s)
        done = kiebitz("import", str(leftover(folder)))
        assert done.status == 0, done.err
        one = cost(load, killed_at, folder / "game.db")
        print(f"{transport}: kill {number + 1} after {after_s:.3f} s: {one}")
        assert one.oldest_s < LAST_S + one.stall_s
        assert [path.name for path in folder.iterdir()] == ["game.db"]


def has_begun(database: Path) -> bool:
    with suppress(sqlite3.OperationalError):
        return database.exists() and bool(rows(database, "SELECT id FROM sessions"))
    return False


@pytest.mark.full
@needs_rights
@needs_libpcap
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_killed_sniff_loses_what_it_had_not_committed_at_most(transport: Transport, tmp_path: Path) -> None:
    """There is no journal: it reads what the kernel has captured, and commits ten times a second.

    What the kernel has queued is lost with it, so the load is one that it can follow.
    """
    database = tmp_path / "game.db"
    with ExitStack() as ending:
        load = Load(transport, is_direct=True, pause_s=0.005)
        ending.callback(load.close)
        port = f"{transport} port {load.port}"
        sniff = ending.enter_context(group("sniff", "-i", "lo", "-f", port, "-w", str(database), "-q"))
        until(lambda: has_begun(database), "it captures")
        load.begin()
        until(lambda: bool(rows(database, "SELECT id FROM chunks")), "something is recorded")
        time.sleep(0.5)
        killed_at = time.monotonic()
        os.killpg(sniff.pid, signal.SIGKILL)
        sniff.wait()
    one = cost(load, killed_at, database)
    assert one.forwarded > one.lost
    print(f"sniff, {transport}: {one}")
    assert rows(database, "SELECT ended_ns IS NULL FROM sessions") == [(1,)]


STALL_S = 5.0


@pytest.mark.full
def test_the_recorder_is_stopped(tmp_path: Path) -> None:
    database = tmp_path / "game.db"
    with relaying(database) as echo:
        said = [b"before"]
        echo.round_trip(said[0])
        recorder = echo.recorder()
        os.kill(recorder, signal.SIGSTOP)
        end = time.monotonic() + STALL_S
        while time.monotonic() < end:
            # Each has its answer within the patience of a socket, and the recorder is still stopped.
            said.append(b"meanwhile %d" % len(said))
            echo.round_trip(said[-1])
            time.sleep(0.01)
        os.kill(recorder, signal.SIGCONT)
        said.append(b"after")
        echo.round_trip(said[-1])
        assert echo.stop() == 0
    assert "has died" not in echo.said
    assert len(said) > 100
    assert recorded(database) == [data for data in said for _ in range(2)]


@pytest.mark.full
def test_the_relay_is_stopped(tmp_path: Path) -> None:
    """Over TCP nothing is lost, over UDP nothing that the kernel keeps meanwhile."""
    database = tmp_path / "game.db"
    with ExitStack() as opened, listening() as listener, socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        tcp, udp = free_port("tcp"), free_port("udp")
        modes = (
            *("-m", f"reverse:tcp://127.0.0.1:{listener.getsockname()[1]}@{tcp}"),
            *("-m", f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{udp}"),
        )
        with running(*KIEBITZ, "relay", *modes, "-w", str(database), "-q", ready="udp 127") as relay:
            client, accepted = connected(tcp, listener, opened)
            teller = opened.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            teller.connect(("127.0.0.1", udp))
            recorder = child_of(relay.pid)
            relay.send_signal(signal.SIGSTOP)
            block = b"all of it" * 10_000
            client.sendall(block)
            datagrams = [b"datagram %d" % number for number in range(50)]
            for datagram in datagrams:
                teller.send(datagram)
            time.sleep(STALL_S)
            relay.send_signal(signal.SIGCONT)
            assert receive(accepted, len(block)) == block
            assert [server.recv(100) for _ in datagrams] == datagrams
            assert child_of(relay.pid) == recorder
            opened.close()
    assert rows(database, "SELECT ended_ns > started_ns FROM sessions") == [(1,)]
    chunks = rows(
        database,
        "SELECT transport, data FROM chunks c JOIN streams s ON s.id = c.stream_id ORDER BY c.id",
    )
    assert b"".join(data for transport, data in chunks if transport == "tcp") == block
    assert [data for transport, data in chunks if transport == "udp"] == datagrams
