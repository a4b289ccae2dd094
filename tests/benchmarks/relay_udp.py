"""How fast the UDP relay is while it records, beside a direct connection, socat and mitmdump, all in one run.

    python tests/benchmarks/relay_udp.py

Every client registers at a Mäxchen server, waits for the answer, registers again. The server, the clients and
each relay are processes of their own; ours is the command `kiebitz relay` with a database. A round measures
all of them, one after another; the ratios are the medians of the rounds' ratios, since the machine's other
load comes and goes. After each of its measurements ours must have recorded exactly what was sent.
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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from running import KIEBITZ

HOST = "127.0.0.1"
START_SECONDS = 15.0
LOST_SECONDS = 0.5
BEHIND_SECONDS = 120.0
"""How long the recorder may need after the load before the benchmark gives up."""

LOOK_SECONDS = 0.02
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
SPAWN = multiprocessing.get_context("spawn")

ANSWER = b"REGISTERED"
OURS = "kiebitz"
PEERS = ("direct", OURS, "socat", "mitmdump")
CLIENTS = (1, 32)

Datagrams = dict[tuple[str, bytes], int]
"""Direction and content -> how many."""


class Load(msgspec.Struct):
    """Round trips per second and their times in microseconds; `lost` ones had no answer in `LOST_SECONDS`."""

    rate: float
    p50: float
    p99: float
    lost: int
    seconds: float
    passed: Datagrams


class Recording(msgspec.Struct):
    """What recording cost. `forwarder` and `recorder` are CPU seconds from the load's begin to its last row.

    `behind` is how many seconds after the load the last datagram was in the database.
    """

    forwarder: float
    recorder: float
    behind: float


class Measured(msgspec.Struct):
    load: Load
    recording: Recording | None = None


def udp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def free_port() -> int:
    with udp_socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def serve(port: int) -> None:
    """A server that takes in everybody, however often."""
    with udp_socket() as sock:
        sock.bind((HOST, port))
        while True:
            _, client = sock.recvfrom(65_535)
            sock.sendto(ANSWER, client)


class Client:
    """A player: his socket, what he says, and when he said it last."""

    def __init__(self, number: int, port: int) -> None:
        self.says = b"REGISTER;player-number-%03d" % number
        self.sent = 0
        self.received = 0
        self.sent_ns = 0
        self.waiting = False
        self.socket = self._connected(port)

    def send(self, now: int) -> None:
        self.sent_ns = now
        self.socket.send(self.says)
        self.sent += 1
        self.waiting = True

    def receive(self) -> None:
        self.socket.recv(65_535)
        self.received += 1
        self.waiting = False

    def _connected(self, port: int) -> socket.socket:
        """A socket that an answer has come to: a relay may be starting, or lose what a new client sends."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            # A new one each time: the peers may still hold an earlier client's port to be closed.
            sock = udp_socket()
            sock.settimeout(0.1)
            sock.connect((HOST, port))
            try:
                sock.send(self.says)
                self.sent += 1
                sock.recv(65_535)
                self.received += 1
            except (TimeoutError, ConnectionRefusedError):
                sock.close()
                time.sleep(0.05)
            else:
                sock.setblocking(False)
                return sock
        raise RuntimeError(f"nothing comes back from port {port}")


def measure(port: int, count: int, seconds: float) -> Load:
    """Keep one datagram of each client on its way for `seconds`."""
    poll = select.epoll()
    clients = [Client(number, port) for number in range(count)]
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
        ready = poll.poll(LOST_SECONDS)
        for number, _ in ready:
            client = by_socket[number]
            client.receive()
            now = clock()
            times.append(now - client.sent_ns)
            client.send(now)
        if not ready:
            lost += count
            for client in clients:
                client.send(clock())
    now = clock()
    took = (now - begin) / 1e9
    # A client whose datagram was lost stood still, and made it easier for the others.
    lost += sum(client.waiting and now - client.sent_ns > LOST_SECONDS * 1e9 for client in clients)
    # What is on its way still arrives, or nobody could say what must have been recorded.
    while any(client.waiting for client in clients) and (ready := poll.poll(LOST_SECONDS)):
        for number, _ in ready:
            by_socket[number].receive()
    for client in clients:
        client.socket.close()
    cuts = statistics.quantiles(times, n=100)
    passed: Datagrams = {("c2s", client.says): client.sent for client in clients}
    passed["s2c", ANSWER] = sum(client.received for client in clients)
    return Load(len(times) / took, cuts[49] / 1e3, cuts[98] / 1e3, lost, took, passed)


@contextmanager
def process(target: Any, *args: object) -> Iterator[None]:
    """A function in a process of its own, which SIGTERM ends."""
    running = SPAWN.Process(target=target, args=args)
    running.start()
    try:
        yield
    finally:
        running.terminate()
        running.join()


@contextmanager
def command(*words: str) -> Iterator[None]:
    """A program, with all processes that it starts: socat has one for each client."""
    # socat tells on standard error of each client that has gone.
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()


@contextmanager
def other_relay(name: str, server: int) -> Iterator[int]:
    """A way to the server that is not ours; the answer is its port."""
    port = server if name == "direct" else free_port()
    if name == "socat":
        # 600 seconds as ours: without it, each client's process stays for ever.
        listen = f"UDP-LISTEN:{port},bind={HOST},fork"
        with command("socat", "-T", "600", listen, f"UDP:{HOST}:{server}"):
            yield port
    elif name == "mitmdump":
        mode = f"reverse:udp://{HOST}:{server}@{HOST}:{port}"
        with command(str(mitmdump()), "--mode", mode, "-q"):
            yield port
    else:
        yield port


def mitmdump() -> Path:
    return Path(sys.executable).with_name("mitmdump")


def installed(name: str) -> bool:
    if name == "mitmdump":
        return mitmdump().exists()
    return name != "socat" or shutil.which("socat") is not None


class OurRelay:
    """The command `kiebitz relay`, as everybody runs it, recording into a new database in `folder`."""

    def __init__(self, folder: Path, server: int) -> None:
        self.port = free_port()
        self.database = folder / "game.db"
        mode = f"reverse:udp://{HOST}:{server}@{HOST}:{self.port}"
        self._running = subprocess.Popen(
            [*KIEBITZ, "relay", "-m", mode, "-w", str(self.database), "-q"],
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
        self._recorder = _recorder_of(self._running.pid)

    def __enter__(self) -> OurRelay:
        return self

    def __exit__(self, *_: object) -> None:
        # Only where a measurement broke off; the recorder then ends by itself.
        if self._running.poll() is None:
            self._running.kill()
            self._running.wait()
        self._stderr.close()

    def measure(self, pool: Any, clients: int, seconds: float) -> Measured:
        """Load it, wait until all is recorded, stop it, and see that what was recorded is what was sent."""
        forwarder, recorder = _cpu_seconds(self._running.pid), _cpu_seconds(self._recorder)
        load: Load = pool.apply(measure, (self.port, clients, seconds))
        behind = self._wait_for(sum(load.passed.values()))
        cost = Recording(
            _cpu_seconds(self._running.pid) - forwarder, _cpu_seconds(self._recorder) - recorder, behind
        )
        self.stop()
        recorded = self._recorded()
        if recorded != load.passed:
            raise click.ClickException(f"sent was\n{load.passed}\nand recorded\n{recorded}")
        return Measured(load, cost)

    def stop(self) -> None:
        """End it as Ctrl-C does. Raises RuntimeError unless it ends well and has nothing to complain of."""
        self._running.send_signal(signal.SIGINT)
        said = self._stderr.read()
        if self._running.wait() != 0 or "kiebitz:" in said or " 0 diagnostics" not in said:
            raise RuntimeError(f"kiebitz relay said: {said}")

    def _wait_for(self, count: int) -> float:
        """Wait until so many datagrams are in the database; how many seconds that took."""
        begin = time.perf_counter()
        with closing(sqlite3.connect(self.database)) as connection:
            while time.perf_counter() - begin < BEHIND_SECONDS:
                # The last number is found at once, while counting would take its part of the machine.
                if connection.execute("SELECT max(id) FROM chunks").fetchone()[0] == count:
                    return time.perf_counter() - begin
                time.sleep(LOOK_SECONDS)
        raise click.ClickException(f"the recorder has not recorded {count} datagrams")

    def _recorded(self) -> Datagrams:
        with closing(sqlite3.connect(self.database)) as connection:
            return {
                (direction, data): number
                for direction, data, number in connection.execute(
                    "SELECT direction, data, count(*) FROM chunks GROUP BY direction, data"
                )
            }


def _recorder_of(pid: int) -> int:
    """The child of a relay that records: the other one only tidies up after it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(
        int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    )


def _cpu_seconds(pid: int) -> float:
    """User and system time of a running process (proc(5), /proc/pid/stat, fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def measure_one(name: str, server: int, pool: Any, clients: int, seconds: float) -> Measured:
    if name == OURS:
        with tempfile.TemporaryDirectory() as folder, OurRelay(Path(folder), server) as relay:
            return relay.measure(pool, clients, seconds)
    with other_relay(name, server) as port:
        return Measured(pool.apply(measure, (port, clients, seconds)))


def median(values: list[float]) -> str:
    return f"{statistics.median(values):,.2f}" if values else "–"


def speed(clients: int, rounds: list[dict[str, Load]]) -> Table:
    """The medians, and the ratios that are promised: rate to mitmdump's, added median latency to socat's."""
    result = Table(title=f"{clients} client{'s' if clients > 1 else ''}", title_justify="left")
    result.add_column("")
    for heading in ("round trips/s", "p50 µs", "p99 µs", "lost", "× mitmdump's rate", "× socat's added p50"):
        result.add_column(heading, justify="right")
    for name in rounds[0]:
        mine = [loads[name] for loads in rounds]
        faster = [loads[name].rate / loads["mitmdump"].rate for loads in rounds if "mitmdump" in loads]
        slower = [
            (loads[name].p50 - loads["direct"].p50) / (loads["socat"].p50 - loads["direct"].p50)
            for loads in rounds
            if "socat" in loads and "direct" in loads
        ]
        result.add_row(
            name,
            f"{statistics.median(load.rate for load in mine):,.0f}",
            f"{statistics.median(load.p50 for load in mine):,.1f}",
            f"{statistics.median(load.p99 for load in mine):,.1f}",
            str(sum(load.lost for load in mine)),
            median(faster),
            median(slower),
        )
    return result


def recording(rounds: list[Measured]) -> Table:
    """What the two processes of our relay used, and how far the recorder was behind."""
    result = Table(title="Recording", title_justify="left")
    for heading in ("datagrams", "forwarder µs each", "recorder µs each", "behind s", "at most s"):
        result.add_column(heading, justify="right")
    numbers = [sum(measured.load.passed.values()) for measured in rounds]
    costs = [measured.recording for measured in rounds if measured.recording is not None]
    result.add_row(
        f"{statistics.median(numbers):,.0f}",
        median([cost.forwarder / number * 1e6 for cost, number in zip(costs, numbers, strict=True)]),
        median([cost.recorder / number * 1e6 for cost, number in zip(costs, numbers, strict=True)]),
        median([cost.behind for cost in costs]),
        f"{max(cost.behind for cost in costs):.2f}",
    )
    return result


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=5, show_default=True, help="How often each is measured.")
@click.option("--seconds", default=2.0, show_default=True, help="How long each measurement takes.")
@click.option("--only", multiple=True, type=click.Choice(PEERS), help="Only this one; may be repeated.")
def main(rounds: int, seconds: float, only: tuple[str, ...]) -> None:
    console = Console(width=110)
    names = [name for name in PEERS if name in (only or PEERS) and installed(name)]
    server = free_port()
    with process(serve, server), SPAWN.Pool(1) as pool:
        for clients in CLIENTS:
            measured = [
                {name: measure_one(name, server, pool, clients, seconds) for name in names}
                for _ in range(rounds)
            ]
            loads = [{name: one.load for name, one in round_.items()} for round_ in measured]
            console.print(speed(clients, loads))
            if OURS in names:
                console.print(recording([round_[OURS] for round_ in measured]))


if __name__ == "__main__":
    main()
