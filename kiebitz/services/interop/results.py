"""The results of an interoperability run.

The folder of a report: its paths come from the names in the plan, and nothing is written through a link.

The programs of a run have the rights of the user, so they may have put links or pipes in place of its files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Literal

import msgspec

from kiebitz.services.output_files import opened
from kiebitz.services.sessions import session_of
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.session.session import Session

OutcomeWord = Literal["completed", "violations", "crashed", "hung", "left", "idle", "refused"]

OUTCOMES: tuple[OutcomeWord, ...] = (
    "crashed",
    "hung",
    "left",
    "idle",
    "refused",
    "violations",
    "completed",
)
"""The outcomes, worst first."""

SYMBOLS: dict[OutcomeWord, str] = {
    "completed": "✓",
    "violations": "!",
    "crashed": "✗",
    "hung": "…",
    "left": "←",
    "idle": "○",
    "refused": "–",
}


class Finding(msgspec.Struct, frozen=True):
    """A rule violation: who is to blame, the message, the first wrong byte, and the clause.

    `blame` is `server`, `client`, or at a mixed table the name of the client's group.
    """

    blame: str
    code: str
    text: str
    message: int | None
    offset: int | None
    clause: str | None
    count: int


class ProgramOutput(msgspec.Struct, frozen=True):
    """The end of a program's output, and how the program ended; None if it was stopped."""

    name: str
    role: str
    ended: str | None
    output: str


class ClientRecord(msgspec.Struct, frozen=True):
    """The part of one client in a run.

    Attributes:
        name: The value of `{name}`.
        program: The name of its program.
        joined: True if it took part in a game.
        moves: Number of its messages in games, without joining and heartbeats.
        games: Number of games that were played to their end with it.
    """

    name: str
    program: str
    joined: bool
    moves: int
    games: int


class Attempt(msgspec.Struct, frozen=True):
    """One run of a cell.

    `culprit` is `server`, `client`, at a mixed table the name of the client's group, or None if it is unknown
    or nobody. `why` is the reason in a clause, `games` the number of games that all clients played to the
    end.
    """

    outcome: OutcomeWord
    culprit: str | None
    why: str
    games: int
    seconds: float
    findings: Sequence[Finding]
    outputs: Sequence[ProgramOutput]
    database: str | None
    page: str | None
    clients: Sequence[ClientRecord] = ()


class Cell(msgspec.Struct, frozen=True):
    """A cell of the matrix with its runs; `fingerprint` stands for the plan and the files of its commands."""

    server: str
    client: str
    fingerprint: str
    attempts: Sequence[Attempt]

    @property
    def name(self) -> str:
        """The name of the cell, as in `group-a×group-b`."""
        return f"{self.server}×{self.client}"

    @property
    def outcome(self) -> OutcomeWord:
        """The worst outcome of its runs."""
        return min((attempt.outcome for attempt in self.attempts), key=OUTCOMES.index)

    @property
    def decisive(self) -> Attempt:
        """The first run with the worst outcome."""
        return next(attempt for attempt in self.attempts if attempt.outcome == self.outcome)

    @property
    def is_stable(self) -> bool:
        """True if all runs have the same outcome and culprit."""
        return len({(attempt.outcome, attempt.culprit) for attempt in self.attempts}) == 1

    @property
    def is_completed(self) -> bool:
        """True if all runs were completed."""
        return self.outcome == "completed"


class ProbeSummary(msgspec.Struct, frozen=True):
    """The probe of one program: the number of cases by verdict, or why there are none."""

    name: str
    role: str
    verdicts: dict[str, int]
    failed: Sequence[str]
    why_not: str | None = None


class Results(msgspec.Struct, frozen=True):
    """All results of a run."""

    protocol: str
    servers: Sequence[str]
    clients: Sequence[str]
    cells: Sequence[Cell]
    probes: Sequence[ProbeSummary] = ()


def stem_of(server: str, title: str, number: int) -> str:
    """Return the name of the files of a cell's run, without their extension."""
    return f"{server}--{title}" + (f"--{number}" if number > 1 else "")


def with_paths(attempt: Attempt, stem: str) -> Attempt:
    """Return a run with the paths of its recording and its page, relative to the report."""
    return msgspec.structs.replace(attempt, database=f"cells/{stem}.db", page=f"cells/{stem}.html")


_MAKING = Lock()
"""Held while a folder is made, as cells that run side by side need the same ones."""


def own_folder(report: Path, name: str) -> Path:
    """Return a folder of the report, made anew in place of a link or a file. Raises StorageError."""
    path = report / name
    try:
        with _MAKING:
            if not _is(path, stat.S_ISDIR):
                path.unlink(missing_ok=True)
                path.mkdir()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    return path


def _is(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Return True if a path itself, not what it links to, is of a kind."""
    try:
        return is_kind(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def new_file(report: str, path: str) -> Iterator[BinaryIO]:
    """Open a file of the report, which replaces an older one or a link. Raises StorageError."""
    within = Path(report)
    for part in Path(path).parts[:-1]:
        within = own_folder(within, part)
    target = within / Path(path).name
    try:
        if not _is(target, stat.S_ISREG):
            target.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{target}: {error.strerror}") from error
    with opened(str(target), "") as file:
        yield file


def open_recording(path: str) -> Session:
    """Open the session of a cell's recording, which a program under test may have replaced.

    Raises StorageError, also for a link, a pipe or another database.
    """
    try:
        is_regular = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    if not is_regular:
        raise StorageError(f"{path}: this is no longer the recording, but a link, a pipe or a folder")
    connection = open_existing(path)
    try:
        timeline, _ = session_of(connection, path, None)
    except BaseException:
        connection.close()
        raise
    return Session(timeline, path)
