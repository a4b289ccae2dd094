"""Shared parts of the relays' benchmarks: loads, relays, a check of recordings, tables.

The server, the clients and each relay are processes of their own; Kiebitz's is the command `kiebitz relay`
with a database. A round measures all of them in turn; the ratios are the medians of the rounds' ratios, since
other load on the machine varies. After each measurement the recording must have exactly what was sent.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from processes_and_rows import free_port
from relay_processes import watched_relay
from report import Report, new_table
from rich.table import Table

from kiebitz.dissectors.model import Transport

HOST = "127.0.0.1"
SECONDS = 2.0
"""Duration of each measurement in seconds."""

START_SECONDS = 15.0
BEHIND_SECONDS = 120.0
"""Time limit in seconds for the recorder to catch up after the load."""

LOOK_SECONDS = 0.02
SPAWN = multiprocessing.get_context("spawn")

OURS = "kiebitz"
PEERS = ("direct", OURS, "socat", "mitmdump")
MITMDUMP = Path(sys.executable).with_name("mitmdump")

Passed = dict[tuple[str, bytes], int]
"""Direction and content -> how many."""


class Load(msgspec.Struct, kw_only=True):
    """A load on a relay: what was sent, how fast, and what it cost Kiebitz's relay.

    `rate` is in round trips, or in million bytes, per second; `p50` and `p99` are percentiles of the round
    trips' times in microseconds, and `lost` ones had no answer in time. `messages` is the number of datagrams
    or messages, and `finished` the answer to the kind of relay's query after recording.

    `forwarder` and `recorder` are CPU seconds from the begin of the load to its last row. `behind` is the
    delay in seconds after the load until all of it was in the database; `peak` is the forwarder's peak memory
    (MiB).
    """

    passed: Passed = {}
    finished: int = 1
    messages: int = 1
    rate: float
    p50: float = nan
    p99: float = nan
    lost: int = 0
    forwarder: float = nan
    recorder: float = nan
    behind: float = nan
    peak: float = nan


Rounds = Sequence[Mapping[str, Load]]
"""The loads of each round, by the relay's name."""


class Kind(NamedTuple):
    """A transport's relays and checks: `finished` is a query to the database (see `Load`).

    `socat` returns socat's arguments for the port to listen on and the server's. `recorded` reads the
    recording.
    """

    transport: Transport
    socat: Callable[[int, int], Sequence[str]]
    finished: str
    recorded: Callable[[sqlite3.Connection], Passed]


class Relay(NamedTuple):
    """A relay to measure: one of `PEERS`, with options, and what runs beside Kiebitz's."""

    kind: Kind
    program: str
    options: Sequence[str] = ()
    beside: Callable[[Path], AbstractContextManager[None]] = lambda database: nullcontext()


class Player(ABC):
    """A player that waits for an answer before its next message."""

    def __init__(self, says: bytes) -> None:
        self.says = says
        self.socket: socket.socket
        self.sent = 0
        self.sent_ns = 0
        self.waiting = False

    def send(self, now: int) -> None:
        """Send the message, at `now`."""
        self.sent_ns = now
        self.socket.send(self.says)
        self.sent += 1
        self.waiting = True

    @abstractmethod
    def receive(self) -> None:
        """Receive data; `waiting` is false once the answer is complete."""


def exchange(players: Sequence[Player], patience: float) -> Load:
    """Keep one message of each player on its way for `SECONDS`, and close their sockets."""
    poll = select.epoll()
    by_socket = {player.socket.fileno(): player for player in players}
    for number in by_socket:
        poll.register(number, select.EPOLLIN)
    times: list[int] = []
    lost = 0
    clock = time.perf_counter_ns
    begin = clock()
    end = begin + int(SECONDS * 1e9)
    for player in players:
        player.send(clock())
    while clock() < end:
        ready = poll.poll(patience)
        for number, _ in ready:
            player = by_socket[number]
            player.receive()
            if not player.waiting:
                now = clock()
                times.append(now - player.sent_ns)
                player.send(now)
        if not ready:
            lost += len(players)
            for player in players:
                player.send(clock())
    now = clock()
    # A player whose message was lost would stop, which would lighten the load for the others.
    lost += sum(player.waiting and now - player.sent_ns > patience * 1e9 for player in players)
    # Messages in flight still arrive; otherwise the expected recording would be unknown.
    while any(player.waiting for player in players) and (ready := poll.poll(patience)):
        for number, _ in ready:
            by_socket[number].receive()
    for player in players:
        player.socket.close()
    cuts = statistics.quantiles(times, n=100)
    rate = len(times) / (now - begin) * 1e9
    return Load(rate=rate, p50=cuts[49] / 1e3, p99=cuts[98] / 1e3, lost=lost)


@contextmanager
def process(target: Callable[..., None], *args: object) -> Iterator[None]:
    """Run a function in a process of its own, which SIGTERM ends."""
    running = SPAWN.Process(target=target, args=args)
    running.start()
    try:
        yield
    finally:
        running.terminate()
        running.join()


@contextmanager
def command(*words: str) -> Iterator[None]:
    """Run a program, with all processes that it starts: socat has one for each client."""
    # socat reports each disconnected client on standard error.
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()


def measure(relay: Relay, server: int, put: Callable[[int], Load]) -> Load:
    """`put` a load on the port of a relay in front of `server`."""
    kind = relay.kind
    if relay.program == "direct":
        return put(server)
    port = free_port(kind.transport)
    mode = f"reverse:{kind.transport}://{HOST}:{server}@{HOST}:{port}"
    if relay.program != OURS:
        other = [str(MITMDUMP), "--mode", mode, "-q", *relay.options]
        with command(*(["socat", *kind.socat(port, server)] if relay.program == "socat" else other)):
            return put(port)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "game.db")
        with watched_relay(mode, database, *relay.options) as running, relay.beside(database):
            before = running.processor_seconds()
            load = put(port)
            load.behind = _wait_for(database, kind.finished, load.finished)
            after = running.processor_seconds()
            load.forwarder, load.recorder = after[0] - before[0], after[1] - before[1]
            load.peak = _peak_mib(running.forwarder)
        with closing(sqlite3.connect(database)) as connection:
            recorded = kind.recorded(connection)
            diagnostics = connection.execute("SELECT text FROM diagnostics").fetchall()
    if recorded != load.passed or (diagnostics and not relay.options):
        raise click.ClickException(f"sent was\n{load.passed}\nand recorded\n{recorded}\n{diagnostics}")
    return load


def _wait_for(database: Path, query: str, finished: int) -> float:
    """Wait until all is in the database; how many seconds that took."""
    begin = time.perf_counter()
    with closing(sqlite3.connect(database)) as connection:
        while time.perf_counter() - begin < BEHIND_SECONDS:
            if connection.execute(query).fetchone()[0] == finished:
                return time.perf_counter() - begin
            time.sleep(LOOK_SECONDS)
    raise click.ClickException("the recorder has not recorded all")


def _peak_mib(pid: int) -> float:
    """Return the most memory that a running process has had (proc(5), VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def installed(kind: Kind) -> dict[str, Relay]:
    """Return those of the peers that are installed."""
    there = {"socat": shutil.which("socat"), "mitmdump": MITMDUMP.exists()}
    return {name: Relay(kind, name) for name in PEERS if there.get(name, True)}


def compare(
    relays: Mapping[str, Relay],
    serve: Callable[[int], None],
    play: Callable[[int, int], Load],
    counts: Sequence[int],
    rounds: int,
) -> Iterator[tuple[str, Rounds]]:
    """For each number of clients, measure all relays in each round; yield a title, and what came of it.

    `serve` gets the server's port; `play` gets a port and the number of clients.
    """
    transport = next(iter(relays.values())).kind.transport
    server = free_port(transport)
    with process(serve, server), SPAWN.Pool(1) as pool:
        # Else the first relay may report that no server is there yet.
        pool.apply(play, (server, 1))
        for clients in counts:

            def put(port: int, clients: int = clients) -> Load:
                return pool.apply(play, (port, clients))

            found = [
                {name: measure(relay, server, put) for name, relay in relays.items()} for _ in range(rounds)
            ]
            yield f"{transport.upper()} relay, {clients:,} client{'s' if clients > 1 else ''}", found


NOTHING = Load(rate=nan)
"""The load of a relay that is not there."""


def _figures(loads: Mapping[str, Load], relay: str) -> dict[str, float]:
    """Return the figures of a relay in a round, by heading; nan for unknown ones."""
    one = loads[relay]
    direct, ours, socat, mitmdump = (loads.get(peer, NOTHING) for peer in PEERS)
    added50, added99 = one.p50 - direct.p50, one.p99 - direct.p99
    return {
        "round trips/s": one.rate,
        "MB/s": one.rate,
        "× mitmdump's rate": one.rate / mitmdump.rate,
        "× socat's rate": one.rate / socat.rate,
        "× direct": one.rate / direct.rate,
        "p50 µs": one.p50,
        "p99 µs": one.p99,
        "added p50 µs": added50,
        "added p99 µs": added99,
        "× socat's added p50": added50 / (socat.p50 - direct.p50),
        "× socat's added p99": added99 / (socat.p99 - direct.p99),
        "× p50 without": one.p50 / ours.p50,
        "lost": one.lost,
        "messages": one.messages,
        "forwarder µs each": one.forwarder / one.messages * 1e6,
        "recorder µs each": one.recorder / one.messages * 1e6,
        "behind s": one.behind,
        "recorder behind s": one.behind,
        "at most s": one.behind,
        "peak MiB": one.peak,
    }


UNUSUAL: dict[str, Callable[[list[float]], float]] = {"lost": sum, "at most s": max}
"""Summaries of all rounds that are not their median, by heading."""


def values(rounds: Rounds, relay: str, column: str) -> list[float]:
    """Return what is known of a relay, for each round."""
    found = (_figures(loads, relay)[column] for loads in rounds)
    return [value for value in found if not isnan(value)]


def median(rounds: Rounds, relay: str, column: str) -> float:
    found = values(rounds, relay, column)
    return UNUSUAL.get(column, statistics.median)(found) if found else nan


def cell(rounds: Rounds, relay: str, column: str) -> str:
    value = median(rounds, relay, column)
    digits = 2 if column.startswith("×") or column.endswith((" s", "each")) else column.endswith("µs") * 1
    return "–" if isnan(value) else f"{value:,.{digits}f}"


def table(title: str, rounds: Rounds, columns: str, only: str | None = None) -> Table:
    """Return a table with these columns of all relays, or `only` of one."""
    result = new_table(title, columns, "" if only is None else None)
    for name in rounds[0] if only is None else [only]:
        figures = [cell(rounds, name, column) for column in columns.split("|")]
        result.add_row(*([name] if only is None else []), *figures)
    return result


PROMISES = (
    ("round trips/s", "round trips/s", "mitmdump", "× mitmdump's rate", "≥ 10"),
    ("round trips/s", "round trips/s", "socat", "× socat's rate", "≥ 1"),
    ("added median µs", "added p50 µs", "socat", "× socat's added p50", "≤ 1"),
    ("added 99th percentile µs", "added p99 µs", "socat", "× socat's added p99", "≤ 1"),
)
"""Promised figures: words, figure, peer, ratio to the peer's figure, aim."""


def report_all(report: Report, title: str, rounds: Rounds) -> None:
    """Report rates and times of a relay that records, and the ratios that are promised."""
    speed = "round trips/s|p50 µs|p99 µs|lost|× mitmdump's rate|× socat's rate|× socat's added p50"
    report.show(table(title, rounds, speed))
    costs = "messages|forwarder µs each|recorder µs each|behind s|at most s"
    report.show(table(f"{title}: recording", rounds, costs, OURS))
    for words, column, peer, ratio, aim in PROMISES:
        found = median(rounds, OURS, ratio)
        most = float(aim.split()[1])
        report.promise(
            f"{title}, recording: {words}",
            cell(rounds, OURS, column),
            aim,
            None if isnan(found) else found >= most if aim.startswith("≥") else found <= most,
            f"{peer} {cell(rounds, peer, column)}" if peer in rounds[0] else "–",
            cell(rounds, OURS, ratio),
        )
