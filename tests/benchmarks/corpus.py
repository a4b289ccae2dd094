"""Benchmark of a corpus: import rate with one and two workers, and query times compared with SQLite.

The captures are copies of one Schafkopf game, each an hour later. Workers are those of `dask worker`, with a
core each. Queries run on copies of one long capture: its rows repeated in SQLite, its files in the corpus.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from processes_and_rows import free_port
from relay_processes import cpu_seconds, pss_kib
from repeating import CAPTURES as RECORDED
from repeating import MAEXCHEN, SCHAFKOPF, repeat
from report import Report, new_table
from running import KIEBITZ, import_into, run

from kiebitz.dissectors.filters import compile_filter
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.storage.corpus.engine import Engine
from kiebitz.storage.corpus.layout import open_corpus
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.filters.sql import DUCKDB, register_functions, to_sql
from kiebitz.storage.read.conditions import field_catalog

CAPTURES = 60
MESSAGES = 1_000_000

GAME = msgspec.structs.replace(SCHAFKOPF, renew=lambda packets, places, number: bytes(packets))
LONG = RECORDED / MAEXCHEN.file
HOUR_S = 3600
LEAST_RATIO = 1.8

FILTERS = (
    'msg == "PLAYER ROLLS"',
    'maexchen.dice == "2,1"',
    'name matches "^PLAYER" && time < 5',
    'kind == "lost"',
    "diag",
)
GROUPED = "SELECT name, direction, count(*), sum(length) FROM messages GROUP BY name, direction"


@contextmanager
def cluster(workers: int, folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a scheduler with this many workers, and the workers' processes."""
    from distributed import Client

    port = free_port("tcp")
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "dask"]
    worker = ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory"]
    commands = [["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]]
    commands += [[*worker, str(folder)] for _ in range(workers)]
    with (folder / "dask.log").open("ab") as log:
        processes = [subprocess.Popen([*dask, *one], stdout=log, stderr=log) for one in commands]
    try:
        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield address, [process.pid for process in processes[1:]]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measured(report: Report, rounds: int) -> None:
    """Measure how captures get into a corpus, and how it answers."""
    added(report, CAPTURES, rounds)
    asked(report, MESSAGES)


def added(report: Report, captures: int, rounds: int) -> None:
    """Measure how many captures a second one worker adds, and two."""
    table = new_table(
        f"{captures} captures of a Schafkopf game into a corpus",
        "workers|captures/s|CPU s each|MiB after half|MiB at the end",
        None,
    )
    rates: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(captures):
            repeat(folder / f"{number:04}.pcap", 1, GAME, number * HOUR_S)
        files = [str(path) for path in sorted(folder.glob("*.pcap"))]
        for turn in range(rounds):
            for workers, of_workers in rates.items():
                corpus = folder / f"corpus-{turn}-{workers}"
                with cluster(workers, folder) as (address, processes):
                    # What everything takes to load, and the second half of it is the measure.
                    add(corpus, files[: captures // 2], address)
                    half = [pss_kib(process) / 1024 for process in processes]
                    before = sum(map(cpu_seconds, processes))
                    nothing = add(corpus, files[:1], address)
                    took = add(corpus, files[captures // 2 :], address) - nothing
                    count = captures - captures // 2
                    of_workers.append(count / took)
                    each = (sum(map(cpu_seconds, processes)) - before) / count
                    end = [pss_kib(process) / 1024 for process in processes]
                table.add_row(
                    str(workers), f"{count / took:.2f}", f"{each:.2f}", f"{max(half):.0f}", f"{max(end):.0f}"
                )
    report.show(table)
    one, two = (statistics.median(of_workers) for of_workers in rates.values())
    title, aim = "Captures a second into a corpus, with two workers and with one", f"at least {LEAST_RATIO} ×"
    kept = two / one >= LEAST_RATIO
    report.promise(title, f"{two:.2f}", aim, kept, f"{one:.2f}", f"{two / one:.2f} ×")


def add(corpus: Path, files: Sequence[str], address: str) -> float:
    """Seconds that adding takes."""
    return run([*KIEBITZ, "corpus", "add", str(corpus), *files, "--scheduler", address]).wall


def asked(report: Report, messages: int) -> None:
    """Ask as many messages the same in SQLite and in DuckDB."""
    table = new_table(
        f"{messages:,} messages, counted by what a filter lets through", "SQLite s|DuckDB s|rows"
    )

    def row(title: str, begin: float, middle: float, found: int, same: int) -> None:
        end = time.perf_counter()
        if found != same:
            raise RuntimeError(f"{title}: {found} rows in SQLite, {same} in DuckDB")
        table.add_row(title, f"{middle - begin:.2f}", f"{end - middle:.2f}", f"{found:,}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database, corpus, copies = made(folder, messages)
        size = sum(path.stat().st_size for path in corpus.rglob("*.parquet"))
        report.show(
            f"{copies:,} captures: {database.stat().st_size / 1e9:.2f} GB of SQLite without the bytes,"
            f" {size / 1e9:.2f} GB of Parquet"
        )
        with closing(open_existing(str(database))) as connection, Engine(open_corpus(str(corpus))) as engine:
            register_functions(connection)
            for text in FILTERS:
                wanted = compile_filter(text, field_catalog())
                query = "SELECT count(*) FROM messages AS m WHERE {}"
                sql, parameters = to_sql(wanted, "messages", FROM_ONE)
                of_engine, values = to_sql(wanted, "messages", FROM_ONE, DUCKDB)
                begin = time.perf_counter()
                ((found,),) = connection.execute(query.format(sql), parameters)
                middle = time.perf_counter()
                ((same,),) = engine.rows(query.format(of_engine), values)
                row(text, begin, middle, found, same)
            begin = time.perf_counter()
            found = len(connection.execute(GROUPED).fetchall())
            middle = time.perf_counter()
            row("count and bytes by name", begin, middle, found, len([*engine.rows(GROUPED)]))
    report.show(table)


def made(folder: Path, messages: int) -> tuple[Path, Path, int]:
    """Return a database and a corpus with as many messages: copies of one capture, in the second as files."""
    database, corpus = folder / "many.db", folder / "corpus"
    import_into(database, LONG)
    run([*KIEBITZ, "corpus", "add", str(corpus), str(LONG)])
    (first,) = corpus.glob("capture=*")
    with closing(sqlite3.connect(database)) as connection:
        ((each,),) = connection.execute("SELECT count(*) FROM messages")
        copies = -(-messages // each)
        connection.execute("DELETE FROM chunks")
        copy_rows(connection, copies)
        connection.execute("ANALYZE")
    for number in range(1, copies):
        # The rows are the same; links are as many files to be opened and read.
        shutil.copytree(first, corpus / f"capture={number:064x}", copy_function=os.link)
    return database, corpus, copies


def copy_rows(connection: sqlite3.Connection, copies: int) -> None:
    """Insert each row this many times, in sessions of their own."""
    tables = ("sessions", "streams", "tables", "games", "events", "messages", "diagnostics")
    steps = {table: connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0] for table in tables}
    connection.execute(
        f"CREATE TEMP TABLE copies AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c"
        f" WHERE n < {copies - 1}) SELECT n FROM c"
    )
    with connection:
        for table in tables:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            of_key = {row[3]: row[2] for row in connection.execute(f"PRAGMA foreign_key_list({table})")}
            of_key["id"] = table
            shifts = {name: f" + n * {steps[other]}" for name, other in of_key.items()}
            values = [f'"{name}"{shifts.get(name, "")}' for name in names]
            connection.execute(
                f"INSERT INTO {table} SELECT {', '.join(values)} FROM {table}, copies ORDER BY n, id"
            )
