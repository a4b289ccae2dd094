"""An interoperability run: all cells of a plan, some side by side, with interrupted runs continued."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from kiebitz.dissectors.version import kiebitz_version
from kiebitz.proxy.system.deferred_signals import ignored_signals
from kiebitz.proxy.system.safe_files import open_file
from kiebitz.services.interop.cell_run import CellRecord, CellRun
from kiebitz.services.interop.judging import judged
from kiebitz.services.interop.plan import Plan, Program
from kiebitz.services.interop.results import Attempt, Cell, Results, new_file, own_folder, stem_of, with_paths
from kiebitz.services.recording.relay_process import RelayProcessError
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
    if plan.mixed and (count := len(plan.clients)) > 1:
        # Each client sits at one of these.
        for number, start in enumerate(range(0, count, plan.players), 1):
            seats = range(start, start + plan.players)
            tables.append((f"mix-{number}", tuple(plan.clients[seat % count] for seat in seats)))
    return [CellPlan(server, title, clients) for server in plan.servers for title, clients in tables]


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
        with os.fdopen(open_file(path), "rb") as file:
            read = msgspec.json.decode(file.read(), type=Results)
        # The file may come from anyone: its paths are not used.
        return {cell.name: _with_own_paths(cell) for cell in read.cells}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: cannot be read: {error}; run without --resume") from error


def _with_own_paths(cell: Cell) -> Cell:
    attempts = [
        with_paths(attempt, stem_of(cell.server, cell.client, number))
        for number, attempt in enumerate(cell.attempts, 1)
    ]
    return msgspec.structs.replace(cell, attempts=attempts)


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
        with ThreadPoolExecutor(self._jobs) as pool:
            waiting = [pool.submit(self._cell, cell, on_start) for cell in cells]
            try:
                for done in as_completed(waiting):
                    yield done.result()
            finally:
                with ignored_signals():
                    self._is_stopped.set()
                    pool.shutdown(cancel_futures=True)

    def _cell(self, cell: CellPlan, on_start: Callable[[str], None]) -> Cell:
        """Run a cell. Raises StoppedError if the run was interrupted."""
        on_start(cell.name)
        attempts: list[Attempt] = []
        while len(attempts) < (1 if attempts and attempts[0].outcome == "completed" else self._repeat):
            attempts.append(self._attempt(cell, len(attempts) + 1))
        return Cell(cell.server.name, cell.title, fingerprint(self._plan, cell), tuple(attempts))

    def _attempt(self, cell: CellPlan, number: int) -> Attempt:
        stem = stem_of(cell.server.name, cell.title, number)
        kept = own_folder(self._folder, "cells") / f"{stem}.db"
        begun = time.monotonic()
        # The programs cannot reach the recording from their folders, as those are elsewhere.
        with (
            TemporaryDirectory(prefix="kiebitz-", ignore_cleanup_errors=True) as folder,
            TemporaryDirectory(prefix=".kiebitz-", dir=self._folder, ignore_cleanup_errors=True) as hidden,
        ):
            database = Path(hidden, "game.db")
            seed = self._plan.seed + number - 1
            run = CellRun(self._plan, cell.server, cell.clients, Path(folder), database, seed)
            try:
                kept.unlink(missing_ok=True)
                attempt = self._judged(run.run(self._is_stopped), database)
                own_folder(self._folder, "cells")
                database.replace(kept)
            except (RelayProcessError, StorageError, OSError) as error:
                # One cell does not end the run.
                seconds = round(time.monotonic() - begun, 1)
                why = f"it was not recorded: {error}".replace(str(database), "the recording")
                attempt = Attempt("crashed", None, why, 0, seconds, (), (), None, None)
        return with_paths(attempt, stem)

    def _judged(self, record: CellRecord, database: Path) -> Attempt:
        """Return the outcome of a run. Raises StorageError if a program has replaced the recording."""
        try:
            return judged(self._plan, record, str(database))
        except StorageError:
            raise
        except Exception as error:
            # Whatever a stranger's database makes of the readers.
            raise StorageError(f"{database}: it cannot be read: {type(error).__name__}") from error


def write_results(results: Results, folder: str) -> None:
    """Write the results as JSON. Raises StorageError."""
    with new_file(folder, RESULTS) as file:
        file.write(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
