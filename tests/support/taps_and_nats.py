"""Test bench for taps: a real nats-server that can be killed, a network that can be cut, taps."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeVar

import packet_reordering
import pytest
import tcp_forwarder
from command import CAPTURES, kiebitz
from packet_reordering import Packets, as_pcap
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, until
from strength import times

from kiebitz.proxy.taps.jetstream import NatsConnection, ensure_stream
from kiebitz.proxy.taps.nats_url import NatsUrl
from kiebitz.proxy.taps.wire_format import TapError, decode

T = TypeVar("T")

SUBJECT = "class"

GAMES = ("maexchen-head-tiny.pcap", "okey-head-tiny.pcap.gz", "cgml-tiny.pcap.gz")
"""Captures of three servers, each recorded by one tap."""


NEEDS_NATS = pytest.mark.skipif(
    shutil.which("nats-server") is None or find_spec("nats") is None,
    reason="nats-server or nats-py is not installed",
)


def at(port: int, is_tls: bool = False) -> NatsUrl:
    return NatsUrl("127.0.0.1", port, SUBJECT, is_tls)


def refusal(place: NatsUrl, credentials: Path | None = None) -> str | None:
    """Return the reason why a server cannot be used, None if it can."""

    async def reach() -> None:
        link = NatsConnection(place, credentials)
        try:
            await ensure_stream(await link.open(), place)
        except Exception as error:
            raise link.failure(error) from error
        finally:
            await link.close()

    try:
        asyncio.run(asyncio.wait_for(reach(), PATIENCE_S))
    except TapError as error:
        return str(error)
    return None


def seed(path: Path) -> tuple[Path, str]:
    """Write the seed of a new user; return the file and the public key."""
    nkeys = pytest.importorskip("nkeys", reason="nkeys is not installed")
    path.write_bytes(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
    return path, nkeys.from_seed(path.read_bytes()).public_key.decode()


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Server:
    """A nats-server with JetStream, on a port of its own; what it keeps outlives it."""

    def __init__(self, folder: Path, extra: str, has_jetstream: bool) -> None:
        self.port = free_port("tcp")
        self._config = folder / "nats.conf"
        store = f'jetstream {{ store_dir: "{folder / "store"}", max_file: 1GB }}\n' if has_jetstream else ""
        self._config.write_text(f'listen: "127.0.0.1:{self.port}"\n{store}{extra}')
        self._log = folder / "nats.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["nats-server", "-c", str(self._config)], stdout=log, stderr=log, start_new_session=True
            )
        until(lambda: listens(self.port), "nats-server listens")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None


@contextmanager
def server(folder: Path, extra: str = "", has_jetstream: bool = True) -> Iterator[Server]:
    """Yield a server for a block."""
    one = Server(folder, extra, has_jetstream)
    one.start()
    try:
        yield one
    finally:
        one.kill()


class Network:
    """A connection to a local port that can be cut without notice to either side."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = free_port("tcp")
        self._start()

    def cut(self) -> None:
        self._forwarder.send_signal(signal.SIGSTOP)

    def mend(self) -> None:
        """Restore the network; data in flight and connections are lost."""
        self.close()
        self._start()

    def close(self) -> None:
        self._forwarder.kill()
        self._forwarder.wait()

    def _start(self) -> None:
        command = [sys.executable, tcp_forwarder.__file__, str(self.port), str(self._to)]
        self._forwarder = subprocess.Popen(command)
        until(lambda: listens(self.port), "the network is there")


@contextmanager
def network(port: int) -> Iterator[Network]:
    """Yield a way that is whole at first."""
    one = Network(port)
    try:
        yield one
    finally:
        one.close()


def packets_of(name: str) -> Packets:
    """Return the packets of a recorded capture."""
    return packet_reordering.packets_of(CAPTURES / name)


class Program:
    """A `kiebitz` command that runs alongside the test; its output goes into a file."""

    def __init__(
        self, log: Path, *arguments: str, stdin: int | None = None, environment: Mapping[str, str] = {}
    ) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [*KIEBITZ, *arguments],
                stdin=stdin if stdin is not None else subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def until_says(self, words: str) -> None:
        until(lambda: words in self.said or self.process.poll() is not None, f"it says: {words}")
        assert words in self.said, self.said

    def end(self) -> int:
        """Ctrl-C, and its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill all its processes at once."""
        with suppress(ProcessLookupError):
            subprocess.run(["pkill", "-9", "-s", str(self.process.pid)], check=False)
        self.process.kill()
        self.process.wait(PATIENCE_S)
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()


class Tap(Program):
    """`kiebitz sniff -i - --publish`, to which packets are given."""

    def __init__(self, folder: Path, name: str, place: str, *more: str) -> None:
        self.database = folder / f"{name}.db"
        super().__init__(
            folder / f"{name}.log",
            *("sniff", "-i", "-", "-q", "-w", str(self.database), "--publish", place, "--tap", name),
            *more,
            stdin=subprocess.PIPE,
        )
        self._has_begun = False

    def give(self, packets: Packets) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(as_pcap(packets, not self._has_begun))
        self.process.stdin.flush()
        self._has_begun = True

    def finish(self) -> None:
        """Close the input and check that the tap exits successfully."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0, self.said


def collect(folder: Path, port: int, database: Path, *more: str, name: str = "collector") -> Program:
    """`kiebitz collect`, once it has begun."""
    arguments = ("collect", f"nats://127.0.0.1:{port}/{SUBJECT}", "-q", "-w", str(database), *more)
    program = Program(folder / f"{name}.log", *arguments)
    program.until_says("collecting from")
    return program


def place_at(port: int) -> str:
    return f"nats://127.0.0.1:{port}/{SUBJECT}"


def count(database: Path, table: str) -> int:
    """Return a table's number of rows, also while it is being written."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            return found
    except sqlite3.OperationalError:
        return 0


def until_recorded(database: Path, chunks: int) -> None:
    """Wait until this many rows of bytes exist, and a moment more, which would show duplicates."""
    until(lambda: count(database, "chunks") >= chunks, f"{chunks} pieces of bytes are recorded")
    time.sleep(0.1)


def runs_heard(port: int) -> set[str]:
    """Return the runs of which something was published."""

    async def look(jetstream: Any) -> set[str]:
        found = set()
        subscription = await jetstream.subscribe(f"{SUBJECT}.*", ordered_consumer=True)
        behind = 1
        while behind:
            message = await subscription.next_msg(PATIENCE_S)
            found.add(decode(message.data).run)
            behind = message.metadata.num_pending
        return found

    return asyncio.run(_with_jetstream(port, look))


def publish(port: int, messages: Iterable[tuple[str, bytes]], **options: Any) -> None:
    """Publish messages by subject, as any admitted client may."""

    async def send(jetstream: Any) -> None:
        for subject, data in messages:
            await jetstream.publish(subject, data)

    asyncio.run(_with_jetstream(port, send, **options))


async def _with_jetstream(port: int, use: Callable[[Any], Awaitable[T]], **options: Any) -> T:
    import nats

    client = await nats.connect(f"nats://127.0.0.1:{port}", **options)
    try:
        return await use(client.jetstream())
    finally:
        await client.close()


class Lab:
    """Three taps, each of which records one server's game, and a collector, at a server behind a network."""

    def __init__(self, folder: Path, nats: Server, way: Network) -> None:
        self.folder = folder
        self.nats = nats
        self.way = way
        self.database = folder / "class.db"
        games = GAMES[: times(len(GAMES), quick=2)]
        self.taps = [Tap(folder, f"tap-{number}", place_at(way.port)) for number in range(len(games))]
        self.packets = [packets_of(game) for game in games]
        self.collector = collect(folder, way.port, self.database)

    def give(self, part: int, of: int) -> None:
        """Pass the next part of its game to each tap."""
        for tap, packets in zip(self.taps, self.packets, strict=True):
            size = -(-len(packets) // of)
            tap.give(packets[part * size : (part + 1) * size])

    def in_one_place(self) -> Path:
        """Return the database of one program that has recorded all three."""
        capture = self.folder / "all.pcap"
        capture.write_bytes(as_pcap(sorted(packet for packets in self.packets for packet in packets)))
        database = self.folder / "one.db"
        assert kiebitz("import", str(capture), "-w", str(database)).status == 0
        return database

    def is_whole(self) -> None:
        """End all, and see that what was collected is what one program would have recorded."""
        one = self.in_one_place()
        for tap in self.taps:
            tap.finish()
        until_recorded(self.database, count(one, "chunks"))
        assert self.collector.end() == 0, self.collector.said
        self.equals(self.database, one)

    def equals(self, database: Path, one: Path) -> None:
        diff = kiebitz("diff", str(one), str(database))
        assert diff.status == 0, diff.out
        for table in ("streams", "chunks", "messages", "games", "events"):
            assert count(database, table) == count(one, table), table
        bytes_of = "SELECT s.transport, s.server LIKE '%:9000', direction, sum(length) FROM chunks"
        query = f"{bytes_of} JOIN streams AS s ON s.id = stream_id GROUP BY 1, 2, 3"
        assert rows(database, query) == rows(one, query)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with server(tmp_path) as nats, network(nats.port) as way:
        one = Lab(tmp_path, nats, way)
        try:
            yield one
        finally:
            for program in (*one.taps, one.collector):
                program.kill()
