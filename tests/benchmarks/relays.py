"""Shared parts of the relays' benchmarks: peers, Kiebitz's relay, a check of recordings, tables.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import click
import msgspec
from report import Report, new_table
from rich.table import Table
from running import KIEBITZ

HOST = "127.0.0.1"
SECONDS = 2.0
"""Duration of each measurement in seconds."""

START_SECONDS = 15.0
BEHIND_SECONDS = 120.0
"""Time limit in seconds for the recorder to catch up after the load."""

LOOK_SECONDS = 0.02
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
SPAWN = multiprocessing.get_context("spawn")

OURS = "kiebitz"
PEERS = ("direct", OURS, "socat", "mitmdump")

Passed = dict[tuple[str, bytes], int]
"""Direction and content -> how many."""


class Sent(msgspec.Struct, kw_only=True):
    """The sent data of a load, and the kind of relay's expected answer to `finished` after recording."""

    passed: Passed
    finished: int


class Load(Sent, kw_only=True):
    """Round trips per second, their times in microseconds, and how many datagrams or messages that were.

    `lost` round trips had no answer in time.
    """

    rate: float
    p50: float
    p99: float
    lost: int
    messages: int


SentT = TypeVar("SentT", bound=Sent)


class Recording(msgspec.Struct):
    """The cost of recording.

    `forwarder` and `recorder` are CPU seconds from the begin of the load to its last row. `behind` is the
    delay in
    seconds after the load until all of it was in the database; `peak` is the forwarder's peak memory (MiB).
    """

    forwarder: float
    recorder: float
    behind: float
    peak: float


class Measured(msgspec.Struct, Generic[SentT]):
    load: SentT
    recording: Recording | None = None


class Kind(msgspec.Struct, frozen=True):
    """A transport's relays and checks: `finished` is a query to the database (see `Sent`).

    `socat` returns socat's arguments for the port to listen on and the server's. `recorded` reads the
    recording.
    """

    transport: str
    socat: Callable[[int, int], Sequence[str]]
    finished: str
    recorded: Callable[[sqlite3.Connection], Passed]


class Client(Protocol):
    """A player that waits for an answer before its next message."""

    socket: socket.socket
    sent_ns: int
    waiting: bool

    def send(self, now: int) -> None:
        """Send a message, at `now`."""

    def receive(self) -> None:
        """Receive data; `waiting` is false once the answer is complete."""


def free_port(transport: str) -> int:
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def exchange(clients: Sequence[Client], seconds: float, patience: float) -> tuple[list[int], int, float]:
    """Keep one message of each client on its way for `seconds`, and close their sockets.

    The answer: each round trip's time in ns, how many had none for `patience` seconds, and how long it took.
    """
    poll = select.epoll()
    by_socket = {client.socket.fileno(): client for client in clients}
    for number in by_socket:
        poll.register(number, select.EPOLLIN)
    times: list[int] = []
    lost = 0
    clock = time.perf_counter_ns
    begin = clock()
    end = begin + int(seconds * 1e9)
    for client in clients:
        client.send(clock())
    while clock() < end:
        ready = poll.poll(patience)
        for number, _ in ready:
            client = by_socket[number]
            client.receive()
            if not client.waiting:
                now = clock()
                times.append(now - client.sent_ns)
                client.send(now)
        if not ready:
            lost += len(clients)
            for client in clients:
                client.send(clock())
    now = clock()
    took = (now - begin) / 1e9
    # A client whose message was lost would stop, which would lighten the load for the others.
    lost += sum(client.waiting and now - client.sent_ns > patience * 1e9 for client in clients)
    # Messages in flight still arrive; otherwise the expected recording would be unknown.
    while any(client.waiting for client in clients) and (ready := poll.poll(patience)):
        for number, _ in ready:
            by_socket[number].receive()
    for client in clients:
        client.socket.close()
    return times, lost, took


def summed_up(
    times: list[int], lost: int, seconds: float, *, passed: Passed, messages: int, finished: int
) -> Load:
    """Return the result of `exchange` together with what was sent."""
    cuts = statistics.quantiles(times, n=100)
    return Load(
        rate=len(times) / seconds,
        p50=cuts[49] / 1e3,
        p99=cuts[98] / 1e3,
        lost=lost,
        messages=messages,
        passed=passed,
        finished=finished,
    )


@contextmanager
def process(target: Any, *args: object) -> Iterator[None]:
    """Yield a function in a process of its own, which SIGTERM ends."""
    running = SPAWN.Process(target=target, args=args)
    running.start()
    try:
        yield
    finally:
        running.terminate()
        running.join()


@contextmanager
def command(*words: str) -> Iterator[None]:
    """Yield a program, with all processes that it starts: socat has one for each client."""
    # socat reports each disconnected client on standard error.
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()


@contextmanager
def other_relay(name: str, kind: Kind, server: int, *options: str) -> Iterator[int]:
    """Yield a way to the server that is not ours; the answer is its port. mitmdump takes `options`."""
    if name == "direct":
        yield server
        return
    port = free_port(kind.transport)
    if name == "socat":
        with command("socat", *kind.socat(port, server)):
            yield port
    else:
        mode = f"reverse:{kind.transport}://{HOST}:{server}@{HOST}:{port}"
        with command(str(mitmdump()), "--mode", mode, "-q", *options):
            yield port


def mitmdump() -> Path:
    return Path(sys.executable).with_name("mitmdump")


def installed(name: str) -> bool:
    if name == "mitmdump":
        return mitmdump().exists()
    return name != "socat" or shutil.which("socat") is not None


class OurRelay:
    """The command `kiebitz relay`, recording into a new database in `folder`.

    With `options`, its final output is not checked.
    """

    def __init__(self, folder: Path, kind: Kind, server: int, *options: str) -> None:
        self._kind = kind
        self._may_say = bool(options)
        self.database = folder / "game.db"
        mode = f"reverse:{kind.transport}://{HOST}:{server}@{HOST}:0"
        self._running = subprocess.Popen(
            [*KIEBITZ, "relay", "-m", mode, "-w", str(self.database), "-q", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._running.stderr is not None
        self._stderr = self._running.stderr
        first = self._stderr.readline()
        if not first.startswith("listening"):
            raise RuntimeError(f"kiebitz relay did not start: {first}")
        self.port = int(first.partition(",")[0].rpartition(":")[2])
        self._recorder = _recorder_of(self._running.pid)

    def __enter__(self) -> OurRelay:
        return self

    def __exit__(self, *_: object) -> None:
        # Only where a measurement broke off; the recorder then ends by itself.
        if self._running.poll() is None:
            self._running.kill()
            self._running.wait()
        self._stderr.close()

    def measure(self, put: Callable[[int], SentT]) -> Measured[SentT]:
        """`put` a load on its port, wait until all is recorded, stop, and see that it is what was sent."""
        forwarder, recorder = _cpu_seconds(self._running.pid), _cpu_seconds(self._recorder)
        sent = put(self.port)
        behind = self._wait_for(sent.finished)
        cost = Recording(
            _cpu_seconds(self._running.pid) - forwarder,
            _cpu_seconds(self._recorder) - recorder,
            behind,
            _peak_mib(self._running.pid),
        )
        self.stop()
        with closing(sqlite3.connect(self.database)) as connection:
            recorded = self._kind.recorded(connection)
        if recorded != sent.passed:
            raise click.ClickException(f"sent was\n{sent.passed}\nand recorded\n{recorded}")
        return Measured(sent, cost)

    def stop(self) -> None:
        """End it as Ctrl-C does. Raises RuntimeError unless it ends well and has nothing to complain of."""
        self._running.send_signal(signal.SIGINT)
        said = self._stderr.read()
        is_clean = self._may_say or "no errors, no warnings, no notes" in said
        # The recorder's delay is measured here; a report of it is accepted.
        complaints = said.replace("kiebitz: the recorder ", "")
        if self._running.wait() != 0 or "kiebitz:" in complaints or not is_clean:
            raise RuntimeError(f"kiebitz relay said: {said}")

    def _wait_for(self, finished: int) -> float:
        """Wait until all is in the database; how many seconds that took."""
        begin = time.perf_counter()
        with closing(sqlite3.connect(self.database)) as connection:
            while time.perf_counter() - begin < BEHIND_SECONDS:
                if connection.execute(self._kind.finished).fetchone()[0] == finished:
                    return time.perf_counter() - begin
                time.sleep(LOOK_SECONDS)
        raise click.ClickException("the recorder has not recorded all")


def _recorder_of(pid: int) -> int:
    """Return the child of a relay that records: the other one only tidies up after it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(
        int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    )


def _cpu_seconds(pid: int) -> float:
    """User and system time of a running process (proc(5), /proc/pid/stat, fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _peak_mib(pid: int) -> float:
    """Return the most memory that a running process has had (proc(5), VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def measure(name: str, kind: Kind, server: int, put: Callable[[int], SentT]) -> Measured[SentT]:
    """`put` a load on the relay `name` in front of `server`."""
    if name == OURS:
        with tempfile.TemporaryDirectory() as folder, OurRelay(Path(folder), kind, server) as relay:
            return relay.measure(put)
    with other_relay(name, kind, server) as port:
        return Measured(put(port))


def median_of(rounds: Sequence[dict[str, Measured[Load]]], name: str, of: str) -> float:
    """Return the median of one figure of the loads on `name`, such as "p50"."""
    return float(statistics.median(getattr(one[name].load, of) for one in rounds))


def median(values: list[float]) -> str:
    return f"{statistics.median(values):,.2f}" if values else "–"


def compare(
    report: Report,
    kind: Kind,
    server: int,
    names: Sequence[str],
    rounds: int,
    counts: Sequence[int],
    put: Callable[..., Load],
) -> None:
    """For each number of clients, measure all of `names` in each round, and report what came of it.

    `put` gets a port and, as `clients`, their number.
    """
    for clients in counts:
        measured = [
            {name: measure(name, kind, server, partial(put, clients=clients)) for name in names}
            for _ in range(rounds)
        ]
        loads = [{name: one.load for name, one in found.items()} for found in measured]
        title = f"{kind.transport.upper()} relay, {clients:,} client{'s' if clients > 1 else ''}"
        report.show(speed(title, loads))
        if OURS in names:
            report.show(recording(title, [found[OURS] for found in measured]))
            promises(report, title, loads)


MIN_RATES = {"mitmdump": 10, "socat": 1}
"""Peer -> promised ratio to its round trips per second."""

PERCENTILES = {"p50": "median", "p99": "99th percentile"}


def faster(name: str, peer: str, rounds: list[dict[str, Load]]) -> list[float]:
    """Return the ratio to a peer's rate, for each round in which it was measured."""
    return [loads[name].rate / loads[peer].rate for loads in rounds if peer in loads]


def added(name: str, of: str, loads: dict[str, Load]) -> float:
    """Return the time (µs) that a relay adds to the direct round trip's percentile `of`."""
    return float(getattr(loads[name], of) - getattr(loads["direct"], of))


def slower(name: str, of: str, rounds: list[dict[str, Load]]) -> list[float]:
    """Return the ratio to the time that socat adds to the percentile `of`."""
    return [
        added(name, of, loads) / added("socat", of, loads)
        for loads in rounds
        if "socat" in loads and "direct" in loads
    ]


def promises(report: Report, title: str, rounds: list[dict[str, Load]]) -> None:
    """The ratios that are promised: rates, and what is added to the percentiles of round trips."""
    rates = {name: statistics.median(loads[name].rate for loads in rounds) for name in rounds[0]}
    for peer, least in MIN_RATES.items():
        ratios = faster(OURS, peer, rounds)
        report.promise(
            f"{title}, recording: round trips/s",
            f"{rates[OURS]:,.0f}",
            f"{peer} {rates[peer]:,.0f}" if ratios else "–",
            median(ratios),
            f"≥ {least}",
            statistics.median(ratios) >= least if ratios else None,
        )
    for of, words in PERCENTILES.items():
        ratios = slower(OURS, of, rounds)
        ours, socats = (
            (statistics.median(added(name, of, loads) for loads in rounds) for name in (OURS, "socat"))
            if ratios
            else (0.0, 0.0)
        )
        report.promise(
            f"{title}, recording: added {words} µs",
            f"{ours:,.1f}" if ratios else "–",
            f"socat {socats:,.1f}" if ratios else "–",
            median(ratios),
            "≤ 1",
            statistics.median(ratios) <= 1 if ratios else None,
        )


def speed(title: str, rounds: list[dict[str, Load]]) -> Table:
    """Return the medians, and their ratios to the peers'."""
    result = new_table(
        title, "round trips/s|p50 µs|p99 µs|lost|× mitmdump's rate|× socat's rate|× socat's added p50"
    )
    for name in rounds[0]:
        mine = [loads[name] for loads in rounds]
        result.add_row(
            name,
            f"{statistics.median(load.rate for load in mine):,.0f}",
            f"{statistics.median(load.p50 for load in mine):,.1f}",
            f"{statistics.median(load.p99 for load in mine):,.1f}",
            str(sum(load.lost for load in mine)),
            median(faster(name, "mitmdump", rounds)),
            median(faster(name, "socat", rounds)),
            median(slower(name, "p50", rounds)),
        )
    return result


def recording(title: str, rounds: list[Measured[Load]]) -> Table:
    """Return a table of the CPU time of the relay's two processes, and the recorder's delay."""
    result = new_table(
        f"{title}: recording", "messages|forwarder µs each|recorder µs each|behind s|at most s", None
    )
    numbers = [measured.load.messages for measured in rounds]
    costs = [measured.recording for measured in rounds if measured.recording is not None]
    result.add_row(
        f"{statistics.median(numbers):,.0f}",
        median([cost.forwarder / number * 1e6 for cost, number in zip(costs, numbers, strict=True)]),
        median([cost.recorder / number * 1e6 for cost, number in zip(costs, numbers, strict=True)]),
        median([cost.behind for cost in costs]),
        f"{max(cost.behind for cost in costs):.2f}",
    )
    return result


def present() -> list[str]:
    """Return those of the relays that are installed."""
    return [name for name in PEERS if installed(name)]
