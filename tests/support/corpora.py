"""Corpora for tests: made in this process, or by Dask's own programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from command import ROOT
from processes_and_rows import PATIENCE_S, free_port, until

import kiebitz
from kiebitz.services.corpus.capture_task import Outcome, Task, add
from kiebitz.storage.corpus.capture_writer import CaptureInfo, DiagnosticLocation, write_capture
from kiebitz.storage.corpus.layout import make
from kiebitz.storage.corpus.runs import RequestedCapture, Run


def add_here(folder: Path, captures: Iterable[Path]) -> list[Outcome]:
    """Add captures to a corpus as a worker does, without Dask."""
    corpus = make(str(folder))
    outcomes = []
    with Run(corpus) as run:
        for capture in captures:
            run.asked([RequestedCapture(str(capture), capture.name)])
            task = Task(
                str(capture), capture.name, str(folder.absolute()), corpus.id, run.name, version("kiebitz")
            )
            outcome = add(task)
            if outcome.capture is not None:
                run.added(task.path, outcome.capture)
            else:
                run.failed(task.path, str(outcome.failed))
            outcomes.append(outcome)
    return outcomes


def put_sessions(folder: Path, databases: Iterable[str]) -> None:
    """Make a corpus of sessions that no capture holds."""
    corpus = make(str(folder))
    with Run(corpus) as run:
        for number, database in enumerate(databases):
            digest = f"{number:064x}"
            staged = corpus.stage(run.name, digest)
            with kiebitz.open(database) as session:
                write_capture(
                    session,
                    CaptureInfo(0, 0, None),
                    lambda diagnostic: DiagnosticLocation(b"", "[]", None, None),
                    staged,
                )
            corpus.put(staged, digest)


class Cluster:
    """A `dask scheduler` with as many `dask worker` as were started."""

    def __init__(self, folder: Path) -> None:
        self.started: list[subprocess.Popen[bytes]] = []
        self.address = f"tcp://127.0.0.1:{free_port('tcp')}"
        self._folder = folder
        self.scheduler = self._start(
            *("scheduler", "--host", "127.0.0.1", "--port", self.address.rpartition(":")[2]),
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
        )

    def work(self) -> subprocess.Popen[bytes]:
        """Start a worker, which has a core and no nanny to start it again."""
        name = f"worker-{len(list(self._folder.glob('*.log')))}"
        worker = self._start(
            *("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name),
            *("--local-directory", str(self._folder)),
            log=name,
        )
        self._says(name, "Registered to")
        return worker

    def _start(self, *arguments: str, log: str = "scheduler") -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (self._folder / f"{log}.log").open("wb") as output:
            started = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], env=environment, stdout=output, stderr=output
            )
        self.started.append(started)
        return started

    def _says(self, log: str, words: str) -> None:
        until(lambda: words in (self._folder / f"{log}.log").read_text(), words, PATIENCE_S)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Yield a cluster on this machine, and end it after the block."""
    made = Cluster(folder)
    try:
        yield made
    finally:
        for process in reversed(made.started):
            process.kill()
            process.wait()
