"""An interoperability run: all cells of a plan, some side by side, with interrupted runs continued."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import msgspec

from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.interop.cell_run import CellRun, StoppedError
from kiebitz.services.interop.judging import judged
from kiebitz.services.interop.plan import Plan, Program
from kiebitz.services.interop.results import Attempt, Cell, Results
from kiebitz.services.output_files import opened
from kiebitz.storage.database.schema import StorageError

RESULTS = "results.json"

_MAX_HASHED = 64 << 20
"""Maximum size in bytes of a file whose content is part of a cell's fingerprint."""


class CellPlan(NamedTuple):
    """A cell to run: its server, its clients' title, and a client for each seat."""

    server: Program
    title: str
    clients: tuple[Program, ...]

    @property
    def name(self) -> str:
        """The name of the cell, as in `group-a×group-b`."""
        return f"{self.server.name}×{self.title}"


def cells_of(plan: Plan) -> list[CellPlan]:
    """Return all cells: each server with each client, then with mixed tables if the plan has them."""
    tables = [(client.name, (client,) * plan.players) for client in plan.clients]
    if plan.mixed and len(plan.clients) > 1:
        tables += [(f"mix-{number + 1}", table) for number, table in enumerate(_mixed_tables(plan))]
    return [CellPlan(server, title, clients) for server in plan.servers for title, clients in tables]


def _mixed_tables(plan: Plan) -> Iterator[tuple[Program, ...]]:
    """Yield tables with different clients, so that each client sits at one."""
    clients = plan.clients
    for start in range(0, len(clients), plan.players):
        yield tuple(clients[(start + seat) % len(clients)] for seat in range(plan.players))


def select_cells(cells: Sequence[CellPlan], patterns: Sequence[str]) -> list[CellPlan]:
    """Return the cells that one of the patterns selects: `SERVER×CLIENT`, with x or × and * for any."""
    from fnmatch import fnmatchcase

    def selects(pattern: str, cell: CellPlan) -> bool:
        server, _, client = pattern.partition("×" if "×" in pattern else "x")
        return fnmatchcase(cell.server.name, server) and fnmatchcase(cell.title, client or "*")

    return [cell for cell in cells if not patterns or any(selects(each, cell) for each in patterns)]


def fingerprint(plan: Plan, cell: CellPlan) -> str:
    """Return a digest of what a cell depends on: the plan, the commands and the files that they name."""
    digest = hashlib.sha256()
    programs = (cell.server, *cell.clients)
    settings = msgspec.structs.replace(plan, servers=(), clients=(), probe_s=0.0)
    digest.update(msgspec.json.encode([kiebitz_version(), settings, programs]))
    for program in programs:
        for word in program.command:
            path = Path(plan.folder, word)
            if path.is_file() and path.stat().st_size <= _MAX_HASHED:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def earlier_cells(folder: str) -> Mapping[str, Cell]:
    """Return the cells of an earlier run by name. Raises StorageError if the file is damaged."""
    path = os.path.join(folder, RESULTS)
    try:
        with open(path, "rb") as file:
            return {cell.name: cell for cell in msgspec.json.decode(file.read(), type=Results).cells}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: cannot be read: {error}; run without --resume") from error


class MatrixRun:
    """A run of cells into a folder.

    `repeat` is the number of runs of a cell that was not completed; `jobs` cells run side by side.
    """

    def __init__(self, plan: Plan, folder: str, repeat: int, jobs: int) -> None:
        self._plan = plan
        self._folder = Path(folder)
        self._repeat = repeat
        self._jobs = jobs
        self._is_stopped = threading.Event()

    def run(self, cells: Sequence[CellPlan], on_start: Callable[[str], None]) -> Iterator[Cell]:
        """Run the cells and yield each result as soon as it is known; everything has ended afterwards.

        Raises KiebitzError.
        """
        waiting: SimpleQueue[CellPlan] = SimpleQueue()
        for cell in cells:
            waiting.put(cell)
        done: SimpleQueue[Cell | Exception | None] = SimpleQueue()
        workers = [
            threading.Thread(target=self._work, args=(waiting, done, on_start))
            for _ in range(min(self._jobs, len(cells)))
        ]
        for worker in workers:
            worker.start()
        try:
            for _ in workers:
                while (found := done.get()) is not None:
                    if isinstance(found, Exception):
                        raise found
                    yield found
        finally:
            self._is_stopped.set()
            for worker in workers:
                worker.join()

    def _work(
        self,
        waiting: SimpleQueue[CellPlan],
        done: SimpleQueue[Cell | Exception | None],
        on_start: Callable[[str], None],
    ) -> None:
        try:
            while not waiting.empty() and not self._is_stopped.is_set():
                cell = waiting.get()
                on_start(cell.name)
                done.put(self._cell(cell))
        except StoppedError:
            # The run was interrupted.
            pass
        except Exception as error:
            done.put(error)
        finally:
            done.put(None)

    def _cell(self, cell: CellPlan) -> Cell:
        attempts: list[Attempt] = []
        while len(attempts) < (1 if attempts and attempts[0].outcome == "completed" else self._repeat):
            attempts.append(self._attempt(cell, len(attempts) + 1))
        return Cell(cell.server.name, cell.title, fingerprint(self._plan, cell), tuple(attempts))

    def _attempt(self, cell: CellPlan, number: int) -> Attempt:
        name = f"{cell.server.name}--{cell.title}" + (f"--{number}" if number > 1 else "")
        folder = self._folder / "work" / name
        shutil.rmtree(folder, ignore_errors=True)
        run = CellRun(self._plan, cell.server, cell.clients, folder, self._plan.seed + number - 1)
        record = run.run(self._is_stopped)
        attempt = judged(self._plan, record, str(run.database))
        kept = self._folder / "cells" / f"{name}.db"
        kept.parent.mkdir(parents=True, exist_ok=True)
        run.database.replace(kept)
        shutil.rmtree(folder, ignore_errors=True)
        return msgspec.structs.replace(attempt, database=f"cells/{kept.name}", page=f"cells/{name}.html")


def write_results(results: Results, folder: str) -> None:
    """Write the results as JSON. Raises StorageError."""
    with opened(os.path.join(folder, RESULTS), "") as file:
        file.write(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
