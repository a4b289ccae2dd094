"""Soak test: ten million messages on one connection, 100,000 clients that come and go.

The short runs are part of all tests, the long ones of `make soak`; only their numbers differ. Each ends with
what was measured. No test fails by a duration.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
from processes_and_rows import PATIENCE_S, free_port, receive, rows, until
from relay_processes import HAS_PROC, Size, Watched, watched_relay
from strength import a_few
from udp_relays import eventually, relaying

from kiebitz.dissectors.model import End, Transport
from kiebitz.proxy.relay import tcp as relay_tcp
from kiebitz.proxy.relay import udp as relay_udp
from kiebitz.proxy.relay.modes import Reverse
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.read.seek import END, Position, tables_at
from kiebitz.storage.read.timeline import Timeline, sessions

pytestmark = HAS_PROC

STEPS = 20
WARM_AFTER = 4

MAY_GROW_KIB = 8 << 10

LATE_S = 300.0


def counts(short: int, long: int) -> pytest.MarkDecorator:
    """Return the test's `count`: one that takes seconds, and one that takes minutes."""
    return pytest.mark.parametrize(
        "count", [pytest.param(short, id="short"), pytest.param(long, id="long", marks=pytest.mark.soak)]
    )


class Sample(NamedTuple):
    """Messages so far, the time that they took, sizes in KiB, and the CPU seconds of both processes."""

    messages: int
    seconds: float
    forwarder: Size
    recorder: Size
    processor: tuple[float, float]


def soak(relay: Watched, step: Callable[[], int]) -> list[Sample]:
    """Run all steps, each of which returns the number of messages so far; measure before and after each.

    Once all is recorded, only the journal's current segment remains.
    """
    samples = [_sample(relay, 0, 0.0)]
    begun = time.monotonic()
    for _ in range(STEPS):
        sent = step()
        until(partial(_is_recorded, relay, sent), f"{sent} messages are recorded", LATE_S)
        samples.append(_sample(relay, sent, time.monotonic() - begun))
    return samples


def _is_recorded(relay: Watched, sent: int) -> bool:
    with closing(sqlite3.connect(relay.database)) as connection:
        (last,) = connection.execute("SELECT max(id) FROM messages").fetchone()
    return last == sent and relay.segments() == 1


def _sample(relay: Watched, messages: int, seconds: float) -> Sample:
    return Sample(messages, seconds, *relay.sizes(), relay.processor_seconds())


def assert_flat(samples: list[Sample]) -> None:
    """Neither process has grown since it had warmed up, nor kept a file open."""
    warm, last = samples[WARM_AFTER], samples[-1]
    assert last.forwarder.memory <= warm.forwarder.memory + MAY_GROW_KIB
    assert last.recorder.memory <= warm.recorder.memory + MAY_GROW_KIB
    assert last.recorder.files <= max(sample.recorder.files for sample in samples[: WARM_AFTER + 1])


def report(title: str, samples: list[Sample], database: Path, name: str) -> None:
    """Print what was measured, and how long some answers from the database take."""
    print(f"\n{title}", *samples[:: STEPS // 5], sep="\n")
    with closing(open_existing(str(database))) as connection:
        timeline = Timeline(connection, sessions(connection)[-1])
        length_ns = (timeline.session.ended_ns or 0) - timeline.started_ns
        answers: dict[str, Callable[[], int]] = {
            "state in the middle": lambda: len(tables_at(timeline, Position(elapsed_ns=length_ns // 2))),
            "state at the end": lambda: len(tables_at(timeline, END)),
            f"messages named {name}": lambda: connection.execute(
                "SELECT count(*) FROM messages WHERE name = ?", (name,)
            ).fetchone()[0],
        }
        for question, ask in answers.items():
            begun = time.perf_counter()
            found = ask()
            print(f"{question}: {found:,} in {(time.perf_counter() - begun) * 1e3:,.1f} ms")
    print(f"database: {database.stat().st_size / 1e6:,.0f} MB")


def recorded(database: Path) -> tuple[int, ...]:
    counts = (f"(SELECT count(*) FROM {table})" for table in ("streams", "chunks", "messages"))
    (found,) = rows(database, f"SELECT {', '.join(counts)}")
    return tuple(found)


def serving(transport: Transport) -> socket.socket:
    """Return a server's socket."""
    if transport == "tcp":
        server = socket.create_server(("127.0.0.1", 0))
    else:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
    server.settimeout(PATIENCE_S)
    return server


Turn = tuple[list[bytes], bytes]
"""A server's messages to a player, sent at once, and the player's answer."""


def maexchen_rounds() -> Iterator[Turn]:
    """Yield rounds of Mäxchen from alice's perspective, each with its own tokens and dice."""
    scores = {"alice": 0, "bob": 0}
    over: list[bytes] = []
    number = 0
    while True:
        number += 1
        token = f"{number:032x}"
        truth, claim = f"{3 + number % 4},2", f"{3 + number // 4 % 4},2"
        yield [*over, f"ROUND STARTING;{token}".encode()], f"JOIN;{token}".encode()
        started = [f"ROUND STARTED;{number};alice,bob", f"YOUR TURN;{token}1"]
        yield [line.encode() for line in started], f"ROLL;{token}1".encode()
        rolled = ["PLAYER ROLLS;alice", f"ROLLED;3,1;{token}2"]
        yield [line.encode() for line in rolled], f"ANNOUNCE;3,1;{token}2".encode()
        bob = ["ANNOUNCED;alice;3,1", "PLAYER ROLLS;bob", f"ANNOUNCED;bob;{claim}", f"YOUR TURN;{token}3"]
        yield [line.encode() for line in bob], f"SEE;{token}3".encode()
        loser, reason = ("alice", "SEE_FAILED") if truth >= claim else ("bob", "CAUGHT_BLUFFING")
        for name in scores:
            scores[name] += 1
        scores[loser] -= 1
        told = ",".join(f"{name}:{points}" for name, points in scores.items())
        seen = ["PLAYER WANTS TO SEE;alice", f"ACTUAL DICE;{truth}", f"PLAYER LOST;{loser};{reason}"]
        over = [line.encode() for line in (*seen, f"SCORE;{told}")]


class MaexchenTalk:
    """Alice, a server that plays with her by `maexchen_rounds`, and the relay between them at `port`."""

    def __init__(self, server: socket.socket, port: int) -> None:
        self._server = server
        self._player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._player.settimeout(PATIENCE_S)
        self._player.connect(("127.0.0.1", port))
        self._player.send(b"REGISTER;alice")
        data, self._address = server.recvfrom(1000)
        assert data == b"REGISTER;alice"
        server.sendto(b"REGISTERED", self._address)
        assert self._player.recv(1000) == b"REGISTERED"
        self.messages = 2
        self._turns = maexchen_rounds()

    def go_on(self, messages: int) -> int:
        """Play until at least this many more messages were sent; return their total number."""
        end = self.messages + messages
        player, server = self._player, self._server
        while self.messages < end:
            told, answer = next(self._turns)
            for data in told:
                server.sendto(data, self._address)
            for data in told:
                assert player.recv(1000) == data
            player.send(answer)
            assert server.recv(1000) == answer
            self.messages += len(told) + 1
        return self.messages

    def close(self) -> None:
        self._player.close()


def udp_client(server: socket.socket, port: int, number: int) -> int:
    """Register a player that then falls silent; return the number of messages."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as player:
        player.settimeout(PATIENCE_S)
        # A new port each time: a reused one would continue a conversation.
        player.bind((str(IPv4Address("127.1.0.0") + number), 0))
        player.connect(("127.0.0.1", port))
        request = b"REGISTER;player-%d" % number
        player.send(request)
        data, address = server.recvfrom(1000)
        assert data == request
        server.sendto(b"REGISTERED", address)
        assert player.recv(1000) == b"REGISTERED"
    return 2


def tcp_client(listener: socket.socket, port: int, number: int) -> int:
    """Log in to and out of an Okey server; return the number of messages."""
    name = b"player-%d" % number
    spoken = ((b"LOGI %b" % name, b"+LOGI %b" % name), (b"PING", b"+PING"), (b"LOGO", b"+LOGO"))
    with ExitStack() as ending:
        near = ending.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        far, _ = listener.accept()
        ending.enter_context(far)
        far.settimeout(PATIENCE_S)
        for request, answer in spoken:
            for sender, receiver, line in ((near, far, request), (far, near, answer)):
                sender.sendall(line + b"\r\n")
                assert receive(receiver, len(line) + 2) == line + b"\r\n"
        far.close()
        assert near.recv(1) == b""
    return 2 * len(spoken)


@pytest.mark.full
@counts(10_000, 10_000_000)
def test_messages_without_end_on_one_connection(tmp_path: Path, count: int) -> None:
    database = tmp_path / "game.db"
    with closing(serving("udp")) as server:
        port = free_port("udp")
        mode = f"reverse:udp://127.0.0.1:{server.getsockname()[1]}@{port}"
        with watched_relay(mode, database) as relay, closing(MaexchenTalk(server, port)) as talk:
            samples = soak(relay, partial(talk.go_on, count // STEPS))
    report("Mäxchen, one connection", samples, database, "ROLLED")
    assert recorded(database) == (1, talk.messages, talk.messages)
    assert talk.messages >= count
    assert_flat(samples)
    assert samples[-1].forwarder.files == samples[WARM_AFTER].forwarder.files
    assert rows(database, "SELECT text FROM diagnostics WHERE severity != 'note'") == []
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]


@pytest.mark.full
@counts(500, 100_000)
@pytest.mark.parametrize("transport", a_few(["tcp", "udp"], ["udp"]))
def test_clients_without_end(tmp_path: Path, transport: Transport, count: int) -> None:
    database = tmp_path / "game.db"
    with closing(serving(transport)) as server:
        port = free_port(transport)
        client = tcp_client if transport == "tcp" else udp_client
        numbers = iter(range(count))
        sent = 0

        def step() -> int:
            nonlocal sent
            for number in islice(numbers, count // STEPS):
                sent += client(server, port, number)
                if transport == "udp" and number % 100 == 99:
                    # All who came in the last second are there at once: always about as many.
                    time.sleep(0.1)
            return sent

        mode = f"reverse:{transport}://127.0.0.1:{server.getsockname()[1]}@{port}"
        with watched_relay(mode, database, "--idle", "1") as relay:
            samples = soak(relay, step)
            # Over UDP the silent are forgotten after a second; libuv keeps a file from the first stream on.
            files = samples[0].forwarder.files + (transport == "tcp")
            until(lambda: relay.sizes()[0].files == files, "all sockets are closed")
    name = "LOGI" if transport == "tcp" else "REGISTER"
    report(f"{count:,} clients over {transport}", samples, database, name)
    streams, _, messages = recorded(database)
    assert (streams, messages) == (count, sent)
    assert_flat(samples)
    assert [path.name for path in tmp_path.iterdir()] == ["game.db"]


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def relays_objects() -> int:
    modules = (relay_tcp.__name__, relay_udp.__name__)
    return sum(type(found).__module__ in modules for found in gc.get_objects())


@pytest.mark.full
@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("transport", a_few(["tcp", "udp"], ["tcp"]))
def test_all_that_a_client_took_is_given_back(tmp_path: Path, transport: Transport) -> None:
    """As above, but in this process, where tasks and objects can be counted."""
    client = tcp_client if transport == "tcp" else udp_client
    with closing(serving(transport)) as server:
        mode = Reverse(transport, "127.0.0.1", server.getsockname()[1], "127.0.0.1", 0)
        with relaying(tmp_path, mode, idle_seconds=0.2) as relay:
            port = relay.address()[1]
            idle = relays_objects()
            client(server, port, 0)
            eventually(lambda: relays_objects() == idle)
            files = len(os.listdir("/proc/self/fd"))
            for number in range(1, 1000):
                client(server, port, number)
            eventually(lambda: relays_objects() == idle)
            assert len(asyncio.all_tasks(relay.loop)) == 1
            assert len(os.listdir("/proc/self/fd")) == files
    reason = "closed" if transport == "tcp" else "idle"
    assert [item.reason for item in relay.items if isinstance(item, End)] == [reason] * 1000
