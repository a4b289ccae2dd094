"""Benchmark of the UDP relay's latency while `kiebitz watch` or a hundred pages of `kiebitz serve` follow it.

As in `relay_udp.py` every client registers at a Mäxchen server and waits for the answer, as quickly as it
can. Kiebitz is measured without observers, twice, which shows the noise; with `kiebitz watch` on a terminal
of 120 by 40; and with a hundred connections to the page's live feed.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from relay_udp import CLIENTS, UDP, register, serve
from relays import HOST, OURS, Relay, cell, compare, median, process, table, values
from report import Report
from served_pages import serving
from terminals import OnTerminal

PAGES = 100
AGAIN = f"{OURS}, again"
COLUMNS = "round trips/s|p50 µs|p99 µs|lost|× p50 without|behind s"


@contextmanager
def watched(database: Path) -> Iterator[None]:
    """`kiebitz watch` on a terminal that is read meanwhile."""
    with OnTerminal("watch", str(database), columns=120, rows=40) as terminal:
        reader = Thread(target=terminal.ended)
        reader.start()
        yield
        terminal.process.kill()
        reader.join()


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
    with serving(str(database)) as server, process(pages, server.port, PAGES):
        yield


ONLOOKERS = {f"{OURS}, watched": watched, f"{OURS}, {PAGES} pages": served}


def compared(report: Report, rounds: int) -> None:
    """Run with one client, which shows latency, and with many, which show throughput."""
    alone = Relay(UDP, OURS)
    relays = {OURS: alone, AGAIN: alone}
    relays |= {name: alone._replace(beside=beside) for name, beside in ONLOOKERS.items()}
    for relay, found in compare(relays, serve, register, CLIENTS, rounds):
        title = f"{relay}, with onlookers"
        report.show(table(title, found, COLUMNS))
        # The median differs by no more than it does between two runs without onlookers.
        noise = max(abs(ratio - 1) for ratio in values(found, AGAIN, "× p50 without"))
        for name in ONLOOKERS:
            report.promise(
                f"{title}: p50 µs, {name.partition(', ')[2]}",
                cell(found, name, "p50 µs"),
                f"≤ {1 + noise:.2f}, the noise",
                median(found, name, "× p50 without") <= 1 + noise,
                f"without {cell(found, OURS, 'p50 µs')}",
                cell(found, name, "× p50 without"),
            )
