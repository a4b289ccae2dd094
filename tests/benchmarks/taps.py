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
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import accumulate
from pathlib import Path

import msgspec
from relays import HOST, free_port
from repeating import MAEXCHEN, repeat
from report import Report, new_table
from running import KIEBITZ, run

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


class Nats:
    """A nats-server with JetStream; each `place` is another one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._places = 0

    def place(self) -> str:
        self._places += 1
        return f"nats://{HOST}:{self._port}/bench-{self._places}"


@contextmanager
def nats_server(folder: Path) -> Iterator[Nats]:
    port = free_port("tcp")
    command = ["nats-server", "-js", "-a", HOST, "-p", str(port), "-sd", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_listens(port)
        yield Nats(port)
    finally:
        running.kill()
        running.wait()


def until_listens(port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection((HOST, port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("nats-server does not listen")


class Command:
    """A `kiebitz` command that runs until it is stopped; its output goes into a file."""

    def __init__(self, log: Path, ready: str, *words: str, shift_s: float = 0.0) -> None:
        shifted = {"BENCHMARK_SHIFT_NS": str(round(shift_s * 1e9))}
        path = os.pathsep.join([str(log.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = log
        with log.open("wb") as file:
            self._running = subprocess.Popen(
                [*KIEBITZ, *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, **shifted, "PYTHONPATH": path},
                start_new_session=True,
            )
        self.until_says(ready)

    @property
    def pid(self) -> int:
        return self._running.pid

    def until_says(self, *words: str) -> None:
        end = time.monotonic() + START_S
        while not all(word in self._log.read_text() for word in words):
            if time.monotonic() > end or self._running.poll() is not None:
                raise RuntimeError(f"kiebitz did not say {words}, but: {self._log.read_text()}")
            time.sleep(0.05)

    def end(self) -> tuple[float, float]:
        """End it as Ctrl-C does; its CPU seconds, and MiB at its peak. Raises RuntimeError if it fails."""
        self._running.send_signal(signal.SIGINT)
        _, status, used = os.wait4(self.pid, 0)
        self._running.returncode = os.waitstatus_to_exitcode(status)
        if self._running.returncode:
            raise RuntimeError(f"kiebitz failed: {self._log.read_text()}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def kill(self) -> None:
        """Kill the process after a failed measurement."""
        if self._running.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._running.wait()


def count(database: Path) -> int:
    """Return the number of recorded pieces of bytes."""
    with suppress(sqlite3.OperationalError), closing(reading(database)) as connection:
        ((found,),) = connection.execute("SELECT count(*) FROM chunks")
        return int(found)
    return 0


def reading(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)


def collected(report: Report, nats: Nats, repetitions: int) -> None:
    """Measure how many items a second are collected, and what it costs to publish them."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as ending:
        folder = Path(name)
        capture, place = folder / "long.pcap", nats.place()
        packets = repeat(capture, repetitions, MAEXCHEN)
        sniff = [*KIEBITZ, "sniff", "-q", "-i", "-"]
        imported = run([*KIEBITZ, "import", str(capture), "-w", str(folder / "imported.db")])
        alone = run([*sniff, "-w", str(folder / "alone.db")], read=capture)
        publish = ["--publish", place, "--tap", "lab"]
        tapped = run([*sniff, "-w", str(folder / "tapped.db"), *publish], read=capture)
        database = folder / "class.db"
        items = count(folder / "imported.db")
        begin = time.perf_counter()
        words = ("collect", place, "-q", "-w", str(database))
        collector = Command(folder / "collector.log", "collecting from", *words)
        ending.callback(collector.kill)
        while count(database) < items:
            if time.perf_counter() - begin > 10 * START_S:
                raise RuntimeError("the collector has not recorded all")
            time.sleep(0.1)
        wall = time.perf_counter() - begin
        cpu, peak = collector.end()
    table = new_table(f"{packets:,} packets of Mäxchen, recorded and collected", "items/s|CPU s|wall s|MiB")
    rows = (
        ("kiebitz import", imported.cpu, imported.wall, imported.peak),
        ("kiebitz sniff", alone.cpu, alone.wall, alone.peak),
        ("kiebitz sniff --publish", tapped.cpu, tapped.wall, tapped.peak),
        ("kiebitz collect", cpu, wall, peak),
    )
    for subject, cpu_s, wall_s, mib in rows:
        table.add_row(subject, f"{items / wall_s:,.0f}", f"{cpu_s:.1f}", f"{wall_s:.1f}", f"{mib:.0f}")
    report.show(table)
    rate, peer = items / wall, items / imported.wall
    report.promise(
        "Items a second collected, and imported",
        f"{rate:,.0f}",
        f"{peer:,.0f}",
        f"{rate / peer:.2f} ×",
        "–",
        None,
    )


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


class Passage(msgspec.Struct):
    """Numbered datagrams that went through taps, and their recording.

    `local_ms` and `collected_ms` are the delays until each was in the first tap's own database and in the
    collected one; `clock_ms` is how much later its collected time is. Of the `sent` datagrams, `behind`
    follow one
    that was sent after them, and `late` follow one with a later time.
    """

    local_ms: list[float]
    collected_ms: list[float]
    clock_ms: list[float]
    behind: int
    late: int
    sent: int


def passed(nats: Nats, shifts: Sequence[float], silent_s: float = 0.0) -> Passage:
    """Send datagrams in turn through as many taps as there are shifts; the last is silent for a while."""
    place = nats.place()
    with tempfile.TemporaryDirectory() as name, ExitStack() as ending:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(ANOTHER_TIME)
        databases = [folder / f"{number}.db" for number in range(len(shifts))]
        collection = folder / "class.db"
        words = ("collect", place, "-q", "-w", str(collection))
        collector = Command(folder / "collector.log", "collecting from", *words)
        ending.callback(collector.kill)
        sink = ending.enter_context(udp_socket())
        sink.bind((HOST, 0))
        relays, senders = [], []
        for number, (shift_s, database) in enumerate(zip(shifts, databases, strict=True)):
            port = free_port("udp")
            mode = f"reverse:udp://{HOST}:{sink.getsockname()[1]}@{HOST}:{port}"
            tap = ("relay", "-m", mode, "-q", "-w", str(database), "--publish", place)
            log = folder / f"{number}.log"
            relays.append(Command(log, "listening", *tap, "--tap", f"tap-{number}", shift_s=shift_s))
            ending.callback(relays[-1].kill)
            senders.append(ending.enter_context(udp_socket()))
            senders[-1].connect((HOST, port))
        collector.until_says(*(f"receiving from the tap tap-{number}" for number in range(len(shifts))))
        watchers = [Watcher(database) for database in (databases[0], collection)]
        sent_ns = send(senders, SECONDS + silent_s, relays[-1].pid, silent_s)
        local, collected = (watcher.seen_ns for watcher in watchers)
        end = time.monotonic() + START_S
        while len(collected) < len(sent_ns) and time.monotonic() < end:
            time.sleep(0.1)
        for watcher in watchers:
            watcher.stop()
        for program in (*relays, collector):
            program.end()
        with closing(reading(collection)) as connection:
            rows = [(int(data), ts_ns) for data, ts_ns in connection.execute(TOLD)]
    if sorted(number for number, _ in rows) != [*range(len(sent_ns))]:
        raise RuntimeError(f"{len(sent_ns)} datagrams were sent, and {len(rows)} collected")
    return Passage(
        [(seen - sent_ns[number]) / 1e6 for number, seen in local.items()],
        [(seen - sent_ns[number]) / 1e6 for number, seen in collected.items()],
        [(ts_ns - sent_ns[number]) / 1e6 for number, ts_ns in rows],
        overtaken([number for number, _ in rows]),
        overtaken([ts_ns for _, ts_ns in rows]),
        len(rows),
    )


def overtaken(values: Sequence[int]) -> int:
    """Return the number of elements that follow a greater one."""
    return sum(value < before for value, before in zip(values[1:], accumulate(values, max), strict=False))


def udp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


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


TOLD = "SELECT data, ts_ns FROM chunks ORDER BY id"


def in_order(report: Report, nats: Nats) -> None:
    """Measure how soon datagrams are in the databases, and in which order."""
    table = new_table(
        f"Datagrams through taps in turn, one each {PACE_S * 1e3:.0f} ms",
        "row, local ms|collected ms|95 %|time off ms|at most|behind|late|of",
        "clocks are wrong by",
    )
    cases = [(shifts, 0.0) for shifts in SHIFTS]
    cases += [(SHIFTS[1], silent_s) for silent_s in SILENCES_S]
    for shifts, silent_s in cases:
        one = passed(nats, shifts, silent_s)
        subject = ", ".join(f"{shift:+g} s" if shift else "0" for shift in shifts)
        if silent_s:
            subject += f"; one silent for {silent_s:g} s"
        table.add_row(
            subject,
            f"{statistics.median(one.local_ms):.0f}",
            f"{statistics.median(one.collected_ms):.0f}",
            f"{statistics.quantiles(one.collected_ms, n=20)[18]:.0f}",
            f"{statistics.median(one.clock_ms):.1f}",
            f"{max(one.clock_ms, key=abs):.1f}",
            f"{one.behind}",
            f"{one.late}",
            f"{one.sent}",
        )
        if max(shifts) and not silent_s:
            subject = f"Of {one.sent} datagrams behind one of a later time, clocks {max(shifts):g} s wrong"
            report.promise(subject, f"{one.late}", "–", "–", "none", not one.late)
    report.show(table)


def measured(report: Report, rounds: int) -> None:
    """Both, at one server."""
    if shutil.which("nats-server") is None:
        report.show("Without nats-server, taps are not measured.")
        return
    with tempfile.TemporaryDirectory() as name, nats_server(Path(name)) as nats:
        collected(report, nats, rounds * REPETITIONS)
        in_order(report, nats)
