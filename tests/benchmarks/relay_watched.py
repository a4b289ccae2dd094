"""Benchmark of the UDP relay's latency while `kiebitz watch` or a hundred pages of `kiebitz serve` follow it.

As in `relay_udp.py` every client registers at a Mäxchen server and waits for the answer, as quickly as it
can.
Kiebitz is measured without observers, twice, which shows the noise; with `kiebitz watch` on a terminal of
120 by 40; and with a hundred connections to the page's live feed.
"""

from __future__ import annotations

import os
import pty
import select
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Thread

from relay_udp import UDP, register, serve
from relays import HOST, OURS, SECONDS, SPAWN, Load, Measured, OurRelay, free_port, median_of, process
from report import Report, new_table
from rich.table import Table
from running import KIEBITZ

CLIENTS = (1, 32)
PAGES = 100
COLUMNS, LINES = 120, 40

AGAIN, WATCHED, SERVED = f"{OURS}, again", f"{OURS}, watched", f"{OURS}, {PAGES} pages"


def drain(terminal: int) -> None:
    """Read a terminal's output until it is closed."""
    while True:
        try:
            if not os.read(terminal, 65_536):
                return
        except OSError:
            return


@contextmanager
def watched(database: Path) -> Iterator[None]:
    """`kiebitz watch` on a terminal that is read meanwhile."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    reader = Thread(target=drain, args=(ours,))
    reader.start()
    running = subprocess.Popen(
        [*KIEBITZ, "watch", str(database)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield
    finally:
        running.kill()
        running.wait()
        reader.join()
        os.close(ours)


def pages(port: int, count: int) -> None:
    """Read the live feed with this many clients; each reports its first event, and reads on."""
    asked = f"GET /api/live HTTP/1.1\r\nHost: {HOST}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode()
    poll = select.epoll()
    sockets = {}
    for _ in range(count):
        connection = socket.create_connection((HOST, port))
        connection.sendall(asked)
        sockets[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
    while sockets:
        for number, _ in poll.poll():
            if not sockets[number].recv(65_536):
                poll.unregister(number)
                sockets.pop(number).close()


@contextmanager
def served(database: Path) -> Iterator[None]:
    """`kiebitz serve` with all pages open."""
    port = free_port("tcp")
    running = subprocess.Popen(
        [*KIEBITZ, "serve", str(database), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert running.stdout is not None
    try:
        with running.stdout:
            # The first line has the page's address.
            running.stdout.readline()
            with process(pages, port, PAGES):
                yield
    finally:
        running.kill()
        running.wait()


ONLOOKERS = {WATCHED: watched, SERVED: served}


def compared(report: Report, rounds: int) -> None:
    """Run with one client, which shows latency, and with many, which show throughput."""
    server = free_port("udp")
    with process(serve, server), SPAWN.Pool(1) as pool:

        def put(port: int, clients: int) -> Load:
            load: Load = pool.apply(register, (port, clients, SECONDS))
            return load

        def measured(name: str, clients: int) -> Measured[Load]:
            with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
                relay = held.enter_context(OurRelay(Path(folder), UDP, server))
                if name in ONLOOKERS:
                    held.enter_context(ONLOOKERS[name](relay.database))
                return relay.measure(partial(put, clients=clients))

        for clients in CLIENTS:
            every = (OURS, AGAIN, *ONLOOKERS)
            found = [{name: measured(name, clients) for name in every} for _ in range(rounds)]
            title = f"UDP relay, {clients} client{'s' if clients > 1 else ''}, with onlookers"
            report.show(_table(title, found))
            _promise(report, title, found)


def _ratios(found: Sequence[dict[str, Measured[Load]]], name: str) -> list[float]:
    return [one[name].load.p50 / one[OURS].load.p50 for one in found]


def _table(title: str, found: Sequence[dict[str, Measured[Load]]]) -> Table:
    result = new_table(title, "round trips/s|p50 µs|p99 µs|lost|× p50 without|behind s")
    for name in found[0]:
        loads = [one[name].load for one in found]
        behind = [one[name].recording for one in found]
        result.add_row(
            name,
            *(f"{median_of(found, name, of):,.1f}" for of in ("rate", "p50", "p99")),
            str(sum(load.lost for load in loads)),
            " ".join(f"{ratio:.2f}" for ratio in _ratios(found, name)),
            f"{statistics.median(cost.behind for cost in behind if cost):.2f}",
        )
    return result


def _promise(report: Report, title: str, found: Sequence[dict[str, Measured[Load]]]) -> None:
    """The median differs by no more than it does between two runs without onlookers."""
    noise = max(abs(ratio - 1) for ratio in _ratios(found, AGAIN))
    for name in ONLOOKERS:
        ratio = statistics.median(_ratios(found, name))
        report.promise(
            f"{title}: p50 µs, {name.partition(', ')[2]}",
            f"{median_of(found, name, 'p50'):,.1f}",
            f"without {median_of(found, OURS, 'p50'):,.1f}",
            f"{ratio:.2f}",
            f"≤ {1 + noise:.2f}, the noise",
            ratio <= 1 + noise,
        )
