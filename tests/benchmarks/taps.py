"""Benchmark of taps and a collector: their cost, and the order of the collected messages.

A real nats-server on loopback. A long capture is sniffed with and without `--publish`, collected, and
imported; the cost is compared with a single recording. Then numbered datagrams go through several relays in
turn, each of which is a tap with a clock of its own: the delay until each is in the databases, and their
order, are measured.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from itertools import accumulate
from pathlib import Path

from processes_and_rows import free_port, until
from relay_udp import udp_socket
from relays import HOST
from repeating import MAEXCHEN, repeat
from report import Report, new_table
from running import KIEBITZ, Cost, import_into, run
from taps_and_nats import Program, count
from taps_and_nats import server as nats_server

REPETITIONS = 5

PACE_S = 0.005
"""Between a datagram and the next one, which goes through another tap."""

SECONDS = 4.0
"""Duration of sending in seconds."""

START_S = 60.0
LOOK_S = 0.004

SHIFTS: tuple[tuple[float, ...], ...] = ((0.0,), (0.0, 0.0, 0.0), (0.0, 0.5, -0.5), (0.0, 5.0, -5.0))
"""Errors of the taps' clocks in seconds: with one tap, and with three."""

SILENCES_S = (1.0, 6.0)
"""Durations in seconds for which the publisher of one of three taps is stopped."""

ANOTHER_TIME = """
import os, time
_right, _shift = time.time_ns, int(os.environ["BENCHMARK_SHIFT_NS"])
time.time_ns = lambda: _right() + _shift
"""
"""Python's start-up code that shifts the program's clock."""


class Command(Program):
    """A `kiebitz` command that runs until it is stopped, with a clock of its own."""

    def __init__(self, log: Path, ready: str, *words: str, shift_s: float = 0.0) -> None:
        path = os.pathsep.join([str(log.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        shifted = {"BENCHMARK_SHIFT_NS": str(round(shift_s * 1e9)), "PYTHONPATH": path}
        super().__init__(log, *words, environment=shifted)
        self.until_says(ready)

    def cost(self) -> tuple[float, float]:
        """End it as Ctrl-C does; its CPU seconds, and MiB at its peak. Raises RuntimeError if it fails."""
        self.process.send_signal(signal.SIGINT)
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            raise RuntimeError(f"kiebitz failed: {self.said}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def collected(report: Report, place: str, repetitions: int) -> None:
    """Measure how many items a second are collected, and what it costs to publish them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture, database = folder / "long.pcap", folder / "class.db"
        packets = repeat(capture, repetitions, MAEXCHEN)
        sniff = [*KIEBITZ, "sniff", "-q", "-i", "-"]
        publish = ["--publish", place, "--tap", "lab"]
        imported = import_into(folder / "imported.db", capture)
        rows = {
            "kiebitz import": imported,
            "kiebitz sniff": run([*sniff, "-w", str(folder / "alone.db")], read=capture),
            "kiebitz sniff --publish": run([*sniff, "-w", str(folder / "tapped.db"), *publish], read=capture),
        }
        items = count(folder / "imported.db", "chunks")
        begin = time.perf_counter()
        words = ("collect", place, "-q", "-w", str(database))
        with Command(folder / "collector.log", "collecting from", *words) as collector:
            until(lambda: count(database, "chunks") >= items, "all is recorded", 10 * START_S)
            wall = time.perf_counter() - begin
            cpu, peak = collector.cost()
        rows["kiebitz collect"] = Cost(cpu, wall, peak)
    table = new_table(f"{packets:,} packets of Mäxchen, recorded and collected", "items/s|CPU s|wall s|MiB")
    for subject, cost in rows.items():
        figures = (f"{items / cost.wall:,.0f}", f"{cost.cpu:.1f}", f"{cost.wall:.1f}", f"{cost.peak:.0f}")
        table.add_row(subject, *figures)
    report.show(table)
    rate, peer = items / wall, items / imported.wall
    title = "Items a second collected, and imported"
    report.promise(title, f"{rate:,.0f}", "–", None, f"{peer:,.0f}", f"{rate / peer:.2f} ×")


def reading(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)


class Watcher(threading.Thread):
    """Looks which datagrams are in a database: `seen_ns` is when each was first, by its number."""

    def __init__(self, database: Path) -> None:
        super().__init__(daemon=True)
        self.seen_ns: dict[int, int] = {}
        self._database = database
        self._is_over = threading.Event()
        self.start()

    def run(self) -> None:
        last = 0
        with closing(reading(self._database)) as connection:
            while not self._is_over.wait(LOOK_S):
                rows = connection.execute("SELECT id, data FROM chunks WHERE id > ? ORDER BY id", (last,))
                found = rows.fetchall()
                now = time.time_ns()
                for _, data in found:
                    self.seen_ns[int(data)] = now
                last = found[-1][0] if found else last

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def passed(place: str, shifts: Sequence[float], silent_s: float = 0.0) -> tuple[list[str], int, int]:
    """Send datagrams in turn through as many taps as there are shifts; the last is silent for a while.

    Returns the figures of a row of the table, how many follow one with a later time, and of how many.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as ending:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(ANOTHER_TIME)
        collection = folder / "class.db"
        words = ("collect", place, "-q", "-w", str(collection))
        collector = ending.enter_context(Command(folder / "collector.log", "collecting from", *words))
        sink = ending.enter_context(udp_socket())
        sink.bind((HOST, 0))
        relays, senders = [], []
        for number, shift_s in enumerate(shifts):
            port = free_port("udp")
            mode = f"reverse:udp://{HOST}:{sink.getsockname()[1]}@{HOST}:{port}"
            tap = ["relay", "-m", mode, "-q", "-w", str(folder / f"{number}.db")]
            tap += ["--publish", place, "--tap", f"tap-{number}"]
            relay = Command(folder / f"{number}.log", "listening", *tap, shift_s=shift_s)
            relays.append(ending.enter_context(relay))
            senders.append(ending.enter_context(udp_socket()))
            senders[-1].connect((HOST, port))
        for number in range(len(shifts)):
            collector.until_says(f"receiving from the tap tap-{number}")
        watchers = [Watcher(database) for database in (folder / "0.db", collection)]
        sent_ns = send(senders, SECONDS + silent_s, relays[-1].process.pid, silent_s)
        local, collected = (watcher.seen_ns for watcher in watchers)
        with suppress(AssertionError):
            until(lambda: len(collected) >= len(sent_ns), "all is collected", START_S)
        for watcher in watchers:
            watcher.stop()
        for program in (*relays, collector):
            program.cost()
        with closing(reading(collection)) as connection:
            told = connection.execute("SELECT data, ts_ns FROM chunks ORDER BY id")
            rows = [(int(data), ts_ns) for data, ts_ns in told]
    if sorted(number for number, _ in rows) != [*range(len(sent_ns))]:
        raise RuntimeError(f"{len(sent_ns)} datagrams were sent, and {len(rows)} collected")
    # The delays until each was in the databases; how much later its collected time is.
    local_ms, collected_ms, clock_ms = (
        [(then_ns - sent_ns[number]) / 1e6 for number, then_ns in found]
        for found in (local.items(), collected.items(), rows)
    )
    late = overtaken([ts_ns for _, ts_ns in rows])
    figures = [
        f"{statistics.median(local_ms):.0f}",
        f"{statistics.median(collected_ms):.0f}",
        f"{statistics.quantiles(collected_ms, n=20)[18]:.0f}",
        f"{statistics.median(clock_ms):.1f}",
        f"{max(clock_ms, key=abs):.1f}",
        f"{overtaken([number for number, _ in rows])}",
        f"{late}",
        f"{len(rows)}",
    ]
    return figures, late, len(rows)


def overtaken(values: Sequence[int]) -> int:
    """Return the number of elements that follow a greater one."""
    return sum(value < before for value, before in zip(values[1:], accumulate(values, max), strict=False))


def send(senders: Sequence[socket.socket], seconds: float, tap: int, silent_s: float) -> list[int]:
    """Send datagrams in turn: when each was sent. After a second, a tap is `silent_s`."""
    sent_ns = []
    begin = time.monotonic()
    for number in range(round(seconds / PACE_S)):
        due = number * PACE_S
        if silent_s and number == round(1 / PACE_S):
            stop(tap, signal.SIGSTOP)
        if silent_s and number == round((1 + silent_s) / PACE_S):
            stop(tap, signal.SIGCONT)
        time.sleep(max(0.0, begin + due - time.monotonic()))
        sent_ns.append(time.time_ns())
        senders[number % len(senders)].send(b"%d" % number)
    return sent_ns


def stop(tap: int, how: signal.Signals) -> None:
    """Stop the processes that record and publish for a relay, but not the relay."""
    for child in Path(f"/proc/{tap}/task/{tap}/children").read_text().split():
        os.kill(int(child), how)


def in_order(report: Report, server: str) -> None:
    """Measure how soon datagrams are in the databases, and in which order."""
    table = new_table(
        f"Datagrams through taps in turn, one each {PACE_S * 1e3:.0f} ms",
        "row, local ms|collected ms|95 %|time off ms|at most|behind|late|of",
        "clocks are wrong by",
    )
    cases = [(shifts, 0.0) for shifts in SHIFTS]
    cases += [(SHIFTS[1], silent_s) for silent_s in SILENCES_S]
    for number, (shifts, silent_s) in enumerate(cases):
        figures, late, sent = passed(f"{server}/bench-{number}", shifts, silent_s)
        subject = ", ".join(f"{shift:+g} s" if shift else "0" for shift in shifts)
        if silent_s:
            subject += f"; one silent for {silent_s:g} s"
        table.add_row(subject, *figures)
        if max(shifts) and not silent_s:
            subject = f"Of {sent} datagrams behind one of a later time, clocks {max(shifts):g} s wrong"
            report.promise(subject, f"{late}", "none", not late)
    report.show(table)


def measured(report: Report, rounds: int) -> None:
    """Both, at one server."""
    if shutil.which("nats-server") is None:
        report.show("Without nats-server, taps are not measured.")
        return
    with tempfile.TemporaryDirectory() as name, nats_server(Path(name)) as nats:
        server = f"nats://{HOST}:{nats.port}"
        collected(report, f"{server}/bench", rounds * REPETITIONS)
        in_order(report, server)
