"""How fast the UDP relay is, beside a direct connection, socat and mitmdump, all in one run.

    python -m tests.benchmarks.relay_udp

Every client sends a datagram, waits for its echo, sends the next. The echo server, the clients and each relay
are processes of their own. A round measures all of them, one after another; the ratios are the medians of the
rounds' ratios, since the machine's other load comes and goes. Our relay journals, and a recorder reads that.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from proxy.journal import JournalReader, JournalWriter
from proxy.modes import parse_mode
from proxy.processes import follow, start_recorder
from proxy.relay import Forwarder, run_relay

HOST = "127.0.0.1"
START_SECONDS = 15.0
LOST_SECONDS = 0.5
SPAWN = multiprocessing.get_context("spawn")


class Measured(msgspec.Struct):
    """Round trips per second and their times in microseconds; `lost` ones had no answer in `LOST_SECONDS`."""

    rate: float
    p50: float
    p99: float
    lost: int


def udp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def free_port() -> int:
    with udp_socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def echo(port: int) -> None:
    with udp_socket() as sock:
        sock.bind((HOST, port))
        while True:
            data, client = sock.recvfrom(65_535)
            sock.sendto(data, client)


def read_journal(directory: Path) -> None:
    """The least a recorder does."""
    reader = JournalReader(directory)
    for _ in follow(reader):
        reader.release()


def our_relay(server: int, port: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        journal = JournalWriter(Path(directory) / "journal", on_trouble=print)
        mode = parse_mode(f"reverse:udp://{HOST}:{server}@{port}")
        forwarder = Forwarder([mode], journal, on_notice=print)
        recorder = start_recorder(read_journal, Path(directory) / "journal")
        run_relay(forwarder)
        recorder.join()


def measure(port: int, clients: int, seconds: float, size: int) -> Measured:
    """Keep one datagram of each client on its way for `seconds`."""
    payload = b"x" * size
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    sent: dict[int, int] = {}
    times: list[int] = []
    lost = 0
    clock = time.perf_counter_ns
    for _ in range(clients):
        sock = client_of(port)
        sockets[sock.fileno()] = sock
        poll.register(sock, select.EPOLLIN)
    begin = clock()
    end = begin + int(seconds * 1e9)
    for number, sock in sockets.items():
        sent[number] = clock()
        sock.send(payload)
    while clock() < end:
        ready = poll.poll(LOST_SECONDS)
        for number, _ in ready:
            sock = sockets[number]
            sock.recv(65_535)
            now = clock()
            times.append(now - sent[number])
            sent[number] = now
            sock.send(payload)
        if not ready:
            lost += clients
            for number, sock in sockets.items():
                sent[number] = clock()
                sock.send(payload)
    now = clock()
    # A client whose datagram was lost stood still, and made it easier for the others.
    lost += sum(now - at > LOST_SECONDS * 1e9 for at in sent.values())
    rate = len(times) / (now - begin) * 1e9
    for sock in sockets.values():
        sock.close()
    cuts = statistics.quantiles(times, n=100)
    return Measured(rate, cuts[49] / 1e3, cuts[98] / 1e3, lost)


def client_of(port: int) -> socket.socket:
    """A socket that an echo has come to: a relay may be starting, or lose what a new client sends first."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        # A new one each time: the peers may still hold an earlier client's port to be closed.
        sock = udp_socket()
        sock.settimeout(0.1)
        sock.connect((HOST, port))
        try:
            sock.send(b"?")
            sock.recv(65_535)
        except (TimeoutError, ConnectionRefusedError):
            sock.close()
            time.sleep(0.05)
        else:
            sock.setblocking(False)
            return sock
    raise RuntimeError(f"nothing comes back from port {port}")


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


def relays(stack: ExitStack, server: int) -> dict[str, int]:
    """Start all there is to compare; the answer is their ports by name."""
    ports = {"direct": server, "kiebitz": free_port()}
    stack.enter_context(process(our_relay, server, ports["kiebitz"]))
    if shutil.which("socat"):
        port = ports["socat"] = free_port()
        # 600 seconds as ours: without it, each client's process stays for ever.
        listen = f"UDP-LISTEN:{port},bind={HOST},fork"
        stack.enter_context(command("socat", "-T", "600", listen, f"UDP:{HOST}:{server}"))
    mitmdump = Path(sys.executable).with_name("mitmdump")
    if mitmdump.exists():
        port = ports["mitmdump"] = free_port()
        mode = f"reverse:udp://{HOST}:{server}@{HOST}:{port}"
        stack.enter_context(command(str(mitmdump), "--mode", mode, "-q"))
    return ports


def median(values: list[float]) -> float:
    return statistics.median(values)


def table(clients: int, rounds: list[dict[str, Measured]]) -> Table:
    """The medians, and the ratios that are promised: rate to mitmdump's, added median latency to socat's."""
    result = Table(title=f"{clients} client{'s' if clients > 1 else ''}", title_justify="left")
    result.add_column("")
    for heading in ("round trips/s", "p50 µs", "p99 µs", "lost", "× mitmdump's rate", "× socat's added p50"):
        result.add_column(heading, justify="right")
    for name in rounds[0]:
        mine = [measured[name] for measured in rounds]
        faster = [m[name].rate / m["mitmdump"].rate for m in rounds if "mitmdump" in m]
        slower = [
            (m[name].p50 - m["direct"].p50) / (m["socat"].p50 - m["direct"].p50)
            for m in rounds
            if "socat" in m
        ]
        result.add_row(
            name,
            f"{median([m.rate for m in mine]):,.0f}",
            f"{median([m.p50 for m in mine]):,.1f}",
            f"{median([m.p99 for m in mine]):,.1f}",
            str(sum(m.lost for m in mine)),
            f"{median(faster):.1f}" if faster else "–",
            f"{median(slower):.2f}" if slower else "–",
        )
    return result


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=5, show_default=True, help="How often each is measured.")
@click.option("--seconds", default=1.0, show_default=True, help="How long each measurement takes.")
@click.option("--size", default=32, show_default=True, help="Bytes in a datagram.")
def main(rounds: int, seconds: float, size: int) -> None:
    console = Console()
    with ExitStack() as stack:
        server = free_port()
        stack.enter_context(process(echo, server))
        ports = relays(stack, server)
        load = stack.enter_context(SPAWN.Pool(1))
        for clients in (1, 32):
            measured = []
            for _ in range(rounds):
                measured.append(
                    {
                        name: load.apply(measure, (port, clients, seconds, size))
                        for name, port in ports.items()
                    }
                )
            console.print(table(clients, measured))


if __name__ == "__main__":
    main()
