from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from mitmproxy_live import listening
from processes_and_rows import KIEBITZ, child_of, free_port, receive, rows, running
from recording_relays import connected, recorded, relaying

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
