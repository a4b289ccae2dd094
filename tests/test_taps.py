"""Taps and collectors at a real nats-server: nothing is lost and nothing is twice, whatever is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import kiebitz
from live import child_of, rows, until
from strength import a_few
from tapped import (
    GAMES,
    Network,
    Server,
    Tap,
    as_pcap,
    collect,
    count,
    needs_nats,
    network,
    packets_of,
    place_at,
    server,
    until_recorded,
)


@pytest.fixture(autouse=True)
def _is_installed() -> None:
    needs_nats()


class Lab:
    """Three taps, each of which records one server's game, and a collector, at a server behind a network."""

    def __init__(self, folder: Path, nats: Server, way: Network) -> None:
        self.folder = folder
        self.nats = nats
        self.way = way
        self.database = folder / "class.db"
        self.taps = [Tap(folder, f"tap-{number}", place_at(way.port)) for number in range(len(GAMES))]
        self.packets = [packets_of(game) for game in GAMES]
        self.collector = collect(folder, nats.port, self.database)

    def give(self, part: int, of: int) -> None:
        """Give each tap the next part of its game."""
        for tap, packets in zip(self.taps, self.packets, strict=True):
            size = -(-len(packets) // of)
            tap.give(packets[part * size : (part + 1) * size])

    def in_one_place(self) -> Path:
        """The database of one program that has recorded all three."""
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

    def kill(self) -> None:
        for program in (*self.taps, self.collector):
            program.kill()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with server(tmp_path) as nats, network(nats.port) as way:
        one = Lab(tmp_path, nats, way)
        try:
            yield one
        finally:
            one.kill()


def kill_server(lab: Lab) -> None:
    lab.nats.kill()
    lab.give(1, 3)
    time.sleep(0.5)
    lab.nats.start()


def cut_network(lab: Lab) -> None:
    lab.way.cut()
    lab.give(1, 3)
    lab.taps[0].until_says("cannot be reached")
    lab.way.mend()


def kill_publisher(lab: Lab) -> None:
    for tap in lab.taps:
        os.kill(child_of(tap.process.pid), signal.SIGKILL)
    lab.give(1, 3)


def kill_collector(lab: Lab) -> None:
    lab.collector.kill()
    lab.give(1, 3)
    lab.collector = collect(lab.folder, lab.nats.port, lab.database)
    lab.collector.until_says("going on with session 1")


def all_of_it(lab: Lab) -> None:
    lab.nats.kill()
    kill_publisher(lab)
    lab.collector.kill()
    lab.nats.start()
    lab.collector = collect(lab.folder, lab.nats.port, lab.database)


FAULTS: dict[str, Callable[[Lab], None]] = {
    "the server": kill_server,
    "the network": cut_network,
    "each tap's publisher": kill_publisher,
    "the collector": kill_collector,
    "all but the recorders": all_of_it,
}


@pytest.mark.parametrize("killed", a_few(FAULTS, ["all but the recorders"], str))
def test_nothing_is_lost_and_nothing_is_twice(killed: str, lab: Lab) -> None:
    lab.give(0, 3)
    until(lambda: count(lab.database, "chunks") > 30, "the first part is collected")
    FAULTS[killed](lab)
    lab.give(2, 3)
    lab.is_whole()
